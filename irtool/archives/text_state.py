"""Attributes for the printed graph of a module (`graph(%self : __torch__.Net, ...)`), from a file of weights by dotted name."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from irtool.archives.freezing import with_constants
from irtool.archives.lowering import Lowered, UnknownInstance
from irtool.interop.binding import Misfit, Parts, fitted, may_be_absent
from irtool.interop.npz import Archive
from irtool.interpret import all_nodes
from irtool.ir.errors import Error, UnsupportedError, did_you_mean
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.source import Diagnostic
from irtool.ir.types import ClassType, Type
from irtool.ops.structure import Object, attribute_name
from irtool.torchscript.library import Library

FLAT = "_flat_weights"
"""The list of parameters that recurrent layers read, which also have names of their own: layer by layer, forwards, then backwards."""
RECURRENT = re.compile(r"(weight_ih|weight_hh|bias_ih|bias_hh|weight_hr)_l(\d{1,4})(_reverse)?")
ORDER = "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"
MAX_LISTED = 8


class Lacking:
    """An attribute for which the file has no value, or one that does not fit."""

    def __init__(self, place: str, type: Type, reason: str, node: Node) -> None:
        self.place = place
        self.type = type
        self.reason = reason
        self.node = node


class MentionedClass:
    """A class that a text mentions: the attributes of it that the text reads."""

    is_interface = False

    def __init__(self) -> None:
        self.attributes: dict[str, Type] = {}


class Mentioned(Library):
    """The classes that a text mentions."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(lambda path: None, "", tuple, 10)
        self._classes_mentioned: dict[str, MentionedClass] = {}
        for node in all_nodes(graph):
            if node.kind in ("prim::GetAttr", "prim::SetAttr"):
                value = node.output if node.outputs else node.inputs[1]
                owner = self._classes_mentioned.setdefault(str(node.inputs[0].type), MentionedClass())
                owner.attributes.setdefault(attribute_name(node), value.type)

    def definition(self, type: Type) -> Any:
        """The class as the text describes it."""
        return self._classes_mentioned.get(str(type)) or MentionedClass()


