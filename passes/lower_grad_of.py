"""Gradient regions as conditionals."""
from __future__ import annotations

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.edits import new_name
from irtool.ir.graph import NO_ATTRIBUTES, Graph, Node, Value
from irtool.ir.types import TensorType, spell
from irtool.partial.items import holds_tensor


def lower_grad_of(graph: Graph) -> bool:
    """Replace each `prim::GradOf` by a `prim::If` that runs it if one of its gradients is defined, and else returns undefined gradients.

    Needed before a graph runs, if `specialize-undef` could not decide which gradients are defined. `prim::AutogradAdd` decides in the run.

    before:
        graph(%g : Tensor, %x : Tensor):
          %2 : Tensor = prim::GradOf[name="aten::mul"](%g)
            block0():
              %3 : Tensor = aten::mul(%g, %x)
              -> (%3)
          return (%2)

    after:
        graph(%g : Tensor, %x : Tensor):
          %4 : bool = prim::AutogradAnyNonZero(%g)
          %5 : Tensor = prim::If(%4)
            block0():
              %6 : Tensor = aten::mul(%g, %x)
              -> (%6)
            block1():
              %7 : Tensor = prim::AutogradZero()
              -> (%7)
          return (%5)
    """
    dialect = graph.dialect
    flag = spell(types.TENSOR if dialect.attribute_arguments else types.BOOL, dialect)
    tensor = spell(types.TENSOR, dialect)
    build = Builder(graph)
    changed = False
    for node in [each for block in reversed(list(graph.walk_blocks())) for each in block]:       # inner ones first
        if node.kind != "prim::GradOf" or len(node.blocks) != 1:
            continue
        build.before(node)
        build.tail = node.tail
        condition = build.node(dialect.any_defined_kind, node.inputs, output_types=(flag,)).output
        # the node itself becomes the `If`: a chain of thousands of regions is neither copied nor searched for readers
        node.kind, node.attributes = "prim::If", NO_ATTRIBUTES
        node.set_inputs((condition,))
        (region,) = node.blocks
        for value in (*node.outputs, *[result for inner in region.walk() for result in values_made(inner)]):
            value.name = new_name(value, graph)
        without = node.add_block()
        undefined = build.at_end(without).node(dialect.undefined_kind, output_types=(tensor,)).output
        without.set_outputs([undefined if isinstance(value.type, TensorType) else
                             build.node(dialect.undefined_kind, output_types=(value.type,)).output if holds_tensor(value.type) else
                             build.nothing(value.type) for value in node.outputs])
        changed = True
    return changed


def values_made(node: Node) -> list[Value]:
    """The results of a node, and the inputs of its blocks, in the order of the text."""
    return [*node.outputs, *[value for block in node.blocks for value in block.inputs]]
