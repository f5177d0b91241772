"""The texts in the box of a node: kind, results with short types, literal arguments.

Constants, lists of constants and attributes of a module (`self.conv.weight`) have no boxes of their own: they are literals of the nodes
that read them.
"""
from __future__ import annotations

from irtool.drawing.escaping import cut
from irtool.ir.graph import PARAM, Graph, Node, Value
from irtool.ir.short_types import short_type
from irtool.text.printer import attributes_text

LONGEST = 34
"""More characters of a line are cut."""
FOLDED_LISTS = ("prim::ListConstruct", "prim::TupleConstruct")
GET = "prim::GetAttr"
PARTS = 12
"""Lists of more literals have a box."""
DEPTH = 20
"""Attributes of attributes, and lists in lists, that are literals."""


class Literals:
    """Finds the values of a graph that are drawn as text."""

    def __init__(self) -> None:
        self.known: dict[Value, str | None] = {}

    def text(self, value: Value, depth: int = 0) -> str | None:
        """The text of a literal; None for a value that has a box."""
        if value not in self.known:
            self.known[value] = None if depth > DEPTH else self.made(value, depth)
        return self.known[value]

    def made(self, value: Value, depth: int) -> str | None:
        """The same, computed."""
        node = value.node
        if node.kind == "prim::Constant":
            if "value" in node.attributes:
                return cut(node.attributes["value"].text, LONGEST)
            return "None" if not node.attributes else cut(attributes_text(node.attributes), LONGEST)
        if node.kind == GET and len(node.inputs) == 1 and "name" in node.attributes:
            owner = node.inputs[0]
            text = owner.name.partition(".")[0] if is_module(owner) else self.text(owner, depth + 1)
            return None if text is None else f"{text}.{node.attributes['name'].text.strip(chr(34))}"
        if node.kind in FOLDED_LISTS and len(node.inputs) <= PARTS and not is_written(value):
            texts = [self.text(each, depth + 1) for each in node.inputs]
            if all(text is not None for text in texts):
                opening, closing = "[]" if node.kind == FOLDED_LISTS[0] else "()"
                return opening + ", ".join([text or "" for text in texts]) + closing
        return None

    def is_folded(self, node: Node) -> bool:
        """Is the node drawn as text of the nodes that read it?"""
        return bool(node.outputs) and all(value.has_uses and self.text(value) is not None for value in node.outputs)


def is_module(value: Value) -> bool:
    """Is this the instance of a module that a method takes?"""
    return value.node.kind == PARAM and value.type.text.startswith("__torch__.")


def is_written(value: Value) -> bool:
    """May a node change the list?"""
    return any(use.user.kind.endswith(("append", "_set_item", "insert", "extend", "clear", "pop")) for use in value.uses)


def title(node: Node) -> str:
    """The kind, without `aten::`."""
    return cut(node.kind.removeprefix("aten::"), LONGEST)


def declared(value: Value, types: str) -> str:
    """A value with its type: `%5: f32[4,8]`. types: short, full or none."""
    return f"%{value.name}" + (f": {short_type(value.type) if types == 'short' else value.type}" if types != "none" else "")


def results(values: tuple[Value, ...], types: str) -> list[str]:
    """A line per value."""
    rows = [cut(declared(value, types), LONGEST) for value in values[:4]]
    return rows if len(values) <= 4 else [*rows, f"and {len(values) - 4} more"]


def arguments(node: Node, literals: Literals) -> str:
    """The literal arguments, with the names that the schema has: `stride=[1, 1] bias=None`."""
    from irtool.ir.schema import schema_of

    texts = [(slot, literals.text(value)) for slot, value in enumerate(node.inputs)]
    if all(text is None for _, text in texts):
        words: list[str] = []
    else:
        schema = schema_of(node) if not node.blocks else None
        names = [argument.name for argument in schema.arguments] if schema is not None else []
        words = [f"{names[slot]}={text}" if slot < len(names) == len(node.inputs) else text for slot, text in texts if text is not None]
    words += [f"{name}={attribute.text}" for name, attribute in node.attributes.items()
              if not isinstance(attribute.value, Graph)] if node.attributes else []
    return cut(" ".join(words), LONGEST)
