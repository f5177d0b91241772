"""Lists read by index instead of popped."""
from __future__ import annotations

from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.effects import LOOP_KINDS, node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.structure_kinds import LIST_MAKERS
from irtool.ir.types import ListType, TensorType

GET, COPY, PART = "aten::__getitem__", "aten::list", "aten::slice"
READERS = frozenset((GET, COPY, PART, "aten::len", "prim::ListUnpack"))


def lists_by_index(graph: Graph) -> bool:
    """Read a list by index if each round of a loop takes the last item off it, and drop copies of lists that never change.

    Differentiation reverts appends by such loops. An index that is out of range in the new graph was so in the old one.

    before:
        graph(%l : Tensor[],
              %n : int):
          %last : int = prim::Constant[value=-1]()
          %first : int = prim::Constant[value=0]()
          %one : int = prim::Constant[value=1]()
          %more : bool = prim::Constant[value=1]()
          %x : Tensor[] = aten::list(%l)
          %0 : Tensor = aten::__getitem__(%l, %first)
          %s : Tensor, %r : Tensor[] = prim::Loop(%n, %more, %0, %x)
            block0(%i : int, %a : Tensor, %held : Tensor[]):
              %item : Tensor = aten::__getitem__(%held, %last)
              %rest : Tensor[] = aten::slice(%held, %first, %last, %one)
              %sum : Tensor = aten::add(%a, %item, %one)
              -> (%more, %sum, %rest)
          return (%s)

    after:
        graph(%l : Tensor[],
              %n : int):
          %last : int = prim::Constant[value=-1]()
          %first : int = prim::Constant[value=0]()
          %one : int = prim::Constant[value=1]()
          %more : bool = prim::Constant[value=1]()
          %x : Tensor[] = aten::list(%l)
          %0 : Tensor = aten::__getitem__(%l, %first)
          %s : Tensor = prim::Loop(%n, %more, %0)
            block0(%i : int, %a : Tensor):
              %1 : int = prim::Constant[value=-1]()
              %2 : int = aten::sub(%1, %i)
              %item : Tensor = aten::__getitem__(%x, %2)
              %sum : Tensor = aten::add(%a, %item, %one)
              -> (%more, %sum)
          return (%s)
    """
    nodes = list(graph.walk())
    changed = False
    for node in nodes:
        if node.kind in LOOP_KINDS:
            for slot in reversed(range(2, len(node.inputs))):
                changed = read_by_index(graph, node, slot) or changed
    for node in nodes:
        if node.kind == COPY and node.inputs and is_made(node.inputs[0]) and is_only_read(node.inputs[0]) and is_only_read(node.output):
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
            changed = True
    return changed


def is_part_of_popped(node: Node) -> bool:
    """Is a node the slice of a list without its last item?"""
    return node.kind == PART and len(node.inputs) == 4 and isinstance(node.inputs[0].type, ListType) \
        and constant(node.inputs[1]) in (None, 0) and constant(node.inputs[2]) == -1 and constant(node.inputs[3]) == 1


def read_by_index(graph: Graph, loop: Node, slot: int) -> bool:
    """If each round takes the last item off a carried list, read the item by its index, and carry no list; returns whether it did."""
    start, block = loop.inputs[slot], loop.blocks[0]
    if not isinstance(start.type, ListType) or len(block.outputs) != len(loop.outputs) + 1:
        return False
    held, rest = block.inputs[slot - 1], block.outputs[slot - 1]
    if not is_part_of_popped(rest.node) or rest.node.inputs[0] is not held or rest.node.owner_block is not block or rest.use_count != 1 \
            or loop.outputs[slot - 2].has_uses or not is_made(start) or not is_only_read(start, loop):
        return False
    items = [user for user, _ in held.uses if user is not rest.node]
    if not all(user.kind == GET and len(user.inputs) == 2 and constant(user.inputs[1]) == -1 for user in items):
        return False
    if items:
        place = Builder(graph).at_start(block).call("aten::sub", -1, block.inputs[0])
        for item in items:
            item.set_inputs([start, place])
    block.remove_output(slot - 1)
    rest.node.destroy()
    block.remove_input(slot - 1)
    loop.remove_output(slot - 2)
    loop.remove_input(slot)
    return True


def is_made(value: Value) -> bool:
    """Is a value a list without aliases, since its node constructs it?"""
    return value.node.kind in LIST_MAKERS


def is_only_read(value: Value, loop: Node | None = None) -> bool:
    """Do all users only read a list, without making aliases? loop: a user that may take it as an initial value."""
    return all(user is loop or user.kind in READERS or makes_tensors(user) for user, _ in value.uses)


def makes_tensors(node: Node) -> bool:
    """Does a node return only tensors, and write nothing?"""
    return bool(node.outputs) and not (node.blocks or node_may_write(node)) \
        and all(isinstance(each.type, TensorType) for each in node.outputs)

