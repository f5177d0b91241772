"""Decomposition of composed operators."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.passes import BY_NAME


def decompose_ops(graph: Graph) -> bool:
    """Replace each `aten::addmm` with factors of 1 by a product and a sum, then propagate shapes and constants, and run `dce`.

    Normalization layers are decomposed only on a GPU, as in torch: on a CPU their parts cost more than the whole.

    before:
        graph(%b : Tensor, %x : Tensor, %w : Tensor):
          %3 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::addmm(%b, %x, %w, %3, %3)
          return (%4)

    after:
        graph(%b : Tensor, %x : Tensor, %w : Tensor):
          %5 : Tensor = aten::mm(%x, %w)
          %6 : int = prim::Constant[value=1]()
          %7 : Tensor = aten::add(%5, %b, %6)
          return (%7)
    """
    if not BY_NAME["decompose-addmm"].function(graph):
        return False
    BY_NAME["propagate-shapes"].function(graph)
    BY_NAME["constant-propagation"].function(graph)
    BY_NAME["dce"].function(graph)
    return True
