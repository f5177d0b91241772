"""What is shipped: the files of the source distribution, the metadata, and a checkout on a system that has no symbolic links."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
IMPORTED_AS = {"cupy-cuda12x": "cupy", "pytest-xdist": "xdist", "fast-sugiyama": "fast_sugiyama",
               "axe-playwright-python": "axe_playwright_python", "mkdocs-material": "material", "mkdocstrings-python": "mkdocstrings"}
NO_SOURCES = (".*", "build", "dist", "shared", "*.egg-info", "__pycache__", "irtool-crash-*.ir")
SOURCES = ("*.py", "Makefile", ".ci/run", "mkdocs.yml")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked. It is built by setuptools in a copy, since building writes into the folder."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "copy", symlinks=True, ignore=shutil.ignore_patterns(*NO_SOURCES))
    shutil.copytree(ROOT / ".ci", folder / "copy" / ".ci")
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder / "copy", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("irtool-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / archive.name.removesuffix(".tar.gz")


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_source_distribution_is_the_whole_checkout(unpacked: Path) -> None:
    copied = {name for name in files_of(unpacked.parent / "copy") if "egg-info" not in name and not name.startswith("irtool/passes/")}
    if (ROOT / ".git").exists() and shutil.which("git"):        # a file that nobody committed is nobody's loss
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
        copied &= set(listed) or copied
    assert copied - files_of(unpacked) == set()
    assert copied > {"CHANGELOG.md", "docs/api.md", "examples/mlp.ir", "tests/conftest.py", "irtool/py.typed", ".ci/run"}


def test_without_the_link_the_passes_are_found(unpacked: Path) -> None:
    """A source distribution leaves the link out, and git writes a file in its place where a system has no links."""
    assert not (unpacked / "irtool" / "passes").exists()
    code = "import irtool.passes.dce as dce\nprint(dce.__name__)\ntry: import passes\nexcept ImportError as error: print(error)"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], cwd=unpacked, env={**os.environ, "PYTHONPATH": str(unpacked)}, timeout=60,
                              capture_output=True, text=True, check=False)
        assert (done.stderr, done.stdout) == ("", "irtool.passes.dce\nimport irtool.passes\n")
        (unpacked / "irtool" / "passes").write_text("../passes")


def test_links_of_the_readme_are_to_files_that_are_shipped(unpacked: Path) -> None:
    for link in re.findall(r"\]\(([\w./]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (unpacked / link).exists(), link


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_names_what_is_imported_or_run(extra: str) -> None:
    texts = [path.read_text(encoding="utf-8") for pattern in SOURCES for path in ROOT.glob(pattern)]
    folders = ("irtool", "tests", "tools", "benchmarks")
    texts += [path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")]
    for requirement in EXTRAS[extra]:
        name = re.split(r"[<>=\[]", requirement)[0]
        module = IMPORTED_AS.get(name, name)
        pattern = rf"(?m)^\s*(import|from|-|name:) {module}\b|(import_module|importorskip)\(.{module}\b|(bin|BIN\))/(python -m )?{module}\b"
        assert name == "irtool" or any(re.search(pattern, text) for text in texts), requirement


def test_hints_name_extras_that_exist() -> None:
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "irtool").rglob("*.py"), *(ROOT / "passes").rglob("*.py")]
    named = {extra for path in paths for extra in re.findall(r"(?:irtool|'\.|install \.)\[([\w,]+)\]", path.read_text(encoding="utf-8"))}
    assert named and {each for extra in named for each in extra.split(",")} <= set(EXTRAS)


def test_metadata() -> None:
    versions = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert f">={versions[0]}" == PROJECT["requires-python"] and versions == [f"3.{minor}" for minor in range(11, 11 + len(versions))]
    assert PROJECT["authors"] and PROJECT["keywords"] and PROJECT["license"] and PROJECT["readme"] == "README.md"
