"""The gradient of `unflatten_dense_tensors`: what no tensor takes, and what has no elements, has a gradient of zeros."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

SOURCE = "def f(x: Tensor, a: Tensor, b: Tensor):\n    l = torch.ops.aten.unflatten_dense_tensors(x, [a, b])\n" \
         "    return l[0].sum() * 2 + (l[1] * l[1]).sum()\n"
SHAPES = [((6,), (2,), (2, 2)), ((8,), (2,), (2, 2)), ((4, 1), (2,), (1,)), ((6, 1, 1), (3,), (2, 1)), ((6,), (0,), (3,)),
          ((0,), (0,), (0, 2)), ((2, 0), (2, 0), (0,)), ((3, 0, 2), (0,), (0,))]


@pytest.mark.parametrize(("flat", "one", "other"), SHAPES)
def test_the_gradient_reaches_what_is_taken(flat: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]) -> None:
    x = np.arange(1.0, 1 + np.prod(flat)).reshape(flat)
    (gradient,) = irtool.vjp(irtool.from_script(SOURCE), [x, np.zeros(one), np.zeros(other)], [np.ones(())], [0])
    first, second = int(np.prod(one)), int(np.prod(other))
    want = np.zeros(x.size)
    want[:first] = 2
    want[first:first + second] = 2 * x.reshape(-1)[first:first + second]
    np.testing.assert_array_equal(gradient, want.reshape(flat))
