"""What a reverse graph takes: gradients of outputs of f, and the values of f that it reads.

The reverse graph is built apart from f. A value of f that it reads is captured: for the time being a node on top of df stands for it,
and at the end it becomes an input of df, and an output of f where it was neither input nor output.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from irtool.autodiff.loop_captures import Round, ask_again, gradient_in_df, hand_in, saved
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import is_constant
from irtool.ir.effects import CHOICE_KINDS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import NO_ATTRIBUTES, Block, Graph, Node, Value
from irtool.ir.rewrite import clone_node, replace_node
from irtool.ir.structure_kinds import SIZE_QUESTIONS
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type, same, spell, tensor_type
from irtool.partial.items import Item

SAME = "prim::AutogradAdd"
"""The kind of nodes of one operand that give a gradient a name of its own while df is being made."""
SOURCE = "prim::Uninitialized"
"""The kind of the nodes that stand for inputs while df is being made."""


class Captures:
    """f, df as far as it is made, and what df takes from f."""

    def __init__(self, f: Graph, needs: set[Value], modern: bool, dtypes: Mapping[Value, str]) -> None:
        self.f = f
        self.needs = needs
        self.modern = modern
        self.dtypes = dict(dtypes)
        self.df = Graph(f.dialect)
        self.df.is_reverse = True
        self.build = Builder(self.df)
        self.facts: dict[Value, Type] = {}
        """Types that are known to hold though the value does not show them."""
        self.captures: dict[Value, Value] = {}
        """Value of f -> the value of df that stands for it."""
        self.inner_captures: dict[Value, Value] = {}
        """The same for values computed in branches of f."""
        self.constants: dict[Value, Value] = {}
        """Constant of f -> its copy in df."""
        self.exports: dict[Value, Value] = {}
        """Result of an `If` of f that was added for df -> the value of a branch that it gives."""
        self.gradients: dict[Value, Item] = {}
        """Value of f -> its gradient so far."""
        self.inner_gradients: dict[Value, Item] = {}
        """Value computed in a branch of f -> its whole gradient, made in the branch of df for that."""
        self.rounds: dict[Block, Round] = {}
        """Body of a loop of f -> the block of df that goes back through it."""
        self.kept: dict[Value, tuple[Value, Round]] = {}
        """List of f in which the values of each round are kept -> the value, and whose rounds."""
        self.counted: dict[Node, Value] = {}
        """Loop of f -> the number of its rounds, where that had to be counted."""
        self.same: list[Node] = []
        """Nodes of df that only give a gradient another name."""
        self.vjps: list[tuple[int, Value]] = []
        """Output of f -> the value of df that stands for its gradient."""
        self.read: set[Value] = set()
        """The values of df that something reads, as soon as df is made."""
        self.tensor = spell(types.TENSOR, f.dialect)

    def new_input(self, value: Value) -> Value:
        """An input of df for the gradient of a value of f."""
        given = self.source(self.type_given(value.type))
        self.note(given, value)
        return given

    def type_given(self, type: Type) -> Type:
        """The type of a gradient that comes in: that of its value, as far as a gradient has one."""
        return without_none(type, self.type_like)

    def source(self, type: Type) -> Value:
        """What will be an input of df: for now the result of a node on top, which stands above everything that may read it."""
        return self.df.block.prepend(Node(SOURCE)).add_output(self.df.fresh_id(), type)

    def take(self, value: Value) -> Value:
        """The value of df for one of f: itself where it is one of df already, else a capture."""
        if value.node.graph is self.df:
            return value
        if is_constant(value):
            return self.lifted(value)
        found = self.captures.get(value) or self.inner_captures.get(value)
        block = value.node.owner_block
        if found is None and block is not self.f.block:
            round = self.rounds.get(block)
            found = self.inner_captures[value] = self.take(self.exported(value)) if round is None else saved(self, value, round)
            self.note(found, value)
        if found is None:
            found = self.captures[value] = self.source(self.type_like(value.type))
            self.note(found, value)
        return found

    def lifted(self, value: Value) -> Value:
        """A constant is one of df too: a captured tensor without dimensions would no longer be a number that promotes nothing."""
        found = self.constants.get(value)
        if found is None:
            copy = clone_node(value.node, {}, None, self.df)
            self.df.block.prepend(copy)
            found = self.constants[value] = copy.outputs[0]
            self.note(found, value)
        return found

    def note(self, own: Value, value: Value) -> None:
        """A value of df has the shape of a value of f."""
        if value in self.dtypes:
            self.dtypes[own] = self.dtypes[value]
        type = self.facts.get(value, value.type)
        if isinstance(type, TensorType) and type.shape is not None:
            self.facts[own] = type

    def type_like(self, type: Type) -> Type:
        """The type of a gradient of, or of a copy of, a value: in the form of 2018 the same, later without flag and strides."""
        if not self.modern or not isinstance(type, TensorType) or type.undefined:
            return type
        return spell(tensor_type(type.dtype, type.sizes, None, None, type.device), self.df.dialect)

    def gradient_type(self, type: Type) -> Type:
        """The type of a gradient while nothing is known of its shape."""
        held = without_none(type, lambda tensor: tensor)
        return self.tensor if isinstance(held, TensorType) else held

    def exported(self, value: Value) -> Value:
        """A value computed in a branch of f as a result of the `If` around it (and of those around that, up to a loop)."""
        inner_value, block = value, value.node.owner_block
        while block is not self.f.block and block not in self.rounds:
            owner = block.owning_node
            if owner is None or owner.kind not in CHOICE_KINDS:
                raise UnsupportedError(f"a gradient needs %{value.name}, which is computed in a block of {owner.kind if owner else '?'}")
            for inner in owner.blocks:
                if inner is block:
                    inner.add_output(value)
                else:
                    inner.add_output(Builder(self.f).at_end(inner).nothing(value.type))
            value = owner.add_output(self.f.fresh_id(), value.type)
            block = owner.owner_block
        self.exports[value] = inner_value
        return value

    def recompute_sizes(self) -> None:
        """The size of a value that is captured anyway is asked for in df rather than captured too."""
        ask_again(self)
        outputs = set(self.f.outputs)
        read = self.values_read()
        for value, own in list(self.captures.items()):
            node = self.exports.get(value, value).node
            if node.kind in ("aten::size", "prim::dtype") and len(node.inputs) == 1 and own in read:
                whole = self.captures.get(node.inputs[0]) or self.inner_captures.get(node.inputs[0])
                if whole is not None and whole in read and value not in outputs:
                    del self.captures[value]
                    self.ask(node.kind, own, whole, value in self.exports)

    def values_read(self, but: frozenset[str] = frozenset()) -> set[Value]:
        """The values of df that something reads, nodes of some kinds aside: what uses would tell, for less."""
        read = set(self.df.outputs)
        for node in self.df.walk():
            if node.kind not in but:
                read.update(node.inputs)
            for block in node.blocks:
                read.update(block.outputs)
        return read

    def become(self, own: Value, kind: str, attributes: Mapping[str, Attribute], operands: Iterable[Value]) -> Node:
        """The node that stands for a value of f computes it instead."""
        node = own.node
        node.kind, node.attributes = kind, attributes
        node.set_inputs(operands)
        return node

    def ask(self, kind: str, own: Value, whole: Value, is_inner: bool) -> None:
        """A captured size is asked for in df: at the top, or in the branches that read it, where what was captured is there."""
        if not is_inner:
            self.become(own, kind, NO_ATTRIBUTES, (whole,)).move_after(whole.node)
            return
        made: dict[Block, Value] = {}
        for user, slot in own.uses:
            block = user.owner_block
            while (owner := block.owning_node) is not None and owner.owner is not self.df.block:
                block = owner.owner_block
            if block not in made:
                made[block] = self.build.at_start(block).node(kind, (whole,), output_types=(own.type,)).output
            user.replace_input(slot, made[block])

    def save_sizes(self) -> None:
        """What is captured only to be asked for its size is not: f asks, where it is computed."""
        read = self.values_read(SIZE_QUESTIONS)
        for value, own in list(self.captures.items()):
            if own in read:
                continue
            inner = self.exports.get(value, value)
            users = list(dict.fromkeys(user for user, _ in own.uses))
            if value in self.kept or inner.is_block_input or inner.node.blocks or inner.node.kind == "prim::AutogradAdd":
                continue        # it may be undefined
            if any(user.kind not in SIZE_QUESTIONS or len(user.inputs) != 1 for user in users):
                continue
            found: dict[str, Value] = {}
            for user in users:
                if user.kind not in found:
                    asked = Builder(self.f).after(inner.node).node(user.kind, (inner,), output_types=(user.output.type,)).output
                    found[user.kind] = self.take(asked)
                replace_node(user, (found[user.kind],))

    def lift(self, real_outputs: int) -> tuple[list[int], list[int]]:
        """Say where each captured value comes from; what is neither input nor output of f becomes a temporary. (inputs, outputs) of f."""
        f = self.f
        captured_inputs: list[int] = []
        captured_outputs: list[int] = []
        positions = {value: i for i, value in reversed(list(enumerate(f.outputs)))}
        places = {value: i for i, value in enumerate(f.inputs)}
        temporaries: list[Value] = []
        self.read = self.values_read()
        ordered = [value for value in (*f.inputs, *[value for node in f.block for value in node.outputs]) if value in self.captures]
        for value in ordered:
            if self.captures[value] not in self.read:
                continue
            if value in positions:
                captured_outputs.append(positions[value])
            elif value in places:
                captured_inputs.append(places[value])
            else:
                positions[value] = len(f.outputs) + len(temporaries)
                captured_outputs.append(positions[value])
                temporaries.append(value)
        f.block.set_outputs((*f.outputs, *temporaries))
        for value in temporaries:
            self.give_vjp(value, positions[value])
        for node in self.same:
            if node.owner is not None:
                replace_node(node, node.inputs)
        return captured_inputs, captured_outputs

    def give_vjp(self, value: Value, index: int) -> None:
        """A temporary is an output of f like any other: whoever differentiates df hands in its gradient."""
        if gradient_in_df(self, value) is not None:
            given = self.new_input(value)
            self.vjps.append((index, given))
            hand_in(self, value, given)

    def in_order(self, inputs: Sequence[Value]) -> Graph:
        """df takes `inputs` in this order, instead of the nodes that stood for them; its names are counted anew."""
        df = self.df
        df.block.results_to_inputs(inputs)
        for node in df.block:
            if node.kind == SOURCE and node.output not in self.read:
                node.remove()
        df.forget_uses()
        df.renumber()
        return df


def without_none(type: Type, of_tensor: Callable[[TensorType], Type]) -> Type:
    """The type of a gradient: where its value may be None it is undefined. `of_tensor`: the type of the gradient of a tensor."""
    if isinstance(type, OptionalType):
        return without_none(type.element, of_tensor)
    if isinstance(type, ListType):
        element = without_none(type.element, lambda tensor: tensor)
        return type if same(element, type.element) else types.list_of(element)
    if isinstance(type, TupleType):
        elements = [without_none(element, of_tensor) for element in type.elements]
        return type if all(map(same, elements, type.elements)) else types.tuple_of(elements)
    return of_tensor(type) if isinstance(type, TensorType) else type
