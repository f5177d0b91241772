"""Results of pointwise operators lie in memory as in torch where their operands lie in several ways: what reshapes one and writes into that
writes into the result, or into a copy."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.shapes import pointwise_strides
from irtool.ops.arrays import element_strides

EXPRESSIONS = (
    "x + y", "x - y * 2", "torch.rsub(x, y)", "x < y", "torch.maximum(x, y)", "torch.where(x > 0, x, y)", "torch.atan2(x, y).exp()",
    "1 - x / y", "torch.addcmul(x, y, z)", "torch.addcdiv(x, y, z)", "torch.lerp(x, y, 0.5)", "torch.lerp(x, y, z)",
    "torch.isclose(x, y)", "torch.hypot(x, y)", "torch.heaviside(x, y)", "torch.sigmoid(x) * y",
    "(x + 1) * (y - 1).relu()", "F.mse_loss(x, y, reduction='none')", "torch.logical_and(x, y)", "x.masked_fill(y > 0, 2.0)",
    "2 ** x", "torch.pow(2.5, x - y)", "torch.float_power(2, y)", "x ** 2", "x ** y",
)
LAYOUTS: dict[str, Any] = {
    "rows": lambda x: x, "columns": lambda x: x.swapaxes(0, 1).copy().swapaxes(0, 1), "back": lambda x: x.transpose(2, 1, 0).copy().T,
    "last": lambda x: x.transpose(0, 2, 1).copy().transpose(0, 2, 1), "gaps": lambda x: np.repeat(x, 2, 2)[:, :, ::2],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape), "fewer": lambda x: x[0].T.copy().T,
}
PAIRS = [(one, other) for one, other in product(LAYOUTS, LAYOUTS) if one != other]


def operands(one: str, other: str) -> list[Any]:
    """Two operands in these layouts, and a third in rows."""
    numbers = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8 + 0.25
    return [LAYOUTS[one](numbers), LAYOUTS[other](numbers[::-1].copy()), numbers + 1]


def ways(module: Any, inputs: list[Any]) -> list[Any]:
    """The result of the interpreter, and of runs that make and use a plan."""
    return [irtool.run(module, inputs, interpret=True)[0], *[irtool.run(module, inputs)[0] for _ in range(3)],
            irtool.compile(module, native=False).run(inputs)[0]]


@pytest.mark.parametrize("one", LAYOUTS)
def test_dimensions_have_the_order_of_the_first_operand_that_decides(one: str) -> None:
    for other in LAYOUTS:
        x, y, _ = operands(one, other)
        shape = np.broadcast_shapes(x.shape, y.shape)
        wanted = pointwise_strides(shape, [(x.shape, element_strides(x)), (y.shape, element_strides(y))])
        called = irtool.Tensor(x) * irtool.Tensor(y) + 0.5
        for result in [called.array, *ways(irtool.from_script("def f(x: Tensor, y: Tensor):\n    return x * y + 0.5\n"), [x, y])]:
            assert element_strides(result) == wanted, other


def test_layers_write_into_copies_too() -> None:
    def f(x: Any, y: Any) -> Any:
        result = x.t() + y
        result.reshape(-1).fill_(1)
        return result

    x, y = irtool.torch.arange(24.0).reshape(4, 3, 2), irtool.torch.ones(4, 2, 3)
    wanted = x.mT + y
    samples = list(zip(x, y, strict=True))
    for results in (irtool.vmap(f)(x, y), irtool.torch.stack([f(*each) for each in samples]),
                    irtool.torch.stack([irtool.jit(f)(*each) for each in samples]),
                    irtool.torch.stack([irtool.jvp(f, each, each)[0] for each in samples])):
        assert irtool.torch.equal(results, wanted)


@pytest.mark.oracle
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_writes_into_what_is_reshaped_are_torchs(expression: str) -> None:
    torch = pytest.importorskip("torch")
    import torch.nn.functional as F  # noqa: F401  (torch looks names up in the frames of its callers)

    source = f"def f(x: Tensor, y: Tensor, z: Tensor):\n    result = {expression}\n    result.reshape(-1).fill_(1)\n    return result\n"
    theirs, module = torch.jit.CompilationUnit(source).f, irtool.from_script(source)
    for pair in PAIRS:
        inputs = operands(*pair)
        wanted = theirs(*[tensor_like(torch, each) for each in inputs])
        for result in ways(module, inputs):
            np.testing.assert_allclose(result, wanted.numpy(), 1e-5, err_msg=str(pair))
            assert element_strides(result) == wanted.stride(), pair


def tensor_like(torch: Any, array: Any) -> Any:
    """torch's tensor of the same elements and strides."""
    if 0 in array.strides:
        return torch.from_numpy(array[:, :1].copy()).expand(array.shape)
    return torch.empty_strided(array.shape, element_strides(array)).copy_(torch.from_numpy(array.copy()))
