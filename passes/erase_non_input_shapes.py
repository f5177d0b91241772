"""Forget shapes, except those of the inputs."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.passes import BY_NAME


def erase_non_input_shapes(graph: Graph) -> bool:
    """Make every tensor type a plain tensor, as `erase-shapes` does, but leave the inputs of the graph their types.

    before:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
          %1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::tanh(%x)
          return (%1)

    after:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
          %1 : Tensor = aten::tanh(%x)
          return (%1)
    """
    before = [value.type for value in graph.values()]
    types = [value.type for value in graph.inputs]
    BY_NAME["erase-shapes"].function(graph)
    for value, type in zip(graph.inputs, types, strict=True):
        value.type = type
    return any(value.type is not old for value, old in zip(graph.values(), before, strict=True))
