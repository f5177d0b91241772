"""Running a graph on the tape: node by node, with Variables for tensors.

Nodes that own a gradient run as they are (`Differentiable`); any other node that a gradient goes through is made one when it is first
met. Lists, tuples and dicts hold Variables; what only moves values about is run on them as they are.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from irtool.execute.differentiable import Differentiable, Versions, detached, needs_gradient, on_tape
from irtool.execute.tape import Leaf, Refusal, Variable, edge_of
from irtool.interpret import walk
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.dialect import Dialect
from irtool.ir.effects import STATISTICS, node_may_write
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.rewrite import clone_node
from irtool.ir.schema import qualified, schema_of
from irtool.ir.types import Type, TypeVar
from irtool.ops.call import call_node
from irtool.ops.structure import handler_of
from irtool.script.gradients import has_gradient
from irtool.script.reach import holds_tensors

Step = Callable[[Sequence[Any], "Versions | None"], list[Any]]
"""Runs a node on operands that may be Variables."""
MakeStep = Callable[[Node, tuple[bool, ...], bool], Step]
"""Makes a node that stands alone differentiable for the operands whose flag is set; last: without the write that it does.

Raises UnsupportedError.
"""


class Recording:
    """One run of a plan's graph on the tape."""

    __slots__ = ("known", "make", "versions", "views")

    def __init__(self, known: dict[Node, Differentiable], make: MakeStep, writes: bool) -> None:
        self.known = known
        self.make = make
        self.versions = Versions() if writes else None
        self.views: dict[int, list[ref[Variable]]] = {}

    def run(self, graph: Graph, values: list[Any]) -> list[Any]:
        """The graph's outputs; `values` may hold Variables, and tensors become some."""
        return walk(graph, [self.noted(on_tape(value, None, None, self.versions)) for value in values], self.call, closed=self.known)

    def call(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """One node."""
        known = self.known.get(node)
        if known is not None:
            return [self.noted(value) for value in known(operands, self.versions)]
        if moves_values(node):
            return call_node(node, operands)
        if node.kind[:1] == "^":
            return self.refused(node, operands) if any(map(needs_gradient, operands)) else self.plain(node, operands)
        if self.versions is not None and node_may_write(node):
            if qualified(node.kind) not in STATISTICS:
                return self.write(node, operands)
            for value in operands:
                if isinstance(value, Variable) and not value.requires_grad:
                    self.bump(value)        # running statistics, which are among these, have no gradient
        if not any(map(needs_gradient, operands)):
            return self.plain(node, operands)
        if not is_differentiable(node):
            return self.plain(node, operands)
        step = self.make(node, tuple(map(needs_gradient, operands)), False)
        return [self.noted(value) for value in step(operands, self.versions)]

    def plain(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """A node that no gradient goes through."""
        results = call_node(node, [detached(value) for value in operands])
        return [self.noted(on_tape(value, None, None, self.versions)) for value in results]

    def refused(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """A Python operator: nobody knows its gradient, which matters only when one is asked for."""
        results = call_node(node, [detached(value) for value in operands])
        edges = [edge_of(each) for value in operands for each in (value if isinstance(value, list | tuple) else [value])]
        error = UnsupportedError(f"the gradient of {node.kind} is not known: it is a Python operator")
        function = Refusal(edges, len(results), error)
        return [self.noted(on_tape(value, function, place, self.versions)) for place, value in enumerate(results)]

    # -- writes
    def write(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """A node that writes into an operand: the new values, then where they come from."""
        if not any(map(needs_gradient, operands)):
            return self.overwrite(node, operands)
        target = operands[0]
        if not isinstance(target, Variable):
            raise UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet")
        if isinstance(target.function, Leaf):
            raise RunError("a leaf Variable that requires grad is being used in an in-place operation.")
        self.refuse_views(node, target)
        (made,) = self.make(node, tuple(map(needs_gradient, operands)), True)(operands, self.versions)
        target.data[...] = made.data
        self.bump(target)
        target.function, target.slot = made.function, made.slot
        return [target] * len(node.outputs)

    def overwrite(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """No gradient goes through it; what was saved of the memory is no longer there."""
        values = [detached(value) for value in operands]
        results = call_node(node, values)
        schema = schema_of(node)
        for position, value in enumerate(operands):
            alias = schema.arguments[position].alias if schema is not None and position < len(schema.arguments) else None
            if isinstance(value, Variable) and (schema is None or alias is not None and alias.is_write):
                self.bump(value)
        back = {id(value.data): value for value in operands if isinstance(value, Variable)}
        return [back[id(result)] if id(result) in back else self.noted(on_tape(result, None, None, self.versions)) for result in results]

    def bump(self, variable: Variable) -> None:
        """Its memory has been written into."""
        if variable.version is not None:
            variable.version.count += 1

    def noted(self, value: Any) -> Any:
        """A value whose memory may be written into is remembered, so that its views are found."""
        if self.versions is not None and isinstance(value, Variable):
            if value.version is None:
                value.version = self.versions.of(value.data)
            self.views.setdefault(id(value.version), []).append(ref(value))
        return value

    def refuse_views(self, node: Node, target: Variable) -> None:
        """Raises UnsupportedError where another tensor shares the memory."""
        others = [found for each in self.views.get(id(target.version), ()) if (found := each()) is not None and found is not target]
        if others:
            raise UnsupportedError(f"the gradient of {node.kind} on a tensor that shares its memory with another is not supported yet")


# -- facts
MOVERS = frozenset("""
prim::ListConstruct prim::TupleConstruct prim::NamedTupleConstruct prim::DictConstruct prim::TupleUnpack prim::TupleIndex prim::TupleSlice
prim::ListUnpack prim::unchecked_cast prim::unchecked_unwrap_optional prim::Uninitialized prim::RaiseException prim::profile
""".split())


def moves_values(node: Node) -> bool:
    """Does it only put values together, take them apart or hand them on, whatever they are?"""
    if handler_of(node.kind) is not None:
        return node.kind in MOVERS
    schema = schema_of(node)
    return schema is not None and bool(schema.arguments) and any(isinstance(leaf, TypeVar) for leaf in leaves(schema.arguments[0].type))


def leaves(type: Type) -> list[Type]:
    """The types it is made of, down to those that are not made of any."""
    return [leaf for element in type.elements for leaf in leaves(element)] if type.elements else [type]


def is_differentiable(node: Node) -> bool:
    """Does a gradient go through it? An operator without a schema is taken to have one: asking for it will say so."""
    if node.kind in ("aten::detach", "prim::AnyDefined"):
        return False
    schema = schema_of(node)
    if schema is None:
        return True
    return has_gradient(schema) is not False and (not schema.returns or any(holds_tensors(result.type) for result in schema.returns))


def functional(node: Node) -> Node:
    """The node without the write: `aten::add` for `aten::add_`. Raises UnsupportedError where there is none."""
    made = clone_node(node, {}, None)
    made.kind = node.kind[:-1]
    if not made.outputs:
        made.add_output("0", node.inputs[0].type)
    if not node.kind.endswith("_") or node.kind.endswith("__") or len(made.outputs) > 1 or schema_of(made) is None:
        raise UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet")
    return made


def alone(node: Node, dialect: Dialect) -> tuple[Graph, list[int]]:
    """A graph of this node only, which takes its operands; constants among them are copied. Also: which operands it takes."""
    graph = Graph(dialect)
    mapping: dict[Value, Value] = {}
    inputs = []
    for position, value in enumerate(node.inputs):
        if value.node.kind in CONSTANT_KINDS:
            if value not in mapping:
                clone_node(value.node, mapping, graph.block, graph)
        else:
            if value not in mapping:
                inputs.append(position)
                mapping[value] = graph.block.add_input(graph.fresh_id(), value.type)
    made = clone_node(node, mapping, graph.block, graph)
    graph.block.set_outputs(made.outputs)
    return graph, inputs
