"""Folding of numbers of dimensions."""
from __future__ import annotations

from irtool.analysis.certain import Certain
from irtool.analysis.shape_changes import Changes, changes_shapes
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.edits import become_constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType


def fold_ranks(graph: Graph) -> bool:
    """Replace `aten::dim(%x)` and `aten::len` of `aten::size(%x)` by a constant if the type of `%x` says the number of dimensions.

    Then `constant-propagation` can decide branches on that number, such as whether a factor is a matrix or a vector. The question stays if
    computing `%x` may raise an error and nothing else needs it.

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
    asked = [(node, rank) for node in graph.walk() if (rank := _rank_asked(node, changes)) is not None]
    certain = Certain(graph) if asked else None
    for node, rank in asked:
        if certain is not None and certain.is_certain(_about(node), node):
            become_constant(node, Attribute.of(rank, graph.dialect), types.INT)
            changed = True
    return changed


def _rank_asked(node: Node, changes: Changes) -> int | None:
    """The number of dimensions that a node asks for; None for other nodes, and if it is unknown."""
    if node.kind not in ("aten::dim", "aten::len") or len(node.inputs) != 1:
        return None
    value = node.inputs[0]
    if node.kind == "aten::len" and (value.node.kind != "aten::size" or len(value.node.inputs) != 1 or not changes.is_fixed(value)):
        return None
    type = _about(node).type
    return type.rank if isinstance(type, TensorType) else None


def _about(node: Node) -> Value:
    """The tensor whose number of dimensions a node asks for."""
    value = node.inputs[0]
    return value.node.inputs[0] if node.kind == "aten::len" else value
