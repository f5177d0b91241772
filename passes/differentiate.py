"""Reverse differentiation of graphs."""
from __future__ import annotations

from irtool.autodiff.captures import mixed_dtypes
from irtool.autodiff.inlined_forks import inline_forks
from irtool.autodiff.own_parts import aliases_with_own_parts
from irtool.autodiff.refusals import refuse_omitted
from irtool.autodiff.reverse import differentiate_graph, holds_tensors
from irtool.autodiff.unread_writes import without_writes
from irtool.autodiff.versions import in_versions
from irtool.interpret import located
from irtool.ir.constants import is_none
from irtool.ir.edits import clone_graph
from irtool.ir.effects import node_may_write
from irtool.ir.errors import PassError
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.pair import DEFINED, GradientPair, pairs
from irtool.ir.schema import schema_of
from irtool.ir.source import Diagnostic
from irtool.ir.types import NONE, OptionalType, TensorType, TupleType, TypeVar
from irtool.passes import BY_NAME, Values


def differentiate(module: Module, requires_grad: tuple[str, ...] = ("types",), wrt: tuple[int, ...] | None = None, form: str = "",
                  save: str = "", origins: bool = False) -> bool:
    """Replace each graph that is in no gradient pair by a pair: its forward graph f, and df, the graph of its gradients.

    `requires-grad=1,0` says per input whether it needs a gradient; `all`: every tensor does; `types` (the default): those whose type does
    not say `requires_grad=0`. `wrt=0,2` names these inputs by position instead. `form=2018` or `modern`, by default that of the file's
    dialect. `save=least` captures as few bytes as possible: df recomputes elementwise results. An operator without a gradient is an error
    at its line; so is one that has none for an argument that needs it, such as the weight of nll_loss, except for an input of the graph of
    which neither options nor types say that it needs one: that input has no gradient then. Where types state several floating-point
    dtypes, those of inputs perhaps, df converts gradients back to the dtype of an operand that was promoted. Values that df needs of each
    round of a loop are saved in lists, which are outputs of f. Nodes of df have scope and source comment of the node of f that they come
    from; with `origins` the comment also names that node.

    before:
        graph(%x : Tensor, %y : Tensor):
          %2 : Tensor = aten::exp(%x)
          return (%2)

    after:
        # graph f: f_real_outputs=1
        graph(%x : Tensor, %y : Tensor):
          %2 : Tensor = aten::exp(%x)
          return (%2)
        # graph df: of=f df_input_vjps=[0] df_input_captured_inputs=[] df_input_captured_outputs=[0] df_output_vjps=[0]
        graph(%0 : Tensor, %1 : Tensor):
          %2 : Tensor = prim::GradOf[name="aten::exp"](%0)
            block0():
              %3 : Tensor = aten::mul(%0, %1)
              -> (%3)
          return (%2)
    """
    BY_NAME["differentiate"].check(form=form, save=save, requires_grad=requires_grad)
    paired = {graph for pair in pairs(module) for graph in (pair.f, pair.df)}
    alone = [(graph, name) for graph, name in zip(module.graphs, module.names(), strict=True) if graph not in paired]
    taken = {graph.name for graph in module.graphs if graph.name}
    changed = False
    for graph, name in alone:
        names = _names(graph, name)
        for new in names:
            if new in taken and new != graph.name:
                raise PassError(f"differentiate: graph '{name}' would give '{new}', and there is a graph of that name")
        taken.update(names)
        flags, by_types = _flags(graph, name, requires_grad, wrt)
        if not any(flags):
            hint = "; differentiate{requires-grad=all} differentiates all the same" if by_types else ""
            message = f"no input of graph '{name}' requires a gradient{hint}"
            module.warnings.append(Diagnostic("warning", message, graph.source, code="W0107"))
        inline_forks(graph)
        _check(graph)
        is_modern = form == "modern" or not form and not graph.dialect.attribute_arguments
        graph = _without_views_written(module, graph)
        graph.metadata = {key: value for key, value in graph.metadata.items() if key != DEFINED}
        gradient = differentiate_graph(graph, flags, is_modern, by_types, mixed_dtypes(graph), save == "least", origins,
                                       by_types)
        graph.name, gradient.df.name = names
        graph.layout = None
        GradientPair.link(graph, gradient.df, gradient.real_outputs, gradient.lists)
        _insert_after(module, graph, gradient.df)
        changed = True
    return changed


