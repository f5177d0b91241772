"""Value numbering in one forward sweep: of nodes that compute the same, the first one stays, and users of the others read its results."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irtool.ir.remarks import count
from irtool.ir.types import EnumType

if TYPE_CHECKING:
    from irtool.ir.attribute import Attribute
    from irtool.ir.graph import Block, Graph, Node, Value

Key = tuple[object, ...]


def attribute_keys(node: Node) -> tuple[object, ...]:
    """A key of the attributes: equal keys mean equal values. It has the exact text (`0.0` is not `-0.0`), or the array where the text
    does not show all."""
    return tuple([(name, _attribute_key(attribute)) for name, attribute in node.attributes.items()])


def _attribute_key(attribute: Attribute) -> object:
    return attribute.text if attribute.is_shown else _Hidden(attribute)


class _Hidden:
    """Compares attributes by the array behind `<Tensor>` or rounded numbers. An attribute without an array equals nothing: equal lines
    of one text share attributes (Note [shared attributes]), and may still stand for two tensors."""

    __slots__ = ("attribute",)

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Hidden):
            return False
        value = self.attribute.value
        return getattr(value, "data", None) is not None and value == other.attribute.value

    def __hash__(self) -> int:
        value = self.attribute.value
        return id(value) if getattr(value, "data", None) is None else hash(value)


def node_key(node: Node) -> Key:
    """The key of a node: nodes with equal keys (kind, operands, attributes, result types) compute the same."""
    outputs, attributes = node.outputs, node.attributes
    if len(outputs) != 1:
        return (node.kind, node.inputs, tuple([value.type for value in outputs]), attribute_keys(node))
    type = outputs[0].type
    if not attributes:
        return (node.kind, node.inputs, type)
    if isinstance(type, EnumType):
        return (node,)      # each constant of an enumeration is an object of its own, as in torch, which `is` can distinguish
    if len(attributes) == 1:
        ((name, attribute),) = attributes.items()
        return (node.kind, node.inputs, type, name, _attribute_key(attribute))
    return (node.kind, node.inputs, type, attribute_keys(node))


def merge_equal_nodes(graph: Graph, is_candidate: Callable[[str], bool], can_merge: Callable[[Node, Node], bool]) -> bool:
    """Remove every node that repeats an earlier one of its block or an outer one. Returns whether any was removed.

    `is_candidate` is called once per kind, `can_merge(earlier, dropped)` for each pair of equal nodes. Takes linear time. Uses are updated
    if they have been computed.
    """
    sweep = _Sweep(graph.has_uses_built, is_candidate, can_merge)
    sweep.block(graph.block)
    count("equal nodes merged", sweep.dropped)
    return bool(sweep.replaced) or sweep.dropped > 0


class _Sweep:
    __slots__ = ("has_uses", "is_candidate", "can_merge", "candidates", "replaced", "table", "dropped")

    def __init__(self, has_uses: bool, is_candidate: Callable[[str], bool], can_merge: Callable[[Node, Node], bool]) -> None:
        self.has_uses = has_uses
        self.is_candidate = is_candidate
        self.can_merge = can_merge
        self.candidates: dict[str, bool] = {}
        self.replaced: dict[Value, Value] = {}
        self.table: dict[Key, Node] = {}
        self.dropped = 0

    def block(self, block: Block) -> None:
        table, replaced, candidates = self.table, self.replaced, self.candidates
        nothing_replaced = replaced.keys().isdisjoint
        entered: list[Key] = []
        end = block.return_node
        node = end.next
        while True:     # see Note [warm loops] in irtool/analysis/liveness.py
            if node is end:
                break
            after = node.next
            if replaced and not nothing_replaced(node.inputs):
                self.reroute(node)
            if node.blocks:
                for inner in node.blocks:
                    self.block(inner)
                node = after
                continue
            kind = node.kind
            is_candidate = candidates.get(kind)
            if is_candidate is None:
                is_candidate = candidates[kind] = self.is_candidate(kind)
            if is_candidate:
                outputs = node.outputs
                if not node.attributes and len(outputs) == 1:       # node_key written out, since this loop dominates the time of cse
                    key: Key = (kind, node.inputs, outputs[0].type)
                else:
                    key = node_key(node)
                earlier = table.setdefault(key, node)
                if earlier is node:
                    entered.append(key)
                elif self.can_merge(earlier, node):
                    self.drop(node, earlier)
            node = after
        if replaced and not nothing_replaced(end.inputs):
            self.reroute(end)
        if block.owning_node is not None:
            for key in entered:
                del table[key]

    def reroute(self, node: Node) -> None:
        replaced = self.replaced
        values = tuple([replaced.get(value, value) for value in node.inputs])
        if self.has_uses:
            node.set_inputs(values)
        else:
            node.inputs = values

    def drop(self, node: Node, earlier: Node) -> None:
        self.dropped += 1
        outputs = node.outputs
        if len(outputs) == 1:
            self.replaced[outputs[0]] = earlier.outputs[0]
        else:
            self.replaced.update(zip(outputs, earlier.outputs, strict=True))
        if self.has_uses:
            node.remove()       # its users come later in the sweep, which lets them read the earlier results
        else:
            node.prev.next = node.next
            node.next.prev = node.prev
            node.owner = None
        node.outputs = ()       # see Node.destroy
