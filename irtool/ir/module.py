"""The content of a file: graphs in order, the free text between them, metadata per graph."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.ir.displayed import Displayed
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, counted
from irtool.ir.source import Diagnostic


class Module(Displayed):
    """An ordered sequence of free text (`str`) and `Graph`s; `str(module)` prints it all back."""

    __slots__ = ("items", "filename", "warnings")

    def __init__(self, items: Iterable[str | Graph] = (), filename: str = "<string>") -> None:
        self.items: list[str | Graph] = list(items)
        self.filename = filename
        self.warnings: list[Diagnostic] = []
        """Warnings of the parser and of passes, for the user."""

    @property
    def graphs(self) -> list[Graph]:
        """The graphs in order."""
        return [item for item in self.items if isinstance(item, Graph)]

    def names(self) -> list[str]:
        """A name per graph: the graph's own; else `graph` for a sole graph, `graph0`, `graph1`, ... for several."""
        graphs = self.graphs
        if len(graphs) == 1:
            return [graphs[0].name or "graph"]
        return [graph.name or f"graph{i}" for i, graph in enumerate(graphs)]

    def graph(self, name: str | None = None) -> Graph:
        """The graph called `name`, or the sole graph. Raises Error, which names the choices."""
        graphs = [item for item in self.items if isinstance(item, Graph)]
        if name is None and len(graphs) == 1:
            return graphs[0]
        names = self.names()
        if name is None:
            raise Error(f"{self.filename}: expected one graph, found {len(graphs)}"
                        + (f" ({', '.join(names)}); choose one by name" if graphs else ""), code="E0115")
        if name not in names:
            raise Error(f"{self.filename}: no graph named '{name}', expected one of: {', '.join(names) or '(none)'}", code="E0115")
        return graphs[names.index(name)]

    def __str__(self) -> str:
        from irtool.text.printer import module_text

        return module_text(self)

    def __repr__(self) -> str:
        return f"<Module {self.filename}: {counted(len(self.graphs), 'graph')}>"
