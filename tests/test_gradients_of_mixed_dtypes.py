"""Gradients come back in the dtype of their values, on every way to run: a float32 or float64 value meets another dtype further on.

Each operator here refuses a cotangent of another dtype, so a conversion that is missing anywhere is an error, not a rounding.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from fuzz.gradients import EXECUTORS

REAL_ONLY = ("F.layer_norm(v + 0.1, v.size()[-1:])", "F.log_softmax(v, -1)", "F.gelu(v)", "F.hardswish(v)", "torch.atan2(v, v + 3.0)",
             "F.group_norm(v.unsqueeze(0), 1).squeeze(0)")
PLACES = {
    "straight": "    v = F.elu(x)\n    v = {}\n",
    "in a loop": "    v = F.elu(x)\n    for i in range(2):\n        v = {}\n",
    "rounds that the run knows": "    v = x\n    for i in range(n):\n        v = {}\n",
    "in a branch": "    v = x * 2.0\n    if n > 1:\n        v = {}\n",
    "in a list": "    v = torch.sin(x)\n    vs = [{}, v]\n    vs.append(v)\n    v = vs[0]\n",
}
MEETS = {"complex128": "y * 1.5 * v + y", "float64": "y * 1.5 * v + y", "complex64": "torch.cat([y.sum(0, True), y]).narrow(0, 1, 3) * v"}


def value(dtype: str) -> Any:
    """Three numbers."""
    numbers = np.array([0.5, -1.25, 0.75])
    return (numbers + 0.5j * numbers[::-1] if dtype.startswith("complex") else numbers[::-1]).astype(dtype)


@pytest.mark.parametrize("other", MEETS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operator", REAL_ONLY)
def test_a_gradient_has_the_dtype_of_its_value(operator: str, place: str, other: str) -> None:
    x, y = value("float64" if other == "complex128" else "float32"), value(other)
    module = irtool.from_script(f"def f(x: Tensor, y: Tensor, n: int):\n{PLACES[place].format(operator)}    w = {MEETS[other]}\n"
                                '    return {"w": w, "v": v}\n')     # a dict: the graph is differentiated in groups
    seeds = [y, x]
    want = irtool.vjp(module, [x, y, 2], seeds, [0, 1], interpret=True)
    assert [each.dtype for each in want] == [x.dtype, y.dtype]
    found = {"vjp": irtool.vjp(module, [x, y, 2], seeds, [0, 1])}
    for way, options in EXECUTORS.items():
        run = irtool.compile(module, **options)
        found[way] = run.vjp([x, y, 2], seeds, [0, 1])
        found[f"{way}, again"] = run.vjp([x, y, 2], seeds, [0, 1])
    for way, gradients in found.items():
        assert [each.dtype for each in gradients] == [x.dtype, y.dtype], way
        for got, expected in zip(gradients, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6, err_msg=way)
