"""Passes over the methods of an archive, or over graphs that become one: methods become a module of graphs, which is rewritten and
saved."""
from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irtool.archives.flat_methods import flattened, frozen
from irtool.archives.method_source import Method, Path
from irtool.archives.module_writer import Held, of_graphs, write_methods
from irtool.ir.defaults import following_names
from irtool.ir.errors import PassError
from irtool.ir.module import Module
from irtool.torchscript.library import Library

if TYPE_CHECKING:
    from irtool.archives.script_module import ScriptModule


class Rewriting:
    """Graphs that passes may rewrite, and the module or graphs that they were made of."""

    def __init__(self, module: Module, methods: Mapping[str, Method], attributes: dict[Path, Held], name: str,
                 library: Library | None = None) -> None:
        self._library = library
        self.module = module
        self._methods = methods
        self._attributes = attributes
        self._name = name
        self._counts = {key: (len(method.graph.inputs), len(method.graph.outputs)) for key, method in methods.items()}
        self._inputs = {graph.name: [value.name for value in graph.inputs] for graph in module.graphs} if methods else {}

    @classmethod
    def of_archive(cls, archive: ScriptModule, method: str, freezes: bool) -> Rewriting:
        """The methods of a module, with attributes as inputs after the arguments. freezes: attributes that no method writes are
        constants, and only `forward` and `method` remain. Raises RunError, UnsupportedError."""
        flat = frozen(archive, [method]) if freezes else flattened(archive)
        return cls(Module([each.graph for each in flat.methods], archive._program.archive.container.name),
                   {each.name: each for each in flat.methods}, flat.attributes, flat.name, flat.library)

    @classmethod
    def of_graphs(cls, module: Module) -> Rewriting:
        """Graphs without attributes."""
        return cls(module, {}, {}, module.graphs[0].name if module.graphs else "")

    def state(self) -> dict[str, list[Any]]:
        """Name of a method -> the values of the attributes that its last inputs are."""
        return {name: [self._attributes[path].value for path in method.reads] for name, method in self._methods.items()}

    def archive(self) -> bytes:
        """The archive of the graphs as they are now. Raises PassError if a pass changed the inputs or outputs of a method."""
        self._name_inputs()
        if any(method.reads or method.writes for method in self._methods.values()):
            methods = [self._method(graph.name, index) for index, graph in enumerate(self.module.graphs)]
        else:
            methods = of_graphs(self.module if len(self.module.graphs) > 1 else self.module.graphs[0])
        file = io.BytesIO()
        write_methods(file, methods, self._attributes, self._name or "Graph", self._library)
        return file.getvalue()

    def _name_inputs(self) -> None:
        """Give inputs that a pass has numbered their names again, by which callers know the arguments of methods."""
        for graph in self.module.graphs:
            known = self._inputs.get(graph.name, [])
            named = [pair for pair in zip(graph.inputs, known, strict=False) if not pair[1].isdecimal()]
            if len(known) == len(graph.inputs) and {value.name for value in graph.values()}.isdisjoint(name for _, name in named):
                with following_names(graph):
                    for value, name in named:
                        value.name = name

    def _method(self, name: str, index: int) -> Method:
        graph = self.module.graphs[index]
        method = self._methods.get(name)
        if method is None or (len(graph.inputs), len(graph.outputs)) != self._counts[name]:
            raise PassError(f"the passes changed what '{name}' takes or gives, while it reads attributes of the module; "
                            "with `freeze` as the first pass these are constants", code="E0404")
        return method._replace(graph=graph)
