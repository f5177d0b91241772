"""The arguments of shape rules: a node with the types of its operands; functions on tensor types; promotion of dtypes by name."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from irtool.analysis.shape_changes import Changes
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant
from irtool.ir.dtypes import NAMES
from irtool.ir.graph import Node, Value
from irtool.ir.schema import Schema
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import TensorType, contiguous_strides, tensor_type

ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64",
         "complex128")
"""Of two dtypes the later one is the common dtype, except for pairs in MEET."""
DEFAULT = "float32"
NUMBERS = {"bool": "bool", "int64": "int64", "float64": DEFAULT, "complex128": "complex64"}
"""dtype of a constant that represents a number -> the dtype of the result with tensors of a lower category."""


class Facts:
    """The argument of a rule: a node, its schema and the types of its tensor operands."""

    def __init__(self, node: Node, schema: Schema, types: Sequence[TensorType], changes: Changes) -> None:
        self.node = node
        self.changes = changes
        self.schema = schema
        self.types = types
        self.numbers = self._numbers() if () in [type.sizes for type in types] else ()
        """The positions of operands that are constants representing Python numbers, as traces write `x * 2.5`."""

    def _numbers(self) -> tuple[int, ...]:
        places = [place for place, argument in enumerate(self.schema.arguments) if isinstance(argument.type, TensorType)]
        return tuple(i for i, (place, type) in enumerate(zip(places, self.types, strict=False))
                     if type.rank == 0 and type.dtype in NUMBERS and _is_number(self.node.inputs[place]))

    def promoted(self, first: int = 0) -> str | None:
        """The common dtype of the operands from position `first` on. Numbers count only if their category is higher. None: unknown."""
        types = list(self.types[first:])
        tensors = [type for i, type in enumerate(self.types) if i >= first and i not in self.numbers]
        highest = max((category(type.dtype) for type in tensors if type.dtype is not None), default=-1)
        if tensors and self.numbers:
            types = tensors + [with_dtype(self.types[i], NUMBERS[str(self.types[i].dtype)]) for i in self.numbers
                               if i >= first and category(str(self.types[i].dtype)) > highest]
        return promoted(types)

    @property
    def requires_grad(self) -> bool | None:
        """The flag in the type of the first result."""
        type = self.node.outputs[0].type
        return type.requires_grad if isinstance(type, TensorType) else None

    def agreed(self, dtype: str | None, claim: str | None) -> str | None:
        """`dtype`; if that is unknown, `claim`, torch's rule, provided the type in the graph agrees with it."""
        type = self.node.outputs[0].type
        return claim if dtype is None and isinstance(type, TensorType) and type.dtype == claim else dtype

    def value(self, name: str) -> Value | None:
        """The operand for an argument."""
        place = self.schema.positions.get(name)
        return self.node.inputs[place] if place is not None and place < len(self.node.inputs) else None

    def constant(self, name: str) -> object:
        """The Python value of an argument that is a constant; else NOT_CONSTANT."""
        value = self.value(name)
        return NOT_CONSTANT if value is None else constant(value)

    def number(self, name: str) -> int | None:
        """The value of an argument that is a constant integer; else None."""
        number = self.constant(name)
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    def flag(self, name: str) -> bool | None:
        """The value of an argument that is a constant bool or integer, as a bool; else None."""
        flag = self.constant(name)
        return bool(flag) if isinstance(flag, int) else None

    def ints(self, name: str) -> list[int] | None:
        """The value of an argument that is a constant list of integers that never changes; else None."""
        numbers, value = self.constant(name), self.value(name)
        if not isinstance(numbers, list) or value is None or not self.changes.is_fixed(value):
            return None
        return [int(each) for each in numbers] if all(isinstance(each, int) for each in numbers) else None

    def length(self, name: str) -> int | None:
        """The length of an argument that is a list that never changes; None: unknown."""
        value = self.value(name)
        if value is None or not self.changes.is_fixed(value):
            return None
        elements = constant(value)
        if isinstance(elements, list):
            return len(elements)
        return len(value.node.inputs) if value.node.kind == "prim::ListConstruct" else None

    def dtype(self, otherwise: str | None) -> str | None:
        """The dtype that the argument `dtype` asks for; `otherwise` if it is None."""
        code = self.constant("dtype")
        if code is None or code is NOT_CONSTANT and self.value("dtype") is None:
            return otherwise
        return NAMES.get(code) if isinstance(code, int) else None


Rule = Callable[[Facts], "list[TensorType] | None"]
"""A function that returns the types of the tensors among the results; None: unknown."""


def _is_number(value: Value) -> bool:
    """Is a value a constant that represents a Python number?"""
    literal = constant(value) if value.node.kind in CONSTANT_KINDS else None
    declared = value.type
    if isinstance(literal, TensorLiteral) and isinstance(declared, TensorType):
        literal = literal.with_type(declared.dtype, declared.shape)
    return isinstance(literal, TensorLiteral) and literal.is_number


