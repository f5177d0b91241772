"""Attributes as constants."""
from __future__ import annotations

from irtool.ir.errors import PassError
from irtool.ir.graph import Graph
from irtool.ir.types import ClassType


def freeze(graph: Graph, eval: bool = False) -> bool:
    """Make attributes that no method writes constants, as `torch.jit.freeze` does. As the first pass over an archive.

    `irtool opt --passes=freeze model.pt -o small.pt` reads the methods so; in Python, `module.freeze()` does. In a text, weights that a
    `# constants:` line names are constants already, and there is nothing to do. A graph that takes an instance has no values: an error.
    A module that trains is refused; `freeze{eval}` takes it as `module.eval()` leaves it.

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
            raise PassError(f"freeze: %{value.name} is an instance of {value.type}, whose values the text does not hold: give the archive",
                            code="E0405")
    return False
