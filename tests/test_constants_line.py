"""What a command writes runs as it is: constants in full precision in the text, or in a file that a line of the text names."""
from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cli.main import main
from irtool.interop.beside import checksum
from irtool.interop.npz import decode
from irtool.interop.spelling import exact_text, spell
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.tensor_literal import SPELLED
from irtool.ops.structure import tensor_of
from irtool.testing.closeness import compare_members

SQUARES = """graph(%x : Double({n})):
  %2 : Double({n}) = aten::mul(%x, %x)
  %3 : Double({n}) = aten::sin(%2)
  %4 : NoneType = prim::Constant()
  %5 : Double() = aten::sum(%3, %4)
  return (%5)
"""
BIG = np.random.default_rng(0).standard_normal((11, 11)).astype(np.float32)


def irtool_(*words: object, text: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main([str(word) for word in words], io.BytesIO(text.encode()), out, err), out.getvalue(), err.getvalue()


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A text with two constants of one shape, whose numbers stand in a file beside it."""
    stream = io.BytesIO()
    np.savez(stream, **{"5": BIG, "7": BIG.T + 1})
    (tmp_path / "w.npz").write_bytes(stream.getvalue())
    path = tmp_path / "g.ir"
    path.write_text(f"# constants: w.npz sha256={checksum(stream.getvalue())}\ngraph(%x : Float(11, 11)):\n"
                    "  %5 : Float(11, 11) = prim::Constant[value=<Tensor>]()\n  %6 : Float(11, 11) = aten::mm(%x, %5)\n"
                    "  %7 : Float(11, 11) = prim::Constant[value=<Tensor>]()\n  %8 : Float(11, 11) = aten::mm(%6, %7)\n"
                    "  %9 : Float(11, 11) = aten::neg(%5)\n  return (%8)\n")
    return path


EYE = ["-i", "0=11x11xf32=0.5"]


def result(path: object, folder: Path) -> bytes:
    """The bits of the output."""
    code, _, err = irtool_("run", path, *EYE, "-o", folder / "result.npz")
    assert (code, err) == (0, "")
    return decode((folder / "result.npz").read_bytes(), "result.npz").arrays["output0"].tobytes()


@given(st.sampled_from(["float16", "float32", "float64", "int64", "int8", "uint8", "bool", "int16", "int32"]),
       st.lists(st.integers(0, 4), max_size=4).filter(lambda shape: np.prod(shape) <= SPELLED), st.integers(0, 2**31))
@settings(max_examples=150, deadline=None)
def test_small_tensors_are_spelled_bit_for_bit(dtype: str, shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype).reshape(shape) if dtype != "bool" \
        else rng.integers(0, 2, shape).astype(bool)
    array = np.where(np.isnan(array), np.array(-0.0, array.dtype), array) if array.dtype.kind == "f" else array     # one nan is as another
    text = exact_text(np.asarray(array))
    assert text is not None
    module = irtool.parse(f"graph():\n  %1 : Tensor = prim::Constant[value={text}]()\n  return (%1)\n")
    literal = next(iter(module.graph().nodes)).attributes["value"].value
    again = np.asarray(tensor_of(TensorLiteral(text)))
    assert isinstance(literal, TensorLiteral) and literal.text == text
    assert again.dtype == array.dtype and again.shape == array.shape and again.tobytes() == np.ascontiguousarray(array).tobytes()


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 2), st.randoms(use_true_random=False),
       st.sampled_from(["float32", "int64", "bool"]))
@settings(max_examples=100, deadline=None)
def test_views_that_constant_propagation_computes_keep_their_strides(shape: list[int], repeats: int, random: Random, dtype: str) -> None:
    """A permuted and expanded constant is one with the same elements and strides, after text, too."""
    steps, sizes = ["  %0 : bool = prim::Constant[value=0]()"], list(shape)
    for i in range(repeats + 1):
        if random.random() < 0.5:
            order = random.sample(range(len(sizes)), len(sizes))
            sizes = [sizes[each] for each in order]
            steps += [f"  %o{i} : int[] = prim::Constant[value={order}]()", f"  %t{i + 1} : Tensor = aten::permute(%t{i}, %o{i})"]
        else:
            sizes = [random.choice((size, 3)) if size == 1 else size for size in sizes]
            steps += [f"  %o{i} : int[] = prim::Constant[value={sizes}]()", f"  %t{i + 1} : Tensor = aten::expand(%t{i}, %o{i}, %0)"]
    numbers = [random.randrange(2) for _ in range(int(np.prod(shape)))]
    first = exact_text(np.array(numbers, dtype).reshape(shape))
    text = "\n".join(["graph():", f"  %t0 : Tensor = prim::Constant[value={first}]()", *steps, f"  return (%t{repeats + 1})", ""])
    wanted, = irtool.run(irtool.parse(text), [])
    folded = irtool.PassManager("constant-propagation").run(irtool.parse(text))
    for module in (folded, irtool.parse(str(folded)), pickle.loads(pickle.dumps(folded))):
        assert [node.kind for node in module.graph().nodes] == ["prim::Constant"] and str(module) == str(folded)
        result, = irtool.run(module, [])
        assert all(a == b or n == 1 for a, b, n in zip(result.strides, wanted.strides, wanted.shape, strict=True))
        for _ in range(4):      # planned, compiled
            assert result.dtype == wanted.dtype and result.tobytes() == wanted.tobytes() and result.shape == wanted.shape
            result, = irtool.run(module, [])


@pytest.mark.parametrize("field", ["c=int64[2,3;1]:BQAAAAAAAAA=", "c=int64[2,3;0,1]:BQAAAAAAAAA=",
                                   "c=int64[9000000,9000000;0,0]:BQAAAAAAAAA=", "c=int64[0;1]:BQAAAAAAAAA=",
                                   "c=int64[1;1]:BQAAAAAAAAA=", "c=int64[2;0]:", "c=int64[2;0]:BQAAAAAAAA=="])
def test_strides_that_do_not_fit_are_refused(field: str) -> None:
    with pytest.raises(irtool.Error, match="'# tensors:'"):
        irtool.parse(f"# tensors: {field}\ngraph():\n  %c : Tensor = prim::Constant[value=<Tensor>]()\n  return (%c)\n")


def test_what_no_text_holds_is_left() -> None:
    lines = [f"  %{i} : Tensor = prim::Constant[value=<Tensor>]()\n" for i in range(4)]
    module = irtool.parse(f"graph():\n{''.join(lines)}  return (%1)\n")
    arrays = [np.zeros(SPELLED + 1), np.ones(2, np.complex64), np.array([0, 0xFFC00001], np.uint32).view(np.float32), np.ones(3)]
    for node, array in zip(module.graph().nodes, arrays, strict=True):
        node.set_attribute("value", Attribute("<Tensor>", TensorLiteral("<Tensor>", array.dtype.name, array.shape, array)))
    assert spell(module) == ["0", "1", "2"] and "value= 1.0 1.0 1.0 [ CPUDoubleType{3} ]" in str(module)


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("transformation", ["hessian(0)", "jacrev(grad(0))", "vmap(grad(0))", "grad(0)"])
def test_what_transform_writes_runs(transformation: str, n: int, tmp_path: Path) -> None:
    (tmp_path / "f.ir").write_text(SQUARES.format(n=n))
    made, values = tmp_path / "made.ir", f"5x{n}xf64=randn" if "vmap" in transformation else f"{n}xf64=randn"
    code, _, err = irtool_("transform", tmp_path / "f.ir", transformation, "-i", f"x={values}", "-o", made)
    assert (code, err) == (0, "")
    assert irtool_("run", made, "-i", f"x={values}", "-o", tmp_path / "out.npz")[0] == 0
    x = decode((tmp_path / "out.npz").read_bytes(), "").arrays["output0"]
    graph = irtool.parse(SQUARES.format(n=n)).graph()
    function = eval(transformation.replace("(0)", "(graph)").replace("(grad)", "(grad(graph))"), {
        "graph": graph, "hessian": irtool.hessian, "grad": irtool.grad, "vmap": irtool.vmap, "jacrev": irtool.jacrev})
    (tmp_path / "id.ir").write_text("graph(%x : Tensor):\n  return (%x)\n")
    irtool_("run", tmp_path / "id.ir", "-i", f"x={values}", "-o", tmp_path / "x.npz")
    wanted = np.asarray(function(decode((tmp_path / "x.npz").read_bytes(), "").arrays["output0"]))
    assert all(each.is_equal for each in compare_members({"x": x}, {"x": wanted}).values())


def test_the_named_file_is_read_and_stays_named(beside: Path, tmp_path: Path) -> None:
    wanted = (np.full((11, 11), 0.5, np.float32) @ BIG @ (BIG.T + 1)).astype(np.float32)
    assert np.allclose(np.frombuffer(result(beside, tmp_path), np.float32).reshape(11, 11), wanted, rtol=1e-4)
    text = beside.read_text()
    assert irtool_("fmt", beside) == (0, text, "") and irtool_("opt", beside) == (0, text, "")
    (tmp_path / "other").mkdir()
    code, _, _ = irtool_("opt", beside, "-o", tmp_path / "other" / "g.ir")
    assert code == 0 and result(tmp_path / "other" / "g.ir", tmp_path) == result(beside, tmp_path)
    assert sorted(each.name for each in (tmp_path / "other").iterdir()) == ["g.constants.npz", "g.ir"]


@pytest.mark.parametrize("words", [
    ["opt", "-q", "--passes=canonicalize"], ["fmt", "--renumber"], ["opt", "-q", "--passes=constant-pooling,dce,cse"],
    ["fmt", "--syntax=C1"]])
def test_names_that_change_take_their_arrays_with_them(words: list[str], beside: Path, tmp_path: Path) -> None:
    before = result(beside, tmp_path)
    made = tmp_path / "made.ir"
    for _ in range(2):      # the second time the file is there, and its own
        assert irtool_(*words, beside, "-o", made)[0] == 0
        assert made.read_text().startswith("# constants: ") and result(made, tmp_path) == before
    code, out, err = irtool_(*words, beside)
    assert code == 0 and ("# constants: w.npz" in out or "-o FILE keeps" in err and "# constants:" not in out)


def test_a_check_writes_nothing_and_shows_what_would_be_written(beside: Path) -> None:
    files = {path: path.read_bytes() for path in beside.parent.iterdir()}
    code, _, err = irtool_("fmt", "--check", "--renumber", beside)
    assert code == 1 and "+# constants: g.constants.npz sha256=" in err
    assert {path: path.read_bytes() for path in beside.parent.iterdir()} == files
    line = next(line for line in err.splitlines() if line.startswith("+# constants:"))
    assert irtool_("fmt", "-i", "--renumber", beside)[0] == 0 and beside.read_text().startswith(f"{line[1:]}\n")
    assert irtool_("fmt", "--check", "--renumber", beside) == (0, "", "")


def test_a_file_that_is_not_ours_is_not_written_over(beside: Path, tmp_path: Path) -> None:
    (tmp_path / "made.constants.npz").write_text("dear")
    code, _, err = irtool_("fmt", "--renumber", beside, "-o", tmp_path / "made.ir")
    assert code == 2 and "it is there" in err and (tmp_path / "made.constants.npz").read_text() == "dear"
    assert not (tmp_path / "made.ir").exists()


@pytest.mark.parametrize("damage, code, message", [
    (lambda path: path.unlink(), 2, "no such file"), (lambda path: path.write_bytes(path.read_bytes() + b"x"), 1, "another file"),
    (lambda path: (path.unlink(), path.mkdir()), 2, "no file"),
    pytest.param(lambda path: (path.unlink(), os.mkfifo(path)), 2, "no file", marks=pytest.mark.skipif(os.name != "posix", reason="pipes")),
])
def test_a_file_that_is_not_there_or_another(damage: object, code: int, message: str, beside: Path) -> None:
    damage(beside.parent / "w.npz")     # type: ignore[operator]
    for words in (["run"], ["grad"], ["gradcheck"], ["plan"], ["vmap"]):
        found, _, err = irtool_(*words, beside, *EYE)
        assert found == code and message in err and err.startswith(f"{beside}:1:1: error: "), words
    text = beside.read_text()
    for words in (["fmt"], ["opt", "-q", "--passes=cse"]):
        found, out, err = irtool_(*words, beside)
        assert (found, out) == (0, text) and f"{beside}:1:1: note: " in err and message in err
    found, out, err = irtool_("opt", "-q", "--passes=dce", beside)
    assert found == 0 and "# constants:" not in out and "does not name the file" in err


def test_flags_go_before_the_line(beside: Path, tmp_path: Path) -> None:
    before = result(beside, tmp_path)
    (tmp_path / "w.npz").rename(tmp_path / "moved.npz")
    assert irtool_("run", beside, *EYE, "--constants", tmp_path / "moved.npz", "-o", tmp_path / "r.npz")[0] == 0
    assert decode((tmp_path / "r.npz").read_bytes(), "").arrays["output0"].tobytes() == before


@pytest.mark.parametrize("line", ["w.npz", "w.npz sha256=12", "../w.npz sha256=0", "/etc/w.npz sha256=0", "w.txt sha256=0", ".npz sha256=0",
                                  "a\\b.npz sha256=0"])
def test_lines_that_name_no_file_of_the_folder(line: str) -> None:
    line = line.replace("=0", "=" + "0" * 64)
    code, _, err = irtool_("run", "-", *EYE, text=f"# a text\n# constants: {line}\ngraph(%x : Tensor):\n  return (%x)\n")
    assert code == 1 and err.startswith("<stdin>:2:1: error: expected '# constants: NAME.npz sha256='")


def test_constants_named_twice() -> None:
    line = f"# constants: w.npz sha256={'0' * 64}\n"
    code, _, err = irtool_("run", "-", *EYE, text=f"{line}{line}graph(%x : Tensor):\n  return (%x)\n")
    assert code == 1 and err.startswith("<stdin>:2:1: error: constants are named twice")