class TextState:
    """The instances that a graph reaches from its first input, made from weights according to the attributes that the graph reads.

    `assumed` lists attributes `training` that the file does not have; they are False.
    """

    def __init__(self, graph: Graph, weights: Archive, literals: Mapping[str, Any], filename: str) -> None:
        """literals: values by the same names, which take precedence over the weights."""
        self.graph = graph
        self.weights = weights
        self.literals = literals
        self.filename = filename
        self.assumed: list[str] = []
        self.parts = self._parts(weights.arrays)
        self._names = {graph.inputs[0]: ""}
        self._instances: dict[Value, Object] = {graph.inputs[0]: Object(graph.inputs[0].type)}
        self._made: dict[str, Object] = {}
        graphs = [graph]
        for each in graphs:
            for node in each.walk():
                if node.kind == "prim::GetAttr" and node.inputs[0] in self._instances:
                    self._read(node, self._instances[node.inputs[0]], self._names[node.inputs[0]] + attribute_name(node))
                elif node.subgraph is not None:         # of a fork, which is given the instances that it reads
                    for taken, value in zip(node.subgraph.inputs, node.inputs, strict=False):
                        if value in self._instances:
                            self._instances[taken], self._names[taken] = self._instances[value], self._names[value]
                    graphs.append(node.subgraph)

    def _parts(self, names: Iterable[str]) -> dict[str, Parts]:
        """The arrays by the dotted name of an attribute, and the rest of their names: `_flat_weights` and `.0`."""
        parts: dict[str, Parts] = {}
        for name in names:
            words = name.split(".")
            for count in range(max(len(words) - 2, 1), len(words) + 1):
                place = ".".join(words[:count])
                parts.setdefault(place, {})[name[len(place):]] = self.weights.get(name)
        return parts

    def _read(self, node: Node, holder: Object, place: str) -> None:
        type = node.output.type
        if isinstance(type, ClassType):
            self._instances[node.output] = holder.attributes[attribute_name(node)] = self._made.setdefault(place, Object(type))
            self._names[node.output] = f"{place}."
            return
        if attribute_name(node) not in holder.attributes:
            holder.attributes[attribute_name(node)] = self._value(place, type, node)

    def _value(self, place: str, type: Type, node: Node) -> Any:
        owner, _, name = place.rpartition(".")
        parts = {"": self.literals[place]} if place in self.literals else self.parts.get(place, {})
        if not parts and name == FLAT:
            parts = self._flat(f"{owner}." if owner else "")
        if not parts and name == "training":
            self.assumed.append(place)
            return False
        if not parts and not may_be_absent(type) and str(type.key) != "NoneType":
            hint = did_you_mean(place, self.weights.arrays) or f"; --input {self.graph.inputs[0].name}.{place}=VALUE gives it"
            return Lacking(place, type, f"is not in {self.filename}{hint}", node)
        try:
            return None if not parts else fitted(parts, type, False)
        except Misfit as misfit:
            return Lacking(place, type, f"is {misfit.actual} in {self.filename}", node)

    def _flat(self, prefix: str) -> Parts:
        """The parameters of a recurrent layer, in the order in which it reads them."""
        named: dict[tuple[int, bool], dict[int, str]] = {}
        for name in self.weights.arrays:
            match = RECURRENT.fullmatch(name[len(prefix):]) if name.startswith(prefix) else None
            if match:
                named.setdefault((int(match[2]), bool(match[3])), {})[ORDER.index(match[1])] = name
        layers = sorted(named)
        kinds = {tuple(sorted(each)) for each in named.values()}
        directions = {is_backwards for _, is_backwards in layers}
        whole = [(layer, is_backwards) for layer in range(len(layers) // max(len(directions), 1)) for is_backwards in sorted(directions)]
        if layers != whole or len(kinds) != 1 or not kinds <= {(0, 1), (0, 1, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4)}:
            return {}       # some are missing, so that the order is unknown
        names = [named[layer][kind] for layer in layers for kind in sorted(named[layer])]
        return {f".{index}": self.weights.arrays[name] for index, name in enumerate(names)}

    def graph_of_arrays(self) -> Graph:
        """The graph without the instance: attributes that it reads are constants. Raises Error for attributes without a value."""
        graph = self.graph
        for node in all_nodes(graph):
            if node.kind == "prim::CallMethod":
                callee = str(node.attributes["name"].value)
                is_in_fork = node.graph is not graph
                way = "torch leaves calls in forks. Save the module as an archive" if is_in_fork else "print the module's inlined_graph"
                raise self.error([(f"calls the method '{callee}', whose code is not in the text: {way}", node)])
        try:
            lowered = Lowered(Mentioned(graph), graph, self._instances[graph.inputs[0]])
        except UnknownInstance as unknown:
            raise UnsupportedError(f"{self.filename}: an instance is passed to {unknown}: not supported with weights from a file",
                                   code="E0404") from None
        lacking = [value for value in (holder.attributes.get(name) for holder, name in lowered.sources) if isinstance(value, Lacking)]
        if lacking:
            raise self.error([(f"reads '{each.place}' : {each.type}, which {each.reason}", each.node) for each in lacking[:MAX_LISTED]])
        graph_of_constants = with_constants(lowered)
        graph_of_constants.name, graph_of_constants.source, graph_of_constants.metadata = graph.name, graph.source, dict(graph.metadata)
        return graph_of_constants

    def error(self, problems: list[tuple[str, Node]]) -> Error:
        """An error at nodes of the text."""
        return Error(diagnostics=[Diagnostic("error", f"the graph {message}", self.graph.source, node.line) for message, node in problems],
                     code="E0705")


def takes_instance(graph: Graph) -> bool:
    """Is the first input of a graph a module?"""
    return bool(graph.inputs) and isinstance(graph.inputs[0].type, ClassType)
