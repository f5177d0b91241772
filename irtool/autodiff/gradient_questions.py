"""What graphs ask about gradients, `x.requires_grad` and `x.is_leaf`: where the answer is certain before the run, it becomes a constant.

It is certain for a tensor that no gradient can reach; for an input that gradients are taken for; and for what operators compute of such an
input in a known dtype. For other tensors it depends on the run, on the branch that is taken, say: then the tape knows it.
"""
from __future__ import annotations

from collections.abc import Sequence

from irtool.autodiff.formula_graphs import has_gradient
from irtool.autodiff.reach import FLOATING, holds_tensors, requiring
from irtool.autodiff.refusals import at_node
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_constant
from irtool.ir.effects import IF_KINDS, OF_THE_FIRST, STATISTICS, node_may_write
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node
from irtool.ir.schema import qualified, schema_of
from irtool.ir.structure_kinds import TYPE_CASTS, kinds
from irtool.ir.types import TensorType

QUESTIONS = kinds("prim::requires_grad aten::is_leaf")
"""The kinds that ask. A run without gradients answers False and True."""


def settle_questions(graph: Graph, flags: Sequence[bool], trust_types: bool = False) -> Node | None:
    """Put constants for the answers that are certain if the inputs whose flag is set have gradients. Returns the first node whose answer
    only the run shows; None: there is none. trust_types: as for `requiring`."""
    asked = [node for node in graph.walk() if node.kind in QUESTIONS and node.output.has_uses]
    if not asked:
        return None
    answers = Answers(graph, flags, trust_types)
    if any(answers.may_change_by(node) for node in graph.walk()):
        return asked[0]
    answers.sweep(graph.block)
    return answers.unsettled


def refuse_questions(graph: Graph, flags: Sequence[bool], trust_types: bool) -> None:
    """As `settle_questions`, but raises UnsupportedError, at the node's line, if only the run shows an answer."""
    node = settle_questions(graph, flags, trust_types)
    if node is not None:
        message = f"gradients through {node.kind} are not supported here: only the run shows whether %{node.inputs[0].name} has one"
        raise at_node(graph, UnsupportedError(message, code="E0501"), node)


class Answers:
    """A walk over a graph in the order of execution, which answers its questions as far as it can."""

    def __init__(self, graph: Graph, flags: Sequence[bool], trust_types: bool) -> None:
        self.graph = graph
        self.may = requiring(graph, flags, trust_types)
        self.inputs = {value for value, flag in zip(graph.inputs, flags, strict=True) if flag and holds_tensors(value.type)}
        self.must = set(self.inputs)
        """The values that have a gradient whatever the run does."""
        self.unsettled: Node | None = None

    def may_change_by(self, node: Node) -> bool:
        """May a node write into a tensor, which then has a gradient under all names of its memory, or has none any more?"""
        is_of_tensor = bool(node.inputs) and (isinstance(node.inputs[0].type, TensorType) or not node.inputs[0].type.elements)
        return is_of_tensor and qualified(node.kind) not in STATISTICS and not self.may.isdisjoint(node.inputs) and node_may_write(node)

    def sweep(self, block: Block) -> None:
        """Visit the nodes of a block; of a branch with a constant condition only the block that runs."""
        for node in list(block):
            if node.kind in QUESTIONS and node.output.has_uses:
                self.answer(node)
            elif node.kind in IF_KINDS:
                chosen = self.branches(node)
                for inner in chosen:
                    self.sweep(inner)
                ending = [inner for inner in chosen if not any(each.kind == "prim::RaiseException" for each in inner)]
                self.must.update(value for at, value in enumerate(node.outputs)
                                 if ending and all(inner.outputs[at] in self.must for inner in ending))
            elif node.blocks:
                for inner in node.blocks:
                    self.sweep(inner)
            elif node.kind in TYPE_CASTS:
                for each in (self.inputs, self.must):
                    each.update(node.outputs if node.inputs[0] in each else ())
            elif self.gives_gradient(node):
                self.must.add(node.output)

    def branches(self, node: Node) -> Sequence[Block]:
        """The blocks of a branch that may run."""
        if len(node.blocks) < 2 or not is_constant(node.inputs[0]):
            return node.blocks
        return node.blocks[:1] if constant(node.inputs[0]) else node.blocks[1:]

    def gives_gradient(self, node: Node) -> bool:
        """Has the result of an operator certainly a gradient? A tape records it then."""
        operands = node.inputs[:1] if node.kind in OF_THE_FIRST else node.inputs
        if self.must.isdisjoint(operands) or len(node.outputs) != 1:
            return False
        type, schema = node.output.type, schema_of(node)
        return isinstance(type, TensorType) and type.dtype in FLOATING and node.output in self.may and schema is not None \
            and has_gradient(schema) is True

    def answer(self, node: Node) -> None:
        """Put a constant for a question, if the answer is certain."""
        value = node.inputs[0]
        is_certain = value not in self.may or value in (self.must if node.kind == "prim::requires_grad" else self.inputs)
        if not is_certain:
            self.unsettled = self.unsettled or node
            return
        answer = node.kind == "aten::is_leaf" or value in self.may
        node.output.replace_all_uses_with(Builder(self.graph).before(node).constant(answer))
        node.destroy()
