"""The record of parts of a text that are not canonical, made while parsing, so that unchanged lines print as they were.

The printer makes the canonical text of a part; if it still equals the recorded one, the raw text is printed instead. The key of a part is a
node: a node itself, a block's parameter node (its header), a block's return node (its `->` or `return`, and the end of the block).
"""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Node, Value


class Layout:
    """The record of one graph."""

    __slots__ = ("entries", "stages", "input_stages", "omissions", "name_line", "is_listing", "has_flat_uses", "groups",
                 "whole")

    def __init__(self) -> None:
        self.entries: dict[Node, tuple[str, str, str]] = {}
        """Part -> comments and blank lines before it, canonical text, raw text."""
        self.stages: dict[Node, int] = {}
        """Top-level nodes that begin a later stage (`---- stage 1 ----`)."""
        self.input_stages: dict[Value, int] = {}
        """Graph inputs of a later stage."""
        self.omissions: dict[Value | None, str] = {}
        """Comments that graph inputs were omitted -> before the next input, or the end."""
        self.name_line: tuple[str, str] | None = None
        """Canonical and raw text of the `# graph NAME:` line."""
        self.is_listing = False
        """Is the graph a listing of early 2017, without a header?"""
        self.has_flat_uses = False
        """Are the uses of a node's only result in one pair of brackets: `uses = [%3.i0]`?"""
        self.groups: dict[Node, str] = {}
        """Nodes of 2017-09 that are defined as `%18` and read as `%18.0`, `%18.1`, ... -> the text before the dot."""
        self.whole: tuple[str, str] | None = None
        """Canonical and raw text of a graph that was read with one name for two values: if a part changed, the raw text of another part
        could mean the wrong one of them."""

    def __bool__(self) -> bool:
        return bool(self.entries or self.stages or self.input_stages or self.omissions or self.name_line or self.is_listing
                    or self.has_flat_uses or self.groups or self.whole)
