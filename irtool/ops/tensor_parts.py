"""Tensors of nested lists in which tensors stand among the numbers: `torch.tensor([x[0], 2.0])`. No gradient goes back to these, as in
torch, and on a layer, such as a trace, they stay operands."""
from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of, is_of_numbers, number_dtype
from irtool.ops.checks import fit
from irtool.ops.promotion import promote_types
from irtool.ops.tensor import Tensor, call, elements, next_birth
from irtool.ops.tensor_facts import BY_NAME


def has_tensors(data: Any) -> bool:
    """Are there tensors in nested lists of numbers?"""
    if not isinstance(data, list | tuple) or is_of_numbers(data):
        return False
    return any(isinstance(each, Tensor) or has_tensors(each) for each in data)


def leaves_of(data: Any) -> Iterator[Any]:
    """The numbers and tensors in nested lists."""
    if isinstance(data, list | tuple):
        for each in data:
            yield from leaves_of(each)
    else:
        yield data


def made_of(data: Any) -> Tensor:
    """A tensor of a copy of numbers, made where it is called: nobody else refers to its elements."""
    made = Tensor(np.array(elements(data)))
    made.born = next_birth()
    return made


def refuse_others(array: Any, dtype: Any) -> None:
    """Raise torch's error for numbers that a dtype cannot represent: complex ones in real dtypes, and those out of an integer's range."""
    if array.dtype.kind == "c" and dtype.kind not in "bc":
        raise RunError("must be real number, not complex")
    if array.size and array.dtype.kind in "if" and dtype.kind in "iu":
        fit(array.min().item(), dtype)
        fit(array.max().item(), dtype)


def of_parts(data: Any, dtype: int | None) -> Any:
    """A tensor of nested lists of numbers and tensors of one element, in a dtype, by default in one that all have in common.

    Raises RunError for tensors of more elements, for other values, and for lists of different lengths.
    """
    return stacked(data, BY_NAME[reduce(promote_types, map(dtype_of_part, leaves_of(data))).name] if dtype is None else dtype)


def dtype_of_part(part: Any) -> Any:
    """The dtype that a tensor or a number asks for. Raises RunError for other values."""
    if isinstance(part, Tensor):
        return dtype_of(part.dtype)
    if isinstance(part, np.generic):
        return part.dtype
    if not isinstance(part, bool | int | float | complex):
        raise RunError(f"a tensor is made of numbers and tensors of one element, not of {type(part).__name__} {str(part)[:40]}")
    return number_dtype(part)


def stacked(data: Any, dtype: int) -> Any:
    """The tensor of nested lists, all of whose parts are cast to one dtype."""
    if isinstance(data, list | tuple):
        return call("aten::stack", ([stacked(each, dtype) for each in data],), {})
    if not isinstance(data, Tensor):        # a number of a trace knows its tensor
        return call("aten::to", (data.tensor() if hasattr(data, "tensor") else Tensor(np.array(data)), dtype), {})
    if data.numel() != 1:
        raise RunError("only one element tensors can be converted to Python scalars")
    return call("aten::to", (call("aten::reshape", (call("aten::detach", (data,), {}), []), {}), dtype), {})
