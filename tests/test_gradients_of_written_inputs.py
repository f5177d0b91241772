"""Gradients for some inputs, where a graph writes into the others: what is written may need a gradient, and the input itself has none."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

WRITES = {
    "a product": "y.mul_(w)",
    "a copy": "y.copy_(w)",
    "an element": "y[0] = w[0]",
    "a view": "v = y[1:]; v.add_(w[1:])",
    "another name": "z = y; z += w",
    "in a list": "l = [y]; l[0].mul_(w)",
    "all": "y.fill_(w.sum())",
    "twice": "y.zero_(); y.add_(w)",
    "read before": "z = y.sin(); y.mul_(w); y = y + z",
    "a branch": "if flag: y.mul_(w)",
    "a loop": "for i in range(2): y.mul_(w)",
    "a loop in a branch": "if flag:\n        for i in range(2): y[i] = w[i] * w[i]",
}
RESULTS = {
    "a chain": "y.sin().cos().exp().tanh().sigmoid()",
    "a sum": "(y @ y) * y.sum() + y.exp() * y.sin() + y.cos()",
    "one": "y.sin()",
    "the input": "(y.sin().cos().exp().tanh().sigmoid(), y)",
}


def source(write: str, result: str) -> str:
    """A function that writes into y, for which no gradient is asked."""
    return f"def f(y: Tensor, w: Tensor, flag: bool):\n    {WRITES[write]}\n    return {RESULTS[result]}\n"


def arguments() -> list[Any]:
    """New inputs: the first is written into."""
    return [np.array([-2.07, 1.0]), np.array([0.19, 0.3]), True]


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("write", WRITES)
def test_every_executor_has_the_gradient_of_the_reference(write: str, result: str) -> None:
    module = irtool.from_script(source(write, result))
    cotangents = [np.ones(2)] * (2 if result == "the input" else 1)
    (want,) = irtool.vjp(module, arguments(), cotangents, [1], interpret=True)
    for options in {}, {"autodiff_threshold": 1, "inline_threshold": 1}, {"profiling": True}:
        executor = irtool.compile(module, **options)
        for _ in range(2):
            (got,) = executor.vjp(arguments(), cotangents, [1])
            np.testing.assert_allclose(got, want, rtol=1e-10, err_msg=str(options))
            (got,) = executor.record(arguments(), [1]).backward(cotangents)
            np.testing.assert_allclose(got, want, rtol=1e-10, err_msg=f"record, {options}")


@pytest.mark.parametrize("write, result, expected", [
    ("a product", "a chain", [-0.0089924101, -0.0031050222]), ("a product", "a sum", [-2.8650276, 1.7703695]),
    ("a copy", "one", [0.98200424, 0.95533649])])
def test_the_reference_has_torchs(write: str, result: str, expected: list[float]) -> None:
    (got,) = irtool.vjp(irtool.from_script(source(write, result)), arguments(), [np.ones(2)], [1], interpret=True)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
