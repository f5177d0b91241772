"""What tensor types say about shapes: contiguous forms, broadcasting."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from irtool.ir.types import TensorType, Type, contiguous_strides, spell, tensor_type

if TYPE_CHECKING:
    from irtool.ir.dialect import Dialect


def contiguous(type: Type, dialect: Dialect) -> Type:
    """A tensor type with the layout of a fresh tensor; any other type, and one of unknown sizes, as it is."""
    if not isinstance(type, TensorType) or type.shape is None or type.dtype is None:
        return type
    strides = contiguous_strides(type.shape)
    if type.strides is None and type.marks is None or type.strides == strides:
        return type
    return spell(tensor_type(type.dtype, type.sizes, strides, type.requires_grad, type.device), dialect)


def shape_of(type: Type) -> tuple[int, ...] | None:
    """The sizes when all are known."""
    return type.shape if isinstance(type, TensorType) else None


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that several broadcast to; None when they do not fit."""
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
