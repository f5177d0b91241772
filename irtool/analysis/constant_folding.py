"""Constant folding: what a graph computes of constants alone becomes constants, and an `If` of known condition its branch."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.analysis.liveness import remove_dead_nodes
from irtool.analysis.memory_classes import is_mutable
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder, type_of
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant
from irtool.ir.edits import become_constant, inline_block, replace_node
from irtool.ir.effects import IF_KINDS
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.numbering import node_key
from irtool.ir.remarks import missed
from irtool.ir.types import INT, NONE, DictType, ListType, TensorType, Type, contiguous_strides, is_subtype, spell, tensor_type
from irtool.ir.verify_constants import needed_for
from irtool.ops.folding import evaluate, is_foldable


def fold_constants(graph: Graph, immutable_types: bool = False, keep_draws: bool = False) -> bool:
    """Fold what has constant operands (`immutable_types`: but for lists and tensors), and remove dead nodes (`keep_draws`: unless they draw
    random numbers). Returns whether anything changed."""
    changed = False
    while True:
        propagation = Propagation(graph, immutable_types)
        propagation.block(graph.block)
        edited = remove_dead_nodes(graph, drop_draws=not keep_draws) or propagation.changed
        changed = changed or edited
        if not (edited and propagation.written):        # else a write that prevented folding may be gone
            break
    for node, why in propagation.left:
        missed(graph, node, "not folded", why)
    return changed


class Propagation:
    """One walk in order, so that operands are known before their users are visited."""

    def __init__(self, graph: Graph, immutable_types: bool) -> None:
        self.graph = graph
        self.dialect = graph.dialect
        self.immutable_types = immutable_types
        self.changed = False
        self.known: dict[Value, object] = {}
        self.foldable: dict[str, bool] = {}
        self.aliases: Aliases | None = None
        self.left: list[tuple[Node, str]] = []
        """The nodes that stay, and why."""
        self.written = False
        """Do some nodes stay because a node writes into their operands or results?"""

    def block(self, block: Block) -> None:
        known, foldable = self.known, self.foldable
        for node in block:
            kind = node.kind
            if kind in CONSTANT_KINDS and len(node.outputs) == 1:
                value = constant(node.outputs[0])
                if value is not NOT_CONSTANT:
                    known[node.outputs[0]] = value
                continue
            if node.blocks:
                self.control_flow(node)
                continue
            can = foldable.get(kind)
            if can is None:
                can = foldable[kind] = is_foldable(kind) and not self.dialect.attribute_arguments
            if can:
                values = []
                for operand in node.inputs:
                    value = known.get(operand, NOT_CONSTANT)
                    if value is NOT_CONSTANT:
                        break
                    values.append(value)
                else:
                    self.fold(node, values)

    # -- plain nodes
    def fold(self, node: Node, values: list[object]) -> None:
        if not (values or node.kind in ("prim::ListConstruct", "aten::is_scripting")):
            return
        if not self.may_fold(node):
            self.left.append((node, "lists and tensors stay (immutable-types)" if self.immutable_types else
                              "something writes into its operands or results"))
            self.written = not self.immutable_types
            return
        results = evaluate(node, values, beside=True)
        if results is None:
            return
        if len(results) == 1:
            literal = self.spell(results[0], node.output.type)
            if literal is None:        # lists of tensors, and views, have no text, but results computed from them may
                self.known[node.outputs[0]] = results[0]
                self.left.append((node, "no text says its value exactly"))
            elif isinstance(node.output.type, TensorType) == isinstance(literal[1], TensorType):     # users may need the type that is wrong
                become_constant(node, *literal)
                self.known[node.outputs[0]] = results[0]
                self.changed = True
            return
        spelled = [self.spell(result, old.type) for old, result in zip(node.outputs, results, strict=True)]
        if not all(spelled):
            self.known.update(zip(node.outputs, results, strict=True))
            return
        build = Builder(self.graph).before(node)
        fresh = [build.constant(result, each[1]) for result, each in zip(results, spelled, strict=True) if each is not None]
        self.known.update(zip(fresh, results, strict=True))
        replace_node(node, fresh)
        self.changed = True

    def may_fold(self, node: Node) -> bool:
        """May a node be folded: does no node write into its operands or results?"""
        for value in (*node.inputs, *node.outputs):
            if is_mutable(value.type):
                break
        else:
            return True
        if self.immutable_types:
            return False
        if self.aliases is None:
            self.aliases = Aliases(self.graph)
        return not self.aliases.has_writers(node)

    def spell(self, value: object, declared: Type) -> tuple[Attribute | None, Type] | None:
        """The constant's attribute and type; None if text cannot represent the value exactly."""
        if value.__class__ is int:
            return Attribute(str(value), value), INT
        if value is None:       # a cast of None is a number in a branch that was not left out
            return (None, declared) if is_subtype(NONE, declared) or isinstance(declared, TensorType) else None
        if isinstance(value, TensorLiteral):
            shape = value.shape or ()
            literal_type = tensor_type(value.dtype, shape, value.strides or contiguous_strides(shape), False, "cpu")
            return Attribute(value.text, value), spell(literal_type, self.dialect)
        if hasattr(value, "dtype"):
            return None
        if isinstance(value, (list, dict)):
            if not isinstance(declared, (ListType, DictType)) or _holds_no_number(value):
                return None
            type: Type = declared
        else:
            if isinstance(value, tuple) and _is_empty_inside(value):
                return None         # an empty list does not determine its element type
            type = declared if isinstance(value, str) and declared.key == "Device" else type_of(value)
        attribute = Attribute.of(value, self.dialect, type)
        if isinstance(value, float) and self.dialect.float_style == "short6":
            again = Attribute(attribute.text).as_type(type)
            if again != value:
                return None
        return None if needed_for(attribute.as_type(type), type) else (attribute, type)     # a list with None, say, for one of tensors

    # -- control flow
    def control_flow(self, node: Node) -> None:
        counts = [len(block.outputs) for block in node.blocks]
        if node.kind in IF_KINDS and len(node.inputs) == 1 and counts == [len(node.outputs)] * 2:
            self.branch(node)
        elif node.kind == "prim::Loop" and counts == [len(node.outputs) + 1] and len(node.inputs) == len(node.outputs) + 2:
            self.loop(node)
        else:
            for block in node.blocks:
                self.block(block)

    def truth(self, value: Value) -> bool | None:
        """The value of a condition; None: unknown."""
        condition = self.known.get(value, NOT_CONSTANT)
        if isinstance(condition, TensorLiteral) and condition.is_exact:
            condition = condition.item()
        return bool(condition) if isinstance(condition, (bool, int)) else None

    def branch(self, node: Node) -> None:
        truth = self.truth(node.inputs[0])
        if truth is not None:
            taken = node.blocks[0 if truth else 1]
            self.block(taken)
            replace_node(node, inline_block(taken, node))
            self.changed = True
            return
        for block in node.blocks:
            self.block(block)
        yes, no = node.blocks
        for i in reversed(range(len(node.outputs))):
            a, b = yes.outputs[i], no.outputs[i]
            if a is not b:
                if a.node.kind not in CONSTANT_KINDS or b.node.kind not in CONSTANT_KINDS or node_key(a.node) != node_key(b.node):
                    continue
                if a.node.owner is yes:     # else it is defined outside the branches
                    a.node.move_before(node)
            node.outputs[i].replace_all_uses_with(a)
            node.remove_output(i)
            yes.remove_output(i)
            no.remove_output(i)
            self.changed = True

    def loop(self, node: Node) -> None:
        trips = self.known.get(node.inputs[0], NOT_CONSTANT)
        if self.truth(node.inputs[1]) is False or isinstance(trips, int) and trips <= 0:
            replace_node(node, node.inputs[2:])
            self.changed = True
            return
        body = node.blocks[0]
        self.block(body)
        for i in reversed(range(len(node.outputs))):
            if body.inputs[i + 1] is body.outputs[i + 1]:       # carried unchanged
                start = node.inputs[i + 2]
                node.outputs[i].replace_all_uses_with(start)
                body.remove_output(i + 1)
                body.inputs[i + 1].replace_all_uses_with(start)
                node.remove_output(i)
                node.remove_input(i + 2)
                body.remove_input(i + 1)
                self.changed = True


def _is_empty_inside(value: object) -> bool:
    """Does a tuple contain an empty list or dict?"""
    return any(map(_is_empty_inside, value)) if isinstance(value, tuple) else isinstance(value, (list, dict)) and not value


def _holds_no_number(value: object) -> bool:
    """Do the lists and dicts of a value contain a tuple or a tensor?"""
    if isinstance(value, (list, dict)):
        return any(map(_holds_no_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, tuple) or hasattr(value, "dtype")
