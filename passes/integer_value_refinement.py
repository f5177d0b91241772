"""Integers that a comparison has made certain."""
from __future__ import annotations

from irtool.analysis.refinements import Refinements
from irtool.ir.builder import Builder
from irtool.ir.graph import RETURN, Graph, Node


def integer_value_refinement(graph: Graph) -> bool:
    """Replace n by 3 where `n == 3` is certain: in the branch for that condition, and after an `If` whose other branch raises.

    before:
        graph(%n : int):
          %1 : int = prim::Constant[value=3]()
          %2 : bool = aten::eq(%n, %1)
          %3 : int = prim::If(%2)
            block0():
              %4 : int = aten::neg(%n)
              -> (%4)
            block1():
              -> (%n)
          return (%3)

    after:
        graph(%n : int):
          %1 : int = prim::Constant[value=3]()
          %2 : bool = aten::eq(%n, %1)
          %3 : int = prim::If(%2)
            block0():
              %5 : int = prim::Constant[value=3]()
              %4 : int = aten::neg(%5)
              -> (%4)
            block1():
              -> (%n)
          return (%3)
    """
    changed = False

    def visit(node: Node) -> None:
        nonlocal changed
        for slot, value in enumerate(node.inputs):
            number = refinements.known.get(value)
            if number is not None:
                place = Builder(graph).at_end(node.owner_block) if node.kind == RETURN else Builder(graph).before(node)
                node.replace_input(slot, place.constant(number))
                changed = True

    refinements = Refinements(graph, lambda value: value, visit)
    refinements.run()
    return changed
