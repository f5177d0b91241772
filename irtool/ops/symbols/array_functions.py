"""NumPy's functions that are no ufuncs, on arrays without elements: choices, reductions, joining, views."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.select import chooses_bits, select
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of
from irtool.ops.symbols.probing import probe
from irtool.ops.symbols.recorder import Recorder, StandIn, Untraceable, is_traced
from irtool.ops.symbols.ufuncs import dtype_and_shape, layout_of


def trace_where(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
    """np.where with three arguments."""
    if named or len(args) != 3:
        raise Untraceable("where")
    dtype, shape = dtype_and_shape(np.where, args)
    layout = Meta(dtype, shape, layout_of(shape, dtype, args))
    if chooses_bits(dtype, math.prod(shape)) and all(getattr(each, "dtype", dtype) == dtype for each in args[1:]) and is_mask(args[0]):
        return recorder.note(select, args, {}, layout, "ufunc")
    return recorder.note(np.where, args, {}, layout, "fresh")


def is_mask(value: Any) -> bool:
    """Is the value a traced array of bools?"""
    return is_traced(value) and value.dtype == np.bool_ and value.ndim > 0


def reduction(function: Any, x: StandIn, axis: Any, dtype: Any, out: Any, keepdims: Any) -> StandIn:
    """Record a sum, mean or extreme over some dimensions of a row-major array."""
    if out is not None or not isinstance(keepdims, bool):
        raise Untraceable("reduction")
    if not x.meta.is_contiguous:
        options = {"axis": axis, "keepdims": keepdims}
        return probe(x.recorder, function, (x,), options if dtype is None else {**options, "dtype": np.dtype(dtype)})
    axes = tuple(range(x.ndim)) if axis is None else tuple([axis] if isinstance(axis, int) else axis)
    axes = tuple([int(each) % x.ndim for each in axes]) if x.ndim else ()
    if function in (np.ndarray.max, np.ndarray.min) and not x.size:
        raise Untraceable("extreme of nothing")
    shape = tuple([1 if at in axes else extent for at, extent in enumerate(x.shape) if keepdims or at not in axes])
    named: dict[str, Any] = {"axis": axis if axis is None or isinstance(axis, int) else tuple(axis)}
    if dtype is not None:
        named["dtype"] = np.dtype(dtype)
    tried = dict(named)
    if keepdims:
        named["keepdims"] = True
    if axis is not None:
        tried["axis"] = 0
    with np.errstate(all="ignore"):
        result_dtype = np.asarray(function(np.ones((1,), x.dtype), **tried)).dtype
    return x.recorder.note(function, (x,), named, fresh_meta(result_dtype, shape), "fresh")


def trace_reduction(method: Any) -> Callable[..., StandIn]:
    """The function for np.sum(x, ...), which is x.sum(...), and for its kin."""
    def rule(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
        if not is_traced(args[0]):
            raise Untraceable("reduction")
        result: StandIn = getattr(args[0], method)(*args[1:], **named)
        return result
    return rule


def trace_concatenate(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
    """np.concatenate and np.stack of row-major arrays of one dtype."""
    items, axis = list(args[0]), args[1] if len(args) > 1 else named.pop("axis", 0)
    if len(args) > 2 or named:
        raise Untraceable("concatenate")
    first = items[0]
    if not all(is_traced(each) and each.meta.is_contiguous and each.dtype == first.dtype and each.ndim == first.ndim for each in items):
        return probe(recorder, function, (tuple(items), axis), {})
    if function is np.stack:
        axis = axis % (first.ndim + 1)
        if any(each.shape != first.shape for each in items):
            raise Untraceable("stack")
        shape = (*first.shape[:axis], len(items), *first.shape[axis:])
    else:
        axis = axis % first.ndim
        if any(each.shape[:axis] + each.shape[axis + 1:] != first.shape[:axis] + first.shape[axis + 1:] for each in items):
            raise Untraceable("concatenate")
        shape = (*first.shape[:axis], sum(each.shape[axis] for each in items), *first.shape[axis + 1:])
    return recorder.note(function, (tuple(items), axis), {}, fresh_meta(first.dtype, shape), "out")


def trace_view(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
    """A function whose result is a view: transpose, moveaxis, expand_dims, ..."""
    if not is_traced(args[0]) or named.keys() - {"axis", "axes", "source", "destination"}:
        raise Untraceable(function.__name__)
    x = args[0]
    if any(is_traced(each) for each in (*args[1:], *named.values())):
        raise Untraceable(function.__name__)
    result = meta_of(function(dummy(x.meta), *args[1:], **named))
    if function is np.expand_dims:      # the same call, but shorter
        function, args, named = np.ndarray.reshape, (x, result.shape), {}
    view: StandIn = x.recorder.note(function, args, named, result, "view", x.root)
    return view


def trace_sharing(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """np.may_share_memory. Different operands of the kernel count as sharing no memory."""
    return is_traced(args[0]) and is_traced(args[1]) and bool(args[0].root is args[1].root)


def trace_reshape(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
    """np.reshape."""
    if named or len(args) != 2:
        raise Untraceable("reshape")
    result: StandIn = args[0].reshape(args[1])
    return result


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: trace_where, np.concatenate: trace_concatenate, np.stack: trace_concatenate, np.may_share_memory: trace_sharing,
    np.sum: trace_reduction("sum"), np.mean: trace_reduction("mean"), np.max: trace_reduction("max"), np.amax: trace_reduction("max"),
    np.min: trace_reduction("min"), np.amin: trace_reduction("min"), np.reshape: trace_reshape,
    **dict.fromkeys((np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze), trace_view),
    np.shape: lambda recorder, function, args, named: args[0].shape,
    np.ndim: lambda recorder, function, args, named: args[0].ndim,
}
"""NumPy's functions that can be recorded."""
