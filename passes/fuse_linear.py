"""Products with a transposed weight as one operator."""
from __future__ import annotations

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, known_argument
from irtool.ir.edits import replace_node
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType


def fuse_linear(graph: Graph) -> bool:
    """Make an `addmm` with factors of 1, and `x @ w.t()` with or without a bias that is added to it in place, an `aten::linear`.

    A bias of another dtype than the product, or of a dtype that no type says, is still added in place.

    before:
        graph(%x : Tensor, %w : Tensor, %b : Tensor):
          %3 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::t(%w)
          %5 : Tensor = aten::addmm(%b, %x, %4, %3, %3)
          %6 : Tensor = aten::matmul(%5, %4)
          return (%6)

    after:
        graph(%x : Tensor, %w : Tensor, %b : Tensor):
          %7 : Tensor = aten::linear(%x, %w, %b)
          %8 : NoneType = prim::Constant()
          %9 : Tensor = aten::linear(%7, %w, %8)
          return (%9)
    """
    build = Builder(graph)
    changed = False
    for node in list(graph.walk()):
        operands = linear_operands(node, build)
        if operands is not None:
            build.before(node)
            build.tail = node.tail
            replace_node(node, [build.call("aten::linear", *operands, type=node.output.type)])
            changed = True
    if changed:
        remove_dead_nodes(graph)
    return changed


def linear_operands(node: Node, build: Builder) -> tuple[Value, Value, Value | None] | None:
    """Input, weight and bias of the `linear` that a node is, or None."""
    match node.kind, node.inputs:
        case "aten::addmm", (bias, mat, factor, beta, alpha) if constant(beta) == 1 == constant(alpha):
            return mat, transposed(factor) or build.before(node).call("aten::t", factor, type=factor.type), bias
        case "aten::matmul", (mat, factor):
            weight = transposed(factor)
            if weight is not None and not any(is_sum(user, node.output) for user, _ in node.output.uses):
                return mat, weight, None
        case "aten::add_", (product, bias, *_) if product.node.kind == "aten::matmul" and is_sum(node, product):
            if len(product.node.inputs) == 2 and (weight := transposed(product.node.inputs[1])) is not None:
                return product.node.inputs[0], weight, bias
    return None


def is_sum(node: Node, product: Value) -> bool:
    """Does a node add a bias to a product in place, and does no reader notice if the product already contains it?"""
    if node.kind != "aten::add_" or len(node.inputs) < 2 or node.inputs[0] is not product or product.use_count != 1 \
            or known_argument(node, "alpha") != 1:
        return False
    mine, yours = product.type, node.inputs[1].type
    return isinstance(mine, TensorType) and isinstance(yours, TensorType) and mine.dtype is not None and mine.dtype == yours.dtype


def transposed(value: Value) -> Value | None:
    """The value of which this one is the transpose; None if it is none."""
    return value.node.inputs[0] if value.node.kind == "aten::t" and value.node.inputs else None
