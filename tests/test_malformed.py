"""Malformed inputs: each gets the right line, column and exit code, no traceback, and no output file.

`tests/data/malformed/*.ir` say in their first line what must come: `# exit 1 at 3:12: part of the message`. What would be large,
binary, or is a command line is made here.
"""
from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

DATA = Path(__file__).parent / "data" / "malformed"
FILES = sorted(DATA.glob("*.ir"))
HEAD = re.compile(rb"# exit (\d) at (\d+):(\d+): (.*)\n")

GRAPH = "graph(%x : Float(2, 3),\n      %n : int):\n  %y : Float(2, 3) = aten::mul(%x, %n)\n  return (%y)\n"


def call(*words: str, text: bytes = b"") -> tuple[int, str, str]:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), io.BytesIO(text), out, err)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_is_wrong_with_it(path: Path, tmp_path: Path) -> None:
    head = HEAD.match(path.read_bytes())
    assert head is not None, "the first line must say what is expected"
    code, out, err = call("opt", "--passes=dce", "-o", "out.ir", str(path))
    first = err.split("\n")[0]
    assert first.startswith(f"{path}:{int(head[2])}:{int(head[3])}: error: ")
    assert head[4].decode() in first
    assert (code, out) == (int(head[1]), "")
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


def nested(opening: str, closing: str, inside: str = "") -> str:
    """100,000 levels of something."""
    return opening * 100_000 + inside + closing * 100_000


def blocks(depth: int) -> str:
    """A conditional in a conditional in a ..."""
    head = "".join(f"{'    ' * i}  %r{i} : Tensor = prim::If(%c)\n{'    ' * i}    block0():\n" for i in range(depth))
    return f"graph(%c : bool,\n      %a : Tensor):\n{head}"


LARGE: dict[str, tuple[str, str]] = {      # text, where
    "deep list type": (f"graph(%a : {nested('List[', ']', 'int')}):\n  return (%a)\n", "1:"),
    "deep tuple type": (f"graph(%a : {nested('(', ')', 'int')}):\n  return (%a)\n", "1:"),
    "deep optional type": (f"graph(%a : int{'?' * 100_000}):\n  return (%a)\n", "1:"),
    "deep dict type": (f"graph(%a : {nested('Dict(int, ', ')', 'int')}):\n  return (%a)\n", "1:"),
    "deep attribute": (f"graph():\n  %a : int[] = prim::Constant[value={nested('[', ']')}]()\n  return (%a)\n", "2:"),
    "deep attribute of tuples": (f"graph():\n  %a : int[] = prim::Constant[value={nested('(', ')')}]()\n  return (%a)\n", "2:"),
    "unclosed attribute": (f"graph():\n  %a : int[] = prim::Constant[value={'[' * 100_000}", "2:"),
    "deep blocks": (blocks(3_000), ""),
    "deep brackets in operands": (f"graph(%a : Tensor):\n  %b : Tensor = aten::relu({'(' * 100_000}\n  return (%b)\n", "2:"),
}


@pytest.mark.parametrize("name", LARGE)
def test_deep_nesting_is_a_diagnostic(name: str, tmp_path: Path) -> None:
    text, where = LARGE[name]
    code, out, err = call("opt", "--passes=dce", "-o", "out.ir", text=text.encode())
    assert (code, out) == (1, "")
    assert err.startswith(f"<stdin>:{where}"), err[:300]
    assert ": error: " in err.split("\n")[0]
    assert "Traceback" not in err and "internal error" not in err
    assert len(err) < 20_000
    assert os.listdir(tmp_path) == []


DIGITS = "9" * 100_000


@pytest.mark.parametrize("text", [
    f"graph():\n  %a : int = prim::Constant[value={DIGITS}]()\n  return (%a)\n",
    f"graph(%{DIGITS} : Tensor):\n  return (%{DIGITS})\n",
    f"graph():\n  %a : float = prim::Constant[value=1e{DIGITS}]()\n  return (%a)\n",
    f"graph(%a : Float({DIGITS}, 2)):\n  return (%a)\n",
    f"graph():\n  %a : int[] = prim::Constant[value=[{DIGITS}, 1]]()\n  return (%a)\n",
    "graph():\n  %a : Tensor = prim::Constant[value= 1  2 [ CPUFloatType{99999999999,99999999999} ]]()\n  return (%a)\n",
], ids=["constant", "name", "float", "size", "list", "tensor"])
@pytest.mark.parametrize("passes", ["", "O1", "canonicalize,cse"])
def test_gigantic_numbers_pass_through_or_are_a_diagnostic(text: str, passes: str) -> None:
    code, out, err = call("opt", "-q", f"--passes={passes}", text=text.encode())
    assert code in (0, 1), err[:300]
    assert "Traceback" not in err and "internal error" not in err
    if code == 0:
        assert out
    else:
        assert re.match(r"<stdin>:[12]:\d+: error: ", err)


