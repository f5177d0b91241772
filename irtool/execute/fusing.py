"""Fusing the pointwise operators of a graph when all shapes are known: whether fusion pays depends on shapes.

The pass `fuse` forms the groups, if some result is large, or if every group is to run as a native loop. Gradients contain many sums to a
size that the tensor already has; such sums would separate pointwise operators, so they are removed first.
"""
from __future__ import annotations

import math
from collections.abc import Mapping

from irtool.execute.fusion import WORTH_COMPILING
from irtool.execute.plan.lower import WORTH_FUSING, calls_slow
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Call, Item, Program, Variable, numbers_of
from irtool.ir.builder import Builder
from irtool.ir.edits import clone_block, replace_node
from irtool.ir.effects import node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType, spell, tensor_type
from irtool.passes import BY_NAME
from irtool.passes.fuse import may_be_fused
from irtool.passes.sums_early import sums_early

SUMS_TO_SIZE = frozenset(("aten::sum_to_size", "aten::_grad_sum_to_size"))


def is_worth_fusing(program: Program, native: bool | None) -> bool:
    """Is some result large, or computed by a slow function, or are all groups to be loops in C?"""
    calls = [each for each in every(program.body) if isinstance(each, Call) and each.way == "ufunc"]
    if native:
        return len(calls) > 1
    return native is None and calls_slow(calls) or any(each.out.meta is not None and each.out.meta.nbytes >= WORTH_FUSING for each in calls)


def may_be_native(program: Program, native: bool | None) -> bool:
    """May a group become a loop in C, with other bits than NumPy's, before it runs for the first time?

    Calls that read each other's results are taken for one group, which has at most these.
    """
    calls = [each for each in every(program.body) if isinstance(each, Call) and each.way == "ufunc"]
    if native is not None or calls_slow(calls):
        return native is not False
    group: dict[Variable, list[Call]] = {}      # of each result, the calls so far that it is connected to
    for call in calls:
        joined = {id(group[each]): group[each] for each in call.args if isinstance(each, Variable) and each in group}
        largest = max(joined.values(), key=len, default=[])
        for other in joined.values():
            if other is not largest:
                largest += other
                group.update((each.out, largest) for each in other)
        largest.append(call)
        group[call.out] = largest
    sizes = [WORTH_COMPILING if call.out.meta is None else math.prod(call.out.meta.shape) for call in calls]
    return any(len(group[call.out]) * size >= WORTH_COMPILING for call, size in zip(calls, sizes, strict=True))


def fused_graph(graph: Graph, env: Mapping[Value, Item]) -> Graph:
    """A copy of the graph with groups. env: the shapes, dtypes and numbers known of its values."""
    copy = Graph(graph.dialect, graph.name)
    copy.source = graph.source
    mapping: dict[Value, Value] = {value: copy.block.add_input(value.name, value.type) for value in graph.inputs}
    clone_block(graph.block, copy.block, mapping)
    for old, new in mapping.items():
        item = env.get(old)
        if isinstance(new.type, TensorType) and new.type.dtype is None and isinstance(item, Variable) and item.meta is not None:
            new.type = spell(tensor_type(item.meta.dtype.name), graph.dialect)      # whether an operator is pointwise depends on dtypes
    if not any(node_may_write(node) for node in copy.walk()):
        back = {new: env.get(old) for old, new in mapping.items()}
        for node in reversed(list(copy.walk())):        # readers before what they read
            size = numbers_of(back.get(node.output)) if node.kind == "aten::size" and len(node.inputs) == 1 else []
            if size:
                replace_node(node, [Builder(copy).before(node).constant(size, node.output.type)])
            elif node.kind in SUMS_TO_SIZE and keeps_its_size(node, back) and all(may_be_fused(user) for user, _ in node.output.uses):
                replace_node(node, [node.inputs[0]])
        sums_early(copy)
    BY_NAME["fuse"].function(copy, threshold=1)      # one operator may be several steps
    return copy


def keeps_its_size(node: Node, known: Mapping[Value, Item | None]) -> bool:
    """Is a sum to a size the identity, since the tensor has that size?"""
    before, after = known.get(node.inputs[0]), known.get(node.output)
    return (isinstance(before, Variable) and isinstance(after, Variable) and before.meta is not None and after.meta is not None
            and before.meta.shape == after.meta.shape)
