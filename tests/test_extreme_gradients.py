"""Gradients at infinities and extremes are torch's: recorded, of every pointwise operator on a grid of numbers."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from extreme_gradients import RECORDED, function, inputs, sources

import irtool
from irtool.torchscript.front import compile_source
from tests.laws import over

SOURCES = sources()
TOLERANCE = {"float32": 2e-3, "float64": 2e-6}
"""float32 as torch computes it: some formulas lose digits. What is recorded is float32."""


@cache
def compiled(expression: str, count: int) -> irtool.Graph:
    return compile_source(function(expression, count)).graph()


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    with np.load(RECORDED) as archive:
        return dict(archive)


@over("expression, dtype", [pytest.param(text, dtype, id=f"{text} in {dtype}") for text in SOURCES for dtype in TOLERANCE],
      lambda expression, _: expression)
def test_gradients_where_numbers_end(expression: str, dtype: str, recorded: dict[str, Any]) -> None:
    count = SOURCES[expression]
    values = inputs(count, dtype)
    graph = compiled(expression, count)
    (result,) = irtool.run(graph, values)
    for place, gradient in enumerate(irtool.vjp(graph, values, [np.ones_like(result)], list(range(count)), interpret=True)):
        found = np.zeros_like(values[place]) if gradient is None else gradient
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(found.astype(np.float32), recorded[f"{expression} {dtype} {place}"], TOLERANCE[dtype], 1e-36)


@over("expression", [pytest.param(text, id=text) for text in SOURCES], str)
def test_tangents_where_numbers_end(expression: str) -> None:
    """A tangent is the derivative's linear map: where slopes are finite it is a slope times ones, and no 0 / 0 of what a formula hides."""
    count = SOURCES[expression]
    values = inputs(count, "float64")
    call = source_function(expression, count)
    with np.errstate(all="ignore"):
        (result,) = irtool.run(compiled(expression, count), values)
        gradients = irtool.vjp(compiled(expression, count), values, [np.ones_like(result)], list(range(count)))
        slopes = [np.zeros_like(value) if each is None else each for value, each in zip(values, gradients, strict=True)]
        is_finite = np.all([np.isfinite(each) for each in (result, *values, *slopes)], axis=0)
        for place, slope in enumerate(slopes):
            along = [np.ones_like(value) if at == place else np.zeros_like(value) for at, value in enumerate(values)]
            tangent = np.asarray(irtool.jvp(call, tuple(values), tuple(along))[1])
            np.testing.assert_allclose(tangent[is_finite], slope[is_finite], 1e-6, 1e-30)


def source_function(expression: str, count: int) -> Any:
    """The expression as a function of irtool's tensors."""
    space: dict[str, Any] = {"torch": irtool.torch}
    exec(function(expression, count), space)
    return space["f"]


@pytest.mark.parametrize("interpret", [True, False])
@pytest.mark.parametrize("expression", ["torch.vander(v, 1)", "torch.vander(v, n)", "v.sgn()", "v.detach()"])
def test_what_a_result_does_not_depend_on_has_no_gradient(expression: str, interpret: bool) -> None:
    """No gradient, not one of zeros: times the slope of what comes in front, which is nan here, zeros would be nan."""
    module = irtool.from_script(f"def f(x: Tensor, n: int):\n    v = torch.erfinv(x)\n    y = {expression}\n    return y, x * 3.0\n")
    x = np.array([0.5, 2.0])
    (results,) = irtool.run(module, [x, 1])
    for _ in range(3):
        (gradient,) = irtool.vjp(module, [x, 1], [np.ones_like(each) for each in results], [0], interpret=interpret)
        np.testing.assert_array_equal(gradient, [3.0, 3.0])


@pytest.mark.parametrize("expression", [
    "relu(x)", "relu6(x)", "leaky_relu(x, 0.2)", "rrelu(x, 0.2, 0.2)", "rrelu(x, 0.1, 0.5)", "rrelu(x, 0.2, 0.2, True)", "hardtanh(x)",
    "threshold(x, 0.0, -1.0)", "hardshrink(x)", "softshrink(x)", "hardsigmoid(x)", "prelu(x, w)"])
def test_second_derivatives_where_slopes_change(expression: str) -> None:
    """Between such places f is linear, so that the second derivative of f² is 2 f'², and so it is in torch at these places."""
    x = np.array([-4., -3., -1., -.5, -0., 0., .5, 1., 3., 6., 7.])

    def f(x: Any) -> Any:
        space = {"x": x, "w": irtool.torch.tensor([.25], dtype=irtool.torch.float64)}
        return eval(f"functional.{expression}", {"functional": irtool.torch.nn.functional}, space)
    slope = np.asarray(irtool.grad(lambda x: f(x).sum())(x))
    again = irtool.grad(lambda x: irtool.grad(lambda x: (f(x) ** 2).sum())(x).sum())(x)
    np.testing.assert_allclose(np.asarray(again), 2 * slope ** 2, rtol=1e-12)
