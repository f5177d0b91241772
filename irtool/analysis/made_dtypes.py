"""The floating dtypes that a graph makes itself, whatever its inputs are: `zeros(3, dtype=float64)`, `float_power`, constants."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.analysis.gradients_off import has_tensors
from irtool.ir.constants import argument_value
from irtool.ir.dtypes import NAMES, is_complex_dtype, is_float_dtype
from irtool.ir.graph import Graph, Node
from irtool.ir.schema import node_arguments, schema_of
from irtool.ir.types import TensorType

WIDTHS = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}
IN_DOUBLES = frozenset(("aten::float_power", "aten::float_power_"))
"""Kinds that compute in float64, whatever the dtype of their operands."""


def widens(graph: Graph, given: Iterable[str]) -> bool:
    """May a run on tensors of the dtypes `given` make a wider floating-point tensor?

    Then gradients may be wider than the tensors they belong to. A half beside whole numbers meets float32, their quotients and roots.
    """
    narrowest = min((WIDTHS[dtype] for dtype in given if dtype in WIDTHS), default=0)
    if not narrowest:
        return False
    return narrowest == 1 or any(WIDTHS.get(dtype, 9) > narrowest for dtype in made_dtypes(graph))


def made_dtypes(graph: Graph) -> set[str]:
    """The floating dtypes of tensors whose dtype does not come from the operands; "?" for one that only the run knows."""
    made = {value.type.dtype for value in graph.values() if isinstance(value.type, TensorType) and value.type.dtype is not None}
    for node in graph.walk():
        if node.kind in IN_DOUBLES:
            made.add("float64")
        elif node.kind.startswith("aten::"):
            made |= asked_dtypes(node)
    return {dtype for dtype in made if dtype == "?" or is_float_dtype(dtype) or is_complex_dtype(dtype)}


def asked_dtypes(node: Node) -> set[str]:
    """The dtype that an argument of a node asks for; float32, torch's default, for a tensor made of none."""
    schema = schema_of(node)
    places = [at for at, each in enumerate(schema.arguments) if each.type_text.startswith("ScalarType")] if schema is not None else []
    if schema is None or not places:
        return set()
    try:
        code = argument_value(node_arguments(node, schema)[places[0]])
    except ValueError:
        return set()
    if code is None:
        return set() if any(has_tensors(value.type) for value in node.inputs) else {"float32"}
    return {NAMES.get(code, "?") if isinstance(code, int) else "?"}
