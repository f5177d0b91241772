"""Graphs with several floating dtypes: differentiation needs the dtypes of their tensors, since it converts gradients back."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irtool.analysis.made_dtypes import WIDTHS, widens
from irtool.ir.graph import Graph, Node
from irtool.ir.schema import schema_of
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.result_dtypes import CASTS, CASTS_BY_ARGUMENT, INTO_DTYPE


def may_mix(graph: Graph, inputs: Sequence[Any]) -> bool:
    """May one run have tensors of several floating dtypes?"""
    kinds = {each.dtype.name for each in items(inputs) if (isinstance(each, np.generic) or is_array(each)) and each.dtype.kind in "fcV"}
    return len(kinds) > 1 or any(kind.startswith("complex") for kind in kinds) or any(map(may_cast, graph.walk())) \
        or any(isinstance(each, complex) for each in items(inputs)) or any(value.type.key == "complex" for value in graph.values()) \
        or widens(graph, [kind if kind in WIDTHS else "bfloat16" for kind in kinds])


def items(value: Any) -> Iterator[Any]:
    """What a value holds that is no list, tuple or dict, however deep."""
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from items(each)
    else:
        yield value


def may_cast(node: Node) -> bool:
    """May the result of a node have a floating dtype that its operands do not have (operands are not complex), or whole numbers that
    were floating?"""
    if node.kind not in CASTS_BY_ARGUMENT:
        return node.kind in CASTS or node.kind in INTO_DTYPE
    schema = schema_of(node)
    return schema is None or bool(node.attributes) or any(
        argument.type_text.startswith("ScalarType") and value.type.key != "None"
        for argument, value in zip(schema.arguments, node.inputs, strict=False))
