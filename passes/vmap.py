"""A graph that does its work for every place of a dimension at once."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.ir.rewrite import clone_node


def vmap(graph: Graph, in_dims: tuple[str, ...] = ("0",), length: int = 2, randomness: str = "error") -> bool:
    """Batch the graph over a dimension of its inputs, `in-dims=0,None,1` (None: not batched), whose types must be complete.

    The outputs have the dimension first. Sizes are those of the types, `length` the extent of the new dimension.

    before, with in-dims=0,None:
        graph(%x : Double(3), %w : Double(3)):
          %2 : Tensor = aten::mul(%x, %w)
          return (%2)

    after:
        graph(%x : Double(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
              %w : Double(3, strides=[1], requires_grad=0, device=cpu)):
          %0 : Double(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::mul(%x, %w)
          return (%0)
    """
    from irtool.dispatch.graphs import in_dims_of, sample_inputs, trace_vmap

    dims = in_dims_of(",".join(in_dims), graph)
    made = trace_vmap(graph, dims, sample_inputs(graph, dims, length), 0, randomness)
    graph.block.set_outputs(())
    for node in reversed(list(graph.block)):
        node.destroy()
    mapping = {}
    for old, new in zip(graph.inputs, made.inputs, strict=True):
        old.type = new.type
        mapping[new] = old
    for node in made.block:
        clone_node(node, mapping, graph.block, graph)
    graph.block.set_outputs([mapping[value] for value in made.outputs])
    return True


vmap.repeats = "one more dimension is batched over"     # type: ignore[attr-defined]
