"""Elementwise functions and products of matrices: the dtype, shape and strides of their results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of
from irtool.ops.symbols.recorder import Recorder, StandIn, Untraceable, is_traced


def trace_ufunc(recorder: Recorder, ufunc: Any, inputs: tuple[Any, ...]) -> StandIn:
    """Record an elementwise function, or a product of matrices."""
    if ufunc is np.matmul:
        return trace_matmul(recorder, *inputs)
    if ufunc.signature is not None or ufunc.nout != 1:
        raise Untraceable(ufunc.__name__)
    dtype, shape = dtype_and_shape(ufunc, inputs)
    return recorder.note(ufunc, prepared(inputs), {}, Meta(dtype, shape, layout_of(shape, dtype, inputs)), "ufunc")


def dtype_and_shape(function: Any, inputs: Sequence[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape of an elementwise function's result. Raises Untraceable for an operand that is neither array nor number."""
    with np.errstate(all="ignore"):
        dtype = np.asarray(function(*[tiny_of(each) for each in inputs])).dtype
    return dtype, np.broadcast_shapes(*[each.shape for each in inputs if hasattr(each, "shape")])


def prepared(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands, with Python numbers beside arrays of one floating-point dtype as 0-d arrays of that dtype, as NumPy would convert
    them in every call."""
    dtypes = {each.dtype for each in inputs if hasattr(each, "dtype")}
    if len(dtypes) != 1:
        return inputs
    (dtype,) = dtypes
    if dtype.kind != "f":
        return inputs
    return tuple([np.array(each, dtype) if type(each) in (int, float) else each for each in inputs])


def tiny_of(value: Any) -> Any:
    """An array of the operand's dtype without elements (with one, if it is 0-d): enough to learn the dtype of a result."""
    if is_traced(value) or type(value) is np.ndarray:
        return np.ones((), value.dtype) if not value.ndim else np.empty((0,), value.dtype)
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    raise Untraceable(f"an operand that is {type(value).__name__}")


def layout_of(shape: tuple[int, ...], dtype: np.dtype[Any], operands: Sequence[Any]) -> tuple[int, ...]:
    """The strides that NumPy gives the result of an elementwise function of these operands."""
    plain = contiguous_strides(shape, dtype.itemsize)
    metas = [meta_of(each) for each in operands if (is_traced(each) or type(each) is np.ndarray) and each.ndim]
    if len(shape) < 2 or all(meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize) for meta in metas):
        return plain
    flags: Any = [["readonly"]] * len(metas) + [["writeonly", "allocate"]]
    dtypes: Any = [None] * len(metas) + [dtype]
    iterator = np.nditer([*[dummy(meta) for meta in metas], None], ["zerosize_ok", "refs_ok"], flags, op_dtypes=dtypes, itershape=shape)
    strides: tuple[int, ...] = iterator.operands[-1].strides
    return strides


def trace_matmul(recorder: Recorder, a: Any, b: Any) -> StandIn:
    """Record a product of matrices, vectors or stacks of matrices."""
    if not (hasattr(a, "ndim") and hasattr(b, "ndim")) or a.ndim < 1 or b.ndim < 1 or a.ndim == b.ndim == 1:
        raise Untraceable("matmul")
    if a.dtype != b.dtype:
        raise Untraceable("matmul of two dtypes")
    left = a.shape if a.ndim > 1 else (1, *a.shape)
    right = b.shape if b.ndim > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise Untraceable("matmul")
    shape = (*np.broadcast_shapes(left[:-2], right[:-2]), *((left[-2],) if a.ndim > 1 else ()), *((right[-1],) if b.ndim > 1 else ()))
    function = np.dot if is_plain_product(a, b) else np.matmul
    return recorder.note(function, (a, b), {}, fresh_meta(a.dtype, shape), "out" if shape else "fresh")


def is_plain_product(a: Any, b: Any) -> bool:
    """Are the operands two matrices for which np.dot makes the same call of BLAS as np.matmul, with less overhead?"""
    return (a.ndim == b.ndim == 2 and a.dtype.kind == "f" and a.dtype.itemsize >= 4 and min(*a.shape, *b.shape) >= 2
            and all(x.flags.c_contiguous or x.flags.f_contiguous for x in (a, b)))
