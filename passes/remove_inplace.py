"""In-place arithmetic as arithmetic that does not write."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.ir.remarks import missed
from irtool.passes.remove_mutation import KEPT_WRITE

KINDS = frozenset(f"aten::{name}_" for name in ("add", "sub", "mul", "div", "masked_fill", "fill", "zero"))


def remove_inplace(graph: Graph) -> bool:
    """Make `add_`, `sub_`, `mul_`, `div_`, `masked_fill_`, `fill_` and `zero_` the operators that do not write, where no reader can tell.

    What writes into memory of an input, of a constant or of a tensor that others read later stays; and what writes where gradients are off,
    since the tensor keeps the gradient that it had, and a new value would have none.

    before:
        graph(%x : Tensor,
              %one : int):
          %2 : Tensor = aten::exp(%x)
          %3 : Tensor = aten::tanh(%2)
          %4 : Tensor = aten::add_(%2, %one, %one)
          %5 : Tensor = aten::mul(%2, %3)
          return (%5)

    after:
        graph(%x : Tensor,
              %one : int):
          %2 : Tensor = aten::exp(%x)
          %3 : Tensor = aten::tanh(%2)
          %4 : Tensor = aten::add(%2, %one, %one)
          %5 : Tensor = aten::mul(%4, %3)
          return (%5)
    """
    from irtool.autodiff.in_place import replace_writes  # it compiles formulas, which naming a pass need not
    from irtool.autodiff.unread_writes import MutationRemover, rewritable_nodes

    changed = False
    while True:
        writers = [node for node in rewritable_nodes(graph) if node.kind in KINDS]
        MutationRemover(graph, writers).run()
        replace_writes(graph, [node for node in writers if node.kind in KINDS])
        left = [node for node in writers if node.kind in KINDS]
        if len(left) == len(writers):
            break
        changed = True          # a write into a result of these may be possible to replace now
    for node in left:
        missed(graph, node, *KEPT_WRITE)
    return changed
