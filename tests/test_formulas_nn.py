"""Gradient formulas of layers, losses, orders, borders, transforms and linear algebra against finite differences in float64; and of
the backward operators they use, so that second order is right too. Ties, kinks and edges as torch has them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.formula import run_formula

rng = np.random.default_rng(7)


def r(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def p(*shape: int) -> np.ndarray:
    return rng.uniform(0.2, 0.8, shape)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def spd(n: int) -> np.ndarray:
    a = r(n, n)
    return a @ a.T + n * np.eye(n)


def triangle(n: int) -> np.ndarray:
    return np.tril(r(n, n)) + 3 * np.eye(n)


plain = ([1, 1], [1, 0], [1, 2], False, [0, 0], 1)
upwards = ([2, 1], [1, 0], [1, 1], True, [1, 0], 2)
mask = [True, True, True]
channels, spread = r(3), np.abs(r(3)) + 0.5
pool_x, pool_2 = r(2, 3, 6, 5), ([2, 2], [2, 1], [1, 0], [1, 1], False)

CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("convolution", (r(2, 3, 5, 6), r(4, 3, 2, 3), r(4), *plain)),
    ("convolution", (r(2, 4, 3, 4), r(4, 3, 2, 3), None, *upwards)),
    ("_convolution", (r(1, 4, 7), r(4, 2, 3), r(4), [2], [1], [1], False, [0], 2, False, False, False, False)),
    ("conv1d", (r(3, 8), r(2, 3, 3), r(2), [1], [1], [2], 1)),
    ("conv2d.padding", (r(1, 2, 4, 5), r(3, 2, 2, 3), r(3), [1, 1], "same", [1, 1], 1)),
    ("conv_transpose2d.input", (r(2, 4, 3, 4), r(4, 3, 2, 3), r(6), [2, 1], [1, 0], [1, 0], 2, [1, 1])),
    ("conv_tbc", (r(5, 2, 3), r(2, 3, 4), r(4), 1)),
    ("convolution_backward", (r(2, 4, 6, 2), r(2, 3, 5, 6), r(4, 3, 2, 3), [4], *plain, mask)),
    ("convolution_backward", (r(2, 6, 5, 6), r(2, 4, 3, 4), r(4, 3, 2, 3), [6], *upwards, mask)),
    ("im2col", (r(1, 2, 4, 5), [2, 2], [1, 1], [0, 1], [1, 2])),
    ("batch_norm", (r(4, 3, 2), r(3), r(3), None, None, True, 0.1, 1e-3, False)),
    ("batch_norm", (r(4, 3), r(3), None, channels, spread, False, 0.1, 1e-3, False)),
    ("layer_norm", (r(2, 3, 4), [3, 4], r(3, 4), r(3, 4), 1e-3, False)),
    ("group_norm", (r(2, 4, 3), 2, r(4), r(4), 1e-3, False)),
    ("instance_norm", (r(2, 3, 5), r(3), r(3), None, None, True, 0.1, 1e-3, False)),
    ("instance_norm", (r(2, 3, 5), r(3), r(3), channels, spread, False, 0.1, 1e-3, False)),
    ("rms_norm", (r(2, 3, 4), [4], r(4), None)),
    ("softmax.int", (r(3, 4), 1, None)), ("log_softmax.int", (r(3, 4), 0, None)),
    ("_softmax_backward_data", (r(3, 4), p(3, 4), 1, 7)), ("_log_softmax_backward_data", (r(3, 4), r(3, 4), 1, 7)),
    ("max_pool2d", (pool_x, *pool_2)), ("max_pool1d", (r(2, 7), [3], [2], [1], [1], True)),
    ("avg_pool1d", (r(2, 3, 7), [3], [2], [1], True, False)), ("avg_pool2d", (pool_x, [3, 2], [], [1, 1], True, False, None)),
    ("avg_pool3d", (r(1, 2, 4, 4, 4), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 5)),
    ("avg_pool2d_backward", (r(2, 3, 3, 2), pool_x, [2, 2], [2, 2], [0, 0], False, True, None)),
    ("adaptive_avg_pool1d", (r(2, 7), [3])), ("adaptive_avg_pool2d", (pool_x, [4, 2])), ("adaptive_max_pool2d", (pool_x, [4, 2])),
    ("upsample_nearest1d.vec", (r(1, 2, 4), None, [1.6])), ("upsample_bilinear2d", (r(1, 2, 3, 4), [5, 3], True, None, None)),
    ("upsample_bicubic2d.vec", (r(1, 2, 3, 4), [5, 6], False, None)),
    ("_upsample_bilinear2d_aa", (r(1, 1, 6, 5), [3, 4], False, None, None)),
    ("pixel_shuffle", (r(1, 4, 2, 3), 2)), ("channel_shuffle", (r(1, 4, 2), 2)),
    ("mse_loss", (r(3, 2), r(3, 2), 1)), ("mse_loss_backward", (r(), r(3, 2), r(3, 2), 1)), ("l1_loss", (r(4), r(4), 2)),
    ("smooth_l1_loss", (r(9), r(9), 1, 0.7)), ("huber_loss", (r(9), r(9), 0, 0.7)), ("soft_margin_loss", (r(4), r(4), 1)),
    ("soft_margin_loss_backward", (r(), r(4), r(4), 1)), ("kl_div", (r(3, 2), p(3, 2), 1, False)), ("kl_div", (r(3), r(3), 2, True)),
    ("binary_cross_entropy", (p(4), p(4), p(4), 1)), ("binary_cross_entropy_backward", (r(4), p(4), p(4), p(4), 0)),
    ("binary_cross_entropy_with_logits", (r(2, 3), p(2, 3), p(3), p(3), 1)), ("poisson_nll_loss", (p(4), p(4) + 1, False, True, 1e-6, 1)),
    ("margin_ranking_loss", (r(5), r(5), i(1, -1, 1, 1, -1), 0.3, 1)), ("hinge_embedding_loss", (r(4), i(1, -1, 1, -1), 1.0, 1)),
    ("cosine_embedding_loss", (r(3, 4), r(3, 4), i(1, -1, 1), 0.1, 1)),
    ("triplet_margin_loss", (r(4, 3), r(4, 3), r(4, 3), 1.0, 2.0, 1e-6, True, 1)),
    ("nll_loss", (r(4, 3), i(0, 2, 1, -100), p(3), 1, -100)),
    ("nll_loss_backward", (r(4), r(4, 3), i(0, 2, 1, 1), None, 0, -100, p(1)[0:1][0])),
    ("cross_entropy_loss", (r(4, 3), i(0, 2, -1, 1), p(3), 1, -1, 0.2)), ("cross_entropy_loss", (r(4, 3), p(4, 3), p(3), 1, -100, 0.2)),
    ("multi_margin_loss", (r(4, 3), i(0, 2, 1, 0), 2, 0.7, p(3), 1)),
    ("multilabel_margin_loss", (r(2, 3), i(2, 0, -1, 1, -1, 0).reshape(2, 3), 1)),
    ("pairwise_distance", (r(3, 4), r(3, 4), 3.0, 1e-6, False)), ("dist", (r(2, 3), r(3), 2)), ("cdist", (r(3, 2), r(4, 2), 1.5, None)),
    ("cosine_similarity", (r(3, 4), r(3, 4), 1, 1e-8)), ("pdist", (r(4, 2), 2.0)), ("renorm", (r(3, 4), 2, 0, 1.5)),
    ("embedding", (r(4, 3), i(1, 2, 1, 0), 3, False, False)), ("embedding_backward", (r(4, 3), i(1, 3, 1, 0), 4, 3, True, False)),
    ("embedding_bag.padding_idx", (r(5, 2), i(1, 0, 2, 4, 4), i(0, 2, 2), False, 1, False, None, False, 0)),
    ("embedding_bag.padding_idx", (r(5, 2), i(1, 0, 2, 4, 4), i(0, 2, 2), False, 0, False, r(5), False, None)),
    ("embedding_bag.padding_idx", (r(5, 2), i(1, 0, 2, 4, 4), i(0, 2, 2), False, 2, False, None, False, None)),
    ("pad", (r(2, 3, 4), [1, 2], "reflect", None)), ("pad", (r(2, 3, 4), [1, -1, 2, 0], "circular", None)),
    ("pad", (r(3, 4), [1, -2], "constant", 2.0)),
    ("replication_pad2d", (r(1, 3, 4), [1, 2, -1, 1])), ("reflection_pad1d_backward", (r(2, 6), r(2, 3), [1, 2])),
    ("cumsum", (r(3, 4), 1, None)), ("cumprod", (r(3, 4), 0, None)), ("logcumsumexp", (r(3, 4), 1)), ("cummax", (r(3, 4), 1)),
    ("diff", (r(3, 5), 2, 1, r(3, 1), r(3, 2))), ("trapezoid.x", (r(3, 4), r(4), 1)), ("cumulative_trapezoid.dx", (r(3, 4), 0.5, 0)),
    ("sort", (r(3, 4), 0, True)), ("topk", (r(3, 5), 2, 1, False, True)), ("median.dim", (r(3, 5), 1, False)),
    ("kthvalue", (r(5), 2, 0, True)),
    ("quantile", (r(3, 5), np.array([0.2, 0.7]), 1, False, "linear")), ("quantile.scalar", (r(4, 3), 0.4, None, True, "midpoint")),
    ("lgamma", (p(3) + 1,)), ("erfinv", (p(3),)), ("i0", (r(3),)), ("special_i1e", (r(3),)), ("special_log_ndtr", (r(3),)),
    ("polygamma", (2, p(3) + 1)),
    ("mvlgamma", (p(3) + 3, 3)), ("special_ndtri", (p(3),)), ("special_erfcx", (r(3),)), ("special_entr", (p(3),)),
    ("linalg_inv", (spd(3),)), ("linalg_det", (spd(3),)), ("logdet", (spd(3),)), ("linalg_slogdet", (spd(3),)),
    ("linalg_solve", (spd(3), r(3), True)),
    ("linalg_solve", (spd(3), r(2, 3), False)), ("linalg_solve_triangular", (triangle(3), r(3, 2), False, True, False)),
    ("triangular_solve", (r(3, 2), triangle(3).T, True, True, False)), ("linalg_lu_factor", (spd(3), True)), ("linalg_lu", (r(4, 2), True)),
    ("linalg_lu", (r(2, 4), True)), ("linalg_qr", (r(4, 3), "reduced")), ("linalg_qr", (r(2, 4), "reduced")),
    ("linalg_svdvals", (r(3, 4), None)),
    ("linalg_pinv", (r(4, 3), 1e-15, False)), ("linalg_matrix_power", (spd(3), 3)), ("linalg_matrix_power", (spd(3), -2)),
    ("linalg_householder_product", (r(4, 3), r(2))),
    ("linalg_matrix_exp", (r(3, 3),)), ("linalg_cross", (r(2, 3), r(2, 3), 1)), ("linalg_vander", (r(3), None)),
    ("linalg_eigvals", (np.diag([1.0, 2, 3]) + 0.1 * r(3, 3),)),
    ("linalg_matrix_norm", (r(3, 4), -2, [-2, -1], False, None)), ("linalg_matrix_norm", (r(2, 3, 4), 1, [0, 2], True, None)),
    ("linalg_matrix_norm.str_ord", (r(3, 4), "nuc", [-2, -1], False, None)), ("linalg_norm", (r(3, 4), 3, [1], False, None)),
    ("scaled_dot_product_attention", (r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 2), r(3, 5), 0.0, False, None, False)),
    ("scaled_dot_product_attention", (r(4, 3, 4), r(2, 3, 4), r(2, 3, 4), None, 0.0, True, 0.7, True)),
    ("grid_sampler", (r(1, 2, 4, 5), r(1, 2, 3, 2), 0, 0, False)), ("grid_sampler", (r(1, 2, 4, 5), r(1, 2, 3, 2), 0, 2, True)),
    ("grid_sampler", (r(1, 2, 4, 5), r(1, 2, 3, 2), 2, 1, False)), ("grid_sampler", (r(1, 1, 3, 4, 2), r(1, 2, 1, 2, 3), 0, 1, False)),
    ("stft", (r(9), 4, 2, 4, p(4), False, True, True, None)),
    ("stft.center", (r(2, 8), 4, 1, 3, p(3), True, "reflect", True, True, True, None)),
    ("affine_grid_generator", (r(2, 2, 3), [2, 1, 3, 4], True)),
    ("lstm_cell", (r(2, 3), [r(2, 4), r(2, 4)], r(16, 3), r(16, 4), r(16), r(16))),
    ("_thnn_fused_lstm_cell", (r(2, 12), r(2, 12), r(2, 3), r(12), None)),
    ("gru_cell", (r(2, 3), r(2, 4), r(12, 3), r(12, 4), r(12), r(12))),
    ("rnn_tanh_cell", (r(2, 3), r(2, 4), r(4, 3), r(4, 4), None, None)), ("rnn_relu_cell", (r(3), r(4), r(4, 3), r(4, 4), r(4), r(4))),
    ("fft_rfft", (r(2, 5), 6, 1, None)), ("fft_fftn", (r(3, 4), None, None, "ortho")), ("fft_ihfft", (r(6), 5, 0, "forward")),
    ("fft_rfft2", (r(3, 4), None, [0, 1], None)),
]


def floats(results: Any) -> list[np.ndarray]:
    """The results that can move, real and imaginary parts as numbers of their own."""
    found = results if isinstance(results, tuple | list) else [results]
    return [np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x for x in found if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


def slopes(name: str, args: tuple[Any, ...], drop: frozenset[int] = frozenset()) -> None:
    """Asserts that a formula's gradients are those of finite differences along random directions; results in `drop` take no part."""
    call = "aten::" + name
    local = np.random.default_rng(3)
    results, gradients = run_formula(call, args)
    actual = call_op(call, [a.copy() if isinstance(a, np.ndarray) else a for a in args])
    given = actual if isinstance(actual, tuple) else (actual,)
    for mine, theirs in zip(floats(results), floats(given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    code = OPS[call].formulas[call]
    cotangents: list[Any] = []
    for place, result in enumerate(given):
        moves = isinstance(result, np.ndarray) and result.dtype.kind in "fc" and place not in drop
        weight = local.standard_normal((*result.shape, 2)) if moves else None
        if weight is not None:
            weight = weight[..., 0] + 1j * weight[..., 1] if result.dtype.kind == "c" else weight[..., 0]
        cotangents.append(weight)
    taken = count_of_gradients(code, args)
    cotangents = [c if place < taken else None for place, c in enumerate(cotangents)]
    found = gradients(*cotangents)
    live = [place for place, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f" and found[place] is not None]
    assert live
    for place in live:
        direction = local.standard_normal(args[place].shape)

        def at(step: float, place: int = place, direction: np.ndarray = direction) -> float:
            moved = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            moved[place] = moved[place] + step * direction
            out = call_op(call, moved)
            pairs = zip(cotangents, out if isinstance(out, tuple) else (out,), strict=True)
            return float(sum((c.conj() * x).real.sum() for c, x in pairs if c is not None))

        numeric = (at(1e-6) - at(-1e-6)) / 2e-6
        assert found[place].shape == args[place].shape
        assert (found[place] * direction).sum() == pytest.approx(numeric, rel=2e-5, abs=2e-6), f"{name}, argument {place}"


def count_of_gradients(formula: Any, args: tuple[Any, ...]) -> int:
    """How many of the results take part: the parameters of `backward`."""
    from inspect import signature

    from irtool.ops.tensor import wrapped

    return len(signature(formula(*[wrapped(a) for a in args])[-1]).parameters)


@pytest.mark.parametrize(("name", "args"), CASES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(CASES)])
def test_formula_is_the_slope(name: str, args: tuple[Any, ...]) -> None:
    slopes(name, args)


@pytest.mark.parametrize("drop", [{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}])
def test_undefined_gradients_take_no_part(drop: set[int]) -> None:
    slopes("convolution_backward", (r(2, 4, 6, 2), r(2, 3, 5, 6), r(4, 3, 2, 3), [4], *plain, mask), frozenset(drop))
    slopes("linalg_svd", (r(3, 4), False, None), frozenset(drop | {0, 2}) - {1})


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
