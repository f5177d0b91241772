"""Gradients of a determinant and its logarithm where there is no inverse, or no logarithm, are torch's."""
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


COFACTORS: list[tuple[Any, Any]] = [
    ([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]), ([[0.0]], [[1.0]]), (np.zeros((3, 3)), np.zeros((3, 3))),
    (np.array([[1.0, 1.0], [1.0, 1.0]]) * (1 + 1j), np.array([[1.0, -1.0], [-1.0, 1.0]]) * (1 - 1j)),
    ([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]], [[[4.0, -2.0], [-2.0, 1.0]], [[4.0, -3.0], [-2.0, 1.0]]])]
WAYS: dict[str, Any] = {
    "grad": lambda f: irtool.grad(f), "jacrev": lambda f: irtool.jacrev(f), "jit": lambda f: irtool.jit(irtool.grad(f)),
    "jit of jacrev": lambda f: irtool.jit(irtool.jacrev(f)),
    "vmap": lambda f: lambda x: irtool.vmap(irtool.grad(f))(x[None])[0], "jit of vmap": lambda f: irtool.jit(WAYS["vmap"](f)),
    "trace": lambda f: lambda x: irtool.run(irtool.trace(irtool.grad(f), [x]), [x])[0]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("matrix, wanted", COFACTORS)
def test_determinants_of_singular_matrices_have_cofactors_for_gradients(matrix: Any, wanted: Any, way: str) -> None:
    x = np.array(matrix)
    if x.dtype.kind == "c" and "jac" in way:
        pytest.skip("a Jacobian has no complex numbers")
    found = WAYS[way](lambda x: irtool.torch.linalg.det(x).real.sum())(x)
    np.testing.assert_allclose(np.asarray(found), np.array(wanted), 1e-12, 1e-12)


def test_batches_of_which_some_are_singular_have_the_second_derivatives_of_each() -> None:
    matrices = np.array([[[1.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [0.5, 3.0]], [[0.0, 1.0], [1.0, 0.0]]])
    found = irtool.vmap(irtool.hessian(irtool.torch.linalg.det))(matrices)
    wanted = np.zeros((2, 2, 2, 2))
    wanted[0, 0, 1, 1] = wanted[1, 1, 0, 0] = 1
    wanted[0, 1, 1, 0] = wanted[1, 0, 0, 1] = -1
    np.testing.assert_allclose(np.asarray(found), np.stack([wanted] * 3), 1e-12, 1e-12)
