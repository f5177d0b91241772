"""A written trace takes the inputs of the graph that was traced: the same values run on both, and what became a constant is checked."""
from __future__ import annotations

import io

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

X = "x=3x2xf32=1"
TYPES = {
    "int": ("2", ["3"]), "float": ("2.5", ["2.25", "nan"]), "bool": ("True", ["False"]), "str": ('"a"', ['"b"']),
    "complex": ("1j", ["2j"]), "number": ("2", ["3"]), "Device": ('"cpu"', ['"meta"']),
    "int?": ("2", ["3", "None"]), "Tensor?": ("None", ["2xf32=1"]),
    "int[]": ("[1, 2]", ["[1]", "[1, 3]"]), "bool[]": ("[True]", ["[False]"]), "str[]": ('["a"]', ['["b"]']),
    "float[]": ("[nan]", ["[1.0]"]), "int[][]": ("[[1], [2]]", ["[[1], [3]]"]), "(int, float)": ("(1, 2.5)", ["(2, 2.5)", "(1, 2.0)"]),
    "Dict(str, int)": ('{"a": 1}', ['{"a": 2}', '{"b": 1}', '{"a": 1, "b": 2}']),
    "Tensor[]": ("[2xf32=1, 2xf32=2]", ["[2xf32=1]", "[2xf32=1, 3xf32=1]", "[2xf32=1, 2xf64=1]"]),
    "Tensor?[]": ("[2xf32=1, None]", ["[None, None]", "[2xf32=1, 2xf32=1]"]), "(Tensor, int)": ("(2xf32=1, 3)", ["(2xf32=1, 4)"]),
    "Dict(str, Tensor)": ('{"a": 2xf32=1}', ['{"a": 3xf32=1}', '{"a": 2xf32=1, "b": 2xf32=1}']),
}
"""Type -> a value of the trace, and others that the trace does not hold for."""


def command(*words: str, text: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main([*words], io.BytesIO(text.encode()), out, err), out.getvalue(), err.getvalue()


def reads(type: str) -> str:
    return (f"graph(%v : {type}, %x : Float(2)):\n  %1 : ({type}) = prim::TupleConstruct(%v)\n  %2 : {type} = prim::TupleUnpack(%1)\n"
            "  %3 : Float(2) = aten::mul(%x, %x)\n  return (%3)\n")


@pytest.mark.parametrize("type", TYPES)
def test_constants_of_a_trace_are_checked(type: str) -> None:
    good, others = TYPES[type]
    for words in (("vmap", "-", "--in-dims", "None,0"), ("transform", "-", "vmap(in_dims=(None, 0))")):
        code, written, said = command(*words, "-i", f"v={good}", "-i", X, text=reads(type))
        assert code == 0 and ("Tensor" in type.strip("?") and type != "Tensor?" or "note: %v is " in said), said
        irtool.verify(irtool.parse(written).graph())
        for _ in range(2):
            assert command("run", "-", "-i", f"v={good}", "-i", X, text=written)[0] == 0
        for other in others:
            code, _, said = command("run", "-", "-i", f"v={other}", "-i", X, text=written)
            assert code == 1 and any(each in said for each in ("in this graph, which was traced", "KeyError", "expected int, got None"))


N = """graph(%x : Double(2), %n : int):
  %2 : Tensor = aten::mul(%x, %n)
  %3 : NoneType = prim::Constant()
  %4 : Tensor = aten::sum(%2, %3)
  return (%4)
"""


def test_a_number_stays_an_input() -> None:
    code, written, said = command("transform", "-", "grad(0)", "-i", "x=2xf64=1", "-i", "n=2", text=N)
    assert (code, said) == (0, "note: %n is 2 in this graph, which raises for other values\n")
    graph = irtool.parse(written).graph()
    assert [value.name for value in graph.inputs] == ["x", "n"]
    x = np.ones(2)
    compiled = irtool.compile(graph)
    for run in (lambda n: irtool.run(graph, [x, n])[0], lambda n: irtool.run(graph, [x, n], interpret=True)[0], lambda n: compiled(x, n)[0],
                lambda n: irtool.vmap(graph, (0, None))(np.ones((3, 2)), n).array[0]):
        for _ in range(3):
            assert run(2).tolist() == [2, 2]
            with pytest.raises(irtool.Error, match="%n is 2 in this graph"):
                run(3)


def test_an_unread_number_is_not_checked() -> None:
    code, written, said = command("vmap", "-", "-i", "x=3x2xf64=1", "-i", "n=2", text="graph(%n : int, %x : Double(2)):\n  return (%x)\n")
    assert (code, said) == (0, "") and "prim::If" not in written
    assert command("run", "-", "-i", "x=3x2xf64=1", "-i", "n=5", text=written)[0] == 0


def test_inputs_behind_a_list_keep_their_names_and_places() -> None:
    """They were shifted: the second tensor of %a was called %b."""
    text = """graph(%a : Tensor[], %b : Tensor, %n : int):
  %0 : Tensor, %1 : Tensor = prim::ListUnpack(%a)
  %2 : Tensor = aten::mul(%0, %b)
  %3 : Tensor = aten::sub(%2, %1, %n)
  %4 : NoneType = prim::Constant()
  %5 : Tensor = aten::sum(%3, %4)
  return (%5)
"""
    inputs = ("-i", "a=[2xf64=2, 2xf64=3]", "-i", "b=2xf64=5", "-i", "n=7")
    for words, expected in ((("transform", "-", "grad(1)"), "[2. 2.]"), (("transform", "-", "grad(0)"), "[5. 5.]")):
        code, written, _ = command(*words, *inputs, text=text)
        assert code == 0 and written.startswith("graph(%a : Tensor[],\n      %b : Double(2, ") and "%n : int):" in written
        code, shown, _ = command("run", "-", *inputs, text=written)
        assert code == 0 and expected in shown


def test_defaults_stay() -> None:
    text = "# graph f: defaults=[\"n\", 2]\n" + N
    code, written, _ = command("transform", "-", "grad(0)", "-i", "x=2xf64=1", text=text)
    assert code == 0
    assert "[2. 2.]" in command("run", "-", "-i", "x=2xf64=1", text=written)[1]
