"""Specialisation for defined and undefined gradients."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.analysis.definedness import DEFINED as DEFINED_STATE
from irtool.analysis.definedness import THERE, Definedness
from irtool.analysis.definedness import UNDEFINED as UNDEFINED_STATE
from irtool.analysis.definedness import UNKNOWN as UNKNOWN_STATE
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.edits import inline_block, put_in_place, replace_node
from irtool.ir.errors import Error, PassError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.pair import DEFINED, GradientPair, pairs, read_numbers, set_defined
from irtool.ir.remarks import count
from irtool.ir.shapes import contiguous
from irtool.ir.structure_kinds import GRADIENT_KINDS
from irtool.ir.types import ListType, TensorType, TupleType, Type, spell
from irtool.partial.items import holds_tensor


def specialize_undef(module: Module, defined: tuple[bool, ...] = ()) -> bool:
    """Inline or remove each `prim::GradOf` whose gradients are known to be defined or undefined, and decide each `prim::AutogradAdd`.

    `defined=1,0,...` says per input whether it is defined. By default, in the df of a pair, gradients of real outputs and captures are, and
    gradients of temporaries are not; in any other graph all inputs are, unless their type says undefined. The assumptions are recorded in
    the graph's metadata. Branches and loops are specialised too: a carried value counts as defined if it is in every round.

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
                graph.name = name       # the metadata line names the graph
            set_defined(graph, flags)
        changed = Specializer(graph, flags).run() or changed or not known
    return changed


def assumptions(graph: Graph, name: str, pair: GradientPair | None, defined: tuple[bool, ...]) -> list[bool] | None:
    """One flag per input; None for a graph that does not depend on them. Raises PassError for a wrong number, or a contradiction."""
    if pair is None and DEFINED not in graph.metadata and not any(node.kind in GRADIENT_KINDS for node in graph.walk()):
        return None
    try:
        recorded = [bool(flag) for flag in read_numbers(graph, DEFINED)] if DEFINED in graph.metadata else None
        flags = recorded if recorded is not None else pair.assumed if pair is not None else [not is_undefined(v.type) for v in graph.inputs]
    except Error as error:
        raise PassError(error.message, code="E0305") from None
    if defined:
        if len(defined) != len(graph.inputs):
            raise PassError(f"specialize-undef: defined has {len(defined)} flags, graph '{name}' takes {len(graph.inputs)} inputs",
                            code="E0305")
        if recorded is not None and recorded != list(defined):
            raise PassError(f"specialize-undef: graph '{name}' was already specialised, for defined={graph.metadata[DEFINED]}")
        flags = list(defined)
    if len(flags) != len(graph.inputs):
        raise PassError(f"specialize-undef: defined={graph.metadata[DEFINED]}, graph '{name}' takes {len(graph.inputs)} inputs",
                        code="E0305")
    return flags


def is_undefined(type: Type) -> bool:
    """Is a type that of an undefined tensor?"""
    return isinstance(type, TensorType) and type.undefined is True


