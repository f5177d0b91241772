"""Functions of `irtool.torch.nn.functional` that are neither operators nor functions that TorchScript source can call."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ir.errors import RunError, did_you_mean
from irtool.ops.composed.reductions import reduction_number
from irtool.ops.composed.script_types import number_of
from irtool.ops.composed.several_forms import affine_grid, local_response_norm, poisson_nll_loss
from irtool.ops.tensor import call

MODES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
"""Mode of `interpolate` -> the numbers of dimensions that it can resize."""
GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def do(name: str, *args: Any) -> Any:
    """Run an operator."""
    return call(f"aten::{name}", args, {})


def reduced(loss: Any, reduction: str) -> Any:
    """The elements of a loss, or their mean or sum."""
    number = reduction_number(reduction)
    return loss if number == 0 else do("mean" if number == 1 else "sum", loss)


def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Any:
    """Resize the dimensions after the first two. mode: nearest, linear, bilinear, bicubic or trilinear."""
    count = input.dim() - 2
    if mode not in MODES:
        raise RunError(f"interpolate: mode is {mode!r}, expected nearest, linear, bilinear, bicubic or trilinear"
                       f"{did_you_mean(str(mode), MODES)}")
    if count not in MODES[mode]:
        raise RunError(f"interpolate: an input of {count + 2} dimensions is not for mode {mode}")
    sizes = [size] * count if isinstance(size, int) else size
    scales = [float(scale_factor)] * count if isinstance(scale_factor, int | float) else scale_factor
    corners = () if mode == "nearest" else (bool(align_corners),)
    return do(f"upsample_{mode}{count}d", input, sizes, *corners, scales)


def pool(name: str, count: int) -> Any:
    """A function: max pooling over `count` dimensions; with `return_indices` it also returns the flat indices of the maxima."""
    def maximum(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                return_indices: bool = False) -> Any:
        lists = [[each] * count if isinstance(each, int) else list(each) for each in (kernel_size, padding, dilation)]
        step = [] if stride is None else [stride] * count if isinstance(stride, int) else list(stride)
        return do(f"{name}_with_indices" if return_indices else name, input, lists[0], step, *lists[1:], ceil_mode)
    maximum.__name__ = name
    return maximum


def adaptive_pool(name: str, count: int) -> Any:
    """The same for windows computed from the size of the output."""
    def maximum(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        sizes = [output_size] * count if isinstance(output_size, int) else list(output_size)
        results = do(name, input, sizes)
        return results if return_indices else results[0]
    maximum.__name__ = name
    return maximum


def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    """Sample images at the coordinates in a grid, from -1 to 1."""
    return do("grid_sampler", input, grid, number_of("grid_sample: mode", mode, GRID_MODES),
              number_of("grid_sample: padding_mode", padding_mode, PADDINGS), bool(align_corners))


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A sample of the Gumbel-softmax distribution; hard: one-hot, with the gradient of the soft sample."""
    noise = -do("log", do("exponential", do("empty_like", logits)))
    soft = do("softmax", (logits + noise) / tau, dim)
    if not hard:
        return soft
    places = do("argmax", soft, dim, True)
    ones = do("scatter", do("zeros_like", soft), dim, places, 1.0)
    return ones - do("detach", soft) + soft


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """The negative log likelihood of normal distributions with means `input` and variances `var`."""
    least = do("clamp_min", do("detach", var), eps)
    var = var + (least - do("detach", var))      # bounded below; the gradient ignores the bound
    loss = 0.5 * (do("log", var) + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resize by the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resize two dimensions by bilinear interpolation with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, margin: float = 1.0, swap: bool = False,
                                      distance_function: Callable[[Any, Any], Any] | None = None, reduction: str = "mean") -> Any:
    """The loss max(0, d(anchor, positive) - d(anchor, negative) + margin), for a distance d of two tensors (by default Euclidean)."""
    reduction_number(reduction)
    if margin <= 0:
        raise RunError(f"margin must be greater than 0, got {margin}")
    ranks = anchor.dim(), positive.dim(), negative.dim()
    if len(set(ranks)) > 1:
        raise RunError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                       f"anchor {ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs")
    distance = distance_function or (lambda a, b: do("pairwise_distance", a, b))
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = do("minimum", far, distance(positive, negative))
    return reduced(do("clamp_min", margin + near - far, 0), reduction)


FUNCTIONS = {
    "interpolate": interpolate, "upsample": interpolate, "grid_sample": grid_sample, "affine_grid": affine_grid,
    "gumbel_softmax": gumbel_softmax, "poisson_nll_loss": poisson_nll_loss, "gaussian_nll_loss": gaussian_nll_loss,
    "local_response_norm": local_response_norm, "upsample_nearest": upsample_nearest, "upsample_bilinear": upsample_bilinear,
    "triplet_margin_with_distance_loss": triplet_margin_with_distance_loss,
    **{f"max_pool{count}d": pool(f"max_pool{count}d", count) for count in (1, 2, 3)},
    **{f"adaptive_max_pool{count}d": adaptive_pool(f"adaptive_max_pool{count}d", count) for count in (1, 2, 3)},
}
"""Functions by name; they take precedence over operators."""
