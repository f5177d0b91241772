"""What a loop leaves behind for the loop that goes back through it.

A value computed in a round of a loop of f, and read by df, is appended to a list beside the loop; in df, where the rounds run in
reverse, it is taken from the list by the round's number. In nested loops these are lists of lists.
"""
from __future__ import annotations

from irtool.ir.builder import Builder
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import Type


class Round:
    """The body of a loop of f, and the block of df that goes back through one round of it."""

    __slots__ = ("f", "df", "body", "block", "index", "last")

    def __init__(self, f: Graph, df: Graph, body: Block, block: Block, index: Value) -> None:
        self.f = f
        self.df = df
        self.body = body
        self.block = block
        """Of df."""
        self.index = index
        """In df, the number that the round had in f."""
        self.last: Node = index.node
        """The last of the nodes at the top of `block` that fetch what the round left."""

    @property
    def top(self) -> Node:
        """The node behind which to fetch more."""
        return self.last if self.last.owner is not None else self.index.node

    def fetch(self, kind: str, whole: Value, type: Type) -> Value:
        """What a list of df holds for this round."""
        self.last = Builder(self.df).after(self.top).node(kind, (whole, self.index), output_types=(type,))
        return self.last.output

    def save(self, value: Value, element: Type, filled_by: Node | None) -> Value:
        """A new list of f that gets the value of every round. A value that is such a list itself is full only behind the loop that fills
        it, `filled_by`."""
        loop = self.body.owning_node
        assert loop is not None
        build = Builder(self.f)
        saved = build.before(loop).construct_list((), element)
        if value.is_block_input:
            build.at_start(self.body)
        else:
            build.after(filled_by or value.node)
        build.node("aten::append", (saved, value), output_types=(saved.type,))
        return saved
