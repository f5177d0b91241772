"""Freezing of modules: attributes become constants."""
from __future__ import annotations

from irtool.ir.errors import PassError
from irtool.ir.graph import Graph
from irtool.ir.types import ClassType


def freeze(graph: Graph, eval: bool = False) -> bool:
    """Turn attributes that no method writes into constants, as `torch.jit.freeze` does; the first pass over an archive.

    `irtool opt --passes=freeze model.pt -o small.pt` freezes the methods of an archive; in Python, `module.freeze()` does. In a text,
    weights that a `# constants:` line names are constants already, and stay. A graph that takes an instance, whose values are not in the
    text, is an error. So is a module in training mode; `freeze{eval}` calls `module.eval()` first.

    before:
        graph(%x : Tensor):
          %1 : Tensor = aten::relu(%x)
          return (%1)

    after:
        graph(%x : Tensor):
          %1 : Tensor = aten::relu(%x)
          return (%1)
    """
    for value in graph.inputs:
        if isinstance(value.type, ClassType):
            raise PassError(f"freeze: %{value.name} is an instance of {value.type}, whose values are not in the text: use the archive",
                            code="E0405")
    return False
