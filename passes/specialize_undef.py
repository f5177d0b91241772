"""Gradients that are known to be undefined, or to be there."""
from __future__ import annotations

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.errors import Error, PassError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.pair import DEFINED, GradientPair, pairs, read_numbers, set_defined
from irtool.ir.rewrite import inline_block, replace_node
from irtool.ir.shapes import contiguous
from irtool.ir.types import ListType, TensorType, Type, spell
from irtool.script.items import holds_tensor

DEFINED_STATE, UNDEFINED_STATE, UNKNOWN_STATE = range(3)
GRADIENT_KINDS = frozenset(("prim::GradOf", "prim::AutogradAdd"))


def specialize_undef(module: Module, defined: tuple[bool, ...] = ()) -> bool:
    """Open each `prim::GradOf` whose gradients are known, and decide each `prim::AutogradAdd`.

    `defined=1,0,...` says for each input whether it is there. By default in the reverse graph of a pair: gradients of real outputs and
    captured values are, gradients of temporaries are not; in any other graph all inputs are, unless their type says undefined. What was
    assumed is recorded with the graph.

    before:
        graph(%g : Tensor, %h : Tensor, %x : Tensor):
          %3 : Tensor = prim::GradOf[name="aten::mul"](%g)
            block0():
              %4 : Tensor = aten::mul(%g, %x)
              -> (%4)
          %5 : Tensor = prim::AutogradAdd(%h, %3)
          return (%5)

    after:
        # graph graph: defined=[1, 1, 1]
        graph(%g : Tensor, %h : Tensor, %x : Tensor):
          %4 : Tensor = aten::mul(%g, %x)
          %6 : int = prim::Constant[value=1]()
          %7 : Tensor = aten::add(%h, %4, %6)
          return (%7)
    """
    by_df = {pair.df: pair for pair in pairs(module)}
    forward = {pair.f for pair in by_df.values()}
    changed = False
    for graph, name in zip(module.graphs, module.names(), strict=True):
        if graph in forward and graph not in by_df:
            continue
        flags = assumptions(graph, name, by_df.get(graph), defined)
        if flags is None:
            continue
        known = DEFINED in graph.metadata
        if not known:
            if not graph.name:
                graph.name = name       # the line that carries the record names the graph
            set_defined(graph, flags)
        changed = Specializer(graph, flags).run() or changed or not known
    return changed


def assumptions(graph: Graph, name: str, pair: GradientPair | None, given: tuple[bool, ...]) -> list[bool] | None:
    """One flag per input; None for a graph in which nothing depends on them. Raises PassError for a wrong count, or a contradiction."""
    if pair is None and DEFINED not in graph.metadata and not any(node.kind in GRADIENT_KINDS for node in graph.block):
        return None
    try:
        recorded = [bool(flag) for flag in read_numbers(graph, DEFINED)] if DEFINED in graph.metadata else None
        flags = recorded if recorded is not None else pair.assumed if pair is not None else [not is_undefined(v.type) for v in graph.inputs]
    except Error as error:
        raise PassError(error.message) from None
    if given:
        if len(given) != len(graph.inputs):
            raise PassError(f"specialize-undef: defined has {len(given)} flags, graph '{name}' takes {len(graph.inputs)} inputs")
        if recorded is not None and recorded != list(given):
            raise PassError(f"specialize-undef: graph '{name}' was already specialised, for defined={graph.metadata[DEFINED]}")
        flags = list(given)
    if len(flags) != len(graph.inputs):
        raise PassError(f"specialize-undef: defined={graph.metadata[DEFINED]}, graph '{name}' takes {len(graph.inputs)} inputs")
    return flags


def is_undefined(type: Type) -> bool:
    """Does the type say that there is no tensor?"""
    return isinstance(type, TensorType) and type.undefined is True


