"""Elimination of tuples."""
from __future__ import annotations

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.builder import Builder
from irtool.ir.constants import NOT_CONSTANT, constant, is_constant
from irtool.ir.edits import replace_node, replace_output
from irtool.ir.effects import LOOP_KINDS
from irtool.ir.errors import PassError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.pair import is_in_pair
from irtool.ir.source import Diagnostic
from irtool.ir.structure_kinds import TUPLE_FORWARDING
from irtool.ir.types import TupleType
from irtool.ir.verify import violations


def lower_tuples(graph: Graph, all: bool = False) -> bool:
    """Let users of a tuple's elements read them directly, and drop tuples that are then unused.

    `all` eliminates every tuple: those carried by loops, results of branches, and inputs and outputs of the graph, whose signature changes.
    A tuple that cannot be eliminated is an error.

    before:
        graph(%x : Tensor, %y : Tensor):
          %1 : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
          %2 : Tensor, %3 : Tensor = prim::TupleUnpack(%1)
          %4 : Tensor = aten::sub(%3, %2)
          return (%4)

    after:
        graph(%x : Tensor, %y : Tensor):
          %4 : Tensor = aten::sub(%y, %x)
          return (%4)
    """
    lowering = Lowering(graph, all)
    if all and is_in_pair(graph):
        for node, values in ((graph.block.param_node, graph.inputs), (graph.block.return_node, graph.outputs)):
            if any(isinstance(value.type, TupleType) for value in values):
                lowering.refuse(node, f"'{graph.name}' belongs to a gradient pair, whose graphs take and give what they did: "
                                      "lower tuples before the pair is made")
    if all:
        lowering.lower_block(graph.block)
        lowering.check()
    else:
        lowering.simplify_block(graph.block)
    return remove_dead_nodes(graph) or lowering.changed


class Lowering:
    """Both forms of the pass: `simplify_block` reads through constructed tuples, `lower_block` eliminates all."""

    def __init__(self, graph: Graph, all: bool) -> None:
        self.graph = graph
        self.all = all
        self.changed = False
        self.build = Builder(graph)

    def simplify_block(self, block: Block) -> None:
        """Replace reads of constructed tuples in a block."""
        for node in block:
            self.open_constant(node)
            self.read_through(node)
            for inner in node.blocks:
                self.simplify_block(inner)

    def lower_block(self, block: Block) -> None:
        """Eliminate all tuples among operands and results of nodes, and inputs and outputs, of a block."""
        self.split_results(block.param_node)
        for node in block:
            if node.kind == "prim::TupleConstruct":
                continue
            self.open_constant(node)
            if node.owner is None or self.read_through(node):
                continue
            self.split_operands(node)
            for inner in node.blocks:
                self.lower_block(inner)
            self.split_results(node)
        self.split_operands(block.return_node)

    # -- one node
    def open_constant(self, node: Node) -> None:
        """Replace a constant tuple by a tuple of constants."""
        if len(node.outputs) != 1 or not is_constant(node.outputs[0]) or not isinstance(node.output.type, TupleType):
            return
        held = constant(node.output)
        if not isinstance(held, tuple) or len(held) != len(node.output.type.elements):
            return
        parts = [self.build.before(node).constant(value, None if value is None else type)
                 for value, type in zip(held, node.output.type.elements, strict=True)]
        construct = self.build.before(node).node("prim::TupleConstruct", parts, {}, (node.output.type,))
        replace_node(node, construct.outputs)
        self.changed = True
        for part in parts:
            self.open_constant(part.node)

    def read_through(self, node: Node) -> bool:
        """Replace a node that reads from a constructed tuple; returns whether it is such a node."""
        if node.kind not in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice") or not node.inputs:
            return False
        source = node.inputs[0].node
        if source.kind != "prim::TupleConstruct":
            if self.all:
                self.refuse(node, f"{node.kind} of a tuple that is not made in the graph")
            return True
        elements = source.inputs
        replacements: list[Value] | None = None
        if node.kind == "prim::TupleUnpack":
            replacements = list(elements)
        elif node.kind == "prim::TupleSlice":
            begin, end = (node.attributes[name].value for name in ("beg", "end"))
            if isinstance(begin, int) and isinstance(end, int):
                replacements = [self.build.before(node).construct_tuple(elements[begin:end])]
        else:
            index = constant(node.inputs[1]) if len(node.inputs) > 1 else NOT_CONSTANT
            if len(node.inputs) == 1 and "index" in node.attributes:        # until 2019
                index = node.attributes["index"].value
            if isinstance(index, int) and -len(elements) <= index < len(elements):
                replacements = [elements[index]]
            elif self.all:
                self.refuse(node, "a tuple is indexed by a number that is not constant, or out of range")
        if replacements is not None and len(replacements) == len(node.outputs):
            replace_node(node, replacements)
            self.changed = True
        return True

    def split_operands(self, node: Node) -> None:
        """Replace operands that are tuples by their elements."""
        slot = 0
        while slot < len(node.inputs):
            value = node.inputs[slot]
            if not isinstance(value.type, TupleType):
                slot += 1
                continue
            if value.node.kind != "prim::TupleConstruct":
                self.refuse(node, f"%{value.name} is a tuple that is not made in the graph ({value.node.kind})")
            elements = value.node.inputs
            self.changed = True
            node.set_inputs((*node.inputs[:slot], *elements, *node.inputs[slot + 1:]))
            if node.kind in LOOP_KINDS and slot >= 2:
                self.split_value(node.blocks[0].param_node, slot - 1)
            elif node is node.owner_block.return_node and node.owner_block.owning_node is not None:
                owner = node.owner_block.owning_node
                if owner.blocks[0] is node.owner_block:
                    index = slot - 1 if owner.kind in LOOP_KINDS else slot
                    if isinstance(owner.outputs[index].type, TupleType):
                        self.split_value(owner, index)

    def split_results(self, node: Node) -> None:
        """Replace results that are tuples by their elements; users read a tuple constructed from these."""
        index = 0
        while index < len(node.outputs):
            value = node.outputs[index]
            if not isinstance(value.type, TupleType) or not value.has_uses and node is not self.graph.block.param_node:
                index += 1
                continue
            if node.kind not in TUPLE_FORWARDING:
                self.refuse(node, f"{node.kind} gives a tuple")
            self.split_value(node, index)

    def split_value(self, node: Node, index: int) -> None:
        """Replace one tuple result by its elements, and construct the tuple again for its users."""
        value = node.outputs[index]
        types = value.type.elements
        if not isinstance(value.type, TupleType):
            self.refuse(node, f"%{value.name} : {value.type} is given a tuple")
        after = node.owner_block.return_node.next if node is node.owner_block.param_node else node.next
        construct = self.build.before(after).node("prim::TupleConstruct", (), {}, (value.type,))
        value.replace_all_uses_with(construct.output)
        fresh = replace_output(node, index, types)
        construct.set_inputs(fresh)
        self.changed = True

    def check(self) -> None:
        """Raises PassError at a node whose operands or results cannot be split, such as one with an inner graph."""
        diagnostics = violations(self.graph) if self.changed else []
        for diagnostic in diagnostics:
            diagnostic.message = f"lower-tuples{{all}}: a tuple cannot be taken apart: {diagnostic.message}"
        if diagnostics:
            raise PassError(diagnostics=diagnostics[:1])

    def refuse(self, node: Node, message: str) -> None:
        where = Diagnostic("error", f"lower-tuples{{all}}: {message}", self.graph.source, node.line)
        raise PassError(diagnostics=[where])


