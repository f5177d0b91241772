"""What reads the memory of a tensor after a node, by any name of it."""
from __future__ import annotations

from collections.abc import Iterator

from irtool.analysis.alias import Aliases
from irtool.autodiff.reach import holds_tensors
from irtool.ir.graph import RETURN, Node, Value
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import ClassType, DictType, ListType, TensorType, TupleType, Type
from irtool.ops.size_facts import OVERLAPPING_VIEWS


def is_alone(aliases: Aliases, value: Value, node: Node) -> bool:
    """After `node`, is the memory of `value` read only through `value` and the results of `node`? False for a value of another block."""
    block = node.owner_block
    if value.node.owner is not block:
        return False
    names = aliases.names_of(value)
    for other in reversed(names):       # the last aliases are the most likely to be read after the node
        if other is value or other in node.outputs or is_container(other.type):
            continue
        if other.node.kind in OVERLAPPING_VIEWS or not block.contains(other.node) or any(is_later(user, node) for user, _ in other.uses):
            return False
    return value.node.kind not in OVERLAPPING_VIEWS and not any(
        is_held(user, node, aliases) for other in names if not is_container(other.type) and other not in node.outputs
        for user, _ in other.uses)


def is_held(user: Node, node: Node, aliases: Aliases) -> bool:
    """Does a reader of a tensor put it into a list or another container that is read after `node`, by any name of it?"""
    if user.kind not in CONTAINERS:
        return False
    if not user.outputs and not user.kind.startswith("aten::"):
        return True         # an instance, which may have other names
    container = user.inputs[0] if user.kind.startswith("aten::") else user.output
    names = [container, *[each for each in aliases.names_of(container) if each is not container and not isinstance(each.type, TensorType)]]
    return any(reader.kind in CONTAINERS and reader is not user or is_later(reader, node) or is_handed_on(reader)
               for name in names for each in (name, *made_of(name)) for reader, _ in each.uses)


def is_handed_on(reader: Node) -> bool:
    """Does a reader forward what it reads as another value: a node with blocks, or the end of a block?"""
    return bool(reader.blocks) or reader.kind == RETURN and reader.owner_block.owning_node is not None


def made_of(container: Value) -> Iterator[Value]:
    """Containers made from the elements of a container (slices, sums, copies, values of a dict), and recursively those made from these."""
    found, seen = [container], {container}
    while found:
        for reader, _ in found.pop().uses:
            for made in () if reader.blocks else reader.outputs:
                if made not in seen and not isinstance(made.type, TensorType) and holds_tensors(made.type):
                    seen.add(made)
                    found.append(made)
                    yield made


def is_container(type: Type) -> bool:
    """Has a value of a type a name for what it contains, and not for a tensor? False for optionals, unions and Any."""
    return isinstance(type, (ListType, TupleType, DictType, ClassType))


def is_later(user: Node, node: Node) -> bool:
    """Does `user`, a reader of a value of the block of `node`, run after `node`?"""
    while user.owner is not node.owner:
        owner = user.owner_block.owning_node
        if owner is None:
            return True
        user = owner
    return user.kind == "prim::Return" or user is not node and node.before_in_block(user)
