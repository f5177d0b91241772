"""The verifier: a table of invariants. It collects all violations, each with the node and the reason.

In today's dialects, nodes must fit the schemas of their operators; texts of older dialects may contain kinds that no longer exist, and less
precise types. Kinds outside `aten::` and `prim::` are not checked.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from irtool.ir.attribute import Attribute
from irtool.ir.custom import BACKWARD, CUSTOM_VJP, custom_parts
from irtool.ir.effects import IF_KINDS
from irtool.ir.errors import Error, UnsupportedError, VerifyError
from irtool.ir.graph import PARAM, RETURN, Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.schema import is_tensor_like
from irtool.ir.source import Diagnostic
from irtool.ir.structure_kinds import FORK_KINDS
from irtool.ir.types import Type
from irtool.ir.verify_nodes import check_forms, check_operators, check_prims
from irtool.ir.verify_types import STRICT_DIALECTS, Found, check_calls, check_types, flows, is_called

if TYPE_CHECKING:
    from irtool.ir.source import SourceFile

MAX_FOUND = 1000
LINKS, SCOPES, CLASSES = "E0201", "E0202", "E0213"


def verify(subject: Module | Graph) -> None:
    """Raise VerifyError with all violations in a graph, or in the graphs of a module; do nothing if there are none."""
    if not isinstance(subject, Module | Graph):
        raise Error(f"verify: expected a Module or a Graph, got {type(subject).__name__}")
    graphs = [subject] if isinstance(subject, Graph) else subject.graphs
    diagnostics = [diagnostic for graph in graphs for diagnostic in violations(graph)]
    if diagnostics:
        raise VerifyError(diagnostics=diagnostics)


def explanation(graph: Graph) -> Error | None:
    """The reason why a graph cannot run: it is invalid, or has loops of 2018-02; None if it can."""
    diagnostics = violations(graph)
    return VerifyError(diagnostics=diagnostics) if diagnostics else oldest_loop(graph)


def oldest_loop(graph: Graph) -> Error | None:
    """An error at a loop of 2018-02, which nothing but the printer understands; None if there is none."""
    for node in graph.walk():
        if node.kind == "Loop" and node.blocks and len(node.blocks[0].inputs) == len(node.inputs):
            message = "a Loop whose block takes its condition, as texts of 2018-02 have it, is not supported: it can be printed, not run"
            return UnsupportedError(diagnostics=[diagnostic_at(graph.source, node, message)])
    return None


@contextmanager
def explained(graph: Graph) -> Iterator[None]:
    """Inside, an exception that an invalid graph caused (graphs are not verified before they are used) becomes its explanation."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = None if isinstance(error, Error) else explanation(graph)
        if why is None:
            raise
        raise why from error


def violations(graph: Graph) -> list[Diagnostic]:
    """All violations in a graph, in the order of the table; if links are broken, or parts are of other classes, only those."""
    out: list[Diagnostic] = []
    try:
        for code, check in INVARIANTS:
            for node, message, *precise in check(graph):
                out.append(diagnostic_at(graph.source, node, message, precise[0] if precise else code))
                if len(out) >= MAX_FOUND:
                    return out
            if out and code in (LINKS, SCOPES):
                break
    except (LookupError, TypeError, ValueError, AttributeError):     # a check met what is no type, or no attribute
        found = [Diagnostic("error", message, graph.source, node.line, code=CLASSES) for node, message in _wrong_classes(graph)]
        if not found:
            raise
        return found
    return out


