"""Tangents of other dtypes than their primals, as torch.func computes and refuses them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

Function = Callable[[Any], Any]
FUNCTIONS: dict[str, Function] = {
    "mul": lambda x: x * 2, "sin": torch.sin, "sum": lambda x: x.sum(), "square": lambda x: x * x, "div": lambda x: 1 / x,
    "select": lambda x: x[0], "cat": lambda x: torch.cat([x, x]), "softmax": lambda x: x.softmax(0), "float": lambda x: x.float(),
    "mean": lambda x: x.mean(), "where": lambda x: torch.where(x > 0, x, x * 2), "norm": lambda x: x.norm(), "relu": torch.relu,
    "max": lambda x: x.max(), "cumsum": lambda x: x.cumsum(0), "add": lambda x: x + 1, "var": lambda x: x.var(), "itself": lambda x: x}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("of", "along"), [("float32", "float64"), ("float16", "float32")])
def test_a_wider_tangent_is_not_rounded(of: str, along: str, name: str) -> None:
    point, tangent = np.array([1.0, 2.0, 4.0], of), np.array([1 / 3, 0.1, -0.7], along)
    value, moved = irtool.jvp(FUNCTIONS[name], (point,), (tangent,))
    exact = irtool.jvp(FUNCTIONS[name], (point.astype(np.float64),), (tangent.astype(np.float64),))[1]
    assert np.asarray(moved).dtype == along
    assert np.asarray(value).dtype == (of if name != "float" else "float32")
    np.testing.assert_allclose(np.asarray(moved), np.asarray(exact), rtol=3 * np.finfo(of).eps, atol=np.finfo(of).eps)
    for way in (irtool.jit(lambda x, v: irtool.jvp(FUNCTIONS[name], (x,), (v,))[1]),
                lambda x, v: irtool.vmap(lambda x, v: irtool.jvp(FUNCTIONS[name], (x,), (v,))[1])(x[None], v[None])[0]):
        found = np.asarray(way(point, tangent))
        assert found.dtype == along
        np.testing.assert_allclose(found, np.asarray(moved), rtol=3 * np.finfo(along).eps, atol=np.finfo(along).eps)


def test_linear_functions_keep_all_bits_of_a_wider_tangent() -> None:
    point, tangent = np.ones(2, np.float32), np.array([1 / 3, 0.1])
    np.testing.assert_array_equal(np.asarray(irtool.jvp(lambda x: x * 2, (point,), (tangent,))[1]), tangent * 2)
    np.testing.assert_array_equal(np.asarray(irtool.jvp(lambda x: -x[:1], (point,), (tangent,))[1]), -tangent[:1])


def test_of_two_primals_the_wider_tangent_counts() -> None:
    x, v = np.ones(2, np.float32), np.array([1 / 3, 0.1])
    assert np.asarray(irtool.jvp(lambda a, b: a * b, (x, x), (v, x))[1]).dtype == np.float64
    assert np.asarray(irtool.jvp(lambda a, b: (a * 1, b * 1), (x, x), (v, x))[1][0]).dtype == np.float64
    assert np.asarray(irtool.jvp(lambda a, b: (a * 1, b * 1), (x, x), (v, x))[1][1]).dtype == np.float32
    assert np.asarray(irtool.jvp(lambda a: torch.ones(3), (x,), (v,))[1]).dtype == np.float32
    linear = irtool.linearize(torch.sin, x)[1]
    assert np.asarray(linear(x)).dtype == np.float32


def test_a_narrower_tangent() -> None:
    assert np.asarray(irtool.jvp(torch.sin, (np.ones(2),), (np.ones(2, np.float32),))[1]).dtype == np.float64


@pytest.mark.parametrize(("call", "words"), [
    (lambda x, v: irtool.jvp(torch.sin, (x,), (np.arange(2),)), "Expected tangent to be floating point or complex, but got: torch.int64"),
    (lambda x, v: irtool.jvp(torch.sin, (x,), (x + 1j,)), "a tangent is of torch.complex64, its primal of torch.float32, which is real"),
    (lambda x, v: irtool.linearize(torch.sin, x)[1](v), "torch.float64 in flattened pytree doesn't match the dtype torch.float32 of"),
    (lambda x, v: irtool.linearize(torch.sin, v)[1](x), "torch.float32 in flattened pytree doesn't match the dtype torch.float64 of"),
    (lambda x, v: irtool.linearize(torch.sin, x)[1](np.ones(2, np.int64)), "dtype torch.int64 in flattened pytree doesn't match"),
    (lambda x, v: irtool.jvp(torch.sin, [x], [x]), "Expected primals to be a tuple"),
    (lambda x, v: irtool.jvp(lambda x: (), (x,), (x,)), "Expected f to be a function that has non-empty output"),
    (lambda x, v: irtool.dispatch.vjp(lambda x: [], x), "Expected f to be a function that has non-empty output"),
    (lambda x, v: irtool.jacrev(lambda x: {})(x), "Expected f to be a function that has non-empty output"),
    (lambda x, v: irtool.jacfwd(lambda x: ())(x), "Expected f to be a function that has non-empty output"),
    (lambda x, v: irtool.vmap(torch.add, in_dims=[0, 0]), "expected `in_dims` to be int or a (potentially nested) tuple"),
    (lambda x, v: irtool.jacrev(lambda d: d["a"] * 2)({"a": x, "n": np.arange(2)}), "jacrev: only tensors of floating point numbers have "
     "gradients, argument 0 has a tensor of int64 in it"),
    (lambda x, v: irtool.hessian(lambda d: (d["a"] * 2).sum())({"a": x, "n": np.arange(2)}), "argument 0 has a tensor of int64 in it"),
    (lambda x, v: irtool.jacrev(torch.sin)(3), "argument 0 has an int in it"),
    (lambda x, v: irtool.grad(lambda x, n: (x * n).sum(), 1)(x, 2), "argument 1 has an int in it; expected tensors, floats and complex")])
def test_refused_as_torch_does(call: Any, words: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        call(np.ones(2, np.float32), np.ones(2))
    assert words in str(error.value)
