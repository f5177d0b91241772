"""The graph that another one is put into, and what is known of its values."""
from __future__ import annotations

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.effects import IF_KINDS
from irtool.ir.graph import Block, Graph, Value
from irtool.ir.structure_kinds import ASKING_DEFINED
from irtool.ir.types import Type
from irtool.partial.items import Item


class Target:
    """A graph that is added to at `build`'s insertion point."""

    def __init__(self, graph: Graph, build: Builder, facts: dict[Value, Type]) -> None:
        self.graph = graph
        self.build = build
        self.facts = facts
        """Types that are known to hold though the graph does not say so."""
        self.sizes: dict[tuple[Value, Block | None], Value] | None = None
        """Sizes asked for so far, each made once, right behind the value (or in the block in which it is sure to be there); None: they are
        asked for where they are wanted."""

        self.unsure: set[Value] = set()
        """Values that may be None, though it is known what shape they have when they are not."""
        self.certain: Graph | None = None
        """A graph whose tensors are all there: none of them is a gradient that may be undefined."""

    def type_of(self, item: Item) -> Type:
        """The best type known for a value of the target."""
        assert isinstance(item, Value)
        return self.facts.get(item, item.type)

    def size_of(self, value: Value) -> Value:
        """`aten::size(value)`, made once."""
        assert self.sizes is not None
        guard = guard_around(self.build.block, value)
        sizes = self.sizes.get((value, guard))
        if sizes is None:
            build = Builder(self.graph)
            if guard is not None:
                build.at_start(guard)
            elif value.is_block_input:
                build.at_start(value.node.owner_block)
            else:
                build.after(value.node)
            sizes = self.sizes[value, guard] = build.node("aten::size", (value,), output_types=(types.list_of(types.INT),)).output
        return sizes


def guard_around(block: Block, value: Value) -> Block | None:
    """The outermost block around `block`, inside the value's, that runs only when gradients are there: outside, the value may not be."""
    outermost = None
    while block is not value.node.owner:
        owner = block.owning_node
        if owner is None:
            break
        if owner.kind == "prim::GradOf" or owner.kind in IF_KINDS and owner.inputs[0].node.kind in ASKING_DEFINED:
            outermost = block
        block = owner.owner_block
    return outermost