def _wrong_classes(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Kinds that are no texts, attributes that are no Attribute, types that are no Type: what Python lets a pass assign."""
    for node in (graph.block.param_node, *graph.walk()):
        kind: Any = node.kind
        attributes: Mapping[str, Any] = node.attributes
        if not isinstance(kind, str):
            yield node, f"the kind of a node is {kind!r}; expected a text"
        for name, attribute in attributes.items():
            if not isinstance(attribute, Attribute):
                yield node, f"the attribute '{name}' of a node is {attribute!r}; expected an irtool.ir.attribute.Attribute"
        for value in (*node.outputs, *[each for block in node.blocks for each in block.inputs]):
            type: Any = value.type
            if not isinstance(type, Type):
                yield node, f"the type of %{value.name} is {type!r}; expected an irtool.ir.types.Type, as parse_type makes it"


def diagnostic_at(source: SourceFile | None, node: Node | None, message: str, code: str = "") -> Diagnostic:
    """An error about a node. Its place is the node's kind in its line, if these are known."""
    line = node.line if node is not None else 0
    if node is None or source is None or not line:
        return Diagnostic("error", message, source, line, code=code)
    word = "return" if node.kind == RETURN else node.kind
    text = source.line(line)
    at = text.find(" = " + word)
    at = at + 3 if at >= 0 else text.find(word)
    if at < 0:
        return Diagnostic("error", message, source, line, code=code)
    if code == SCOPES:        # at the operand, not at the operator
        operand = message.partition(" reads ")[2].partition(", which ")[0]
        place = next((i for i in range(at, len(text)) if text.startswith(operand, i) and text[i + len(operand):][:1] in ",) "), at)
        at, word = (place, operand) if place > at else (at, word)
    return Diagnostic("error", message, source, line, at + 1, at + 1 + len(word), code=code)


def _show(node: Node) -> str:
    if node.kind in (PARAM, RETURN):
        return "the inputs" if node.kind == PARAM else "the results"
    return f"%{node.outputs[0].name} = {node.kind}" if node.outputs else node.kind


# ---------------------------------------------------------------- structure
def _check_links(graph: Graph) -> Iterator[Found]:
    """Blocks are circular lists whose nodes know their neighbours, their block and their results."""
    seen: set[Node] = set()
    blocks: list[tuple[Block, Node | None]] = [(graph.block, None)]
    while blocks:
        block, owner = blocks.pop()
        if block.owning_node is not owner or block.graph is not graph:
            yield owner, f"a block of {_show(owner) if owner else 'the graph'} does not know its owner"
        if block.param_node.kind != PARAM or block.return_node.kind != RETURN:
            yield owner, "a block without its hidden nodes"
        for hidden in (block.param_node, block.return_node):
            if hidden.owner is not block:
                yield owner, f"{_show(hidden)} are in another block"
        yield from _check_results(block.param_node)
        end, node = block.return_node, block.return_node.next
        while node is not end:
            if node in seen:
                yield node, f"{_show(node)} is in the graph twice"
                return
            seen.add(node)
            if node.owner is not block:
                yield node, f"{_show(node)} does not know its block"
            if node.next.prev is not node or node.prev.next is not node:
                yield node, f"{_show(node)} and its neighbours are not linked both ways"
                return
            yield from _check_results(node)
            blocks.extend((inner, node) for inner in node.blocks)
            node = node.next


def _check_results(node: Node) -> Iterator[Found]:
    for value in node.outputs:
        if value.node is not node:
            yield node, f"%{value.name} does not know that {_show(node)} defines it"


def _check_scopes(graph: Graph) -> Iterator[Found]:
    """Every operand is defined above, in the same block or one around it (or in lines that a comment says were omitted)."""
    return _check_scope(graph, graph.block, set())


def _check_scope(graph: Graph, block: Block, defined: set[Value]) -> Iterator[Found]:
    entered: list[Value] = list(block.inputs)
    defined.update(block.inputs)
    for node in block:
        for value in node.inputs:
            if value not in defined and value.node.kind != "prim::Omitted":
                yield node, _undefined(graph, node, value)
        for inner in node.blocks:
            yield from _check_scope(graph, inner, defined)
        defined.update(node.outputs)
        entered.extend(node.outputs)
    for value in block.outputs:
        if value not in defined and value.node.kind != "prim::Omitted":
            yield block.return_node, _undefined(graph, block.return_node, value)
    defined.difference_update(entered)


def _undefined(graph: Graph, node: Node, value: Value) -> str:
    where = value.node.graph
    if where is None:
        reason = "which no node of the graph defines"
    elif where is not graph:
        reason = "which belongs to another graph"
    elif value.node.owner is node.owner:
        reason = "which is defined below"
    else:
        reason = "which is defined in a block that does not enclose it"
    reads = "read" if node.kind == RETURN else "reads"
    return f"{_show(node)} {reads} %{value.name}, {reason}"


def _check_uses(graph: Graph) -> Iterator[Found]:
    """If uses have been computed, they are exactly the operands that read a value."""
    if not graph.has_uses_built:
        return
    expected: dict[Value, set[tuple[Node, int]]] = {value: set() for value in graph.values()}
    for block in graph.walk_blocks():
        for node in (*block, block.return_node):
            for slot, value in enumerate(node.inputs):
                expected.setdefault(value, set()).add((node, slot))
    for value, uses in expected.items():
        if value.node.kind == "prim::Omitted":
            continue        # a node that is in no block has no uses
        have = set(value._use_map())
        for user, slot in sorted(uses - have, key=lambda use: use[1]):
            yield user, f"operand {slot} of {_show(user)} is missing from the uses of %{value.name}"
        for user, slot in sorted(have - uses, key=lambda use: use[1]):
            yield value.node, f"%{value.name} lists a use by {_show(user)} (operand {slot}) that is not there"


def _check_names(graph: Graph) -> Iterator[Found]:
    """No two values share a name; no name is empty."""
    owner: dict[str, Node] = {}
    for value in graph.values():
        if not value.name:
            if value.node.kind == "prim::Constant" and graph.dialect.literal_operands:
                continue        # a literal among the operands
            yield value.node, f"{_show(value.node)} defines a value without a name"
        elif value.name in owner:
            yield value.node, f"the name %{value.name} is used twice"
        else:
            owner[value.name] = value.node


# ---------------------------------------------------------------- control flow
def _check_if(graph: Graph) -> Iterator[Found]:
    """`prim::If`: one condition, and two blocks without inputs whose results are those of the node."""
    for node in graph.walk():
        if node.kind not in IF_KINDS:
            continue
        if len(node.inputs) != 1:
            yield node, f"{node.kind} takes one operand, the condition, found {len(node.inputs)}"
        elif not _is_condition(node.inputs[0].type):
            yield node, f"the condition of {node.kind} is a bool, found %{node.inputs[0].name} : {node.inputs[0].type}"
        if len(node.blocks) != 2:
            yield node, f"{node.kind} has two blocks, found {len(node.blocks)}"
        for i, block in enumerate(node.blocks):
            if block.inputs:
                yield node, f"block{i} of {node.kind} has no inputs, found {len(block.inputs)}"
            yield from _check_flow(graph, node, f"block{i} of {node.kind} gives", block.outputs, node.outputs)


def _check_loop(graph: Graph) -> Iterator[Found]:
    """`prim::Loop`: trip count, condition, carried values; one block, whose inputs are the number of the round and carried values, and
    whose results are the condition and carried values."""
    for node in graph.walk():
        if node.kind == "Loop" and len(node.blocks) == 1:       # in 2018 without a trip count, and later with types that say nothing
            body = node.blocks[0]
            counts = {len(node.inputs) - 2, len(body.inputs) - 1, len(body.outputs) - 1, len(node.outputs)}
            takes_condition = len(body.inputs) == len(node.inputs) and len(node.outputs) == len(body.outputs) - 1 \
                and len(node.inputs) - len(node.outputs) in (1, 2)     # as texts of 2018-02 have it
            if len(counts) > 1 and not takes_condition:
                yield node, (f"Loop carries {len(node.inputs) - 2} values, but its block takes {len(body.inputs) - 1} and gives "
                             f"{len(body.outputs) - 1}, and it gives {len(node.outputs)}")
        if node.kind != "prim::Loop":
            continue
        if len(node.blocks) != 1:
            yield node, f"{node.kind} has one block, found {len(node.blocks)}"
            continue
        body = node.blocks[0]
        if len(node.inputs) < 2:
            yield node, f"{node.kind} takes a trip count and a condition, found {len(node.inputs)} operands"
            continue
        if not _is_number(node.inputs[0].type):
            yield node, f"the trip count of {node.kind} is an int, found %{node.inputs[0].name} : {node.inputs[0].type}"
        if not _is_condition(node.inputs[1].type):
            yield node, f"the condition of {node.kind} is a bool, found %{node.inputs[1].name} : {node.inputs[1].type}"
        if not body.inputs:
            yield node, f"block0 of {node.kind} takes the iteration number, found no inputs"
        if not body.outputs:
            yield node, f"block0 of {node.kind} gives the next condition, found no results"
        elif not _is_condition(body.outputs[0].type):
            yield node, f"block0 of {node.kind} gives a bool first, found %{body.outputs[0].name} : {body.outputs[0].type}"
        yield from _check_flow(graph, node, f"{node.kind} carries", node.inputs[2:], body.inputs[1:])
        # the results of a round are the inputs of the next one
        yield from dict.fromkeys(problem for wanted in (node.outputs, body.inputs[1:])
                                 for problem in _check_flow(graph, node, f"block0 of {node.kind} gives", body.outputs[1:], wanted))


def _check_regions(graph: Graph) -> Iterator[Found]:
    """`prim::GradOf`: a block without inputs whose results are those of the node."""
    for node in graph.walk():
        if node.kind != "prim::GradOf":
            continue
        if len(node.blocks) != 1:
            yield node, f"{node.kind} has one block, found {len(node.blocks)}"
            continue
        (block,) = node.blocks
        if block.inputs:
            yield node, f"block0 of {node.kind} has no inputs, found {len(block.inputs)}"
        yield from _check_flow(graph, node, f"block0 of {node.kind} gives", block.outputs, node.outputs)


def _check_flow(graph: Graph, node: Node, what: str, values: tuple[Value, ...], wanted: tuple[Value, ...]) -> Iterator[Found]:
    if len(values) != len(wanted):
        yield node, f"{what} {len(values)} values, expected {len(wanted)}"
        return
    if graph.dialect.name not in STRICT_DIALECTS:
        return
    for mine, yours in zip(values, wanted, strict=True):
        if mine.type is not yours.type and not flows(mine.type, yours.type):
            yield node, f"{what} %{mine.name} : {mine.type} for %{yours.name} : {yours.type}"


def _is_condition(type: Type) -> bool:
    return type.key in ("bool", "int", "Any") or is_tensor_like(type)


def _is_number(type: Type) -> bool:
    return type.key in ("int", "Scalar", "Any", "None") or is_tensor_like(type)


def _check_subgraphs(graph: Graph) -> Iterator[Found]:
    """A node that owns a graph has as many operands as the graph has inputs, and the graph is valid by itself."""
    for node in graph.walk():
        for name, inner in node.graphs.items() if node.attributes else ():
            called = is_called(node, name)
            if len(inner.inputs) != len(node.inputs) and called:
                yield node, f"the graph of {_show(node)} takes {len(inner.inputs)} values, it is given {len(node.inputs)}"
            elif len(inner.outputs) < len(node.outputs) and called and node.kind not in (*FORK_KINDS, CUSTOM_VJP):
                yield node, f"the graph of {_show(node)} gives {len(inner.outputs)} values, it has {len(node.outputs)} results"
            elif name == BACKWARD and node.kind == CUSTOM_VJP and custom_parts(node) is None:
                yield node, f"the graphs of {_show(node)} do not take and give what it takes and gives"
            for diagnostic in violations(inner):
                yield node, f"in the graph of {_show(node)}: {diagnostic.message}", diagnostic.code


INVARIANTS: tuple[tuple[str, Callable[[Graph], Iterator[Found]]], ...] = (
    (LINKS, _check_links),            # links come first, since the others walk the graph
    (SCOPES, _check_scopes),
    ("E0203", _check_uses),
    ("E0204", _check_names),
    ("E0205", _check_if),
    ("E0206", _check_loop),
    ("E0207", _check_regions),
    ("E0210", _check_subgraphs),
    ("E0208", check_prims),
    ("E0208", check_forms),
    ("E0209", check_calls),
    ("E0209", check_types),
    ("E0212", check_operators),
)
"""Every invariant, with the code of its diagnostics (some invariants state codes themselves)."""
