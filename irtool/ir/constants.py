"""Constants in a graph: which values are constant, and what they are."""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from irtool.ir.schema import Literal, node_argument

if TYPE_CHECKING:
    from irtool.ir.graph import Node, Value


class NotConstant:
    """The class of `NOT_CONSTANT`, which `constant` returns for a value that is computed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOT_CONSTANT"


NOT_CONSTANT: Final = NotConstant()

INT_MAX = 9223372036854775807
"""The largest int of the IR: the trip count of loops that end by their condition."""
CONSTANT_KINDS = frozenset({"prim::Constant", "prim::None", "Constant"})
"""`prim::Constant`, and its names in 2017 and 2018-11."""


def is_constant(value: Value) -> bool:
    """Is the value the result of a constant node?"""
    return value.node.kind in CONSTANT_KINDS


def constant(value: Value) -> object:
    """The Python value of a constant (a `TensorLiteral` for a tensor), converted to its type: `value=1` of a float is 1.0. Else
    NOT_CONSTANT.

    A function (`Function = prim::Constant[name="f"]()`) has no Python value: NOT_CONSTANT.
    """
    node = value.node
    if node.kind not in CONSTANT_KINDS:
        return NOT_CONSTANT
    attribute = node.attributes.get("value")
    if attribute is None:
        return NOT_CONSTANT if node.attributes else None
    return attribute.as_type(value.type)


def known_argument(node: Node, name: str) -> object:
    """The Python value of a node's argument `name`, if it is a constant operand, an attribute or a default; else None."""
    value = argument_value(node_argument(node, name))
    return None if value is NOT_CONSTANT else value


def argument_value(argument: Value | Literal | list[Value] | None) -> object:
    """The Python value of an argument of a node (see `schema.node_arguments`), if it is a constant operand, an attribute or a default; else
    NOT_CONSTANT."""
    if isinstance(argument, Literal):
        return argument.value
    return NOT_CONSTANT if argument is None or isinstance(argument, list) else constant(argument)


def slice_bound(bound: int | None) -> int | None:
    """A bound of a slice of a list or string as Python's. torch takes the largest int for one that is absent."""
    return None if bound == INT_MAX else bound


def is_none(value: Value) -> bool:
    """Is the value the constant None?"""
    return value.node.kind in CONSTANT_KINDS and not value.node.attributes
