"""Refusal of Python operators that write into their operands."""
from __future__ import annotations

from irtool.ir.errors import PassError
from irtool.ir.graph import Graph
from irtool.ir.structure_kinds import PYTHON_OPERATORS


def check_inplace(graph: Graph) -> bool:
    """Refuse Python operators marked `inplace=1`, since no pass could move a node across them; the graph stays unchanged.

    before:
        graph(%x : Tensor):
          %1 : Tensor = aten::relu_(%x)
          return (%1)

    after:
        graph(%x : Tensor):
          %1 : Tensor = aten::relu_(%x)
          return (%1)
    """
    for node in graph.walk():
        if node.kind[:1] != "^" and node.kind not in PYTHON_OPERATORS or "inplace" not in node.attributes:
            continue
        if node.attributes["inplace"].value in (1, True):
            message = f"inplace {node.kind.removeprefix('^')} not supported in the JIT"
            source = graph.source
            if source is None or not node.line:
                raise PassError(message)
            raise PassError(message, [source.marked(node.line, message)])
    return False
