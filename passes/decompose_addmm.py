"""Decomposition of `aten::addmm`."""
from __future__ import annotations

from irtool.analysis.memory_orders import lies_by_rows
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import known_argument
from irtool.ir.edits import replace_node
from irtool.ir.graph import Graph, Node
from irtool.ir.schema import schema_of
from irtool.ir.types import spell


def decompose_addmm(graph: Graph) -> bool:
    """Replace each `aten::addmm` with factors of 1 by a product and a sum, which other passes can simplify.

    The result of the sum lies in memory as its first operand does, that of `addmm` by rows. So the product comes first, unless the type of
    the other tensor says that it lies by rows, too.

    before:
        graph(%b : Tensor, %x : Tensor, %w : Tensor):
          %3 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::addmm(%b, %x, %w, %3, %3)
          return (%4)

    after:
        graph(%b : Tensor, %x : Tensor, %w : Tensor):
          %3 : int = prim::Constant[value=1]()
          %5 : Tensor = aten::mm(%x, %w)
          %6 : int = prim::Constant[value=1]()
          %7 : Tensor = aten::add(%5, %b, %6)
          return (%7)
    """
    build = Builder(graph)
    plain = spell(types.TENSOR, graph.dialect)
    changed = False
    for node in list(graph.walk()):
        if node.kind not in ("aten::addmm", "addmm") or len(node.inputs) < 3 or not (_is_one(node, "beta") and _is_one(node, "alpha")):
            continue
        if (schema := schema_of(node)) is not None and "out_dtype" in schema.positions:
            continue
        build.before(node)
        build.tail = node.tail
        product = build.call("aten::mm", node.inputs[1], node.inputs[2], type=plain)
        terms = (node.inputs[0], product) if lies_by_rows(node.inputs[0]) else (product, node.inputs[0])
        replace_node(node, [build.call("aten::add", *terms, alpha=1, type=node.output.type)])
        changed = True
    return changed


def _is_one(node: Node, name: str) -> bool:
    value = known_argument(node, name)
    return isinstance(value, (int, float)) and value == 1