def _are_flags(words: tuple[str, ...]) -> bool:
    """Do the words of `requires-grad` say of each input whether it needs a gradient?"""
    return words in (("all",), ("types",)) or all(word in ("0", "1") for word in words)


differentiate.values = {        # type: ignore[attr-defined]
    "requires_grad": Values("all, types, or 0 and 1 for each input", "all", _are_flags, ("all", "types")),
    "wrt": Values("positions of inputs from 0 on", "0,2", lambda places: min(places) >= 0),
    "form": Values.one_of("2018", "modern"),
    "save": Values.one_of("least"),
}


def _without_views_written(module: Module, graph: Graph) -> Graph:
    """The graph, or a functionalised copy in its place, if it writes through views, in branches or in loops.

    A graph that writes into its inputs is not replaced.
    """
    if not any(map(node_may_write, graph.walk())) or any(map(aliases_with_own_parts(graph).is_written, graph.inputs)):
        return graph
    copy = clone_graph(graph)
    without_writes(copy)
    versions = in_versions(copy)
    if versions is copy or any(map(node_may_write, versions.walk())):
        return graph
    module.items[next(i for i, item in enumerate(module.items) if item is graph)] = versions
    return versions


def _check(graph: Graph) -> None:
    """Raises PassError, at the line, for values that the text omits, a result that is declared a tuple and is none, and None in place of a
    tensor or number, which a text may declare (`Tensor = prim::Constant()`)."""
    refuse_omitted(graph, "differentiate")
    for node in graph.walk():
        schema = schema_of(node) if node.kind.startswith("aten::") else None
        if schema is None:
            continue
        if len(node.outputs) == 1 and isinstance(node.output.type, TupleType):
            given = [each.type for each in schema.returns]
            if not given or not isinstance(given[0], TupleType | TypeVar):
                gives = f"a {given[0]}" if given else "nothing"
                raise located(PassError(f"{node.kind} gives {gives}, the text says {node.output.type}"), node)
        for argument, value in zip(schema.arguments, node.inputs) if not node.attributes else ():
            if is_none(value) and value.type.key != NONE.key and not isinstance(argument.type, OptionalType | TypeVar):
                raise located(PassError(f"{node.kind} takes a {argument.type} for '{argument.name}', %{value.name} is None"), node)


def _names(graph: Graph, name: str) -> tuple[str, str]:
    """The names of the pair: f and df; f0 and df0 for an unnamed graph0; N and dN for a graph called N."""
    if graph.name:
        return graph.name, f"d{graph.name}"
    number = name.removeprefix("graph")
    return f"f{number}", f"df{number}"


def _flags(graph: Graph, name: str, requires_grad: tuple[str, ...], wrt: tuple[int, ...] | None) -> tuple[list[bool], bool]:
    """Per input whether it needs a gradient, and whether the types decided that. Raises PassError for a wrong number of flags."""
    tensors = [holds_tensors(value.type) for value in graph.inputs]
    if wrt is not None:
        wrong = [index for index in wrt if not 0 <= index < len(tensors)]
        if wrong:
            raise PassError(f"differentiate: wrt={wrong[0]}, graph '{name}' has {len(tensors)} inputs", code="E0305")
        return [index in wrt for index in range(len(tensors))], False
    if requires_grad == ("all",):
        return tensors, False
    if requires_grad == ("types",):
        flags = [has and not (isinstance(value.type, TensorType) and value.type.requires_grad is False)
                 for has, value in zip(tensors, graph.inputs, strict=True)]
        return flags, True
    if len(requires_grad) != len(tensors):
        raise PassError(f"differentiate: requires-grad has {len(requires_grad)} flags, graph '{name}' has {len(tensors)} inputs",
                        code="E0305")
    return [word == "1" for word in requires_grad], False


def _insert_after(module: Module, graph: Graph, df: Graph) -> None:
    """Insert df after `graph`."""
    module.items.insert(next(i for i, item in enumerate(module.items) if item is graph) + 1, df)
