"""Layers, their gradients and linear algebra side by side with torch."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from side_by_side import Torch

import irtool
from irtool.ops.call import call_op

torch: Any = Torch()
pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def both(name: str, *args: Any, **named: Any) -> None:
    """Runs one operator here and in torch and compares results, and what it wrote into its arguments."""
    kind, _, variant = name.partition(".")
    theirs = [to_torch(a) for a in args]
    ours = [a.copy() if isinstance(a, np.ndarray) else [x.copy() if isinstance(x, np.ndarray) else x for x in a] if isinstance(a, list)
            else a for a in args]
    want = getattr(getattr(torch.ops.aten, kind), variant or "default")(*theirs, **{key: to_torch(a) for key, a in named.items()})
    got = call_op(f"aten::{name}", ours, **named)
    compare(name, got, want)
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            assert np.allclose(mine, other.numpy(), rtol=1e-4, atol=1e-5), f"{name} wrote something else into its argument"


def to_torch(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return [to_torch(item) for item in value] if isinstance(value, list) else value


def compare(name: str, got: Any, want: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), name
        for mine, other in zip(got, want, strict=True):
            compare(name, mine, other)
    elif isinstance(want, torch.Tensor):
        expected = want.detach().numpy()
        assert got.dtype == expected.dtype and got.shape == expected.shape, (name, got.dtype, got.shape, expected.dtype, expected.shape)
        size = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-5 * size, equal_nan=True), name
    else:
        assert got == want, name


X, G = normal(3, 4) * 3, normal(3, 4)
ONE = np.float32(1)


@pytest.mark.parametrize("name", ["silu", "mish", "hardsigmoid", "hardswish", "gelu", "selu", "celu", "elu", "hardtanh", "relu6", "relu",
                                  "glu",
                                  "leaky_relu", "softplus", "softshrink", "hardshrink", "log_sigmoid"])
def test_activations(name: str) -> None:
    both(name, X)
    both(name, X.astype(np.float64))


@pytest.mark.parametrize("name", ["silu_backward", "mish_backward", "hardsigmoid_backward", "hardswish_backward", "gelu_backward",
                                  "sigmoid_backward", "tanh_backward"])
def test_gradients_of_activations(name: str) -> None:
    both(name, G, X)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction: int) -> None:
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div"):
        both(name, X, G, reduction)
    weight, target = abs(normal(4)), np.array([0, 3, -100])
    both("nll_loss_forward", X, target, weight, reduction, -100)
    both("cross_entropy_loss", X, target, weight, reduction, -100, 0.1)
    both("multi_margin_loss", X, np.array([0, 1, 3]), 1, 1, weight, reduction)
    both("multilabel_margin_loss", X, np.array([[0, 2, -1, 1], [-1, 0, 0, 0], [3, -1, -1, -1]]), reduction)
    logs = torch.log_softmax(torch.from_numpy(normal(6, 2, 5)), 2).numpy()
    both("ctc_loss.IntList", logs, np.array([[1, 2, 2], [4, 3, 0]]), [6, 5], [3, 2], 0, reduction, False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy", "multi_margin_loss"])
def test_losses_of_few_classes_and_samples(name: str, reduction: str) -> None:
    """Values and gradients. torch's mean and sum of no margins are noise."""
    for sizes, targets in (((3,), []), ((1, 3), [1]), ((1,), []), ((0,), []), ((0, 3), [0]), ((1, 1), [1]), ((2, 0), [2]), ((3,), [2])):
        for target in (0, 1, -100):
            x, t = np.arange(np.prod(sizes)).reshape(sizes) * 0.5, np.full(targets, target)
            source, leaf = f"F.{name}(x, t, reduction='{reduction}')", torch.tensor(x, requires_grad=True)
            graph = irtool.from_script(f"def f(x: Tensor, t: Tensor):\n    return {source}\n")
            try:
                want = eval(source, {"F": torch.nn.functional, "x": leaf, "t": torch.from_numpy(t)})  # of the names above
            except (RuntimeError, IndexError, ValueError) as error:
                with pytest.raises(irtool.Error) as raised:
                    irtool.run(graph, [x, t])
                assert str(error)[:40] in str(raised.value)
                continue
            if sizes == (0, 3) and name == "multi_margin_loss" and reduction != "none":
                continue
            (slope,) = torch.autograd.grad(want, [leaf], torch.ones_like(want))
            for _ in range(2):
                (value,) = irtool.run(graph, [x, t])
                np.testing.assert_allclose(value, want.detach().numpy(), strict=True)
                np.testing.assert_allclose(irtool.vjp(graph, [x, t], [np.ones_like(value)], [0])[0], slope.numpy(), strict=True)


