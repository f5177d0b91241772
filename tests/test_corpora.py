"""Many files by one command: real processes, real crashes; what one case does costs no other."""
from __future__ import annotations

import copy
import io
import json
import operator
import os
import pickle
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import jit
from irtool.cli.main import main
from irtool.ir import clone_graph
from tests.interrupts import INTERRUPTIBLE

GRAPH = "graph(%x : Float(3)):\n  %1 : Float(3) = aten::{op}(%x)\n  %2 : Float(3) = aten::{op}(%x)\n  %3 : Float(3) = aten::add(%1, %2)\n" \
        "  return (%3)\n"
NOT_WELL = """
import os, signal, time
import irtool

def crash(x):
    os.kill(os.getpid(), signal.SIGSEGV)

def hang(x):
    time.sleep(1000)

def once(x):
    with open("ran", "a") as file:
        file.write("x")
    return x

irtool.register_python_op("crash", crash)
irtool.register_python_op("hang", hang)
irtool.register_python_op("once", once)
"""


def irtool_(*words: str) -> tuple[int, str, str]:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), io.BytesIO(), out, err)
    return code, out.getvalue(), err.getvalue()


def python_op(name: str) -> str:
    return f"graph(%x : Float(3)):\n  %1 : Float(3) = ^{name}()(%x)\n  return (%1)\n"


def make_cases(folder: Path) -> None:
    """a to d are well, e has other outputs, f crashes, g hangs, h is no IR, i writes that it ran."""
    x = np.float32([1, 2, 3])
    for name, op in (("a", "neg"), ("b", "abs"), ("sub/c", "relu"), ("sub/own/graph", "neg"), ("e", "abs")):
        path = folder / f"{name}.ir"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GRAPH.format(op=op))
        inputs, expected = ("inputs", "expected") if name.endswith("graph") else (path.stem, f"{path.stem}.expected")
        np.savez(path.parent / f"{inputs}.npz", x=x)
        np.savez(path.parent / f"{expected}.npz", output0=-2 * x if op == "neg" and name != "e" else 2 * x + (name == "e"))
    for name, op in (("f", "crash"), ("g", "hang"), ("i", "once")):
        (folder / f"{name}.ir").write_text(python_op(op))
        np.savez(folder / f"{name}.npz", x=x)
    (folder / "h.ir").write_text("graph(")
    (folder / "load.py").write_text(NOT_WELL)


EXPECTED = {"a.ir": "ok", "b.ir": "ok", "e.ir": "failed", "f.ir": "crashed", "g.ir": "timeout", "h.ir": "failed", "i.ir": "ok",
            "sub/c.ir": "ok", "sub/own/graph.ir": "ok"}


