"""docs/from-torch.md: its commands and Python run on the files of examples/from_torch; with torch, on files that its blocks just wrote.

`python tests/test_from_torch.py` writes the files, where torch is.
"""
from __future__ import annotations

import doctest
import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.test_readme import commands, printed

ROOT = Path(__file__).parent.parent
FILES = ROOT / "examples" / "from_torch"
BLOCK = re.compile(r"(?ms)^```(\S+) ?(\S*)\n(.*?)^```$")
BLOCKS = [(match[1], match[2], match[3]) for match in BLOCK.finditer((ROOT / "docs" / "from-torch.md").read_text())]


def write_files(folder: Path) -> None:
    """What the blocks write that need torch, and the files that the page shows."""
    for _, name, text in BLOCKS:
        if name.endswith(".py"):
            (folder / name).write_text(text)
    (folder / "from_torch.py").write_text("\n".join(text for _, name, text in BLOCKS if name == "torch"))
    before = os.getcwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("from_torch")
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        for name in ("from_torch", "scale"):
            sys.modules.pop(name, None)
    (folder / "from_torch.py").unlink()


def check_page() -> None:
    """Run what needs no torch, in the folder of the files."""
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner()
    for language, name, text in BLOCKS:
        if language == "console":
            for line, expected in commands(text):
                assert printed(line) == expected
        elif language == "python" and not name:
            test = doctest.DocTestParser().get_doctest(text, names, "from-torch", None, 0)
            runner.run(test, clear_globs=False)
            names = test.globs
    assert runner.summarize(verbose=False).failed == 0


def test_the_page_runs_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FILES, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    for _, name, text in BLOCKS:
        assert not name.endswith(".py") or Path(name).read_text() == text
    check_page()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_what_torch_writes_today_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    check_page()


def without_folders() -> None:
    """Take the places of torch and of the project on this machine out of the files."""
    from tests.data.archives import make

    text = (FILES / "net.ir").read_text()
    (FILES / "net.ir").write_text(re.sub(r"# /\S*/(?=[^/]+\.py:)", "# ", text))
    for name in ("net.pt", "traced.pt"):
        make.without_folders(FILES / name)


if __name__ == "__main__":
    write_files(FILES)
    without_folders()
