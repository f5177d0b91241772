"""Facts about shapes in tensor types: contiguous strides, broadcasting."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from irtool.ir.types import TensorType, Type, contiguous_strides, spell, tensor_type

if TYPE_CHECKING:
    from irtool.ir.dialect import Dialect


def contiguous(type: Type, dialect: Dialect) -> Type:
    """A tensor type with the strides of a fresh tensor; any other type, and a tensor type of unknown sizes, unchanged."""
    if not isinstance(type, TensorType) or type.shape is None or type.dtype is None:
        return type
    strides = contiguous_strides(type.shape)
    if type.strides is None and type.marks is None or type.strides == strides:
        return type
    return spell(tensor_type(type.dtype, type.sizes, strides, type.requires_grad, type.device), dialect)


def shape_of(type: Type) -> tuple[int, ...] | None:
    """The sizes, if all are known; else None."""
    return type.shape if isinstance(type, TensorType) else None


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape to which several shapes broadcast; None if they do not fit."""
    out: list[int] = []
    for shape in shapes:
        if len(shape) > len(out):
            out = [1] * (len(shape) - len(out)) + out
        for i, size in enumerate(shape, len(out) - len(shape)):
            if out[i] == 1:
                out[i] = size
            elif size not in (1, out[i]):
                return None
    return tuple(out)


Layout = tuple[Sequence[int], Sequence[int]]
"""Sizes and strides of a tensor, in elements."""


def pointwise_strides(sizes: Sequence[int], operands: Sequence[Layout]) -> tuple[int, ...]:
    """The strides of the result of a pointwise operator whose operands broadcast to `sizes`: dimensions have the order in memory that
    they have in the operands, of which the first counts most (torch's TensorIterator)."""
    plain = tuple(range(len(sizes)))
    if len(sizes) < 2:
        return _strides_in(sizes, plain)
    if all(tuple(shape) == tuple(sizes) for shape, _ in operands):
        for layout in (plain, CHANNELS_LAST):
            if len(layout) == len(sizes) and all(_lies_in(layout, *operand) for operand in operands):
                return _strides_in(sizes, layout)
        layouts = {tuple(strides) for _, strides in operands}
        if len(layouts) == 1 and _has_no_gaps(*operands[0]):
            return layouts.pop()
    spread = [_spread(sizes, *operand) for operand in operands]
    order = list(reversed(plain))       # innermost first
    for start in range(1, len(order)):
        here = start
        for previous in range(start - 1, -1, -1):
            comparison = _compare(sizes, spread, order[previous], order[here])
            if comparison > 0:
                order[previous], order[here], here = order[here], order[previous], previous
            elif comparison < 0:
                break
    return _strides_in(sizes, order[::-1])


def view_strides(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The strides of a view that only inserts dimensions of size 1, which get those that torch gives them
    (aten/src/ATen/TensorUtils.cpp)."""
    result, at = [1] * len(shape), len(shape) - 1
    # of a run of dimensions without gaps: its innermost stride, its elements, and those of the dimensions of the view so far
    step, last, count = strides[-1] if strides else 1, 1, 1
    for dim in reversed(range(len(sizes))):
        last *= sizes[dim]
        if dim and (sizes[dim - 1] == 1 or strides[dim - 1] == last * step):
            continue
        while at >= 0 and (count < last or shape[at] == 1):
            result[at] = count * step
            count *= shape[at]
            at -= 1
        step, last, count = strides[dim - 1], 1, 1
    return result


def expanded_strides(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The strides of a tensor expanded to `shape` (aten/src/ATen/ExpandUtils.cpp)."""
    result: list[int] = []
    for place in reversed(range(len(shape))):
        own = place - len(shape) + len(sizes)
        step = strides[own] if own >= 0 else shape[place + 1] * result[0] if result else 1
        result.insert(0, step if (sizes[own] if own >= 0 else 1) == shape[place] else 0)
    return result


CHANNELS_LAST = (0, 2, 3, 1)


def _strides_in(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of elements without gaps, if the dimensions have this order in memory, the last one innermost."""
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(order):
        strides[dim], step = step, step * max(sizes[dim], 1)
    return tuple(strides)


def _lies_in(order: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Have the elements this order in memory? The stride of a dimension of size 1 does not matter."""
    return 0 in sizes or all(sizes[dim] == 1 or strides[dim] == step for dim, step in enumerate(_strides_in(sizes, order)))


def _has_no_gaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Are the elements in memory without gaps, in some order of dimensions?"""
    step = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if stride != step:
                return False
            step *= size
    return True


def _spread(sizes: Sequence[int], shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Strides of an operand in the common shape: 0 where it is repeated."""
    ahead = len(sizes) - len(shape)
    return [0] * ahead + [0 if mine == 1 != size else stride for mine, stride, size in zip(shape, strides, sizes[ahead:], strict=True)]


def _compare(sizes: Sequence[int], spread: list[list[int]], inner: int, outer: int) -> int:
    """1: the two dimensions change places; -1: they stay; 0: the operands do not decide."""
    for strides in spread:
        mine, other = strides[inner], strides[outer]
        if mine and other:
            if mine != other:
                return 1 if mine > other else -1
            if sizes[inner] > sizes[outer]:
                return 1
    return 0
