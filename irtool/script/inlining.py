"""Put a graph into another one, computing ahead what is known there.

Gradient formulas are written once for every case: any shapes, optional arguments, both kinds of text. Where a formula is used, much is
known: constants, complete types, arguments that are None. So its graph is not copied but evaluated in parts: what can be told is told
(sizes of complete types, numbers, branches), and only the rest becomes nodes, in the form that the target's dialect writes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import NOT_CONSTANT, constant, is_constant
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.shapes import broadcast, contiguous, shape_of
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type, spell


class Known:
    """A value known now: a number, a string, None, or a list of them."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))

    def __repr__(self) -> str:
        return f"Known({self.value!r})"


class Items:
    """A list or tuple whose elements are known one by one, though not all what they are."""

    __slots__ = ("items", "is_tuple", "type")

    def __init__(self, items: Sequence[Item], is_tuple: bool, type: Type) -> None:
        self.items = list(items)
        self.is_tuple = is_tuple
        self.type = type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self.items == other.items

    def __hash__(self) -> int:
        return hash(tuple(self.items))

    def __repr__(self) -> str:
        return f"Items({self.items!r})"


Item = Value | Known | Items
"""What stands for a value of the formula: a value of the target, or what is known about it."""

NONE = Known(None)

ELEMENTWISE = frozenset(f"aten::{name}" for name in """
add sub mul div neg exp log sqrt rsqrt reciprocal sin cos tan tanh sigmoid abs sign pow relu where sinh cosh square erf log1p expm1
eq ne lt le gt ge minimum maximum clamp masked_fill logical_and logical_or logical_not
""".split())
"""Kinds whose result has the shape that the operands broadcast to."""
MUTATORS = frozenset(("aten::append", "aten::_set_item", "aten::extend", "aten::add_", "aten::insert", "aten::pop", "aten::clear",
                      "aten::Delete", "aten::reverse", "aten::sort", "aten::remove"))
"""Kinds that change the list they are given."""
MAX_ROUNDS = 64
"""Longer loops stay loops."""
SIZED = frozenset(("aten::sum_to_size", "aten::_grad_sum_to_size", "aten::expand", "aten::reshape", "aten::view", "aten::zeros"))
"""Kinds whose result has the shape that an operand names."""


def item_of(value: Value) -> Item:
    """What is known of a value of a graph: constants, and lists and tuples put together from values."""
    if is_constant(value):
        found = constant(value)
        return value if found is NOT_CONSTANT or isinstance(found, TensorLiteral) else Known(found)
    node = value.node
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
        return Items([item_of(each) for each in node.inputs], node.kind == "prim::TupleConstruct", value.type)
    return value


