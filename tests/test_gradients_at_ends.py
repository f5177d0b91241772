"""Gradients at the ends of what numbers and arguments can be: points that are no numbers, ties, norms below eps, bools for numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import irtool
from irtool import torch

NAN, INF = np.nan, np.inf
F = torch.nn.functional


def slopes(function: Callable[..., Any], *args: Any, order: int = 1) -> list[Any]:
    """Gradients of the sum for all arguments; of order 2 those of the sum of the gradients times 1, 2, 3, ..."""
    def total(*values: Any) -> Any:
        return function(*values).sum()

    def along(*values: Any) -> Any:
        return sum((each.reshape(-1) * torch.arange(1.0, each.numel() + 1)).sum() for each in irtool.grad(total, places)(*values))
    places = tuple(range(len(args)))
    return [np.asarray(each) for each in irtool.grad(total if order == 1 else along, places)(*args)]


def on_grid(mode: str, padding: str, point: list[float], rank: int) -> list[Any]:
    """An image or volume and a grid of one point."""
    return [np.arange(3.0**rank).reshape(1, 1, *(3,) * rank), np.array(point[:rank]).reshape((1,) * (rank + 1) + (rank,))]


POINTS = [(mode, padding, point, rank) for mode in ("bilinear", "nearest") for padding in ("zeros", "border", "reflection")
          for point in ([NAN, 0, 0], [INF, NAN, 0], [0, -INF, 1e300]) for rank in (2, 3)]


def test_a_point_of_a_grid_that_is_no_number_is_no_error() -> None:
    """The gradients were an error that named an index. (torch itself may end with a segmentation fault here.)"""
    for mode, padding, point, rank in POINTS[::5]:
        for_image, _ = slopes(lambda x, g, mode=mode, padding=padding: F.grid_sample(x, g, mode, padding, True),
                              *on_grid(mode, padding, point, rank))
        assert for_image.sum() in (0, 1)


def test_a_norm_below_eps_still_has_its_slope() -> None:
    """torch raises norms to eps where gradients are off."""
    x, y = np.array([[0.6, 0.8], [3.0, 4.0]]), np.array([[1.0, 0], [0.0, 0]])
    for_x, for_y = slopes(lambda x, y: torch.cosine_similarity(x, y, 1, 2.0), x, y)
    np.testing.assert_allclose(for_x, [[0.25 - 0.075 * 0.6, -0.075 * 0.8], [0, 0]], 1e-12, 1e-15)
    np.testing.assert_allclose(for_y, [[0.15 - 0.075, 0.2], [0.3, 0.4]], 1e-12, 1e-15)
    for_x, _ = slopes(lambda x, y: torch.cosine_similarity(x, y, 1, 1e-8), x, y, order=2)
    assert np.isfinite(for_x).all()


def test_second_slopes_at_ties() -> None:
    np.testing.assert_array_equal(slopes(lambda x: F.softplus(x, 1.0, 2.0), np.array([2.0, 3.0]), order=2)[0], [0, 0])
    np.testing.assert_array_equal(slopes(F.elu, np.array([1.0, NAN]), order=2)[0], [0, 0])
    np.testing.assert_allclose(slopes(torch.sinc, np.array([0.0, -0.0]), order=2)[0], -np.pi**2 / 3 * np.array([1, 2]), 1e-14)


def test_a_bool_for_a_number_is_0_or_1() -> None:
    """Formulas compute with such arguments, and TorchScript's arithmetic refuses bools."""
    x = np.array([1.0, 2.0, -0.5])
    functions: list[Callable[[Any, Any], Any]] = [
        torch.pow, torch.norm, F.celu, torch.xlogy, lambda x, one: torch.lerp(x, x * x, one), lambda x, one: torch.pow(one, x),
        lambda x, one: torch.var(x, dim=0, correction=one), lambda x, one: torch.gradient(x, spacing=[one])[0]]
    for function in functions:
        ours, wanted = (slopes(lambda x, one=one, function=function: function(x, one), x) for one in (True, 1))
        np.testing.assert_array_equal(ours, wanted)
    np.testing.assert_array_equal(slopes(lambda x: F.elu(x, True), x, order=2), slopes(F.elu, x, order=2))


def test_a_product_of_two_zeros_has_no_slope() -> None:
    """Neither has it where another factor is infinite or no number; along a dimension torch multiplies the others."""
    for values in ([0.0, 0, NAN], [0.0, 0, INF], [-0.0, 3, 0, INF, NAN], [0.0, 0, 3], [0.0, 0, 0]):
        np.testing.assert_array_equal(slopes(torch.prod, np.array(values))[0], np.zeros(len(values)))
    np.testing.assert_array_equal(slopes(torch.prod, np.array([0, NAN, 2]))[0], [NAN, 0, NAN])
    np.testing.assert_array_equal(slopes(torch.prod, np.array([0, INF, 2]))[0], [INF, 0, NAN])
    np.testing.assert_array_equal(slopes(lambda x: torch.prod(x, 0), np.array([0, 0, NAN]))[0], [NAN, NAN, 0])
    np.testing.assert_array_equal(slopes(torch.prod, np.array([0.0, 0, 3]), order=2)[0], [6, 3, 0])
