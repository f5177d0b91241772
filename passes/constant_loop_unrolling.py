"""Unrolling of loops of known length."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.passes.loop_unrolling import unroll_all


def constant_loop_unrolling(graph: Graph) -> bool:
    """Unroll loops whose number of rounds is a constant, whatever the size of their bodies: completely if it is less than 64.

    before:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : bool = prim::Constant[value=1]()
          %3 : Tensor = prim::Loop(%1, %2, %x)
            block0(%i : int, %4 : Tensor):
              %5 : Tensor = aten::neg(%4)
              -> (%2, %5)
          return (%3)

    after:
        graph(%x : Tensor):
          %6 : Tensor = aten::neg(%x)
          %7 : Tensor = aten::neg(%6)
          return (%7)
    """
    return unroll_all(graph, True)


constant_loop_unrolling.repeats = "the loop over the remaining rounds can be unrolled again"     # type: ignore[attr-defined]
