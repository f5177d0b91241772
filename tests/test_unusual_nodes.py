"""Nodes that verify and are unusual for their kinds: arguments as attributes or left out, operands of other kinds, inputs that are tuples.
Whatever is asked of them ends in an answer or in an error of irtool's, never in one of Python's."""
from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.passes import PASSES
from irtool.passmanager import PassManager

X = np.arange(6, dtype=np.float32).reshape(2, 3)
COMMANDS = (["plan", "-"], ["run", "-"], ["grad", "-"], ["grad", "-", "--via=tape"], ["transform", "-", "jacfwd(0)"],
            ["transform", "-", "vmap(grad(0))"], ["vmap"], ["decompile"], ["show"], ["fmt", "--syntax=2018-06"])
INVALID = {     # what the verifier refuses
    "no operand of tolist": "graph():\n  prim::tolist()\n  return ()\n",
    "no result of a conversion": "graph(%x : int) {\n  prim::Float(%x)\n  return ();\n}\n",
    "the length of two": "graph(%x : int[]):\n  %r : int = prim::ListLen(%x, %x)\n  return (%r)\n",
    "chunks of no number": "graph(%x : Dynamic) {\n  %r, %s = prim::FusedChunk(%x)\n  return (%r, %s);\n}\n",
    "results of a named tuple": "graph(%x : Tensor):\n  %r, %s = prim::NamedTupleConstruct(%x, %x)\n  return (%r)\n",
}
TEXTS: dict[str, tuple[str, list[Any], list[str]]] = {
    "a number for out=": ("graph():\n  %n : int = prim::Constant[value=2]()\n  %r = aten::arange[out=-1](%n, %n)\n  return (%r)\n", [], []),
    "split without operands": ("graph():\n  aten::split[self=11, split_sizes=[2, 3]]()\n  return ()\n", [], []),
    "out= behind an attribute": (
        "graph(%x : Dynamic\n      %y : Dynamic) {\n  %r : Dynamic = aten::sub[alpha=1](%x, %y, %x)\n  return (%r);\n}\n", [X, X],
        ["x=2x3xf32=1", "y=2x3xf32=1"]),
    "len of an attribute": ("graph():\n  %r : int = aten::len[s=mean]()\n  return (%r)\n", [], []),
    "an item by an attribute in a loop": (
        "graph(%x : Tensor[], %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %o : NoneType = prim::Constant()\n"
        "  %m : int = prim::Constant[value=-1]()\n  %1 : int = prim::Constant[value=1]()\n  %l : Tensor[] = aten::list(%x)\n"
        "  %s : Tensor = aten::__getitem__[idx=0](%l)\n  %r : Tensor[], %a : Tensor = prim::Loop(%n, %t, %l, %s)\n"
        "    block0(%i : int, %h : Tensor[], %b : Tensor):\n      %p : Tensor[] = aten::slice(%h, %o, %m, %1)\n"
        "      %g : Tensor = aten::__getitem__[idx=-1](%h)\n      %c : Tensor = aten::add(%b, %g, %1)\n      -> (%t, %p, %c)\n"
        "  return (%a)\n", [[X, X], 2], ["x=[2x3xf32=1,2x3xf32=2]", "n=2"]),
    "is not of an attribute": ("graph(%x : Tensor):\n  %r : bool = aten::__isnot__[obj=None](%x)\n  return (%r)\n", [X], ["x=2x3xf32=1"]),
    "gru with an attribute": (
        "graph(%x : Tensor, %h : Tensor, %l : Tensor[], %p : float):\n  %f : bool = prim::Constant[value=0]()\n"
        "  %r : Tensor, %s : Tensor = aten::gru[num_layers=2](%x, %h, %l, %f, %p, %f, %f, %f)\n  return (%r, %s)\n", [X, X, [X], 0.0],
        ["x=2x3xf32=1", "h=2x3xf32=1", "l=[]", "p=0.0"]),
    "a tuple as an input": (
        "graph(%x : (Tensor, int)):\n  %a : Tensor, %b : int = prim::TupleUnpack(%x)\n  %r : Tensor = aten::mul(%a, %b)\n  return (%r)\n",
        [(X, 2)], ["x=(2x3xf32=1,2)"]),
}


@pytest.mark.parametrize("name", INVALID)
def test_the_verifier_refuses(name: str) -> None:
    with pytest.raises(irtool.VerifyError):
        irtool.verify(irtool.parse(INVALID[name]))


@pytest.mark.parametrize("name", TEXTS)
def test_they_end_well(name: str) -> None:
    text, values, words = TEXTS[name]
    irtool.verify(irtool.parse(text))
    for entry in PASSES:
        said(lambda entry=entry: PassManager(entry.name).run(irtool.parse(text)))
    for interpret in (True, False):
        said(lambda interpret=interpret: irtool.run(irtool.parse(text), values, interpret=interpret))
    inputs = [word for each in words for word in ("-i", each)]
    for command in COMMANDS:
        out, err = io.StringIO(), io.StringIO()
        code = main([*command, *(inputs if command[0] in ("plan", "run", "grad", "transform", "vmap") else ())],
                    io.BytesIO(text.encode()), out, err)
        assert code in (0, 1, 2), (command, err.getvalue())


def said(call: Any) -> None:
    """Call what may raise an error of irtool's, which names no class of Python's."""
    try:
        call()
    except irtool.Error as error:
        assert "Error:" not in str(error).partition("error:")[2].partition("\n")[0], error