# -- types
def type_like(dtype: str | None, sizes: Sequence[int | None] | None, like: TensorType, strides: Sequence[int] | None = None,
              requires_grad: bool | None = None) -> TensorType:
    """A tensor type on the device of `like`."""
    return tensor_type(dtype, sizes, strides, requires_grad, like.device)


def dimensioned(type: TensorType) -> TensorType:
    """The type with only dtype, number of dimensions and device."""
    sizes = None if type.sizes is None else (None,) * len(type.sizes)
    return type_like(type.dtype, sizes, type, None, type.requires_grad)


def with_dims(type: TensorType, count: int | None) -> TensorType:
    """The type with only dtype and device, and with `count` dimensions."""
    return type_like(type.dtype, None if count is None else (None,) * count, type, None, type.requires_grad)


def with_dtype(type: TensorType, dtype: str | None) -> TensorType:
    """The type with another dtype."""
    return type if type.dtype == dtype else type_like(dtype, type.sizes, type, type.strides, type.requires_grad)


def with_sizes(type: TensorType, sizes: Sequence[int], strides: Sequence[int] | None = None) -> TensorType:
    """The type with other sizes, contiguous unless strides are given."""
    return type_like(type.dtype, sizes, type, contiguous_strides(tuple(sizes)) if strides is None else strides, type.requires_grad)


def is_complete(type: TensorType) -> bool:
    """Are dtype, sizes, strides and device known?"""
    return type.dtype is not None and type.shape is not None and (type.strides is not None or not type.sizes) and type.device is not None


def category(dtype: str) -> int:
    """The category of a dtype, as a number: bool, integer, floating point, complex."""
    return 0 if dtype == "bool" else 1 if "int" in dtype else 3 if dtype.startswith("complex") else 2


def promoted(types: Sequence[TensorType]) -> str | None:
    """The common dtype of operands; a tensor without dimensions counts only if its category is higher. None: unknown."""
    dtypes = [type.dtype for type in types]
    if None in dtypes:
        return None
    names = [str(dtype) for dtype in dtypes]
    if len(set(names)) == 1:
        return names[0]
    ranks = [[0, 1] if type.rank is None else [type.rank] for type in types]
    candidates = {_meet(names, each) for each in product(*ranks)}
    return candidates.pop() if len(candidates) == 1 else None


def _meet(dtypes: Sequence[str], ranks: Sequence[int]) -> str | None:
    """The common dtype of operands of these dtypes and numbers of dimensions; None: torch has no rule."""
    ranked = widest([dtype for dtype, rank in zip(dtypes, ranks, strict=True) if rank])
    other = widest([dtype for dtype, rank in zip(dtypes, ranks, strict=True) if not rank])
    if ranked is None or other is None:
        return ranked or other
    if category(ranked) == 2 and category(other) == 3:
        return {"float64": "complex128", "float16": "complex32"}.get(ranked, "complex64")
    return widest([ranked, other]) if ranked == "bool" or category(ranked) < 2 <= category(other) else ranked


MEET = {frozenset(pair.split()): third for pair, third in (
    ("uint8 int8", "int16"), ("float16 bfloat16", "float32"), ("float64 complex32", "complex128"), ("float64 complex64", "complex128"),
    ("float32 complex32", "complex64"), ("bfloat16 complex32", "complex64"))}
"""Pairs of dtypes whose common dtype is a third one."""


def widest(dtypes: Sequence[str]) -> str | None:
    """The common dtype of dtypes; None for an empty sequence, and if torch has no rule for them."""
    if not dtypes or any(dtype not in ORDER for dtype in dtypes):
        return dtypes[0] if dtypes and len(set(dtypes)) == 1 else None
    wide = dtypes[0]
    for dtype in dtypes[1:]:
        wide = MEET.get(frozenset((wide, dtype))) or max(wide, dtype, key=ORDER.index)
    return wide


def to_float(dtype: str | None) -> str | None:
    """The result dtype of an operator that converts integers to floats (`exp`)."""
    return DEFAULT if dtype is not None and category(dtype) < 2 else dtype


def to_real(dtype: str | None) -> str | None:
    """The result dtype of an operator with real results (`abs`)."""
    return {"complex32": "float16", "complex64": "float32", "complex128": "float64"}.get(dtype, dtype) if dtype is not None else None


def summed(dtype: str | None) -> str | None:
    """The result dtype of sums and products."""
    return "int64" if dtype is not None and category(dtype) < 2 else dtype


def spread(types: Sequence[TensorType], dtype: str | None) -> TensorType:
    """The type of a broadcast result: dtype, and the number of dimensions."""
    ranks = [type.rank for type in types]
    if len(types) == 1:
        return with_dtype(dimensioned(types[0]), dtype)
    known = [rank for rank in ranks if rank is not None]
    return type_like(dtype, (None,) * max(known) if len(known) == len(ranks) else None, types[0])


def one(type: TensorType) -> list[TensorType]:
    """The types of a single result."""
    return [type]


