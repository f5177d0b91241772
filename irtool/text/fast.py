"""The fast reader of canonical node lines, a million a second. Lines that do not match exactly are left to the general reader, one by one.

A line is split at `%`. The text between the output's name and the operands (`: Float(2, 3) = aten::mul(`) is a key in a table of templates
that the general reader fills, so that type, kind and attributes take one look-up and are shared. Nodes are made without `__init__` and
linked in order; uses are computed later (Note [lazy uses] in irtool/ir/graph.py).
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.graph import NO_BLOCKS, Value
from irtool.text.cursor import Cursor, FreshNode, FreshValue
from irtool.text.lexer import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from irtool.ir.types import Type

CHUNK = 1 << 16
"""The number of characters read at a time: splitting a whole file into lines would need twice its memory."""


def read_body(reader: Cursor, statement: Callable[[], bool]) -> None:  # noqa: C901  a call saved here counts a million times
    """Read lines from `reader.pos`, the beginning of a line, to the graph's end. `statement` reads a line that is not canonical, and
    returns whether there are more."""
    text = reader.text
    size = len(text)
    env = reader.env
    templates, tails = reader.file.templates, reader.file.tails
    block, before, indent = reader.block, reader.before, reader.indent
    while True:
        pos = reader.pos
        stop = text.find("\n", min(pos + CHUNK, size)) + 1 or size
        lines = text[pos:stop].split("\n")
        if not lines[-1] and pos < size:
            lines.pop()
        first = last = reader.line      # `pos` is the offset of line number `last`
        numbered = enumerate(lines, first)
        for number, line in numbered:
            parts = line.split("%")
            if parts[0] == indent:
                try:
                    # The text before an operand's `%` must end in `, `, or the line is not canonical: KeyError, as for all other reasons.
                    count = len(parts)
                    inputs: tuple[Value, ...]
                    if count == 4:
                        _, head, a, z = parts
                        if a[-2] != "," or a[-1] != " ":
                            raise KeyError
                        z, close, tail = z.partition(")")
                        inputs = (env[a[:-2]], env[z])
                    elif count == 3:
                        _, head, z = parts
                        z, close, tail = z.partition(")")
                        inputs = (env[z],)
                    elif count == 2:
                        head, close, tail = parts[1].rpartition("()")
                        inputs = ()
                    elif count == 5:
                        _, head, a, b, z = parts
                        if a[-2] != "," or a[-1] != " " or b[-2] != "," or b[-1] != " ":
                            raise KeyError
                        z, close, tail = z.partition(")")
                        inputs = (env[a[:-2]], env[b[:-2]], env[z])
                    elif count == 6:
                        _, head, a, b, c, z = parts
                        if a[-2:] != ", " or b[-2:] != ", " or c[-2:] != ", ":
                            raise KeyError
                        z, close, tail = z.partition(")")
                        inputs = (env[a[:-2]], env[b[:-2]], env[c[:-2]], env[z])
                    else:
                        _, head, rest = line.split("%", 2)
                        rest, close, tail = rest.partition(")")
                        inputs = tuple([env[operand] for operand in rest.split(", %")])
                    name, _, key = head.partition(" ")
                    kind, type, attributes = templates[key]
                    if tail:
                        tail = tails[tail]
                    elif not close:
                        raise KeyError
                    if name in env:
                        raise KeyError
                except (KeyError, ValueError, IndexError):
                    pass
                else:
                    node = FreshNode()
                    node.kind = kind
                    node.inputs = inputs
                    node.attributes = attributes
                    node.blocks = NO_BLOCKS
                    node.tail = tail
                    node.line = number
                    node.owner = block
                    node.prev = before
                    before.next = node
                    before = node
                    env[name] = value = FreshValue()
                    value.name = name
                    value.type = type
                    value.node = node
                    value._uses = None
                    node.outputs = (value,)
                    continue
            pos += sum(map(len, lines[last - first:number - first])) + number - last
            last = number
            reader.pos, reader.line, reader.before = pos, number, before
            if not block_line(reader, line, parts):
                if not statement():
                    return
                for _ in range(reader.line - number - 1):
                    next(numbered, None)
            pos, last = reader.pos, reader.line
            block, before, indent = reader.block, reader.before, reader.indent
        else:
            reader.before = before
            if last - first < len(lines):       # else a statement of the general reader ended beyond the chunk
                reader.pos, reader.line = stop, first + len(lines)


def block_line(reader: Cursor, line: str, parts: list[str]) -> bool:
    """Read a canonical `block0(...):` or `-> (...)` of the dialects without braces. Returns False if it is not one."""
    indent = reader.indent
    lead = parts[0]
    if reader.braces or reader.lead or not lead.startswith(indent):
        return False
    if lead.startswith("-> (", len(indent)):
        if not _block_result(reader, line, parts):
            return False
    elif not lead.startswith("  block", len(indent)) or not line.endswith("):") or not _block_header(reader, line, parts):
        return False
    reader.pos += len(line) + 1
    reader.line += 1
    return True


def _block_result(reader: Cursor, line: str, parts: list[str]) -> bool:
    size = len(reader.indent) + 4
    if not reader.stack or line[-1] != ")" or len(parts[0]) > size + 1:
        return False
    values: tuple[Value, ...] = ()
    if len(parts) > 1:
        if len(parts[0]) != size:
            return False
        try:
            env = reader.env
            values = (env[parts[1][:-1]],) if len(parts) == 2 else tuple([env[name] for name in line[size + 1:-1].split(", %")])
        except KeyError:
            return False
    elif len(line) != size + 1:
        return False
    reader.close_block(values, reader.line)
    return True


def _block_header(reader: Cursor, line: str, parts: list[str]) -> bool:
    owner = reader.before
    head, _, rest = parts[0].partition("(")
    if owner is reader.block.return_node or len(reader.stack) >= MAX_DEPTH or head != f"{reader.indent}  block{len(owner.blocks)}":
        return False
    declared: dict[str, Type] = {}
    env, types = reader.env, reader.file.types
    if len(parts) > 1:
        for param in line[len(head) + 2:-2].split(", %"):
            name, _, type_text = param.partition(" : ")
            type = types.get(type_text)
            if type is None or name in env or name in declared or rest:
                return False
            declared[name] = type
    elif rest != "):":
        return False
    reader.open_block(reader.line)
    if declared:
        param_node = reader.block.param_node
        param_node.outputs = tuple([Value(name, type, param_node) for name, type in declared.items()])
        for value in param_node.outputs:
            env[value.name] = value
    return True