def test_what_a_case_does_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_cases(tmp_path / "cases")
    words = ("run", "cases", "--load", "cases/load.py", "--timeout", "8", "--jobs", "2", "--junit", "j.xml", "--resume", "done.jsonl",
             "-o", "out")
    code, out, err = irtool_(*words, "--json")
    report = json.loads(out)
    assert code == 1 and {row["name"]: row["status"] for row in report["cases"]} == EXPECTED
    assert report["counts"] == {"ok": 5, "failed": 2, "crashed": 1, "timeout": 1, "lost": 0}
    assert "SIGSEGV" in err and "did not end within 8 s" in err and "cases/h.ir:1:7: error" in err and "output0" in err
    assert sorted(path.relative_to("out").as_posix() for path in Path("out").rglob("*.npz")) == ["a.npz", "b.npz", "e.npz", "i.npz",
                                                                                                "sub/c.npz", "sub/own/graph.npz"]
    suite = xml.parse("j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("9", "2", "2")

    # the cases that are not well, by the commands that the report names; then all again: only what changed is run
    again = next(row["command"] for row in report["cases"] if row["name"] == "e.ir").split()[1:]
    assert irtool_(*again)[0] == 1
    assert Path("ran").read_text() == "x"
    x = np.float32([1, 2, 3])
    np.savez("cases/e.expected.npz", output0=2 * x)
    code, out, err = irtool_(*words)
    assert code == 1 and out.startswith("9 cases: 6 ok, 1 failed, 1 crashed, 1 took too long in "), err
    assert Path("ran").read_text() == "x" and len(Path("done.jsonl").read_text().splitlines()) == 10
    Path("out/i.npz").unlink()
    with open("done.jsonl", "a") as file:
        file.write('{"key": "cut')
    assert irtool_(*words)[1].startswith("9 cases: 6 ok") and Path("ran").read_text() == "xx"


def test_results_are_those_of_each_file_alone(tmp_path: Path) -> None:
    make_cases(tmp_path / "cases")
    for name in "efghi":
        (tmp_path / "cases" / f"{name}.ir").unlink()
    names = ["a.ir", "b.ir", "sub/c.ir", "sub/own/graph.ir"]
    for words in ((str(tmp_path / "cases"),), (str(tmp_path / "cases/**/*.ir"),)):
        assert irtool_("opt", "--passes=cse,dce", *words, "-o", str(tmp_path / "cases/out"))[:2][0] == 0
        for name in names:
            alone = irtool_("opt", "-q", "--passes=cse,dce", str(tmp_path / "cases" / name))[1]
            assert (tmp_path / "cases/out" / name).read_text() == alone and alone.count("aten::neg") < 2
        assert len(list((tmp_path / "cases/out").rglob("*.ir"))) == 4
        shutil.rmtree(tmp_path / "cases/out")
    first, second = (str(tmp_path / "cases" / name) for name in names[:2])
    assert irtool_("fmt", "--check", first, second)[0] == 0
    Path(second).write_text(GRAPH.format(op="abs").replace("%3 :", "%3  :"))
    code, out, err = irtool_("fmt", "--check", first, second)
    assert code == 1 and out.startswith("2 cases: 1 ok, 1 failed") and "+  %3 : Float(3)" in err
    assert irtool_("fmt", "-i", first, second)[0] == 0 and Path(second).read_text() == GRAPH.format(op="abs")
    assert irtool_("gradcheck", str(tmp_path / "cases"), "--order", "1")[1].startswith("4 cases: 4 ok")


def test_archives_in_folders_are_no_texts_to_format(tmp_path: Path) -> None:
    archive = tmp_path / "net.pt"
    shutil.copy(Path(__file__).parent.parent / "examples/model.pt", archive)
    for option in ("--check", "--in-place"):
        assert "no *.ir in this folder" in irtool_("fmt", option, str(tmp_path))[2]
    (tmp_path / "a.ir").write_text(GRAPH.format(op="abs"))
    for option in ("--check", "--in-place"):
        code, out, err = irtool_("fmt", option, str(tmp_path))
        assert code == 0 and out.startswith("1 case: 1 ok"), err
    assert irtool_("fmt", "--check", str(archive))[0] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"net.pt", "a.ir"}


