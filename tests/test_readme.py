"""Documents are executed: `$ irtool ...` lines of console blocks must print what stands below them, python blocks are doctests.

`pytest tests/test_readme.py --accept` rewrites what the commands print.
"""
from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.ir.extensions import taken_away

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"errors.md": "test_error_codes.py", "from-torch.md": "test_from_torch.py", "json.md": "test_json_pages.py"}
"""Documents that other tests execute."""
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "examples/README.md",
             *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in ELSEWHERE))
CONSOLE = re.compile(r"(?ms)^```console\n(.*?)^```$")
PYTHON = re.compile(r"(?ms)^```python\n(.*?)^```$")


def commands(block: str) -> Iterator[tuple[str, str]]:
    """(command line, what stands below it)."""
    pieces = re.split(r"(?m)^\$ (.*)\n", block)
    yield from zip(pieces[1::2], pieces[2::2])


def printed(line: str) -> str:
    """What a command prints, both streams, messages first."""
    words = shlex.split(line)
    if words[0] == "cat":
        return Path(words[1]).read_text()
    if words[0] == "pytest":
        command = [sys.executable, "-m", "pytest", "-p", "irtool.expect", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "IRTOOL_ACCEPT") and "PYTEST" not in name}
        return subprocess.run([*command, *words[1:]], capture_output=True, text=True, env=environment, timeout=300).stdout
    assert words[0] == "irtool", f"only irtool, pytest and cat run here, not {words[0]}"
    out, err = io.StringIO(), io.StringIO()
    main(words[1:], stdin=io.BytesIO(), stdout=out, stderr=err)
    return err.getvalue() + out.getvalue()


def rewritten(text: str) -> str:
    """The document with what its commands print now."""
    def run(block: re.Match[str]) -> str:
        return "```console\n" + "".join(f"$ {line}\n{printed(line)}" for line, _ in commands(block[1])) + "```"
    return CONSOLE.sub(run, text)


def rounded(text: str) -> str:
    """The text with long fractions rounded: the last digits of a matrix product differ from machine to machine, and with them the blanks
    by which NumPy aligns them. Times are zeros."""
    text = re.sub(r"(?m) in \d+\.\d+ ?s$", " in 0.0 s", text)
    return re.sub(r" *(\d+\.\d{5,}) *", lambda number: f" {float(number[1]):.4f} ", text)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_print_what_the_document_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               pytestconfig: pytest.Config) -> None:
    for part in ("examples", "tests", "irtool", "passes", "pyproject.toml"):    # a folder into which commands may write
        (tmp_path / part).symlink_to(ROOT / part)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    path = ROOT / name
    text = path.read_text()
    new = rewritten(text)
    if rounded(new) == rounded(text):
        return
    if pytestconfig.getoption("--accept") == "all":
        path.write_text(new)
    else:
        assert new == text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_python_blocks_are_right(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict[str, object] = {}
    text = (ROOT / name).read_text()
    for block in PYTHON.finditer(text):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, name, name, line)
        with taken_away():
            runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.summarize(verbose=False).failed == 0


def test_no_document_is_left_out() -> None:
    assert all((ROOT / "docs" / name).exists() and (ROOT / "tests" / test).exists() for name, test in ELSEWHERE.items())
    for path in (ROOT / "docs").rglob("*.md"):
        assert path.parent == ROOT / "docs" or not re.search(r"^```(python|console)$", path.read_text(), re.MULTILINE), path


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    text = re.sub(r"`[^`]*`", "", path.read_text())
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / target).exists(), f"{name} links to {target}"


def test_every_example_is_listed_and_formatted() -> None:
    listed = (ROOT / "examples/README.md").read_text()
    for path in sorted((ROOT / "examples").iterdir()):
        assert f"`{path.name}`" in listed or path.name in ("README.md", "__pycache__"), f"{path.name} is not in examples/README.md"
    for path in (ROOT / "examples").glob("*.ir"):
        assert main(["fmt", "--check", str(path)], stdout=io.StringIO(), stderr=io.StringIO()) == 0