class Inliner:
    """Evaluates graphs in parts; what remains goes to `build`'s insertion point."""

    def __init__(self, graph: Graph, build: Builder, facts: dict[Value, Type],
                 take: Callable[[Value], Value] = lambda value: value) -> None:
        self.graph = graph
        self.build = build
        self.facts = facts
        """Types that are known to hold though the graph does not say so."""
        self.take = take
        """The value of this graph that stands for a value of another one."""
        self.constants: dict[tuple[object, ...], Value] = {}
        self.sizes: dict[Value, Value] | None = None
        """Sizes asked for so far, each made once, right behind the value; None: they are asked for where they are wanted."""

    def new_block(self) -> None:
        """Constants made so far cannot be read from where nodes go now."""
        self.constants = {}

    # -- evaluation
    def run(self, block: Block, env: dict[Value, Item], wanted: set[Node] | None = None,
            replaced: Callable[[Node, dict[Value, Item]], bool] = lambda node, env: False) -> list[Item]:
        """Evaluate the nodes of a block (those `wanted`), whose inputs are in `env`; gives its results where they are in `env`.

        `replaced` may put a node's results into `env` itself.
        """
        for node in block:
            if (wanted is None or node in wanted) and not replaced(node, env):
                self.step(node, env)
        return [env[value] for value in block.outputs if value in env]

    def step(self, node: Node, env: dict[Value, Item]) -> None:
        """Evaluate one node."""
        if node.kind in IF_KINDS and len(node.blocks) == 2:
            self.choose(node, env)
            return
        if node.blocks:
            if not self.unroll(node, env):
                self.copy_loop(node, env)
            return
        if node.kind in MUTATORS and not isinstance(env[node.inputs[0]], Value):
            if self.mutate(node, env):
                return
            self.settle((node.inputs[0],), env)
        if is_constant(node.outputs[0]) if node.outputs else False:
            found = item_of(node.outputs[0])
            env[node.outputs[0]] = found if not isinstance(found, Value) else self.copy(node, [], env)[0]
            return
        operands = [env[value] for value in node.inputs]
        results = self.told(node, operands)
        if results is None:
            results = self.copy(node, operands, env)
        env.update(zip(node.outputs, results, strict=True))

    def choose(self, node: Node, env: dict[Value, Item]) -> None:
        """An `If`: the branch that is taken, or both."""
        condition = env[node.inputs[0]]
        if isinstance(condition, Known):
            results = self.run(node.blocks[0 if condition.value else 1], env)
            env.update(zip(node.outputs, results, strict=True))
            return
        assert isinstance(condition, Value)
        self.settle(_mutated(node), env)
        build, outer = self.build, self.constants
        made = build.node("prim::If", (self.value(condition, types.BOOL),))
        after, branches = made.next, []
        for block in node.blocks:
            self.constants = dict(outer)
            inner = made.add_block()
            build.at_end(inner)
            branches.append((inner, self.run(block, env)))
        for place, output in enumerate(node.outputs):
            given = [results[place] for _, results in branches]
            if not isinstance(given[0], Value) and given[0] == given[1]:
                env[output] = given[0]
                continue
            for inner, results in branches:
                self.constants = {}
                inner.add_output(self.value(results[place], output.type, build.at_end(inner)))
            env[output] = made.add_output(self.graph.fresh_id(), self.spelled(output.type))
        build.before(after)
        self.constants = outer

    def unroll(self, node: Node, env: dict[Value, Item]) -> bool:
        """Run a loop whose number of rounds is known and small, round by round; says whether it is one."""
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

    def mutate(self, node: Node, env: dict[Value, Item]) -> bool:
        """Change a list that is known element by element; says whether the change was one that can be made."""
        target = env[node.inputs[0]]
        given = [env[value] for value in node.inputs[1:]]
        if not isinstance(target, Items):
            return False
        if node.kind == "aten::append":
            target.items.append(given[0])
        elif node.kind == "aten::_set_item":
            place = _place(given[0], len(target.items))
            if place is None:
                return False
            target.items[place] = given[1]
        elif node.kind in ("aten::extend", "aten::add_"):
            more = elements(given[0])
            if more is None:
                return False
            target.items.extend(more)
        else:
            return False
        for output in node.outputs:
            env[output] = target
        return True

    def settle(self, values: Iterable[Value], env: dict[Value, Item]) -> None:
        """Lists that nodes are going to change become lists of the target."""
        for value in values:
            item = env.get(value)
            if isinstance(item, Items):
                made = self.value(item, value.type, is_changed=True)
                for key, other in env.items():
                    if other is item:
                        env[key] = made

    def copy_loop(self, node: Node, env: dict[Value, Item]) -> None:
        """A loop (or another node with blocks) is copied; nothing is told from one round to the next."""
        if node.kind not in LOOP_KINDS:
            raise UnsupportedError(f"{node.kind} in a gradient formula is not supported")
        self.settle(_mutated(node), env)
        build, outer = self.build, self.constants
        made = build.node(node.kind, [self.value(env[value], value.type) for value in node.inputs])
        for output in node.outputs:
            env[output] = made.add_output(self.graph.fresh_id(), self.spelled(output.type))
        after = made.next
        inner = made.add_block()
        for value in node.blocks[0].inputs:
            env[value] = inner.add_input(self.graph.fresh_id(), self.spelled(value.type))
        self.constants = {}
        build.at_end(inner)
        results = self.run(node.blocks[0], env)
        inner.set_outputs([self.value(item, value.type) for item, value in zip(results, node.blocks[0].outputs, strict=True)])
        build.before(after)
        self.constants = outer

    # -- what can be told
    def type_of(self, item: Item) -> Type:
        """The best type known for a value of the target."""
        assert isinstance(item, Value)
        return self.facts.get(item, item.type)

    def size_of(self, value: Value) -> Value:
        """`aten::size(value)`, made once."""
        assert self.sizes is not None
        found = self.sizes.get(value)
        if found is None:
            build = Builder(self.graph)
            if value.is_block_input:
                build.at_start(value.node.owner_block)
            else:
                build.after(value.node)
            found = self.sizes[value] = build.node("aten::size", (value,), output_types=(types.list_of(types.INT),)).output
        return found

    def told(self, node: Node, operands: list[Item]) -> list[Item] | None:
        """The results as far as they can be told without a node; None when they cannot."""
        rule = _RULES.get(node.kind)
        if rule is not None:
            found = rule(self, node, operands)
            if found is not None:
                return found
        known = [whole(operand) for operand in operands]
        if node.inputs and all(isinstance(each, Known) for each in known) and not any(_holds_tensor(v.type) for v in node.outputs):
            from irtool.ops.folding import evaluate, is_foldable

            if is_foldable(node.kind):
                values = evaluate(node, [each.value for each in known if isinstance(each, Known)])
                if values is not None:
                    return [_listed(value, output.type) for value, output in zip(values, node.outputs, strict=True)]
        return None

    # -- nodes
    def copy(self, node: Node, operands: list[Item], env: dict[Value, Item]) -> list[Item]:
        """A node of the target that does what `node` does."""
        if self.graph.dialect.attribute_arguments and schema_of(node) is not None:
            made = self.build.call_node(node.kind, *[self.argument(item) for item in operands],
                                        types=[self.result_type(node, v, operands) for v in node.outputs])
        else:
            inputs = [self.value(item, value.type) for item, value in zip(operands, node.inputs, strict=True)]
            made = self.build.node(node.kind, inputs, node.attributes, [self.result_type(node, v, operands) for v in node.outputs])
        for old, new in zip(node.outputs, made.outputs, strict=True):
            fact = self.fact(node, old, operands)
            if fact is not None:
                self.facts[new] = fact
        return list(made.outputs)

    def argument(self, item: Item) -> object:
        """An item as the builder takes it: values, and Python values for what is known."""
        if isinstance(item, Known):
            return item.value
        if isinstance(item, Items):
            return [self.argument(each) for each in item.items]
        return self.take(item)

    def value(self, item: Item, type: Type, build: Builder | None = None, is_changed: bool = False) -> Value:
        """An item as a value of the target, a constant where it is known (and nobody is going to change it)."""
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
        return build.construct_list([self.value(each, element, build) for each in item.items], element)

    def constant(self, value: object, type: Type, build: Builder) -> Value:
        """A constant node."""
        held = type.element if isinstance(type, OptionalType) else type
        if value is None:
            return build.constant(None)
        if isinstance(value, (list, tuple)) and isinstance(held, (ListType, TupleType)):
            return build.constant(value, held)
        return build.constant(value, types.DEVICE if held.key == types.DEVICE.key else None)

    def spelled(self, type: Type) -> Type:
        """A formula's type in the target's dialect."""
        return spell(type, self.graph.dialect)

    def result_type(self, node: Node, output: Value, operands: list[Item]) -> Type:
        """The type of a result: of an elementwise operator, its first tensor's where the shape is the same; else what the formula says."""
        if node.kind in ELEMENTWISE and node.kind not in _NOT_FIRST and isinstance(output.type, TensorType) and operands \
                and isinstance(operands[0], Value):
            shape = self.shape_after(node, operands)
            first = operands[0].type
            if shape is not None and isinstance(first, TensorType) and first.shape == shape:
                return contiguous(first, self.graph.dialect)
        return self.spelled(output.type)

    def fact(self, node: Node, output: Value, operands: list[Item]) -> Type | None:
        """A more exact type of a result than the one it shows, when its shape is known."""
        if not isinstance(output.type, TensorType):
            return None
        shape = self.shape_after(node, operands)
        return None if shape is None else types.tensor_type(sizes=shape)

    def shape_after(self, node: Node, operands: list[Item]) -> tuple[int, ...] | None:
        """The shape of a node's result, for the kinds for which that is easily told."""
        if node.kind in ELEMENTWISE:
            shapes = []
            for operand in operands:
                if isinstance(operand, Value) and isinstance(operand.type, TensorType):
                    shape = shape_of(self.type_of(operand))
                    if shape is None:
                        return None
                    shapes.append(shape)
            return broadcast(shapes)
        if node.kind in SIZED:
            sizes = next((_int_list(operand) for operand in operands if isinstance(operand, (Known, Items))), None)
            return tuple(sizes) if sizes is not None and all(size >= 0 for size in sizes) else None
        return None


