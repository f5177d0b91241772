"""Fusion of pointwise operators."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.analysis.autodiff_groups import all_groups
from irtool.analysis.shape_changes import loose_tensors
from irtool.ir.constants import CONSTANT_KINDS, is_constant
from irtool.ir.effects import facts_of, node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.remarks import missed, wants_remarks
from irtool.ir.schema import forgets_kinds, schema_of
from irtool.ir.types import TensorType, Type
from irtool.passes import BY_NAME, Values
from irtool.passes.create_autodiff_subgraphs import is_tensor_operator, wrap

KIND = "prim::FusionGroup"
REAL = frozenset(("float16", "float32", "float64", "bool", "uint8", "int8", "int16", "int32", "int64"))


def fuse(graph: Graph, threshold: int = 2) -> bool:
    """Move each group of at least `threshold` pointwise operators into an inner graph, which one `prim::FusionGroup` runs.

    An operator is pointwise if each element of its result depends only on the operands' elements at that place: arithmetic, comparisons,
    casts, `where`, activations. Operands may be broadcast. Groups are maximal along edges from producer to consumer. Nodes between members
    are moved away if results stay the same, and never past a write into an operand. Constants are copied into the group.

    before:
        graph(%x : Float(*, *), %y : Float(*, *)):
          %2 : Float(*, *) = aten::mul(%x, %y)
          %3 : Float(*, *) = aten::tanh(%2)
          %4 : Float(*, *) = aten::mm(%3, %y)
          return (%4)

    after:
        graph(%x : Float(*, *), %y : Float(*, *)):
          %5 : Float(*, *) = prim::FusionGroup_0(%x, %y)
          %4 : Float(*, *) = aten::mm(%5, %y)
          return (%4)
        with prim::FusionGroup_0 = graph(%0 : Float(*, *),
              %1 : Float(*, *)):
          %2 : Float(*, *) = aten::mul(%0, %1)
          %3 : Float(*, *) = aten::tanh(%2)
          return (%3)
    """
    BY_NAME["fuse"].check(threshold=threshold)
    writes = any(map(node_may_write, graph.walk()))
    aliases = cache(lambda: Aliases(graph))

    def fits(node: Node) -> bool:
        """Is a node pointwise, and is its result never written into? Its operands may be, since no node moves past a write into one; but
        the results of a group are new memory."""
        return may_be_fused(node) and not (writes and may_be_a_view(node) and aliases().has_writers(node))

    groups = all_groups(graph, threshold, fits, aliases)
    if wants_remarks():
        grouped = {node for group in groups for node in group.nodes()}
        for node in graph.walk():
            if node not in grouped and is_tensor_operator(node):
                missed(graph, node, "not fused", why_not_fused(node, threshold, fits))
    renamed: dict[Value, Value] = {}
    loose = loose_tensors(graph) if writes else None
    for group in groups:
        fused = wrap(graph, group.nodes(), group.operands(), group.results(), renamed=renamed, loose=loose)
        fused.kind = KIND
        if fused.subgraph is not None:
            fused.subgraph.source = graph.source     # for the places of errors
    return bool(groups)


fuse.values = {"threshold": Values.at_least(1)}     # type: ignore[attr-defined]


def why_not_fused(node: Node, threshold: int, fits: Callable[[Node], bool]) -> str:
    """The reason for which a node is in no group."""
    if may_be_fused(node):
        return "something writes into its result" if not fits(node) else \
            f"fewer than {threshold} pointwise operators are producer and consumer, with nothing between them that must stay"
    if facts_of(node.kind).is_random or node_may_write(node):
        return "it is random" if facts_of(node.kind).is_random else "it writes"
    outside = next((value for value in node.inputs if not _may_enter(value)), None)
    if outside is not None and not isinstance(outside.type, TensorType):
        return f"%{outside.name} is neither a tensor nor a constant other than None"
    if outside is not None and outside.node.kind not in CONSTANT_KINDS:
        return f"%{outside.name} : {outside.type} has a dtype that groups do not take"
    return "it is not pointwise"


def may_be_a_view(node: Node) -> bool:
    """May a node return its operand itself, as a cast to the same dtype does?"""
    schema = schema_of(node)
    return schema is None or any(result.alias is not None for result in schema.returns)


def may_be_fused(node: Node) -> bool:
    """Is a node pointwise? Decided by running the operator's kernel on symbols, of the dtypes in the types (float32 if a type has none)."""
    if not node.kind.startswith("aten::") or node.blocks or not node.outputs or facts_of(node.kind).is_random:
        return False
    if not all(isinstance(value.type, TensorType) for value in node.outputs):
        return False
    if not all(_may_enter(value) for value in node.inputs):
        return False
    key = (node.kind, *[(name, attribute.text) for name, attribute in node.attributes.items()], len(node.outputs),
           *[(value.type, value.node.attributes["value"].text if "value" in value.node.attributes else None)
             if value.node.kind in CONSTANT_KINDS else value.type for value in node.inputs])
    is_fusible = _fusible.get(key)
    if is_fusible is None:
        if len(_fusible) > MAX_REMEMBERED:
            _fusible.clear()
        is_fusible = _fusible[key] = _runs_on_symbols(node)
    return is_fusible


_fusible: dict[tuple[object, ...], bool] = forgets_kinds({})
"""A cache: all that `may_be_fused` depends on -> its result."""
MAX_REMEMBERED = 10_000


def _runs_on_symbols(node: Node) -> bool:
    from irtool.ops.symbols.elementwise import NotPointwise, Symbol, results_of

    try:
        results_of(node, [_known(value) if is_constant(value) and not isinstance(value.type, TensorType)
                          else Symbol(_dtype(value.type), _is_number(value.type)) for value in node.inputs])
    except NotPointwise:
        return False
    return True


def _may_enter(value: Value) -> bool:
    """Is a value a tensor, or a constant other than None?"""
    if isinstance(value.type, TensorType):
        return value.node.kind not in CONSTANT_KINDS and (value.type.dtype is None or value.type.dtype in REAL)
    return is_constant(value)


def _known(value: Value) -> object:
    from irtool.ops.node_calls import call_node

    return call_node(value.node, [])[0]


def _dtype(type: Type) -> Any:
    from irtool.ops.array_library import np  # when a graph is fused, not before

    return np.dtype(type.dtype if isinstance(type, TensorType) and type.dtype is not None else "float32")


def _is_number(type: Type) -> bool:
    return isinstance(type, TensorType) and type.sizes == ()
