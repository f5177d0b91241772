"""Whether a graph can tell in which order the elements of its tensors lie in memory.

A write leaves a tensor where it is. The operator that does not write makes a new one, which may lie otherwise: `tril` gives rows, whatever
its operand's order is. It shows where a new shape of the tensor shares its memory, or does not: `v.reshape(-1).add_(1)`.
"""
from __future__ import annotations

from functools import cached_property

from irtool.ir.constants import known_argument
from irtool.ir.effects import FRESH, category_of
from irtool.ir.graph import Graph, Node, Value
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
"""Kinds of new memory that lies by rows, without a memory format."""
WITH_GAPS = frozenset(("aten::empty_strided", "aten::new_empty_strided"))
"""Kinds of new memory with gaps."""


class MemoryOrders:
    """Whether the readers of a graph can tell memory orders; looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def are_asked(self) -> bool:
        """Does a node read how a tensor lies in memory?"""
        return any(node.kind in ASKING or "::" not in node.kind or node.kind.startswith("^") for node in self.graph.walk())

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
        return not lies_by_rows(target) and self.are_asked


def lies_by_rows(value: Value) -> bool:
    """Does a tensor lie by rows in each run, or has it no order, of fewer than two dimensions?"""
    type = value.type
    if isinstance(type, TensorType) and (type.rank is not None and type.rank < 2 or
                                         type.shape is not None and type.strides == contiguous_strides(type.shape)):
        return True
    return value.node.kind in BY_ROWS and known_argument(value.node, "memory_format") is None
