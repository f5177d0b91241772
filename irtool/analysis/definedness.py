"""Which gradients are defined: propagates definedness through nodes, branches and loops.

The state of a value is `DEFINED` (of a list or tuple: all elements are), `UNDEFINED`, `UNKNOWN`, or, of a list, `PARTIAL`: the list is
defined, and nothing is known of its elements. A value without a state is defined: nodes in a `GradOf` region compute defined values from
defined ones, with the exceptions below.
"""
from __future__ import annotations

from irtool.ir.constants import constant
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.graph import Block, Node, Value
from irtool.ir.structure_kinds import ASKING_DEFINED, COMBINING_KINDS, ELEMENT_KINDS, UNDEFINED_KINDS
from irtool.ir.types import NONE, ListType, TupleType

DEFINED, UNDEFINED, UNKNOWN, PARTIAL = range(4)
THERE = frozenset((DEFINED, PARTIAL))
"""The states of a value that is certainly not undefined."""

WRITERS = {"aten::append": 1, "aten::_set_item": 2, "aten::insert": 2}
"""Kind that puts an element into a list -> the position of the element among the operands."""


class Definedness:
    """The states of the values of a graph that were visited so far."""

    def __init__(self) -> None:
        self.state: dict[Value, int] = {}
        self.gradients: set[Value] = set()
        """The operands of regions, for which a comparison with None asks whether they are undefined."""

    def of(self, value: Value) -> int:
        """The state of a value."""
        return self.state.get(value, DEFINED)

    def set_all(self, node: Node, state: int) -> None:
        """Set the state of all results of a node."""
        for value in node.outputs:
            self.state[value] = state

    def survey(self, block: Block, is_region: bool) -> None:
        """Compute the states of the values of a block. is_region: it is in a `GradOf`, or came from one."""
        for node in block:
            self.look(node, is_region)

    def look(self, node: Node, is_region: bool) -> None:
        """Compute the states of the results of a node."""
        if node.kind in UNDEFINED_KINDS or node.kind == "prim::Constant" and node.output.type.key == NONE.key:   # a formula may give None
            self.set_all(node, UNDEFINED)
        elif node.kind == "prim::GradOf" and node.blocks:
            self.look_into_region(node)
        elif node.kind == "prim::AutogradAdd" and len(node.inputs) == 2:
            self.set_all(node, self.sum(*node.inputs))
        elif node.kind in IF_KINDS and node.blocks:
            self.look_into_choice(node, is_region)
        elif node.kind in LOOP_KINDS:
            self.look_into_loop(node, is_region)
        elif is_region:
            self.look_at_lists(node)
        else:
            self.set_all(node, UNKNOWN)

    def sum(self, a: Value, b: Value) -> int:
        """The state of an `AutogradAdd`."""
        left, right = self.of(a), self.of(b)
        if UNDEFINED in (left, right):
            return right if left == UNDEFINED else left
        if PARTIAL in (left, right):    # an element is undefined where those of both lists are
            return DEFINED if DEFINED in (left, right) else PARTIAL
        return DEFINED if DEFINED in (left, right) else UNKNOWN

    def look_into_region(self, node: Node) -> None:
        """A `GradOf`."""
        states = {self.of(value) for value in node.inputs}
        if THERE.isdisjoint(states):
            self.set_all(node, UNKNOWN if UNKNOWN in states else UNDEFINED)
            return
        self.gradients.update(node.inputs)
        self.survey(node.blocks[0], True)
        for value, inner in zip(node.outputs, node.blocks[0].outputs, strict=True):
            self.state[value] = self.of(inner)

    def look_into_choice(self, node: Node, is_region: bool) -> None:
        """An `If`: both branches, or the one that is known to be taken."""
        is_there = self.answer(node.inputs[0].node)
        blocks = node.blocks if is_there is None else node.blocks[:1] if is_there else node.blocks[1:]
        for block in blocks:
            self.survey(block, is_region)
        for value, *alternatives in zip(node.outputs, *[block.outputs for block in blocks], strict=True):
            self.state[value] = self.join(alternatives)

    def look_into_loop(self, node: Node, is_region: bool) -> None:
        """A loop: the state of a carried value is one that holds in every round."""
        body = node.blocks[0]
        for value, start in zip(body.inputs[1:], node.inputs[2:], strict=True):
            self.state[value] = self.of(start)
        while True:
            self.survey(body, is_region)
            joined = [self.join((value, following)) for value, following in zip(body.inputs[1:], body.outputs[1:], strict=True)]
            if joined == [self.of(value) for value in body.inputs[1:]]:
                break
            self.state.update(zip(body.inputs[1:], joined, strict=True))
        self.leave_loop(node)

    def leave_loop(self, node: Node) -> None:
        """Set the states of the results of a loop, from those in its body."""
        body = node.blocks[0]
        trips = constant(node.inputs[0])
        runs = isinstance(trips, int) and trips > 0 and constant(node.inputs[1]) is True
        for value, carried, following in zip(node.outputs, body.inputs[1:], body.outputs[1:], strict=True):
            self.state[value] = self.of(following) if runs else self.join((carried, following))

    def look_at_lists(self, node: Node) -> None:
        """An ordinary node in a region: its results are defined, except casts of what may be None, and lists with undefined elements and
        those elements."""
        if node.kind in WRITERS and isinstance(node.inputs[0].type, ListType):
            if self.of(node.inputs[WRITERS[node.kind]]) != DEFINED:
                self.state[node.inputs[0]] = UNKNOWN
        elif node.kind in COMBINING_KINDS and isinstance(node.output.type, ListType | TupleType):
            whole = node.kind.endswith("Construct")
            parts = [value for value in node.inputs if whole or isinstance(value.type, ListType)]
            if any(self.of(value) != DEFINED for value in parts):
                self.set_all(node, UNKNOWN)
        elif node.kind == "prim::unchecked_cast":
            self.set_all(node, self.of(node.inputs[0]))         # None, if it was one, is the undefined gradient
        elif node.kind in ELEMENT_KINDS and self.of(node.inputs[0]) != DEFINED:
            self.set_all(node, UNKNOWN)

    def join(self, values: tuple[Value, ...] | list[Value]) -> int:
        """The state of a value that is one of several."""
        states = {self.of(value) for value in values}
        return states.pop() if len(states) == 1 else UNKNOWN

    def answer(self, asked: Node) -> bool | None:
        """The result of a node that asks whether a gradient is defined; None if it is unknown, or the node asks something else."""
        if asked.kind in ASKING_DEFINED:
            states = {self.of(value) for value in asked.inputs}
            return None if THERE.isdisjoint(states) and UNKNOWN in states else not THERE.isdisjoint(states)
        if asked.kind in ("aten::__is__", "aten::__isnot__"):
            value = next((value for value in asked.inputs if value in self.gradients), None)
            if value is not None and any(constant(other) is None for other in asked.inputs if other is not value):
                state = self.of(value)
                return None if state == UNKNOWN else (state in THERE) is (asked.kind == "aten::__isnot__")
        return None
