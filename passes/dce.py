"""Dead code elimination."""
from __future__ import annotations

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.graph import Graph


def dce(graph: Graph, allow_side_effects: bool = False, keep_draws: bool = False) -> bool:
    """Delete nodes on which no result, side effect or write into live memory depends.

    Unused results of `prim::If` and carried values of `prim::Loop` are deleted too. `allow-side-effects` deletes unused nodes even if
    they print, raise or write. `keep-draws` keeps unused random operators, so that later ones draw the same numbers; torch deletes them.

    before:
        graph(%x : Tensor, %c : bool):
          %1 : Tensor = aten::tanh(%x)
          %2 : Tensor, %3 : Tensor = prim::If(%c)
            block0():
              %4 : Tensor = aten::neg(%x)
              %5 : Tensor = aten::exp(%x)
              -> (%4, %5)
            block1():
              -> (%x, %1)
          return (%2)

    after:
        graph(%x : Tensor, %c : bool):
          %2 : Tensor = prim::If(%c)
            block0():
              %4 : Tensor = aten::neg(%x)
              -> (%4)
            block1():
              -> (%x)
          return (%2)
    """
    return remove_dead_nodes(graph, allow_side_effects, drop_draws=not keep_draws)
