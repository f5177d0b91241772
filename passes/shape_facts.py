"""What shape propagation looks at: a node with the types of its operands; tensor types made from others; promotion of dtypes by name."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.dtypes import CODES
from irtool.ir.effects import facts_of
from irtool.ir.graph import RETURN, Node, Value
from irtool.ir.schema import Schema
from irtool.ir.types import TensorType, contiguous_strides, tensor_type

NAMES = {code: name for name, code in CODES.items()}
ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64",
         "complex128")
"""Of two dtypes the later one wins, but for those in MEET."""
DEFAULT = "float32"


class Facts:
    """A node, its schema and the types of its tensor operands: what a rule looks at."""

    def __init__(self, node: Node, schema: Schema, types: Sequence[TensorType]) -> None:
        self.node = node
        self.schema = schema
        self.types = types

    def value(self, name: str) -> Value | None:
        """The operand for an argument."""
        place = self.schema.positions.get(name)
        return self.node.inputs[place] if place is not None and place < len(self.node.inputs) else None

    def constant(self, name: str) -> object:
        """The Python value of an argument that is a constant; else NOT_CONSTANT."""
        value = self.value(name)
        return NOT_CONSTANT if value is None else constant(value)

    def number(self, name: str) -> int | None:
        """The same for a whole number."""
        found = self.constant(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def flag(self, name: str) -> bool | None:
        """The same for a bool."""
        found = self.constant(name)
        return bool(found) if isinstance(found, int) else None

    def ints(self, name: str) -> list[int] | None:
        """The same for a list of whole numbers."""
        found = self.constant(name)
        if isinstance(found, list) and all(isinstance(each, int) for each in found):
            return [int(each) for each in found]
        return None

    def length(self, name: str) -> int | None:
        """How many elements an argument that is a list has."""
        found = self.constant(name)
        if isinstance(found, list):
            return len(found)
        value = self.value(name)
        if value is not None and value.node.kind == "prim::ListConstruct" and not any(_may_change(user) for user, _ in value.uses):
            return len(value.node.inputs)
        return None

    def dtype(self, otherwise: str | None) -> str | None:
        """What the argument `dtype` asks for; `otherwise` where it is None."""
        found = self.constant("dtype")
        if found is None or found is NOT_CONSTANT and self.value("dtype") is None:
            return otherwise
        return NAMES.get(found) if isinstance(found, int) else None


def _may_change(user: Node) -> bool:
    """May a list that this node reads have another length afterwards?"""
    return bool(user.blocks) or facts_of(user.kind).may_write or user.kind.endswith("Construct") or user.kind == RETURN \
        and user.owner is not None and user.owner.owning_node is not None


# -- types
def made(dtype: str | None, sizes: Sequence[int | None] | None, like: TensorType, strides: Sequence[int] | None = None,
         requires_grad: bool | None = None) -> TensorType:
    """A type on the device of `like`."""
    return tensor_type(dtype, sizes, strides, requires_grad, like.device)


def dimensioned(type: TensorType) -> TensorType:
    """Only dtype, number of dimensions and device."""
    sizes = None if type.sizes is None else (None,) * len(type.sizes)
    return made(type.dtype, sizes, type, None, type.requires_grad)


def with_dims(type: TensorType, count: int | None) -> TensorType:
    """The type with another number of dimensions; itself where it has that number."""
    if count is not None and type.rank == count:
        return type
    return made(type.dtype, None if count is None else (None,) * count, type, None, type.requires_grad)


def with_dtype(type: TensorType, dtype: str | None) -> TensorType:
    """The type with another dtype."""
    return type if type.dtype == dtype else made(dtype, type.sizes, type, type.strides, type.requires_grad)


def with_sizes(type: TensorType, sizes: Sequence[int], strides: Sequence[int] | None = None) -> TensorType:
    """The type with other sizes, dense unless strides are given."""
    return made(type.dtype, sizes, type, contiguous_strides(tuple(sizes)) if strides is None else strides, type.requires_grad)


def is_complete(type: TensorType) -> bool:
    """Are dtype, sizes, strides and device known?"""
    return type.dtype is not None and type.shape is not None and (type.strides is not None or not type.sizes) and type.device is not None


def category(dtype: str) -> int:
    """bool, integer, floating point, complex."""
    return 0 if dtype == "bool" else 1 if "int" in dtype else 3 if dtype.startswith("complex") else 2


def promoted(types: Sequence[TensorType]) -> str | None:
    """The dtype in which operands meet; a tensor without dimensions counts only where its category is higher. None: not known."""
    dtypes = [type.dtype for type in types]
    if None in dtypes or any(type.rank is None for type in types) and len(set(dtypes)) > 1:
        return None
    found = widest([str(type.dtype) for type in types if type.rank != 0])
    other = widest([str(type.dtype) for type in types if type.rank == 0])
    if found is None or other is None:
        return found or other
    if category(found) == 2 and category(other) == 3:
        return {"float64": "complex128", "float16": "complex32"}.get(found, "complex64")
    return widest([found, other]) if found == "bool" or category(found) < 2 <= category(other) else found


MEET = {frozenset(pair.split()): third for pair, third in (
    ("uint8 int8", "int16"), ("float16 bfloat16", "float32"), ("float64 complex32", "complex128"), ("float64 complex64", "complex128"),
    ("float32 complex32", "complex64"), ("bfloat16 complex32", "complex64"))}
"""Pairs of dtypes that become a third one."""


def widest(dtypes: Sequence[str]) -> str | None:
    """The dtype that holds all of them; None of none, and where torch has no such rule."""
    if not dtypes or any(dtype not in ORDER for dtype in dtypes):
        return dtypes[0] if dtypes and len(set(dtypes)) == 1 else None
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = MEET.get(frozenset((found, dtype))) or max(found, dtype, key=ORDER.index)
    return found


def to_float(dtype: str | None) -> str | None:
    """What an operator that gives floats makes of a dtype."""
    return DEFAULT if dtype is not None and category(dtype) < 2 else dtype


def summed(dtype: str | None) -> str | None:
    """What sums and products make of it."""
    return "int64" if dtype is not None and category(dtype) < 2 else dtype


def spread(types: Sequence[TensorType], dtype: str | None) -> TensorType:
    """What broadcasting gives, as far as the number of dimensions goes."""
    ranks = [type.rank for type in types]
    if len(types) == 1:
        return with_dtype(dimensioned(types[0]), dtype)
    known = [rank for rank in ranks if rank is not None]
    return made(dtype, (None,) * max(known) if len(known) == len(ranks) else None, types[0])


def one(type: TensorType) -> list[TensorType]:
    """A single result."""
    return [type]


