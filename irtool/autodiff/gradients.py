"""The state of a differentiation: the gradients of values of f so far, and df under construction.

The handlers of nodes (`irtool.autodiff.reverse` lists them) use this interface:

    grads.current.get(value)        the gradient of a value so far; None if it has none
    grads.of(value)                 the same; an undefined gradient if it has none
    grads.add(value, item)          add a gradient to the sum for a value
    grads.build                     makes nodes of df, at the end of `grads.block` when a handler starts
    grads.into_df, grads.into_f     evaluate a formula's graph partially; the rest becomes nodes of df or of f
    grads.captures.take(value)      the value of df that stands for one of f
    with grads.inside(block, {...}):        nodes go into a block of df, which has separate gradients so far
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from irtool.analysis.list_changes import Changes
from irtool.autodiff.captures import ANY_DTYPE, Captures
from irtool.autodiff.formula_graphs import Formula, formula_of
from irtool.autodiff.reach import FLOATING, has_no_undefined, is_list, requiring
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import is_constant
from irtool.ir.edits import put_behind, replace_node
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import Schema
from irtool.ir.types import DictType, ListType, TensorType, TupleType, Type, spell
from irtool.partial.evaluate import Inliner
from irtool.partial.items import NONE, Item, Items, elements

RENAMING = "prim::AutogradAdd"
"""The kind of nodes that give a gradient a second name while df is under construction; they have one operand."""


class Gradients:
    """df under construction, and the gradients of values of f so far."""

    def __init__(self, graph: Graph, flags: Sequence[bool], modern: bool, trust_types: bool, dtypes: Mapping[Value, str]) -> None:
        self.changes = Changes(graph)
        """The lists of f that change."""
        floating = (*FLOATING, ANY_DTYPE)
        self.needs = {value for value in requiring(graph, flags, trust_types) if dtypes.get(value, ANY_DTYPE) in floating}
        """The values of f that a gradient can reach."""
        self.excused: Collection[Value] = ()
        """Values that operators may leave without a gradient though they have none for them: inputs that nobody said need one."""
        self.left_out: dict[Value, Error] = {}
        """Those that were left without one -> the refusal, for an input that has a gradient all the same, from other readers."""
        self.captures = captures = Captures(graph, modern, dtypes)
        self.modern = modern
        self.f = graph
        self.df = captures.df
        self.build = captures.build
        self.facts = captures.facts
        self.dtypes = captures.dtypes
        self.tensor = captures.tensor
        self.into_df = Inliner(self.df, self.build, self.facts, captures.take)
        self.into_f = Inliner(graph, Builder(graph), self.facts)
        self.into_f.sizes = {}
        if has_no_undefined(graph):
            self.into_df.certain = self.into_f.certain = graph
        self.current: dict[Value, Item] = {}
        """Value of f -> its gradient so far, in the current block of df."""
        self.whole_in_blocks: dict[Value, Item] = {}
        """Value computed in a block of f -> its complete gradient, in the block of df that differentiates that block."""
        self.block = self.df.block
        """The current block of df: new nodes go to its end."""
        self.vjps: list[tuple[int, Value]] = []
        """(index of an output of f, the value of df that stands for its gradient)."""
        self.has_complex: bool | None = None
        """Does f contain complex tensors? None: not computed yet."""
        self.names: dict[str, Mapping[str, Attribute]] = {}
        """Operator -> the attributes of its `GradOf` nodes."""
        self.formulas: dict[Schema, Formula | None] = {}
        """Overload -> its formula; see `irtool.autodiff.formula_graphs.formula_of`."""
        self.copies: dict[Value, Value] = {}
        """Copy, made by f, of a list that changes -> the list."""
        self.lengths: dict[Value, Value] = {}
        """List of f -> its length, a value of f that all readers share."""
        self.codes: dict[Value, Value] = {}
        """Value of f -> its dtype, a value of f."""
        self.maybe_undefined: set[Value] = set()
        """Values of df, of type Tensor, that are an undefined gradient in some runs."""
        self._renamings: list[Node] = []

    def formula_of(self, schema: Schema) -> Formula | None:
        """The formula of an overload, as `irtool.autodiff.formula_graphs.formula_of` gives it and with its errors; asked for once."""
        if schema not in self.formulas:
            self.formulas[schema] = formula_of(schema)
        return self.formulas[schema]

    # -- where nodes of df go
    @contextmanager
    def inside(self, block: Block, current: dict[Value, Item]) -> Iterator[dict[Value, Item]]:
        """A context in which `block` is the current block of df, and `current` the gradients so far (also the value of `as`).

        Afterwards the block and gradients from before are current again.
        """
        outer = self.current, self.block
        self.current = current
        self.start(block)
        try:
            yield current
        finally:
            self.current, block = outer
            self.start(block)

    def start(self, block: Block) -> None:
        """Make a block of df the current one."""
        self.block = block
        self.resume()

    def resume(self) -> None:
        """Put new nodes at the end of the current block again."""
        self.continue_in(self.block)

    def continue_in(self, block: Block) -> None:
        """Put new nodes at the end of an inner block of df, until `resume`."""
        self.build.at_end(block)
        self.into_df.new_block()

    # -- gradients of values
    def of(self, value: Value) -> Item:
        """The gradient of a value of f; a value without one gets an undefined gradient."""
        item = self.current.get(value)
        if item is None:
            item = self.current[value] = self.undefined(value)
        return item

    def value_of(self, value: Value) -> Value:
        """The gradient of a value of f, as one value of df."""
        return self.one_value(self.of(value), value.type)

    def one_value(self, item: Item, type: Type) -> Value:
        """A gradient, of a value of this type, as one value of df; elements of a tuple without a gradient get an undefined one."""
        type = self.captures.gradient_type(type)
        if isinstance(item, Items) and not item.is_tuple and isinstance(type, ListType) and isinstance(type.element, ListType):
            item = Items([self.undefined_like(type.element) if each == NONE else each for each in item.items], False, item.type)
        return self.into_df.value(self.with_undefined(item), type)

    def with_undefined(self, item: Item) -> Item:
        """The gradient of a tuple in which elements without a gradient have an undefined one; other gradients unchanged."""
        if not isinstance(item, Items) or not item.is_tuple:
            return item
        captures = self.captures
        parts = captures.gradient_type(item.type).elements or (self.tensor,) * len(item.items)
        return Items([self.undefined_like(captures.gradient_type(type)) if each == NONE else self.with_undefined(each)
                      for each, type in zip(item.items, parts, strict=True)], True, item.type)

    def add(self, value: Value, item: Item) -> None:
        """Add a gradient to the sum for a value of f."""
        if item == NONE or is_constant(value):
            return
        before = self.current.get(value)
        self.current[value] = item if before is None else self.sum(before, item, value)

    def sum(self, a: Item, b: Item, value: Value) -> Item:
        """The sum of two gradients, by `AutogradAdd`; of lists and tuples, element by element; of dicts, key by key."""
        if a == NONE or b == NONE:
            return b if a == NONE else a
        if isinstance(a, Items) or isinstance(b, Items):
            first, second = elements(a), elements(b)
            if first is None or second is None:     # a list of unknown length
                return self.sum(self.one_value(a, value.type), self.one_value(b, value.type), value)
            if len(first) != len(second):
                raise UnsupportedError(f"the gradients of %{value.name} are lists of {len(first)} and of {len(second)} elements",
                                       code="E0501")
            return Items([self.sum(x, y, value) for x, y in zip(first, second, strict=True)], isinstance(value.type, TupleType), value.type)
        assert isinstance(a, Value) and isinstance(b, Value)
        type = next((each.type for each in (a, b) if is_list(each) or isinstance(each.type, TupleType | DictType)), self.tensor)
        total = self.build.node("prim::AutogradAdd", (a, b), output_types=(type,)).output
        if a in self.facts:
            self.facts[total] = self.facts[a]
        if a in self.dtypes:
            self.dtypes[total] = self.dtypes[a]
        return total

    def renamed(self, item: Item) -> Item:
        """Copy the name, not the tensor: two values of f share this gradient, but later sums must go to one of them only."""
        if isinstance(item, Items):
            return Items([self.renamed(each) for each in item.items], item.is_tuple, item.type)
        if not isinstance(item, Value) or not isinstance(item.type, TensorType):
            return item
        node = self.build.node(RENAMING, (item,), output_types=(item.type,))
        self._renamings.append(node)
        self.captures.note(node.output, item)
        return node.output

    # -- gradients that may be undefined
    def undefined(self, value: Value) -> Value:
        """An undefined gradient for a value of f."""
        return self.undefined_like(self.captures.gradient_type(value.type))

    def undefined_like(self, type: Type) -> Value:
        """An undefined gradient of a type."""
        return self.build.node(self.df.dialect.undefined_kind, output_types=(type,)).output

    def any_defined(self, gradients: Sequence[Value]) -> Value:
        """A bool of df: is one of these gradients defined?"""
        dialect = self.df.dialect
        flag = spell(types.TENSOR if dialect.is_of_2018 else types.BOOL, dialect)
        return self.build.node(dialect.any_defined_kind, gradients, output_types=(flag,)).output

    def where_defined(self, item: Value, is_defined: bool, make: Callable[[Value], Value],
                      other: Callable[[], Value] | None = None) -> Value:
        """`make(item)` if a gradient is defined in the run, else `other()` (by default an undefined gradient).

        is_defined: the gradient is known to be defined, so no `If` is needed.
        """
        if is_defined:
            return make(item)
        choice = self.build.node("prim::If", (self.any_defined((item,)),))
        after = choice.next
        block = choice.add_block()
        self.build.at_end(block)
        if not isinstance(item.type, TensorType):
            item = self.build.node("prim::unchecked_unwrap_optional", (item,), output_types=(self.tensor,)).output
        block.add_output(make(item))
        block = choice.add_block()
        self.build.at_end(block)
        block.add_output(other() if other is not None else self.undefined_like(self.tensor))
        self.build.before(after)
        result = choice.add_output(self.df.fresh_id(), self.tensor)
        if other is None:
            self.maybe_undefined.add(result)
        return result

    # -- gradients that df takes
    def take_output(self, value: Value, index: int) -> Value:
        """A new input of df, for the gradient of output `index` of f."""
        incoming = self.captures.new_input(value)
        self.vjps.append((index, incoming))
        return incoming

    def take_temporaries(self, temporaries: Sequence[Value], first: int) -> None:
        """Give df inputs for the gradients of temporaries (outputs of f from `first` on): second derivatives reach f through these."""
        totals: dict[Value, Node] = {}
        for index, value in enumerate(temporaries, first):
            old = self.in_df(value)
            if old in totals:       # two values share a gradient
                put_behind(totals, 1)
                totals = {}
            if old is not None:
                self._hand_in(value, self.take_output(value, index), totals)
        put_behind(totals, 1)

    def _hand_in(self, value: Value, incoming: Value, totals: dict[Value, Node]) -> None:
        """Add `incoming`, df's input for the gradient of a temporary, to the gradient of that value in df: note in `totals`, for that
        gradient, the node that adds them up, whose result the gradient's readers are to read."""
        captures = self.captures
        value = captures.exports.get(value, value)
        if value in captures.saved_lists:
            inner, round = captures.saved_lists[value]
            type = captures.gradient_type(inner.type)
            region = self.build.another().after(round.top).node(
                "prim::GradOf", (incoming,), {"name": Attribute.of("aten::append", self.df.dialect)}, (type,))
            body = region.add_block()
            item = self.build.another().at_end(body).node("aten::__getitem__", (incoming, round.index), output_types=(type,))
            body.add_output(item.output)
            round.last = region
            self._hand_in(inner, region.output, totals)
            return
        old = self.in_df(value)
        assert old is not None
        behind = incoming.node if old.is_block_input and incoming.node.owner is old.node.owner else old.node
        type = old.type if isinstance(old.type, ListType | TupleType) else self.tensor
        total = self.build.another().after(behind).node("prim::AutogradAdd", (incoming, incoming), output_types=(type,)).output
        totals[old] = total.node

    def in_df(self, value: Value) -> Value | None:
        """The gradient of a temporary in df, also if it was computed in a loop or branch; None if df does not compute or not read it."""
        captures = self.captures
        value = captures.exports.get(value, value)
        if value in captures.saved_lists:
            return self.in_df(captures.saved_lists[value][0])
        old = self.current.get(value) or self.whole_in_blocks.get(value)
        if value not in self.needs or not isinstance(old, Value) or old.node.owner is None:
            return None
        return old if old in captures.read else None

    def drop_renamings(self) -> None:
        """Remove the second names of gradients, when df is complete."""
        for node in self._renamings:
            if node.owner is not None:
                replace_node(node, node.inputs)