class Specializer:
    """One forward sweep over the top-level nodes. A value without a state is there: results of bodies that were opened are."""

    def __init__(self, graph: Graph, flags: list[bool]) -> None:
        self.graph = graph
        self.state: dict[Value, int] = {value: DEFINED_STATE if flag else UNDEFINED_STATE
                                        for value, flag in zip(graph.inputs, flags, strict=True)}
        self.build = Builder(graph)
        self.undefined_type = spell(types.TENSOR, graph.dialect)
        self.changed = False

    def run(self) -> bool:
        """Visit every node; says whether anything was changed."""
        node = self.graph.block.return_node.next
        while node is not self.graph.block.return_node:
            node = self.visit(node)
        return self.changed

    def visit(self, node: Node) -> Node:
        """Deal with one node; gives the one to visit next."""
        after = node.next
        if node.kind == "prim::GradOf" and len(node.blocks) == 1:
            return self.open_gradient(node)
        if node.kind == "prim::AutogradAdd" and len(node.inputs) == 2:
            self.decide_sum(node)
        elif node.kind in ("prim::Undefined", "prim::AutogradZero"):
            self.set_all(node, UNDEFINED_STATE)
        elif node.kind == "prim::If" and not self.graph.dialect.attribute_arguments:
            self.decide_choice(node)
        else:
            self.set_all(node, UNKNOWN_STATE)
        return after

    def of(self, value: Value) -> int:
        """The state of a value."""
        return self.state.get(value, DEFINED_STATE)

    def set_all(self, node: Node, state: int) -> None:
        """All results of a node are in this state."""
        for value in node.outputs:
            self.state[value] = state

    def open_gradient(self, node: Node) -> Node:
        """A `GradOf`: gone, opened, or left."""
        states = [self.of(value) for value in node.inputs]
        after = node.next
        if all(state == UNDEFINED_STATE for state in states):
            self.replace_by_undefined(node)
            return after
        if DEFINED_STATE not in states:
            self.set_all(node, UNKNOWN_STATE)
            return after
        replace_node(node, inline_block(node.blocks[0], node))
        self.changed = True
        return after

    def replace_by_undefined(self, node: Node) -> None:
        """One undefined gradient in the place of all results."""
        made = self.build.after(node).node(self.graph.dialect.undefined_kind, output_types=(self.undefined_type,))
        self.state[made.output] = UNDEFINED_STATE
        replace_node(node, [made.output if holds_tensor(value.type) else self.build.nothing(value.type) for value in node.outputs])
        self.changed = True

    def decide_sum(self, node: Node) -> None:
        """An `AutogradAdd`: one of its operands, a sum, or left."""
        left, right = node.inputs
        if self.of(left) == UNDEFINED_STATE:
            replace_node(node, [right])
        elif self.of(right) == UNDEFINED_STATE:
            replace_node(node, [left])
        elif self.of(left) == self.of(right) == DEFINED_STATE and not isinstance(left.type, ListType):
            self.build.tail = node.tail
            total = self.build.before(node).call("aten::add", left, right, alpha=1, type=contiguous(left.type, self.graph.dialect))
            self.build.tail = ""
            replace_node(node, [total])
        else:
            self.set_all(node, UNKNOWN_STATE)
            return
        self.changed = True

    def decide_choice(self, node: Node) -> None:
        """What `lower-grad-of` made of a `GradOf`: an `If` that asks whether a gradient is there."""
        asked = node.inputs[0].node
        self.set_all(node, UNKNOWN_STATE)
        if asked.kind not in ("prim::AutogradAnyNonZero", "prim::AnyDefined") or len(node.blocks) != 2:
            return
        states = {self.of(value) for value in asked.inputs}
        if states <= {UNDEFINED_STATE}:
            self.replace_by_undefined(node)
        elif states == {DEFINED_STATE}:
            for value in node.outputs:
                del self.state[value]
            replace_node(node, inline_block(node.blocks[0], node))
            self.changed = True

