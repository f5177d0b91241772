"""Running a graph on the tape: node by node, with Variables for tensors.

A node with a gradient graph runs as a `Differentiable`; any other node that a gradient flows through is differentiated when it first runs.
Lists, tuples, dicts and instances contain Variables; nodes that only construct or unpack them run on the Variables.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.autodiff.formula_graphs import has_gradient
from irtool.autodiff.in_place import stop_writing
from irtool.autodiff.reach import holds_tensors
from irtool.autodiff.versions import takes_a_view
from irtool.execute.differentiable import Differentiable, Versions, detached, needs_gradient, on_tape
from irtool.execute.tape import Refusal, Variable, edge_of
from irtool.execute.views import Family, is_same_tensor, variables
from irtool.interpret import walk
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.dialect import Dialect
from irtool.ir.edits import clone_node
from irtool.ir.effects import OPERAND_ITSELF, STATISTICS, node_may_write
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import qualified, schema_of
from irtool.ir.structure_kinds import MOVERS
from irtool.ir.types import Type, TypeVar
from irtool.ops.checks import OVERLAP, overlaps, repeats
from irtool.ops.node_calls import call_node
from irtool.ops.overload import refuse_parts, write_into
from irtool.ops.size_facts import CONJUGATES, HIDDEN_VIEWS
from irtool.ops.structure import handler_of

Step = Callable[[Sequence[Any], "Versions | None"], list[Any]]
"""Runs a node on operands that may be Variables."""
MakeStep = Callable[[Node, tuple[bool, ...], bool], Step]
"""Differentiates one node with respect to the operands whose flag is set; the last argument: as the operator that does not write.

