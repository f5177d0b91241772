"""Graphs as methods in the code of an archive: with full names, tensors in `CONSTANTS`, and reads and writes of attributes of `self`."""
from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from irtool.ir.attribute import TensorLiteral
from irtool.ir.constants import constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.structure_kinds import CONTEXT_KINDS
from irtool.ir.types import EnumType, NamedTupleType, Type
from irtool.ops.facts import meaning_since
from irtool.ops.quantized import Packed
from irtool.ops.structure import from_literal
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library
from irtool.torchscript.meanings import Enumeration
from irtool.torchscript.printing.gradient_functions import gradient_functions
from irtool.torchscript.printing.legal_names import Names
from irtool.torchscript.printing.literals import annotation, class_name, literal, string
from irtool.torchscript.printing.to_python import Printer, Source, is_context

FILE = "__torch__.irtool.functions"
"""The module of the functions that methods call."""
Path = tuple[str, ...]
"""The path of an attribute: names of attributes, the first of the module."""


class Method(NamedTuple):
    """A method to be written.

    Inputs of its graph: the arguments, then the attributes of `reads`. Outputs: the results, then the new values of `writes`.
    """

    name: str
    graph: Graph
    reads: Sequence[Path] = ()
    writes: Sequence[Path] = ()
    defaults: Mapping[str, object] | None = None
    """Defaults of arguments by the names of inputs; None: those of the graph itself."""

    @property
    def argument_count(self) -> int:
        return len(self.graph.inputs) - len(self.reads)

    @property
    def results(self) -> Sequence[Value]:
        return self.graph.outputs[:len(self.graph.outputs) - len(self.writes)]


class ArchiveSource(Source):
    """The functions of an archive, and the constants of all its code."""

    def __init__(self, library: Library | None) -> None:
        """library: defines the classes that graphs mention by name."""
        super().__init__()
        self.archive_library = library
        self.classes: dict[str, str] = {}
        """Sources of named tuples and enumerations, by their full names."""
        self.values: list[Any] = []
        self.managers: set[str] = set()
        """Classes of the objects of `with` statements."""
        self._tuples: dict[str, str] = {}
        self._known: dict[int, tuple[Any, str]] = {}

    def has_constant(self, value: Value) -> bool:
        held = value.node.attributes.get("value")
        if held is not None and isinstance(value.type, EnumType):
            return True
        return held is not None and (isinstance(held.value, Packed) or isinstance(held.value, TensorLiteral) and held.value.has_data
                                     and not isinstance(from_literal(held.value, value.type), int | float | complex))

    def constant(self, value: Value) -> str:
        held = value.node.attributes.get("value")
        content = constant(value) if held is None else held.value
        if isinstance(value.type, EnumType):
            return f"{self.class_name(value.type)}.{from_literal(content, value.type).name}"
        known = self._known.get(id(content))
        if known is None:
            if not isinstance(content, Packed) and not (isinstance(content, TensorLiteral) and content.has_data):
                raise UnsupportedError(f"the numbers of the constant %{value.name} are not in the text", code="E0606")
            self.values.append(content if isinstance(content, Packed) else from_literal(content, value.type))
            known = self._known[id(content)] = content, f"CONSTANTS.c{len(self.values) - 1}"
        return known[1]

    def class_name(self, type: Type) -> str:
        """The full name of a class, whose source is added. Raises UnsupportedError if its source is not known."""
        if isinstance(type, NamedTupleType):
            name = self.archive_library.structure_named(type) if self.archive_library is not None else None
            if name is None:
                names = [each for each, text in self.classes.items() if text.startswith(f"class {each.rpartition('.')[2]}(NamedTuple)")
                         and self._tuples[each] == type.key]
                name = names[0] if names else f"__torch__.irtool.types.Fields{len(self._tuples)}"
            if name not in self.classes:
                self.classes[name] = ""
                self._tuples[name] = type.key
                rows = [f"  {field} : {self.annotation(each)}" for field, each in zip(type.names, type.elements, strict=True)]
                self.classes[name] = "\n".join([f"class {name.rpartition('.')[2]}(NamedTuple):", *rows, ""])
            return name
        if isinstance(type, EnumType) and type.name not in self.classes:
            known = self.archive_library.class_called(type.name) if self.archive_library is not None else None
            if not isinstance(known, Enumeration):
                raise UnsupportedError(f"the values of the members of {type.name} are not in the text", code="E0606")
            rows = [f"  {member} = {literal(each)}" for member, each in known.members.items()]
            self.classes[type.name] = "\n".join([f"class {type.name.rpartition('.')[2]}(Enum):", *rows, ""])
        return class_name(type)

    def object_class(self, type: Type) -> str:
        """The full name of the class of an object that a method makes, whose source is added: only attributes, since methods are inlined.

        Raises UnsupportedError if the source is not known.
        """
        name = class_name(type)
        if name not in self.classes:
            known = self.archive_library.class_called(name) if self.archive_library is not None else None
            if not isinstance(known, ClassDefinition):
                raise UnsupportedError(f"the attributes of {name} are not in the text", code="E0606")
            self.classes[name] = ""         # its attributes may be of the class itself
            rows = [f"  {key} : {self.annotation(each)}" for key, each in known.attributes.items()]
            self.classes[name] = "\n".join([f"class {name.rpartition('.')[2]}:", *(rows or ["  pass"]), ""])
        return name

    def annotation(self, type: Type) -> str:
        """The text of a type, with full names of classes."""
        return annotation(type, name_of=self.class_name)

    def call_of(self, name: str) -> str:
        return f"{FILE}.{name}"

    def library(self, name: str) -> None:
        before = len(self.functions)
        super().library(name)
        for index in range(before, len(self.functions)):
            self.functions[index] = re.sub(r"(?<!def )\b(\w+)\(", self._qualified, self.functions[index])

    def _qualified(self, match: re.Match[str]) -> str:
        return f"{self.call_of(match[1])}(" if match[1] in gradient_functions() else match[0]


