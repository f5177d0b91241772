"""Gradients through lists of tensors: a list's gradient is the list of its elements' gradients. Elements that take no part get zeros.

Lists that are put together and taken apart in plain sight never come here: differentiation passes their gradients on element by element.
No list is written into, so that the gradients have gradients.
"""
from __future__ import annotations

from irtool.ops.kernels.list import table
from irtool.ops.tensor import Tensor, torch


def put(grad: list[Tensor], tensors: list[Tensor], start: int) -> list[Tensor]:
    """Zeros for each tensor, but `grad` from place `start` on."""
    zeros = [torch.zeros_like(tensor) for tensor in tensors]
    return zeros[:start] + grad + zeros[start + len(grad):]


@table.gradient("__getitem__.t select.t")
def getitem_gradient(tensors: list[Tensor], idx: int):
    def backward(grad: Tensor):
        return put([grad], tensors, idx if idx >= 0 else idx + len(tensors)), None

    return tensors[idx], backward


@table.gradient("copy.t list.t")
def copy_gradient(tensors: list[Tensor]):
    def backward(grad: list[Tensor]):
        return grad

    return tensors.copy(), backward


@table.gradient("add.t")
def add_gradient(first: list[Tensor], second: list[Tensor]):
    count = len(first)

    def backward(grad: list[Tensor]):
        return grad[:count], grad[count:]

    return first + second, backward


@table.gradient("slice.t")
def slice_gradient(tensors: list[Tensor], start: int | None, end: int | None, step: int):
    def backward(grad: list[Tensor]):
        places = list(range(len(tensors)))[start:end:step]
        for_tensors = [torch.zeros_like(tensor) for tensor in tensors]
        if step == 1 and len(places) > 0:
            for_tensors = put(grad, tensors, places[0])
        elif len(places) > 0:
            for at in range(len(places)):
                for_tensors = for_tensors[:places[at]] + [grad[at]] + for_tensors[places[at] + 1:]
        return for_tensors, None, None, None

    return tensors[start:end:step], backward


def summed(grad: list[Tensor], count: int) -> list[Tensor]:
    """The gradient of a list that was repeated: `count` elements, each the sum of its copies' gradients."""
    sums = grad[:count]
    for at in range(len(grad)):
        if at >= count:
            sums = sums[:at % count] + [sums[at % count] + grad[at]] + sums[at % count + 1:]
    return sums


@table.gradient("mul.left_t")
def repeat_gradient(tensors: list[Tensor], n: int):
    def backward(grad: list[Tensor]):
        return [torch.zeros_like(tensor) for tensor in tensors] if n < 1 else summed(grad, len(tensors)), None

    return tensors * n, backward


@table.gradient("mul.right_")
def repeated_gradient(n: int, tensors: list[Tensor]):
    def backward(grad: list[Tensor]):
        return None, [torch.zeros_like(tensor) for tensor in tensors] if n < 1 else summed(grad, len(tensors))

    return n * tensors, backward


table.unsupported("it writes into a list", "add_.t append.t _set_item.t mul_.t pop.t")
table.unsupported("the order of the elements is not kept", "sorted.Tensor sorted.any")
table.no_gradient("a list without elements", "_construct_empty_tensor_list")
