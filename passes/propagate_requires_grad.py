"""Propagation of `requires_grad`."""
from __future__ import annotations

from irtool.autodiff.formula_graphs import has_gradient
from irtool.autodiff.reverse import FLOATING
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.types import TensorType, spell, tensor_type


def propagate_requires_grad(graph: Graph) -> bool:
    """Set `requires_grad` in the types of tensors of known floating dtype, by propagation from the graph's inputs.

    before:
        graph(%x : Float(2, requires_grad=1, device=cpu), %y : Float(2, requires_grad=0, device=cpu)):
          %2 : Float(2, requires_grad=0, device=cpu) = aten::mul(%x, %y)
          %3 : Float(2, requires_grad=0, device=cpu) = aten::neg(%y)
          return (%2, %3)

    after:
        graph(%x : Float(2, requires_grad=1, device=cpu), %y : Float(2, requires_grad=0, device=cpu)):
          %2 : Float(2, requires_grad=1, device=cpu) = aten::mul(%x, %y)
          %3 : Float(2, requires_grad=0, device=cpu) = aten::neg(%y)
          return (%2, %3)
    """
    reached = {value for value in graph.inputs if isinstance(value.type, TensorType) and value.type.requires_grad is True}
    _sweep(graph.block, reached)
    changed = False
    for node in graph.walk():
        for value in (*node.outputs, *(value for block in node.blocks for value in block.inputs)):
            changed = _mark(value, value in reached) or changed
    return changed


def _sweep(block: Block, reached: set[Value]) -> None:
    """Add the values that a gradient can reach in a block; bodies of loops are visited until nothing is added."""
    for node in block:
        if node.kind in IF_KINDS:
            for inner in node.blocks:
                _sweep(inner, reached)
                reached.update(output for output, result in zip(node.outputs, inner.outputs, strict=False) if result in reached)
        elif node.kind in LOOP_KINDS and len(node.blocks) == 1:
            _sweep_loop(node, reached)
        elif not reached.isdisjoint(node.inputs) and _passes(node, reached):
            reached.update(node.outputs)


def _sweep_loop(node: Node, reached: set[Value]) -> None:
    body = node.blocks[0]
    carried = body.inputs[1:]
    reached.update(value for value, start in zip(carried, node.inputs[2:], strict=False) if start in reached)
    before = -1
    while len(reached) != before:
        before = len(reached)
        _sweep(body, reached)
        reached.update(value for value, result in zip(carried, body.outputs[1:], strict=False) if result in reached)
    reached.update(output for output, value in zip(node.outputs, carried, strict=False) if value in reached)


def _passes(node: Node, reached: set[Value]) -> bool:
    if node.kind == "aten::type_as":
        return node.inputs[0] in reached
    schema = schema_of(node)
    return node.kind != "aten::detach" and (schema is None or has_gradient(schema) is not False)


def _mark(value: Value, flag: bool) -> bool:
    """Set the flag in a value's type; returns whether the type changed."""
    type = value.type
    graph = value.node.graph
    if not isinstance(type, TensorType) or type.dtype is None or graph is None or not graph.dialect.tensor_options:
        return False
    flag = flag and type.dtype in FLOATING
    if type.requires_grad is flag or type.undefined:
        return False
    value.type = spell(tensor_type(type.dtype, type.sizes, type.strides, flag, type.device), graph.dialect)
    return True
