"""Graphs for checking gradients, made of graphs: the same graph in double precision, and the graph of its gradients."""
from __future__ import annotations

from collections.abc import Collection, Sequence

from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.reverse import differentiate_graph
from irtool.execute.graph_gradients import prepared
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_constant
from irtool.ir.edits import clone_graph, inline_graph
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_arguments, schema_of
from irtool.ir.types import ListType, OptionalType, TensorType, Type, spell, tensor_type
from irtool.passes import BY_NAME
from irtool.passes.specialize_undef import Specializer

WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex32": "complex128", "complex64": "complex128"}
WIDE_CODES = {5: 7, 6: 7, 15: 7, 8: 10, 9: 10}
"""torch's codes of dtypes -> the codes of the dtypes in double precision."""


def widened(graph: Graph) -> Graph:
    """A copy whose floating-point tensors have double precision: in types, and in arguments that are dtypes."""
    copy = clone_graph(graph)
    for value in copy.values():
        value.type = wide_type(value.type, copy)
    build = Builder(copy)
    for node in list(copy.walk()):
        widen_dtypes(node, build)
    return copy


def wide_type(type: Type, graph: Graph) -> Type:
    """The type in double precision."""
    if isinstance(type, TensorType) and type.dtype in WIDE:
        return spell(tensor_type(WIDE[type.dtype], type.sizes, type.strides, type.requires_grad, type.device), graph.dialect)
    if isinstance(type, ListType):
        return types.list_of(wide_type(type.element, graph))
    return types.optional(wide_type(type.element, graph)) if isinstance(type, OptionalType) else type


def widen_dtypes(node: Node, build: Builder) -> None:
    """Replace `dtype=float32` among the operands by `float64`."""
    schema = schema_of(node)
    if schema is None or not any(argument.type_text.startswith("ScalarType") for argument in schema.arguments):
        return
    for argument, operand in zip(schema.arguments, node_arguments(node, schema), strict=False):
        if not argument.type_text.startswith("ScalarType") or not isinstance(operand, Value) or not is_constant(operand):
            continue
        code = constant(operand)
        if isinstance(code, int) and code in WIDE_CODES:
            wide = build.before(node).constant(WIDE_CODES[code])
            for slot, value in enumerate(node.inputs):
                if value is operand:
                    node.replace_input(slot, wide)


def derivative(graph: Graph, wrt: Sequence[int], without: Collection[int] = ()) -> tuple[Graph, list[int]]:
    """The graph of its gradients: it takes the graph's inputs, then a gradient for each output that can have one, and gives gradients.

    With it come the positions of these outputs, tuples and lists among the outputs taken apart as `prepared` does. It can be
    differentiated again. Outputs in `without` take no part: their gradient is undefined. Raises UnsupportedError for an operator without
    a gradient.
    """
    pair = differentiate_graph(prepared(graph), [index in wrt for index in range(len(graph.inputs))], True)
    captured = len(pair.captured_inputs) + len(pair.captured_outputs)
    taken = [index for index in pair.input_vjps if index < pair.real_outputs and index not in without]
    Specializer(pair.df, [index in taken for index in pair.input_vjps] + [True] * captured).run()
    BY_NAME["lower-grad-of"](pair.df)
    remove_dead_nodes(pair.df)
    whole = Graph(graph.dialect)
    build = Builder(whole)
    inputs = [whole.block.add_input(whole.fresh_id(), value.type) for value in pair.f.inputs]
    seeds: list[Value | None] = []
    for position, index in enumerate(pair.input_vjps):
        type = pair.df.inputs[position].type
        seeds.append(whole.block.add_input(whole.fresh_id(), type) if index in taken else None)
    outputs = inline_graph(pair.f, whole.block.return_node, inputs)
    tensor = spell(types.TENSOR, graph.dialect)
    cotangents = [seed or build.at_end(whole.block).node(graph.dialect.undefined_kind, output_types=(tensor,)).output for seed in seeds]
    values = [*cotangents, *[inputs[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    whole.block.set_outputs(inline_graph(pair.df, whole.block.return_node, values))
    remove_dead_nodes(whole)
    return whole, taken
