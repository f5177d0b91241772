"""Batching of a graph over a new dimension."""
from __future__ import annotations

from irtool.dispatch.graph_batching import Blocks
from irtool.ir.edits import clone_graph, clone_node
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.errors import PassError
from irtool.ir.graph import Graph
from irtool.ir.types import TensorType
from irtool.passes import BY_NAME, Values


def vmap(graph: Graph, in_dims: tuple[str, ...] = ("0",), length: int = 2, randomness: str = "error") -> bool:
    """Batch the graph over a new dimension of its inputs, `in-dims=0,None,1` (None: not batched); input types must be complete.

    Numbers are not batched, and stay inputs; branches and loops whose conditions are not batched stay If and Loop. The outputs have the new
    dimension first. Sizes are those of the types; `length` is the extent of the new dimension.

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
    from irtool.dispatch.graph_functions import in_dims_of

    BY_NAME["vmap"].check(length=length)
    dims = in_dims_of(",".join(in_dims), graph)
    try:
        batched_graph = batched(graph, dims, length, randomness)
    except MemoryError as error:
        raise PassError(f"vmap: tensors of the sizes that types say do not fit into memory: {error}", code="E0406") from error
    graph.block.set_outputs(())
    for node in reversed(list(graph.block)):
        node.destroy()
    mapping = {}
    for old, new in zip(graph.inputs, batched_graph.inputs, strict=True):
        old.type = new.type
        mapping[new] = old
    for node in batched_graph.block:
        clone_node(node, mapping, graph.block, graph)
    graph.block.set_outputs([mapping[value] for value in batched_graph.outputs])
    return True


def batched(graph: Graph, dims: list[int | None], length: int, randomness: str) -> Graph:
    """The batched graph: batched node by node if it has numbers, branches or loops, which stay; else, and if that fails, traced as a
    whole."""
    from irtool.autodiff.refusals import refuse_omitted
    from irtool.dispatch.graph_functions import check_size, sample_inputs, trace_vmap

    refuse_omitted(graph, "batch")
    for value in graph.values():
        check_size(value, length)
    has_numbers = any(not isinstance(value.type, TensorType) for value in graph.inputs)
    if has_numbers or any(node.kind in LOOP_KINDS or node.kind in IF_KINDS for node in graph.block):
        copy = clone_graph(graph)
        try:
            Blocks(copy, length, randomness).run(dims)
            return copy
        except PassError:
            if has_numbers:
                raise
    return trace_vmap(graph, dims, sample_inputs(graph, dims, length), 0, randomness, True)


def _is_dim(word: str) -> bool:
    """Does a word of `in-dims` say which dimension of an input is batched, or that none is?"""
    return word.lower() in ("none", "") or word.removeprefix("-").isdecimal() and len(word) < 5


vmap.values = {     # type: ignore[attr-defined]
    "in_dims": Values("a dimension or None for each input", "0,None", lambda words: all(map(_is_dim, words))),
    "length": Values.at_least(0),
    "randomness": Values.one_of("same", "different", "error"),
}
vmap.repeats = "one more dimension is batched over"     # type: ignore[attr-defined]
