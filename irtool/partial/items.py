"""What stands for a value while a graph is evaluated in parts: a value of the target, or what is known about it."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.constants import NOT_CONSTANT, constant, is_constant
from irtool.ir.effects import MUTATORS
from irtool.ir.graph import Value
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import TensorType, Type


class Known:
    """A value known now: a number, a string, None, or a list of them."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))

    def __repr__(self) -> str:
        return f"Known({self.value!r})"


class Items:
    """A list or tuple whose elements are known one by one, though not all what they are."""

    __slots__ = ("items", "is_tuple", "type")

    def __init__(self, items: Sequence[Item], is_tuple: bool, type: Type) -> None:
        self.items = list(items)
        self.is_tuple = is_tuple
        self.type = type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self.items == other.items

    def __hash__(self) -> int:
        return hash(tuple(self.items))

    def __repr__(self) -> str:
        return f"Items({self.items!r})"


Item = Value | Known | Items
"""What stands for a value of the formula: a value of the target, or what is known about it."""

NONE = Known(None)


def item_of(value: Value) -> Item:
    """What is known of a value of a graph: constants, and lists and tuples put together from values (and never changed)."""
    if is_constant(value):
        number = constant(value)
        return value if number is NOT_CONSTANT or isinstance(number, TensorLiteral) else Known(number)
    node = value.node
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct") and not any(user.kind in MUTATORS for user, _ in value.uses):
        return Items([item_of(each) for each in node.inputs], node.kind == "prim::TupleConstruct", value.type)
    return value


def elements(item: Item) -> list[Item] | None:
    """The elements of a list or tuple, when they are known one by one."""
    if isinstance(item, Items):
        return item.items
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)):
        return [Known(value) for value in item.value]
    return None


def whole(item: Item) -> Item:
    """A list whose elements are all known, as one value."""
    if isinstance(item, Items):
        parts = [whole(each) for each in item.items]
        if all(isinstance(part, Known) for part in parts):
            values = [part.value for part in parts if isinstance(part, Known)]
            return Known(tuple(values) if item.is_tuple else values)
    return item


def listed(value: object, type: Type) -> Item:
    """A list that was computed, element by element, so that it can be changed."""
    return Items([Known(each) for each in value], False, type) if isinstance(value, list) else Known(value)


def int_list(item: Item) -> list[int] | None:
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)) and all(isinstance(n, int) for n in item.value):
        return list(item.value)
    if isinstance(item, Items) and all(isinstance(each, Known) and isinstance(each.value, int) for each in item.items):
        return [each.value for each in item.items if isinstance(each, Known) and isinstance(each.value, int)]
    return None


def place_of(index: Item, length: int) -> int | None:
    """An index that is known and in range."""
    if isinstance(index, Known) and isinstance(index.value, int) and -length <= index.value < length:
        return index.value
    return None


def holds_tensor(type: Type) -> bool:
    return isinstance(type, TensorType) or any(holds_tensor(element) for element in type.elements)
