"""Lists that only one block constructs, appends to and reads: their items are known in front of every node.

    %l : Tensor[] = prim::ListConstruct(%a)
    %0 : Tensor[] = aten::append(%l, %b)        # from here on [%a, %b]
    %c : Tensor = aten::__getitem__(%l, %1)     # %b

The plan represents such a list as a group of items, and appending is no instruction. So an item may be freed, overwritten or computed in a
fused group like any other value.
"""
from __future__ import annotations

from irtool.execute.plan.filled_lists import APPEND, GET
from irtool.ir.effects import may_write_or_is_python
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import ListType, TensorType

NUMBERS = ("int", "float", "bool")
PLAIN = frozenset("None bool int float complex str Device".split())
IDENTITY = frozenset(("aten::__is__", "aten::__isnot__"))


def names_of(node: Node, graph: Graph) -> list[Value]:
    """All values that are the list constructed by a node, if only nodes of its block append to it and it does not escape; else none."""
    names = [node.output]
    for name in names:
        for user, slot in name.uses:
            if user.kind == APPEND and not slot and user.owner is node.owner:
                names += user.outputs
            elif not only_reads(user, graph):
                return []
    return names


def only_reads(user: Node, graph: Graph) -> bool:
    """Does a node read a list without a reference to it afterwards? The graph's return node counts, since it comes last."""
    if user is graph.block.return_node:
        return True
    if user.kind == GET:
        return not isinstance(user.output.type, ListType)
    if user.blocks or user.subgraph is not None or may_write_or_is_python(user):
        return False
    return all(isinstance(each.type, TensorType) or each.type.text in NUMBERS for each in user.outputs)


def compares_lists(node: Node) -> bool:
    """Does a node ask whether two lists, tuples or values of unknown types are one object? A list with a nan equals itself alone."""
    if node.kind in ("aten::eq", "aten::ne"):
        return node.inputs[0].type.text == "float[]"
    return node.kind in IDENTITY and not any(isinstance(value.type, TensorType) or value.type.key in PLAIN for value in node.inputs)
