"""Tuples of the types of their elements."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.ir.types import NamedTupleType, TupleType, is_subtype, named_tuple_of, tuple_of


def refine_tuple_types(graph: Graph) -> bool:
    """Give each tuple that is made in the graph the types of what it is made of, where these say more.

    before:
        graph(%x : Float(2, 3), %n : int):
          %1 : (Tensor, int) = prim::TupleConstruct(%x, %n)
          return (%1)

    after:
        graph(%x : Float(2, 3), %n : int):
          %1 : (Float(2, 3), int) = prim::TupleConstruct(%x, %n)
          return (%1)
    """
    changed = False
    for node in graph.walk():
        old = node.output.type if node.kind == "prim::TupleConstruct" else None
        types = [value.type for value in node.inputs]
        if not isinstance(old, TupleType) or len(types) != len(old.elements) or not all(
                is_subtype(mine, declared) for mine, declared in zip(types, old.elements, strict=True)):
            continue
        new = named_tuple_of(old.names, types) if isinstance(old, NamedTupleType) else tuple_of(types)
        if new is not old:
            node.output.type = new
            changed = True
    return changed
