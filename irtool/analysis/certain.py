"""Which values are computed in every run, or cannot fail to be: only questions about these may be answered without computing them.

An operator that may raise an error (`x.view(5)` of two elements) must run if something asks for the dtype or rank of its result, although
types answer that. It does run if something else needs the result. If nothing does, and types do not show that the operator cannot fail, the
question stays. What nothing asks about is dead code, whose errors nobody sees, as in torch.
"""
from __future__ import annotations

from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant
from irtool.ir.dtypes import is_float_dtype
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, has_side_effects
from irtool.ir.graph import PARAM, Block, Graph, Node, Value
from irtool.ir.structure_kinds import CONSTRUCTS
from irtool.ir.type_answers import ANSWERS, answer
from irtool.ir.types import FLOAT, INT, TensorType

PICKS = frozenset(("aten::len", "aten::__getitem__", "prim::ListUnpack", "prim::TupleUnpack", "prim::TupleIndex"))
"""Kinds that may not need all items of a list or tuple."""
NOT_NEEDING = frozenset(("aten::__is__", "aten::__isnot__", "aten::len", "prim::isinstance"))
"""Kinds that are computed without running what computed their operands."""
ALWAYS = frozenset(f"aten::{name}" for name in "clone contiguous detach zeros_like ones_like isnan isfinite isinf".split())
"""Kinds that cannot fail on any tensor."""
ON_FLOATS = frozenset(f"aten::{name}" for name in """
abs acos asin atan ceil cos cosh erf erfc exp expm1 floor log log10 log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt
square tan tanh trunc silu hardtanh hardswish softplus leaky_relu elu gelu selu logical_not
""".split())
"""Elementwise kinds that cannot fail on tensors of real floating-point numbers."""
OF_TWO = frozenset(f"aten::{name}" for name in "add sub rsub mul div pow eq ne lt le gt ge maximum minimum".split())
"""Elementwise kinds of two operands that cannot fail on such tensors, if the sizes of one do not matter."""


class Certain:
    """The values of a graph that every run computes, whatever questions are answered beforehand."""

    def __init__(self, graph: Graph) -> None:
        self.needed: dict[Block, set[Value]] = {}       # what a block needs if it runs
        self.safe: dict[Value, bool] = {}
        self.walk(graph.block, set(graph.outputs))

    def is_certain(self, value: Value, node: Node) -> bool:
        """Is a value, about which a node asks, computed whenever the node runs, or certainly computed without an error?"""
        block: Block | None = node.owner_block
        while block is not None:
            if value in self.needed.get(block, ()):
                return True
            owner = block.owning_node
            block = None if owner is None else owner.owner_block
        return self.is_safe(value)

    def walk(self, block: Block, needed: set[Value]) -> set[Value]:
        """Collect what a block needs for the values `needed`, which are added to."""
        self.needed[block] = needed
        for node in reversed(block):
            if not has_side_effects(node) and needed.isdisjoint(node.outputs):
                for inner in node.blocks:
                    self.walk(inner, set())
            elif node.kind in IF_KINDS:
                places = [place for place, each in enumerate(node.outputs) if each in needed]
                branches = [self.walk(inner, {inner.outputs[place] for place in places}) for inner in node.blocks]
                needed.update(node.inputs, set.intersection(*branches))
            elif node.kind in LOOP_KINDS:
                needed.update(node.inputs[:2])
                self.walk(node.blocks[0], set(node.blocks[0].outputs[:1]))
            else:
                for inner in node.blocks:
                    self.walk(inner, set())
                self.need_operands(node, needed)
        return needed

    def need_operands(self, node: Node, needed: set[Value]) -> None:
        """Add the operands of a node that runs, unless the node may become a constant, or pick some items of a list."""
        if node.kind in NOT_NEEDING or is_answered(node):
            return
        for place, value in enumerate(node.inputs):
            if place or node.kind not in PICKS or value.node.kind not in CONSTRUCTS:
                needed.add(value)

    def is_safe(self, value: Value) -> bool:
        """Is a value computed without an error whatever the sizes of its operands are?"""
        pending = [value]
        while pending:
            at = pending[-1]
            if at in self.safe:
                pending.pop()
                continue
            operands = [] if at.node.kind == PARAM or at.node.kind in CONSTANT_KINDS else at.node.inputs
            unknown = [each for each in operands if each not in self.safe]
            if unknown and cannot_fail(at.node):
                pending += unknown
                continue
            self.safe[at] = cannot_fail(at.node) and all(self.safe[each] for each in operands)
            pending.pop()
        return self.safe[value]


def is_answered(node: Node) -> bool:
    """Does a node ask what the type of its operand says?"""
    if node.kind not in ANSWERS or not node.inputs:
        return False
    type = node.inputs[0].type
    return isinstance(type, TensorType) and answer(node, type) is not NOT_CONSTANT


def cannot_fail(node: Node) -> bool:
    """Do the types of a node's operands show that it raises no error?"""
    kind, types = node.kind, [value.type for value in node.inputs]
    if kind == PARAM or kind in CONSTANT_KINDS or kind == "prim::NumToTensor":
        return True
    first = types[0] if types else None
    if not isinstance(first, TensorType):
        return False
    if kind in ALWAYS:
        return True
    if kind in ON_FLOATS:
        return is_real(first)
    if kind in OF_TWO and len(types) > 1:
        second = types[1]
        if isinstance(second, TensorType):
            return is_real(first) and is_real(second) and (0 in (first.rank, second.rank) or node.inputs[0] is node.inputs[1])
        return is_real(first) and second in (INT, FLOAT)
    if kind in ("aten::sum", "aten::mean"):
        return is_real(first) and all(constant(each) is None for each in node.inputs[1:])
    return kind in DIMENSIONS and first.rank is not None and are_in_range(node, first.rank)


DIMENSIONS = frozenset(("aten::t", "aten::transpose", "aten::unsqueeze"))
"""Kinds that cannot fail if the dimensions that they name exist."""


def are_in_range(node: Node, rank: int) -> bool:
    """Are the dimensions that a node of DIMENSIONS names, constants, among those of an operand of this rank?"""
    if node.kind == "aten::t":
        return rank <= 2
    count = rank + 1 if node.kind == "aten::unsqueeze" else rank
    dims = [constant(each) for each in node.inputs[1:]]
    return bool(dims) and all(isinstance(dim, int) and -count <= dim < count for dim in dims)


def is_real(type: TensorType) -> bool:
    """Is a type of a tensor of real floating-point numbers?"""
    return type.dtype is not None and is_float_dtype(type.dtype)
