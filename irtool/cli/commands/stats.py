"""`irtool stats`: counts of nodes, blocks and types in a file's graphs."""
from __future__ import annotations

from collections import Counter

from irtool.cli.command import Arguments, argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.graph import Block, Graph


@command("stats", epilog="""
  irtool stats graph.ir
""")
@argument("file", metavar="FILE", default="-", help="IR text or an archive (-: standard input, the default)")
@option("--json", is_flag=True, help="print a JSON object")
def stats(arguments: Arguments, console: Console) -> int:
    """Per graph: nodes by kind, blocks, depth, inputs and outputs, types."""
    from irtool.cli.source_places import parse_source
    from irtool.ir.graph import counted

    module = parse_source(console.read(arguments.file))
    rows = [counts_of(name, graph) for name, graph in zip(module.names(), module.graphs, strict=True)]
    if arguments.json:
        import json

        console.out(json.dumps({"schema": 1, "graphs": rows}, indent=1) + "\n")
        return 0
    for row in rows:
        nodes, blocks, inputs, outputs, values = (counted(row[f"{word}s"], word)        # type: ignore[arg-type]
                                                  for word in ("node", "block", "input", "output", "value"))
        console.tell(f"{row['name'] or 'graph'}: {nodes}, {blocks}, depth {row['depth']}, {inputs}, {outputs}, {values}, "
                     f"{row['typed']} with complete types\n")
        for heading in ("kinds", "types"):
            counts: dict[str, int] = row[heading]       # type: ignore[assignment]
            width = len(str(max(counts.values(), default=0)))
            console.tell(f"  {heading}\n" + "".join(f"    {count:>{width}}  {name}\n" for name, count in counts.items()))
    return 0


def counts_of(name: str, graph: Graph) -> dict[str, object]:
    """The counts of one graph; kinds and types by frequency."""
    from irtool.ir.types import TensorType

    kinds = Counter(node.kind for node in graph.walk())
    values = list(graph.values())
    types = Counter(value.type.dtype or "Tensor" if isinstance(value.type, TensorType) else str(value.type) for value in values)
    typed = sum(not isinstance(value.type, TensorType) or value.type.shape is not None and None not in value.type.shape for value in values)
    return {"name": name, "nodes": sum(kinds.values()), "blocks": sum(1 for _ in graph.walk_blocks()), "depth": depth_of(graph.block),
            "inputs": len(graph.inputs), "outputs": len(graph.outputs), "values": len(values), "typed": typed,
            "kinds": by_frequency(kinds), "types": by_frequency(types)}


def by_frequency(counts: Counter[str]) -> dict[str, int]:
    """Most frequent first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def depth_of(block: Block) -> int:
    """The deepest nesting of blocks."""
    deepest, queue = 1, [(block, 1)]
    while queue:
        current, depth = queue.pop()
        deepest = max(deepest, depth)
        queue += [(inner, depth + 1) for node in current for inner in node.blocks]
    return deepest
