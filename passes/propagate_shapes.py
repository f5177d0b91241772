"""Shape propagation."""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.shape_changes import Changes
from irtool.analysis.shape_facts import Facts, category, dimensioned, is_complete, with_dims, with_dtype, with_sizes
from irtool.analysis.shape_rules import BY_TYPES, RULES, own_pointwise
from irtool.analysis.shape_sizes import COMPLETE, EXPANDED, RUN
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, argument_value, constant
from irtool.ir.dialect import LATEST
from irtool.ir.dtypes import NAMES
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, has_side_effects
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.handlers import Handlers
from irtool.ir.schema import is_tensor_like, node_argument, schema_of
from irtool.ir.shapes import broadcast
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import ListType, OptionalType, TensorType, Type, UnionType, contiguous_strides, join, spell, tensor_type
from irtool.ir.verify_types import is_number_beside_tensor
from irtool.ops.facts import OWN_POINTWISE
from irtool.ops.size_facts import NUMBER_KINDS
from irtool.passes.erase_shapes import without_shapes

NUMBER_DTYPES = {"int": "int64", "bool": "int64", "float": "float64", "complex": "complex128"}


def propagate_shapes(graph: Graph) -> bool:
    """Infer dtype, device and, if possible, sizes of each tensor from the types of the graph's inputs and constants.

    Operands of comparisons, and of a few other operators, get `aten::expand` if their sizes are known to differ, as in torch. A tensor of
    unknown type, or one that may share memory with a tensor whose shape changes in place, has the type `Tensor`.

    before:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
              %w : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):
          %2 : Tensor = aten::mm(%x, %w)
          %3 : Tensor = aten::relu(%2)
          return (%3)

    after:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
              %w : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):
          %2 : Float(2, 4, strides=[4, 1], device=cpu) = aten::mm(%x, %w)
          %3 : Float(*, *, device=cpu) = aten::relu(%2)
          return (%3)
    """
    if not graph.dialect.tensor_options:
        return False
    sweep = Sweep(graph)
    sweep.block(graph.block, True)
    return sweep.changed


def reads_of_blocks(graph: Graph) -> dict[Block, dict[Value, None]]:
    """Block -> the outer values that are read in it, in order."""
    reads: dict[Block, dict[Value, None]] = {}
    for block in reversed(list(graph.walk_blocks())):       # inner ones first
        inside: dict[Value, None] = {}
        for node in (*block, block.return_node):
            inside.update(dict.fromkeys(node.inputs))
            for inner in node.blocks:
                inside.update(reads[inner])
        reads[block] = {value: None for value in inside if value.node.owner is not block}
    return reads


SPECIAL: Handlers[Callable[[Sweep, Node], None]] = Handlers()
"""Kind -> a function that sets the types of its results, for kinds that `irtool.analysis.shape_rules` has no rule for."""


