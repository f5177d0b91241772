"""The dtypes of the tensors of a graph before it runs: kernels see arrays without elements."""
from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from irtool.autodiff.captures import ANY_DTYPE
from irtool.autodiff.reach import FLOATING
from irtool.execute.fallbacks import NotLowered
from irtool.execute.fusion import GroupOptions
from irtool.execute.plan.lower import Lowering
from irtool.execute.plan.program import Known, Lowered, meta_of_item
from irtool.ir.constants import is_constant
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType, Type
from irtool.ops.arrays import is_array
from irtool.ops.result_dtypes import LISTS, PASSING, result_dtypes
from irtool.ops.symbols.array_layout import meta_of


class DtypeLowering(Lowering):
    """A lowering whose dtypes hold for all sizes of inputs: it does not choose branches by sizes."""

    def branch(self, node: Node, into: Lowered) -> None:
        """prim::If: a block is left out only if the condition is a constant of the graph."""
        condition = node.inputs[0]
        if isinstance(self.env[condition], Known) and not is_constant(condition):
            self.env[condition] = self.variable()
        super().branch(node, into)


def predicted_dtypes(graph: Graph, inputs: Sequence[Any]) -> dict[Value, str]:
    """The dtype of each tensor in all runs on inputs of these dtypes and ranks; ANY_DTYPE where only the run knows it."""
    lowering = DtypeLowering(graph, None, GroupOptions(False), ())
    try:
        lowering.run([meta_of(value) if is_array(value) else Known(None) if value is None else None for value in inputs])
    except (NotLowered, RecursionError):        # the dtypes of later nodes stay unknown
        pass
    known: dict[Value, str] = {}
    for value, item in lowering.env.items():
        meta = meta_of_item(item)
        if meta is not None:
            known[value] = meta.dtype.name
    undefined = {value for value, item in lowering.env.items() if isinstance(item, Known)}
    dtypes = spread(graph, {**dict.fromkeys(graph.inputs, ANY_DTYPE), **known}, undefined)
    return {value: dtypes.get(value, ANY_DTYPE) for value in graph.values()
            if isinstance(value.type, TensorType) and value not in undefined}


def spread(graph: Graph, known: dict[Value, str], undefined: Container[Value]) -> dict[Value, str]:
    """Propagate known dtypes where shapes are unknown: the dtypes of an operator's operands alone determine those of its results."""
    dtypes = dict(known)
    passing = PASSING if any(node.kind in MUTATORS for node in graph.walk()) else PASSING | LISTS
    pending = True
    while pending:
        pending = False
        for node in graph.walk():
            for value, dtype in results_of(node, dtypes, passing, undefined):
                if value not in known and dtype is not None and dtypes.get(value, dtype) != dtype:
                    dtype = ANY_DTYPE
                if value not in known and dtype is not None and dtypes.get(value) not in (dtype, ANY_DTYPE):
                    dtypes[value], pending = dtype, True
    return dtypes


def results_of(node: Node, dtypes: Mapping[Value, str], passing: Container[str],
               undefined: Container[Value]) -> Iterator[tuple[Value, str | None]]:
    """The dtypes that a node determines, of its results or of inputs of its blocks, as (value, dtype); None: not known yet."""
    if node.kind in IF_KINDS:
        for block in node.blocks:
            yield from zip(node.outputs, map(dtypes.get, block.outputs), strict=False)
        return
    if node.kind in LOOP_KINDS:
        body = node.blocks[0]
        for start, inside, end, out in zip(node.inputs[2:], body.inputs[1:], body.outputs[1:], node.outputs, strict=False):
            for value in (inside, out):
                yield from ((value, dtypes.get(start)), (value, dtypes.get(end)))
        return
    operands = [dtypes.get(value) for value in node.inputs if value not in undefined and holds_any_tensor(value.type)]
    if None in operands:
        return
    floating = {dtype for dtype in operands if dtype in (*FLOATING, ANY_DTYPE)}
    results: list[str | None] = [None] * len(node.outputs)
    if node.kind in passing and len(set(operands)) == 1:
        results = operands[:1] * len(results)
    elif len(floating) == 1 and ANY_DTYPE not in floating:
        results = result_dtypes(node, *floating)
    yield from zip(node.outputs, [dtype or ANY_DTYPE for dtype in results], strict=True)


def holds_any_tensor(type: Type) -> bool:
    """Is a type that of a tensor, or of a container that may hold tensors?"""
    return isinstance(type, TensorType) or any(map(holds_any_tensor, type.elements)) or getattr(type, "key", "") == "Any"
