"""The partial evaluator: puts a graph into another one, the *target*, and computes what is known ahead.

A gradient formula is written once for all shapes, optional arguments and dialects. Where it is used, much is known: constants, complete
types, arguments that are None. So its graph is not copied but evaluated: sizes of complete types, numbers and branches are computed, and
only the rest becomes nodes of the target, in the form of the target's dialect.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import RETURN, Block, Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.shapes import broadcast, contiguous, shape_of
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type, spell
from irtool.ops.facts import KEEPS, REAL, OverloadFacts
from irtool.partial.items import NONE, Item, Items, Known, elements, item_of, listed, place_of, whole
from irtool.partial.reading import Constants, Nodes, Reading, read_block
from irtool.partial.result_shapes import SHAPES
from irtool.partial.target import Target

MAX_ROUNDS = 64
"""Loops of more rounds are not unrolled."""


class Inliner(Target):
    """Evaluates graphs partially; nodes that remain go to `build`'s insertion point in the target.

    env, in all methods, maps values of the evaluated graph to items.
    """

    def __init__(self, graph: Graph, build: Builder, facts: dict[Value, Type],
                 take: Callable[[Value], Value] = lambda value: value) -> None:
        super().__init__(graph, build, facts)
        self.take = take
        """A function: the value of the target that stands for a value of another graph (a capture)."""
        self.constants: dict[tuple[object, ...], Value] = {}
        self._read: dict[Block, tuple[Constants, Nodes]] = {}

    def new_block(self) -> None:
        """Call this when the insertion point moves to another block: constants made so far may not be visible there."""
        self.constants = {}

    # -- evaluation
    def run(self, block: Block, env: dict[Value, Item], wanted: set[Node] | None = None,
            replaced: Callable[[Node, dict[Value, Item]], bool] | None = None) -> list[Item]:
        """Evaluate the nodes of a block, whose inputs are in `env`. Returns the items of its results, as far as they were evaluated.

        wanted: evaluate only these nodes, and constants (None: all). replaced: called before each node that is no constant; True if it has
        put the results into `env`.
        """
        read = self._read.get(block)
        if read is None:
            read = self._read[block] = read_block(block, self.graph.dialect)
        constants, nodes = read
        env.update(constants)
        for node, reading in nodes:
            if (wanted is None or node in wanted) and (replaced is None or not replaced(node, env)):
                self.step(node, reading, env)
        return [env[value] for value in block.outputs if value in env]

    def step(self, node: Node, reading: Reading, env: dict[Value, Item]) -> None:
        """Evaluate one node."""
        if reading.has_blocks:
            if node.kind in IF_KINDS and len(node.blocks) == 2:
                self.choose(node, env)
            elif not self.unroll(node, env):
                self.copy_loop(node, env)
            return
        if reading.changes_list and not isinstance(env[node.inputs[0]], Value):
            self.open_list(node.inputs[0], env)
            if self.mutate(node, env):
                return
            self.settle((node.inputs[0],), env)
        if reading.is_constant:
            constant_item = item_of(node.outputs[0])
            env[node.outputs[0]] = constant_item if not isinstance(constant_item, Value) else self.copy(node, reading, [])[0]
            return
        operands = [env[value] for value in node.inputs]
        known = self.known_results(node, reading, operands)
        results: Sequence[Item] = self.copy(node, reading, operands) if known is None else known
        if node.kind == "aten::size" and isinstance(results[0], Value) and may_change(node.output):     # a copy: others share it
            results = [self.build.node("aten::list", (self.take(results[0]),), output_types=(results[0].type,)).output]
        if len(results) == 1 and len(node.outputs) == 1:
            env[node.outputs[0]] = results[0]
        else:
            env.update(zip(node.outputs, results, strict=True))

    def choose(self, node: Node, env: dict[Value, Item]) -> None:
        """An `If`: the branch that is taken, if the condition is known, else both."""
        condition = env[node.inputs[0]]
        if isinstance(condition, Known):
            results = self.run(node.blocks[0 if condition.value else 1], env)
            env.update(zip(node.outputs, results, strict=True))
            return
        assert isinstance(condition, Value)
        self.settle(_mutated(node), env)
        build, outer = self.build, self.constants
        branch_node = build.node("prim::If", (self.value(condition, types.BOOL),))
        after, branches = branch_node.next, []
        for block in node.blocks:
            self.constants = dict(outer)
            inner = branch_node.add_block()
            build.at_end(inner)
            branches.append((inner, self.run(block, env)))
        for place, output in enumerate(node.outputs):
            items = [results[place] for _, results in branches]
            if not isinstance(items[0], Value) and items[0] == items[1]:
                env[output] = items[0]
                continue
            for inner, results in branches:
                self.constants = {}
                inner.add_output(self.value(results[place], output.type, build.at_end(inner)))
            env[output] = branch_node.add_output(self.graph.fresh_id(), self.spelled(output.type))
        build.before(after)
        self.constants = outer

    def unroll(self, node: Node, env: dict[Value, Item]) -> bool:
        """Unroll a loop whose number of rounds is known and small. Returns False for any other loop."""
        trips, condition = env[node.inputs[0]], env[node.inputs[1]]
        body = node.blocks[0]
        if node.kind not in LOOP_KINDS or not isinstance(trips, Known) or not isinstance(condition, Known):
            return False
        if not isinstance(trips.value, int) or trips.value > MAX_ROUNDS or constant(body.outputs[0]) is not True:
            return False
        carried = [env[value] for value in node.inputs[2:]]
        for i in range(trips.value if condition.value else 0):
            env.update(zip(body.inputs, [Known(i), *carried], strict=True))
            carried = self.run(body, env)[1:]
        env.update(zip(node.outputs, carried, strict=True))
        return True

    def open_list(self, value: Value, env: dict[Value, Item]) -> None:
        """Replace a known list by Items, for all values that are the list, so that it can be changed."""
        item = env.get(value)
        if isinstance(item, Known) and isinstance(item.value, list):
            opened = listed(item.value, value.type)
            for key, other in env.items():
                if other is item:
                    env[key] = opened

    def mutate(self, node: Node, env: dict[Value, Item]) -> bool:
        """Apply a node that changes a list to its Items. Returns False if the change depends on unknown values."""
        target = env[node.inputs[0]]
        arguments = [env[value] for value in node.inputs[1:]]
        if not isinstance(target, Items):
            return False
        if node.kind == "aten::append":
            target.items.append(arguments[0])
        elif node.kind == "aten::_set_item":
            place = place_of(arguments[0], len(target.items))
            if place is None:
                return False
            target.items[place] = arguments[1]
        elif node.kind in ("aten::extend", "aten::add_"):
            more = elements(arguments[0])
            if more is None:
                return False
            target.items.extend(more)
        else:
            return False
        for output in node.outputs:
            env[output] = target
        return True

    def settle(self, values: Iterable[Value], env: dict[Value, Item]) -> None:
        """Construct in the target the lists that remaining nodes will change."""
        for value in values:
            self.open_list(value, env)
            item = env.get(value)
            if isinstance(item, Items):
                settled = self.value(item, value.type, is_changed=True)
                for key, other in env.items():
                    if other is item:
                        env[key] = settled

    def copy_loop(self, node: Node, env: dict[Value, Item]) -> None:
        """Copy a loop into the target; the items of one round are not known in the next. Raises UnsupportedError for other nodes with
        blocks."""
        if node.kind not in LOOP_KINDS:
            raise UnsupportedError(f"{node.kind} in a gradient formula is not supported", code="E0501")
        self.settle(_mutated(node), env)
        build, outer = self.build, self.constants
        loop = build.node(node.kind, [self.value(env[value], value.type) for value in node.inputs])
        for output in node.outputs:
            env[output] = loop.add_output(self.graph.fresh_id(), self.spelled(output.type))
        after = loop.next
        inner = loop.add_block()
        for value in node.blocks[0].inputs:
            env[value] = inner.add_input(self.graph.fresh_id(), self.spelled(value.type))
        self.constants = {}
        build.at_end(inner)
        results = self.run(node.blocks[0], env)
        inner.set_outputs([self.value(item, value.type) for item, value in zip(results, node.blocks[0].outputs, strict=True)])
        build.before(after)
        self.constants = outer

    # -- what is known
    def known_results(self, node: Node, reading: Reading, operands: list[Item]) -> list[Item] | None:
        """The results of a node, if they are known without adding a node to the target; else None."""
        if reading.rule is not None:
            results = reading.rule(self, node, operands)
            if results is not None:
                return results
        if not reading.may_fold or any([isinstance(operand, Value) for operand in operands]):
            return None
        known = [whole(operand) for operand in operands]
        if all(isinstance(each, Known) for each in known):
            from irtool.ops.folding import evaluate, is_foldable

            if is_foldable(node.kind):
                values = evaluate(node, [each.value for each in known if isinstance(each, Known)])
                if values is not None:
                    return [listed(value, output.type) for value, output in zip(values, node.outputs, strict=True)]
        return None

    # -- nodes
    def copy(self, node: Node, reading: Reading, operands: list[Item]) -> Sequence[Value]:
        """Add a node to the target that computes what `node` computes; returns its results."""
        shape = self.shape_after(node, reading.facts, operands) if reading.gives_tensor else None
        types_of_results = reading.types if shape is None else \
            [self.result_type(reading, place, value, operands, shape) for place, value in enumerate(node.outputs)]
        if self.graph.dialect.attribute_arguments and schema_of(node) is not None:
            copy = self.build.call_node(node.kind, *[self.argument(item) for item in operands], types=types_of_results)
        else:
            inputs = [self.take(item) if isinstance(item, Value) else self.value(item, value.type, is_only_read=reading.only_reads)
                      for item, value in zip(operands, node.inputs, strict=True)]
            copy = self.build.node(node.kind, inputs, node.attributes, types_of_results)
        if shape is not None:
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                if isinstance(old.type, TensorType):
                    self.facts[new] = types.tensor_type(sizes=shape)
        return copy.outputs

    def argument(self, item: Item) -> object:
        """An item as an argument for the builder: a value of the target, or a Python value."""
        if isinstance(item, Known):
            return item.value
        if isinstance(item, Items):
            return [self.argument(each) for each in item.items]
        return self.take(item)

    def value(self, item: Item, type: Type, build: Builder | None = None, is_changed: bool = False, is_only_read: bool = False) -> Value:
        """An item as a value of the target: a constant if it is known.

        is_changed: nodes will change the list, so that it must not be a constant. is_only_read: readers in a block may share one list.
        """
        if isinstance(item, Value):
            return self.take(item)
        build = build or self.build
        if isinstance(item, Items) and item.items and not is_changed:
            item = whole(item)
        if isinstance(item, Known):
            key = (repr(item.value), item.value.__class__, type.key if isinstance(item.value, (list, tuple)) else "")
            if key not in self.constants:
                self.constants[key] = self.constant(item.value, type, build)
            return self.constants[key]
        assert isinstance(item, Items)
        if item.is_tuple:
            elements = item.type.elements or tuple(types.TENSOR for _ in item.items)
            return build.construct_tuple([self.value(each, t, build) for each, t in zip(item.items, elements, strict=True)])
        held = type.element if isinstance(type, OptionalType) else type
        element = held.element if isinstance(held, ListType) else types.TENSOR
        values = [self.element(each, element, build) for each in item.items]
        if not is_only_read:
            return build.construct_list(values, element)
        held_key = (element.key, *values)
        if held_key not in self.constants:
            self.constants[held_key] = build.construct_list(values, element)
        return self.constants[held_key]

    def element(self, item: Item, type: Type, build: Builder) -> Value:
        """An element of a list as a value; None for a tensor becomes an undefined tensor."""
        if item == NONE and isinstance(type, TensorType):
            return build.node(self.graph.dialect.undefined_kind, output_types=(self.spelled(type),)).output
        return self.value(item, type, build)

    def constant(self, value: object, type: Type, build: Builder) -> Value:
        """A new constant."""
        held = type.element if isinstance(type, OptionalType) else type
        if value is None:
            return build.constant(None)
        if isinstance(value, (list, tuple)) and isinstance(held, (ListType, TupleType)):
            return build.constant(value, held)
        return build.constant(value, types.DEVICE if held.key == types.DEVICE.key else None)

    def spelled(self, type: Type) -> Type:
        """A formula's type in the target's dialect."""
        return spell(type, self.graph.dialect)

    def result_type(self, reading: Reading, place: int, output: Value, operands: list[Item], shape: tuple[int, ...]) -> Type:
        """The type of a copied node's result, a tensor of this shape: that of the first tensor operand, if the operator is pointwise and
        shape and dtype stay; else that of `output`."""
        kept = reading.facts.result
        if kept in (KEEPS, REAL) and isinstance(output.type, TensorType) and operands and isinstance(operands[0], Value):
            first = operands[0].type
            if isinstance(first, TensorType) and first.shape == shape:
                others = [item.type for item in operands[1:] if isinstance(item, Value) and isinstance(item.type, TensorType)]
                others += [types.tensor_type("complex128") for item in operands
                           if isinstance(item, Known) and isinstance(item.value, complex)]
                if _keeps_dtype(kept, first, others):
                    return contiguous(first, self.graph.dialect)
        return reading.types[place]

    def shape_after(self, node: Node, facts: OverloadFacts, operands: list[Item]) -> tuple[int, ...] | None:
        """The shape of a node's result; None: unknown."""
        if facts.is_pointwise:
            shapes = []
            for operand in operands:
                if isinstance(operand, Value) and isinstance(operand.type, TensorType):
                    shape = shape_of(self.type_of(operand))
                    if shape is None:
                        return None
                    shapes.append(shape)
            return broadcast(shapes)
        if facts.is_shape_like:
            return shape_of(self.type_of(operands[0])) if isinstance(operands[0], Value) else None
        rule = SHAPES.get(node.kind)
        if rule is None:
            return None
        return rule([shape_of(self.type_of(operand)) if isinstance(operand, Value) else None for operand in operands], operands)