class Specializer(Definedness):
    """One forward walk over the nodes, including those of inlined regions and those in loops and branches. of_lists: the state of a list
    among the inputs whose flag is set."""

    def __init__(self, graph: Graph, flags: list[bool], of_lists: int = DEFINED_STATE) -> None:
        super().__init__()
        self.graph = graph
        self.state.update((value, UNDEFINED_STATE if not flag else UNKNOWN_STATE if isinstance(value.type, TupleType) else
                           of_lists if isinstance(value.type, ListType) else DEFINED_STATE)
                          for value, flag in zip(graph.inputs, flags, strict=True))
        self.hoisted: set[Node] = set()
        """Nodes of inlined regions: their results are defined, with the exceptions in `Definedness`."""
        self.enters_blocks = not graph.dialect.attribute_arguments
        """The pass of 2018 did not enter blocks."""
        self.build = Builder(graph)
        self.undefined_type = spell(types.TENSOR, graph.dialect)
        self.changed = False

    def run(self) -> bool:
        """Visit every node; returns whether anything changed."""
        self.sweep(self.graph.block)
        return self.changed

    def sweep(self, block: Block) -> None:
        """Visit the nodes of a block."""
        node = block.return_node.next
        while node is not block.return_node:
            node = self.visit(node)

    def visit(self, node: Node) -> Node:
        """Specialise one node; returns the node to visit next."""
        after = node.next
        is_hoisted = node in self.hoisted
        if node.kind == "prim::GradOf" and len(node.blocks) == 1:
            return self.open_gradient(node)
        if node.kind == "prim::AutogradAdd" and len(node.inputs) == 2:
            self.decide_sum(node)
        elif node.kind == "prim::If" and len(node.blocks) == 2 and (is_hoisted or self.enters_blocks):
            return self.decide_choice(node)
        elif node.kind == "prim::Loop" and self.enters_blocks:
            self.look_into_loop(node, is_hoisted)
            self.enter(node)
            self.leave_loop(node)
        elif node.kind == "prim::unchecked_cast" and is_hoisted and node.inputs[0].type is node.output.type:
            replace_node(node, node.inputs)
        else:
            self.look(node, is_hoisted)
        return after

    def enter(self, node: Node) -> None:
        """Visit the nodes in the blocks of a node."""
        for block in node.blocks:
            if node in self.hoisted:
                self.hoisted.update(block)
            self.sweep(block)

    def open_block(self, node: Node, block: Block) -> Node:
        """Replace a node by the nodes of one of its blocks; returns the first of them."""
        after = node.next
        first = block.return_node.next
        self.hoisted.update(block)
        is_empty = first is block.return_node
        self.replace(node, inline_block(block, node))
        self.changed = True
        return after if is_empty else first

    def replace(self, node: Node, values: Sequence[Value]) -> None:
        """Let the readers of the node's results read these values, and remove the node."""
        moved: dict[Value, Value] = {}
        for old, new in zip(node.outputs, values, strict=True):
            new = moved.get(new, new)
            if put_in_place(old, new) is old:
                moved[new] = old
                if new in self.state:
                    self.state[old] = self.state[new]
                if new in self.gradients:
                    self.gradients.add(old)
        node.outputs = ()       # some are results of other nodes by now
        node.destroy()
        count("nodes replaced")

    def open_gradient(self, node: Node) -> Node:
        """A `GradOf`: removed, inlined, or left; returns the node to visit next."""
        states = [self.of(value) for value in node.inputs]
        after = node.next
        if all(state == UNDEFINED_STATE for state in states):
            self.replace_by_undefined(node)
            return after
        if THERE.isdisjoint(states):
            self.set_all(node, UNKNOWN_STATE)
            return after
        self.gradients.update(node.inputs)
        return self.open_block(node, node.blocks[0])

    def replace_by_undefined(self, node: Node) -> None:
        """Replace all results of a node by undefined gradients."""
        undefined = self.build.after(node).node(self.graph.dialect.undefined_kind, output_types=(self.undefined_type,))
        self.state[undefined.output] = UNDEFINED_STATE
        replace_node(node, [undefined.output if isinstance(value.type, TensorType) else self.undefined(value.type)
                            for value in node.outputs])
        self.changed = True

    def undefined(self, type: Type) -> Value:
        """An undefined gradient for a result that is no tensor."""
        if not holds_tensor(type):
            return self.build.nothing(type)
        undefined = self.build.node(self.graph.dialect.undefined_kind, output_types=(type,)).output
        self.state[undefined] = UNDEFINED_STATE
        return undefined

    def decide_sum(self, node: Node) -> None:
        """An `AutogradAdd`: replaced by an operand, or by a sum, or left."""
        left, right = node.inputs
        if self.of(left) == UNDEFINED_STATE:
            self.replace(node, [right])
        elif self.of(right) == UNDEFINED_STATE:
            self.replace(node, [left])
        elif self.of(left) == self.of(right) == DEFINED_STATE and not isinstance(left.type, ListType):
            self.add(node, left, right)
        else:
            self.set_all(node, UNKNOWN_STATE if node.owner is self.graph.block else self.sum(left, right))
            return
        self.changed = True

    def add(self, node: Node, left: Value, right: Value) -> None:
        """Turn an `AutogradAdd` of two gradients that are defined into the sum."""
        type = contiguous(left.type, self.graph.dialect)
        self.build.before(node).tail = node.tail
        if self.graph.dialect.attribute_arguments or not isinstance(left.type, TensorType) or not isinstance(right.type, TensorType):
            replace_node(node, [self.build.call("aten::add", left, right, alpha=1, type=type)])
        else:       # the node stays, so that its readers need not be looked for
            node.kind = "aten::add"
            node.add_input(self.build.constant(1))
            node.output.name, node.output.type = self.graph.fresh_id(), spell(type, self.graph.dialect)
        self.build.tail = ""

    def decide_choice(self, node: Node) -> Node:
        """An `If` that asks whether a gradient is defined (made by `lower-grad-of`, or in a region)."""
        asked, after = node.inputs[0].node, node.next
        is_there = self.answer(asked)
        if is_there is not None:
            return self.open_block(node, node.blocks[0 if is_there else 1])
        self.enter(node)
        for value, *alternatives in zip(node.outputs, *[block.outputs for block in node.blocks], strict=True):
            self.state[value] = self.join(alternatives)
        return after