class Sweep:
    """One walk in order; bodies of loops are visited until nothing changes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.plain = spell(types.TENSOR, graph.dialect)
        self.is_latest = graph.dialect is LATEST        # then types need no conversion to the dialect
        self.by_types: dict[tuple[object, ...], list[TensorType] | None] = {}
        """A cache for rules that depend on types alone: (schema, operand types, numbers) -> result types; None: unknown."""
        self.before = {value: value.type for value in graph.values()}
        self.is_expanded = False
        self.changes = Changes(graph)
        self.rounds = 0
        """The number of loops around the current node."""
        self.reads: dict[Block, dict[Value, None]] = {}
        """Block -> the outer values that it reads; computed for nested loops."""
        self.seen: dict[Node, list[Type]] = {}
        """Nested loop -> the types that it read when it was visited last."""

    @property
    def changed(self) -> bool:
        """Does the graph differ from what it was?"""
        return self.is_expanded or any(value.type is not self.before.get(value) for value in self.graph.values())

    def block(self, block: Block, may_expand: bool) -> None:
        """The nodes of a block."""
        for node in list(block):
            self.visit(node, may_expand)

    def set(self, value: Value, type: Type) -> None:
        """Set the type of a value, in the form of the dialect."""
        if value in self.changes.loose:
            type = without_shapes(type, self.plain)
        if type is not value.type:
            value.type = type if self.is_latest else spell(type, self.graph.dialect)

    def unshape(self, node: Node) -> None:
        """Erase the shapes of a node's results."""
        for value in node.outputs:
            self.set(value, without_shapes(value.type, self.plain))

    # -- nodes
    def visit(self, node: Node, may_expand: bool) -> None:
        """One node."""
        special = SPECIAL.get(node.kind)
        stirred = self.changes.stirred(node)
        if self.rounds and not node.blocks:     # rules read declared types, not what an earlier round of the loop found
            for value in node.outputs:
                self.set(value, self.before.get(value, value.type))
        if stirred:
            for value in stirred:
                self.set(value, without_shapes(value.type, self.plain))
            self.unshape(node)
        elif node.kind in IF_KINDS and len(node.blocks) == 2:
            self.branch(node, may_expand)
        elif node.kind in LOOP_KINDS and len(node.blocks) == 1:
            self.loop(node)
        elif special is not None:
            if node.kind.startswith("aten::") and (not node.inputs or schema_of(node) is None):
                self.unshape(node)
            else:
                special(self, node)
        elif node.kind not in NUMBER_KINDS and not has_side_effects(node):
            self.operator(node, may_expand)

    def operator(self, node: Node, may_expand: bool) -> None:
        """An operator with a schema."""
        schema = schema_of(node)
        if schema is None or schema.is_vararg:
            return
        operands: list[TensorType] = []
        for place, argument in enumerate(schema.arguments):
            if isinstance(argument.type, ListType) and isinstance(argument.type.element, TensorType):
                return
            if isinstance(argument.type, TensorType):
                type = node.inputs[place].type if place < len(node.inputs) else None
                if not isinstance(type, TensorType):
                    return
                operands.append(type)
        facts = Facts(node, schema, operands, self.changes)
        if schema.name in BY_TYPES and not all(map(is_complete, operands)):
            key = (schema.name, *operands, *facts.numbers)
            if key not in self.by_types:
                self.by_types[key] = RULES[schema.name](facts)
            result_types = self.by_types[key]
            if result_types is not None:
                self.take(node, result_types)
            return
        if all(map(is_complete, operands)):
            if may_expand and schema.name in EXPANDED:
                facts = self.expanded(node, facts)
            rule = COMPLETE.get(schema.name)
            is_run = schema.name in RUN
            result_types = rule(facts) if rule is not None and (not is_run or self.is_tried(node)) else None
            if result_types is not None:
                self.take(node, result_types)
                return
            if not is_run:
                self.unshape(node)
        rule = RULES.get(schema.name) or (own_pointwise if schema.name in OWN_POINTWISE else None)
        result_types = rule(facts) if rule is not None else None
        if result_types is not None:
            self.take(node, result_types)

    def is_tried(self, node: Node) -> bool:
        """Does torch run a node on zeros to learn its types? Not with integers (it would divide by zero), nor if it depends on a write."""
        for value in node.inputs:
            type = value.type
            if value.node.kind not in CONSTANT_KINDS and type.key != "float" and (
                    not isinstance(type, TensorType) or type.dtype is None or category(type.dtype) == 1):
                return False
        return not self.changes.is_late(node)

    def take(self, node: Node, result_types: list[TensorType]) -> None:
        """Set the types of the tensors among the results, which a rule computed."""
        for value, type in zip([each for each in node.outputs if isinstance(each.type, TensorType)], result_types, strict=False):
            self.set(value, type)

    def expanded(self, node: Node, facts: Facts) -> Facts:
        """Insert `expand` nodes that bring the operands to one shape; returns the new facts.

        Of two dtypes, a tensor without dimensions stays: its dtype counts less in the promotion, and would count in full. So do operands
        that do not lie row by row: an operand that is expanded before it is converted may give the result other strides.
        """
        shapes = [type.shape for type in facts.types[:2]]
        sizes = broadcast([shape for shape in shapes if shape is not None])
        is_plain = facts.types[0].dtype == facts.types[1].dtype or () not in shapes and all(
            type.shape is not None and type.strides == contiguous_strides(type.shape) for type in facts.types[:2])
        if sizes is None or not is_plain or all(shape == sizes for shape in shapes):
            return facts
        build = Builder(self.graph).before(node)
        for slot, type in enumerate(facts.types[:2]):
            if type.shape == sizes:
                continue
            expanded = build.call("aten::expand", node.inputs[slot], list(sizes), implicit=False)
            node.replace_input(slot, expanded)
            self.operator(expanded.node, False)
            self.is_expanded = True
        return Facts(node, facts.schema, [value.type for value in node.inputs[:2] if isinstance(value.type, TensorType)], self.changes)

    # -- control flow
    def branch(self, node: Node, may_expand: bool) -> None:
        """An `If`: a result has the type that both branches have in common."""
        for inner in node.blocks:
            self.block(inner, may_expand)
        for value, first, second in zip(node.outputs, node.blocks[0].outputs, node.blocks[1].outputs, strict=False):
            self.set(value, common(value.type, first.type, second.type))

    def loop(self, node: Node) -> None:
        """A loop: a carried value has the type that its initial value and the results of all rounds have in common.

        A nested loop is visited again only if types that it reads have changed; otherwise the time would grow as 2**depth.
        """
        before = self.types_read(node) if self.rounds else None
        if before is not None and self.seen.get(node) == before:
            return
        self.rounds += 1
        self.sweep_loop(node)
        self.rounds -= 1
        if before is not None and before == self.types_read(node):
            self.seen[node] = before

    def types_read(self, loop: Node) -> list[Type]:
        """The types of a loop's initial and outer values."""
        if not self.reads:
            self.reads = reads_of_blocks(self.graph)
        return [value.type for value in (*loop.inputs, *self.reads[loop.blocks[0]])]

    def sweep_loop(self, node: Node) -> None:
        """Visit the body until nothing changes."""
        body = node.blocks[0]
        carried = body.inputs[1:]
        for value, source in zip(carried, node.inputs[2:], strict=False):
            self.set(value, narrowed(value.type, source.type))
        for _ in range(2 + 4 * len(carried)):       # each visit makes a type less precise, or is the last one
            self.block(body, False)
            before = [value.type for value in carried]
            for value, source in zip(carried, body.outputs[1:], strict=False):
                self.set(value, common(value.type, value.type, source.type))
            if all(value.type is old for value, old in zip(carried, before, strict=True)):
                break
        self.block(body, True)
        for value, inner in zip(node.outputs, carried, strict=False):
            self.set(value, narrowed(value.type, inner.type))

    # -- special kinds
    @SPECIAL.of(*CONSTANT_KINDS)
    def constant(self, node: Node) -> None:
        """A tensor constant has the type of its literal."""
        literal = constant(node.output) if len(node.outputs) == 1 else NOT_CONSTANT
        declared = node.outputs[0].type if node.outputs else None
        if isinstance(literal, TensorLiteral) and isinstance(declared, TensorType):
            literal = literal.with_type(declared.dtype, declared.shape)
            if literal.shape is not None and literal.dtype is not None and literal.has_data:
                self.set(node.output, tensor_type(literal.dtype, literal.shape, declared.strides or contiguous_strides(literal.shape),
                                                  False, declared.device or "cpu"))

    @SPECIAL.of("prim::NumToTensor")
    def number(self, node: Node) -> None:
        """A number converted to a tensor."""
        dtype = NUMBER_DTYPES.get(str(node.inputs[0].type.key))
        if dtype is not None:
            self.set(node.output, tensor_type(dtype, (), None, None, "cpu"))

    @SPECIAL.of("prim::TupleConstruct")
    def construct(self, node: Node) -> None:
        """A tuple has the types of its elements; an element declared a tensor that is a number, or the reverse, stays declared so."""
        whole = node.output.type
        declared = whole.elements if len(whole.elements) == len(node.inputs) else [value.type for value in node.inputs]
        elements = [narrowed(type, value.type) for value, type in zip(node.inputs, declared, strict=True)]
        if isinstance(whole, types.NamedTupleType):
            self.set(node.output, types.named_tuple_of(whole.names, elements))
        else:
            self.set(node.output, types.tuple_of(elements))

    @SPECIAL.of("prim::TupleUnpack")
    def unpack(self, node: Node) -> None:
        """The results of unpacking a tuple have the types of its elements."""
        whole = node.inputs[0].type
        if isinstance(whole, types.TupleType) and len(whole.elements) == len(node.outputs):
            for value, type in zip(node.outputs, whole.elements, strict=True):
                self.set(value, type)

    @SPECIAL.of("prim::unchecked_unwrap_optional", "aten::_unwrap_optional")
    def unwrap(self, node: Node) -> None:
        """An unwrapped optional has the element type."""
        inner = node.inputs[0].type
        if not isinstance(inner, OptionalType) and types.is_subtype(inner, node.output.type):
            self.set(node.output, inner)

    @SPECIAL.of("prim::ConstantChunk")
    def chunk(self, node: Node) -> None:
        """Chunks have the number of dimensions of the tensor."""
        whole = node.inputs[0].type
        if isinstance(whole, TensorType):
            for value in node.outputs:
                self.set(value, dimensioned(whole))
        else:
            self.unshape(node)

    @SPECIAL.of("aten::cat", "prim::FusedConcat")
    def cat(self, node: Node) -> None:
        """A concatenation."""
        construct = node.inputs[0].node if node.kind == "aten::cat" else node
        is_list = construct.kind == "prim::ListConstruct"
        is_known = construct.kind == "prim::FusedConcat" or is_list and self.changes.is_fixed(node.inputs[0])
        element_types = [value.type for value in construct.inputs] if is_known else []
        operands = [type for type in element_types if isinstance(type, TensorType)]
        if not operands or len(operands) != len(element_types):
            self.unshape(node)
            return
        dtypes = {type.dtype for type in operands}
        dim = argument_value(node_argument(node, "dim")) if node.kind == "aten::cat" else NOT_CONSTANT
        sizes = joined(operands, dim) if len(dtypes) == 1 and all(map(is_complete, operands)) else None
        if sizes is not None:
            self.set(node.output, with_sizes(operands[0], sizes))
        else:
            rank = operands[0].rank
            if rank == 1:       # cat accepts an empty vector among tensors of any rank
                others = {type.rank for type in operands} - {1} or {1}
                rank = None if None in others else others.pop()
            dtype, claim = node.output.type.dtype if isinstance(node.output.type, TensorType) else None, operands[0].dtype
            self.set(node.output, with_dtype(with_dims(operands[0], rank), claim if len(dtypes) == 1 or claim == dtype else None))

    @SPECIAL.of("aten::tensor", "aten::as_tensor")
    def literal(self, node: Node) -> None:
        """`aten::tensor` of numbers, or of nested lists of numbers."""
        element: Type = node.inputs[0].type
        rank = 0
        while isinstance(element, ListType):
            element, rank = element.element, rank + 1
        if isinstance(element, TensorType):
            if node.kind == "aten::as_tensor":
                self.operator(node, False)
            return
        dtype: str | None = {"int": "int64", "float": "float32", "bool": "bool", "complex": "complex64"}.get(str(element.key))
        asked, device = (argument_value(node_argument(node, name)) for name in ("dtype", "device"))
        if asked is not None:
            dtype = NAMES.get(asked) if isinstance(asked, int) else None
        if dtype is None or device is NOT_CONSTANT:
            self.unshape(node)
            return
        if device is None:
            device = "cpu"
        self.set(node.output, tensor_type(dtype, (None,) * rank, None, None, device if isinstance(device, str) else None))


