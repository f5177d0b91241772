"""Products that something is added to as one operator."""
from __future__ import annotations

from irtool.analysis.memory_orders import lies_by_rows
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType


def fuse_addmm(graph: Graph) -> bool:
    """Make `x.mm(y) + b` and `b + x.mm(y)` an `aten::addmm`, where the types say that b has the product's dtype and repeats to its shape.

    A b of several rows and columns that comes first must lie in memory by rows, as the result of an `addmm` does. The sum and the product
    that nobody reads any more are left to `dce`.

    before:
        graph(%b : Float(4), %x : Float(2, 3), %y : Float(3, 4)):
          %3 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::mm(%x, %y)
          %5 : Tensor = aten::add(%4, %b, %3)
          return (%5)

    after:
        graph(%b : Float(4), %x : Float(2, 3), %y : Float(3, 4)):
          %3 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::mm(%x, %y)
          %6 : int = prim::Constant[value=1]()
          %7 : Tensor = aten::addmm(%b, %x, %y, %6, %6)
          %5 : Tensor = aten::add(%4, %b, %3)
          return (%7)
    """
    build = Builder(graph)
    changed = False
    for node in list(graph.walk()):
        if node.kind != "aten::add" or len(node.inputs) != 3 or not node.output.has_uses or constant(node.inputs[2]) != 1:
            continue
        for product, bias in (node.inputs[:2], (node.inputs[1], node.inputs[0])):
            if is_product(product.node) and is_bias(bias, product.node) and (bias is node.inputs[1] or lies_by_rows(bias) or has_one(bias)):
                build.before(node)
                build.tail = node.tail
                one = build.constant(1)
                fused = build.call("aten::addmm", bias, *product.node.inputs, beta=one, alpha=one, type=node.output.type)
                node.output.replace_all_uses_with(fused)
                changed = True
                break
    return changed


def is_product(node: Node) -> bool:
    """Is a node a product of two matrices?"""
    return node.kind == "aten::mm" and len(node.inputs) == 2


def is_bias(bias: Value, product: Node) -> bool:
    """Do the types say that a tensor has the dtype of a product, and repeats to its shape?"""
    type, left, right = [value.type for value in (bias, *product.inputs)]
    if not (isinstance(type, TensorType) and isinstance(left, TensorType) and isinstance(right, TensorType)):
        return False
    if type.dtype is None or type.dtype not in (left.dtype, right.dtype) or type.sizes is None:
        return False
    shape = (left.sizes[0] if left.sizes else None, right.sizes[1] if right.sizes else None)
    return len(type.sizes) <= 2 and all(
        mine == 1 or mine is not None and mine == size for mine, size in zip(type.sizes[::-1], shape[::-1], strict=False))


def has_one(bias: Value) -> bool:
    """Is a size of a tensor 1, so that the other operand of a sum decides on the memory order?"""
    return isinstance(bias.type, TensorType) and 1 in (bias.type.sizes or ())
