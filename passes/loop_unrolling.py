"""Loop unrolling."""
from __future__ import annotations

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.edits import clone_node, replace_node
from irtool.ir.effects import LOOP_KINDS
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.remarks import count, missed
from irtool.ir.structure_kinds import PROFILE_KINDS
from irtool.ir.verify_types import flows

FACTOR = 8
"""The number of rounds of a loop of unknown length that become one."""
MAX_BODY = 32
"""The largest body, in nodes, of a loop that is unrolled."""
MAX_ROUNDS = 64
"""A loop that is known to run fewer rounds is unrolled completely."""
MAX_NODES = 20_000
"""No loop is unrolled to more nodes than this."""


def loop_unrolling(graph: Graph, whole: bool = False) -> bool:
    """Unroll counted loops with small bodies: completely if the number of rounds is known and small, else eight rounds at a time.

    The remaining rounds run in a second loop. `whole` unrolls only completely. Then `dce` runs.

    before:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : bool = prim::Constant[value=1]()
          %3 : Tensor = prim::Loop(%1, %2, %x)
            block0(%i : int, %4 : Tensor):
              %5 : Tensor = aten::mul(%4, %x)
              -> (%2, %5)
          return (%3)

    after:
        graph(%x : Tensor):
          %6 : Tensor = aten::mul(%x, %x)
          %7 : Tensor = aten::mul(%6, %x)
          return (%7)
    """
    return unroll_all(graph, False, whole)


loop_unrolling.repeats = "the loop over the remaining rounds can be unrolled again"      # type: ignore[attr-defined]


def unroll_all(graph: Graph, constant_only: bool, whole: bool = False) -> bool:
    """Both forms of the pass. constant_only: loops whose length is a constant, whatever their bodies; whole: only completely."""
    changed = _unroll_block(graph, graph.block, constant_only, whole)
    if changed:
        remove_dead_nodes(graph)
    return changed


def _unroll_block(graph: Graph, block: Block, constant_only: bool, whole: bool) -> bool:
    changed = False
    for node in list(block):
        for inner in node.blocks:
            changed = _unroll_block(graph, inner, constant_only, whole) or changed
        if not counts_rounds(node):
            if node.kind in LOOP_KINDS:
                missed(graph, node, "not unrolled", "not the number of rounds alone ends it")
            continue
        rounds = constant(node.inputs[0])
        fits = rounds.__class__ is int if constant_only else size_of(node.blocks[0], MAX_BODY + 1) <= MAX_BODY
        if fits and (not whole or short(rounds) is not None) and total_size(node.blocks[0]) * (short(rounds) or FACTOR) <= MAX_NODES:
            unroll(graph, node)
            changed = True
        else:
            missed(graph, node, "not unrolled", f"its body has more than {MAX_BODY} nodes" if not fits and not constant_only else
                   f"the number of rounds is unknown, or {MAX_ROUNDS} or more" if not fits or whole and short(rounds) is None else
                   f"it would become more than {MAX_NODES} nodes")
    return changed


def counts_rounds(node: Node) -> bool:
    """Is a node a loop that only the number of rounds ends?"""
    return node.kind in LOOP_KINDS and len(node.blocks) == 1 and len(node.inputs) == len(node.outputs) + 2 \
        and constant(node.inputs[1]) is True and constant(node.blocks[0].outputs[0]) is True


def short(rounds: object) -> int | None:
    """The number of rounds if it is known and small; else None."""
    return max(rounds, 0) if isinstance(rounds, int) and not isinstance(rounds, bool) and rounds < MAX_ROUNDS else None


def size_of(block: Block, limit: int) -> int:
    """The number of nodes of a block that compute something, inner blocks included, each of which counts one more; at most `limit`."""
    number = 0
    for node in block:
        for inner in node.blocks:
            number += size_of(inner, limit - number)
        number += node.kind not in PROFILE_KINDS
        if number >= limit:
            return limit
    return number + 1


def total_size(block: Block) -> int:
    """The number of nodes of a block, inner blocks included."""
    return 1 + sum(1 for _ in block.walk())


def unroll(graph: Graph, loop: Node) -> None:
    """Unroll one loop."""
    count("loops unrolled")
    build = Builder(graph)
    body = loop.blocks[0]
    if body.inputs[0].has_uses:
        count_outside(build, loop)
    rounds = short(constant(loop.inputs[0]))
    if rounds is not None:
        values = list(loop.inputs[2:])
        for _ in range(rounds):
            values = copy_round(graph, body, values, loop)
        replace_node(loop, values)
        return
    rest = clone_node(loop, {}, None, graph).insert_after(loop)
    for index, (output, other) in enumerate(zip(loop.outputs, rest.outputs, strict=True)):
        output.replace_all_uses_with(other)
        rest.replace_input(index + 2, output)
    unrolled = Node(loop.kind, loop.inputs)
    unrolled.tail = loop.tail
    unrolled.insert_before(loop)
    inner = unrolled.add_block()
    for value in body.inputs:
        inner.add_input(graph.fresh_id(), value.type)
    values = list(inner.inputs[1:])
    condition = body.outputs[0]
    for _ in range(FACTOR):
        values = copy_round(graph, body, values, inner.return_node)
    inner.set_outputs((condition if not body.contains(condition.node) else clone_node(condition.node, {}, inner, graph).output, *values))
    for value, carried in zip(loop.outputs, inner.inputs[1:], strict=True):     # a loop of Tensor may give Tensor?, but takes none
        unrolled.add_output(graph.fresh_id(), value.type if flows(value.type, carried.type) else carried.type)
    length = loop.inputs[0]
    replace_node(loop, unrolled.outputs)
    build.before(unrolled)
    eights = build.call("aten::__round_to_zero_floordiv", length, FACTOR, type=types.INT)
    unrolled.replace_input(0, eights)
    done = build.call("aten::mul", eights, FACTOR, type=types.INT)
    rest.replace_input(0, build.call("aten::sub", length, done, type=types.INT))


def copy_round(graph: Graph, body: Block, values: list[Value], before: Node) -> list[Value]:
    """Copy a body's nodes in front of a node; returns the next carried values."""
    mapping = dict(zip(body.inputs[1:], values, strict=True))
    for node in body:
        clone_node(node, mapping, None, graph).insert_before(before)
    return [mapping.get(value, value) for value in body.outputs[1:]]


def count_outside(build: Builder, loop: Node) -> None:
    """Carry the number of the round as a loop-carried value, so that the second loop continues to count."""
    graph, body = build.graph, loop.blocks[0]
    start = build.before(loop).constant(0, types.INT)
    loop.set_inputs((*loop.inputs[:2], start, *loop.inputs[2:]))
    loop.outputs = (loop.add_output(graph.fresh_id(), types.INT), *loop.outputs[:-1])
    counter = body.add_input(graph.fresh_id(), types.INT)
    carried = body.inputs[:-1]
    body.param_node.outputs = (carried[0], counter, *carried[1:])
    carried[0].replace_all_uses_with(counter)
    following = build.at_end(body).call("aten::add", counter, 1, type=types.INT)
    body.set_outputs((body.outputs[0], following, *body.outputs[1:]))


