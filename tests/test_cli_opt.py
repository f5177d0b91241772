"""`irtool opt` in-process: streams, files, exit codes, and every report it can print."""
from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.graph import Graph
from irtool.passes import BY_NAME, Pass

GOOD = """graph(%a : Tensor,
      %b : Tensor):
  %c : int = prim::Constant[value=1]()
  %d : Tensor = aten::add(%a, %b, %c)
  %e : Tensor = aten::mul(%a, %b)
  %f : int = prim::Constant[value=1]()
  %g : Tensor = aten::add(%a, %b, %f)
  %h : Tensor = aten::mul(%d, %g)
  return (%h)
"""
CLEAN = """graph(%a : Tensor,
      %b : Tensor):
  %c : int = prim::Constant[value=1]()
  %d : Tensor = aten::add(%a, %b, %c)
  %h : Tensor = aten::mul(%d, %d)
  return (%h)
"""
BAD = """graph(%a : Tensor):
  %d : Tensor = aten::relu(%b)
  return (%d)
"""


class Result:
    """What one call gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


def irtool_(*words: str, text: str | bytes = "", **options: object) -> Result:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    data = text.encode() if isinstance(text, str) else text
    code = main(list(words), io.BytesIO(data), out, err, **options)     # type: ignore[arg-type]
    return Result(code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def crash(graph: Graph) -> bool:
    """A pass with a bug."""
    raise RuntimeError("the wheel came off")


def break_graph(graph: Graph) -> bool:
    """A pass that leaves a graph in which a value is used before it is made."""
    node = graph.nodes[-1]
    node.remove()
    graph.block.prepend(node)
    return True


@pytest.fixture
def faulty_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "crash", Pass("crash", crash))
    monkeypatch.setitem(BY_NAME, "break-graph", Pass("break-graph", break_graph))


# -- streams and files
def test_the_result_is_on_stdout_and_a_line_per_pass_on_stderr() -> None:
    result = irtool_("opt", "--passes=cse,dce,dce", text=GOOD)
    assert (result.code, result.out) == (0, CLEAN)
    assert result.err == "01 cse: -2 ops\n02 dce: -1 op\n03 dce: unchanged\n"


def test_quiet_leaves_only_the_result() -> None:
    assert irtool_("opt", "-q", "--passes=cse,dce", text=GOOD).err == ""


def test_without_passes_the_text_comes_back() -> None:
    assert irtool_("opt", text=GOOD).out == GOOD
    assert irtool_("opt", "-", text=GOOD).out == GOOD


def test_passes_given_twice_are_joined_and_files_are_read(tmp_path: Path) -> None:
    Path("my.pipeline").write_text("cse,   # first\ndce")
    assert irtool_("opt", "-q", "--passes", "cse", "--passes=dce", text=GOOD).out == CLEAN
    assert irtool_("opt", "-q", "--passes=@my.pipeline", text=GOOD).out == CLEAN
    result = irtool_("opt", "--passes=@no.pipeline", text=GOOD)
    assert (result.code, result.out) == (2, "")
    assert "no.pipeline: no such file or directory" in result.err


def test_two_processes_in_a_pipe_give_what_one_gives() -> None:
    first = irtool_("opt", "-q", "--passes=cse", text=GOOD)
    second = irtool_("opt", "-q", "--passes=dce", text=first.out)
    assert second.out == irtool_("opt", "-q", "--passes=cse,dce", text=GOOD).out


def test_output_replaces_its_own_input(tmp_path: Path) -> None:
    path = tmp_path / "a.ir"
    path.write_text(GOOD)
    path.chmod(0o640)
    assert irtool_("opt", "-q", "--passes=cse,dce", "-o", str(path), str(path)).code == 0
    assert path.read_text() == CLEAN
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.ir"]


def test_a_failure_writes_no_output(tmp_path: Path) -> None:
    Path("out.ir").write_text("untouched")
    result = irtool_("opt", "--passes=dce", "-oout.ir", text=BAD)
    assert (result.code, result.out) == (1, "")
    assert "<stdin>:2:28: error: " in result.err
    assert Path("out.ir").read_text() == "untouched"
    assert os.listdir(tmp_path) == ["out.ir"]


@pytest.mark.parametrize("words, code, message", [
    (["opt", "missing.ir"], 2, "error: missing.ir: no such file or directory"),
    (["opt", "."], 2, "error: the results of many files go to a folder: irtool opt ... -o DIR"),
    (["opt", "-o", "no/such/place.ir", "-"], 2, "error: cannot write no/such/place.ir: no such file or directory"),
    (["opt", ".", "."], 2, "error: the results of many files go to a folder: irtool opt ... -o DIR [E0801]"),
    (["opt", ".", "dce"], 2, "error: dce: no such file or folder"),
    (["opt", "-", "--json"], 2, "error: --json is for many files, whose results go to a folder: irtool opt ... -o DIR"),
    (["opt", ".", "--validate", "."], 2, "-o DIR; a value of --validate follows '=': --validate=INPUTS.npz"),
    (["opt", "--passes=dce", "--dump-dir", "/dev/null", "-"], 2, "error: cannot write /dev/null/00_input.ir: /dev/null is no folder"),
    (["plan", "-", ".", "--time", "json"], 2, "error: unexpected argument 'json'; a value of --time follows '=': --time=FORM"),
    (["fmt", "--check", "-o", "x.ir", "-"], 2, "error: --check and --output exclude each other"),
    (["transform", "-", "foo"], 2, "there is no transformation 'foo', expected one of grad, value_and_grad"),
    (["ops", "add.Tensr"], 2, "(did you mean 'aten::add.Tensor'?)"),
    (["opt", "--passes=differentiate{wrt}", "-"], 2, "option 'wrt' needs a value: wrt=0,2"),
    (["run", "-", "-i", "a=4x8f32=0"], 2, "unexpected 'x8f32=0'; tensors are like 2x3xf32=0"),
    (["convert", "a.ir"], 2, "error: missing argument OUT"),
    (["opt", "--pases=dce"], 2, "error: no such option: --pases (did you mean '--passes'?)"),
    (["opt", "--passes"], 2, "error: --passes needs a value: --passes=PIPELINE"),
    (["opt", "--passes=dce,"], 2, "<passes>:1:4: error: empty pass name; remove the comma"),
    (["opt", "--print-changed=dif"], 2, "error: --print-changed: expected diff or full or quiet, not 'dif' (did you mean 'diff'?)"),
    (["opt", "--quiet=1"], 2, "error: --quiet takes no value"),
    (["opt", "--opt-bisect-limit=-1"], 2, "error: --opt-bisect-limit: expected at least 0, not -1"),
    (["opt", "--opt-bisect-limit=x"], 2, "error: --opt-bisect-limit: expected an integer, not 'x'"),
    (["opt", "--print-after=cse", "--passes=dce"], 2, "error: --print-after: no pass 'cse' in the pipeline"),
    (["opt", "--graph=df"], 1, "no graph named 'df', expected one of: graph"),
    (["opt", "--syntax=Z9"], 2, "--syntax: no dialect 'Z9'"),
    (["opt", "--run-reproducer"], 2, "no reproducer: its first line is not"),
    (["optt"], 2, "error: no such command: optt (did you mean 'opt'?)"),
    (["--passes=dce"], 2, "error: no such option: --passes [E0803]\n"),
    (["--version", "--jsn"], 2, "error: no such option: --jsn (did you mean '--json'?)"),
    (["--version", "opt"], 2, "error: unexpected argument 'opt'"),
    (["--json"], 2, "error: missing command"),
])
def test_mistakes_on_the_command_line(words: list[str], code: int, message: str) -> None:
    result = irtool_(*words, text=GOOD)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("words", [["opt"], ["fmt"], ["stats"], ["bisect", "--passes=dce"], ["reduce", "--passes=dce"], ["decompile"]],
                         ids=lambda words: str(words[0]))
def test_what_takes_no_python_source_says_what_does(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("x = 1\n", encoding="utf-8")
    result = irtool_(*words, str(tmp_path / "f.py"))
    assert result.code == 1 and "found 'x'; 'irtool compile' makes graphs of Python source [E0102]" in result.err


def test_bytes_that_are_no_text() -> None:
    result = irtool_("opt", text=b"graph(%a : Tensor):\n  return (%\xff)\n")
    assert result.code == 1
    assert result.err.startswith("<stdin>:2:12: error: invalid UTF-8 (byte 0xff)")
    result = irtool_("opt", text=b"graph(%a :\0 Tensor):\n  return (%a)\n")
    assert result.code == 1
    assert result.err.startswith("<stdin>:1:11: error: NUL byte")


def test_messages_name_the_file_that_stdin_is_a_piece_of() -> None:
    result = irtool_("opt", text=BAD, stdin_name="case.ir", stdin_line=40)
    assert result.err.startswith("case.ir:41:28: error: ")
    assert "  %d : Tensor = aten::relu(%b)\n" in result.err
    result = irtool_("opt", text=b"\n\xff", stdin_name="case.ir", stdin_line=40)
    assert result.err.startswith("case.ir:41:1: error: invalid UTF-8")


def test_json_diagnostics() -> None:
    result = irtool_("opt", "--diagnostics-format=json", text=BAD)
    record = json.loads(result.err.splitlines()[0])
    assert (record["file"], record["line"], record["col"], record["severity"], record["pass"]) == ("<stdin>", 2, 28, "error", None)
    assert set(record) == {"file", "line", "col", "end_col", "severity", "code", "message", "notes", "pass"}
    result = irtool_("opt", "--passes=dcee", "--diagnostics-format", "json", text=BAD)
    assert json.loads(result.err)["file"] == "<passes>"


@pytest.mark.parametrize("words", [
    ["--diagnostics-format=json", "--pases"], ["--pases", "--diagnostics-format=json"], ["--diagnostics-format", "json", "--graph="],
    ["a.ir", "b.ir", "--diagnostics-format=json"], ["--opt-bisect-limit=x", "--diagnostics-format=json"],
])
def test_mistakes_on_the_command_line_are_json_where_that_is_asked_for(words: list[str]) -> None:
    result = irtool_("opt", *words, text=GOOD)
    assert (result.code, result.out) == (2, "")
    assert json.loads(result.err)["severity"] == "error"


def test_only_so_many_errors_are_shown() -> None:
    lines = "".join(f"  %x{i} : Tensor = aten::relu(%b)\n" for i in range(9))
    result = irtool_("opt", "--max-errors=3", text=f"graph(%a : Tensor):\n{lines}  return (%a)\n")
    assert result.code == 1
    assert result.err.count(" error: ") == 3
    assert result.err.endswith("... more errors are not shown (--max-errors=3)\n")


def test_colour_is_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in irtool_("opt", text=BAD).err
    assert "\x1b" in irtool_("opt", "--color=always", text=BAD).err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in irtool_("opt", text=BAD).err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in irtool_("opt", text=BAD).err
    assert "\x1b" in irtool_("opt", "--color=always", text=BAD).err


def test_an_unknown_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRTOOL_ACEPT", "1")
    monkeypatch.setenv("IRTOOL_ACCEPT", "1")
    result = irtool_("opt", text=GOOD)
    assert result.code == 0
    assert result.err == "warning: environment variable IRTOOL_ACEPT is not known to irtool (did you mean 'IRTOOL_ACCEPT'?) [W0104]\n"


# -- several inputs in one file
def test_a_split_file_keeps_its_lines() -> None:
    result = irtool_("opt", "--split-input-file", "--passes=cse,dce", text=f"{GOOD}# -----\n{CLEAN}")
    assert (result.code, result.out) == (0, f"{CLEAN}# -----\n{CLEAN}")
    assert result.err.splitlines()[0] == "<stdin>:1: 01 cse: -2 ops"
    assert result.err.splitlines()[2] == "<stdin>:11: 01 cse: unchanged"


def test_an_error_in_a_split_file_has_the_line_of_the_file() -> None:
    result = irtool_("opt", "--split-input-file", text=f"{GOOD}# -----\n{BAD}# -----\n{BAD}")
    assert (result.code, result.out) == (1, "")
    assert "<stdin>:12:28: error: " in result.err
    assert "<stdin>:16:28: error: " in result.err
    assert result.err.count("  %d : Tensor = aten::relu(%b)") == 2


def test_one_graph_of_several() -> None:
    text = "# graph f:\n" + GOOD + "# graph g: of=f\n" + GOOD
    result = irtool_("opt", "-q", "--graph=g", "--passes=cse,dce", text=text)
    assert result.code == 0
    assert result.out.endswith(CLEAN)
    assert result.out.count("graph(") == 1
    assert "of=f" not in result.out
    assert irtool_("opt", "-q", "--passes=cse,dce", text=text.replace(" of=f", "")).out.count(CLEAN) == 2


# -- reports
def test_printing_before_and_after() -> None:
    result = irtool_("opt", "-q", "--passes=cse,dce", "--print-before=cse", "--print-after=dce", text=GOOD)
    assert result.out == CLEAN
    assert result.err == f"# IR before cse (1 of 2)\n{GOOD}# IR after dce (2 of 2)\n{CLEAN}"
    result = irtool_("opt", "-q", "--passes=cse,dce", "--print-before-all", "--print-after-all", text=GOOD)
    assert result.err.count("# IR before") == result.err.count("# IR after") == 2


def test_printing_what_changed() -> None:
    result = irtool_("opt", "-q", "--passes=dce,dce", "--print-changed", text=GOOD)
    assert result.err == (
        "# IR after dce (1 of 2), as a diff\n--- before\n+++ after\n@@ -2,7 +2,6 @@\n       %b : Tensor):\n"
        "   %c : int = prim::Constant[value=1]()\n"
        "   %d : Tensor = aten::add(%a, %b, %c)\n-  %e : Tensor = aten::mul(%a, %b)\n   %f : int = prim::Constant[value=1]()\n"
        "   %g : Tensor = aten::add(%a, %b, %f)\n   %h : Tensor = aten::mul(%d, %g)\n# IR after dce (2 of 2): unchanged\n")
    quiet = irtool_("opt", "-q", "--passes=dce,dce", "--print-changed=quiet", text=GOOD)
    assert quiet.err == result.err.replace("# IR after dce (2 of 2): unchanged\n", "")
    full = irtool_("opt", "-q", "--passes=dce,dce", "--print-changed=full", text=GOOD)
    assert full.err.startswith("# IR after dce (1 of 2)\ngraph(%a")
    assert "\x1b[31m-  %e" in irtool_("opt", "-q", "--passes=dce", "--print-changed", "--color=always", text=GOOD).err


def test_a_folder_of_dumps() -> None:
    assert irtool_("opt", "--passes=cse,dce", "--dump-dir=dumps", text=GOOD).code == 0
    assert sorted(os.listdir("dumps")) == ["00_input.ir", "01_cse.ir", "02_dce.ir", "index.json"]
    assert Path("dumps/00_input.ir").read_text() == GOOD
    assert Path("dumps/02_dce.ir").read_text() == CLEAN
    index = json.loads(Path("dumps/index.json").read_text())
    assert index["schema"] == 1
    assert [(row["file"], row["pass"], row["changed"], row["ops_before"], row["ops_after"]) for row in index["passes"]] == [
        ("01_cse.ir", "cse", True, 6, 4), ("02_dce.ir", "dce", True, 4, 3)]
    assert irtool_("opt", "--split-input-file", "--passes=dce", "--dump-dir=parts", text=f"{GOOD}# -----\n{CLEAN}").code == 0
    assert sorted(os.listdir("parts")) == ["line1", "line11"]
    Path("file").write_text("")
    assert irtool_("opt", "--passes=dce", "--dump-dir=file", text=GOOD).code == 2


def test_printed_ir_elides_long_constants_and_the_result_has_them() -> None:
    text = 'graph():\n  %s : str = prim::Constant[value="{}"]()\n  %e : int = prim::Constant[value=1]()\n  return (%s)\n'
    long, short = text.format("]()" + "x" * 2000), text.format("x" * 90)
    for passes in ("--print-before-all", "--print-changed", "--print-changed=full"):
        result = irtool_("opt", "-q", "--passes=dce", passes, text=long)
        assert "x" * 2000 in result.out and "x" not in result.err and "[<2005 characters>]()" in result.err
        assert "x" * 2000 in irtool_("opt", "-q", "--passes=dce", passes, "--print-limit=0", text=long).err
        assert "x" * 90 in irtool_("opt", "-q", "--passes=dce", passes, text=short).err
        assert "x" not in irtool_("opt", "-q", "--passes=dce", passes, "--print-limit=91", text=short).err
    shown = irtool_("opt", "-q", "--passes=dce", "--print-after-all", text=long).err
    assert irtool_("opt", text=shown).code == 1         # what is left out is not taken for the value


def test_timings() -> None:
    result = irtool_("opt", "-q", "--passes=cse,dce", "--time-passes=json", text=GOOD)
    report = json.loads(result.err)
    assert report["schema"] == 1
    assert [row["pass"] for row in report["passes"]] == ["cse", "dce"]
    assert set(report["passes"][0]) == {"pass", "index", "self_ns", "total_ns", "ops_before", "ops_after", "changed"}
    assert all(isinstance(row["self_ns"], int) and row["total_ns"] >= row["self_ns"] > 0 for row in report["passes"])
    events = json.loads(irtool_("opt", "-q", "--passes=cse,dce", "--time-passes=chrome", text=GOOD).err)["traceEvents"]
    assert [event["name"] for event in events] == ["cse", "dce"]
    assert events[0]["ts"] + events[0]["dur"] <= events[1]["ts"]
    table = irtool_("opt", "-q", "--passes=cse,dce", "--time-passes", text=GOOD).err.splitlines()
    assert len(table) == 4
    assert table[1].endswith("6 -> 4  01 cse")


def test_the_pipeline_is_dumped_with_every_option() -> None:
    result = irtool_("opt", "-q", "--passes=O1", "--dump-pipeline", text=GOOD)
    pipeline = result.err.strip()
    assert pipeline.startswith("lower-tuples{all=false}")
    assert irtool_("opt", "-q", f"--passes={pipeline}", text=GOOD).out == result.out


def test_bisection_runs_the_first_passes_only() -> None:
    result = irtool_("opt", "-q", "--passes=dce,cse", "--opt-bisect-limit=1", text=GOOD)
    assert result.out == irtool_("opt", "-q", "--passes=dce", text=GOOD).out
    assert result.err == "bisect: running 1 dce on graph\nbisect: NOT running 2 cse on graph\n"
    assert irtool_("opt", "-q", "--passes=dce,cse", "--opt-bisect-limit=0", text=GOOD).out == GOOD


# -- bugs
@pytest.mark.usefixtures("faulty_passes")
def test_a_crash_leaves_a_reproducer(tmp_path: Path) -> None:
    result = irtool_("opt", "-q", "--passes=dce,crash", "-o", "out.ir", text=GOOD)
    assert (result.code, result.out) == (3, "")
    first, note = result.err.splitlines()
    assert first == "error: internal error in pass 'crash': RuntimeError: the wheel came off (a bug of irtool; --debug shows where) [E0901]"
    (name,) = os.listdir(tmp_path)
    assert note == f"note: to see it again: irtool opt --run-reproducer {name}"
    assert name.startswith("irtool-crash-") and name.endswith(".ir")
    header, _, rest = Path(name).read_text().partition("\n")
    assert header.startswith("# irtool: opt '--passes=dce") or header.startswith("# irtool: opt --passes=dce")
    assert rest == GOOD
    again = irtool_("opt", "-q", "--run-reproducer", name)
    assert again.code == 3
    assert again.err.splitlines()[0] == first
    assert os.listdir(tmp_path) == [name]
    assert "Traceback" in irtool_("opt", "--debug", "--run-reproducer", name).err


@pytest.mark.usefixtures("faulty_passes")
def test_a_pass_that_breaks_a_graph_is_a_bug() -> None:
    result = irtool_("opt", "-q", "--passes=dce,break-graph", text=GOOD)
    assert result.code == 3
    assert "note: after pass 'break-graph' (2 of 2)" in result.err
    assert "--run-reproducer irtool-crash-" in result.err
    assert irtool_("opt", "-q", "--passes=break-graph", "--no-verify-each", text=GOOD).code == 0


def test_a_reproducer_of_what_did_not_crash() -> None:
    Path("a.ir").write_text(GOOD)
    assert irtool_("opt", "-q", "--passes=cse", "--passes=dce", "--write-reproducer", "r.ir", "a.ir").out == CLEAN
    assert irtool_("opt", "-q", "--run-reproducer", "r.ir").out == CLEAN
    Path("r.ir").write_text(Path("r.ir").read_text().replace("aten::relu", "aten::relu") .replace("%h)", "%zz)"))
    result = irtool_("opt", "--run-reproducer", "r.ir")
    assert result.code == 1
    assert result.err.startswith("r.ir:10:")
    Path("r.ir").write_text("# irtool: opt --passes=dce -o elsewhere.ir\n" + GOOD)
    result = irtool_("opt", "--run-reproducer", "r.ir")
    assert (result.code, result.err.split("\n")[0]) == (2, "error: r.ir: a reproducer cannot set output [E0809]")
    assert not Path("elsewhere.ir").exists()


# -- expected diagnostics
def test_expected_errors() -> None:
    text = BAD.replace("  %d", "  # expected-error@+1 {{%b}}\n  %d")
    assert irtool_("opt", "--verify-diagnostics", text=text).code == 0
    assert irtool_("opt", "--verify-diagnostics", text=text.replace("error@+1", "error@below")).code == 0
    assert irtool_("opt", "--verify-diagnostics", text=text.replace("-error@+1 {{%b}}", "-error-re@+1 {{%{{[a-z]}}}}")).code == 0
    wrong = irtool_("opt", "--verify-diagnostics", text=text.replace("{{%b}}", "{{nope}}"))
    assert wrong.code == 1
    assert '<stdin>:2:5: error: expected error "nope" was not produced' in wrong.err
    assert "<stdin>:3:28: error: unexpected error: " in wrong.err


def test_an_expectation_that_does_not_come() -> None:
    result = irtool_("opt", "--verify-diagnostics", text="# expected-error@+2 {{nope}}\n" + GOOD)
    assert result.code == 1
    assert result.err.startswith('<stdin>:1:3: error: expected error "nope" was not produced')
    assert irtool_("opt", "--verify-diagnostics", text=GOOD).code == 0
    assert irtool_("opt", "--verify-diagnostics", text=BAD).code == 1


def test_misspelt_expectations_fail() -> None:
    for directive, message in [
        ("expected-eror {{x}}", "unknown directive 'expected-eror' (did you mean 'expected-error'?)"),
        ("expected-error@1 {{x}}", "expected @+N, @-N, @above or @below, not '@1'"),
        ("expected-error x", "'expected-error' needs its text in {{...}}"),
        ("expected-error {{x", "'expected-error' needs its text in {{...}}"),
        ("expected-error-re {{{{(}}}}", "bad regular expression"),
    ]:
        result = irtool_("opt", "--verify-diagnostics", text=f"# {directive}\n{GOOD}")
        assert result.code == 1
        assert f"<stdin>:1:3: error: {message}" in result.err


def test_expected_errors_in_a_split_file() -> None:
    text = f"{GOOD}# -----\n# expected-error@+2 {{{{%b}}}}\n{BAD}"
    assert irtool_("opt", "-q", "--split-input-file", "--verify-diagnostics", text=text).code == 0
    result = irtool_("opt", "-q", "--split-input-file", "--verify-diagnostics", text=text.replace("+2", "+1"))
    assert result.code == 1
    assert "<stdin>:11:3: error: expected error" in result.err


def test_roundtrip_is_checked() -> None:
    assert irtool_("opt", "--verify-roundtrip", "--passes=cse", text=GOOD).code == 0


# -- a process of its own
def process(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """`python -m irtool`."""
    root = str(Path(irtool.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run([sys.executable, "-m", "irtool", *words], capture_output=True, env=environment, timeout=60, check=False,
                          **options)    # type: ignore[call-overload, no-any-return]


def test_as_a_process() -> None:
    done = process("opt", "--passes=cse,dce", input=GOOD.encode())
    assert (done.returncode, done.stdout) == (0, CLEAN.encode())
    done = process("opt", "--passes=dce", input=BAD.encode())
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    many = GOOD.replace("  return", "".join(f"  %x{i} : Tensor = aten::mul(%a, %b)\n" for i in range(20000)) + "  return")
    Path("many.ir").write_text(many)
    root = str(Path(irtool.__file__).resolve().parents[1])
    shell = f"set -o pipefail; '{sys.executable}' -m irtool opt many.ir | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, env={**os.environ, "PYTHONPATH": root}, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"graph(%a : Tensor,\n", b"")


def test_main_leaves_nothing_behind() -> None:
    import gc

    before = (sys.stdin, sys.stdout, sys.stderr, gc.isenabled(), gc.get_freeze_count(), os.getcwd(), dict(os.environ))
    irtool_("opt", "--passes=cse,dce", "--color=always", text=GOOD)
    assert before == (sys.stdin, sys.stdout, sys.stderr, gc.isenabled(), gc.get_freeze_count(), os.getcwd(), dict(os.environ))
    first, second = irtool_("opt", "--passes=dce", text=GOOD), irtool_("opt", "--passes=dce", text=GOOD)
    assert (first.out, first.err) == (second.out, second.err)
