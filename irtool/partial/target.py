"""The target of a partial evaluation: the graph that nodes are added to, and facts about its values."""
from __future__ import annotations

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.effects import IF_KINDS
from irtool.ir.graph import Block, Graph, Value
from irtool.ir.structure_kinds import ASKING_DEFINED
from irtool.ir.types import Type
from irtool.partial.items import Item


class Target:
    """A graph to which nodes are added at `build`'s insertion point."""

    def __init__(self, graph: Graph, build: Builder, facts: dict[Value, Type]) -> None:
        self.graph = graph
        self.build = build
        self.facts = facts
        """Value -> a type more precise than the value's own that is known to hold."""
        self.sizes: dict[tuple[Value, Block | None], Value] | None = None
        """(value, guard) -> its size, computed once, right after the value, or at the start of `guard`, the block in which the value is
        certainly defined; None: sizes are computed where they are read."""

        self.unsure: set[Value] = set()
        """Values of known shape that may nevertheless be None."""
        self.certain: Graph | None = None
        """A graph in which no tensor is an undefined gradient."""

    def type_of(self, item: Item) -> Type:
        """The best type known for a value of the target."""
        assert isinstance(item, Value)
        return self.facts.get(item, item.type)

    def size_of(self, value: Value) -> Value:
        """`aten::size(value)`, computed once."""
        assert self.sizes is not None
        guard = guard_around(self.build.block, value)
        sizes = self.sizes.get((value, guard))
        if sizes is None:
            build = self.build.another()
            if guard is not None:
                build.at_start(guard)
            elif value.is_block_input:
                build.at_start(value.node.owner_block)
            else:
                build.after(value.node)
            sizes = self.sizes[value, guard] = build.node("aten::size", (value,), output_types=(types.list_of(types.INT),)).output
        return sizes


def guard_around(block: Block, value: Value) -> Block | None:
    """The outermost block around `block`, inside that of the value, that runs only if gradients are defined: outside, the value may be
    undefined. None: there is no such block."""
    outermost = None
    while block is not value.node.owner:
        owner = block.owning_node
        if owner is None:
            break
        if owner.kind == "prim::GradOf" or owner.kind in IF_KINDS and owner.inputs[0].node.kind in ASKING_DEFINED:
            outermost = block
        block = owner.owner_block
    return outermost
