"""In-place operators replaced by the operators that do not write, since gradients may need the values that are overwritten."""
from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import ancestor
from irtool.analysis.memory_orders import MemoryOrders
from irtool.analysis.overlaps import may_overlap
from irtool.autodiff.formula_graphs import has_own_formula
from irtool.autodiff.later_readers import is_alone, is_later
from irtool.autodiff.own_parts import aliases_with_own_parts
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_constant
from irtool.ir.dtypes import dtype_code
from irtool.ir.effects import FRESH, IF_KINDS, category_of, node_may_write
from irtool.ir.graph import RETURN, Block, Graph, Node, Value
from irtool.ir.places import place_of
from irtool.ir.schema import schema_of, schemas
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import FLOAT, INT, TENSOR, TensorType, spell
from irtool.ops.facts import BOOL, facts_of_node
from irtool.ops.result_dtypes import CASTS, FIRST_DTYPE, result_dtypes
from irtool.partial.items import holds_tensor


def replace_writes(graph: Graph, nodes: Sequence[Node]) -> None:
    """As `without_writes` of `unread_writes` for the rewritable nodes `nodes`; constructions of containers are not moved."""
    orders = MemoryOrders(graph)
    without_writes_in_order(graph, nodes, orders)
    aliases, is_exact = aliases_with_own_parts(graph), True
    for node in nodes:
        result = without_write(graph, node, aliases, orders)
        if result is None and not is_exact and is_rewritable(node):     # replaced writes no longer alias: ask again
            aliases, is_exact = aliases_with_own_parts(graph), True
            result = without_write(graph, node, aliases, orders)
        if result is not None:
            is_exact = False
            if result.node is not node:     # a new value, which the analysis does not know
                aliases, is_exact = aliases_with_own_parts(graph), True


def containers_late(block: Block) -> None:
    """Move the construction of each list, tuple or dict of tensors to its first reader: then no write lies between the two."""
    for node in reversed(list(block)):
        for inner in node.blocks:
            containers_late(inner)
        if node.kind in CONTAINERS and not node.kind.startswith("aten::") and node.outputs and node.output.has_uses \
                and holds_tensor(node.output.type):
            readers = [ancestor(user, block) or block.return_node for user, _ in node.output.uses]
            node.move_before(min(readers, key=lambda reader: place_of(block, reader)))


def without_writes_in_order(graph: Graph, nodes: Sequence[Node], orders: MemoryOrders) -> None:
    """As `without_writes`, for tensors whose only aliases are the results of writes into them, all in the block that computes the
    tensor. All writes into one tensor are replaced in one walk, so that the time is linear in their number."""
    aliases, allowed = aliases_with_own_parts(graph), set(nodes)
    done: set[Value] = set()
    for node in nodes:
        if node.inputs[0] in done or not is_rewritable(node):       # the operand of a replaced write may be a new value
            continue
        names = aliases.names_of(node.inputs[0])
        done.update(names)
        names = [name for name in names if not is_only_converted(name)]     # the result of the conversion is its one other name
        uses = [(user, slot) for name in names for user, slot in name.uses]
        writers = {user for user, slot in uses if slot == 0 and user in allowed}
        if any(may_overlap(writer, aliases.may_alias) for writer in writers):
            continue        # torch refuses writes between overlapping operands: only the run knows
        origins = [name for name in names if name.node not in writers]
        block = node.owner_block
        if len(origins) == 1 and origins[0].node.owner is block and not orders.may_lose_gaps(origins[0]) and all(
                user.owner is block if user in writers else ancestor(user, block) is not None and
                (user.kind == RETURN or user.kind not in CONTAINERS and not node_may_write(user)) for user, _ in uses):
            take_out(orders, origins[0], writers, uses)


def is_only_converted(value: Value) -> bool:
    """Is the one reader of a value in new memory a conversion to a dtype, whose result may be the value itself?"""
    return value.use_count == 1 and category_of(value.node) == FRESH and all(
        [user.kind in ("aten::type_as", "aten::to") and slot == 0 for user, slot in value.uses])


def take_out(orders: MemoryOrders, tensor: Value, writers: Container[Node], uses: Iterable[tuple[Node, int]]) -> None:
    """Replace the writers of a tensor, in the block that computes it; each reader reads the result of the last writer before it."""
    block, current = tensor.node.owner_block, tensor
    readers: dict[Node, list[int]] = {}
    for user, slot in uses:
        readers.setdefault(user, []).append(slot)
    for user in sorted(readers, key=lambda user: place_of(block, ancestor(user, block) or block.return_node)):
        for slot in readers[user]:
            user.replace_input(slot, current)
        if user in writers:
            current = replaced(orders, user, tensor)


def without_write(graph: Graph, node: Node, aliases: Aliases, orders: MemoryOrders) -> Value | None:
    """Replace `relu_(x)` by `relu(x)` if x is no view and has no views, so that every later reader of x can read the result.

    Returns the result; None if the node stays. aliases: may report more values that share memory than there are, but none too few.
    """
    if not is_rewritable(node) or not is_alone(aliases, node.inputs[0], node) or may_overlap(node, aliases.may_alias) \
            or orders.may_lose_gaps(node.inputs[0]):
        return None
    target = node.inputs[0]
    uses = [*target.uses, *node.output.uses]
    result = replaced(orders, node, target)
    for user, slot in uses:
        if user is not node and is_later(user, node):
            user.replace_input(slot, result)
    return result


