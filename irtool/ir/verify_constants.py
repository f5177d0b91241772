"""The verifier's invariant of constants: the value is one of the type. Passes write constants as other types and take them apart."""
from __future__ import annotations

from contextlib import suppress

from irtool.ir.attribute import Opaque
from irtool.ir.errors import Error
from irtool.ir.graph import Node
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type
from irtool.ir.verify_types import NUMBERS

NUMBER_KEYS = ("int", "float", "bool", "complex")
SEVERAL = {"a number": "numbers", "a whole number": "whole numbers", "a tensor": "tensors", "a list": "lists"}
"""What one element of a list needs -> what the list needs."""


def constant_problem(node: Node, strict: bool) -> str:
    """What is wrong with a constant; empty if nothing is. strict: the dialect is one of those whose types are precise."""
    if node.inputs:
        return f"{node.kind} takes no operands, found {len(node.inputs)}"
    if len(node.outputs) != 1:
        return f"{node.kind} gives one result, found {len(node.outputs)}"
    attribute = node.attributes.get("value")
    type = node.output.type
    if attribute is None:
        return _problem_without_value(node, type) if strict else ""
    needed = (needed_for if strict else _needed_by_old_texts)(attribute.as_type(type), type)
    return f"a constant of type {type} needs {needed}, found '{attribute.text[:40]}'" if needed else ""


def _problem_without_value(node: Node, type: Type) -> str:
    """A number needs a value. If there is another attribute, its name is wrong: only the name of a function may stand there."""
    if node.attributes and "name" not in node.attributes:
        return f"a constant of type {type} needs the attribute 'value', found '{next(iter(node.attributes))}'"
    return f"a constant of type {type} needs a value" if not node.attributes and type.key in NUMBER_KEYS else ""


def needed_for(value: object, type: Type) -> str:
    """What values of the type are, if this is none of them; else nothing. Words that stand for a value are not looked into."""
    if isinstance(type, OptionalType):
        return "" if value is None else needed_for(value, type.element)
    if isinstance(type, TensorType):
        return "" if isinstance(value, TensorLiteral | int | float | complex) else "a tensor"
    if isinstance(type, ListType):
        return _needed_of_list(value, type.element)
    if isinstance(type, TupleType):
        if not isinstance(value, list | tuple):
            return "" if isinstance(value, Opaque) else "a tuple"
        if len(value) != len(type.elements):
            return f"a tuple of {len(type.elements)}"
        return next(filter(None, map(needed_for, value, type.elements)), "")
    if isinstance(type, DictType):
        if not isinstance(value, dict):
            return "" if isinstance(value, Opaque) else "a dict"
        return next(filter(None, [needed_for(part, element) for key, item in value.items()
                                  for part, element in ((key, type.key_type), (item, type.value_type))]), "")
    return _needed_of_number(value, type)


def _needed_of_list(value: object, element: Type) -> str:
    if isinstance(value, int | float | complex | dict) or value is None:
        return "a list"
    if not isinstance(value, list | tuple):
        return "numbers" if element.key in NUMBER_KEYS and isinstance(value, str | Opaque) else ""
    needed = next(filter(None, [needed_for(each, element) for each in value]), "")
    return SEVERAL.get(needed, needed)


def _needed_of_number(value: object, type: Type) -> str:
    if type.key not in NUMBERS:
        return ""
    if isinstance(value, TensorLiteral):        # what has no elements to read may be a number; `{2}` is one of another dtype at most
        return "a number" if value.has_data and value.shape != () else ""
    if is_fraction(value, type) or type.key == "int" and isinstance(value, int) and not -1 << 63 <= value < 1 << 63:
        return "a whole number"
    if isinstance(value, complex) and type.key not in ("complex", "Scalar"):
        return "a whole number" if type.key == "int" else "a number"
    return "" if isinstance(value, int | float | complex) else "a number"


def _needed_by_old_texts(value: object, type: Type) -> str:
    """The same for texts whose types are less precise: a list for a number and fractions for whole numbers are all that is wrong."""
    element = type.element if isinstance(type, ListType) else type
    several = "" if element is type else "s"
    if isinstance(value, int | float | complex | list) and isinstance(value, list) != bool(several) and element.key in NUMBER_KEYS:
        return "a list" if several else "a number"
    if any(is_fraction(each, element) for each in (value if isinstance(value, list) else [value])):
        return "whole numbers" if several else "a whole number"
    return ""


def is_fraction(value: object, type: Type) -> bool:
    """Is the value a fraction, or nan or infinite, although its type is int?"""
    if isinstance(value, TensorLiteral) and value.is_number and value.dtype == "int64":
        with suppress(Error):
            value.item()
            return False
        return True
    if type.key != "int":
        return False
    return isinstance(value, float) and not value.is_integer()
