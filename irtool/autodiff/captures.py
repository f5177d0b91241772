"""What a reverse graph takes: gradients of outputs of f, and the values of f that it reads.

The reverse graph is built apart from f. A value of f that it reads is captured: for the time being a node on top of df stands for it,
and at the end it becomes an input of df, and an output of f where it was neither input nor output.

    captures.take(value)            the value of df for one of f
    captures.note(copy, value)      a value of df has the shape and dtype of another
    captures.lift(real_outputs)     at the end: where each captured value comes from
    captures.in_order(inputs)       at the end: df with these inputs
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from irtool.autodiff.loop_captures import Round
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import is_constant
from irtool.ir.effects import CHOICE_KINDS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.rewrite import clone_node
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type, same, spell, tensor_type

SOURCE = "prim::Uninitialized"
"""The kind of the nodes that stand for inputs while df is being made."""
ANY_DTYPE = "any"
"""In place of a dtype that only the run knows."""


class Captures:
    """f, df as far as it is made, and what df takes from f."""

    def __init__(self, f: Graph, modern: bool, dtypes: Mapping[Value, str]) -> None:
        self.f = f
        self.modern = modern
        self.dtypes = dict(dtypes)
        self.df = Graph(f.dialect)
        self.df.is_reverse = True
        self.build = Builder(self.df)
        self.facts: dict[Value, Type] = {}
        """Types that are known to hold though the value does not show them."""
        self.at_top: dict[Value, Value] = {}
        """Value at the top level of f -> the value of df that stands for it."""
        self.in_blocks: dict[Value, Value] = {}
        """The same for values computed in branches and loops of f."""
        self.constants: dict[Value, Value] = {}
        """Constant of f -> its copy in df."""
        self.exports: dict[Value, Value] = {}
        """Result of an `If` of f that was added for df -> the value of a branch that it gives."""
        self.rounds: dict[Block, Round] = {}
        """Body of a loop of f -> the block of df that goes back through it."""
        self.saved_lists: dict[Value, tuple[Value, Round]] = {}
        """List of f in which the values of each round are saved -> the value, and whose rounds."""
        self.read: set[Value] = set()
        """The values of df that something reads, as soon as df is made."""
        self.tensor = spell(types.TENSOR, f.dialect)

    # -- values of f in df
    def take(self, value: Value) -> Value:
        """The value of df for one of f: itself where it is one of df already, else a capture."""
        if value.node.graph is self.df:
            return value
        if is_constant(value):
            return self.lifted(value)
        stand_in = self.stand_in(value)
        block = value.node.owner_block
        if stand_in is None and block is not self.f.block:
            round = self.rounds.get(block)
            stand_in = self.in_blocks[value] = self.take(self.exported(value)) if round is None else self.of_round(value, round)
            self.note(stand_in, value)
        if stand_in is None:
            stand_in = self.at_top[value] = self.source(self.type_like(value.type))
            self.note(stand_in, value)
        return stand_in

    def stand_in(self, value: Value) -> Value | None:
        """The value of df that stands for one of f; None where it is not captured."""
        return self.at_top.get(value) or self.in_blocks.get(value)

    def of_round(self, value: Value, round: Round) -> Value:
        """The value of df that stands for a value of one round of a loop: an element of a list that f fills, round by round."""
        if value is round.body.inputs[0]:
            return round.index
        inner = self.saved_lists.get(value)
        element = self.element_type(value.type)
        saved = round.save(value, element, None if inner is None else inner[1].body.owning_node)
        self.saved_lists[saved] = value, round
        item = round.fetch("aten::__getitem__", self.take(saved), element)
        self.note(item, value)
        return item

    def lifted(self, value: Value) -> Value:
        """A constant is one of df too: a captured tensor without dimensions would no longer be a number that promotes nothing."""
        lifted = self.constants.get(value)
        if lifted is None:
            copy = clone_node(value.node, {}, None, self.df)
            self.df.block.prepend(copy)
            lifted = self.constants[value] = copy.outputs[0]
            self.note(lifted, value)
        return lifted

    def exported(self, value: Value) -> Value:
        """A value computed in a branch of f as a result of the `If` around it (and of those around that, up to a loop)."""
        inner_value, block = value, value.node.owner_block
        while block is not self.f.block and block not in self.rounds:
            owner = block.owning_node
            if owner is None or owner.kind not in CHOICE_KINDS:
                raise UnsupportedError(f"a gradient needs %{value.name}, which is computed in a block of {owner.kind if owner else '?'}",
                                       code="E0501")
            for inner in owner.blocks:
                if inner is block:
                    inner.add_output(value)
                else:
                    inner.add_output(Builder(self.f).at_end(inner).nothing(value.type))
            value = owner.add_output(self.f.fresh_id(), value.type)
            block = owner.owner_block
        self.exports[value] = inner_value
        return value

    def note(self, copy: Value, value: Value) -> None:
        """A value of df has the shape and the dtype of another value, of f or of df."""
        if value in self.dtypes:
            self.dtypes[copy] = self.dtypes[value]
        type = self.facts.get(value, value.type)
        if isinstance(type, TensorType) and type.shape is not None:
            self.facts[copy] = type

    # -- inputs of df
    def source(self, type: Type) -> Value:
        """What will be an input of df: for now the result of a node on top, which stands above everything that may read it."""
        return self.df.block.prepend(Node(SOURCE)).add_output(self.df.fresh_id(), type)

    def new_input(self, value: Value) -> Value:
        """An input of df for the gradient of a value of f."""
        incoming = self.source(self.incoming_type(value.type))
        self.note(incoming, value)
        return incoming

    def incoming_type(self, type: Type) -> Type:
        """The type of a gradient that comes in: that of its value, as far as a gradient has one."""
        return without_none(type, self.type_like)

    # -- types of values of df
    def type_like(self, type: Type) -> Type:
        """The type of a gradient of, or of a copy of, a value: in the form of 2018 the same, later without flag and strides."""
        if not self.modern or not isinstance(type, TensorType) or type.undefined:
            return type
        return spell(tensor_type(type.dtype, type.sizes, None, None, type.device), self.df.dialect)

    def gradient_type(self, type: Type) -> Type:
        """The type of a gradient while nothing is known of its shape."""
        return self.element_type(without_none(type, lambda tensor: tensor))

    def element_type(self, type: Type) -> Type:
        """The type under which a list holds values of this type: a tensor of any kind."""
        return self.tensor if isinstance(type, TensorType) else type

    # -- at the end
    def values_read(self, but: frozenset[str] = frozenset()) -> set[Value]:
        """The values of df that something reads, nodes of some kinds aside: what uses would tell, for less."""
        read = set(self.df.outputs)
        for node in self.df.walk():
            if node.kind not in but:
                read.update(node.inputs)
            for block in node.blocks:
                read.update(block.outputs)
        return read

    def become(self, stand_in: Value, kind: str, attributes: Mapping[str, Attribute], operands: Iterable[Value]) -> Node:
        """The node that stands for a value of f computes it instead."""
        node = stand_in.node
        node.kind, node.attributes = kind, attributes
        node.set_inputs(operands)
        return node

    def lift(self, real_outputs: int) -> tuple[list[int], list[int], list[Value]]:
        """Say where each captured value comes from: inputs of f, outputs of f, and the values that become temporaries since they are
        neither."""
        f = self.f
        captured_inputs: list[int] = []
        captured_outputs: list[int] = []
        positions = {value: i for i, value in reversed(list(enumerate(f.outputs)))}
        places = {value: i for i, value in enumerate(f.inputs)}
        temporaries: list[Value] = []
        self.read = self.values_read()
        ordered = [value for value in (*f.inputs, *[value for node in f.block for value in node.outputs]) if value in self.at_top]
        for value in ordered:
            if self.at_top[value] not in self.read:
                continue
            if value in positions:
                captured_outputs.append(positions[value])
            elif value in places:
                captured_inputs.append(places[value])
            else:
                captured_outputs.append(len(f.outputs) + len(temporaries))
                temporaries.append(value)
        f.block.set_outputs((*f.outputs, *temporaries))
        return captured_inputs, captured_outputs, temporaries

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
