"""Lists and tensors that are changed before anybody reads them, made as they are then."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.analysis.alias import Aliases
from irtool.ir.constants import constant
from irtool.ir.effects import FRESH, IF_KINDS, category_of, has_side_effects
from irtool.ir.graph import PARAM, Block, Graph, Node, Value
from irtool.ir.remarks import missed, wants_remarks

KEPT_WRITE = "not replaced", "the caller, or what reads the memory by another name, may see the write"
"""The remark on a write that stays."""


def remove_mutation(graph: Graph) -> bool:
    """Where a list or a tensor is changed before anybody reads it, make it as it is then: `relu_(conv(x))` is `relu(conv(x))`.

    That is what a list is told to append, insert or set, and the in-place operators that have a form that does not write.

    before:
        graph(%a : Tensor, %b : int):
          %1 : int[] = prim::ListConstruct(%b)
          %2 : int[] = aten::append(%1, %b)
          %3 : Tensor = aten::exp(%a)
          %4 : Tensor = aten::relu_(%3)
          %5 : Tensor = aten::reshape(%3, %1)
          return (%5)

    after:
        graph(%a : Tensor, %b : int):
          %1 : int[] = prim::ListConstruct(%b, %b)
          %3 : Tensor = aten::exp(%a)
          %4 : Tensor = aten::relu(%3)
          %5 : Tensor = aten::reshape(%4, %1)
          return (%5)
    """
    from irtool.autodiff.in_place import is_rewritable  # it compiles formulas, which naming a pass need not

    changed = MutationRemover(graph, filter(is_rewritable, graph.walk()), lists=True).run()
    if wants_remarks():
        for node in filter(is_rewritable, graph.walk()):
            missed(graph, node, *KEPT_WRITE)
    return changed


class MutationRemover:
    """Walks over blocks; `owned` are values in memory of their own, results of replaced writes among them."""

    def __init__(self, graph: Graph, writers: Iterable[Node], lists: bool = False) -> None:
        self.graph = graph
        self.writers = set(writers)
        self.lists = lists
        self.changed = False
        self.owned: dict[Value, bool] = {}
        self.read: set[Value] = set()
        self.elements: dict[Value, list[Value]] = {}
        self._aliases: Aliases | None = None

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
        from irtool.autodiff.in_place import in_its_dtype, stop_writing

        if node not in self.writers or not self.is_owned(target):
            return False
        stop_writing(node)
        readers = [use for use in [*target.uses, *node.output.uses] if use[0] is not node]
        result = in_its_dtype(self.graph, node, target)
        for user, slot in readers:
            user.replace_input(slot, result)
        self.owned[result] = self.changed = True
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
        """Does no operand of its node share memory with the value?"""
        if category_of(value.node) == FRESH:
            return True     # whatever container holds it later
        if self._aliases is None:
            self._aliases = Aliases(self.graph)
        # what may have come out of a container is one of its elements
        return not self._aliases.is_wild(value) and not any(map(self._aliases.sharing((value,)), value.node.inputs))


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
