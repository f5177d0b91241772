"""Canonical names."""
from __future__ import annotations

from irtool.ir.defaults import following_names
from irtool.ir.graph import Graph


def canonicalize(graph: Graph) -> bool:
    """Number all values from 0 on, in order of definition, so that equal graphs have equal texts.

    before:
        graph(%x : Tensor, %c : bool):
          %7 : Tensor = prim::If(%c)
            block0():
              %y.1 : Tensor = aten::neg(%x)
              -> (%y.1)
            block1():
              -> (%x)
          return (%7)

    after:
        graph(%0 : Tensor, %1 : bool):
          %2 : Tensor = prim::If(%1)
            block0():
              %3 : Tensor = aten::neg(%0)
              -> (%3)
            block1():
              -> (%0)
          return (%2)
    """
    changed = False
    with following_names(graph):
        for number, value in enumerate(graph.values()):
            name = str(number)
            if value.name != name:
                value.name = name
                changed = True
    for node in graph.walk():
        for owned in node.graphs.values() if node.attributes else ():
            changed = canonicalize(owned) or changed
    if changed:
        graph.forget_names()
    return changed