_NOT_FIRST = frozenset(("aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::where", "aten::logical_and",
                        "aten::logical_or", "aten::logical_not"))
"""Elementwise kinds whose result has another dtype than the first operand."""


def _holds_tensor(type: Type) -> bool:
    return isinstance(type, TensorType) or any(_holds_tensor(element) for element in type.elements)


def whole(item: Item) -> Item:
    """A list whose elements are all known, as one value."""
    if isinstance(item, Items):
        parts = [whole(each) for each in item.items]
        if all(isinstance(part, Known) for part in parts):
            values = [part.value for part in parts if isinstance(part, Known)]
            return Known(tuple(values) if item.is_tuple else values)
    return item


def _listed(value: object, type: Type) -> Item:
    """A list that was computed, element by element, so that it can be changed."""
    return Items([Known(each) for each in value], False, type) if isinstance(value, list) else Known(value)


def _mutated(node: Node) -> list[Value]:
    """Values that nodes in the blocks of `node` change."""
    return [inner.inputs[0] for block in node.blocks for inner in block.walk() if inner.kind in MUTATORS]


def _int_list(item: Item) -> list[int] | None:
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)) and all(isinstance(n, int) for n in item.value):
        return list(item.value)
    if isinstance(item, Items) and all(isinstance(each, Known) and isinstance(each.value, int) for each in item.items):
        return [each.value for each in item.items if isinstance(each, Known) and isinstance(each.value, int)]
    return None


