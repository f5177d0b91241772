"""The inputs of a traced graph, as the graph that was traced declares them.

A trace has one input per tensor; numbers are constants, and lists, tuples and dicts are taken apart. Here the inputs become those that
the original graph has, so that both run on the same values. A number stays a constant: if another one is given, the graph raises.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from irtool.dispatch.trees import flatten
from irtool.ir.builder import Builder
from irtool.ir.defaults import DEFAULTS, defaults_of, spelled
from irtool.ir.dtypes import dtype_code
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Value
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type
from irtool.ops.tensor import Tensor

PLAIN = frozenset(("int", "float", "bool", "complex", "str", "Scalar", "Device"))
LISTED = frozenset(("int", "float", "bool", "str"))
"""Types of numbers and strings, and of those whose lists operators compare."""


def leaf_names(graph: Graph, values: Sequence[Any]) -> list[str]:
    """The names of a trace's inputs, one per leaf of the values: that of the input for a tensor, empty for others."""
    names = []
    for declared, value in zip(graph.inputs, values, strict=True):
        leaves, shape = flatten(value)
        names += [declared.name if shape.__class__ not in (list, tuple, dict) and not declared.name.isdecimal() else ""] * len(leaves)
    return names


def give_inputs(traced: Graph, graph: Graph, values: Sequence[Any]) -> list[str]:
    """Replace the inputs of a traced graph by those of the original one. values: those of the trace, with tensors for arrays.

    Returns what is to be said of inputs that are constants now. Raises UnsupportedError for a list or dict that cannot be compared.
    """
    given = Given(traced)
    for declared, value in zip(graph.inputs, values, strict=True):
        given.input(declared, value)
    given.finish(defaults_of(graph))
    return given.notes


class Given:
    """A traced graph whose inputs are being replaced, from the first to the last."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.count = len(graph.inputs)
        self.old: Iterator[Value] = iter(graph.inputs)
        self.build = Builder(graph).at_start(graph.block)
        self.notes: list[str] = []

    def input(self, declared: Value, value: Any) -> None:
        """Add an input for a value of the original input."""
        if isinstance(value, Tensor):
            old = next(self.old)
            old.replace_all_uses_with(self.graph.block.add_input(old.name, old.type))
            return
        type = declared.type
        while value is not None and isinstance(type, OptionalType):
            type = type.element
        name = f"%{declared.name}"
        leaves = flatten(value)[0]
        held = "" if any(isinstance(leaf, Tensor) for leaf in leaves) else shown(value)
        if not is_compared(type, value) and (value is not None or declared.has_uses):
            if not held:
                raise UnsupportedError(f"{name} : {declared.type} has values that cannot be compared with those of the trace", code="E0504")
            self.notes.append(f"{name} is {held} in this graph, and no input")
            return
        new = self.graph.block.add_input(self.graph.fresh_id() if declared.name.isdecimal() else declared.name, type)
        if declared.has_uses:
            self.part(new, type, value, name)
        if held and declared.has_uses:
            self.notes.append(f"{name} is {held} in this graph, which raises for other values")

    def part(self, here: Value, type: Type, value: Any, name: str) -> None:
        """Take a value apart into the tensors that the trace had as inputs; check all that the trace took for constant."""
        if isinstance(type, OptionalType):
            self.optional(here, type, value, name)
        elif isinstance(value, Tensor):
            self.tensor(here, next(self.old), name)
        elif isinstance(type, ListType) and type.element.key in LISTED and not any(each != each for each in value):
            self.require(self.build.call("aten::eq", here, self.build.constant(list(value), type)), shown(value), name)
        elif isinstance(type, ListType):
            self.require_length(here, value, name)
            node = self.build.node("prim::ListUnpack", (here,), output_types=[type.element] * len(value))
            for place, (each, output) in enumerate(zip(value, node.outputs, strict=True)):
                self.part(output, type.element, each, f"{name}[{place}]")
        elif isinstance(type, TupleType):
            node = self.build.node("prim::TupleUnpack", (here,), output_types=type.elements)
            for place, (each, output) in enumerate(zip(value, node.outputs, strict=True)):
                self.part(output, output.type, each, f"{name}[{place}]")
        elif isinstance(type, DictType):
            self.require_length(here, value, name)
            for key, each in value.items():
                found = self.build.call("aten::__getitem__", here, self.build.constant(key, type.key_type), type=type.value_type)
                self.part(found, type.value_type, each, f"{name}[{key!r}]")
        elif isinstance(value, float) and math.isnan(value):
            self.require(self.build.call("aten::isnan", here), "nan", name)
        else:
            same = self.build.constant(value, type if type.key == "Device" else None)
            self.require(self.build.call("aten::eq", here, same), shown(value), name)

    def tensor(self, here: Value, old: Value, name: str) -> None:
        """A tensor inside a list, tuple or dict, whose dtype and sizes no type says."""
        old.replace_all_uses_with(here)
        if isinstance(old.type, TensorType) and old.type.shape is not None and old.type.dtype is not None:
            dtype = self.build.call("prim::dtype", here)
            self.require(self.build.call("aten::eq", dtype, dtype_code(old.type.dtype)), old.type.dtype, f"the dtype of {name}")
            sizes = self.build.call("aten::size", here)
            self.require(self.build.call("aten::eq", sizes, list(old.type.shape)), shown(list(old.type.shape)), f"the size of {name}")

    def optional(self, here: Value, type: OptionalType, value: Any, name: str) -> None:
        """A part that may be None."""
        asked = self.build.call("aten::__is__" if value is None else "aten::__isnot__", here, self.build.constant(None))
        self.require(asked, "None" if value is None else "not None", name)
        if value is not None:
            there = self.build.call("prim::unchecked_unwrap_optional", here, type=type.element)
            self.part(there, type.element, value, name)

    def require_length(self, here: Value, value: Any, name: str) -> None:
        self.require(self.build.call("aten::eq", self.build.call("aten::len", here), len(value)), str(len(value)), f"the length of {name}")

    def require(self, holds: Value, expected: str, name: str) -> None:
        """Raise when the graph runs, unless a bool is true."""
        node = self.build.node("prim::If", (holds,))
        node.add_block()
        build = self.build.another().at_end(node.add_block())
        message = build.constant(f"{name} is {expected} in this graph, which was traced with it")
        build.node("prim::RaiseException", (message, build.constant(None)))

    def finish(self, defaults: dict[str, Any]) -> None:
        """Remove the inputs of the trace. Defaults are those of the original graph."""
        self.graph.block.remove_inputs(range(self.count))
        names = [value.name for value in self.graph.inputs]
        kept = {name: value for name, value in defaults.items() if name in names}
        if kept:
            self.graph.metadata[DEFAULTS] = spelled(kept)


def is_compared(type: Type, value: Any) -> bool:
    """Can a graph take a value of the type apart, and compare what is no tensor?"""
    if isinstance(value, Tensor):
        return isinstance(type, TensorType | OptionalType)
    if isinstance(type, OptionalType):
        return value is None or is_compared(type.element, value)
    if isinstance(type, ListType):
        return isinstance(value, list) and all(is_compared(type.element, each) for each in value)
    if isinstance(type, TupleType):
        return isinstance(value, tuple) and len(value) == len(type.elements) and all(map(is_compared, type.elements, value))
    if isinstance(type, DictType):
        return isinstance(value, dict) and all(is_compared(type.key_type, key) and is_compared(type.value_type, each)
                                               for key, each in value.items())
    return type.key in PLAIN and isinstance(value, bool | int | float | complex | str)


def shown(value: Any) -> str:
    """A constant, in a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
