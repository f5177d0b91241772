"""Checks and conversions that many kernels begin with: dimensions, dtypes, memory, and torch's errors about them."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.schema import MISSING, Schema
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, real_of, title, wrap_dim


def check_device(device: Any) -> None:
    """Raises UnsupportedError for a device other than the CPU; in runs on CuPy arrays, other than their GPU, for which "cpu" may stand."""
    if device is not None and not str(device).startswith(("cpu",) if current_namespace().__name__ == "numpy" else ("cpu", "cuda")):
        raise UnsupportedError(f"device {device} is not supported")


def refuse(kernel: str, array: Any) -> NoReturn:
    """torch's error for a dtype that a kernel does not support."""
    raise RunError(f"\"{kernel}\" not implemented for '{title(array.dtype)}'", code="E0409")


def refuse_nothing() -> NoReturn:
    """Raises torch's error for the first weight of none, for which convolutions and normalizations of nothing ask."""
    raise RunError("select(): index 0 out of range for tensor of size [0] at dimension 0")


def only(kernel: str, kinds: str, *arrays: Any) -> None:
    """Raises torch's error for arrays whose NumPy dtype kind (`b` bool, `i` `u` integers, `f` floats, `c` complex) is not among `kinds`."""
    for array in arrays:
        if array.dtype.kind not in kinds:
            refuse(kernel, array)


def same_dtype(what: str, *tensors: Any) -> None:
    """Raises torch's error unless all tensors have one dtype."""
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise RunError(f"{what}: expected operands to have the same dtype, but got: {title(tensors[0].dtype)} != {title(tensor.dtype)}",
                           code="E0409")


def letter(dtype: Any) -> str:
    """`b` bool, `u` uint8, `i` int8, int16 and int32, `l` int64, `h` float16, `f` float32 and float64, `c` complex."""
    kind: str = dtype.kind
    return "l" if kind == "i" and dtype.itemsize == 8 else "h" if kind == "f" and dtype.itemsize == 2 else kind


def overlaps(array: Any) -> bool:
    """Do elements of an array share memory, as those of an expanded tensor do?"""
    return bool(array.size) and 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


OVERLAP = "unsupported operation: more than one element of the written-to tensor refers to a single memory location. " \
          "Please clone() the tensor before performing the operation."


def refuse_overlap(target: Any) -> None:
    """Raises torch's error for a write into an array whose elements share memory, as those of an expanded tensor do."""
    if overlaps(target):
        raise RunError(OVERLAP)


def refuse_growth(target: Any, shape: tuple[int, ...]) -> None:
    """Raises torch's error for writing what operands broadcast to into a tensor of another shape."""
    if target.shape != shape:
        raise RunError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}", code="E0407")