Raises UnsupportedError.
"""


class Recording:
    """One run of a plan's graph on the tape."""

    __slots__ = ("known", "make", "versions")

    def __init__(self, known: dict[Node, Differentiable], make: MakeStep, writes: bool) -> None:
        self.known = known
        self.make = make
        self.versions = Versions() if writes else None

    def run(self, graph: Graph, values: list[Any]) -> list[Any]:
        """The graph's outputs, with Variables for tensors; `values` may contain Variables."""
        return walk(graph, self.noted([on_tape(value, None, None, self.versions) for value in values]), self.call, closed=self.known)

    def call(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Run a node on the tape."""
        known = self.known.get(node)
        if known is not None:
            return self.noted(known(operands, self.versions), operands)
        if moves_values(node):
            return call_node(node, operands)
        needed = any(map(needs_gradient, operands))
        if node.kind[:1] == "^":
            return self.refused(node, operands) if needed else self.plain(node, operands)
        if self.versions is not None and node_may_write(node):
            return self.write(node, operands) if needed else self.overwrite(node, operands)
        if not needed or not is_differentiable(node):
            return self.plain(node, operands)
        step = self.make(node, tuple([needs_gradient(each) for each in operands]), False)
        results = step(operands, self.versions)
        if self.versions is not None and node.kind in OPERAND_ITSELF and is_same_tensor(results[0].data, operands[0].data):
            return operands[:1]         # not a view of it: what takes another shape later is both
        return self.of_one_memory(node, results, operands)

    def plain(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """Run a node that no gradient flows through."""
        results = call_node(node, [detached(value) for value in operands])
        results_on_tape = [on_tape(value, None, None, self.versions) for value in results]
        return self.of_one_memory(node, results_on_tape, operands) if is_differentiable(node) else self.noted(results_on_tape)

    def refused(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """Run a Python operator, whose gradient is unknown: asking for it later raises an error."""
        results = call_node(node, [detached(value) for value in operands])
        edges = [edge_of(each) for each in variables(operands)]
        error = UnsupportedError(f"the gradient of {node.kind} is not known: it is a Python operator", code="E0501")
        function = Refusal(edges, len(results), error)
        return self.noted([on_tape(value, function, place, self.versions) for place, value in enumerate(results)], operands)

    # -- writes
    def write(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Run a node that writes into an operand and that gradients flow through: compute the new value, then write it."""
        flags = tuple([needs_gradient(each) for each in operands])
        written = written_by(node)
        schema = schema_of(node)
        if schema is not None and any(argument.keyword_only and argument.alias is not None for argument in schema.arguments):
            raise RunError(f"{qualified(node.kind).partition('::')[2]}(): functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
        if 0 not in written:            # running statistics
            self.announce([operands[place] for place in written])
            return self.noted(self.make(node, flags, False)(operands, self.versions), operands)
        target = operands[0]
        family = target.family if isinstance(target, Variable) else None
        if family is None:
            raise UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet", code="E0501")
        if not takes_a_view(node) and (overlaps(target.data) or repeats(target.data)):
            return self.overlapping(node, operands, family)
        if not takes_a_view(node):
            refuse_parts(qualified(node.kind), target.data, [detached(value) for value in operands[1:]])
        operands_before = operands
        if not takes_a_view(node):      # gradients may need the overwritten value
            operands_before = [Variable(target.data.copy(), target.function, target.slot), *operands[1:]]
        (result,) = self.make(node, flags, True)(operands_before, self.versions)
        if takes_a_view(node):
            target.data, target.function, target.slot = result.data, result.function, result.slot
            return [target] * len(node.outputs)
        assert schema is not None       # else no operator computes the result without writing
        self.announce([target])
        write_into(target.data, result.data, schema)
        family.written(target, result, node.kind)
        return [target] * len(node.outputs)

    def overlapping(self, node: Node, operands: list[Any], family: Family) -> Sequence[Any]:
        """Write into a tensor whose elements share memory (an expanded one); as in torch, asking for the gradient is an error."""
        self.announce(operands[:1])
        call_node(node, [detached(value) for value in operands])
        family.refused(Refusal([edge_of(each) for each in variables(operands)], 1, RunError(OVERLAP)))
        return operands[:1] * len(node.outputs)

    def overwrite(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Run a node that writes into an operand and that no gradient flows through."""
        self.announce([operands[place] for place in written_by(node)])
        results = call_node(node, [detached(value) for value in operands])
        back = {id(value.data): value for value in operands if isinstance(value, Variable)}
        return [back[id(result)] if id(result) in back else self.noted([on_tape(result, None, None, self.versions)], operands)[0]
                for result in results]

    def announce(self, written: Sequence[Any]) -> None:
        """Tell the holders of saved values that the memory of these tensors is about to be written into."""
        for each in variables(written):
            if each.version is not None:
                each.version.written()

    def of_one_memory(self, node: Node, results: list[Any], operands: Sequence[Any]) -> list[Any]:
        """The results of an operator, noted; a conjugated view counts as one in the memory of its operand."""
        if self.versions is not None and node.kind in CONJUGATES:
            for each in variables(results):
                each.data = call_node(node, [detached(value) for value in operands])[0]     # a plan's is no view
                each.version = self.versions.join(each.data, operands[0].data)
        return self.noted(results, () if node.kind in HIDDEN_VIEWS else operands)

    def noted(self, values: list[Any], sources: Sequence[Any] = ()) -> list[Any]:
        """The values; if the graph writes, note which of `sources` they are views of."""
        if self.versions is not None:
            for value in variables(values):
                if value.version is None:
                    value.version = self.versions.of(value.data)
                if value.family is None:
                    families = [each.family for each in variables(sources) if each.version is value.version and each.family is not None]
                    (families[0] if families else Family(value)).join(value)
        return values


# -- facts


def moves_values(node: Node) -> bool:
    """Does a node only construct, unpack or forward values?"""
    if handler_of(node.kind) is not None:
        return node.kind in MOVERS
    schema = schema_of(node)
    return schema is not None and bool(schema.arguments) and any(isinstance(leaf, TypeVar) for leaf in leaves(schema.arguments[0].type))


def leaves(type: Type) -> list[Type]:
    """The leaf types of a type, which are no lists, tuples or dicts."""
    return [leaf for element in type.elements for leaf in leaves(element)] if type.elements else [type]


def is_differentiable(node: Node) -> bool:
    """Has a node a gradient? A node without a schema counts as differentiable: differentiating it reports the error."""
    if node.kind in ("aten::detach", "prim::AnyDefined"):
        return False
    schema = schema_of(node)
    if schema is None:
        return True
    return has_gradient(schema) is not False and (not schema.returns or any(holds_tensors(result.type) for result in schema.returns))


def written_by(node: Node) -> list[int]:
    """Positions of the operands that a node writes into, by its schema; all operands if it has no schema."""
    schema = schema_of(node)
    if schema is None:
        return list(range(len(node.inputs)))
    names = ("running_mean", "running_var") if qualified(node.kind) in STATISTICS else ()
    return [place for place, argument in enumerate(schema.arguments[:len(node.inputs)])
            if argument.name in names or argument.alias is not None and argument.alias.is_write]


def functional(node: Node) -> Node:
    """The same operator without the write: `aten::add` for `aten::add_`. Raises UnsupportedError where there is none."""
    copy = clone_node(node, {}, None)
    if not copy.outputs:
        copy.add_output("0", node.inputs[0].type)
    if not node.kind.endswith("_") or node.kind.endswith("__") or len(copy.outputs) > 1 or not stop_writing(copy):
        raise UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet", code="E0501")
    return copy


def alone(node: Node, dialect: Dialect) -> tuple[Graph, list[int]]:
    """A graph of a node alone, whose inputs are the operands of the node, and the positions of those operands; constants are copied."""
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
                mapping[value] = graph.block.add_input(value.name, value.type)
    copy = clone_node(node, mapping, graph.block, graph)
    graph.block.set_outputs(copy.outputs)
    return graph, inputs
