"""Writes into lists and tensors that nobody has read yet: the lists and tensors are made as they are after the write."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.analysis.alias import Aliases
from irtool.analysis.gradients_off import is_off
from irtool.analysis.memory_orders import MemoryOrders
from irtool.autodiff.in_place import containers_late, is_rewritable, replace_writes, replaced
from irtool.ir.constants import constant
from irtool.ir.effects import FRESH, IF_KINDS, category_of, has_side_effects
from irtool.ir.graph import PARAM, Block, Graph, Node, Value


def without_writes(graph: Graph, wanted: Iterable[Node] | None = None) -> None:
    """Replace `relu_(x)` by `relu(x)` where no reader can tell, in inner blocks too. wanted: the nodes to replace (None: all).

    What writes where gradients are off stays: for differentiation the tensor is then still what it was, which a new value would not be.
    """
    nodes = rewritable_nodes(graph) if wanted is None else [node for node in wanted if is_rewritable(node)]
    if nodes:
        containers_late(graph.block)
        replace_writes(graph, nodes)
        left = [node for node in nodes if node.owner_block.owning_node is not None and is_rewritable(node)]
        MutationRemover(graph, left).run()      # what a loop carries to its next round


def rewritable_nodes(graph: Graph) -> list[Node]:
    """The nodes that write into a tensor where gradients are on, and have a form that does not write."""
    nodes = [node for node in graph.walk() if is_rewritable(node)]
    runs_off = is_off(graph) if nodes else None
    return [node for node in nodes if runs_off is None or runs_off(node) is False]


class MutationRemover:
    """Walks over blocks; `owned` are values in memory of their own, results of replaced writes among them."""

    def __init__(self, graph: Graph, writers: Iterable[Node], lists: bool = False) -> None:
        self.graph = graph
        self.orders = MemoryOrders(graph)
        self.writers = set(writers)
        self.lists = lists
        self.changed = False
        self.owned: dict[Value, bool] = {}
        self.read: set[Value] = set()
        self.elements: dict[Value, list[Value]] = {}
        self._aliases: Aliases | None = None
        self._was: dict[Value, Value] = {}
        """Result of a write replaced since the aliases were computed -> what it stands for there."""

    def run(self) -> bool:
        """Look at all blocks. Returns whether the graph changed."""
        if self.writers or self.lists:
            self.sweep(self.graph.block)
        for target, elements in self.elements.items():
            target.node.set_inputs(elements)
        return self.changed

    def sweep(self, block: Block) -> None:
        """Replace the changes of what the block, or one inside it, makes, as far as nobody reads it before the change."""
        read = self.read
        for node in list(block):
            target = node.inputs[0] if node.inputs else None
            is_own = target is not None and target.node.owner is block and target not in read
            if is_own and target is not None and (self.in_list(node, target) or self.in_tensor(node, target)):
                read.update(node.inputs[1:])
                continue
            for inner in node.blocks:
                self.sweep(inner)
            read.update(node.inputs)
        read.update(block.outputs)

    def in_list(self, node: Node, target: Value) -> bool:
        """Put what the node changes in a new list into the list. Returns whether it did."""
        if not self.lists or target.node.kind != "prim::ListConstruct":
            return False
        elements = self.elements.get(target) or list(target.node.inputs)
        if not change(node, elements):
            return False
        self.elements[target] = elements
        target.node.move_before(node)
        for value in node.outputs:
            value.replace_all_uses_with(target)
        node.remove()
        self.changed = True
        return True

    def in_tensor(self, node: Node, target: Value) -> bool:
        """Make an in-place operator on a new tensor the operator that does not write. Returns whether it did."""
        if node not in self.writers or not self.is_owned(target):
            return False
        readers = [use for use in [*target.uses, *node.output.uses] if use[0] is not node]
        result = replaced(self.orders, node, target)
        for user, slot in readers:
            user.replace_input(slot, result)
        self.owned[result] = self.changed = True
        self._was[result] = self._was.get(target, target)
        return True

    def is_owned(self, value: Value) -> bool:
        """Is the value, which nobody has read yet, the only name of its memory?"""
        if value not in self.owned:
            node = value.node
            if node.kind in IF_KINDS:
                self.owned[value] = all(
                    each.use_count == 1 and each.node.owner is block and not each.node.blocks and self.is_owned(each)
                    for block in node.blocks for each in (block.outputs[value.index],))
            else:
                self.owned[value] = node.kind != PARAM and not node.blocks and not has_side_effects(node) and self.is_new(value)
        return self.owned[value]

    def is_new(self, value: Value) -> bool:
        """Does no operand of its node, and no tensor in a list that is one, share memory with the value?"""
        if category_of(value.node) == FRESH:
            return True     # whatever container holds it later
        if self._aliases is None:
            self._aliases = Aliases(self.graph)
            self._was.clear()
        # what may have come out of a container is one of its elements
        operands = [each for operand in value.node.inputs for each in (operand, *self._aliases.elements(operand))]
        return not self._aliases.is_wild(value) and not any(map(self._aliases.sharing((value,)),
                                                                [self._was.get(each, each) for each in operands]))


def change(node: Node, elements: list[Value]) -> bool:
    """Do to a list of values what a node does to the list of them. Returns whether the node says what that is."""
    if node.kind == "aten::append" and len(node.inputs) == 2:
        elements.append(node.inputs[1])
        return True
    index = constant(node.inputs[1]) if node.kind in ("aten::insert", "aten::_set_item") and len(node.inputs) == 3 else None
    if not isinstance(index, int):
        return False
    if node.kind == "aten::insert":
        elements.insert(index, node.inputs[2])
        return True
    if not -len(elements) <= index < len(elements):
        return False
    elements[index] = node.inputs[2]
    return True
