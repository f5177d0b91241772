"""Differentiable stretches of a graph as nodes of their own."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.attribute import Attribute
from irtool.ir.constants import CONSTANT_KINDS, is_constant
from irtool.ir.errors import PassError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.rewrite import clone_node
from irtool.ir.schema import schema_of
from irtool.ir.types import TensorType
from irtool.passes import BY_NAME
from irtool.passes.autodiff_groups import Grouping
from irtool.script.gradients import has_gradient

SYMBOLIC = frozenset(f"aten::{name}" for name in """
abs acos adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d add addcmul addmm asin atan avg_pool2d batch_norm bmm cat ceil clamp
contiguous cos cosh div dot dropout embedding eq ne lt le gt ge erf erfc exp expm1 floor fmod frac gelu hardshrink hardsigmoid hardswish
hardtanh index layer_norm leaky_relu lerp linear log log10 log1p log2 log_softmax logsumexp matmul max max_pool2d mean min mm mul mv
native_batch_norm neg nll_loss nonzero permute pow reciprocal relu relu6 remainder round rsqrt rsub sigmoid silu sin sinh softmax softplus
sqrt squeeze stack std sub t tan tanh threshold to trunc type_as unsqueeze var where _grad_sum_to_size chunk
""".split())
"""What torch differentiates symbolically."""
OVERLOADS = {"aten::to": ("device",), "aten::max": ("other",), "aten::fmod": ("Scalar",), "aten::remainder": ("Scalar",),
             **{f"aten::{name}": ("Scalar",) for name in ("eq", "ne", "lt", "le", "gt", "ge")}}
"""Where not all overloads of a kind are among them."""
PRIMS = CONSTANT_KINDS | {"prim::ConstantChunk", "prim::AutogradZero", "prim::Undefined", "prim::AutogradAdd"}


def create_autodiff_subgraphs(graph: Graph, threshold: int = 2, form: str = "") -> bool:
    """Put each run of at least `threshold` differentiable nodes into a graph of its own, which one node runs.

    What stands between them, such as control flow, is left, and searched in turn. `form=2018` takes neighbours; `form=modern` groups
    along the edges from producer to consumer, moves what stands between, copies constants inside, and merges equal nodes at the end.
    The default is as the file's dialect.

    before:
        graph(%x : Tensor, %y : Tensor):
          %2 : Tensor = aten::mul(%x, %y)
          %3 : Tensor = aten::tanh(%2)
          %4 : Tensor = my::op(%3)
          return (%4)

    after:
        graph(%x : Tensor, %y : Tensor):
          %5 : Tensor = prim::DifferentiableGraph_0(%x, %y)
          %4 : Tensor = my::op(%5)
          return (%4)
        with prim::DifferentiableGraph_0 = graph(%0 : Tensor,
              %1 : Tensor):
          %2 : Tensor = aten::mul(%0, %1)
          %3 : Tensor = aten::tanh(%2)
          return (%3)
    """
    if threshold < 1:
        raise PassError("create-autodiff-subgraphs: threshold must be at least 1")
    if form not in ("", "2018", "modern"):
        raise PassError(f"create-autodiff-subgraphs: form={form}; expected 2018 or modern")
    if form == "2018" or not form and graph.dialect.attribute_arguments:
        return slice_runs(graph, graph.block, threshold)
    changed = slice_groups(graph, graph.block, threshold)
    return BY_NAME["cse"](graph) or changed


def slice_groups(graph: Graph, block: Block, threshold: int) -> bool:
    """Wrap groups of producers and consumers in a block, and look into the blocks of the others."""
    changed = False
    for group in Grouping(block, is_symbolic).run():
        if group.size >= threshold:
            made = wrap(graph, group.nodes(), group.operands(), group.results())
            inner = made.attributes["Subgraph"].value
            assert isinstance(inner, Graph)
            BY_NAME["cse"](inner)
            changed = True
    for node in block:
        for nested in node.blocks:
            changed = slice_groups(graph, nested, threshold) or changed
    return changed


def slice_runs(graph: Graph, block: Block, threshold: int) -> bool:
    """Wrap maximal runs of neighbours in a block, and look into the blocks of the others."""
    changed = False
    run: list[Node] = []
    for node in [*block, None]:
        if node is not None and is_differentiable(node):
            run.append(node)
            continue
        if len(run) >= threshold:
            wrap(graph, run)
            changed = True
        run = []
        for inner in node.blocks if node is not None else ():
            changed = slice_runs(graph, inner, threshold) or changed
    return changed


def is_symbolic(node: Node) -> bool:
    """Does torch differentiate the node symbolically?"""
    if node.kind not in SYMBOLIC:
        return node.kind in PRIMS
    if not all(isinstance(value.type, TensorType) for value in node.outputs):
        return False
    wanted = OVERLOADS.get(node.kind)
    if wanted is None:
        return True
    schema = schema_of(node)
    return schema is not None and schema.overload in wanted


def is_differentiable(node: Node) -> bool:
    """Can the node stand in a graph that is to be differentiated?"""
    if node.kind in PRIMS:
        return True
    if node.kind == "prim::GradOf":
        return all(map(is_differentiable, node.blocks[0]))
    if node.blocks or not node.kind.startswith("aten::"):
        return False
    if node.kind in SYMBOLIC:
        return True
    schema = schema_of(node)
    return schema is not None and has_gradient(schema) is True


def wrap(graph: Graph, nodes: list[Node], operands: Sequence[Value] = (), results: Sequence[Value] | None = None) -> Node:
    """Move neighbours into a graph; gives the node that runs it. Ids in it count up in the order in which nodes and inputs are met.

    `operands` come first among what it reads, and `results` say in which order it gives what is read outside.
    """
    kind = "prim::GraphExecutor" if graph.dialect.attribute_arguments else "prim::DifferentiableGraph"
    inner = Graph(graph.dialect)
    mapping: dict[Value, Value] = {}
    given = list(operands)
    for value in given:
        mapping[value] = inner.block.add_input(inner.fresh_id(), value.type)
    for node in nodes:
        copy = clone_node(node, {}, None)
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            new.name = inner.fresh_id()
            mapping[old] = new
        for value in node.inputs:
            if value not in mapping and is_constant(value):
                mapping[value] = clone_node(value.node, {}, inner.block, inner).output
            elif value not in mapping:
                mapping[value] = inner.block.add_input(inner.fresh_id(), value.type)
                given.append(value)
        copy.set_inputs([mapping[value] for value in node.inputs])
        inner.block.append(copy)
    group = Node(kind, given, {"Subgraph": Attribute("<Graph>", inner)})
    group.insert_before(nodes[0])
    inside = set(nodes)
    for value in [value for node in nodes for value in node.outputs] if results is None else results:
        readers = [(user, slot) for user, slot in value.uses if user not in inside]
        if readers:
            output = group.add_output(graph.fresh_id(), value.type)
            inner.block.add_output(mapping[value])
            for user, slot in readers:
                user.replace_input(slot, output)
    for node in reversed(nodes):
        node.destroy()
    return group