def narrowed(declared: Type, actual: Type) -> Type:
    """The actual type of an element if it refines the declared one, else the declared type (a tensor for a number, a union)."""
    return actual if types.is_subtype(actual, declared) or is_tensor_like(actual) and is_tensor_like(declared) else declared


def common(declared: Type, first: Type, second: Type) -> Type:
    """The type that two have in common; what is declared if there is none, or a union of which the text declares one type alone, or an
    optional tensor where an optional number is declared: a tensor may stand for a number, an optional one not."""
    found = join(first, second)
    if isinstance(found, OptionalType) and isinstance(declared, OptionalType) and is_number_beside_tensor(found.element, declared.element):
        return declared
    return declared if found is None or isinstance(found, UnionType) and not isinstance(declared, UnionType) else found


def joined(operands: list[TensorType], dim: object) -> list[int] | None:
    """The sizes of a concatenation of complete tensors along a dimension."""
    sizes = list(operands[0].shape or ())
    if not isinstance(dim, int):
        return None
    dim = dim + len(sizes) if dim < 0 else dim
    if not 0 <= dim < len(sizes):
        return None
    total = 0
    for type in operands:
        shape = type.shape or ()
        if len(shape) != len(sizes) or any(shape[i] != sizes[i] for i in range(len(sizes)) if i != dim):
            return None
        total += shape[dim]
    sizes[dim] = total
    return sizes
