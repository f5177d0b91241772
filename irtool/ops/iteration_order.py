"""The memory order of results of several operands, as torch's TensorIterator chooses it (aten/src/ATen/TensorIterator.cpp)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import Array, element_strides


def view_strides(x: Array, shape: Sequence[int]) -> list[int]:
    """Strides in elements of a view of `x` that only inserts dimensions of size 1, as torch's (aten/src/ATen/TensorUtils.cpp)."""
    strides, at = [1] * len(shape), len(shape) - 1
    old = element_strides(x)
    # of a run of dimensions without gaps: its innermost stride, its elements, and those of the dimensions of the view so far
    step, last, count = old[-1] if old else 1, 1, 1
    for dim in reversed(range(x.ndim)):
        last *= x.shape[dim]
        if dim and (x.shape[dim - 1] == 1 or old[dim - 1] == last * step):
            continue
        while at >= 0 and (count < last or shape[at] == 1):
            strides[at] = count * step
            count *= shape[at]
            at -= 1
        step, last, count = old[dim - 1], 1, 1
    return strides


def iteration_order(shape: Sequence[int], operands: Sequence[Array]) -> list[int]:
    """The dimensions of a result of `shape`, from the one that is contiguous in memory to the outermost: by the strides of the first
    operand that tells two of them apart. Dimensions along which an operand is repeated tell nothing."""
    rank = len(shape)
    strides = [[0] * (rank - x.ndim) + [0 if m == 1 != n else s for s, m, n in zip(x.strides, x.shape, shape[rank - x.ndim:], strict=True)]
               for x in operands]

    def compared(inner: int, outer: int) -> int:
        for each in strides:
            one, other = each[inner], each[outer]
            if one and other and one != other:
                return 1 if one > other else -1
            if one and other and shape[inner] > shape[outer]:
                return 1
        return 0

    order = list(range(rank))[::-1]
    for place in range(1, rank):
        for before in reversed(range(place)):
            swap = compared(order[before], order[place])
            if swap > 0:
                order[before], order[place] = order[place], order[before]
                place = before
            elif swap < 0:
                break
    return order


def empty_in_order(xp: Any, shape: Sequence[int], dtype: np.dtype[Any], operands: Sequence[Array]) -> Array:
    """New memory for a result of `shape` in the memory order of the operands."""
    outermost_first = iteration_order(shape, operands)[::-1]
    memory = xp.empty([shape[dim] for dim in outermost_first], dtype)
    result: Array = memory.transpose([outermost_first.index(dim) for dim in range(len(shape))])
    return result
