"""Error codes: each is in the table, each example gives its code, and every message that a user sees ends with one."""
from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import irtool
from irtool.cli.error_codes import GROUPS, Entry, read_entries
from irtool.cli.main import main
from irtool.expect.cases import read_cases
from irtool.expect.commands import run_pipeline
from irtool.ir.errors import Error

ENTRIES = read_entries()
ROOT = Path(irtool.__file__).resolve().parents[1]
BEHIND = re.compile(r"(?m)^(?:[^\n]*?: )?(?:error|warning): (?:.*\n)*?.*? \[([EW]\d{4})\]$")
"""The code of a message, which may have several lines."""


def irtool_(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(list(words), io.BytesIO(b""), out, err), out.getvalue(), err.getvalue()


def outcome(entry: Entry, folder: Path) -> tuple[int | None, str]:
    """What the example of an entry gives: the exit code (None of a Python file), and the messages."""
    for name, text in entry.files.items():
        (folder / name).write_text(text)
    program, *words = shlex.split(entry.command)
    if ">" in entry.command or program == "sh":
        done = subprocess.run(entry.command.replace("irtool", f"{sys.executable} -m irtool"), shell=True, cwd=folder, text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
        return done.returncode, done.stderr
    if program == "irtool":
        code, _, err = irtool_(*words)
        return code, err
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            runpy.run_path(str(folder / words[0]))
    except Error as error:
        return None, "\n".join(each.render() for each in error.coded())
    return None, messages.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_example_gives_its_code(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if ">/dev/full" in entry.command and not Path("/dev/full").exists():
        pytest.skip("needs a device that is full")
    monkeypatch.chdir(tmp_path)
    code, messages = outcome(entry, tmp_path)
    assert set(BEHIND.findall(messages)) == {entry.code}, messages
    expected = 0 if entry.code[0] == "W" else {"E08": 2, "E09": 3}.get(entry.code[:3])
    assert expected in (None, code) or code is None
    assert entry.title and entry.meaning and entry.remedy and entry.code[:3] in GROUPS


def test_the_table_and_the_source_have_the_same_codes() -> None:
    written: set[str] = set()
    for path in [*(ROOT / "irtool").rglob("*.py"), *(ROOT / "passes").glob("*.py")]:
        text = path.read_text()
        written |= set(re.findall(r'"([EW]0\d{3})"', text)) | set(re.findall(r"\[([EW]0\d{3})\]", text))
    assert sorted(written) == list(ENTRIES)
    assert len(re.findall(r"(?m)^[EW]0\d{3} ", (ROOT / "irtool/cli/error_codes.txt").read_text())) == len(ENTRIES), "a code twice"


def subclasses(kind: type[Error]) -> list[type[Error]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in subclasses(sub))]


def test_every_class_of_errors_has_a_code() -> None:
    import irtool.cli.exit_errors
    import irtool.execute.executor
    import irtool.interop.npz
    import irtool.torchscript  # noqa: F401

    for kind in subclasses(Error):
        if kind.__module__.startswith("irtool"):
            assert kind.code in ENTRIES, kind


@pytest.mark.parametrize("path", sorted((ROOT / "tests/expect").rglob("*.ir")), ids=lambda path: path.stem)
def test_every_error_in_the_cases_has_a_code(path: Path, tmp_path: Path) -> None:
    for case in read_cases(path.read_text(), path.name):
        if not case.expectations and not case.exit_code:
            continue
        words = [[word.replace("%S", str(path.parent)).replace("%t", str(tmp_path)) for word in stage] for stage in case.commands]
        code, _, err = run_pipeline(words, case.input, path.name, case.input_line, str(tmp_path))
        errors = [json.loads(line)["code"] for line in err.splitlines() if line.startswith("{")] if "json" in str(words) else \
            BEHIND.findall(err)
        starts = re.findall(r"(?m)^(?:\S+: )?error: ", err)
        assert code == 0 or len(errors) >= len(starts) and set(errors) <= set(ENTRIES), err


class TestExplain:
    """`irtool explain`."""

    def test_it_says_what_the_table_has(self) -> None:
        code, out, err = irtool_("explain", "e0103")
        assert (code, err) == (0, "") and out.startswith("E0103: unknown operator\n\nNo operator has this name.")
        assert "What to do\n" in out and "$ irtool opt graph.ir" in out and "aten::nge(%x)" in out

    def test_it_lists_all(self) -> None:
        lines = irtool_("explain")[1].splitlines()
        assert [line[:5] for line in lines] == list(ENTRIES) and "E0103  unknown operator" in lines

    def test_it_gives_json(self) -> None:
        assert [each["code"] for each in json.loads(irtool_("explain", "--json")[1])["errors"]] == list(ENTRIES)
        (one,) = json.loads(irtool_("explain", "--json", "E0103")[1])["errors"]
        assert one["title"] == "unknown operator" and one["group"] == "Text and parsing" and "graph.ir" in one["files"]

    def test_a_code_that_is_none(self) -> None:
        code, out, err = irtool_("explain", "E01033")
        assert (code, out) == (2, "") and "no error has the code 'E01033' (did you mean 'E0103'?) [E0808]" in err


def test_json_diagnostics_have_the_code(tmp_path: Path) -> None:
    (tmp_path / "graph.ir").write_text(ENTRIES["E0103"].files["graph.ir"])
    record = json.loads(irtool_("opt", "--diagnostics-format=json", str(tmp_path / "graph.ir"))[2])
    assert record["code"] == "E0103" and "[E0103]" not in record["message"]


def test_the_page_is_that_of_the_table() -> None:
    tool = runpy.run_path(str(ROOT / "tools/errors.py"))
    assert tool["PAGE"].read_text() == tool["page"](), "make errors"
