"""Removal of implicit expands."""
from __future__ import annotations

from irtool.ir.constants import known_argument
from irtool.ir.edits import replace_node
from irtool.ir.graph import Graph
from irtool.ops.facts import facts_of_node

BROADCASTS = frozenset(("aten::addmm", "aten::addbmm", "aten::baddbmm", "aten::addmv", "aten::addr"))
"""Kinds that are not pointwise and broadcast what is expanded for them."""


def remove_expands(graph: Graph) -> bool:
    """Drop each `aten::expand` that a trace recorded for the broadcasting of the operators that read it (`implicit=1`).

    before:
        graph(%x : Tensor, %y : Tensor):
          %2 : int[] = prim::Constant[value=[2, 3]]()
          %3 : bool = prim::Constant[value=1]()
          %4 : Tensor = aten::expand(%x, %2, %3)
          %5 : Tensor = aten::mul(%4, %y)
          return (%5)

    after:
        graph(%x : Tensor, %y : Tensor):
          %2 : int[] = prim::Constant[value=[2, 3]]()
          %3 : bool = prim::Constant[value=1]()
          %5 : Tensor = aten::mul(%x, %y)
          return (%5)
    """
    changed = False
    for node in list(graph.walk()):
        if node.kind not in ("aten::expand", "expand") or len(node.outputs) != 1:
            continue
        readers = [user for user, _ in node.output.uses]
        is_implicit = known_argument(node, "implicit") in (True, 1)
        if is_implicit and all(user.kind in BROADCASTS or facts_of_node(user).is_pointwise for user in readers):
            replace_node(node, [node.inputs[0]])
            changed = True
    return changed
