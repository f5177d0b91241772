"""Functions with a gradient of their own, as nodes: what a trace makes of `irtool.custom_vjp`.

    graph(%x : Tensor):
      %1 : Tensor, %2 : Tensor = irtool::custom_vjp_0[outputs=1, backward=<Graph>](%x)
      return (%1)
    with irtool::custom_vjp_0 = graph(%x : Tensor):             what it does: its results, then what is saved
      %1 : Tensor = aten::sin(%x)
      return (%1, %x)
    with irtool::custom_vjp_0.backward = graph(%g : Tensor, %x : Tensor):       of gradients and what was saved, one gradient per operand
      %2 : Tensor = aten::cos(%x)
      %3 : Tensor = aten::mul(%g, %2)
      return (%3)

Saved operands and results can be differentiated again; other saved values are constants then. An undefined gradient is None.
"""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.attribute import Attribute
from irtool.ir.graph import Graph, Node, Value

CUSTOM_VJP = "irtool::custom_vjp"
COUNT, BACKWARD = "outputs", "backward"


def custom_attributes(forward: Graph, backward: Graph, count: int) -> dict[str, Attribute]:
    """The attributes of a node whose first `count` results are those of the function."""
    return {"Subgraph": Attribute("<Graph>", forward), COUNT: Attribute(str(count), count), BACKWARD: Attribute("<Graph>", backward)}


def custom_parts(node: Node) -> tuple[Graph, Graph, int] | None:
    """The function's graph, the graph of its gradient, and the number of its results; None for a node whose parts do not fit together."""
    graphs = node.graphs
    count = node.attributes[COUNT].value if COUNT in node.attributes else None
    if not {"Subgraph", BACKWARD} <= graphs.keys() or not isinstance(count, int):
        return None
    forward, backward = graphs["Subgraph"], graphs[BACKWARD]
    fits = 0 < count <= len(node.outputs) and len(forward.inputs) == len(node.inputs) and len(forward.outputs) == len(node.outputs) \
        and len(backward.inputs) == len(node.outputs) and len(backward.outputs) == len(node.inputs)
    return (forward, backward, count) if fits else None


def saved_values(node: Node, forward: Graph, count: int) -> Sequence[Value]:
    """The values that the function saves, as values around the node: the operand for a saved input, else the node's result."""
    known = dict(zip(forward.inputs, node.inputs, strict=True))
    for value, outer in zip(forward.outputs[:count], node.outputs, strict=False):
        known.setdefault(value, outer)
    return [known.get(value, outer) for value, outer in zip(forward.outputs[count:], node.outputs[count:], strict=True)]


def results_of_custom(node: Node) -> tuple[Value, ...]:
    """The results that a gradient can reach."""
    parts = custom_parts(node)
    return node.outputs[:parts[2]] if parts is not None else node.outputs
