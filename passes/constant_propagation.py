"""Constant propagation."""
from __future__ import annotations

from irtool.analysis.constant_folding import fold_constants
from irtool.ir.graph import Graph


def constant_propagation(graph: Graph, immutable_types: bool = False, keep_draws: bool = False) -> bool:
    """Fold nodes whose operands are constants, replace an `If` of known condition by its branch, drop loops that never run; then run `dce`.

    `immutable-types` does not fold lists and tensors. `keep-draws`: as in `dce`.

    before:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : int = prim::Constant[value=3]()
          %3 : int = aten::mul(%1, %2)
          %4 : bool = aten::gt(%3, %1)
          %5 : Tensor = prim::If(%4)
            block0():
              %6 : Tensor = aten::mul(%x, %3)
              -> (%6)
            block1():
              -> (%x)
          return (%5)

    after:
        graph(%x : Tensor):
          %3 : int = prim::Constant[value=6]()
          %6 : Tensor = aten::mul(%x, %3)
          return (%6)
    """
    return fold_constants(graph, immutable_types, keep_draws)