def _keeps_dtype(result: str, first: TensorType, others: Sequence[TensorType]) -> bool:
    """Has a pointwise result (of the rule `facts_of_node(node).result`) the dtype of the first operand? False if another may be wider."""
    is_complex = first.dtype is not None and first.dtype.startswith("complex")
    if result != KEEPS and (result != REAL or is_complex):
        return False
    if first.dtype is not None and not is_complex and "float" not in first.dtype:
        return False
    return all(other.dtype in (None, first.dtype, "bool") or other.rank == 0 and (is_complex or not other.dtype.startswith("complex"))
               for other in others)


def may_change(value: Value) -> bool:
    """May a list be changed, under this name or one that a branch or loop gives it?"""
    if not isinstance(value.type, ListType):
        return False
    names, seen = [value], {value}
    while names:
        for user, slot in names.pop().uses:
            if user.kind in MUTATORS and slot == 0:
                return True
            more = [each for each in _names_given(user, slot) if each not in seen]
            names += more
            seen.update(more)
    return False


def _names_given(user: Node, slot: int) -> list[Value]:
    """The further names that a node with blocks, or the end of a block, gives the value in this slot."""
    owner = user.owner_block.owning_node if user.kind == RETURN else user
    if owner is None or not owner.blocks:
        return []
    if owner.kind not in LOOP_KINDS:
        return [owner.outputs[slot]] if owner is not user and slot < len(owner.outputs) else []
    carried = slot - 1 if owner is not user else slot - 2
    return [owner.blocks[0].inputs[carried + 1], owner.outputs[carried]] if 0 <= carried < len(owner.outputs) else []


def _mutated(node: Node) -> list[Value]:
    """The values that nodes in the blocks of `node` change."""
    return [inner.inputs[0] for block in node.blocks for inner in block.walk() if inner.kind in MUTATORS]
