"""Packing of a gradient pair into one node."""
from __future__ import annotations

from irtool.ir.attribute import Attribute
from irtool.ir.errors import PassError
from irtool.ir.graph import Graph, Node
from irtool.ir.module import Module
from irtool.ir.packed import packed_nodes
from irtool.ir.pair import DEFINED, LISTS, MEMBERS, PACKED_PREFIX, REAL_OUTPUTS, REVERSE, GradientPair, pairs


def pack_gradient(module: Module) -> bool:
    """Replace each gradient pair by a graph of one node that holds both: f as `Subgraph`, df as `ReverseSubgraph`.

    The node returns the real outputs; temporaries stay inside. The index lists, the name of df, and the definedness for which df was
    specialised are attributes of the node, so that `unpack-gradient` restores the pair.

    before:
        # graph f: f_real_outputs=1
        graph(%x : Tensor):
          %1 : Tensor = aten::exp(%x)
          return (%1)
        # graph df: of=f df_input_vjps=[0] df_input_captured_inputs=[] df_input_captured_outputs=[0] df_output_vjps=[0]
        graph(%g : Tensor, %y : Tensor):
          %2 : Tensor = aten::mul(%g, %y)
          return (%2)

    after:
        # graph f:
        graph(%x : Tensor):
          %0 : Tensor = prim::DifferentiableGraph_0[name="df", f_real_outputs=1, df_input_vjps=[0], df_input_captured_inputs=[], \
df_input_captured_outputs=[0], df_output_vjps=[0], ReverseSubgraph=<Graph>](%x)
          return (%0)
        with prim::DifferentiableGraph_0 = graph(%x : Tensor):
          %1 : Tensor = aten::exp(%x)
          return (%1)
        with prim::DifferentiableGraph_0.ReverseSubgraph = graph(%g : Tensor,
              %y : Tensor):
          %2 : Tensor = aten::mul(%g, %y)
          return (%2)
    """
    present = list(pairs(module))
    if not present and not any(packed_nodes(graph) for graph in module.graphs):
        raise PassError(f"pack-gradient: {module.filename} contains no gradient pair; differentiate makes one", code="E0306")
    seen: set[Graph] = set()
    for pair in present:
        pair.check()
        for graph in (pair.f, pair.df):
            if graph in seen:
                raise PassError(f"pack-gradient: graph '{graph.name}' is in two pairs", code="E0306")
            seen.add(graph)
    for pair in present:
        module.items[next(i for i, item in enumerate(module.items) if item is pair.f)] = _packed(pair)
        del module.items[next(i for i, item in enumerate(module.items) if item is pair.df)]
    return bool(present)


def _packed(pair: GradientPair) -> Graph:
    """A graph of one node that holds both graphs, and their names and metadata."""
    f, df, dialect = pair.f, pair.df, pair.f.dialect
    real = pair.real_outputs
    outer = Graph(dialect, f.name)
    outer.source = f.source
    outer.metadata = {key: value for key, value in f.metadata.items() if key not in MEMBERS}
    outer.metadata.update((PACKED_PREFIX + key, value) for key, value in df.metadata.items() if key not in MEMBERS)
    attributes = {"name": Attribute.of(df.name, dialect), REAL_OUTPUTS: Attribute.of(real, dialect)}
    for name in (*LISTS, *((DEFINED,) if DEFINED in df.metadata else ())):
        attributes[name] = Attribute(df.metadata[name])
    attributes[REVERSE] = Attribute("<Graph>", df)
    attributes["Subgraph"] = Attribute("<Graph>", f)
    inputs = [outer.block.add_input(value.name, value.type) for value in f.inputs]
    node = Node("prim::DifferentiableGraph", inputs, attributes)
    outer.block.append(node)
    outer.block.set_outputs([node.add_output(outer.fresh_id(), value.type) for value in f.outputs[:real]])
    for graph in (f, df):
        graph.name, graph.metadata = "", {}
    return outer