class MethodPrinter(Printer):
    """Prints a graph as a method."""

    def __init__(self, source: ArchiveSource, method: Method, receiver: str) -> None:
        """receiver: the full name of the class."""
        super().__init__(source, method.graph)
        self.archive = source
        self.method = method
        self.receiver = receiver
        self.names = Names()
        self.names.used |= {"self", "__torch__"}
        self.depth = 2

    def parameters(self, values: Sequence[Value], known: Mapping[str, object]) -> list[str]:
        count = self.method.argument_count
        for value, path in zip(values[count:], self.method.reads, strict=True):
            self.texts[value] = attribute_text(path)
        defaults = known if self.method.defaults is None else self.method.defaults
        return [f"self: {self.receiver}", *super().parameters(values[:count], defaults)]

    def result_type(self) -> str:
        return f" -> {self.returned(self.method.results)}"

    def give_results(self) -> None:
        if not self.method.writes:
            super().give_results()
            return
        texts = self.take(self.graph.outputs)
        self.settle()
        names = [self.names.fresh("_") for _ in texts]
        for name, text, value in zip(names, texts, self.graph.outputs, strict=True):
            self.line(f"{name} : {self.annotation(value.type)} = {text}")
        count = len(self.method.results)
        for path, name in zip(self.method.writes, names[count:], strict=True):
            self.line(f"{attribute_text(path)} = {name}")
        self.line("return " + (names[0] if count == 1 else f"({', '.join(names[:count])})" if count else "None"))

    def annotation(self, type: Type) -> str:
        return self.archive.annotation(type)

    def node(self, node: Node) -> None:
        if node.kind not in ("prim::CreateObject", "prim::SetAttr", "prim::GetAttr") or node.kind in CONTEXT_KINDS and is_context(node):
            super().node(node)
            return
        texts = self.take(node.inputs)
        self.settle()
        if node.kind == "prim::CreateObject":
            name = self.archive.object_class(node.output.type)
            self.line(f"{self.name(node.output)} = {name}.__new__({name})")
            return
        place = f"{texts[0]}.{node.attributes['name'].value}"
        self.line(f"{place} = {texts[1]}" if node.kind == "prim::SetAttr" else f"{self.name(node.output)} = {place}")

    def fork(self, kind: str) -> str:
        return kind.removeprefix("prim::")

    def manager(self, name: str, mode: str) -> str:
        self.archive.managers.add(name)
        instance = self.names.fresh("_")
        self.line(f"{instance} = {name}.__new__({name})")
        self.line(f"{self.names.fresh('_')} = ({instance}).__init__({mode})")
        return instance


def is_plain_name(name: str) -> bool:
    """Can code contain the name of an attribute as it is?"""
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def attribute_text(path: Path) -> str:
    """The text that reads an attribute: `(self.sub).w`, `getattr(self, "0")`."""
    text = "self"
    for name in path:
        text = f"{text if text == 'self' else f'({text})'}.{name}" if is_plain_name(name) else f"getattr({text}, {string(name)})"
    return text


def version_of(graphs: Sequence[Graph]) -> int:
    """The least version of the format in which the graphs' operators have today's meaning."""
    return max([3, *[meaning_since(node.kind) for graph in graphs for node in graph.walk()]])
