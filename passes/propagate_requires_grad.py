"""Propagation of `requires_grad`."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.autodiff.formula_graphs import has_gradient
from irtool.autodiff.reverse import FLOATING
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.types import TensorType, spell, tensor_type


def propagate_requires_grad(graph: Graph) -> bool:
    """Set `requires_grad` in the types of tensors of known floating dtype, by propagation from the graph's inputs. An input whose type
    does not say counts as one with a gradient, as in torch.

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
    reach = reach_of(graph, {value for value in graph.inputs
                             if isinstance(value.type, TensorType) and value.type.requires_grad is not False})
    changed = False
    for node in graph.walk():
        for value in (*node.outputs, *(value for block in node.blocks for value in block.inputs)):
            changed = _mark(value, reach.has(value)) or changed
    return changed


def reach_of(graph: Graph, inputs: set[Value]) -> Reach:
    """The values of a graph that a gradient can reach from some of its inputs. Of the other inputs it reaches those that are written."""
    reach = Reach(set(inputs), Aliases(graph) if any(map(node_may_write, graph.walk())) else None)
    reach.sweep(graph.block)
    return reach


class Reach:
    """The values that a gradient can reach. What it reaches by a write, it reaches under all names of the memory; aliases: None where
    nothing writes."""

    def __init__(self, values: set[Value], aliases: Aliases | None) -> None:
        self.values = values
        self.aliases = aliases
        self.roots: set[Value] = set()
        """Of the memory that was written into."""
        self.is_wild = False
        """Was memory written into that may have names outside the graph or in containers?"""

    def has(self, value: Value) -> bool:
        """Can a gradient reach a value?"""
        if value in self.values or self.aliases is None:
            return value in self.values
        return not self.roots.isdisjoint(self.aliases.roots(value)) or self.is_wild and self.aliases.is_wild(value)

    def sweep(self, block: Block) -> None:
        """Add the values that a gradient can reach in a block; bodies of loops are visited until nothing is added."""
        for node in block:
            if node.kind in IF_KINDS:
                for inner in node.blocks:
                    self.sweep(inner)
                self.values.update(output for at, output in enumerate(node.outputs)
                                   if any(self.has(result) for inner in node.blocks for result in inner.outputs[at:at + 1]))
            elif node.kind in LOOP_KINDS and len(node.blocks) == 1:
                self.sweep_loop(node)
            elif any(map(self.has, node.inputs)) and self.passes(node):
                self.values.update(node.outputs)
                if self.aliases is not None and node.inputs and node_may_write(node):
                    self.roots |= self.aliases.roots(node.inputs[0])
                    self.is_wild = self.is_wild or self.aliases.is_wild(node.inputs[0])

    def sweep_loop(self, node: Node) -> None:
        """The same for a loop."""
        body = node.blocks[0]
        carried = body.inputs[1:]
        self.values.update(value for value, start in zip(carried, node.inputs[2:], strict=False) if self.has(start))
        before = None
        while before != (before := (len(self.values), len(self.roots), self.is_wild)):
            self.sweep(body)
            self.values.update(value for value, result in zip(carried, body.outputs[1:], strict=False) if self.has(result))
        self.values.update(output for output, value in zip(node.outputs, carried, strict=False) if self.has(value))

    def passes(self, node: Node) -> bool:
        """Can a gradient go through a node from its operands?"""
        if node.kind == "aten::type_as":
            return self.has(node.inputs[0])
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
