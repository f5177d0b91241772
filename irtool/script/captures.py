"""What a reverse graph takes: gradients of outputs of f, and the values of f that it reads.

The reverse graph is built apart from f. A value of f that it reads is captured: for the time being a node on top of df stands for it,
and at the end it becomes an input of df, and an output of f where it was neither input nor output.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.effects import IF_KINDS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.rewrite import clone_node
from irtool.ir.types import ListType, TensorType, Type, spell, tensor_type
from irtool.script.items import Item

SOURCE = "prim::Uninitialized"
"""The kind of the nodes that stand for inputs while df is being made."""
NOTHING: dict[str, object] = {"bool": False, "int": 0, "float": 0.0, "str": ""}
"""By type, what a branch gives for a value that only the other one computes."""


class Captures:
    """f, df as far as it is made, and what df takes from f."""

    def __init__(self, f: Graph, needs: set[Value], modern: bool, dtypes: Mapping[Value, str]) -> None:
        self.f = f
        self.needs = needs
        self.modern = modern
        self.dtypes = dict(dtypes)
        self.df = Graph(f.dialect)
        self.build = Builder(self.df)
        self.facts: dict[Value, Type] = {}
        """Types that are known to hold though the value does not show them."""
        self.captures: dict[Value, Value] = {}
        """Value of f -> the value of df that stands for it."""
        self.inner_captures: dict[Value, Value] = {}
        """The same for values computed in branches of f."""
        self.gradients: dict[Value, Item] = {}
        """Value of f -> its gradient so far."""
        self.vjps: list[tuple[int, Value]] = []
        """Output of f -> the value of df that stands for its gradient."""
        self.tensor = spell(types.TENSOR, f.dialect)

    def new_input(self, value: Value) -> Value:
        """An input of df for the gradient of a value of f."""
        given = self.source(self.type_like(value.type))
        self.note(given, value)
        return given

    def source(self, type: Type) -> Value:
        """What will be an input of df: for now the result of a node on top, which stands above everything that may read it."""
        return self.df.block.prepend(Node(SOURCE)).add_output(self.df.fresh_id(), type)

    def take(self, value: Value) -> Value:
        """The value of df for one of f: itself where it is one of df already, else a capture."""
        if value.node.graph is self.df:
            return value
        found = self.captures.get(value) or self.inner_captures.get(value)
        if found is None and value.node.owner is not self.f.block:
            found = self.inner_captures[value] = self.take(self.exported(value))
            self.note(found, value)
        if found is None:
            found = self.captures[value] = self.source(self.type_like(value.type))
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

    def exported(self, value: Value) -> Value:
        """A value computed in a branch of f as a result of the `If` around it (and of those around that)."""
        block = value.node.owner_block
        while block is not self.f.block:
            owner = block.owning_node
            if owner is None or owner.kind not in IF_KINDS:
                raise UnsupportedError(f"a gradient needs %{value.name}, which is computed in a block of {owner.kind if owner else '?'}")
            for inner in owner.blocks:
                if inner is block:
                    inner.add_output(value)
                else:
                    inner.add_output(self.nothing(value.type, inner))
            value = owner.add_output(self.f.fresh_id(), value.type)
            block = owner.owner_block
        return value

    def nothing(self, type: Type, block: Block) -> Value:
        """A value that is never looked at, at the end of a block of f: of its type all the same, since it is handed from graph to graph."""
        build = Builder(self.f).at_end(block)
        if type.key in NOTHING:
            return build.constant(NOTHING[type.key])
        if isinstance(type, ListType):
            return build.node("prim::ListConstruct", output_types=(type,)).output
        kind = self.f.dialect.undefined_kind if isinstance(type, TensorType) else "prim::Uninitialized"
        return build.node(kind, output_types=(type,)).output

    def recompute_sizes(self) -> None:
        """The size of a value that is captured anyway is asked for in df rather than captured too."""
        outputs = set(self.f.outputs)
        for value, own in list(self.captures.items()):
            node = value.node
            if node.kind == "aten::size" and len(node.inputs) == 1 and own.has_uses:
                whole = self.captures.get(node.inputs[0])
                if whole is not None and whole.has_uses and value not in outputs:
                    own.replace_all_uses_with(self.build.after(whole.node).node("aten::size", (whole,), output_types=(own.type,)).output)

    def lift(self, real_outputs: int) -> tuple[list[int], list[int]]:
        """Say where each captured value comes from; what is neither input nor output of f becomes a temporary. (inputs, outputs) of f."""
        f = self.f
        captured_inputs: list[int] = []
        captured_outputs: list[int] = []
        positions = {value: i for i, value in reversed(list(enumerate(f.outputs)))}
        places = {value: i for i, value in enumerate(f.inputs)}
        temporaries: list[Value] = []
        ordered = [value for value in (*f.inputs, *[value for node in f.block for value in node.outputs]) if value in self.captures]
        for value in ordered:
            if not self.captures[value].has_uses:
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
        return captured_inputs, captured_outputs

    def give_vjp(self, value: Value, index: int) -> None:
        """A temporary is an output of f like any other: whoever differentiates df hands in its gradient."""
        old = self.gradients.get(value)
        if value not in self.needs or not isinstance(old, Value) or not isinstance(value.type, TensorType):
            return
        if old.node.owner is None or not old.has_uses and old not in self.df.outputs:
            return
        given = self.new_input(value)
        self.vjps.append((index, given))
        total = self.build.after(old.node).node("prim::AutogradAdd", (given, given), output_types=(self.tensor,)).output
        old.replace_all_uses_with(total)
        total.node.replace_input(1, old)

    def in_order(self, inputs: Sequence[Value]) -> Graph:
        """A copy of df that takes `inputs` in this order, its names counted anew."""
        ordered = Graph(self.df.dialect)
        taken = ordered.block.add_inputs((ordered.fresh_id(), value.type) for value in inputs)
        mapping = dict(zip(inputs, taken, strict=True))
        for node in self.df.block:
            if node.kind != SOURCE:
                clone_node(node, mapping, ordered.block, ordered)
        ordered.block.set_outputs([mapping[value] for value in self.df.outputs])
        return ordered
