"""Captures of values that a loop of f computes in each round.

f appends such a value to a list in each round. df's loop runs the rounds in reverse order and reads the list at the round's number. In
nested loops these are lists of lists.
"""
from __future__ import annotations

from irtool.ir.builder import Builder
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import Type


class Round:
    """The body of a loop of f, and the body of df's loop, which differentiates one round."""

    __slots__ = ("f", "df", "body", "block", "index", "last")

    def __init__(self, f: Graph, df: Graph, body: Block, block: Block, index: Value) -> None:
        self.f = f
        self.df = df
        self.body = body
        self.block = block
        """The body of df's loop."""
        self.index = index
        """In df, the number that the round had in f."""
        self.last: Node = index.node
        """The last of the nodes at the top of `block` that read saved values of the round."""

    @property
    def top(self) -> Node:
        """The node after which the next read of a saved value is inserted."""
        return self.last if self.last.owner is not None else self.index.node

    def fetch(self, kind: str, whole: Value, type: Type) -> Value:
        """The element for this round of the list `whole` of df, read by a new node of a kind."""
        self.last = Builder(self.df).after(self.top).node(kind, (whole, self.index), output_types=(type,))
        return self.last.output

    def save(self, value: Value, element: Type, filled_by: Node | None) -> Value:
        """A new list of f, to which each round appends the value. filled_by: the inner loop, if the value is itself such a list, which is
        complete only after that loop."""
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
