"""IR -> text, in the dialect of each graph.

One loop prints plain graphs with an f-string per number of operands (faster than any join); another, for graphs with a layout
record and for the dialects of 2017, prints the text that was read for every part that has not changed.
"""
from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from irtool.ir.collector import Paused
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.text.layout import Layout
from irtool.text.tensor_line import tensor_line
from irtool.text.uses import collect_uses, uses_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from irtool.ir.attribute import Attribute
    from irtool.ir.module import Module

STAGE = "---------------- stage {} ----------------"
INPUT_STAGE = "-------- stage {} --------"
PIECES = 1024
"""This many short texts are joined at a time: reusing their memory at once is faster than new memory."""


class Text(list[str]):
    """A text that is being made: the latest pieces, and the joined text before them."""

    __slots__ = ("joined",)

    def __init__(self) -> None:
        self.joined: list[str] = []

    def fold(self) -> None:
        """Join the pieces so far."""
        self.joined.append("".join(self))
        self.clear()

    def end_line(self) -> None:
        """Start a new line, unless the text ends with one."""
        if not (self or self.joined or ["\n"])[-1].endswith("\n"):
            self.append("\n")

    def whole(self) -> str:
        """The whole text."""
        self.fold()
        return "".join(self.joined)


def module_text(module: Module) -> str:
    """The text of a whole file. For a parsed module that was not changed, it is the text that was read, byte for byte."""
    with Paused():      # a million strings are made here, and no cycle
        out = Text()
        after_graph = False
        for item in module.items:
            if isinstance(item, Graph):
                if after_graph:
                    out.end_line()
                out.append(tensor_line(item))
                out.append(name_line(item))
                _print_graph(item, "", out)
            else:
                out.append(item)
            after_graph = isinstance(item, Graph)
        return out.whole()


def name_line(graph: Graph) -> str:
    """`# graph df: of=f df_input_vjps=[0, 1]`; empty for a graph without a name."""
    if not graph.name and not graph.metadata:
        return ""
    text = f"# graph {graph.name or 'graph'}:{''.join(f' {key}={value}' for key, value in graph.metadata.items())}\n"
    layout = graph.layout
    if isinstance(layout, Layout) and layout.name_line is not None and layout.name_line[0] == text:
        return layout.name_line[1]
    return text


def graph_text(graph: Graph) -> str:
    """A graph and, after it, its `with` sections; without the line that names it."""
    with Paused():
        out = Text()
        _print_graph(graph, "", out)
        return out.whole()


def node_text(node: Node) -> str:
    """The text of a node with its blocks, not indented, without a final newline; a subgraph is `Subgraph=<Graph>`."""
    graph = node.graph
    printer = Printer(graph if graph is not None else Graph(), labels={})
    out = Text()
    out.append(printer.line(node, ""))
    for number, block in enumerate(node.blocks):
        printer.block(block, number, 0, out)
    return out.whole().rstrip("\n")


def _print_graph(graph: Graph, label: str, out: Text) -> None:
    printer = Printer(graph)
    printer.graph_into(label, out)
    for node, number in (printer.labels or {}).items():
        for name, subgraph in sorted(node.graphs.items(), key=lambda entry: entry[0] != "Subgraph"):
            out.end_line()      # indented text may end without one
            _print_graph(subgraph, section_label(node, number, name), out)


def section_label(node: Node, number: int, name: str) -> str:
    """`with prim::FusionGroup_0 = `; for a graph that the node owns but does not run, `with prim::FusionGroup_0.ReverseSubgraph = `."""
    return f"with {node.kind}_{number}{'' if name == 'Subgraph' else f'.{name}'} = "