# -- rules: results that can be told from what is known of the operands
Rule = Callable[[Inliner, Node, list[Item]], list[Item] | None]


def _construct(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item]:
    return [Items(operands, node.kind == "prim::TupleConstruct", node.output.type)]


def elements(item: Item) -> list[Item] | None:
    """The elements of a list or tuple, when they are known one by one."""
    if isinstance(item, Items):
        return item.items
    if isinstance(item, Known) and isinstance(item.value, (list, tuple)):
        return [Known(value) for value in item.value]
    return None


def _unpack(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    found = elements(operands[0])
    return found if found is not None and len(found) == len(node.outputs) else None


def _pick(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    found = elements(operands[0])
    place = None if found is None or len(operands) < 2 else _place(operands[1], len(found))
    return None if found is None or place is None else [found[place]]


def _place(index: Item, length: int) -> int | None:
    """An index that is known and in range."""
    if isinstance(index, Known) and isinstance(index.value, int) and -length <= index.value < length:
        return index.value
    return None


def _length(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    if isinstance(operands[0], Value):
        shape = shape_of(inliner.type_of(operands[0]))
        return [Known(shape[0])] if shape else None
    found = elements(operands[0])
    return None if found is None else [Known(len(found))]


def _size(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    if not isinstance(operands[0], Value):
        return None
    shape = shape_of(inliner.type_of(operands[0]))
    if shape is None:
        return [inliner.size_of(operands[0])] if len(operands) == 1 and inliner.sizes is not None else None
    if len(operands) == 1:
        return [Known(list(shape))]
    place = operands[1]
    if isinstance(place, Known) and isinstance(place.value, int) and -len(shape) <= place.value < len(shape):
        return [Known(shape[place.value])]
    return None


def _rank(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    type = inliner.type_of(operands[0]) if isinstance(operands[0], Value) else types.TENSOR
    rank = type.rank if isinstance(type, TensorType) else None
    return None if rank is None else [Known(rank)]


def _sum_to_size(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    if operands[1] == NONE:
        return [operands[0]]
    shape = shape_of(inliner.type_of(operands[0])) if isinstance(operands[0], Value) else None
    sizes = _int_list(operands[1])
    return [operands[0]] if shape is not None and sizes is not None and list(shape) == sizes else None


def _size_if_not_equal(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    first, second = _int_list(operands[0]), _int_list(operands[1])
    if operands[0] == operands[1] and isinstance(operands[0], Value):
        return [NONE]
    if first is None or second is None:
        return None
    return [NONE if first == second else operands[0]]


def _same_object(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    wanted = node.kind == "aten::__is__"
    if all(isinstance(operand, Known) for operand in operands):
        same = operands[0] == operands[1]
    elif NONE in operands:
        other = next(operand for operand in operands if operand != NONE)
        if isinstance(other, Value) and other not in inliner.facts and not _is_certain(other):
            return None
        same = False
    else:
        return None
    return [Known(same is wanted)]


def _is_certain(value: Value) -> bool:
    """Is it never None? A tensor handed over as a gradient may be."""
    return not isinstance(value.type, (OptionalType, TensorType)) and value.type.key not in ("Any", "None")


def _times(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    """`x * 1` is x, where one is a number and the result keeps its dtype."""
    if len(operands) == 2 and isinstance(operands[0], Value) and isinstance(operands[1], Known) and _is_one(operands[1].value):
        return [operands[0]]
    if node.kind == "aten::mul" and len(operands) == 2 and isinstance(operands[1], Value) and isinstance(operands[0], Known) \
            and _is_one(operands[0].value):
        return [operands[1]]
    return None


def _real_already(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    """The conjugate of what is known to be real."""
    if not isinstance(operands[0], Value):
        return None
    found = [type.dtype for type in (inliner.type_of(operands[0]), operands[0].type) if isinstance(type, TensorType) and type.dtype]
    return [operands[0]] if found and not found[0].startswith("complex") else None


def _is_one(value: object) -> bool:
    return type(value) is int and value == 1 or type(value) is float and value == 1.0


def _through(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    return [operands[0]]


def _dtype_of(inliner: Inliner, item: Item) -> str | None:
    """The dtype of a tensor, when its type tells it."""
    type = inliner.type_of(item) if isinstance(item, Value) else None
    if isinstance(type, TensorType) and type.dtype is None and isinstance(item, Value):
        type = item.type        # a fact may tell the shape only
    return type.dtype if isinstance(type, TensorType) else None


def _is_complex(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    dtype = _dtype_of(inliner, operands[0])
    return None if dtype is None else [Known(dtype.startswith("complex"))]


def _real_already(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    dtype = _dtype_of(inliner, operands[0])
    return None if dtype is None or dtype.startswith("complex") else [operands[0]]


def _cast_unless_known(inliner: Inliner, node: Node, operands: list[Item]) -> list[Item] | None:
    return [operands[0]] if isinstance(operands[0], (Known, Items)) else None


_RULES: dict[str, Rule] = {
    "prim::ListConstruct": _construct, "prim::TupleConstruct": _construct,
    "prim::TupleUnpack": _unpack, "prim::ListUnpack": _unpack, "prim::TupleIndex": _pick, "aten::__getitem__": _pick,
    "aten::len": _length, "aten::size": _size, "aten::dim": _rank,
    "aten::sum_to_size": _sum_to_size, "aten::_grad_sum_to_size": _sum_to_size, "aten::_size_if_not_equal": _size_if_not_equal,
    "aten::is_complex": _is_complex, "aten::conj": _real_already, "aten::real": _real_already, "aten::resolve_conj": _real_already,
    "aten::__is__": _same_object, "aten::__isnot__": _same_object,
    "aten::conj": _real_already, "aten::resolve_conj": _real_already,
    "aten::mul": _times, "aten::div": _times,
    "prim::unchecked_cast": _cast_unless_known, "prim::unchecked_unwrap_optional": _cast_unless_known,
}


def finish(inliner: Inliner, results: Sequence[Item], wanted: Sequence[Type]) -> list[Any]:
    """Items as values of the target; None stays None."""
    return [None if item == NONE else inliner.value(item, type) for item, type in zip(results, wanted, strict=True)]
