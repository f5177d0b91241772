"""Gradient formulas of operators as pairs of graphs, compiled on first use.

    formula = formula_of(schema)            # of aten::div.Tensor; None if the operator has no gradient
    formula.graph                           # the whole function: (results..., (closure, context))
    formula.results, formula.context        # values of that graph
    formula.backward                        # the closure's graph: (context, gradients...) -> one gradient per argument

A formula is a Python function in the operator's stanza (`irtool.ops.op`). `irtool.torchscript` compiles its source; it is not executed.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irtool.ir.edits import clone_graph
from irtool.ir.effects import MUTATORS, changes_list, facts_of, updates_statistics
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.schema import Schema, forgets_kinds, schema_of
from irtool.ir.source import Diagnostic, SourceFile
from irtool.ir.types import TensorType


class Formula:
    """A compiled formula. Its graphs are shared: read them, never edit them."""

    __slots__ = ("name", "graph", "results", "context", "backward", "changers", "is_conjugated", "_forward", "_is_composed")

    def __init__(self, name: str, graph: Graph, is_conjugated: bool = False) -> None:
        self.name = name
        self.is_conjugated = is_conjugated
        """Does it multiply by conjugated derivatives, as torch does, and unlike df? (See `irtool.ops.formula.is_conjugated`.)"""
        self.graph = graph
        *results, pair = _made_of(name, graph.outputs[0] if len(graph.outputs) == 1 else None)
        parts = _made_of(name, pair)
        attribute = parts[0].node.attributes.get("Subgraph") if len(parts) == 2 else None
        if not results or any(map(_holds_closure, results)) or attribute is None or parts[0].node.kind != "prim::Closure" \
                or not isinstance(attribute.value, Graph):
            raise Error(f"{name}: its gradient formula does not return (results..., backward)", code="E0509")
        context = parts[1]
        self.results: tuple[Value, ...] = tuple(results)
        self.context: Value = context
        """The tuple of the values that `backward` reads from the function around it."""
        self.backward: Graph = attribute.value
        self.changers: dict[Value, list[Node]] = {}
        """List -> the nodes that change it."""
        for node in graph.walk():
            if node.kind in MUTATORS:
                self.changers.setdefault(node.inputs[0], []).append(node)
        self._forward: tuple[bool, set[Node]] | None = None
        self._is_composed: bool | None = None

    def split(self) -> tuple[Graph, Graph]:
        """Two new graphs: forward, which returns (results..., context), and backward, (context, gradients...) -> gradients."""
        forward = clone_graph(self.graph)
        results = forward.outputs[0].node
        pair = results.inputs[-1].node
        results.set_inputs((*results.inputs[:-1], pair.inputs[1]))
        from irtool.ir import types

        results.output.type = types.tuple_of([value.type for value in results.inputs])
        closure = pair.inputs[0].node
        pair.destroy()
        closure.destroy()
        backward = clone_graph(self.backward)
        backward.source = self.graph.source
        return forward, backward

    def forward(self) -> tuple[bool, set[Node]]:
        """(Do the formula's nodes replace the operator's node in f?, the top-level nodes of the formula's graph that run in f).

        They replace it if results and saved values come from one computation that must not run twice: a random draw, a write, or one node
        that computes both. Otherwise the operator's node stays, and f computes the saved values from its operands and results.
        """
        if self._forward is None:
            saved, results = self.context.node.inputs, frozenset(self.results)
            wanted = self.needed(saved, results)
            replaces = any(map(is_unsteady, self.graph.walk())) \
                or any(not results.isdisjoint(node.outputs) and not results.issuperset(node.outputs) for node in wanted)
            self._forward = replaces, self.needed((*self.results, *saved)) if replaces else wanted
        return self._forward

    def is_composed(self) -> bool:
        """Does the formula save an intermediate tensor that has a gradient?

        Second derivatives would miss the way through that tensor. So the operator is replaced by the operators of which the formula is
        composed, and those are differentiated one by one.
        """
        if self._is_composed is None:
            known = {*self.graph.inputs, *self.results}
            self._is_composed = any(value not in known and isinstance(value.type, TensorType) and _has_gradient(value)
                                    for value in self.context.node.inputs) and self._is_made_of_others()
        return self._is_composed

    def _is_made_of_others(self) -> bool:
        """Does the formula compute the results by other operators, all of which state their gradients?"""
        top = self.needed(self.results)
        nodes = [*top, *[inner for node in top for block in node.blocks for inner in block.walk()]]
        schemas = [schema for node in nodes if (schema := schema_of(node)) is not None]
        return all(has_gradient(schema) is not None and not self.is_of(schema.name) for schema in schemas)

    def is_of(self, name: str) -> bool:
        """Is this the formula of the overload `name`? An operator and its in-place form share a formula."""
        from irtool.ops.formula import formula_of

        function = formula_of(name)
        return function is not None and _compiled.get(function) is self

    def needed(self, values: tuple[Value, ...], computed: frozenset[Value] = frozenset()) -> set[Node]:
        """The top-level nodes of the formula's graph that must run to compute `values`, if the values `computed` are available."""
        nodes: set[Node] = set()
        seen: set[Value] = set(computed)
        stack = list(values)
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            for node in (value.node, *self.changers.get(value, ())):
                node = self._at_top(node)
                if node in nodes or node.kind == "prim::Param":
                    continue
                nodes.add(node)
                stack += node.inputs
                for block in node.blocks:
                    stack += block.outputs
                    for inner in block.walk():
                        stack += inner.inputs
                        for nested in inner.blocks:
                            stack += nested.outputs
        return nodes

    def _at_top(self, node: Node) -> Node:
        """The top-level node that is or contains a node."""
        while node.owner is not self.graph.block:
            owner = node.owner_block.owning_node
            assert owner is not None
            node = owner
        return node


def is_unsteady(node: Node) -> bool:
    """Does a node draw random numbers, or write into a tensor?"""
    if facts_of(node.kind).is_random or updates_statistics(node):
        return True
    schema = schema_of(node)
    return schema is not None and schema.is_mutable and not changes_list(node)


def hands_on_gradients(value: Value) -> bool:
    """Can a gradient go on from a result of an operator to its operands? Not from `save_mean` of `native_batch_norm`, whose formula takes
    the gradient of the first result alone. Raises nothing: what has no formula is refused where it is differentiated."""
    schema = schema_of(value.node) if len(value.node.outputs) > 1 else None
    return schema is None or len(schema.returns) != len(value.node.outputs) or has_gradient(schema) is not True or _has_gradient(value)


def _has_gradient(value: Value) -> bool:
    """Does the formula of a result's node take the gradient of this result?"""
    schema = schema_of(value.node)
    if schema is None:
        return bool(value.node.blocks)
    if has_gradient(schema) is not True:
        return False
    formula = formula_of(schema)
    return formula is not None and value.index < len(formula.backward.inputs) - 1


def _holds_closure(value: Value) -> bool:
    """Is a value a closure, or a tuple that contains one?"""
    return value.node.kind == "prim::Closure" or value.node.kind == "prim::TupleConstruct" and any(map(_holds_closure, value.node.inputs))


def _made_of(name: str, value: Value | None) -> tuple[Value, ...]:
    if value is None or value.node.kind != "prim::TupleConstruct":
        raise Error(f"{name}: its gradient formula does not return (results..., backward)", code="E0509")
    return value.node.inputs


_compiled: dict[Callable[..., Any], Formula] = {}


def formula_of(schema: Schema) -> Formula | None:
    """The formula of an overload; None if the stanza says that the operator has no gradient. Raises UnsupportedError if the formula is
    missing, with the reason if the stanza gives one."""
    from irtool.ops import formula

    function = formula.formula_of(schema.name)
    if function is not None:
        return compiled(function, schema.name)
    if formula.why_no_gradient(schema.name) is not None:
        return None
    reason = formula.why_unsupported(schema.name)
    raise UnsupportedError(f"the gradient of {schema.name} is not supported{f': {reason}' if reason else ' yet'}", code="E0501")


def compiled(function: Callable[..., Any], name: str) -> Formula:
    """A function compiled as a formula. Raises ParseError with the place in the formula's own file."""
    cached = _compiled.get(function)
    if cached is None:
        from irtool.ops.formula import is_conjugated
        from irtool.torchscript.front import compile_function_source

        text, filename, line = source_of(function)
        graph = compile_function_source(text, filename, line, helpers_of(function))
        cached = _compiled[function] = Formula(name, graph, is_conjugated(function))
    return cached


def source_of(function: Callable[..., Any]) -> tuple[str, str, int]:
    """The text of a function, its file and its first line."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return "".join(lines), inspect.getsourcefile(function) or "<formula>", first


def helpers_of(function: Callable[..., Any]) -> dict[str, tuple[str, str, int] | str]:
    """The functions of its module that a formula calls, directly or through others: their sources; of operators of users, the kinds."""
    helpers: dict[str, tuple[str, str, int] | str] = {}
    stack = [function]
    while stack:
        caller = stack.pop()
        for name in _names(caller.__code__):
            called = caller.__globals__.get(name)
            schema = getattr(called, "schema", None)
            if isinstance(schema, Schema):      # an operator of a user
                helpers[name] = schema.kind
            elif name not in helpers and getattr(called, "__code__", None) is not None and called is not function:
                assert callable(called)
                helpers[name] = source_of(called)
                stack.append(called)
    return helpers


def _names(code: Any) -> list[str]:
    """Global names in a function and in those defined in it."""
    return [*code.co_names, *[name for each in code.co_consts if hasattr(each, "co_names") for name in _names(each)]]


_stated: dict[str, bool | None] = forgets_kinds({})


def has_gradient(schema: Schema) -> bool | None:
    """Has an overload a formula? False: its stanza says that it has no gradient; None: the stanza says nothing."""
    name = schema.name
    if name not in _stated:
        from irtool.ops import formula

        _stated[name] = True if formula.formula_of(name) is not None else False if formula.why_no_gradient(name) is not None else None
    return _stated[name]


def has_own_formula(schema: Schema) -> bool:
    """Was the formula written for this overload itself? If not, it is that of the overload of which this one is the in-place form."""
    from irtool.ops import OPS

    op = OPS.get(schema.name)
    return op is not None and schema.name in op.formulas


def closure_pairs(module: Module, source: SourceFile | None = None) -> Module:
    """Of each function that returns `(results..., backward)`, two closed graphs: forward, which returns `(results..., context)`, and
    backward, which takes `(context, gradients...)`. Raises Error for a function that returns something else.

    They are called NAME and NAME.backward; those of an only function forward and backward. Functions without a nested function beside
    such ones are helpers, and left out. source: what they were compiled from, for the place of an error.
    """
    items: list[str | Graph] = []
    formulas = [graph for graph in module.graphs if any(node.kind == "prim::Closure" for node in graph.walk())]
    for graph in formulas or module.graphs:
        name = graph.name or "the function"
        try:
            formula = Formula(name, graph)
        except Error:
            returned = ", ".join(str(value.type) for value in graph.outputs)
            message = f"{name} does not return (results..., backward), the last a nested function, but {returned or 'nothing'}"
            raise Error(message, definition_in(source, graph.name, message), code="E0509") from None
        forward, backward = formula.split()
        forward.name, backward.name = graph.name or "forward", f"{graph.name}.backward" if graph.name else "backward"
        items += ["\n"] * bool(items) + [forward, "\n", backward]
    return Module(items, module.filename)


def definition_in(source: SourceFile | None, name: str, message: str) -> list[Diagnostic]:
    """An error at the definition of a function, of the only one without a name; none if it is not in the source."""
    if source is None:
        return []
    wanted = re.escape(name) if name else r"\w+"
    found = re.search(rf"^\s*def\s+({wanted})\s*\(", source.text, re.M)
    if found is None:
        return []
    line = source.text.count("\n", 0, found.start(1))
    column = found.start(1) - source.text.rfind("\n", 0, found.start(1))
    return [Diagnostic("error", message, source, source.first_line + line, column, column + len(found[1]))]