@pytest.mark.parametrize("training", [True, False])
def test_normalizations(training: bool) -> None:
    x, weight, bias = normal(4, 6, 3, 3), normal(6), normal(6)
    both("native_batch_norm", x, weight, bias, normal(6), abs(normal(6)), training, 0.1, 1e-5)
    both("instance_norm", x, weight, bias, normal(6), abs(normal(6)), training, 0.1, 1e-5, False)
    mean, inverse = x.mean((0, 2, 3)), 1 / np.sqrt(x.var((0, 2, 3)) + ONE * 1e-5)
    both("native_batch_norm_backward", normal(4, 6, 3, 3), x, weight, normal(6), abs(normal(6)), mean, inverse, training, 1e-5, [True] * 3)
    both("native_group_norm", x, weight, bias, 4, 6, 9, 2, 1e-5)
    both("native_layer_norm", x, [3, 3], normal(3, 3), normal(3, 3), 1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_their_gradients(rank: int, transposed: bool) -> None:
    for groups, stride, padding, dilation in ((1, 1, 0, 1), (2, 2, 1, 1), (1, 1, 2, 2), (2, 3, 1, 2)):
        x = normal(2, 4, *[7, 6, 5][:rank])
        weight = normal(*((4, 6 // groups) if transposed else (6, 4 // groups)), *[2, 3, 2][:rank])
        extra = [int(transposed and stride > 1)] * rank
        options = ([stride] * rank, [padding] * rank, [dilation] * rank, transposed, extra, groups)
        both("convolution", x, weight, normal(6), *options)
        y = call_op("aten::convolution", [x, weight, None, *options])
        both("convolution_backward", normal(*y.shape), x, weight, [6], *options, [True] * 3)


@pytest.mark.parametrize("rank", [2, 3])
def test_pools_and_their_gradients(rank: int) -> None:
    x = normal(2, 3, *[7, 8, 9][:rank])
    for size, stride, padding, dilation, ceil in ((2, 2, 0, 1, False), (3, 2, 1, 1, True), (2, 3, 1, 2, True)):
        options = ([size] * rank, [stride] * rank, [padding] * rank)
        both(f"max_pool{rank}d_with_indices", x, *options, [dilation] * rank, ceil)
        y, places = call_op(f"aten::max_pool{rank}d_with_indices", [x, *options, [dilation] * rank, ceil])
        both(f"max_pool{rank}d_with_indices_backward", normal(*y.shape), x, *options, [dilation] * rank, ceil, places)
        for borders in (True, False):
            both(f"avg_pool{rank}d", x, *options, ceil, borders)
            y = call_op(f"aten::avg_pool{rank}d", [x, *options, ceil, borders])
            both(f"avg_pool{rank}d_backward", normal(*y.shape), x, *options, ceil, borders, None)
    both(f"adaptive_avg_pool{rank}d", x, [3] * rank)
    both(f"adaptive_max_pool{rank}d", x, [5] * rank)
    both(f"fractional_max_pool{rank}d", x, [2] * rank, [3] * rank, RNG.random((2, 3, rank)).astype(np.float32))


@pytest.mark.parametrize(("name", "rank", "corners"), [
    ("upsample_nearest1d", 1, False), ("upsample_nearest2d", 2, False), ("upsample_nearest3d", 3, False),
    ("_upsample_nearest_exact2d", 2, False), ("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True),
    ("upsample_trilinear3d", 3, True), ("upsample_bicubic2d", 2, True), ("_upsample_bilinear2d_aa", 2, True),
    ("_upsample_bicubic2d_aa", 2, True), ("_upsample_lanczos2d_aa", 2, True)])
def test_resizing(name: str, rank: int, corners: bool) -> None:
    x = normal(2, 3, *[5, 7, 4][:rank])
    for aligned in ([True], [False]) if corners else ([],):
        for sizes in ([3, 9, 8], [5, 7, 4], [10, 14, 8], [1, 2, 1], [13, 5, 7]):
            both(name, x, sizes[:rank], *aligned)
            both(f"{name}_backward", normal(2, 3, *sizes[:rank]), sizes[:rank], list(x.shape), *aligned)
        for factors in ([1.7, 0.6, 2.3], [0.5, 2.0, 1.0], [1.1, 1.3, 0.9]):
            both(f"{name}.vec", x, None, *aligned, factors[:rank])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_grid_sampling(mode: int, padding: int) -> None:
    for corners in (True, False):
        both("grid_sampler_2d", normal(2, 3, 5, 6), normal(2, 4, 3, 2) * ONE * 1.5, mode, padding, corners)
        if mode < 2:
            both("grid_sampler_3d", normal(2, 3, 5, 6, 4), normal(2, 4, 3, 2, 3), mode, padding, corners)


def test_embedding_bags() -> None:
    weight, indices, offsets = normal(10, 4), RNG.integers(0, 10, 7), np.array([0, 2, 2, 5])
    for mode in (0, 1, 2):
        for padding in (None, 3):
            both("embedding_bag.padding_idx", weight, indices, offsets, False, mode, False, None, False, padding)
            both("embedding_bag.padding_idx", weight, indices, np.array([0, 2, 7]), False, mode, False, None, True, padding)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_recurrent_nets(kind: str) -> None:
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    for layers, directions in ((1, 1), (2, 2)):
        params: list[np.ndarray] = []
        for layer in range(layers):
            for _ in range(directions):
                width = 4 if layer == 0 else 5 * directions
                params += [normal(gates * 5, width) * ONE / 3, normal(gates * 5, 5) * ONE / 3, normal(gates * 5), normal(gates * 5)]
        hidden = normal(layers * directions, 3, 5)
        state = [hidden, normal(layers * directions, 3, 5)] if kind == "lstm" else hidden
        both(f"{kind}.input", normal(6, 3, 4), state, params, True, layers, 0.0, False, directions == 2, False)
        both(f"{kind}.data", normal(8, 4), np.array([3, 2, 2, 1]), state, params, True, layers, 0.0, False, directions == 2)


def test_attention() -> None:
    q, k, v = normal(2, 3, 4, 8), normal(2, 3, 5, 8), normal(2, 3, 5, 8)
    both("scaled_dot_product_attention", q, k, v, None, 0.0, True)
    both("scaled_dot_product_attention", q, k, v, np.array([[True, False, True, True, False]] * 3 + [[False] * 5]))
    both("_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, False, attn_mask=normal(4, 5))
    x = normal(2, 4, 8)
    packed = (8, 2, normal(24, 8), normal(24), normal(8, 8), normal(8))
    both("_native_multi_head_attention", x, x, x, *packed, np.array([[0, 0, 1, 1], [0, 0, 0, 1]]).astype(bool), True, True, 1)
    norms, feed = [normal(8) for _ in range(4)], [normal(16, 8), normal(16), normal(8, 16), normal(8)]
    both("_transformer_encoder_layer_fwd", x, *packed, True, False, 1e-5, *norms, *feed)


def test_linear_algebra() -> None:
    A, B = normal(2, 4, 4), normal(2, 4, 3)
    for name, args in (("linalg_lu_factor_ex", (A,)), ("linalg_det", (A,)), ("linalg_slogdet", (A,)), ("linalg_solve", (A, B)),
                       ("linalg_matrix_exp", (A,)), ("geqrf", (A,)), ("linalg_cond", (A, 1)), ("_linalg_det", (A,)),
                       ("linalg_lstsq", (normal(5, 3), normal(5, 2))), ("triangular_solve", (B, A)), ("cdist",
                                                                                                      (normal(30, 4), normal(28, 4))),
                       ("linalg_matrix_norm", (A, 1)), ("linalg_matrix_norm.str_ord", (A, "nuc")), ("pdist", (normal(5, 3),))):
        both(name, *args)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "complex64"])
def test_borders_of_the_dtypes_that_torch_takes(mode: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for rank in (2, 3, 4, 5):
        x, pad = np.ones((3,) * rank, dtype), [1, 1] * max(1, rank - 2)
        found = []
        for call in (lambda x=x, pad=pad: torch.nn.functional.pad(torch.from_numpy(x), pad, mode).numpy(),
                     lambda x=x, pad=pad: call_op("aten::pad", [x, pad, mode, None])):
            try:
                found.append(call())
            except (RuntimeError, irtool.Error) as error:
                found.append(str(error))
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("options", ["", ", is_causal=True", ", scale=2.0", ", attn_mask=m", ", attn_mask=m.half()"])
@pytest.mark.parametrize("size", [1.0, 30.0, 300.0])
def test_gradients_of_attention_in_float16_whose_scores_are_larger(options, size):
    """They were nan: scores are computed in float32, as in torch."""
    rng = np.random.default_rng(3)
    query, key, value, cotangent = (rng.standard_normal((2, 4, 8)) * s for s in (size, size, 1, 1))
    arrays = [each.astype(np.float16) for each in (query, key, value)] + [rng.standard_normal((4, 4)).astype(np.float32)]
    leaves = [torch.tensor(each, requires_grad=True) for each in arrays]
    space = {"F": torch.nn.functional, **dict(zip("qkvm", leaves))}
    result = eval(f"F.scaled_dot_product_attention(q, k, v{options})", space)
    wanted = torch.autograd.grad(result, leaves, torch.tensor(cotangent).half(), allow_unused=True)
    graph = irtool.from_script(f"def f(q, k, v, m):\n    return F.scaled_dot_product_attention(q, k, v{options})\n", "f")
    for interpret in (False, True):
        found = irtool.vjp(graph, arrays, [cotangent.astype(np.float16)], [0, 1, 2, 3], interpret=interpret)
        for one, other, leaf in zip(found, wanted, leaves, strict=True):
            expected = torch.zeros_like(leaf) if other is None else other
            np.testing.assert_allclose(np.zeros_like(leaf.detach()) if one is None else one, expected, rtol=4e-3, atol=1e-3)
