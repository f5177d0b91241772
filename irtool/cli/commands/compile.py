"""`irtool compile`: TorchScript source -> IR text. The source is read, never executed."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.options import output_option, types_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


@command("compile", epilog="""
  irtool compile model.py:forward -o model.ir
  irtool compile model.py | irtool opt --passes=cse
""")
@argument("file", metavar="MODEL.py[:FUNCTION]", default="-",
          help="Python source, and after a colon one function of it (-: standard input)")
@option("--literal-constants", is_flag=True, help="let functions read literals defined at the top level of the file (torch refuses)")
@option("--locations/--no-locations", help="add comments with the source line of each node", default=True)
@option("--pair", is_flag=True,
        help="compile each function that returns (results..., backward) to a forward and a backward graph")
@types_option
@output_option
def compile(arguments: Arguments, console: Console) -> int:
    """Compile the functions of a file, or one of them."""
    from irtool.autodiff.formula_graphs import closure_pairs
    from irtool.torchscript import compile_source

    path, name = split_name(arguments.file)
    source = console.read(path)
    module = compile_source(source.text, name, source.name, first_line=source.first_line, literals=arguments.literal_constants)
    if arguments.pair:
        module = closure_pairs(module, source)
    if not arguments.locations:
        for graph in module.graphs:
            drop_locations(graph)
    console.save(arguments.output, str(module), "ir")
    return 0


def split_name(word: str) -> tuple[str, str | None]:
    """`model.py:forward` -> (`model.py`, `forward`); (path, None) for a path without a function."""
    path, colon, name = word.rpartition(":")
    return (path, name) if colon and name.isidentifier() else (word, None)


def drop_locations(graph: object) -> None:
    """Remove the source comments of all nodes, in closures too."""
    from irtool.ir.graph import Graph

    assert isinstance(graph, Graph)
    for node in graph.walk():
        node.tail = ""
        inner = node.attributes.get("Subgraph")
        if inner is not None and isinstance(inner.value, Graph):
            drop_locations(inner.value)
