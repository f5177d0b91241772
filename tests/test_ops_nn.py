"""Layers against their definitions, written out: products, convolution, pooling, normalization, losses, attention, resizing."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import RunError
from irtool.ops.call import call_op

RNG = np.random.default_rng(7)


def call(name: str, *args: Any, **named: Any) -> Any:
    return call_op(f"aten::{name}", list(args), **named)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def plain_conv(x: np.ndarray, weight: np.ndarray, stride: int, padding: int, dilation: int, groups: int) -> np.ndarray:
    """Convolution in two dimensions, a loop per index."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    count, out, (rows, columns) = x.shape[0], weight.shape[0], weight.shape[2:]
    sizes = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], (rows, columns), strict=True)]
    result = np.zeros((count, out, *sizes))
    each, inner = out // groups, weight.shape[1]
    for n, o, i, j in product(range(count), range(out), range(sizes[0]), range(sizes[1])):
        part = x[n, o // each * inner:(o // each + 1) * inner]
        for a, b in product(range(rows), range(columns)):
            result[n, o, i, j] += (part[:, i * stride + a * dilation, j * stride + b * dilation] * weight[o, :, a, b]).sum()
    return result


GEOMETRIES = [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 1, 4)]


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), GEOMETRIES)
def test_convolution_is_its_definition(stride: int, padding: int, dilation: int, groups: int) -> None:
    x, weight, bias = normal(2, 4, 6, 7), normal(8, 4 // groups, 2, 3), normal(8)
    got = call("conv2d", x, weight, bias, [stride] * 2, [padding] * 2, [dilation] * 2, groups)
    assert np.allclose(got, plain_conv(x, weight, stride, padding, dilation, groups) + bias[:, None, None])


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), GEOMETRIES)
def test_transposed_convolution_is_the_adjoint(stride: int, padding: int, dilation: int, groups: int) -> None:
    x, weight = normal(2, 4, 6, 7), normal(8, 4 // groups, 2, 3)
    options = ([stride] * 2, [padding] * 2, [dilation] * 2)
    y = call("conv2d", x, weight, None, *options, groups)
    grad = normal(*y.shape)
    for_x, for_weight, for_bias = call("convolution_backward", grad, x, weight, [8], *options, False, [0, 0], groups, [True] * 3)
    assert np.isclose((for_x * x).sum(), (grad * y).sum()) and np.isclose((for_weight * weight).sum(), (grad * y).sum())
    assert np.allclose(for_bias, grad.sum((0, 2, 3)))


def test_im2col_and_col2im_count_each_place() -> None:
    x = normal(1, 2, 5, 6)
    options = ([2, 3], [1, 2], [1, 0], [2, 1])
    columns = call("im2col", x, *options)
    counts = call("col2im", call("im2col", np.ones_like(x), *options), [5, 6], *options)
    assert np.allclose(call("col2im", columns, [5, 6], *options), x * counts)


def test_max_pool_gives_places_that_hold_the_maxima() -> None:
    x = normal(2, 3, 7, 8)
    values, places = call("max_pool2d_with_indices", x, [3, 2], [2, 2], [1, 1], [1, 1], True)
    flat = x.reshape(2, 3, -1)
    assert (np.take_along_axis(flat, places.reshape(2, 3, -1), 2).reshape(values.shape) == values).all()
    assert (call("max_pool2d", x, [3, 2], [2, 2], [1, 1], [1, 1], True) == values).all()
    restored = call("max_unpool2d", values, places, [7, 8])
    assert set(restored[restored != 0]) <= set(x.reshape(-1))


def test_average_pools_agree_where_windows_tile() -> None:
    x = normal(2, 3, 6, 8)
    assert np.allclose(call("avg_pool2d", x, [3, 4]), call("adaptive_avg_pool2d", x, [2, 2]))
    assert np.allclose(call("adaptive_avg_pool2d", x, [1, 1])[..., 0, 0], x.mean((2, 3)))
    edges = call("avg_pool2d", np.ones((1, 1, 4, 4)), [3, 3], [1, 1], [1, 1], False, False)
    assert np.allclose(edges, 1)


def test_batch_norm_in_training_updates_running_statistics_in_place() -> None:
    x, mean, variance = normal(4, 3, 5), np.zeros(3), np.ones(3)
    y = call("batch_norm", x, None, None, mean, variance, True, 0.1, 1e-5, False)
    assert np.allclose(y.mean((0, 2)), 0) and np.allclose(y.std((0, 2)), 1, atol=1e-4)
    assert np.allclose(mean, 0.1 * x.mean((0, 2))) and np.allclose(variance, 0.9 + 0.1 * x.var((0, 2), ddof=1))
    z = call("batch_norm", x, None, None, mean, variance, False, 0.1, 1e-5, False)
    assert np.allclose(z, (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))


def test_normalizations_meet_where_they_mean_the_same() -> None:
    x = normal(2, 6, 4)
    each = call("instance_norm", x, None, None, None, None, True, 0.1, 1e-5, False)
    assert np.allclose(each, call("group_norm", x, 6)) and np.allclose(each, call("layer_norm", x, [4]))
    assert np.allclose(call("group_norm", x, 1), call("layer_norm", x, [6, 4]))


def test_softmax_of_a_row_of_minus_infinity() -> None:
    rows = np.array([[-np.inf, -np.inf], [0.0, -np.inf]], np.float32)
    assert np.isnan(call("softmax.int", rows, 1)[0]).all()
    assert call("_safe_softmax", rows, 1).tolist() == [[0, 0], [1, 0]]
    assert np.allclose(np.exp(call("log_softmax.int", normal(3, 4), 1)).sum(1), 1)


def test_cross_entropy_of_indices_is_that_of_one_hot_probabilities() -> None:
    x, target = normal(5, 4, 3), RNG.integers(0, 4, (5, 3))
    hot = np.moveaxis(call("one_hot", target, 4), -1, 1).astype(np.float64)
    for smoothing in (0.0, 0.2):
        by_index = call("cross_entropy_loss", x, target, None, 1, -100, smoothing)
        assert np.isclose(by_index, call("cross_entropy_loss", x, hot, None, 1, -100, smoothing))


def test_ignored_targets_count_for_nothing() -> None:
    logs = call("log_softmax.int", normal(4, 3), 1)
    target = np.array([0, -100, 2, -100])
    assert np.isclose(call("nll_loss", logs, target), -(logs[0, 0] + logs[2, 2]) / 2)


def test_attention_masks_agree() -> None:
    q, k, v = normal(2, 3, 4, 8), normal(2, 3, 4, 8), normal(2, 3, 4, 8)
    causal = call("scaled_dot_product_attention", q, k, v, None, 0.0, True)
    mask = np.tri(4, dtype=bool)
    assert np.allclose(causal, call("scaled_dot_product_attention", q, k, v, mask))
    assert np.allclose(causal, call("scaled_dot_product_attention", q, k, v, np.where(mask, 0.0, -np.inf)))
    nothing = call("scaled_dot_product_attention", q, k, v, np.zeros((4, 4), bool))
    assert (nothing == 0).all()


def test_a_layer_is_its_cells() -> None:
    x, h, c = normal(3, 2, 4), normal(1, 2, 5), normal(1, 2, 5)
    params = [normal(20, 4), normal(20, 5), normal(20), normal(20)]
    out, hn, cn = call("lstm.input", x, [h, c], params, True, 1, 0.0, False, False, False)
    state = (h[0], c[0])
    for time in range(3):
        state = call("lstm_cell", x[time], list(state), *params)
        assert np.allclose(out[time], state[0])
    assert np.allclose(hn[0], state[0]) and np.allclose(cn[0], state[1])


def test_packing_undoes_padding() -> None:
    x = normal(4, 3, 2)
    x[2:, 1] = x[1:, 2] = 0
    data, sizes = call("_pack_padded_sequence", x, np.array([4, 2, 1]), False)
    assert sizes.tolist() == [3, 2, 1, 1]
    back, lengths = call("_pad_packed_sequence", data, sizes, False, 0.0, 0)
    assert (back == x).all() and lengths.tolist() == [4, 2, 1]


@pytest.mark.parametrize(("name", "corners"), [("upsample_bilinear2d", True), ("upsample_bicubic2d", True), ("upsample_bilinear2d", False)])
def test_resizing_keeps_constants_and_corners(name: str, corners: bool) -> None:
    x = normal(1, 2, 4, 5)
    big = call(name, x, [9, 7], corners)
    assert np.allclose(call(name, np.ones_like(x), [9, 7], corners), 1)
    if corners:
        assert np.allclose(big[..., [0, 0, -1, -1], [0, -1, 0, -1]], x[..., [0, 0, -1, -1], [0, -1, 0, -1]])
    grad = normal(*big.shape)
    back = call(f"{name}_backward", grad, [9, 7], [1, 2, 4, 5], corners)
    assert np.isclose((back * x).sum(), (grad * big).sum())


def test_the_identity_grid_gives_the_image_back() -> None:
    x = normal(2, 3, 4, 5)
    theta = np.broadcast_to(np.eye(2, 3), (2, 2, 3))
    for corners in (True, False):
        lattice = call("affine_grid_generator", theta, [2, 3, 4, 5], corners)
        for mode in (0, 1, 2):
            assert np.allclose(call("grid_sampler", x, lattice, mode, 0, corners), x)


def test_pixels_shuffle_and_back() -> None:
    x = normal(2, 8, 3, 3)
    assert (call("pixel_unshuffle", call("pixel_shuffle", x, 2), 2) == x).all()


def test_embedding_bags_are_reduced_rows() -> None:
    weight, indices, offsets = normal(10, 4), np.array([1, 2, 3, 9]), np.array([0, 3])
    for mode, reduce in ((0, np.sum), (1, np.mean), (2, np.max)):
        got = call("embedding_bag", weight, indices, offsets, False, mode)[0]
        assert np.allclose(got, [reduce(weight[[1, 2, 3]], axis=0), weight[9]])


def test_einsum_meets_matmul_and_sums_dots_away() -> None:
    a, b = normal(2, 3, 4), normal(2, 4, 5)
    assert np.allclose(call("einsum", "bij,bjk->bik", [a, b]), call("bmm", a, b))
    assert np.allclose(call("einsum", "...ij->ij", [a]), a.sum(0))


F = np.ones((2, 3), np.float32)
MISUSES: list[tuple[str, tuple[Any, ...], str]] = [
    ("linear", (F, np.ones((4, 5), np.float32)), "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
    ("linear", (F.astype(np.float64), F), "expected m1 and m2 to have the same dtype, but got: double != float"),
    ("bmm", (normal(2, 3, 4), normal(2, 5, 4)), "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."),
    ("matmul", (normal(2, 3), normal(4)), "size mismatch, got input (2), mat (2x3), vec (4)"),
    ("conv1d", (normal(2, 3, 7), normal(6, 4, 2)), "Given groups=1, weight of size [6, 4, 2], expected input[2, 3, 7] to have 4 "
                                                   "channels, but "
                                                   "got 3 channels instead"),
    ("conv1d", (normal(2, 4, 7), normal(6, 4, 9)), "Calculated padded input size per channel: (7). Kernel size: (9). Kernel size can't be "
                                                   "greater than actual input size"),
    ("conv2d", (normal(4), normal(6, 4, 2, 2)), "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [4]"),
    ("softmax.int", (np.ones((2, 3), np.int64), 1), "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
    ("nll_loss", (F, np.array([0, 3])), "Target 3 is out of bounds."),
    ("nll_loss", (F, np.array([0, 1, 2])), "Expected input batch_size (2) to match target batch_size (3)."),
    ("embedding", (F, np.array([5])), "index out of range in self"),
    ("layer_norm", (F, [4]), "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]"),
    ("glu", (np.ones(3, np.float32), 0), "Halving dimension must be even, but dimension 0 is size 3"),
    ("max_pool2d", (normal(2, 3, 2, 2), [3, 3]), "Given input size: (3x2x2). Calculated output size: (3x0x0). Output size is too small"),
    ("einsum", ("ij,jk->ik", [F, F]), "einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen "
                                      "size 3"),
    ("einsum", ("ij->ik", [F]), "einsum(): output subscript k does not appear in the equation for any input operand"),
    ("one_hot", (np.array([0, 2]), 2), "Class values must be smaller than num_classes."),
]


@pytest.mark.parametrize(("name", "arguments", "message"), MISUSES, ids=[f"{name}-{place}" for place, (name, _, _) in enumerate(MISUSES)])
def test_misuse_is_answered_as_torch_answers(name: str, arguments: Sequence[Any], message: str) -> None:
    with pytest.raises(RunError) as raised:
        call(name, *arguments)
    assert raised.value.message == message


def test_the_callers_running_statistics_stay_as_they_were() -> None:
    graph = irtool.parse("""graph(%x : Tensor, %mean : Tensor, %var : Tensor):
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=0.1]()
  %y : Tensor = aten::batch_norm(%x, %none, %none, %mean, %var, %yes, %eps, %eps, %yes)
  return (%y, %mean)
""")
    mean, variance = np.zeros(3), np.ones(3)
    _, updated = irtool.run(graph, [normal(4, 3), mean, variance])
    assert (mean == 0).all() and (variance == 1).all() and (updated != 0).all()


def image(*shape: int) -> Any:
    return np.random.default_rng([3, *shape]).standard_normal(shape)


IN_PIECES = {
    "conv2d": lambda: call("conv2d", image(3, 4, 9, 7), image(6, 2, 3, 3), image(6), [2, 1], [1, 2], [1, 2], 2),
    "conv3d": lambda: call("conv3d", image(2, 2, 4, 5, 6), image(3, 2, 2, 3, 1), None, [1, 2, 1], [1, 1, 2], [2, 1, 1], 1),
    "a convolution by channel": lambda: call("conv2d", image(2, 6, 7, 5), image(12, 1, 3, 2), None, [1, 2], [2, 1], [1, 1], 6),
    "transposed": lambda: call("conv_transpose2d.input", image(2, 4, 5, 6), image(4, 3, 3, 2), image(6), [2, 3], [1, 4], [1, 0], 2, [1, 2]),
    "its gradients": lambda: call("convolution_backward", image(3, 6, 5, 3), image(3, 4, 9, 8), image(6, 2, 3, 3), [6], [2, 2], [1, 1],
                                  [1, 2], False, [0, 0], 2, [True, True, True]),
    "max_pool2d": lambda: call("max_pool2d", image(3, 4, 9, 7), [3, 2], [2, 2], [1, 1], [1, 1], True),
    "max_pool2d_with_indices": lambda: call("max_pool2d_with_indices", image(3, 4, 9, 7), [3, 2], [2, 2], [1, 1], [2, 1], False),
    "bilinear": lambda: call("upsample_bilinear2d", image(3, 4, 5, 6), [9, 4], False, None, None),
    "bicubic": lambda: call("upsample_bicubic2d", image(3, 4, 5, 6), [9, 4], True, None, None),
    "back through bilinear": lambda: call("upsample_bilinear2d_backward", image(3, 4, 9, 4), [9, 4], [3, 4, 5, 6], False, None, None),
    "attention": lambda: call("scaled_dot_product_attention", image(2, 3, 5, 4), image(2, 3, 6, 4), image(2, 3, 6, 2),
                              image(5, 6) > 0, 0.0, False),
    "log_softmax": lambda: call("log_softmax.int", image(3, 4, 9), -1),
    "layer_norm": lambda: call("layer_norm", image(3, 4, 5, 6), [5, 6], image(5, 6), image(5, 6)),
    "causal": lambda: call("scaled_dot_product_attention", image(3, 2, 5, 4), image(3, 2, 5, 4), image(3, 2, 5, 2), None, 0.0, True),
}


@pytest.mark.parametrize("size", [1, 40, 150])
@pytest.mark.parametrize("name", IN_PIECES)
def test_work_on_large_arrays_is_done_in_pieces(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of any size give what all at once gives."""
    whole = IN_PIECES[name]()
    for limit in ("conv.SMALL", "conv.LARGE", "conv.LARGEST", "windows.PIECE", "attention.SCORES", "checks.BLOCK", "softmax.BLOCK",
                  "normalization.BLOCK"):
        monkeypatch.setattr(f"irtool.ops.{'' if limit.startswith('checks') else 'kernels.'}{limit}", size)
    parts = IN_PIECES[name]()
    for found, expected in zip(*[each if isinstance(each, tuple) else (each,) for each in (parts, whole)], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name, more", [("native_group_norm", [2, 4, 3, 2, 1e-5]), ("native_batch_norm", [None, None, True, 0.1, 1e-5])])
def test_saved_statistics_are_of_half_precision_where_weights_are(name: str, more: list[object]) -> None:
    x, weight = np.arange(24, dtype=np.float16).reshape(2, 4, 3), np.ones(4, np.float32)
    for given, expected in ((None, np.float16), (weight, np.float32), (weight.astype(np.float16), np.float16)):
        assert [each.dtype for each in call(name, x, given, None, *more)] == [np.float16, expected, expected]


def test_a_margin_loss_takes_a_number_and_its_class():
    """As torch does, which refuses only vectors and rows of no classes."""
    assert call_op("aten::multilabel_margin_loss", [np.array(0.5), np.array(0), 1]) == 0
    with pytest.raises(irtool.RunError, match="non-empty"):
        call_op("aten::multilabel_margin_loss", [np.zeros((2, 0)), np.zeros((2, 0), int), 1])