@pytest.mark.parametrize("words, message", [
    (("opt", "a.ir", "b.ir"), "irtool opt ... -o DIR"),
    (("fmt", "a.ir", "none.ir", "-o", "out"), "none.ir: no such file or folder"),
    (("opt", "no*.ir", "-o", "out"), "no*.ir: no such file, and no file matches"),
    (("fmt", "no[.ir"), "no[.ir: no such file, and no file matches"),
    (("opt", "empty", "-o", "out"), "no *.ir and no *.pt in this folder"),
    (("opt", "a.ir", "other/a.ir", "-o", "out"), "would both be called a.ir"),
    (("opt", "a.ir", "b.ir", "-o", "."), "would be written over"),
    (("opt", "--passes=dcee", "a.ir", "b.ir", "-o", "out"), "did you mean 'dce'"),
    (("opt", "--write-reproducer=x", "a.ir", "b.ir", "-o", "out"), "takes one file at a time"),
    (("run", "a.ir", "--jobs=2"), "--jobs is for a folder of cases"),
    (("run", "other", "a.npz"), "which have their inputs beside them"),
    (("run", "other", "--jobs=2", "--scheduler=tcp://127.0.0.1:1"), "exclude each other"),
    (("fmt", "a.ir", "-", "-o", "out"), "standard input cannot be one of many"),
    (("run", "other", "--resume=a.ir"), "no file of --resume"),
])
def test_wrong_command_lines_run_nothing(words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("other", "empty"):
        Path(folder).mkdir()
    for path in ("a.ir", "b.ir", "other/a.ir"):
        Path(path).write_text(GRAPH.format(op="neg"))
    code, out, err = irtool_(*words)
    assert code == 2 and out == "" and message in err
    assert not os.path.exists("out")


def test_ctrl_c_ends_the_processes_and_the_rest_is_resumed(tmp_path: Path) -> None:
    make_cases(tmp_path / "cases")
    words = [sys.executable, "-m", "irtool", "run", "cases", "--load", "cases/load.py", "--jobs", "1", "--resume", "done", "--timeout"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([*INTERRUPTIBLE, *words[3:], "100"], cwd=tmp_path, env=environment,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "f.ir: crashed" in line:     # the next one hangs
                break
        process.send_signal(2)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.communicate()
    before = (tmp_path / "done").read_text().splitlines()
    assert 3 <= len(before) < 9
    result = subprocess.run([*words, "8"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout.startswith("9 cases: 5 ok, 2 failed, 1 crashed, 1 took too long")
    assert (tmp_path / "done").read_text().splitlines()[:len(before)] == before
    assert len({json.loads(line)["key"] for line in (tmp_path / "done").read_text().splitlines()}) == 9


# -- what spreads work over processes pickles objects
@jit
def doubled(x: Any) -> Any:
    return x * 2


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_graphs_pickle_letter_for_letter() -> None:
    """The expect files have every dialect, comments and layouts; a graph of many nodes is no deep recursion."""
    count = 0
    for path in sorted(Path(__file__).parent.glob("expect/**/*.ir")):
        for text in re.split(r"(?m)^# (?:-----?.*|====.*)$", path.read_text()):
            try:
                module = irtool.parse(text)
            except irtool.Error:
                continue
            again = copied(module)
            assert str(again) == str(module) and str(copy.deepcopy(module)) == str(module)
            for graph, twin in zip(module.graphs, again.graphs, strict=True):
                assert twin.dialect is graph.dialect and all(a.type is b.type for a, b in zip(graph.values(), twin.values(), strict=True))
                assert [len(value.uses) for value in twin.values()] == [len(value.uses) for value in graph.values()]
                assert str(clone_graph(twin)) == str(clone_graph(graph))
                count += 1
    assert count > 400
    long = irtool.parse("graph(%v0 : Float(3)):\n" + "".join(f"  %v{i + 1} : Float(3) = aten::neg(%v{i})\n" for i in range(20_000))
                        + "  return (%v20000)\n")
    assert str(copied(long)) == str(long)


def test_what_runs_pickles() -> None:
    """Joblib, concurrent.futures and Dask arrays hand such objects to other processes."""
    graph = irtool.parse(GRAPH.format(op="neg")).graphs[0]
    x = np.float32([1, 2, 3])
    for each in (irtool.Executor(graph), irtool.jit(graph), doubled, irtool.jit(operator.neg)):
        expected = each(x)
        np.testing.assert_array_equal(copied(each)(x), expected)
    assert copied(doubled) is doubled
    for error in (irtool.Error("a", code="E0101"), pytest.raises(irtool.ParseError, irtool.parse, "graph(").value,
                  pytest.raises(irtool.PipelineError, irtool.PassManager, ["dcee"]).value,
                  pytest.raises(irtool.Error, irtool.run, graph, [x, x]).value):
        again = copied(error)
        assert (type(again), str(again), again.code) == (type(error), str(error), error.code)


@pytest.mark.cluster
def test_dask_arrays_take_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask", reason="needs pip install 'irtool[cluster]'")
    import dask.array

    monkeypatch.setenv("PYTHONHASHSEED", "6640")        # Dask's pool of processes sets it, and leaves it

    square = irtool.jit(irtool.parse("graph(%x : Float(*)):\n  %1 : Float(*) = aten::mul(%x, %x)\n  return (%1)\n").graphs[0])
    x = np.arange(6, dtype=np.float32)
    blocks = dask.array.from_array(x, chunks=2).map_blocks(lambda block: np.asarray(square(block)), dtype=np.float32)
    np.testing.assert_array_equal(blocks.compute(scheduler="processes"), x * x)