def replaced(orders: MemoryOrders, node: Node, target: Value) -> Value:
    """Turn a write into the node that does not write; its result, in the dtype of `target`, the tensor it wrote into, and in its memory
    order if a reader can tell."""
    before = node.inputs[0]         # the target, or the result of an earlier write into it, which may have given it another shape
    orders.look()
    stop_writing(orders.graph, node)
    result = in_its_dtype(orders.graph, node, target)
    if orders.may_change(node, before):
        result = Builder(orders.graph).after(result.node).call("aten::copy", before, result, type=result.type)
    return result


def kind_without_write(kind: str) -> str:
    """`aten::relu_` -> `aten::relu`; `aten::normal` is another function than `aten::normal_`."""
    return "aten::normal_functional" if kind == "aten::normal_" else kind[:-1]


def stop_writing(graph: Graph, node: Node) -> bool:
    """Turn `relu_(x)` into `relu(x)`. Returns whether the new node fits a schema."""
    if node.kind == "aten::copy_" and len(node.inputs) == 2 and node.inputs[1].type in (INT, FLOAT):
        # torch's `copy` takes no number, and its `fill` refuses one that does not fit
        copied = Builder(graph).before(node).call("prim::NumToTensor", node.inputs[1], type=spell(TENSOR, graph.dialect))
        node.replace_input(1, copied)
    before = schema_of(node)
    node.kind = kind_without_write(node.kind)
    after = schema_of(node)
    if before is not None and after is not None and len(before.arguments) == len(node.inputs) == len(after.arguments):
        names = {argument.name: value for argument, value in zip(before.arguments, node.inputs, strict=True)}
        if names.keys() == after.positions.keys():      # polygamma(n, x) is x.polygamma_(n)
            node.set_inputs([names[argument.name] for argument in after.arguments])
    return after is not None


def in_its_dtype(graph: Graph, node: Node, target: Value) -> Value:
    """The result of a replaced write, converted to the dtype of `target`, the tensor it wrote into, if the dtypes differ or may differ."""
    result, type = node.output, target.type
    if not isinstance(type, TensorType) or node.kind in FIRST_DTYPE:
        return result
    if facts_of_node(node).result == BOOL and type.dtype != "bool":
        return Builder(graph).after(node).call("aten::type_as", result, target, type=spell(type, graph.dialect))
    widens = node.kind in WIDENING and (type.dtype is None or type.dtype in WHOLE)
    if type.dtype is None:
        if not widens and all(dtype_source(value) is dtype_source(target) for value in node.inputs if isinstance(value.type, TensorType)):
            return result
        return Builder(graph).after(node).call("aten::type_as", result, target, type=result.type)
    if not widens and all([value.type.dtype == type.dtype for value in node.inputs if isinstance(value.type, TensorType)]):
        return result
    result_type, result.type = result.type, spell(TENSOR, graph.dialect)
    return Builder(graph).after(node).call("aten::to", result, dtype_code(type.dtype), False, False, None, type=result_type)


WIDENING = ("aten::cumsum", "aten::cumprod")
"""Kinds that compute whole numbers in int64, where they do not write into them."""
WHOLE = ("bool", "uint8", "int8", "int16", "int32")


def dtype_source(value: Value) -> Value:
    """A value that has the dtype of `value` in each run: what it is a view of, or computed from by operators that keep the dtype."""
    while value.node.kind in FIRST_DTYPE or value.node.kind not in CASTS and facts_of_node(value.node).is_view \
            and result_dtypes(value.node, "complex64") == ["complex64"]:
        value = value.node.inputs[0]
    return value


def is_rewritable(node: Node) -> bool:
    """Does a node write into its first operand and return it, and is there an operator that does the same without writing?"""
    return node.kind.endswith("_") and not node.kind.endswith("__") and len(node.inputs) > 0 and len(node.outputs) == 1 \
        and node_may_write(node) and bool(schemas(kind_without_write(node.kind)))


def live_nodes(graph: Graph) -> Iterator[Node]:
    """All nodes, except those in branches that are never taken since the condition is a constant."""
    blocks = [graph.block]
    while blocks:
        for node in blocks.pop():
            yield node
            if node.kind in IF_KINDS and len(node.blocks) == 2 and is_constant(node.inputs[0]):
                blocks.append(node.blocks[0 if constant(node.inputs[0]) else 1])
            else:
                blocks.extend(node.blocks)


def writes_for_good(node: Node) -> bool:
    """Does a node write into a tensor, and has its in-place form no formula itself?"""
    if node.blocks or not node.outputs or not node.inputs or not isinstance(node.inputs[0].type, TensorType) or not node_may_write(node):
        return False
    schema = schema_of(node)
    return schema is not None and schema.is_mutable and not has_own_formula(schema)
