"""A graph that makes wider tensors than its inputs are: gradients have the dtypes of the tensors they belong to, on every way to run, so
that operators that take one dtype compute them."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.analysis.made_dtypes import made_dtypes

WIDE = "dtype=torch.float64"
FACTORS = {
    "float_power": "torch.float_power(x, 2)", "ones": f"torch.ones(3, 3, {WIDE})", "a factory's default": "torch.ones(3, 3)",
    "like": f"torch.ones_like(x, {WIDE})", "a constant": f"torch.tensor([1.0, 2.0, 3.0], {WIDE})", "new": f"x.new_ones([3], {WIDE})",
    "steps": f"torch.linspace(0, 1, 3, {WIDE})", "a window": f"torch.hann_window(3, {WIDE})", "full": "torch.full([3], 2.0)",
    "identity": "torch.eye(3)", "cast": "x.detach().double()", "sum": f"torch.sum(x.detach(), [0], {WIDE})",
    "quotients of whole numbers": "(torch.tensor([1, 1, 2]) / torch.tensor([1, 2, 2]))",
    "roots of whole numbers": "torch.tensor([0, 1, 4]).sqrt()",
}
BODIES = {"factor": "y = x * 2\n    return (torch.mm(y, y) * {}).sum()", "sum": "y = x * 2\n    return torch.mm(y, y).sum() + {}.sum()"}


def gradients(source, x):
    """The gradient of the function on several ways to run."""
    module = irtool.from_script(source)
    seeds = [np.ones((), irtool.run(module, [x])[0].dtype)]
    yield irtool.vjp(module, [x], seeds, [0])[0]
    yield irtool.vjp(module, [x], seeds, [0], interpret=True)[0]
    executor = irtool.compile(module)
    yield from (executor.vjp([x], seeds, [0])[0] for _ in range(2))
    if "float64" in made_dtypes(module.graphs[0]) or x.dtype != np.float16:     # else a pass, which sees no inputs, takes all for one dtype
        packed = irtool.PassManager("differentiate,pack-gradient").run(irtool.from_script(source))
        yield irtool.vjp(packed, [x], seeds, [0])[0]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("factor", FACTORS)
def test_gradients_have_the_dtype_of_their_tensor(factor, body):
    source = f"def f(x: Tensor):\n    {BODIES[body].format(FACTORS[factor])}\n"
    x = np.arange(9).reshape(3, 3) / 8
    expected = next(gradients(source, x))
    for dtype in (np.float16, np.float32):
        for gradient in gradients(source, x.astype(dtype)):
            assert gradient.dtype == dtype
            np.testing.assert_allclose(gradient, expected, rtol=5e-3 if dtype == np.float16 else 1e-5)


@pytest.mark.parametrize(("expression", "made"), [
    ("x * 2", set()), ("torch.zeros(3) + x", {"float32"}), (f"torch.zeros(3, {WIDE}) + x", {"float64"}), ("x.half()", set()),
    ("torch.float_power(x, 2)", {"float64"}), ("torch.zeros_like(x)", set()), ("torch.zeros(3, dtype=torch.long) + x", set()),
    ("torch.zeros(3, dtype=y.dtype) + x", {"?"}), ("x.to(torch.bfloat16)", {"bfloat16"})])
def test_what_a_graph_makes(expression, made):
    graph = irtool.from_script(f"def f(x: Tensor, y: Tensor):\n    return {expression}\n").graphs[0]
    assert made_dtypes(graph) - {"float16"} == made
