"""Writes whose operands overlap: `x[1:].add_(x[:-1])`, which torch refuses.

If the graph does not prove that the operands share no memory, passes leave the write alone, and the operator compares the operands in the
run.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.ir.constants import constant, is_constant
from irtool.ir.graph import Node, Value
from irtool.ir.types import ListType, TensorType
from irtool.ops.size_facts import BY_INDEX, read_late


def may_overlap(node: Node, may_alias: Callable[[Value, Value], bool]) -> bool:
    """May another operand of a node share a part of the memory of the first one, into which the node writes?

    may_alias: a function: may two values share memory?
    """
    target, *others = node.inputs
    or_whole = node.kind in BY_INDEX
    return any(isinstance(value.type, TensorType | ListType) and (value is not target or or_whole) and may_alias(target, value)
               and (or_whole or not are_apart(target.node, value.node)) for value in read_late(node.kind, others))


def are_apart(a: Node, b: Node) -> bool:
    """Are two views of one tensor known to be the same view, or to have no common element: rows, or slices one of which ends where the
    other starts?"""
    if a.kind != b.kind or a.kind not in ("aten::select", "aten::slice") or not a.inputs or a.inputs[0] is not b.inputs[0]:
        return False
    if len(a.inputs) < 3 or len(a.inputs) != len(b.inputs) or not is_same(a.inputs[1], b.inputs[1]):
        return False
    if a.kind == "aten::select":
        return True
    if all(map(is_same, a.inputs[2:], b.inputs[2:])):
        return True
    steps = [constant(each.inputs[4]) if len(each.inputs) > 4 and is_constant(each.inputs[4]) else None for each in (a, b)]
    return steps == [1, 1] and (is_before(a.inputs[3], b.inputs[2]) or is_before(b.inputs[3], a.inputs[2]))


def is_same(a: Value, b: Value) -> bool:
    """Are two numbers known to be equal?"""
    return a is b or is_constant(a) and is_constant(b) and constant(a) == constant(b)


def is_before(end: Value, start: Value) -> bool:
    """Is the end of one slice known to be at most the start of another?"""
    if is_same(end, start):
        return not is_constant(end) or constant(end) is not None
    if not (is_constant(end) and is_constant(start)):
        return False
    first, second = constant(end), constant(start)
    return isinstance(first, int) and isinstance(second, int) and first <= second and (first < 0) == (second < 0)