def repeats(array: Any) -> bool:
    """Are several elements at one address, as those of overlapping windows (`unfold`, `as_strided`) are?"""
    reach, steps = 0, sorted([(abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1])
    for step, extent in steps:
        if step <= reach:       # perhaps: then addresses are counted
            places = sum(np.ix_(*[step * np.arange(extent) for step, extent in steps]))
            return bool(np.unique(places).size < array.size)
        reach += step * (extent - 1)
    return False


def refuse_windows(kind: str, target: Any) -> None:
    """Raises, for a write into an array of which several elements are at one address, torch's error for an expanded one, and
    UnsupportedError for overlapping windows."""
    refuse_overlap(target)
    if repeats(target):
        raise UnsupportedError(f"{kind} into overlapping windows is not supported: results depend on the order of the writes")


PARTIAL = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. " \
          "Please clone() the tensor before performing the operation."


def refuse_partial_overlap(target: Any, operands: Iterable[Any], or_whole: bool = False) -> None:
    """Raises torch's error for a write into an array of which a part (`or_whole`: or all) is read at the same time: `x[1:].add_(x[:-1])`.

    As torch (aten/src/ATen/MemoryOverlap.cpp), only for tensors without gaps.
    """
    if type(target) is not np.ndarray:
        return
    if or_whole and any(other is target for other in operands):
        raise RunError(PARTIAL)
    if not target.size:
        return
    low, high = memory_span(target)
    for other in operands:
        if isinstance(other, list | tuple):
            refuse_partial_overlap(target, other, or_whole)
        if not isinstance(other, np.ndarray) or not other.size or other is target and not or_whole:
            continue
        start, end = memory_span(other)
        is_whole = (start, end) == (low, high)
        is_same = is_whole and has_strides_of(other, target) and not or_whole
        if start < high and low < end and not is_same and is_dense(target) and is_dense(other):
            raise RunError(PARTIAL)


def expands(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Can a tensor of `shape` be expanded to the shape `whole`?"""
    return len(shape) <= len(whole) and all(size in (1, extent) for size, extent in zip(reversed(shape), reversed(whole), strict=False))


def refuse_own_elements(kind: str, is_so: bool) -> None:
    """Raises UnsupportedError if an operator may read elements that it has written."""
    if is_so:
        raise UnsupportedError(f"{kind} of elements of the tensor itself is not supported: torch reads some that it has written before")


def memory_span(array: Any) -> tuple[int, int]:
    """The lowest and highest address of an array's elements."""
    return np.lib.array_utils.byte_bounds(array)


def has_strides_of(a: Any, b: Any) -> bool:
    """Are the strides equal? torch compares those of dimensions of size 1, too; if NumPy made one up (0), any stride is equal to it."""
    return a.ndim == b.ndim and all(x == y or size == 1 and 0 in (x, y) for size, x, y in zip(a.shape, a.strides, b.strides, strict=True))


def steps(array: Any) -> list[tuple[int, int]]:
    """Sizes and strides, without dimensions of size 1."""
    return [(size, step) for size, step in zip(array.shape, array.strides, strict=True) if size != 1]


def is_dense(array: Any) -> bool:
    """Has an array, in some order of its dimensions, neither gaps nor elements that share memory?"""
    expected = array.itemsize
    for size, step in sorted(steps(array), key=lambda each: each[1]):
        if step != expected:
            return False
        expected *= size
    return True


def wrap_dims(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """`dims` counted from the front, as an axis tuple for NumPy; None and [] mean all, which is none for a 0-dim array."""
    if dims is None:
        return tuple(range(ndim))
    wrapped = tuple([wrap_dim(dim, ndim) for dim in ((dims,) if isinstance(dims, int) else dims)])
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RunError(f"dim {dim} appears multiple times in the list of dims")
    if not wrapped or ndim == 0:
        return tuple(range(ndim))
    return wrapped


def widen(xp: Any, array: Any) -> Any:
    """float16 as float32, in which composed kernels and reductions compute; they round once, at the end."""
    return array.astype(xp.float32) if array.dtype == xp.float16 else array


def row_major(xp: Any, array: Any) -> Any:
    """The array in row-major order; itself if it is. (ascontiguousarray would make a 0-d array 1-d.)"""
    return xp.asarray(array, order="C")


def in_memory_order(xp: Any, array: Any, order: Sequence[int]) -> Any:
    """The array with its dimensions in this order in memory, the last one innermost; itself if it is so."""
    turned = array.transpose(order)
    laid = row_major(xp, turned)
    return array if laid is turned else laid.transpose([order.index(place) for place in range(array.ndim)])


def channels_last(x: Any, least_rank: int = 4) -> Sequence[int]:
    """(N, C, *sizes) -> the dimensions, with C last if x is channels-last in memory, which torch defines for two and three sizes."""
    rank, least = x.ndim, 0
    if not least_rank <= rank <= 5 or 0 in x.shape:
        return range(rank)
    for place in (1, *range(rank - 1, 1, -1), 0):
        if x.strides[place] < least or place == 0 and least == x.strides[1]:
            return range(rank)
        least = x.strides[place] * x.shape[place]
    return [0, *range(2, rank), 1]


def common_order(arrays: Sequence[Any]) -> Sequence[int]:
    """The dimensions of arrays, with C last if all of them are channels-last in memory."""
    orders = [list(channels_last(each)) for each in arrays]
    return orders[0] if all(order == orders[0] for order in orders) else range(max(each.ndim for each in arrays))


C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "float16": "c10::Half", "bool": "bool",
           "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "uint8": "unsigned char", "int8": "signed char",
           "int16": "short int"}


def c_name(dtype: Any) -> str:
    """C++'s name of a dtype, which some of torch's messages have."""
    return C_NAMES.get(dtype.name, str(dtype.name))


NUMBER_NAMES = {**C_NAMES, "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int64": "int64_t"}


def fit(number: Any, dtype: Any) -> Any:
    """The number, as a real one for a real dtype. Raises torch's error for a number that the dtype cannot represent (c10::overflows):
    infinities and nan fit floats, negative numbers wrap in unsigned dtypes, anything fits bool."""
    if dtype.kind == "b" or isinstance(number, bool):
        return number
    parts = [number.real, number.imag] if isinstance(number, complex) else [number]
    if dtype.kind == "c":
        holds = all(_holds(part, real_of(dtype)) for part in parts)
    else:
        holds = not any(parts[1:]) and _holds(parts[0], dtype)
    if not holds:
        raise RunError(f"value cannot be converted to type {NUMBER_NAMES.get(dtype.name, dtype.name)} without overflow")
    return number if dtype.kind == "c" else parts[0]


def fit_fill(number: Any, dtype: Any, count: int = 1) -> Any:
    """The number that a tensor of this dtype and of `count` elements is filled with. As `fit`, but what is too large for float16 becomes an
    infinity in a tensor of one element, as in torch, which has a kernel of its own for these."""
    return float(fit(number, np.dtype(np.float64))) if dtype == np.float16 and count == 1 else fit(number, dtype)


def _holds(number: float, dtype: Any) -> bool:
    if dtype.kind in "iu":
        highest: float = (1 << 8 * dtype.itemsize - (dtype.kind == "i")) - 1
        lowest: float = -highest - 1 if dtype.kind == "i" else -highest if isinstance(number, int) else 0
        return lowest <= number <= (highest if isinstance(number, int) else float(highest))
    return dtype.itemsize == 8 or not math.isfinite(number) or abs(number) <= (65504 if dtype.itemsize == 2 else 3.4028234663852886e38)


BLOCK, BLOCKS = 1 << 14, 16
"""The number of elements of rows that are computed at once, if that takes as much memory again; and the largest number of such blocks."""


def row_blocks(x: Any, length: int) -> list[Any]:
    """A new row-major array, as views of some rows of `length` each; one view for a small array."""
    rows = x.reshape(-1, length)
    few = max(BLOCK // length, -(-rows.shape[0] // BLOCKS), 1)
    return [rows[at:at + few] for at in range(0, rows.shape[0], few)]


def bind(schema: Schema, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """One value per argument: positional ones in order around the named ones, then defaults. Raises RunError for a wrong number or name."""
    values: list[Any] = []
    rest = iter(args)
    for argument in schema.arguments:
        if argument.name in named:
            values.append(named[argument.name])
            continue
        value = next(rest, MISSING)
        if value is MISSING:
            value = argument.default
            if value is MISSING:
                raise RunError(f"{schema.name}() is missing value for argument '{argument.name}'", code="E0418")
        values.append(value)
    unknown = [name for name in named if name not in schema.positions]
    if unknown:
        raise RunError(f"{schema.name}() has no argument '{unknown[0]}'", code="E0418")
    surplus = list(rest)
    if surplus and not schema.is_vararg:
        raise RunError(f"{schema.name}() expected at most {len(schema.arguments)} argument(s) but received {len(args) + len(named)}",
                       code="E0418")
    return values + surplus
