"""Whether a graph can tell in which order the elements of its tensors lie in memory.

A write leaves a tensor where it is. The operator that does not write makes a new one, which may lie otherwise: `tril` gives rows, whatever
its operand's order is. It shows where a new shape of the tensor shares its memory, or does not: `v.reshape(-1).add_(1)`.
"""
from __future__ import annotations

from functools import cached_property

from irtool.analysis.alias import Aliases
from irtool.ir.constants import known_argument
from irtool.ir.effects import FRESH, category_of, may_write_or_is_python
from irtool.ir.graph import PARAM, Graph, Node, Value
from irtool.ir.types import TensorType, contiguous_strides
from irtool.ops.facts import facts_of_node, lies_as_first

STRIDES = frozenset("""
aten::is_contiguous aten::is_non_overlapping_and_dense aten::stride aten::storage_offset
""".split())
"""Kinds whose result says how their operand lies in memory."""
ASKING = STRIDES | frozenset("""
aten::reshape aten::reshape_as aten::view aten::view_as aten::_unsafe_view aten::_reshape_alias aten::flatten aten::ravel aten::unflatten
aten::contiguous aten::as_strided aten::as_strided_
aten::resize_ aten::resize_as_ aten::set_ aten::einsum aten::flatten_dense_tensors aten::_reshape_from_tensor aten::pixel_shuffle
prim::CallFunction prim::CallMethod prim::PythonOp prim::IgnoredPythonOp prim::fork prim::awaitable
""".split())
"""Kinds whose results depend on memory orders, or may: what shares memory, which numbers strides are, whether it is an error."""

BY_ROWS = frozenset(f"aten::{name}" for name in """
empty zeros ones full rand randn randint new_empty new_zeros new_ones new_full mm bmm addmm baddbmm tril triu masked_fill
""".split())
"""Kinds of new memory that lies by rows, without a memory format, whatever the memory orders of their operands are."""
PAIRS_BY_ROWS = frozenset(f"aten::{name}" for name in "max min kthvalue median nanmedian mode aminmax std_mean var_mean".split())
"""Kinds of which the same is true where they have two results: the reductions along a dimension."""
WITH_GAPS = frozenset(("aten::empty_strided", "aten::new_empty_strided"))
"""Kinds of new memory with gaps."""


class MemoryOrders:
    """Whether the readers of a graph can tell memory orders; looked up once, by `look`.

    keeps_readers: until the last question, what reads a tensor reads that tensor, or what takes its place after a write. It is not so where
    views are computed anew: then a reader of any tensor may become one of any other.
    """

    def __init__(self, graph: Graph, keeps_readers: bool = True) -> None:
        self.graph = graph
        self.keeps_readers = keeps_readers

    @cached_property
    def asking(self) -> list[Node]:
        """The nodes that read how a tensor lies in memory."""
        return [node for node in self.graph.walk() if node.kind in ASKING or "::" not in node.kind or node.kind.startswith("^")]

    @cached_property
    def known(self) -> frozenset[Value]:
        """The values of the graph when `look` was called."""
        return frozenset(self.graph.values())

    @cached_property
    def aliases(self) -> Aliases:
        return Aliases(self.graph)

    @cached_property
    def asked(self) -> set[Value]:
        """The roots of the tensors whose memory orders a node may tell: `asking` nodes read them, or what is computed from them."""
        found: set[Value] = set()
        waiting = [value for node in self.asking for value in node.inputs]
        for node in self.graph.walk():      # what is put into a container comes out of it by any of its names
            if node.inputs and not isinstance(node.inputs[0].type, TensorType) and may_write_or_is_python(node):
                waiting.extend(node.inputs)
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                block = value.node.owner_block if value.node.kind == PARAM else None
                maker = value.node if block is None else block.owning_node
                if maker is not None and not gives_rows(maker):
                    waiting.extend(maker.inputs)
                    waiting.extend(result for inner in maker.blocks for result in inner.outputs)
        return {root for value in found for root in self.aliases.roots(value)}

    def look(self) -> None:
        """Look at the graph while its writes are there: what takes the place of one no longer shares memory with its operand."""
        if self.asking and self.keeps_readers:
            _ = self.known, self.asked

    def are_asked(self, value: Value) -> bool:
        """May a node tell how a value, or another name of its memory, lies in memory?"""
        if not self.asking or not self.keeps_readers:
            return bool(self.asking)
        return value not in self.known or self.aliases.is_wild(value) or not self.asked.isdisjoint(self.aliases.roots(value))

    @cached_property
    def strides_are_asked(self) -> bool:
        """Does a node read strides, or what follows from them alone?"""
        return any(node.kind in STRIDES for node in self.graph.walk())

    def may_lose_gaps(self, target: Value) -> bool:
        """May a tensor have gaps between its elements, as a part of another does, that a reader could miss in a new value?"""
        return (category_of(target.node) != FRESH or target.node.kind in WITH_GAPS) and self.strides_are_asked

    def may_change(self, node: Node, target: Value) -> bool:
        """May a reader tell that a node, which does not write, took the place of a write into `target`?"""
        type, facts = target.type, facts_of_node(node)
        if facts.is_view or lies_as_first(node.kind, facts) or not isinstance(type, TensorType):
            return False
        return not lies_by_rows(target) and self.are_asked(target)


def lies_by_rows(value: Value) -> bool:
    """Does a tensor lie by rows in each run, or has it no order, of fewer than two dimensions?"""
    type = value.type
    if isinstance(type, TensorType) and (type.rank is not None and type.rank < 2 or
                                         type.shape is not None and type.strides == contiguous_strides(type.shape)):
        return True
    return gives_rows(value.node)


def gives_rows(node: Node) -> bool:
    """Is the result of a node new memory, which lies by rows whatever the operands are?"""
    return node.kind in BY_ROWS and known_argument(node, "memory_format") is None or node.kind in PAIRS_BY_ROWS and len(node.outputs) == 2
