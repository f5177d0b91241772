"""Pickling and copying of graphs of any size, as flat tuples: nodes, values and uses form chains as long as the graph, too long for
recursion."""
from __future__ import annotations

import copyreg
from typing import Any

from irtool.ir.graph import Block, Graph, Node, Value


def parts(graph: Graph) -> tuple[list[Block], list[Node], list[Value]]:
    """All blocks, all nodes and all values of a graph, in an order that the flat tuples share; two hidden nodes per block come first."""
    blocks = list(graph.walk_blocks())
    nodes = [node for block in blocks for node in (block.param_node, block.return_node)]
    nodes += graph.walk()
    return blocks, nodes, [value for node in nodes for value in node.outputs]


def flat(graph: Graph) -> tuple[Any, ...]:
    """The pickled form of a graph: the function `rebuilt` and its arguments."""
    blocks, nodes, values = parts(graph)
    numbers: dict[Any, int] = {each: number for each_kind in (nodes, values) for number, each in enumerate(each_kind)}
    outside: list[Any] = []        # values that the graph reads and does not define: it was not verified
    for value in [value for node in nodes for value in node.inputs]:
        if value not in numbers:
            numbers[value] = len(values) + len(outside)
            outside.append((value.name, value.type))
    places = {block: number for number, block in enumerate(blocks)}
    rows = [(node.kind, node.attributes, node.tail, node.line, places[node.owner_block], tuple([places[block] for block in node.blocks]),
             tuple([numbers[value] for value in node.inputs]), tuple([(value.name, value.type) for value in node.outputs]))
            for node in nodes]
    layout: Any = graph.layout
    entries = None
    if layout is not None:      # the text as it was read, by nodes and values
        entries = type(layout), {name: ([(None if key is None else (isinstance(key, Node), numbers[key]), value)
                                         for key, value in content.items() if key is None or key in numbers]
                                        if isinstance(content, dict) else content)
                                 for name in type(layout).__slots__ for content in (getattr(layout, name),)}
    return rebuilt, (graph.dialect, graph.name, graph.metadata, graph.source, graph.is_reverse, rows, outside, entries)


def rebuilt(dialect: Any, name: str, metadata: dict[str, str], source: Any, is_reverse: bool, rows: list[Any], outside: list[Any],
            entries: Any) -> Graph:
    """The graph that a flat tuple describes."""
    graph = Graph(dialect, name)
    graph.metadata, graph.source, graph.is_reverse = metadata, source, is_reverse
    blocks = {0: graph.block}
    nodes: list[Node] = []
    count = 1 + sum(len(row[5]) for row in rows)
    ordinary = [Node(row[0]) for row in rows[2 * count:]]
    for node, row in zip(ordinary, rows[2 * count:]):       # outer blocks first
        blocks[row[4]].append(node)
        blocks.update((number, node.add_block()) for number in row[5])
    for number in range(count):
        nodes += blocks[number].param_node, blocks[number].return_node
    nodes += ordinary
    values: list[Value] = []
    for node, row in zip(nodes, rows):
        node.attributes, node.tail, node.line = row[1:4]
        values += [node.add_output(*each) for each in row[7]]
    values += [Value(name, type, Node("")) for name, type in outside]
    for node, row in zip(nodes, rows):
        node.inputs = tuple([values[number] for number in row[6]])      # uses are computed when first read
    if entries is not None:
        layout = entries[0]()
        for slot, content in entries[1].items():
            if isinstance(content, list):
                content = {None if key is None else (nodes if key[0] else values)[key[1]]: value for key, value in content}
            setattr(layout, slot, content)
        graph.layout = layout
    return graph


copyreg.pickle(Graph, flat)
