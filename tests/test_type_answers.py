"""What the type of a tensor answers is what running the operator on such a tensor gives; what the type leaves open is no answer."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.ir.constants import NOT_CONSTANT
from irtool.ir.graph import Node
from irtool.ir.type_answers import ANSWERS, answer
from irtool.ir.types import TENSOR, parse_type

RESULTS = {"aten::dim": "int", "aten::size": "int[]", "prim::device": "Device", "prim::dtype": "int"}
ARRAYS = [np.zeros(shape, dtype) for shape in [(), (3,), (2, 0, 4)] for dtype in (np.float32, np.float64, np.int64, np.bool_, np.complex64)]
WORDS = {"float32": "Float", "float64": "Double", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat"}


def asking(kind: str, *operands: int, attributes: str = "") -> irtool.Graph:
    constants = "".join(f"\n  %{at} : int = prim::Constant[value={operand}]()" for at, operand in enumerate(operands))
    names = "".join(f", %{at}" for at in range(len(operands)))
    result = "int" if operands or "dim=" in attributes else RESULTS.get(kind, "bool")
    text = f"graph(%x : Tensor):{constants}\n  %r : {result} = {kind}{attributes}(%x{names})\n  return (%r)\n"
    return irtool.parse(text).graphs[0]


def node(kind: str, *operands: int, attributes: str = "") -> Node:
    return asking(kind, *operands, attributes=attributes).outputs[0].node


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_type_answers_as_the_tensor(kind):
    for array in ARRAYS:
        sizes = ", ".join(map(str, array.shape))
        type = parse_type(f"{WORDS[str(array.dtype)]}({sizes}, requires_grad=0, device=cpu)".replace("(, ", "("))
        dims = range(-array.ndim, array.ndim) if kind == "aten::size" else ()
        for graph in [asking(kind), asking(kind, attributes="[pad=[1, 1], mode=constant]"), *[asking(kind, dim) for dim in dims],
                      *[asking(kind, attributes=f"[mode=0, dim={dim}]") for dim in dims]]:
            result, expected = answer(graph.outputs[0].node, type), irtool.run(graph, [array])[0]
            assert result == expected, (type, str(graph))
            assert isinstance(result, bool) is isinstance(expected, bool)


def test_what_a_type_leaves_open_is_no_answer():
    assert all(answer(node(kind), TENSOR) is NOT_CONSTANT for kind in ANSWERS)
    partly = parse_type("Float(2, *)")
    assert answer(node("aten::size"), partly) is NOT_CONSTANT
    assert (answer(node("aten::size", 0), partly), answer(node("aten::size", 1), partly)) == (2, NOT_CONSTANT)
    assert all(answer(node("aten::size", dim), partly) is NOT_CONSTANT for dim in (2, -3))
    assert answer(node("aten::size", attributes="[dim=2]"), partly) is NOT_CONSTANT
    assert all(answer(node("aten::size", 0), partly, lambda _, known=known: known) is NOT_CONSTANT for known in (True, NOT_CONSTANT))
