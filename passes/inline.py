"""Inlining of calls."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.interpret import located
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.edits import clone_graph, inline_graph, replace_node
from irtool.ir.effects import GROUP_KINDS
from irtool.ir.errors import PassError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.packed import owns_gradient
from irtool.ir.structure_kinds import FORK_KINDS
from irtool.ir.verify_types import STRICT_DIALECTS, flows
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library
from irtool.torchscript.library_calls import library_body


def inline(module: Module, groups: bool = False) -> bool:
    """Replace calls by the nodes of the called graph; `groups` also inlines fusion groups and differentiable subgraphs.

    A call names a graph of the file by a constant (`prim::CallFunction`) or as an operator (`^g`). Calls of torch.nn.functional are
    replaced by irtool's bodies, and in a graph of an archive, calls of functions and methods by those of the archive's code. Recursive
    calls stay, and so do calls through an interface, which several classes implement, and nodes with a gradient of their own
    (`pack-gradient`), which would be lost.

    before:
        # graph main:
        graph(%x : Tensor):
          %1 : Function = prim::Constant[name="double"]()
          %2 : Tensor = prim::CallFunction(%1, %x)
          return (%2)
        # graph double:
        graph(%y : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : Tensor = aten::mul(%y, %1)
          return (%2)

    after:
        # graph main:
        graph(%x : Tensor):
          %3 : int = prim::Constant[value=2]()
          %4 : Tensor = aten::mul(%x, %3)
          return (%4)
        # graph double:
        graph(%y : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : Tensor = aten::mul(%y, %1)
          return (%2)
    """
    inliner = Inliner(module, groups)
    for graph in module.graphs:
        inliner.inline_into(graph)
    return inliner.changed


def check_types(node: Node, arguments: Sequence[Value], callee: Graph) -> None:
    """Raises PassError, at the call's line, if types of arguments or results differ between the call and the called graph."""
    if callee.dialect.name not in STRICT_DIALECTS:      # types in older texts are incomplete
        return
    for what, values, declared in ("takes", arguments, callee.inputs), ("gives", node.outputs, callee.outputs):
        for value, formal in zip(values, declared):
            if not (flows(value.type, formal.type) if what == "takes" else flows(formal.type, value.type)):
                message = f"graph '{callee.name}' {what} %{formal.name} : {formal.type}, the call has %{value.name} : {value.type}"
                raise located(PassError(message), node)


class Inliner:
    """Inlines calls in callees first, so that a callee is copied in its final form."""

    def __init__(self, module: Module, groups: bool) -> None:
        self.by_name = {graph.name: graph for graph in module.graphs if graph.name}
        self.groups = groups
        self.done: set[Graph] = set()
        self.active: list[Graph] = []
        self.copies: dict[Graph, Graph] = {}
        """Graph of an archive's code, which other modules may share -> the copy that is inlined."""
        self.changed = False

    def inline_into(self, graph: Graph) -> None:
        """Inline every call in `graph`."""
        if graph in self.done:
            return
        self.done.add(graph)
        self.active.append(graph)
        changed = False
        for node in list(graph.walk()):
            if node.owner is None:
                continue
            if node.kind in FORK_KINDS and node.subgraph is not None:
                self.inline_into(node.subgraph)
            called = self.called(node)
            if called is None:
                continue
            callee, arguments = called
            if callee in self.active:       # recursion
                continue
            self.inline_into(callee)
            if len(arguments) != len(callee.inputs) or len(node.outputs) > len(callee.outputs):
                continue
            check_types(node, arguments, callee)
            function = node.inputs[0].node if node.kind == "prim::CallFunction" else None
            replace_node(node, inline_graph(callee, node, arguments)[:len(node.outputs)])
            if function is not None and function.owner is not None and not function.output.has_uses:
                function.destroy()
            changed = True
        self.active.pop()
        if changed:
            self.changed = True

    def called(self, node: Node) -> tuple[Graph, tuple[Value, ...]] | None:
        """The graph that a node calls, and the arguments; None: no call that can be inlined."""
        if node.kind == "prim::CallFunction" and node.inputs:
            source = node.inputs[0].node
            name = source.attributes.get("name") if source.kind in CONSTANT_KINDS else None
            callee = self.by_name.get(str(name.value)) or library_body(node) or self.of_archive(node) if name is not None else None
            return (callee, node.inputs[1:]) if callee is not None else None
        if node.kind == "prim::CallMethod" and node.inputs:
            callee = self.of_archive(node)
            return (callee, node.inputs) if callee is not None else None
        if node.kind.startswith("^"):
            scalars = node.attributes.get("scalars")
            callee = self.by_name.get(node.kind[1:])
            return (callee, node.inputs) if callee is not None and (scalars is None or not scalars.text) else None
        if self.groups and node.kind in GROUP_KINDS and node.subgraph is not None and not owns_gradient(node):
            return node.subgraph, node.inputs
        return None

    def of_archive(self, node: Node) -> Graph | None:
        """A copy of the function or method that a call names, in the archive of the graph; None for graphs of texts, and for calls through
        interfaces."""
        library = getattr(self.active[-1].source, "library", None)
        if not isinstance(library, Library):
            return None
        if node.kind == "prim::CallFunction":
            callee = library.function(str(node.inputs[0].node.attributes["name"].value))
        else:
            name = str(node.attributes["name"].value)
            definition = library.class_called(str(node.inputs[0].type))
            has_method = isinstance(definition, ClassDefinition) and name in definition.methods and not definition.is_interface
            callee = library.method(node.inputs[0].type, name) if has_method else None
        if callee is None:
            return None
        if callee not in self.copies:
            self.copies[callee] = clone_graph(callee)
        return self.copies[callee]
