"""Folding of numbers of dimensions."""
from __future__ import annotations

from irtool.analysis.shape_changes import Changes, changes_shapes
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.edits import become_constant
from irtool.ir.graph import Graph, Node
from irtool.ir.types import TensorType


def fold_ranks(graph: Graph) -> bool:
    """Replace `aten::dim(%x)` and `aten::len` of `aten::size(%x)` by a constant if the type of `%x` says the number of dimensions.

    Then `constant-propagation` can decide branches on that number, such as whether a factor is a matrix or a vector.

    before:
        graph(%x : Float(*, *)):
          %1 : int[] = aten::size(%x)
          %2 : int = aten::len(%1)
          return (%2)

    after:
        graph(%x : Float(*, *)):
          %1 : int[] = aten::size(%x)
          %2 : int = prim::Constant[value=2]()
          return (%2)
    """
    if graph.dialect.attribute_arguments or any(map(changes_shapes, graph.walk())):
        return False
    changed = False
    changes = Changes(graph)
    for node in graph.walk():
        rank = _rank_asked(node, changes)
        if rank is not None:
            become_constant(node, Attribute.of(rank, graph.dialect), types.INT)
            changed = True
    return changed


def _rank_asked(node: Node, changes: Changes) -> int | None:
    """The number of dimensions that a node asks for; None for other nodes, and if it is unknown."""
    if node.kind not in ("aten::dim", "aten::len") or len(node.inputs) != 1:
        return None
    value = node.inputs[0]
    if node.kind == "aten::len":
        if value.node.kind != "aten::size" or len(value.node.inputs) != 1 or not changes.is_fixed(value):
            return None
        value = value.node.inputs[0]
    return value.type.rank if isinstance(value.type, TensorType) else None
