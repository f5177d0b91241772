"""Gradients where the index of a scatter is smaller than the source: only its beginning is used, and the rest has the gradient 0. An index
of no elements, or of one, may have another rank than the source."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.torchscript.front import compile_source

CALLS = ["scatter(0, i, v)", "scatter_add(0, i, v)", "scatter(0, i, v, reduce='add')",
         *[f"scatter_reduce(0, i, v, '{name}'{rest})" for name in ("sum", "mean", "prod", "amax", "amin")
           for rest in ("", ", include_self=False")]]
SHAPES = [((0, 2), (0, 2), (2,)), ((0, 2), (0, 2), (2, 2)), ((0,), (0,), (2, 2)), ((0, 2), (0, 2), ()), ((0,), (0,), ()),
          ((2,), (2,), (3,)), ((3, 2), (2, 1), (2, 3)), ((2,), (1,), ()), ((), (), (3,)), ((2, 2), (2, 2), (2, 2)),
          ((2,), (), (3,)), ((2,), (0,), (3,))]
"""Of self, index and source."""


def gradients(text: str, values: list[Any]) -> list[list[Any]]:
    """The gradients of the sum of the result, by the graph and by the function."""
    graph = compile_source(text)
    made: dict[str, Any] = {"torch": torch}
    exec(text, made)
    size = np.shape(irtool.run(graph, values)[0])
    by_function = irtool.grad(lambda y, v: made["f"](y, torch.tensor(values[1]), v).sum(), argnums=(0, 1))(values[0], values[2])
    return [irtool.vjp(graph, values, [np.ones(size)], [0, 2]), [np.asarray(each) for each in by_function]]


@pytest.mark.parametrize("call", CALLS)
def test_the_gradient_is_that_of_the_beginning(call: str) -> None:
    for y_shape, i_shape, v_shape in SHAPES:
        y, v = (np.cos(np.arange(np.prod(shape, dtype=int)) * 2. + 1).reshape(shape) for shape in (y_shape, v_shape))
        values = [y, np.zeros(i_shape, np.int64), v]
        used = np.zeros(i_shape) if 0 in i_shape else v[tuple(slice(n) for n in i_shape)] if len(i_shape) == v.ndim else \
            v.reshape(-1)[:1].reshape(i_shape)
        text = f"def f(y, i, v):\n    z = y.{call}\n    return z * z * 2\n"
        expected = gradients(text, [y, values[1], used])[0]
        whole = np.zeros(v.shape)
        if used.size:
            np.put(whole, np.arange(v.size).reshape(v.shape)[tuple(slice(n) for n in i_shape)] if len(i_shape) == v.ndim else [0],
                   expected[1])
        for found in gradients(text, values):
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, err_msg=f"{y_shape} {i_shape} {v_shape}")
            assert np.shape(found[1]) == v_shape
            np.testing.assert_allclose(found[1], whole, rtol=1e-12, err_msg=f"{y_shape} {i_shape} {v_shape}")
