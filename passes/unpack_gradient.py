"""Unpacking of a gradient pair from its node."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.errors import Error, PassError
from irtool.ir.graph import Graph, Node
from irtool.ir.module import Module
from irtool.ir.packed import attribute_of, numbers_of, packed_nodes
from irtool.ir.pair import DEFINED, LISTS, PACKED_PREFIX, REAL_OUTPUTS, REVERSE, GradientPair, pairs


def unpack_gradient(module: Module) -> bool:
    """Replace each graph of one node that `pack-gradient` made by the gradient pair.

    Such a node among others is an error.

    before:
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

    after:
        # graph f: f_real_outputs=1
        graph(%x : Tensor):
          %1 : Tensor = aten::exp(%x)
          return (%1)
        # graph df: of=f df_input_vjps=[0] df_input_captured_inputs=[] df_input_captured_outputs=[0] df_output_vjps=[0]
        graph(%g : Tensor, %y : Tensor):
          %2 : Tensor = aten::mul(%g, %y)
          return (%2)
    """
    named = zip(module.graphs, module.names(), strict=True)
    packed = [(graph, name, node) for graph, name in named for node in packed_nodes(graph)]
    if not packed and not any(True for _ in pairs(module)):
        raise PassError(f"unpack-gradient: {module.filename} contains no packed gradient; pack-gradient makes one of a pair", code="E0306")
    taken = {graph.name for graph in module.graphs if graph.name}
    for outer, name, node in packed:
        pair = _unpacked(outer, name, node)
        if pair.df.name in taken:
            raise _problem(node, f"the gradient of '{name}' would be called '{pair.df.name}', and there is a graph of that name")
        taken.add(pair.df.name)
        place = next(i for i, item in enumerate(module.items) if item is outer)
        module.items[place: place + 1] = [pair.f, pair.df]
    return bool(packed)


def _unpacked(outer: Graph, name: str, node: Node) -> GradientPair:
    """The pair of a graph's only node. Raises PassError if the graph has other nodes, or the node's attributes do not fit its graphs."""
    if node.inputs != tuple(outer.inputs) or node.outputs != tuple(outer.outputs) or len(list(outer.block)) != 1:
        raise _problem(node, f"graph '{name}' does more than run a packed gradient; only a graph that hands its inputs to the node, and "
                             "the node's results out, is a pair")
    f, df = node.graphs["Subgraph"], node.graphs[REVERSE]
    try:
        real = attribute_of(node, REAL_OUTPUTS).value
    except Error as error:
        raise _problem(node, error.message) from None
    if type(real) is not int or real != len(node.outputs):
        raise _problem(node, f"{REAL_OUTPUTS}={real} does not fit a node with {len(node.outputs)} results")
    lists = [_numbers(node, key) for key in LISTS]
    spelled = node.attributes.get("name")
    f.name, df.name = name, spelled.text.strip('"') if spelled is not None else f"d{name}"
    f.metadata, df.metadata = {}, {}
    for key, value in outer.metadata.items():
        if key.startswith(PACKED_PREFIX):
            df.metadata[key.removeprefix(PACKED_PREFIX)] = value
        else:
            f.metadata[key] = value
    flags = _numbers(node, DEFINED) if DEFINED in node.attributes else None
    try:
        pair = GradientPair.link(f, df, real, lists, flags)
    except Error as error:
        raise _problem(node, error.message) from None
    return pair


def _numbers(node: Node, name: str) -> Sequence[int]:
    try:
        return numbers_of(node, name)
    except Error as error:
        raise _problem(node, error.message) from None


def _problem(node: Node, message: str) -> PassError:
    """An error at the node's line."""
    message = f"unpack-gradient: {message}"
    source = node.graph.source if node.graph is not None else None
    if source is None or not node.line:
        return PassError(message)
    return PassError(message, [source.marked(node.line, message)])
