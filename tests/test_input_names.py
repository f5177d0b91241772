"""`x` is `%x.1` too, wherever an input is named and no other could be meant."""
from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.interop.binding import bind
from irtool.interop.npz import Archive
from irtool.ir.errors import Error, RunError
from irtool.ir.names import Names

SUFFIXED = """graph(%x.1 : Double(2), %w.25 : Double(2), %n : int):
  %2 : Double(2) = aten::mul(%x.1, %w.25)
  %3 : NoneType = prim::Constant()
  %4 : Double() = aten::sum(%2, %3)
  return (%4)
"""
TWICE = "graph(%x.1 : Double(2), %x.2 : Double(2), %x.2.1 : Double(2)):\n  return (%x.1, %x.2, %x.2.1)\n"
VALUES = ["-i", "x=2xf64=1,2", "-i", "w=2xf64=3", "-i", "n=1"]


def irtool_(*words: str, text: str = SUFFIXED) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(list(words), io.BytesIO(text.encode()), out, err), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("words, shown", [
    (["run", "-"], "9."), (["run", "-", "--interpret"], "9."), (["run", "-", "--backward", "--requires-grad", "w"], "grad1 %w.25"),
    (["run", "-", "--backward", "--requires-grad=%x,w"], "grad0 %x.1"),
    (["grad", "-"], "grad0 %x.1"), (["grad", "-", "--wrt", "w"], "grad1 %w.25"), (["grad", "-", "--wrt=0,%w.25"], "grad1 %w.25"),
    (["grad", "-", "--via=tape", "--wrt", "w,x"], "grad0 %x.1"),
    (["gradcheck", "-", "--wrt", "w"], "w.25"), (["plan", "-"], "aten::"), (["plan", "-", "--requires-grad", "x"], "aten::"),
    (["transform", "-", "grad(0)"], "graph(%x.1"),
])
def test_every_command(words: list[str], shown: str) -> None:
    code, out, err = irtool_(*words, *VALUES)
    assert code == 0 and shown in out, err


def test_batches_and_archives(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((4, 2)), **{"w.25": np.ones(2)})
    code, out, err = irtool_("vmap", "-", "--in-dims=0,None,None", str(tmp_path / "in.npz"), "-i", "n=1")
    assert code == 0 and out.startswith("graph("), err
    np.savez(tmp_path / "in.npz", x=np.ones(2), w=np.ones(2), n=1, vjp0=3.0)
    code, out, _ = irtool_("grad", "-", str(tmp_path / "in.npz"), "--json")
    assert code == 0 and json.loads(out)["gradients"][0]["value"]["data"] == [3.0, 3.0]


@pytest.mark.parametrize("words", [["run", "-", "-i", "x=2xf64=1"], ["grad", "-", "--wrt", "x"], ["run", "-", "--requires-grad", "x"]])
def test_what_may_be_several_is_an_error_that_lists_them(words: list[str]) -> None:
    code, _, err = irtool_(*words, *[word for name in ("x.1", "x.2", "x.2.1") for word in ("-i", f"{name}=2xf64=1")], text=TWICE)
    assert code in (1, 2) and "'x' may be %x.1 or %x.2 or %x.2.1" in err


def test_a_whole_name_and_a_position_go_before() -> None:
    graph = irtool.parse(TWICE).graph()
    assert Names(graph.inputs).places("x.2") == [1] and Names(graph.inputs).places("%x.2.1") == [2]
    other = irtool.parse("graph(%y : int, %input0.1 : int):\n  return (%y)\n").graph()
    assert bind(other, Archive(), {"input0": 1, "input1": 2}) == [1, 2]
    assert bind(other, Archive({"y": np.array(1), "input0": np.array(2)}), {}) == [1, 2]


def test_elements_of_lists_and_cotangents() -> None:
    graph = irtool.parse("graph(%xs.1 : int[], %d.3 : Dict(str, int)):\n  return (%xs.1)\n").graph()
    given = {"xs.0": np.array(5), "xs.1": np.array(6), "d.k0": np.array("a"), "d.v0": np.array(1)}
    assert bind(graph, Archive(given), {}) == [[5, 6], {"a": 1}]        # though `xs.1` is the input's whole name
    del given["xs.1"]
    assert bind(graph, Archive(given), {}) == [[5], {"a": 1}]


@pytest.mark.parametrize("names", [("x", "x.1"), ("x", "%x"), ("x.1", "0"), ("x", "input0")])
def test_one_input_under_two_names(names: tuple[str, str]) -> None:
    code, _, err = irtool_("run", "-", *VALUES[2:], *[word for name in names for word in ("-i", f"{name}=2xf64=1")])
    assert code == 1 and "given twice" in err
    with pytest.raises(Error, match="as another key is"):
        bind(irtool.parse(SUFFIXED).graph(), Archive({"x": np.ones(2), "x.1": np.ones(2), "w": np.ones(2), "n": np.array(1)}), {})


def test_functions_of_graphs_take_them_by_name() -> None:
    graph = irtool.parse(SUFFIXED).graph()
    x, w = np.array([1.0, 2.0]), np.array([3.0, 3.0])
    function = irtool.jit(graph)
    assert float(function(w=w, n=1, x=x)) == float(function(x, **{"w.25": w, "n": 1})) == 9
    twice = irtool.jit(irtool.parse(TWICE).graph())
    with pytest.raises(RunError, match="'x' may be %x.1 or %x.2 or %x.2.1"):
        twice(x=x)
    with pytest.raises(RunError, match="by two names"):
        irtool.jit(graph)(w=w, n=1, x=x, **{"x.1": x})
    with pytest.raises(RunError, match="by position and by name"):
        irtool.jit(graph)(x, x=x)


def test_elements_of_a_list_are_no_name_with_a_number() -> None:
    """`state.1` is the second element of `state`, though the input is called `%state.1`; alone, it is the input."""
    graph = irtool.parse("graph(%x.1 : Tensor, %state.1 : (Tensor, Tensor)?):\n  return (%x.1, %state.1)\n").graphs[0]
    arrays = [np.full(2, value, np.float32) for value in range(3)]
    for names in (["x", "state.0", "state.1"], ["x.1", "state.1.0", "state.1.1"]):
        x, state = bind(graph, Archive(dict(zip(names, arrays, strict=True))), {})
        assert [x[0], *[each[0] for each in state]] == [0, 1, 2]
    listed = irtool.parse("graph(%x.1 : Tensor, %n.1 : int[]):\n  return (%x.1, %n.1)\n").graphs[0]
    assert bind(listed, Archive({"x.1": arrays[0], "n.1": np.array([1, 2])}), {})[1] == [1, 2]
    assert bind(listed, Archive({"x": arrays[0], "n": np.array([1, 2])}), {})[1] == [1, 2]
