"""Gradients of the logarithm of a determinant where there is no inverse, or no logarithm, are torch's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

INF = np.inf
CASES: list[tuple[Any, Any]] = [
    ([[1.0, 2.0], [2.0, 4.0]], [[-INF, INF], [INF, -INF]]), ([[2.0, 4.0], [1.0, 2.0]], [[-INF, INF], [INF, -INF]]),
    ([[0.0]], [[INF]]), ([[1.0, 2.0], [3.0, 4.0]], [[-2.0, 1.5], [1.0, -0.5]]),
    ([[[2.0, 4.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]], [[[-INF, INF], [INF, -INF]], [[-2.0, 1.5], [1.0, -0.5]]]),
]


@pytest.mark.parametrize("call", ["torch.linalg.slogdet(x)[1]", "torch.slogdet(x)[1]", "torch.logdet(x)"])
@pytest.mark.parametrize("matrix, wanted", CASES)
def test_singular_matrices(call: str, matrix: Any, wanted: Any) -> None:
    x, wanted = np.array(matrix), np.array(wanted)
    if call == "torch.logdet(x)":       # nan of a negative determinant, through which no gradient flows
        wanted = np.where((np.linalg.det(x) < 0)[..., None, None], 0.0, wanted)
    graph = irtool.from_script(f"def f(x: Tensor):\n    return {call}\n").graph()
    (result,) = irtool.run(graph, [x])
    function: Any = eval(f"lambda x: {call}.sum()", {"torch": irtool.torch})
    with np.errstate(all="ignore"):
        found = [irtool.vjp(graph, [x], [np.ones_like(result)], [0], interpret=interpret)[0] for interpret in (True, False, False)]
        found += [irtool.grad(function)(x), irtool.jit(irtool.grad(function))(x)]
    for each in found:
        np.testing.assert_allclose(np.asarray(each), wanted, 1e-12, 1e-12)


def test_batches_of_which_some_are_singular() -> None:
    matrices = np.array(CASES[4][0])
    with np.errstate(all="ignore"):
        found = irtool.vmap(irtool.grad(lambda x: irtool.torch.linalg.slogdet(x)[1]))(matrices)
    np.testing.assert_allclose(np.asarray(found), np.array(CASES[4][1]), 1e-12)
