"""Writes, recorded: into arrays that a kernel made itself, and by in-place operators into their target."""
from __future__ import annotations

import math
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.checks import fit_fill, repeats
from irtool.ops.symbols.recorder import Recorder, StandIn, Step, Untraceable, is_traced
from irtool.ops.symbols.ufuncs import dtype_and_shape, prepared


def trace_into(recorder: Recorder, ufunc: Any, inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> StandIn:
    """`x += y`, for an x that the kernel made itself."""
    target = inputs[0]
    if len(outs) != 1 or outs[0] is not target or not is_traced(target) or ufunc.signature is not None or ufunc.nout != 1:
        raise Untraceable(f"{ufunc.__name__} with out")
    if not any(step.out is target.root for step in recorder.steps):
        raise Untraceable("writes")
    if dtype_and_shape(ufunc, inputs) != (target.dtype, target.shape):
        raise Untraceable("writes with a conversion")
    recorder.steps.append(Step(ufunc, prepared(inputs), {}, target, "into"))
    written: StandIn = target
    return written


def trace_assignment(target: StandIn, value: Any) -> None:
    """`x[...] = y`, for a part of an array that the kernel made itself; y has the part's dtype and shape."""
    if not is_traced(value) or (target.dtype, target.shape) != (value.dtype, value.shape) or target.dtype.kind == "b" \
            or value.root is target.root or not any(step.out is target.root for step in target.recorder.steps):
        raise Untraceable("writes")
    target.recorder.steps.append(Step(np.positive, (value,), {}, target, "into"))


def spread(value: Any, out: Any) -> None:
    """Write a number or an array into all of another array of the same dtype, with broadcasting."""
    if type(value) is np.ndarray and np.may_share_memory(value, out):
        value = value.copy()        # NumPy would make a copy as large as the other array
    np.copyto(out, value)


def trace_copy(target: Any, value: Any, is_number: bool) -> Any:
    """Record `copy_`, `fill_` or `zero_`: a value of the target's dtype is broadcast and written into the target. Returns the target.

    is_number: the value must be a number, or 0-d.
    """
    if is_number and is_traced(value) and value.ndim:
        raise Untraceable("several numbers")
    if is_traced(value) and value.shape == target.shape and value.root is not target.root:
        return trace_write(target, value)
    if not is_traced(target) or target.dtype.kind not in "fiu" or repeats(target):
        raise Untraceable("writes")
    if type(value) is int or type(value) is float and target.dtype.kind == "f":
        if is_number:
            try:
                fit_fill(value, target.dtype, math.prod(target.shape))
            except RunError:
                raise Untraceable("a number that does not fit") from None
        value = np.array(value, target.dtype)
    elif not is_traced(value) or value.dtype != target.dtype or np.broadcast_shapes(value.shape, target.shape) != target.shape:
        raise Untraceable("writes with a conversion")
    elif value.root is target.root:
        value = value.copy()
    target.recorder.steps.append(Step(spread, (value,), {}, target, "into"))
    return target


def trace_write(target: Any, result: Any) -> Any:
    """Record the write of an in-place operator: `result`, computed by the operator without `_`, goes into the target, by the last step
    itself or by a copy. Returns the target."""
    if not is_traced(target) or not is_traced(result) or (target.dtype, target.shape) != (result.dtype, result.shape) \
            or result.root is target.root:
        raise Untraceable("writes")
    if repeats(target):
        raise Untraceable("writes one place twice")
    steps = target.recorder.steps
    last = steps[-1] if steps else None
    if last is not None and last.out is result and last.way == "ufunc" and result.meta == target.meta:
        steps[-1] = Step(last.function, last.args, last.named, target, "into")
    elif target.dtype.kind == "b":
        raise Untraceable("writes bools")
    else:
        steps.append(Step(np.positive, (result,), {}, target, "into"))
    return target
