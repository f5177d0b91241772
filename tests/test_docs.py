"""Documents and docstrings name what exists: files and folders in backticks, modules, and those in the table of a package's `__init__`.

docs/errors.md is left out: it is made of a table, whose examples name files of their own.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs/errors.md"}))
MODULES = [*sorted((ROOT / "irtool").rglob("*.py")), *sorted((ROOT / "passes").glob("*.py"))]
PACKAGES = [path for path in MODULES if path.name == "__init__.py"]
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|txt|toml))`")
MODULE = re.compile(r"`(irtool(?:\.\w+)+)")
OF_THE_USER = {"name.py", "name.md", "my_pass.py", "my-pass.ir", "model.py", "scale.py", "script"}
"""Names of a reader's files, and of a package of former times."""


def prose(path: Path) -> str:
    """The text in which backticks quote: a document without its blocks of code, or the docstrings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", text) if path.suffix == ".md" else text


def docstring(path: Path) -> str:
    """The docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def is_there(name: str, beside: Path) -> bool:
    """Does a path exist: from the top, in the package, or beside the file that names it?"""
    return any((folder / name).exists() for folder in (ROOT, ROOT / "irtool", beside.parent))


def defines(name: str) -> bool:
    """Is a dotted name a module or package, or a name that stands in one?"""
    words = name.split(".")
    for count in range(len(words), 0, -1):
        place = ROOT.joinpath(*words[:count])
        place = ROOT / "passes" / "/".join(words[2:count]) if words[:2] == ["irtool", "passes"] and count > 1 else place
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.exists():
            return count == len(words) or count == 1 or bool(re.search(rf"\b{words[count]}\b", file.read_text(encoding="utf-8")))
    return False


def listed(text: str) -> Iterator[str]:
    """The names in the first column of a docstring's table: `    alias, liveness    which values ...`."""
    for line in text.split("\n"):
        row = re.match(r" {4}(\w+(?:, \w+)*)(?:: | {2,})\S", line)
        if row:
            yield from row[1].split(", ")


@pytest.mark.parametrize("path", [*DOCUMENTS, *PACKAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_in_backticks_exist(path: Path) -> None:
    text = prose(path) if path.suffix == ".md" else docstring(path)
    assert [name for name in PATH.findall(text) if Path(name).name not in OF_THE_USER and not is_there(name, path)] == []


def test_modules_in_backticks_exist() -> None:
    assert [f"{path}: {name}" for path in (*DOCUMENTS, *MODULES) for name in MODULE.findall(prose(path)) if not defines(name)] == []


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_table_of_a_package_names_its_modules(path: Path) -> None:
    here = {each.stem for each in path.parent.iterdir()}
    assert [name for name in listed(docstring(path)) if name not in here] == []


def test_walks_name_functions_that_stand_in_their_files() -> None:
    """In the walks of docs/architecture.md a name behind a file is defined in it: `irtool/execute/run.py`, `cached`."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    walks = re.sub(r"\s+", " ", text[text.index("## Five walks"):text.index("## Extensions")])
    steps = re.findall(r"`([\w/]+\.py)`, `(\w+)`", walks)
    assert len(steps) > 30
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in steps}
    assert [step for step in steps if not re.search(rf"(?m)^ *(def|class) {step[1]}\b|^{step[1]} = ", texts[step[0]])] == []


def test_the_site_has_every_document() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert [path.name for path in (ROOT / "docs").glob("*.md") if path.name not in listed] == [], "add it to nav in mkdocs.yml"


def test_the_files_to_read_first_are_short() -> None:
    files = re.findall(r"(?m)^\d+\. \[[\w/.]+\]\(\.\./([\w/.]+)\)", (ROOT / "docs/reading.md").read_text(encoding="utf-8"))
    assert 10 <= len(files) <= 14
    assert sum(len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files) <= 6000
