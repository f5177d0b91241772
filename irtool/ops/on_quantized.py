"""Operators of plain tensors on quantized ones: views and maxima of the integers, and operators with a kernel of their own.

torch dispatches these by operand: `aten::relu` of a quantized tensor is another function than that of floats. An operator that is in no
table here refuses quantized tensors.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.kinds import not_supported
from irtool.ops.array_library import np
from irtool.ops.arrays import to_number
from irtool.ops.kernels import quantized_pointwise
from irtool.ops.kernels.quantized_pointwise import sigmoid
from irtool.ops.quantized import HELD, Quantized, limits, rounded

Run = Callable[[list[Any]], Any]
cut: Callable[..., Quantized] = quantized_pointwise.cut
mapped: Callable[..., Quantized] = quantized_pointwise.mapped
ON_INTEGERS = frozenset("""
    aten::view aten::reshape aten::flatten aten::transpose aten::permute aten::slice aten::select aten::unsqueeze aten::squeeze
    aten::contiguous aten::clone aten::detach aten::cpu aten::expand aten::narrow aten::t aten::alias aten::view_as aten::reshape_as
    aten::chunk aten::split aten::split_with_sizes aten::unbind aten::repeat aten::flip aten::movedim aten::swapaxes aten::unflatten
    aten::max_pool1d aten::max_pool2d aten::max_pool3d aten::quantized_max_pool1d aten::quantized_max_pool2d aten::pixel_shuffle
    aten::channel_shuffle
""".split())
"""Kinds that move integers, or choose the largest; results have the scale of the operand."""
AVERAGES = frozenset(("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d", "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d",
                      "aten::adaptive_avg_pool3d"))
"""Kinds that average windows of the integers minus the zero point, exactly in float64."""
NEAREST = frozenset(("aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d"))
"""Kinds that repeat elements, and whose kernels accept only floats."""
PLAIN = frozenset("""
    aten::size aten::dim aten::numel aten::len aten::stride aten::is_contiguous aten::storage_offset aten::sym_size aten::sym_numel
    prim::shape prim::device prim::layout prim::is_cuda prim::is_cpu prim::is_sparse prim::requires_grad aten::requires_grad
    aten::element_size aten::is_complex aten::is_floating_point
""".split())
"""Kinds that ask about sizes and indices, whose results are no tensors."""


def call_on_quantized(kind: str, run: Run, args: list[Any]) -> Any:
    """The result of an operator of plain tensors for these arguments, a quantized tensor among them. Raises UnsupportedError.

    run: the operator, on plain tensors.
    """
    first = args[0]
    base = kind[:-1] if kind.endswith("_") and not kind.endswith("__") else kind
    if not isinstance(first, Quantized) or any(type(each) in HELD for each in args[1:]):
        raise not_supported(kind, f"{kind} of quantized tensors is not supported yet")
    handler = ON_QUANTIZED.get(base)
    if handler is not None:
        result = handler(first, *args[1:])
    elif kind in AVERAGES:
        return averaged(first, lambda steps: run([steps, *args[1:]]))
    elif kind in NEAREST and first.axis is None:
        return first.with_ints(run([first.ints.astype(np.float64), *args[1:]]).astype(first.ints.dtype))
    elif kind in PLAIN:
        return run([first.ints, *args[1:]])
    elif kind in ON_INTEGERS and first.axis is None:
        result = run([first.ints, *args[1:]])
        return [first.with_ints(each) for each in result] if isinstance(result, list) else first.with_ints(result)
    else:
        raise not_supported(kind, f"{kind} of {'quantized tensors' if first.axis is None else 'tensors quantized per channel'} "
                                  "is not supported yet")
    if base is kind:
        return result
    if result.scale != first.scale or result.zero_point != first.zero_point:
        raise UnsupportedError(f"{kind} of quantized tensors is not supported: the result has another scale")
    first.ints[...] = result.ints
    return first


# ---- activations, for which torch chooses the scale
def _between(x: Quantized, low: float, high: float) -> tuple[float, int]:
    """The scale and zero point of results between two numbers."""
    least, most = limits(x.name)
    scale = (high - low) / (most - least + 1)
    return scale, round(least - low / scale)


def _sigmoid(x: Quantized) -> Quantized:
    return mapped(x, sigmoid, *_between(x, 0.0, 1.0))


def _tanh(x: Quantized) -> Quantized:
    return mapped(x, np.tanh, *_between(x, -1.0, 1.0))


def _hardsigmoid(x: Quantized) -> Quantized:
    def hardsigmoid(numbers: Any) -> Any:
        return np.minimum(np.maximum(numbers + np.float32(3), np.float32(0)), np.float32(6)) / np.float32(6)
    return mapped(x, hardsigmoid, *_between(x, 0.0, 1.0))


def _threshold(x: Quantized, threshold: float, value: float) -> Quantized:
    return mapped(x, lambda numbers: np.where(numbers > np.float32(threshold), numbers, np.float32(value)))


def _leaky_relu(x: Quantized, slope: float) -> Quantized:
    return mapped(x, lambda numbers: np.where(numbers > 0, numbers, numbers * np.float32(slope)))


# ---- means
def averaged(x: Quantized, average: Callable[[Any], Any]) -> Quantized:
    """A quantized tensor of means of integers, with the operand's scale."""
    x = x.whole("mean")
    means = average(x.shifted().astype(np.float64))
    return x.with_ints(rounded(means.astype(np.float32) + np.float32(x.zero_point), 0, x.name))     # ties are those of the integers


def _mean(x: Quantized, dim: list[int] | None, keepdim: bool, dtype: int | None) -> Quantized:
    if dtype is not None and dtype != x.dtype:
        raise RunError("mean of a quantized tensor has its dtype", code="E0409")
    axes = tuple(dim) if dim else None
    return averaged(x, lambda steps: steps.mean(axes, keepdims=keepdim))


def _mean_of_all(x: Quantized, dtype: int | None) -> Quantized:
    return _mean(x, None, False, dtype)


def _number(x: Quantized) -> float:
    """The number that the only integer stands for."""
    return float(to_number(x.dequantize()))


def _to(x: Quantized, *args: Any) -> Quantized:
    """`x.to(dtype)` of the dtype it has; `x.to(device)`."""
    if any(isinstance(each, int) and not isinstance(each, bool) and each != x.dtype for each in args[:2]):
        raise UnsupportedError("aten::to of a quantized tensor in another dtype is not supported: dequantize() gives the numbers")
    return x


ON_QUANTIZED: Mapping[str, Callable[..., Any]] = {
    "prim::dtype": lambda x: int(x.dtype), "prim::is_quantized": lambda x: True, "aten::is_quantized": lambda x: True, "aten::to": _to,
    "aten::relu": lambda x: cut(x, 0, None), "aten::relu6": lambda x: cut(x, 0, 6), "aten::hardtanh": cut, "aten::clamp": cut,
    "aten::clamp_min": lambda x, low: cut(x, low, None), "aten::clamp_max": lambda x, high: cut(x, None, high),
    "aten::sigmoid": _sigmoid, "aten::tanh": _tanh, "aten::hardsigmoid": _hardsigmoid, "aten::threshold": _threshold,
    "aten::leaky_relu": _leaky_relu, "aten::mean": lambda x, *args: (_mean if len(args) == 3 else _mean_of_all)(x, *args),
    **dict.fromkeys(("aten::item", "aten::ScalarImplicit", "aten::FloatImplicit", "aten::Float"), _number),
    "aten::dropout": lambda x, p, train: x,
}
"""Kind -> what it gives for a quantized tensor and its other arguments."""
