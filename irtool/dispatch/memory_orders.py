"""How tensors of layers lie in memory: a new value of a tensor lies as the tensor did, which writes through other new shapes of it tell."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.stack import Boxed, Layer, elements_of
from irtool.ops.array_library import np
from irtool.ops.tensor import Tensor


def lies_in_order(tensor: Tensor) -> bool:
    """Do the elements of a tensor, of each place of a batch, follow each other in memory from its start?"""
    array = elements_of(tensor)
    return lies_by_rows(tensor) and (not isinstance(array, np.ndarray) or first_place(tensor) == 0)


def lies_by_rows(tensor: Tensor) -> bool:
    """Do the elements of a tensor, of each place of a batch, follow each other in memory?"""
    while isinstance(tensor, Boxed):
        if isinstance(tensor.known, int) and tensor.known:      # a hidden dimension that is not the first
            return False
        tensor = tensor.value
    return not isinstance(tensor.array, np.ndarray) or bool(tensor.array.flags.c_contiguous)


def in_order_of(layer: Layer, target: Tensor, result: Any) -> Any:
    """A new value of a tensor, in its memory order: which writes see it later hangs on that, `x.t()[0] = 0` leaves it as it is."""
    if result.ndim < 2 or result.shape != target.shape or lies_by_rows(target) or lie_alike(target, result):
        return result
    return layer.apply("aten::copy", [layer.apply("aten::detach", [target]), result, False])


def lie_alike(one: Tensor, other: Tensor) -> bool:
    """Are two tensors of one shape in one memory order, also in batches?"""
    while isinstance(one, Boxed) and isinstance(other, Boxed):
        if isinstance(one.known, int) and one.known != other.known:     # the hidden dimension of a batch
            return False
        one, other = one.value, other.value
    if isinstance(one, Boxed) or isinstance(other, Boxed):
        return False
    return isinstance(one.array, np.ndarray) and isinstance(other.array, np.ndarray) and one.array.strides == other.array.strides


def first_place(tensor: Tensor) -> int:
    """The place of the first element of a tensor in its memory, in elements."""
    place: int = BACKEND.apply("aten::storage_offset", [Tensor(elements_of(tensor))])
    return place


def in_memory_order_of(tensor: Tensor, array: Any) -> Any:
    """A copy of an array of a tensor's shape that lies in memory as the tensor does, of a batch as one place of it."""
    bottom = elements_of(tensor)
    if not isinstance(bottom, np.ndarray):
        return array
    steps = [abs(bottom.strides[axis]) for axis in axes_at_bottom(tensor)]
    order = sorted(range(array.ndim), key=lambda dim: -steps[dim])
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order)) if order else array


def axes_at_bottom(tensor: Tensor) -> list[int]:
    """The dimension of the array at the bottom for each dimension of a tensor, without those that batches hide."""
    if not isinstance(tensor, Boxed):
        return list(range(tensor.ndim))
    axes = axes_at_bottom(tensor.value)
    if isinstance(tensor.known, int):
        del axes[tensor.known]
    return axes
