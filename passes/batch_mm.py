"""Batching of small matrix products."""
from __future__ import annotations

from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.edits import replace_node
from irtool.ir.effects import has_side_effects, may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.passes import BY_NAME

TREE = 4
"""The fewest products in a sum that become one node."""
SIDE = 8
"""The fewest products with a common factor that become one node: as many as one unrolled loop makes."""
LEFT, RIGHT = 0, 1


def batch_mm(graph: Graph) -> bool:
    """Turn each sum of at least four matrix products into one `prim::MMTreeReduce`, and at least eight products with a common factor into
    one `prim::MMBatchSide`; then run `dce` and `peephole`.

    A graph without products, or one that writes into tensors, stays unchanged.

    before:
        graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
          %4 : int = prim::Constant[value=1]()
          %5 : Tensor = aten::mm(%a, %b)
          %6 : Tensor = aten::mm(%b, %c)
          %7 : Tensor = aten::mm(%c, %d)
          %8 : Tensor = aten::mm(%d, %a)
          %9 : Tensor = aten::add(%5, %6, %4)
          %10 : Tensor = aten::add(%7, %8, %4)
          %11 : Tensor = aten::add(%9, %10, %4)
          return (%11)

    after:
        graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
          %12 : Tensor = prim::MMTreeReduce(%a, %b, %c, %d, %b, %c, %d, %a)
          return (%12)
    """
    if not any(node.kind == "aten::mm" for node in graph.walk()) or any(may_write(node) for node in graph.walk()):
        return False
    changed = False
    for block in list(graph.walk_blocks()):
        changed = _reduce_trees(graph, block) or changed
    for block in list(graph.walk_blocks()):
        changed = _batch_sides(graph, block) or changed
    changed = BY_NAME["dce"].function(graph) or changed
    return BY_NAME["peephole"].function(graph, no_shapes=True) or changed


# -- sums of products
def _reduce_trees(graph: Graph, block: Block) -> bool:
    """Reduce each maximal sum of products in a block."""
    leaves: dict[Node, list[Node]] = {}     # root of a tree -> its products, in order
    for node in block:
        if _is_product(node):
            leaves[node] = [node]
        elif node.kind == "aten::add" and len(node.inputs) == 3 and constant(node.inputs[2]) == 1:
            left, right = node.inputs[0].node, node.inputs[1].node
            if left in leaves and right in leaves and left.output.use_count == right.output.use_count == 1:
                leaves[node] = leaves.pop(left)
                leaves[node] += leaves.pop(right)
    changed = False
    for root, products in leaves.items():
        if len(products) < TREE:
            continue
        operands = [product.inputs[side] for side in (LEFT, RIGHT) for product in products]
        reduction = Builder(graph).before(root).node("prim::MMTreeReduce", operands, {}, (root.output.type,))
        replace_node(root, reduction.outputs)
        changed = True
    return changed


def _is_product(node: Node) -> bool:
    return node.kind == "aten::mm" and len(node.inputs) == 2


# -- products with a common factor
def _batch_sides(graph: Graph, block: Block) -> bool:
    """Batch the products of a block that share a factor."""
    changed = False
    considered: set[Value] = set()
    for node in list(block):
        if node.owner is None or not _is_product(node):
            continue
        for value in node.inputs:
            if value in considered:
                continue
            considered.add(value)
            for side in (LEFT, RIGHT):
                changed = _batch_side(graph, block, value, side) or changed
    return changed


def _batch_side(graph: Graph, block: Block, shared: Value, side: int) -> bool:
    users = {user for user, slot in shared.uses if slot == side and user.owner is block and _is_product(user)
             and user.inputs[1 - side] is not shared}
    if len(users) < SIDE:
        return False
    products, moved = _together(block, users)
    if len(products) < SIDE or any(has_side_effects(node) for node in moved):
        return False
    last = products[-1]
    for node in reversed(moved):
        node.move_after(last)
    others = [product.inputs[1 - side] for product in products]
    batch = Builder(graph).before(last).node("prim::MMBatchSide", [shared, *others], {"side": Attribute.of(side, graph.dialect)},
                                            [product.output.type for product in products])
    for product, value in zip(products, batch.outputs, strict=True):
        replace_node(product, [value])
    return True


def _read_by(node: Node) -> list[Value]:
    """The values that a node and the nodes in its blocks read."""
    values = list(node.inputs)
    for block in node.blocks:
        values += block.outputs
        for inner in block.walk():
            values += inner.inputs
            values += [value for nested in inner.blocks for value in nested.outputs]
    return values


def _together(block: Block, users: set[Node]) -> tuple[list[Node], list[Node]]:
    """The products that do not depend on one another, and the nodes between them that read them, which must move after the last one."""
    products: list[Node] = []
    dependent: dict[Node, None] = {}
    results: set[Value] = set()
    for node in block:
        read = not results.isdisjoint(_read_by(node))
        if node in users and not read:
            products.append(node)
            results.update(node.outputs)
        elif read:
            dependent[node] = None
            results.update(node.outputs)
    if not products:
        return [], []
    moved, last = [], products[-1]
    for node in block:
        if node is last:
            break
        if node in dependent:
            moved.append(node)
    return products, moved