def attributes_text(attributes: Mapping[str, Attribute], has_scalars: bool = False) -> str:
    """`[alpha={1}, axis=0]`, without subgraphs and a Python operator's scalars, which are printed elsewhere; empty if there are none."""
    parts = [f"{name}={attribute.text}" for name, attribute in attributes.items()
             if not (name == "scalars" and has_scalars or name == "Subgraph" and isinstance(attribute.value, Graph))]
    return f"[{', '.join(parts)}]" if parts else ""


class Printer:
    """Makes the texts of the parts of one graph."""

    __slots__ = ("graph", "dialect", "layout", "labels", "typed", "plain", "braces", "open", "uses", "stage", "attribute_texts")

    def __init__(self, graph: Graph, labels: dict[Node, int] | None = None) -> None:
        self.graph = graph
        self.dialect = graph.dialect
        self.layout = graph.layout if isinstance(graph.layout, Layout) else None
        self.labels = labels
        """Nodes that own subgraphs, and their numbers, in text order; None until the first one is printed."""
        self.typed = self.dialect.typed
        self.plain = not (self.layout or self.dialect.uses_lists or self.dialect.literal_operands or not self.typed)
        """Has every line its canonical form, in one of the usual dialects?"""
        self.braces = self.dialect.braces
        self.open = " {\n" if self.braces else ":\n"
        self.uses: dict[Value, list[str]] | None = None
        self.stage = 0
        self.attribute_texts: dict[int, str] = {}

    # -- the graph
    def graph_into(self, label: str, out: Text) -> None:
        """Append the text of the graph to `out`."""
        whole = self.layout.whole if self.layout is not None else None
        if whole is None:
            self.parts_into(label, out)
            return
        parts = Text()
        self.parts_into(label, parts)
        text = parts.whole()
        out.append(whole[1] if text == whole[0] else text)

    def parts_into(self, label: str, out: Text) -> None:
        """Append the texts of the graph's parts."""
        graph = self.graph
        block = graph.block
        dialect = self.dialect
        if self.layout is not None and self.layout.is_listing:
            out.extend([self.recorded(node, self.listed(node)) for node in (*block, block.return_node)])
        elif not self.plain:
            if dialect.uses_lists:
                self.uses = collect_uses(graph)
            out.append(self.recorded(block.param_node, self.header(label)))
            self.nodes_recorded(block, 1, out)
            self.mark_stage(block.return_node, out)
            out.append(self.recorded(block.return_node, self.result()))
        else:
            out.append(self.header(label))
            self.nodes(block, 1, out)
            out.append(self.result())

    def recorded(self, key: Node, text: str) -> str:
        """The text of a part as it was read, if the part still prints as it did then; else `text`."""
        entry = self.layout.entries.get(key) if self.layout is not None else None
        if entry is None:
            return text
        return entry[0] + (entry[2] if entry[1] == text else text)

    def header(self, label: str) -> str:
        """`graph(%a : Tensor,` ... `):`"""
        stages, omissions = (self.layout.input_stages, self.layout.omissions) if self.layout is not None else ({}, {})
        separator = self.dialect.input_separator
        parts = [label, "graph("]
        current = 0
        for position, value in enumerate(self.graph.inputs):
            if position:
                parts.append(separator)
            if value in omissions:
                parts.append(("" if separator in parts[-1:] else "\n      ") + omissions[value])
            stage = stages.get(value, current) if stages else 0
            while current < stage:
                current += 1
                parts.append(f"{INPUT_STAGE.format(current)}\n      ")
            parts.append(self.declared(value))
        parts += ("\n      " + omissions[None] if None in omissions else "", ")", self.open)
        return "".join(parts)

    def result(self) -> str:
        """`  return (%a)` and the end of the graph."""
        refs = self.refs(self.graph.outputs)
        return f"  return ({refs}){';' if self.dialect.semicolons else ''}\n" + ("}\n" if self.dialect.braces else "")

    def listed(self, node: Node) -> str:
        """The line of a node in a listing of early 2017: `%21 = Linear %20, %1`."""
        refs = self.refs(node.inputs)
        if node is self.graph.block.return_node:
            return f"Ret {refs}\n" if refs else "Ret\n"
        scalars = node.attributes.get("scalars")
        kind = node.kind + attributes_text(node.attributes, True)
        words = (self.refs(node.outputs), "=", kind, scalars.text if scalars is not None else "", refs)
        return " ".join([word for word in words if word]) + "\n"

    # -- nodes
    def nodes(self, block: Block, level: int, out: Text) -> None:  # noqa: C901  the hot loop: one branch per number of operands
        """The nodes of a block of a plain graph."""
        indent = "  " * level
        write = out.append
        known = self.attribute_texts
        end = block.return_node
        node = end.next
        while True:     # CPython 3.11 optimises loops at unconditional jumps only: `while node is not end` ran at half the speed
            for _ in repeat(None, PIECES):
                if node is end:
                    return
                outputs = node.outputs
                if len(outputs) == 1:
                    value = outputs[0]
                    attributes = node.attributes
                    if attributes:
                        op = known.get(id(attributes))
                        op = node.kind + op if op is not None else self.op_with_attributes(node)
                    else:
                        op = node.kind
                    inputs = node.inputs
                    count = len(inputs)
                    if count == 2:
                        a, b = inputs
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(%{a.name}, %{b.name}){node.tail}\n")
                    elif count == 1:
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(%{inputs[0].name}){node.tail}\n")
                    elif count == 0:
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(){node.tail}\n")
                    elif count == 3:
                        a, b, c = inputs
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(%{a.name}, %{b.name}, %{c.name}){node.tail}\n")
                    elif count == 4:
                        a, b, c, d = inputs
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(%{a.name}, %{b.name}, %{c.name}, %{d.name}){node.tail}\n")
                    else:
                        write(f"{indent}%{value.name} : {value.type.text} = {op}(%{', %'.join([v.name for v in inputs])}){node.tail}\n")
                else:
                    write(self.line(node, indent))
                if node.blocks:
                    for number, inner in enumerate(node.blocks):
                        self.block(inner, number, level, out)
                if len(out) > PIECES:
                    out.fold()
                node = node.next
            out.fold()

    def op_with_attributes(self, node: Node) -> str:
        """Kind, attributes and scalars of a node with attributes; the text of shared attributes is made once."""
        attributes = node.attributes
        if "scalars" in attributes or "Subgraph" in attributes:
            return self.op(node)
        text = self.attribute_texts[id(attributes)] = attributes_text(attributes)
        return node.kind + text

    def nodes_recorded(self, block: Block, level: int, out: Text) -> None:
        """The nodes of a block, each with its recorded text."""
        indent = "  " * level
        skip_literals = self.dialect.literal_operands
        for node in block:
            if skip_literals and is_literal(node):
                continue
            if level == 1:
                self.mark_stage(node, out)
            out.append(self.recorded(node, self.line(node, indent)))
            for number, inner in enumerate(node.blocks):
                self.block(inner, number, level, out)
            if len(out) > PIECES:
                out.fold()

    def block(self, block: Block, number: int, level: int, out: Text) -> None:
        """A block of a node of `level`: header, nodes, `->`."""
        if self.plain:
            indent = "  " * (level + 1)
            if block.param_node.outputs:
                out.append(self.block_header(block, number, level))
            else:
                out.append(f"{indent}block{number}(){self.open}")
            self.nodes(block, level + 2, out)
            results = block.return_node.inputs
            if len(results) == 1 and not self.braces:
                out.append(f"{indent}  -> (%{results[0].name})\n")
            else:
                out.append(self.block_result(block, level))
        else:
            out.append(self.recorded(block.param_node, self.block_header(block, number, level)))
            self.nodes_recorded(block, level + 2, out)
            out.append(self.recorded(block.return_node, self.block_result(block, level)))

    def block_header(self, block: Block, number: int, level: int) -> str:
        """`    block0(%i : int):`"""
        inputs = block.param_node.outputs
        shown = ", ".join([self.declared(value) for value in inputs]) if inputs else ""
        return f"{'  ' * (level + 1)}block{number}({shown}){self.open}"

    def block_result(self, block: Block, level: int) -> str:
        """`      -> (%a)` and the end of the block."""
        indent = "  " * (level + 1)
        text = f"{indent}  -> ({self.refs(block.return_node.inputs)})\n"
        return f"{text}{indent}}}\n" if self.dialect.braces else text

    def mark_stage(self, node: Node, out: Text) -> None:
        """Print the line between two stages, before the first node of the later one."""
        stages = self.layout.stages if self.layout is not None else None
        if stages:
            while self.stage < stages.get(node, 0):
                self.stage += 1
                out.append(f"  {STAGE.format(self.stage)}\n")

    def line(self, node: Node, indent: str) -> str:
        """The line of a node in canonical form."""
        uses, tail = "", node.tail
        group = self.layout.groups.get(node, "") if self.layout is not None else ""
        if self.dialect.uses_lists:
            uses = uses_text(node, self.uses or {}, self.layout is not None and self.layout.has_flat_uses, group != "")
            scope, mark, comment = tail.partition(" # ")
            tail = f"{scope};{mark}{comment}"
        outputs = f"%{group}" if group else ", ".join([self.declared(value) for value in node.outputs])
        return f"{indent}{outputs} = {self.op(node)}({self.refs(node.inputs)}){uses}{tail}\n"

    def op(self, node: Node) -> str:
        """Kind with subgraph number, attributes and scalars: the text before the operands."""
        attributes = node.attributes
        if not attributes:
            return node.kind
        text = node.kind
        scalars = attributes.get("scalars") if self.has_scalars(node) else None
        if "Subgraph" in attributes and node.subgraph is not None:
            if self.labels is None:
                self.labels = number_subgraphs(self.graph)
            number = self.labels.get(node)
            shown = attributes_text(attributes, scalars is not None)
            if number is None:
                return f"{text}{shown[:-1] + ', ' if shown else '['}Subgraph=<Graph>]"
            text += f"_{number}{shown}"
        elif len(attributes) > (scalars is not None):
            text += attributes_text(attributes, scalars is not None)
        if scalars is not None:
            text += f"({scalars.text})" if node.kind.startswith("^") else f" {scalars.text}"
        return text

    def has_scalars(self, node: Node) -> bool:
        """Are scalars printed separately from the attributes, as for Python operators, and for all operators of 2017?"""
        return node.kind.startswith("^") or not self.typed

    def declared(self, value: Value) -> str:
        """`%x : Tensor`"""
        return f"%{value.name} : {value.type.text}" if self.typed else f"%{value.name}"

    def refs(self, values: tuple[Value, ...]) -> str:
        """`%a, %b`"""
        if self.dialect.literal_operands:
            return ", ".join([f"%{v.name}" if v.name else v.node.attributes["value"].text for v in values])
        return "%" + ", %".join([v.name for v in values]) if values else ""


def is_literal(node: Node) -> bool:
    """Is the value a constant that is printed among its user's operands (dialects with `literal_operands`)?"""
    return node.kind == "prim::Constant" and len(node.outputs) == 1 and not node.outputs[0].name


def number_subgraphs(graph: Graph) -> dict[Node, int]:
    """The nodes that own a graph, in text order, with the numbers printed after `_` in `prim::FusionGroup_0`."""
    numbers: dict[Node, int] = {}
    blocks = [iter(graph.block)]
    while blocks:
        for node in blocks[-1]:
            if node.attributes and "Subgraph" in node.attributes and node.subgraph is not None:
                numbers[node] = len(numbers)
            if node.blocks:
                blocks.extend(iter(block) for block in reversed(node.blocks))
                break
        else:
            blocks.pop()
    return numbers
