"""Tangents of what is written by index: where an index occurs twice the last write counts, for the tangent as for the value."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X, PLACES = np.array([1.5, 2.0, 3.0, -0.7]), np.array([0, 1, 0, 1])


def assigned(x: Any, i: Any) -> Any:
    z = x * 2
    z[i] = x
    return z


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "scatter": lambda x, i: x.scatter(0, i, x * 2), "put": lambda x, i: x.put(i, x * 2),
    "index_copy": lambda x, i: x.index_copy(0, i, x * 2), "index_put": lambda x, i: x.index_put((i,), x * 2),
    "one value": lambda x, i: x.index_put((i,), x[2]), "assignment": assigned,
    "index_fill": lambda x, i: x.index_fill(0, i, x[2]), "into zeros": lambda x, i: torch.zeros_like(x).scatter(0, i, x),
    "put_": lambda x, i: (x * 2).put_(i, x), "added": lambda x, i: x.index_put((i,), x, accumulate=True),
    "scatter_add": lambda x, i: x.scatter_add(0, i, x)}


@pytest.mark.parametrize("name", WRITES)
def test_the_tangent_of_a_write_is_the_write_of_tangents(name: str) -> None:
    """All of these are linear: the tangent is the function of the tangent, and so are the columns of the Jacobian."""
    x, i = irtool.Tensor(X), irtool.Tensor(PLACES)

    def function(x: Any) -> Any:
        return WRITES[name](x, i)
    wanted = np.asarray(function(x.cos()))
    assert np.array_equal(np.asarray(irtool.jvp(function, (x,), (x.cos(),))[1]), wanted)
    assert np.array_equal(np.asarray(irtool.linearize(function, x)[1](x.cos())), wanted)
    columns = np.asarray(irtool.jacfwd(function)(x)).T
    assert np.array_equal(columns, np.stack([np.asarray(function(irtool.Tensor(row))) for row in np.eye(4)]))
    both = irtool.jvp(lambda x: irtool.vmap(function)(torch.stack([x, x * 3])), (x,), (x.cos(),))[1]
    assert np.allclose(np.asarray(both), np.stack([wanted, 3 * wanted]))


def test_second_derivatives_of_writes() -> None:
    x, i = irtool.Tensor(X), irtool.Tensor(PLACES)

    def cubes(x: Any) -> Any:
        return (torch.zeros_like(x).scatter(0, i, x) ** 3).sum()
    assert np.asarray(irtool.jacfwd(irtool.jacfwd(cubes))(x)).tolist() == np.diag([0, 0, 6 * X[2], 6 * X[3]]).tolist()
    moved = irtool.grad(lambda x: irtool.jvp(cubes, (x,), (torch.ones_like(x),))[1])(x)
    assert np.allclose(np.asarray(moved)[2:], 6 * X[2:])
