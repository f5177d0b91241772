"""Gradient formulas of layers, losses and linear algebra: second order of normalizations, ties, kinks and edges as torch has them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irtool.ops.call import call_op
from irtool.ops.formula import run_formula

rng = np.random.default_rng(7)


def r(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


mask = [True, True, True]


def second_order(forward: str, backward: str, x: np.ndarray, weight: np.ndarray, make: Any) -> None:
    """The gradient of a normalization's backward operator counts the saved statistics as functions of the input."""
    out, mean, inverse = call_op(forward, make(x, weight))
    grad = r(*out.shape)
    along = (r(*x.shape), r(*weight.shape), r(*weight.shape))

    def value(grad: np.ndarray, x: np.ndarray, weight: np.ndarray) -> float:
        _, mean, inverse = call_op(forward, make(x, weight))
        parts = call_op(backward, operands(grad, x, weight, mean, inverse))
        return float(sum((a * b).sum() for a, b in zip(along, parts, strict=True)))

    def operands(grad: np.ndarray, x: np.ndarray, weight: np.ndarray, mean: np.ndarray, inverse: np.ndarray) -> list[Any]:
        if "batch" in backward:
            return [grad, x, weight, None, None, mean, inverse, True, 1e-3, mask]
        if "layer" in backward:
            return [grad, x, list(weight.shape), mean, inverse, weight, weight, mask]
        return [grad, x, mean, inverse, weight, 2, 4, 3, 2, mask]

    given = operands(grad, x, weight, mean, inverse)
    _, gradients = run_formula(backward, given)
    found = gradients(*along)
    for place, base in ((0, grad), (1, x), (next(n for n, a in enumerate(given) if a is weight), weight)):
        direction, step = r(*base.shape), 1e-6
        at = [value(*[a + sign * step * direction if a is base else a for a in (grad, x, weight)]) for sign in (1, -1)]
        assert (found[place] * direction).sum() == pytest.approx((at[0] - at[1]) / (2 * step), rel=1e-5, abs=1e-6)


def test_second_order_of_normalizations() -> None:
    second_order("aten::native_batch_norm", "aten::native_batch_norm_backward", r(4, 3, 2), r(3),
                 lambda x, w: [x, w, w, None, None, True, 0.1, 1e-3])
    second_order("aten::native_layer_norm", "aten::native_layer_norm_backward", r(2, 3, 4), r(4), lambda x, w: [x, [4], w, w, 1e-3])
    second_order("aten::native_group_norm", "aten::native_group_norm_backward", r(2, 4, 3), r(4), lambda x, w: [x, w, w, 2, 4, 3, 2, 1e-3])


# ---- torch's conventions at ties, kinks and edges

def gradient(name: str, *args: Any, cotangents: tuple[Any, ...]) -> list[Any]:
    return run_formula("aten::" + name, args)[1](*cotangents)


def test_the_first_of_equal_maxima_gets_the_gradient() -> None:
    x = np.zeros((1, 1, 4))
    found = gradient("max_pool1d", x, [2], [2], [0], [1], False, cotangents=(np.ones((1, 1, 2)),))
    assert found[0].tolist() == [[[1, 0, 1, 0]]]


def test_equal_medians_share() -> None:
    found = gradient("median", np.array([2.0, 1.0, 2.0, 2.0, 5.0]), cotangents=(np.array(3.0),))
    assert found[0].tolist() == [1, 0, 1, 1, 0]


def test_a_distance_of_zero_has_no_slope() -> None:
    for order in (0.0, 1.0, 1.5, 2.0, 3.0, np.inf):
        found = gradient("dist", np.ones(3), np.ones(3), order, cotangents=(np.array(1.0),))
        assert found[0].tolist() == [0, 0, 0], order


def test_products_with_zeros() -> None:
    found = gradient("cumprod", np.array([2.0, 0.0, 3.0, 0.0]), 0, None, cotangents=(np.ones(4),))
    assert found[0].tolist() == [1, 8, 0, 0]


def test_singular_matrices_have_cofactors() -> None:
    found = gradient("linalg_det", np.array([[1.0, 2.0], [2.0, 4.0]]), cotangents=(np.array(1.0),))
    np.testing.assert_allclose(found[0], [[4, -2], [-2, 1]], atol=1e-12)


def test_rows_that_are_masked_whole_have_no_gradient() -> None:
    seen = np.array([[False, False], [True, False]])
    found = gradient("scaled_dot_product_attention", r(2, 3), r(2, 3), r(2, 3), seen, 0.0, False, None, False,
                     cotangents=(np.ones((2, 3)),))
    assert all(np.isfinite(part).all() for part in found[:3])
    assert not found[0][0].any()


def test_padding_and_ignored_classes_get_nothing() -> None:
    found = gradient("embedding", r(3, 2), i(0, 1, 1), 1, False, False, cotangents=(np.ones((3, 2)),))
    assert found[0].tolist() == [[1, 1], [0, 0], [0, 0]]
    lost = gradient("cross_entropy_loss", r(2, 3), i(-100, 1), None, 1, -100, 0.1, cotangents=(np.array(1.0),))
    assert not lost[0][0].any()
