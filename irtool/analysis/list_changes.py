"""Lists that change after their construction: which nodes change them, and whether they have aliases.

`irtool.autodiff.list_gradients` reverts each change in the gradient of the list, last change first. That is correct only if one value at a
time refers to a list: lists with an alias through which they may be read or changed are refused.
"""
from __future__ import annotations

from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.graph import PARAM, RETURN, Block, Graph, Node, Value
from irtool.ir.structure_kinds import ADD_ITEMS, CONTAINERS, GIVE_CHANGED_LIST, SHARING_KINDS
from irtool.ir.types import ListType


class Changes:
    """The lists of a graph that change. Edits the graph: a result that is the changed list itself is replaced by the list's value."""

    def __init__(self, graph: Graph) -> None:
        self.at: dict[Node, list[Value]] = {}
        """Node -> the lists, from outside its blocks, that it or nodes in its blocks change."""
        self.shared: dict[Value, Node] = {}
        """List that changes and may have an alias -> the node that makes the alias."""
        self._changers: dict[Value, list[Node]] = {}
        self._leader: dict[Value, Value] = {}
        changers = [node for node in graph.walk() if node.kind in MUTATORS and isinstance(node.inputs[0].type, ListType)]
        if not changers:
            return
        for node in changers:
            if node.kind in GIVE_CHANGED_LIST and node.outputs:
                node.outputs[0].replace_all_uses_with(node.inputs[0])
        for node in graph.walk():
            self._follow(node)
        for node in changers:
            self._changers.setdefault(self._find(node.inputs[0]), []).append(node)
            self._note(node.inputs[0], node)
        for value in list(graph.values()):
            if self.is_changed(value):
                self._check(value)

    def is_changed(self, value: Value) -> bool:
        """May a value be a list that a node changes?"""
        return bool(self._changers) and isinstance(value.type, ListType) and self._find(value) in self._changers

    def changes_after(self, value: Value, node: Node) -> bool:
        """May a list change after `node`, in its block or an inner one, has read it?"""
        for changer in self._changers.get(self._find(value), ()) if self._changers else ():
            mine, other = ancestor(node, value.node.owner_block), ancestor(changer, value.node.owner_block)
            if mine is None or other is None:       # the list changes under another name, in another block
                if mine is None or not comes_before(changer, node):
                    return True
            elif mine is other and changer is not node or mine is not other and mine.before_in_block(other):
                return True
        return False

    def _find(self, value: Value) -> Value:
        while (above := self._leader.get(value)) is not None:
            value = above
        return value

    def _join(self, a: Value, b: Value) -> None:
        a, b = self._find(a), self._find(b)
        if a is not b and isinstance(a.type, ListType):
            self._leader[a] = b

    def _follow(self, node: Node) -> None:
        """Join the names that a list has inside and after an `If` or `Loop`."""
        if node.kind in CHOICE_KINDS:
            for block in node.blocks:
                for inner, outer in zip(block.outputs, node.outputs, strict=True):
                    self._join(inner, outer)
        elif node.kind in LOOP_KINDS:
            body = node.blocks[0]
            for values in zip(node.inputs[2:], body.inputs[1:], body.outputs[1:], node.outputs, strict=False):
                for value in values[:3]:
                    self._join(value, values[3])

    def _note(self, value: Value, changer: Node) -> None:
        node: Node | None = changer
        while node is not None:
            values = self.at.setdefault(node, [])
            if value not in values:
                values.append(value)
            if node.owner is value.node.owner:
                break
            node = node.owner_block.owning_node

    def _check(self, value: Value) -> None:
        """Note whether a list that changes may have an alias."""
        if value.node.kind in SHARING_KINDS or value.node.kind == PARAM and value.node.owner_block.owning_node is None:
            self.shared.setdefault(value, self._changers[self._find(value)][0])
        seen: set[Node] = set()
        for user, slot in value.uses:
            if self._shares(value, user, slot) or user in seen and (user.kind == RETURN or user.kind in LOOP_KINDS):
                owner = user.owner_block.owning_node
                self.shared.setdefault(value, owner if user.kind == RETURN and owner is not None else user)
            seen.add(user)

    def _shares(self, value: Value, user: Node, slot: int) -> bool:
        """Does a use make an alias of the list, while the list is still read or changed under the first name?"""
        if user.kind == RETURN:
            owner = user.owner_block.owning_node
            if owner is None or user.owner is value.node.owner:
                return False
            return owner.kind not in CHOICE_KINDS or used_after(value, owner)
        if user.kind in LOOP_KINDS:
            return used_after(value, user) or any(ancestor(each, user.owner_block) is user and each is not user for each, _ in value.uses)
        if user.kind in CONTAINERS and user.kind not in ADD_ITEMS and (slot > 0 or not user.kind.startswith("aten::")):
            return self.changes_after(value, user)
        return user.kind in SHARING_KINDS and user.kind not in ("aten::__getitem__", "aten::pop", "prim::ListUnpack")


def ancestor(node: Node, block: Block) -> Node | None:
    """The node of `block` that is or contains `node`; None if `node` is not in the block."""
    while node.owner is not block:
        above = node.owner_block.owning_node
        if above is None:
            return None
        node = above
    return node


def comes_before(node: Node, other: Node) -> bool:
    """In the innermost block that contains both: is (the node around) `node` before (the node around) `other`?"""
    block: Block | None = node.owner_block
    while block is not None:
        mine, its = ancestor(node, block), ancestor(other, block)
        if mine is not None and its is not None:
            return mine is not its and mine.before_in_block(its)
        above = block.owning_node
        block = above.owner if above is not None else None
    return False


def used_after(value: Value, node: Node) -> bool:
    """Is a value read after a node, or may it be read again since the node is in a loop?"""
    while True:
        for user, _ in value.uses:
            place = ancestor(user, node.owner_block)
            if place is not None and place is not node and (place.kind == RETURN or node.before_in_block(place)):
                return True
        if node.owner is value.node.owner:
            return False
        above = node.owner_block.owning_node
        if above is None or above.kind not in CHOICE_KINDS:
            return True
        node = above
