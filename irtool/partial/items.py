"""Items stand for values during partial evaluation: a value of the target, a known Python value, or a list or tuple of items."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.constants import NOT_CONSTANT, constant, is_constant
from irtool.ir.effects import MUTATORS
from irtool.ir.graph import Value
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import TensorType, Type


class Known:
    """A value known before the run: a number, a string, None, or a list of those."""

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
    """A list or tuple of known length, with an item for each element."""

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
"""What stands for a value of the evaluated graph."""

NONE = Known(None)


def item_of(value: Value) -> Item:
    """The item for a value: Known for a constant, Items for a list or tuple that a node constructs and nobody changes, else the value."""
    if is_constant(value):
        number = constant(value)
        return value if number is NOT_CONSTANT or isinstance(number, TensorLiteral) else Known(number)
    node = value.node
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct") and not any(user.kind in MUTATORS for user, _ in value.uses):
        return Items([item_of(each) for each in node.inputs], node.kind == "prim::TupleConstruct", value.type)
    return value


def elements(item: Item) -> list[Item] | None:
    """The items of the elements of a list or tuple; None: the length is unknown."""
    if isinstance(item, Items):
        return item.items
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)):
        return [Known(value) for value in item.value]
    return None


def whole(item: Item) -> Item:
    """Known for a list whose elements are all Known; any other item unchanged."""
    if isinstance(item, Items):
        parts = [whole(each) for each in item.items]
        if all(isinstance(part, Known) for part in parts):
            values = [part.value for part in parts if isinstance(part, Known)]
            return Known(tuple(values) if item.is_tuple else values)
    return item


def listed(value: object, type: Type) -> Item:
    """A Python value as an item: Items for a list, so that it can be changed."""
    return Items([Known(each) for each in value], False, type) if isinstance(value, list) else Known(value)


def int_list(item: Item) -> list[int] | None:
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)) and all(isinstance(n, int) for n in item.value):
        return list(item.value)
    if isinstance(item, Items) and all(isinstance(each, Known) and isinstance(each.value, int) for each in item.items):
        return [each.value for each in item.items if isinstance(each, Known) and isinstance(each.value, int)]
    return None


def place_of(index: Item, length: int) -> int | None:
    """An index as an int; None if it is unknown or out of range."""
    if isinstance(index, Known) and isinstance(index.value, int) and -length <= index.value < length:
        return index.value
    return None


def holds_tensor(type: Type) -> bool:
    return isinstance(type, TensorType) or any(holds_tensor(element) for element in type.elements)