# -- command lines
@pytest.mark.parametrize("pipeline, column, message", [
    ("dce,", 4, "empty pass name"),
    ("dcee", 1, "did you mean 'dce'?"),
    ("dce{x=1}", 5, "no option 'x'"),
    ("dce cse", 5, "expected ','"),
    ("dce{", 4, "'{' is never closed"),
    ("peepholeno-shapes=1", 18, "did the shell expand the braces?"),
    ("constant_propagation", 1, "did you mean 'constant-propagation'?"),
    ("dce,cse,", 8, "empty pass name"),
])
def test_wrong_pipelines(pipeline: str, column: int, message: str, tmp_path: Path) -> None:
    code, out, err = call("opt", f"--passes={pipeline}", "-o", "out.ir", text=GRAPH.encode())
    assert (code, out) == (2, "")
    assert err.startswith(f"<passes>:1:{column}: error: ")
    assert message in err.split("\n")[0]
    assert err.split("\n")[1] == pipeline
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name, code, message", [
    ("missing.ir", 2, "no such file or directory"),
    ("folder", 2, "the results of many files go to a folder"),
    ("locked.ir", 2, "permission denied"),
    ("nul\0name", 2, "null byte"),
    ("x" * 5000, 2, "name too long"),
])
def test_files_that_cannot_be_read(name: str, code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    locked = tmp_path / "locked.ir"
    locked.touch(0o000)
    if name == "locked.ir" and os.access(locked, os.R_OK):
        pytest.skip("root may read everything")
    assert call("opt", "-o", "out.ir", name)[0] == code
    assert message in call("opt", name)[2]
    assert not (tmp_path / "out.ir").exists()


# -- arrays
def object_array(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.array([object()]), n=np.array(2))


def cut_archive(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.zeros((2, 3), np.float32), n=np.array(2))
    path.write_bytes(path.read_bytes()[:-30])


def cut_member(path: Path) -> None:
    np = pytest.importorskip("numpy")
    stream = io.BytesIO()
    np.save(stream, np.zeros((2, 3), np.float32))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", stream.getvalue()[:-4])


def giant_header(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }"
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def text_file(path: Path) -> None:
    path.write_text("graph(%x : Tensor):\n  return (%x)\n")


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def single_array(path: Path) -> None:
    np = pytest.importorskip("numpy")
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def other_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "no array")


def wrong_key(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, z=np.zeros((2, 3), np.float32), n=np.array(2))


def wrong_dtype(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.zeros((2, 3)), n=np.array(2))


def wrong_shape(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.zeros((3, 2), np.float32), n=np.array(2))


def wrong_rank(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.zeros(6, np.float32), n=np.array(2))


def surplus_key(path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(path, x=np.zeros((2, 3), np.float32), n=np.array(2), m=np.array(2))


@pytest.mark.parametrize("make, message", [
    (object_array, "objects"), (cut_archive, "damaged"), (cut_member, "damaged"), (giant_header, "damaged"), (text_file, "npz"),
    (empty_file, "npz"), (single_array, "npy"), (other_member, "readme.txt"), (wrong_key, "z"), (wrong_dtype, "float64"),
    (wrong_shape, "(3, 2)"), (wrong_rank, "(6,)"), (surplus_key, "m"),
], ids=lambda value: value.__name__ if callable(value) else "")
def test_arrays_that_do_not_fit(make: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    make(tmp_path / "in.npz")
    code, out, err = call("run", "g.ir", "in.npz", "-o", "out.npz")
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err and "internal error" not in err
    assert sorted(os.listdir(tmp_path)) == ["g.ir", "in.npz"]


OMITTING = """graph(%x : Float(2, strides=[1], requires_grad=1, device=cpu)
      # ---- two inputs omitted ----
      ) {
  %1 : Float(2) = aten::relu(%x)
  # ...
  READS
  return (%RESULT);
}
"""


@pytest.mark.parametrize(("reads", "result"), [("%2 : Float(2) = aten::mul(%1, %57)", "2"), ("", "58"),
                                               ("%2 : Float(2) = aten::neg(%1)", "2")], ids=["a node", "the result", "nobody"])
def test_a_text_that_leaves_values_out_is_read_and_not_run(reads: str, result: str) -> None:
    text = OMITTING.replace("READS", reads).replace("RESULT", result).encode()
    passes = [["opt", f"--passes={entry.name}"] for entry in irtool.PASSES]
    runs = [["run", "-", "-i", "x=2xf32=1"], ["grad", "-", "-i", "x=2xf32=1"], ["vmap", "-"]]
    for words in (*passes, *runs):
        code, _, err = call(*words, text=text)
        assert code in (0, 1), f"{words}: {err}"
        if words[0] in ("run", "grad", "vmap") and result != "2" or "%57" in reads and words[0] == "run":
            assert code == 1 and "is left out of the text" in err
    code, printed, _ = call("fmt", text=text)
    assert code == 0 and call("fmt", text=printed.encode()) == (0, printed, ""), printed


INVALID = """graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : bool = prim::Constant[value=1]()
  %3 : Tensor = prim::Loop(%1, %2, %x)
    block0(%i : int, %a : Tensor):
      -> (%a)
  return (%3)
"""
X = np.ones(2)
USES: dict[str, Callable[[irtool.Module], object]] = {
    "run": lambda module: irtool.run(module, [X]), "run, interpreted": lambda module: irtool.run(module, [X], interpret=True),
    "vjp": lambda module: irtool.vjp(module, [X], [X], [0]),
    "vjp, interpreted": lambda module: irtool.vjp(module, [X], [X], [0], interpret=True),
    "executor": lambda module: irtool.compile(module).vjp([X], [X], [0]), "to_script": irtool.to_script,
    "save": lambda module: irtool.save(module, io.BytesIO()), "gradcheck": lambda module: irtool.gradcheck(module, [X]),
    "grad": lambda module: irtool.grad(module.graph())(X), "vmap": lambda module: irtool.vmap(module.graph())(X),
    "jvp": lambda module: irtool.jvp(module.graph(), (X,), (X,)), "jit": lambda module: irtool.jit(module.graph())(X)}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_an_invalid_graph_says_why_it_is(use: str) -> None:
    with pytest.raises(irtool.Error, match="block0 of prim::Loop gives 0 values, expected 1"):
        USES[use](irtool.parse(INVALID))
