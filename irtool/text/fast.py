"""The fast path: canonical node lines, a million a second. What does not fit exactly goes to the general reader, line by line.

A line is split on `%`: what stands between the output's name and the operands (`: Float(2, 3) = aten::mul(`) is a key
into a table of templates that the general reader fills, so that type, kind and attributes cost one look-up and are shared. Nodes are
made without `__init__` and linked as they come; uses are left for later (Note [lazy uses] in irtool/ir/graph.py).
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.graph import NO_BLOCKS, Node, Value
from irtool.text.lexer import MAX_DEPTH

if TYPE_CHECKING:
    from irtool.text.reader import Reader

class FreshNode(Node):
    """A node whose slots the reader fills: made without a call of `Node.__init__`, which would cost more than all the slots."""

    __slots__ = ()
    __init__ = object.__init__  # type: ignore[assignment]


class FreshValue(Value):
    """A value whose slots the reader fills."""

    __slots__ = ()
    __init__ = object.__init__  # type: ignore[assignment]


CHUNK = 1 << 16
"""Characters taken at a time: splitting a whole file into lines would hold it twice."""


def read_body(reader: Reader) -> None:  # noqa: C901  the hot loop: a call or an attribute saved here counts a million times
    """Read lines from `reader.pos`, which begins a line, to the graph's end."""
    text = reader.text
    size = len(text)
    env = reader.env
    templates, tails = reader.file.templates, reader.file.tails
    block, before, indent = reader.block, reader.before, reader.indent
    while not reader.done:
        pos = reader.pos
        stop = text.find("\n", min(pos + CHUNK, size)) + 1 or size
        lines = text[pos:stop].split("\n")
        if not lines[-1] and pos < size:
            lines.pop()
        first = last = reader.line      # `pos` is the offset of line number `last`
        numbered = enumerate(lines, first)
        for number, line in numbered:
            parts = line.split("%")
            count = len(parts) - 2      # operands
            try:
                # The text before an operand's `%` must end in `, `, or the line is not canonical: then KeyError, as for all else.
                inputs: tuple[Value, ...]
                if count == 2:
                    lead, head, a, z = parts
                    z, close, tail = z.partition(")")
                    if a[-2] != "," or a[-1] != " ":
                        raise KeyError
                    inputs = (env[a[:-2]], env[z])
                elif count == 1:
                    lead, head, z = parts
                    z, close, tail = z.partition(")")
                    inputs = (env[z],)
                elif count == 0:
                    lead, head = parts
                    name, _, key = head.partition(" ")
                    found = templates.get(key)
                    if found is None:
                        cut = key.rfind("()") + 2
                        found = templates[key[:cut]]
                        tail = key[cut:]
                    else:
                        tail = ""
                    inputs = ()
                    close = ")"
                elif count == 3:
                    lead, head, a, b, z = parts
                    z, close, tail = z.partition(")")
                    if a[-2] != "," or a[-1] != " " or b[-2] != "," or b[-1] != " ":
                        raise KeyError
                    inputs = (env[a[:-2]], env[b[:-2]], env[z])
                elif count == 4:
                    lead, head, a, b, c, z = parts
                    z, close, tail = z.partition(")")
                    if a[-2:] != ", " or b[-2:] != ", " or c[-2:] != ", ":
                        raise KeyError
                    inputs = (env[a[:-2]], env[b[:-2]], env[c[:-2]], env[z])
                else:
                    lead, head, rest = line.split("%", 2)
                    rest, close, tail = rest.partition(")")
                    inputs = tuple([env[operand] for operand in rest.split(", %")])
                if lead != indent:
                    raise KeyError
                if tail:
                    tail = tails[tail]
                elif not close:
                    raise KeyError
                if count:
                    name, _, key = head.partition(" ")
                    found = templates[key]
                kind, type, attributes = found
                if name in env:
                    raise KeyError
            except (KeyError, ValueError, IndexError):
                pos += sum(map(len, lines[last - first:number - first])) + number - last
                last = number
                reader.pos, reader.line, reader.before = pos, number, before
                if not block_line(reader, line, number):
                    reader.statement()
                    if reader.done:
                        break
                    for _ in range(reader.line - number - 1):
                        next(numbered, None)
                pos, last = reader.pos, reader.line
                block, before, indent = reader.block, reader.before, reader.indent
                continue
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
        else:
            reader.before = before
            if last - first < len(lines):       # else a statement of the general reader reached beyond the chunk
                reader.pos, reader.line = stop, first + len(lines)


def block_line(reader: Reader, line: str, number: int) -> bool:
    """Read a canonical `block0(...):` or `-> (...)` of the dialects without braces. False when it is not one."""
    indent = reader.indent
    if reader.braces or reader.lead or not line.startswith(indent):
        return False
    rest = line[len(indent):]
    env = reader.env
    if rest.startswith("-> (") and rest.endswith(")") and reader.stack:
        values: tuple[Value, ...] = ()
        if rest != "-> ()":
            if rest[4] != "%":
                return False
            try:
                values = tuple([env[name] for name in rest[5:-1].split(", %")])
            except KeyError:
                return False
        reader.close_block(values, number)
    elif rest.startswith("  block") and rest.endswith("):"):
        head, _, params = rest.partition("(")
        owner = reader.before
        if owner is reader.block.return_node or len(reader.stack) >= MAX_DEPTH or head != f"  block{len(owner.blocks)}":
            return False
        declared: list[tuple[str, object]] = []
        if params != "):":
            if params[0] != "%":
                return False
            types = reader.file.types
            for param in params[1:-2].split(", %"):
                name, _, type_text = param.partition(" : ")
                type = types.get(type_text)
                if type is None or name in env:
                    return False
                declared.append((name, type))
        reader.open_block(number)
        for name, type in declared:
            reader.declare_input(name, type)  # type: ignore[arg-type]  # a Type, from the table of types
    else:
        return False
    reader.pos += len(line) + 1
    reader.line += 1
    return True

