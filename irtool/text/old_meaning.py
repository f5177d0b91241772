"""Operators that were different in 2018: conditions were ints, devices were lists of ints, the elements of a resulting list were several
results."""
from __future__ import annotations

from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import CONSTANT_KINDS, constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import resolve, schema_of
from irtool.ir.types import BOOL, DEVICE, INT, ListType, OptionalType, Type
from irtool.text.argument_form import pack_results

COMPARISONS = frozenset(f"aten::{word}" for word in ("lt", "le", "gt", "ge", "eq", "ne", "__not__", "__and__", "__or__"))
CASTS = {"aten::Int": "aten::Bool", "prim::Int": "prim::Bool"}


def modernize(graph: Graph) -> None:
    """Convert a graph of 2018, whose kinds and types are already spelled as in 2019 or later, to today's meaning of operators."""
    for node in list(graph.walk()):
        if node.owner is None:
            continue
        if node.kind in COMPARISONS:
            _compare(node)
        elif node.kind.startswith("aten::"):
            _name_device(graph, node)
            schema = schema_of(node)
            if schema is not None:
                pack_results(graph, node, schema)
    for value in list(graph.values()):
        if value.type.key == INT.key and value.has_uses:
            _condition(graph, value)


def _compare(node: Node) -> None:
    """Comparisons of numbers return a bool; until 2018-09 they returned an int."""
    if len(node.outputs) == 1 and node.outputs[0].type.key == INT.key:
        schema = schema_of(node)
        if schema is not None and len(schema.returns) == 1 and schema.returns[0].type.key == BOOL.key:
            node.outputs[0].type = BOOL


def _is_condition(node: Node, slot: int) -> bool:
    """Is this operand a condition: of an `If`, at a `Loop`'s start, or as the first result of its block?"""
    if node.kind == "prim::If":
        return slot == 0
    if node.kind == "prim::Loop":
        return slot == 1
    owner = node.owner.owning_node if node.owner is not None else None
    return slot == 0 and owner is not None and owner.kind == "prim::Loop" and node is node.owner_block.return_node


def _condition(graph: Graph, value: Value) -> None:
    """Make an int that is a condition a bool; if it is also used as a number, only its uses as a condition read the bool."""
    deciding = [use for use in value.uses if _is_condition(use.user, use.slot)]
    if not deciding:
        return
    node = value.node
    is_constant = node.kind in CONSTANT_KINDS
    if not is_constant and node.kind not in CASTS:
        return
    if len(deciding) == value.use_count:
        value.type = BOOL
        if not is_constant:
            node.kind = CASTS[node.kind]
        return
    build = Builder(graph).after(node)
    build.tail = node.tail
    if is_constant:
        twin = build.constant(bool(constant(value)))
    else:
        twin = build.node(CASTS[node.kind], node.inputs, output_types=(BOOL,)).output
    for use in deciding:
        use.user.replace_input(use.slot, twin)


def _name_device(graph: Graph, node: Node) -> None:
    """Replace `[0, -1]` by `cpu`, where a device is expected."""
    slots = [slot for slot, value in enumerate(node.inputs) if _device(value) is not None]
    if not slots or schema_of(node) is not None:
        return
    types: list[Type] = [DEVICE if slot in slots else value.type for slot, value in enumerate(node.inputs)]
    schema = resolve(node.kind, types, list(node.attributes))
    if schema is None:
        return
    for slot in slots:
        formal = schema.arguments[slot].type if slot < len(schema.arguments) else INT
        if (formal.element if isinstance(formal, OptionalType) else formal).key == DEVICE.key:
            build = Builder(graph).before(node)
            build.tail = node.tail
            old = node.inputs[slot]
            node.replace_input(slot, build.constant(_device(old), DEVICE))
            if not old.has_uses:
                old.node.destroy()


def _device(value: Value) -> str | None:
    """The device of a constant list of two ints."""
    if value.node.kind not in CONSTANT_KINDS or not isinstance(value.type, ListType) or value.type.element.key != INT.key:
        return None
    attribute = value.node.attributes.get("value")
    device = attribute.as_type(DEVICE) if isinstance(attribute, Attribute) else None
    return device if isinstance(device, str) and device.partition(":")[0] in ("cpu", "cuda") else None
