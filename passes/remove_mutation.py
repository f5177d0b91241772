"""Lists and tensors that are changed before anybody reads them, made as they are then."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.ir.remarks import missed, wants_remarks

KEPT_WRITE = "not replaced", "the caller, or what reads the memory by another name, may see the write"
"""The remark on a write that stays."""


def remove_mutation(graph: Graph) -> bool:
    """Where a list or a tensor is changed before anybody reads it, make it as it is then: `relu_(conv(x))` is `relu(conv(x))`.

    That is what a list is told to append, insert or set, and the in-place operators that have a form that does not write. What writes into
    a tensor where gradients are off stays.

    before:
        graph(%a : Tensor, %b : int):
          %1 : int[] = prim::ListConstruct(%b)
          %2 : int[] = aten::append(%1, %b)
          %3 : Tensor = aten::exp(%a)
          %4 : Tensor = aten::relu_(%3)
          %5 : Tensor = aten::reshape(%3, %1)
          return (%5)

    after:
        graph(%a : Tensor, %b : int):
          %1 : int[] = prim::ListConstruct(%b, %b)
          %3 : Tensor = aten::exp(%a)
          %4 : Tensor = aten::relu(%3)
          %5 : Tensor = aten::reshape(%4, %1)
          return (%5)
    """
    from irtool.autodiff.in_place import is_rewritable  # it compiles formulas, which naming a pass need not
    from irtool.autodiff.unread_writes import MutationRemover, rewritable_nodes

    changed = MutationRemover(graph, rewritable_nodes(graph), lists=True).run()
    if wants_remarks():
        for node in filter(is_rewritable, graph.walk()):
            missed(graph, node, *KEPT_WRITE)
    return changed
