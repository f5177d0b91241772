"""The inputs of df: gradients of outputs of f, and captures, which are the values of f that df reads.

df is a graph separate from f. While df is under construction, a node at its top, the *stand-in*, represents each captured value. At the
end each stand-in becomes an input of df; a captured value that is neither input nor output of f becomes an output of f, a temporary.

    captures.take(value)            the value of df that stands for a value of f
    captures.note(copy, value)      declare that a value of df has the shape and dtype of another value
    captures.lift(real_outputs)     at the end: which inputs and outputs of f the captures are
    captures.in_order(inputs)       at the end: df with its inputs in order
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from irtool.analysis.made_dtypes import made_dtypes, widens
from irtool.autodiff.loop_captures import Round
from irtool.autodiff.reach import FLOATING
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import is_constant
from irtool.ir.edits import clone_node
from irtool.ir.effects import CHOICE_KINDS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type, same, spell, tensor_type
from irtool.ops.result_dtypes import CASTS, MAKES_COMPLEX

SOURCE = "prim::Uninitialized"
"""The kind of the nodes that stand for inputs while df is under construction."""
ANY_DTYPE = "any"
"""Stands for a dtype that only the run knows."""


def dtypes_by_type(graph: Graph) -> dict[Value, str]:
    """The dtype of each tensor whose type states it."""
    return {value: value.type.dtype for value in graph.values() if isinstance(value.type, TensorType) and value.type.dtype is not None}


def dtypes_or_any(graph: Graph) -> dict[Value, str]:
    """The dtype of each tensor, ANY_DTYPE where its type does not state it."""
    return {value: value.type.dtype or ANY_DTYPE for value in graph.values() if isinstance(value.type, TensorType)}


def mixed_dtypes(graph: Graph) -> dict[Value, str]:
    """`dtypes_or_any` of a graph whose inputs nobody knows; empty unless types state that several floating-point dtypes occur, or one of
    a graph that may make another, or numbers are complex, or some tensors are complex and others do not say, or the graph makes tensors of
    float64 itself."""
    dtypes = dtypes_or_any(graph)
    stated = {dtype for dtype in dtypes.values() if dtype in FLOATING}
    changing = CASTS if stated else MAKES_COMPLEX
    is_mixed = len(stated) > 1 or any(dtype.startswith("complex") for dtype in stated) and ANY_DTYPE in dtypes.values() \
        or any(node.kind in changing for node in graph.walk()) or any(value.type.key == "complex" for value in graph.values()) \
        or (widens(graph, stated) if stated else "float64" in made_dtypes(graph))
    return dtypes if is_mixed else {}


class Captures:
    """f, df under construction, and the values of f that df takes."""

    def __init__(self, f: Graph, modern: bool, dtypes: Mapping[Value, str]) -> None:
        self.f = f
        self.modern = modern
        self.dtypes = dict(dtypes)
        self.df = Graph(f.dialect)
        self.df.is_reverse = True
        self.df.source = f.source
        self.build = Builder(self.df)
        self.facts: dict[Value, Type] = {}
        """Value -> a type more precise than the value's own that is known to hold."""
        self.at_top: dict[Value, Value] = {}
        """Value at the top level of f -> the value of df that stands for it."""
        self.in_blocks: dict[Value, Value] = {}
        """The same for values computed in branches and loops of f."""
        self.constants: dict[Value, Value] = {}
        """Constant of f -> its copy in df."""
        self.exports: dict[Value, Value] = {}
        """Result added to an `If` of f for the use of df -> the value of a branch that it exports."""
        self.rounds: dict[Block, Round] = {}
        """Body of a loop of f -> the body of df's loop for it."""
        self.saved_lists: dict[Value, tuple[Value, Round]] = {}
        """List of f that saves a value of every round -> that value, and the loop's rounds."""
        self.read: set[Value] = set()
        """The values of df that a node or result reads; set when df is complete."""
        self.tensor = spell(types.TENSOR, f.dialect)

    # -- values of f in df
    def take(self, value: Value) -> Value:
        """The value of df that stands for a value of f, captured if it is not yet; a value of df is returned unchanged."""
        home = value.node.owner
        if home is not None and home.graph is self.df:
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
        """The value of df that stands for a captured value of f; None if the value is not captured."""
        return self.at_top.get(value) or self.in_blocks.get(value)

    def of_round(self, value: Value, round: Round) -> Value:
        """The value of df that stands for a value computed in each round of a loop: f saves the values in a list, df reads an element."""
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
        """A copy in df of a constant of f. As a capture, a number would be a tensor without dimensions, and take part in promotion."""
        lifted = self.constants.get(value)
        if lifted is None:
            copy = clone_node(value.node, {}, None, self.df)
            self.df.block.prepend(copy)
            lifted = self.constants[value] = copy.outputs[0]
            self.note(lifted, value)
        return lifted

    def exported(self, value: Value) -> Value:
        """Export a value computed in a branch of f: add it to the results of the `If`s around it, up to the top level or a loop."""
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
        """Declare that `copy`, a value of df, has the shape and dtype of `value`, which is of f or of df."""
        if value in self.dtypes:
            self.dtypes[copy] = self.dtypes[value]
        type = self.facts.get(value, value.type)
        if isinstance(type, TensorType) and type.shape is not None:
            self.facts[copy] = type

    # -- inputs of df
    def source(self, type: Type) -> Value:
        """A stand-in for an input of df: the result of a node at the top of df, in front of all readers."""
        return self.df.block.prepend(Node(SOURCE)).add_output(self.df.fresh_id(), type)

    def new_input(self, value: Value) -> Value:
        """An input of df for the gradient of a value of f."""
        incoming = self.source(self.incoming_type(value.type))
        self.note(incoming, value)
        return incoming

    def incoming_type(self, type: Type) -> Type:
        """The type of df's input for the gradient of a value of this type; parts that may be None have undefined gradients."""
        return without_none(type, self.type_like)

    # -- types of values of df
    def type_like(self, type: Type) -> Type:
        """The type of a value's gradient or copy: in the form of 2018 the same type, later without `requires_grad` and strides."""
        if not self.modern or not isinstance(type, TensorType) or type.undefined:
            return type
        return spell(tensor_type(type.dtype, type.sizes, None, None, type.device), self.df.dialect)

    def gradient_type(self, type: Type) -> Type:
        """The type of a gradient of unknown shape."""
        return self.element_type(without_none(type, lambda tensor: tensor))

    def element_type(self, type: Type) -> Type:
        """The element type of a list of such values: `Tensor` for every tensor type, other types unchanged."""
        return self.tensor if isinstance(type, TensorType) else type

    # -- at the end
    def values_read(self, but: frozenset[str] = frozenset()) -> set[Value]:
        """The values of df that a node (of a kind not in `but`) or a result reads. One walk, cheaper than making the uses of all values."""
        read = set(self.df.outputs)
        for node in self.df.walk():
            if node.kind not in but:
                read.update(node.inputs)
            for block in node.blocks:
                read.update(block.outputs)
        return read

    def become(self, stand_in: Value, kind: str, attributes: Mapping[str, Attribute], operands: Iterable[Value]) -> Node:
        """Turn the stand-in of a value of f into a node of df that computes the value."""
        node = stand_in.node
        node.kind, node.attributes = kind, attributes
        node.set_inputs(operands)
        return node

    def lift(self, real_outputs: int) -> tuple[list[int], list[int], list[Value]]:
        """Add temporaries to the outputs of f. Returns the indices of captured inputs of f, those of captured outputs, and the values that
        became temporaries since they were neither."""
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
        """df with the stand-ins `inputs` as its inputs, in this order, and with its values renumbered."""
        df = self.df
        df.block.results_to_inputs(inputs)
        for node in df.block:
            if node.kind == SOURCE and node.output not in self.read:
                node.remove()
        df.forget_uses()
        df.renumber()
        return df


def without_none(type: Type, of_tensor: Callable[[TensorType], Type]) -> Type:
    """The type of the gradient of a value: without Optional, since the gradient of None is an undefined one. of_tensor: tensor type ->
    type of its gradient."""
    if isinstance(type, OptionalType):
        return without_none(type.element, of_tensor)
    if isinstance(type, ListType):
        element = without_none(type.element, lambda tensor: tensor)
        return type if same(element, type.element) else types.list_of(element)
    if isinstance(type, TupleType):
        elements = [without_none(element, of_tensor) for element in type.elements]
        return type if all(map(same, elements, type.elements)) else types.tuple_of(elements)
    return of_tensor(type) if isinstance(type, TensorType) else type
