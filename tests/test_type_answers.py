"""What the type of a tensor answers is what running the operator on such a tensor gives; what the type leaves open is no answer."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.ir.constants import NOT_CONSTANT
from irtool.ir.type_answers import ANSWERS, answer
from irtool.ir.types import TENSOR, parse_type

RESULTS = {"aten::dim": "int", "aten::size": "int[]", "prim::device": "Device", "prim::dtype": "int"}
ARRAYS = [np.zeros(shape, dtype) for shape in [(), (3,), (2, 0, 4)] for dtype in (np.float32, np.float64, np.int64, np.bool_, np.complex64)]
WORDS = {"float32": "Float", "float64": "Double", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat"}


def asked(kind, array, *operands):
    constants = "".join(f"\n  %{at} : int = prim::Constant[value={operand}]()" for at, operand in enumerate(operands))
    names = "".join(f", %{at}" for at in range(len(operands)))
    result = "int" if operands else RESULTS.get(kind, "bool")
    text = f"graph(%x : Tensor):{constants}\n  %r : {result} = {kind}(%x{names})\n  return (%r)\n"
    return irtool.run(irtool.parse(text), [array])[0]


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_type_answers_as_the_tensor(kind):
    for array in ARRAYS:
        sizes = ", ".join(map(str, array.shape))
        type = parse_type(f"{WORDS[str(array.dtype)]}({sizes}, requires_grad=0, device=cpu)".replace("(, ", "("))
        for operands in [(), *[(dim,) for dim in range(-array.ndim, array.ndim) if kind == "aten::size"]]:
            result, expected = answer(kind, type, operands), asked(kind, array, *operands)
            assert result == expected, (type, operands)
            assert isinstance(result, bool) is isinstance(expected, bool)


def test_what_a_type_leaves_open_is_no_answer():
    assert all(answer(kind, TENSOR) is NOT_CONSTANT for kind in ANSWERS)
    partly = parse_type("Float(2, *)")
    assert answer("aten::size", partly) is NOT_CONSTANT
    assert (answer("aten::size", partly, [0]), answer("aten::size", partly, [1])) == (2, NOT_CONSTANT)
    assert all(answer("aten::size", partly, [dim]) is NOT_CONSTANT for dim in (2, -3, True, NOT_CONSTANT))
