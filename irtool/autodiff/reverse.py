"""Reverse differentiation of a graph: f becomes f with temporaries, and df is made.

The reverse graph is built apart from f; the values of f that it reads are captured as inputs, and ordered at the end. See
`irtool.ir.pair` for what the pair looks like.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from irtool.analysis.list_changes import Changes
from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.branch_gradients import reverse_choice
from irtool.autodiff.captures import SAME, Captures
from irtool.autodiff.custom_gradients import read_saved, reverse_custom
from irtool.autodiff.formula_graphs import formula_of
from irtool.autodiff.groups import open_groups
from irtool.autodiff.hidden_writes import hidden_writes
from irtool.autodiff.in_place import is_rewritable, live_nodes, without_writes, writes_for_good
from irtool.autodiff.list_gradients import hand_on_list, is_list, undo, unpack
from irtool.autodiff.list_zeros import filled
from irtool.autodiff.loop_gradients import reverse_loop
from irtool.autodiff.packed_gradients import reverse_packed
from irtool.autodiff.reach import FLOATING, all_there, holds_tensors, is_untyped, requiring
from irtool.autodiff.recompute import choose_captures
from irtool.autodiff.saved_values import context_of, take_apart
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.collector import Paused
from irtool.ir.constants import constant, is_constant
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.dtypes import dtype_code
from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.kinds import unknown_operator
from irtool.ir.packed import owns_gradient
from irtool.ir.schema import Literal, Schema, node_arguments, schema_of, schemas
from irtool.ir.source import Diagnostic
from irtool.ir.structure_kinds import LIST_RESHAPING_KINDS, STRUCTURE, TYPE_CASTS
from irtool.ir.types import INT, ListType, NamedTupleType, OptionalType, TensorType, TupleType, Type, spell
from irtool.partial.evaluate import Inliner
from irtool.partial.items import NONE, Item, Items, Known, elements, item_of


class Reverse:
    """What differentiation gives: f (the graph it was given, with temporaries appended), df and the index lists."""

    __slots__ = ("f", "df", "real_outputs", "input_vjps", "captured_inputs", "captured_outputs", "output_vjps")

    def __init__(self, f: Graph, df: Graph, real_outputs: int, lists: Sequence[list[int]]) -> None:
        self.f = f
        self.df = df
        self.real_outputs = real_outputs
        self.input_vjps, self.captured_inputs, self.captured_outputs, self.output_vjps = lists

    @property
    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """The index lists in the order of `irtool.ir.pair.LISTS`."""
        return self.input_vjps, self.captured_inputs, self.captured_outputs, self.output_vjps


def differentiate_graph(graph: Graph, flags: Sequence[bool], modern: bool, trust_types: bool = False,
                        dtypes: Mapping[Value, str] | None = None, least: bool = False) -> Reverse:
    """Differentiate `graph`, which is changed, for the inputs whose flag is set.

    modern: the form of today; otherwise that of 2018 (`GradOf` has an output per operand, unreached inputs are listed).
    trust_types: values whose type says `requires_grad=0` need no gradient.
    dtypes: what is known of values besides their types; where an operator promoted an operand, its gradient is converted back.
    least: elementwise results are computed again in df where that keeps fewer bytes in between.
    Raises UnsupportedError, at its line, for an operator without a gradient.
    """
    with Paused():
        open_groups(graph)
        writers = [node for node in graph.walk() if is_rewritable(node)]
        if writers:
            needs = requiring(graph, flags, trust_types)
            inputs = set(graph.inputs)
            without_writes(graph, [node for node in writers if node.output in needs or node.inputs[0] not in inputs])
        read_saved(graph)
        return Differentiator(graph, flags, modern, trust_types, dtypes or {}).run(least)


class Differentiator(Captures):
    """One graph being differentiated."""

    def __init__(self, graph: Graph, flags: Sequence[bool], modern: bool, trust_types: bool, dtypes: Mapping[Value, str]) -> None:
        self.changes = Changes(graph)
        super().__init__(graph, requiring(graph, flags, trust_types), modern, dtypes)
        self.reverse = Inliner(self.df, self.build, self.facts, self.take)
        self.forward = Inliner(graph, Builder(graph), self.facts)
        self.forward.sizes = {}
        if all_there(graph):
            self.reverse.certain = self.forward.certain = graph
        self.names: dict[str, Mapping[str, Attribute]] = {}
        """The attributes of `GradOf`, by operator."""
        self.block = self.df.block
        """Where nodes of df go."""
        self.has_complex: bool | None = None
        """Is there a complex tensor in f? Found out when it matters."""
        self.copies: dict[Value, Value] = {}
        """Copy of a list of f -> the list, which changes."""
        self.lengths: dict[Value, Value] = {}
        """List of f -> its length, asked for once."""
        self.codes: dict[Value, Value] = {}
        """Value of f -> its dtype, which f asks for."""

    # -- the whole
    def run(self, least: bool = False) -> Reverse:
        """Differentiate; `least` as for `differentiate_graph`."""
        f = self.f
        self.refuse_shared()
        self.refuse_untyped(f.outputs, f.block.return_node)
        real_outputs = len(f.outputs)
        for index, value in enumerate(f.outputs):
            if value in self.needs:
                given = self.new_input(value)
                self.vjps.append((index, given))
                self.add_gradient(value, given)
        for node in live_nodes(f):
            if writes_for_good(node) and node.outputs[0] in self.needs or node.kind == "prim::SetAttr" and node.inputs[1] in self.needs:
                error = UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet")
                raise self.located(error, node)
        for node in hidden_writes(f, self.needs):
            raise self.located(UnsupportedError(f"the gradient of {node.kind}, which writes into memory that has another name, "
                                                "is not supported yet"), node)
        self.sweep(f.block)
        output_vjps: list[int] = []
        found: list[Value] = []
        for index, value in enumerate(f.inputs):
            if value in self.needs and (value in self.gradients or not self.modern):
                output_vjps.append(index)
                found.append(self.gradient_value(value, self.build.at_end(self.df.block)))
        self.df.block.set_outputs(found)
        remove_dead_nodes(self.df)
        if self.modern:
            self.recompute_sizes()
        self.save_sizes()
        if self.modern or least:
            choose_captures(self, least)
        captured_inputs, captured_outputs = self.lift(real_outputs)
        remove_dead_nodes(f)
        df = self.in_order([*[value for _, value in self.vjps], *[self.captures[f.inputs[i]] for i in captured_inputs],
                            *[self.captures[f.outputs[i]] for i in captured_outputs]])
        return Reverse(f, df, real_outputs, ([index for index, _ in self.vjps], captured_inputs, captured_outputs, output_vjps))

    # -- gradients of values
    def gradient(self, value: Value) -> Item:
        """The gradient of a value of f; an undefined one where there is none, remembered."""
        found = self.gradients.get(value)
        if found is None:
            found = self.gradients[value] = self.undefined(value)
        return found

    def undefined(self, value: Value) -> Value:
        """An undefined gradient for a value of f."""
        return self.build.node(self.df.dialect.undefined_kind, output_types=(self.gradient_type(value.type),)).output

    def gradient_value(self, value: Value, build: Builder | None = None) -> Value:
        """The gradient of a value of f, as one value of df."""
        return self.one_value(self.gradient(value), value.type, build)

    def one_value(self, item: Item, type: Type, build: Builder | None = None) -> Value:
        """The gradient of a value of this type as one value of df: what is not there of a tuple is undefined."""
        return self.reverse.value(self.with_undefined(item, build or self.build), self.gradient_type(type), build)

    def with_undefined(self, item: Item, build: Builder) -> Item:
        """What is not there of a tuple is undefined."""
        if not isinstance(item, Items) or not item.is_tuple:
            return item
        elements = self.gradient_type(item.type).elements or (self.tensor,) * len(item.items)
        found = [build.node(self.df.dialect.undefined_kind, output_types=(self.gradient_type(type),)).output if each == NONE
                 else self.with_undefined(each, build) for each, type in zip(item.items, elements, strict=True)]
        return Items(found, True, item.type)

    def add_gradient(self, value: Value, item: Item) -> None:
        """One more gradient of a value of f."""
        if item == NONE or is_constant(value):
            return
        before = self.gradients.get(value)
        if before is None:
            self.gradients[value] = item
            return
        self.gradients[value] = self.sum(before, item, value)

    def sum(self, a: Item, b: Item, value: Value) -> Item:
        """`AutogradAdd`, element by element for lists."""
        if a == NONE or b == NONE:
            return b if a == NONE else a
        if isinstance(a, Items) or isinstance(b, Items):
            first, second = elements(a), elements(b)
            if first is None or second is None:     # a list whose length is not known here
                return self.sum(self.one_value(a, value.type), self.one_value(b, value.type), value)
            if len(first) != len(second):
                raise UnsupportedError(f"the gradients of %{value.name} are lists of {len(first)} and of {len(second)} elements")
            return Items([self.sum(x, y, value) for x, y in zip(first, second, strict=True)], isinstance(value.type, TupleType), value.type)
        assert isinstance(a, Value) and isinstance(b, Value)
        type = next((each.type for each in (a, b) if is_list(each) or isinstance(each.type, TupleType)), self.tensor)
        total = self.build.node("prim::AutogradAdd", (a, b), output_types=(type,)).output
        if a in self.facts:
            self.facts[total] = self.facts[a]
        if a in self.dtypes:
            self.dtypes[total] = self.dtypes[a]
        return total

    # -- nodes
    def sweep(self, block: Block) -> None:
        """The nodes of a block of f, last one first."""
        for node in reversed(block):
            if any(value in self.needs for value in node.outputs) or any(value in self.needs for value in self.changes.at.get(node, ())):
                self.visit(node)

    def visit(self, node: Node) -> None:
        """Hand the gradients of a node's results to its operands."""
        changed = self.changes.at.get(node, ())
        if not any(value in self.gradients for value in (*node.outputs, *changed)):
            return
        self.refuse_untyped(node.outputs, node)
        self.build.at_end(self.block)
        self.reverse.new_block()
        try:
            if node.kind in CHOICE_KINDS and 1 <= len(node.blocks) <= 2:
                reverse_choice(self, node)
            elif node.kind in LOOP_KINDS:
                reverse_loop(self, node)
            elif node.blocks:
                raise UnsupportedError(f"the gradient of {node.kind} is not supported yet")
            elif node.kind == CUSTOM_VJP:
                reverse_custom(self, node)
            elif owns_gradient(node):
                reverse_packed(self, node)
            elif changed:
                undo(self, node)
            elif node.kind in STRUCTURE:
                self.hand_on(node)
            elif node.kind in LIST_RESHAPING_KINDS and is_list(node.inputs[0]):
                hand_on_list(self, node)
            elif node.kind in TYPE_CASTS:
                self.add_gradient(node.inputs[0], self.own(self.gradients[node.output]))
            elif node.kind == "prim::AutogradAdd":
                for value in node.inputs:
                    if value in self.needs:
                        self.add_gradient(value, self.own(self.gradients[node.output]))
            else:
                self.apply_formula(node)
        except Error as error:
            raise self.located(error, node) from None

    def refuse_untyped(self, values: Sequence[Value], node: Node) -> None:
        """Raises UnsupportedError, at the node, for a value with a gradient whose type is Any: that of its gradient is not known."""
        value = next((each for each in values if each in self.needs and is_untyped(each.type)), None)
        if value is not None:
            raise self.located(UnsupportedError(f"the gradient of %{value.name} : {value.type} is not supported"), node)

    def refuse_shared(self) -> None:
        """Raises UnsupportedError, at the place, for a list that changes and may be held by more than one name."""
        for value, node in self.changes.shared.items():
            if value in self.needs:
                raise self.located(UnsupportedError(f"the gradient of %{value.name}, a list that changes, is not supported where "
                                                    "something else holds the list too"), node)

    def asked(self, gradients: Sequence[Value]) -> Value:
        """Is one of these gradients there?"""
        dialect = self.df.dialect
        flag = spell(types.TENSOR if dialect.attribute_arguments else types.BOOL, dialect)
        return self.build.node(dialect.any_defined_kind, gradients, output_types=(flag,)).output

    def own(self, item: Item) -> Item:
        """A gradient that is another value's too, under a name of its own: what is added to it later is not added to the other's."""
        if isinstance(item, Items):
            return Items([self.own(each) for each in item.items], item.is_tuple, item.type)
        if not isinstance(item, Value) or not _is_tensor(item):
            return item
        self.same.append(self.build.node(SAME, (item,), output_types=(item.type,)))
        own = self.same[-1].output
        self.note(own, item)
        return own

    def hand_on(self, node: Node) -> None:
        """Gradients through lists and tuples."""
        if node.kind.endswith("Construct"):
            self.spread(list(node.inputs), self.gradients[node.output])
            return
        if node.kind == "prim::TupleIndex":
            self.hand_on_element(node)
            return
        found = [self.gradients.get(value, NONE) for value in node.outputs]
        if node.kind == "prim::ListUnpack":
            made = node.inputs[0].node
            if made.owner is not node.owner or made.blocks or node.inputs[0].is_block_input or made.kind in STRUCTURE:
                found = [self.undefined(value) if item == NONE else item for item, value in zip(found, node.outputs, strict=True)]
        if node.inputs[0] in self.needs:
            self.add_gradient(node.inputs[0], Items(found, node.kind == "prim::TupleUnpack", node.inputs[0].type))

    def hand_on_element(self, node: Node) -> None:
        """The gradient of one element of a tuple: the tuple's, with nothing for the others."""
        whole = node.inputs[0]
        place = constant(node.inputs[1]) if len(node.inputs) == 2 and is_constant(node.inputs[1]) else node.attributes["index"].value \
            if "index" in node.attributes else None
        count = len(whole.type.elements)
        if not isinstance(whole.type, TupleType | NamedTupleType) or not isinstance(place, int) or not -count <= place < count:
            raise UnsupportedError("the gradient of prim::TupleIndex is supported only where the index is a constant")
        if whole in self.needs:
            found: list[Item] = [NONE] * count
            found[place] = self.gradients[node.output]
            self.add_gradient(whole, Items(found, True, whole.type))

    def spread(self, values: list[Value], item: Item) -> None:
        """The gradient of a list or tuple goes to its elements."""
        found = elements(item)
        if found is None:
            assert isinstance(item, Value)
            found = unpack(self, item, values) if values else []
        for value, each in zip(values, found, strict=True):
            if value in self.needs:
                self.add_gradient(value, each)

    def apply_formula(self, node: Node) -> None:
        """A `GradOf` around the backward half of the operator's formula."""
        schema, arguments = self.arguments_of(node)
        formula = formula_of(schema)
        if formula is None:
            return
        if formula.is_composed():
            take_apart(self, node, formula, arguments)
            return
        context = context_of(self, node, formula, arguments)
        count = len(formula.backward.inputs) - 1
        results = self.results_of(node, schema)
        given = [self.gradient_of_result(item) for item in results[:count]]
        if schema.kind not in self.names:
            self.names[schema.kind] = {"name": Attribute.of(schema.kind, self.df.dialect)}
        region = self.build.node("prim::GradOf", [v for item in given for v in _values(item)], self.names[schema.kind])
        body = region.add_block()
        self.build.at_end(body)
        self.reverse.new_block()
        turned = formula.is_conjugated and not all(_is_complex(value.type) is False for item in (*arguments, *results)
                                                                   for value in _values(item) if _is_tensor(value))
        given = [filled(self, item, result) for item, result in zip(given, results, strict=False)]
        if turned:
            given = [self.conjugate(item, count == 1) for item in given]
        env: dict[Value, Item] = dict(zip(formula.backward.inputs, [context, *given], strict=True))
        if count == 1 and isinstance(given[0], Value) and given[0] not in self.facts:
            self.facts[given[0]] = types.TENSOR     # in the region of one gradient, it is there
            (answer,) = self.reverse.run(formula.backward.block, env)
            del self.facts[given[0]]
        else:
            self.reverse.unsure = {value for item in given for value in _values(item)} if count > 1 else set()
            (answer,) = self.reverse.run(formula.backward.block, env)
            self.reverse.unsure = set()
        slots: Sequence[Item] | None = [answer]
        if isinstance(formula.backward.outputs[0].type, TupleType):
            slots = elements(answer) or self.unpacked(answer)
        if slots is None or len(slots) != len(arguments):
            raise Error(f"the formula of {schema.name} does not give a gradient for each of {len(arguments)} arguments")
        self.collect(region, arguments, [self.conjugate(slot, True) for slot in slots] if turned else slots)

    def unpacked(self, answer: Item) -> list[Item] | None:
        """The elements of a tuple that comes out of branches."""
        if not isinstance(answer, Value) or not isinstance(answer.type, TupleType):
            return None
        made = self.build.node("prim::TupleUnpack", (answer,), output_types=answer.type.elements)
        return [NONE if value.type.key == types.NONE.key else value for value in made.outputs]

    def conjugate(self, item: Item, is_defined: bool) -> Item:
        """A gradient, or a list of them, conjugated; one that may turn out to be undefined only where it is not."""
        if isinstance(item, Items):
            return Items([self.conjugate(each, is_defined) for each in item.items], item.is_tuple, item.type)
        if not isinstance(item, Value) or item.node.kind == self.df.dialect.undefined_kind or not holds_tensors(item.type):
            return item
        conj = partial(self.build.call, "aten::conj", type=self.tensor)
        found = self.where_defined(item, is_defined and _is_tensor(item), conj)
        if item in self.facts:
            self.facts[found] = self.facts[item]
        return found

    def where_defined(self, item: Value, is_defined: bool, make: Callable[[Value], Value],
                      other: Callable[[], Value] | None = None) -> Value:
        """What `make` makes of a gradient; nothing, or what `other` makes, of one that turns out to be undefined."""
        if is_defined:
            return make(item)
        made = self.build.node("prim::If", (self.asked((item,)),))
        after = made.next
        block = made.add_block()
        self.build.at_end(block)
        if not _is_tensor(item):
            item = self.build.node("prim::unchecked_unwrap_optional", (item,), output_types=(self.tensor,)).output
        block.add_output(make(item))
        block = made.add_block()
        self.build.at_end(block)
        block.add_output(other() if other is not None
                         else self.build.node(self.df.dialect.undefined_kind, output_types=(self.tensor,)).output)
        self.build.before(after)
        return made.add_output(self.df.fresh_id(), self.tensor)

    def may_be_complex(self, value: Value) -> bool:
        """Is it complex, or of a dtype that is not known, in a graph in which something is?"""
        said = _is_complex(value.type)
        if said is not None or not _is_tensor(value):
            return said is True
        if self.has_complex is None:
            self.has_complex = any(_is_complex(each.type) for each in self.f.values())
        return self.has_complex

    def conversion(self, target: Value, region: Node, mixed: bool) -> tuple[bool, str | None]:
        """Is only the real part of a gradient wanted? And its dtype, where the gradients that come in are known to have another."""
        is_real = mixed and _is_complex(target.type) is False       # what is real has a real gradient
        wanted = self.dtypes.get(target)
        given = {self.dtypes.get(value) for value in region.inputs} - {None, wanted}
        if wanted is None or wanted not in FLOATING or not given:
            return is_real, None
        return is_real or not wanted.startswith("complex") and any(str(name).startswith("complex") for name in given), wanted

    def converted(self, gradient: Value, is_real: bool, wanted: str | None) -> Value:
        """A gradient's real part, in a dtype."""
        if is_real:
            gradient = self.build.call("aten::real", gradient, type=self.tensor if _is_complex(gradient.type) else gradient.type)
        if wanted is not None:
            gradient = self.build.call("aten::to", gradient, dtype_code(wanted), False, False, None, type=self.tensor)
        return gradient

    def collect(self, region: Node, arguments: Sequence[Item], slots: Sequence[Item]) -> None:
        """The region's results, and whom they go to."""
        body = region.blocks[0]
        handed: list[tuple[Value, Value]] = []
        mixed = any(isinstance(item, Known) and isinstance(item.value, complex) or any(map(self.may_be_complex, _values(item)))
                    for item in arguments)
        for argument, slot in zip(arguments, slots, strict=True):
            for target, piece in self.pieces(argument, slot):
                if isinstance(target, Value) and piece != NONE and (self.wants(target) or not self.modern and _is_tensor(target)):
                    value = self.reverse.value(piece, target.type)
                    is_real, wanted = self.conversion(target, region, mixed)
                    if is_real or wanted is not None:
                        value = self.where_defined(value, _is_tensor(value), partial(self.converted, is_real=is_real, wanted=wanted))
                    if isinstance(value.type, OptionalType) and _is_tensor(target):     # None is the undefined gradient of a tensor
                        value = self.build.node("prim::unchecked_cast", (value,), output_types=(self.tensor,)).output
                    body.add_output(value)
                    output = region.add_output(self.df.fresh_id(), value.type)
                    self.note(output, target)
                    handed.append((target, output))
        self.build.at_end(self.block)
        if not handed:
            region.destroy()
        for target, output in handed:
            self.add_gradient(target, output)
            if target in self.copies:
                self.add_gradient(self.copies[target], output)

    def pieces(self, argument: Item, slot: Item) -> list[tuple[Item, Item]]:
        """An argument with its gradient; of a list put together in the graph, each element with its own."""
        if slot == NONE or isinstance(argument, Known):
            return []
        if not isinstance(argument, Items):
            return [(argument, slot)]
        found = elements(slot)
        if found is None:
            assert isinstance(slot, Value)
            if not any(self.wants(each) for each in argument.items):
                return []
            unpacked = self.build.node("prim::ListUnpack", (self.take(slot),), output_types=[self.tensor] * len(argument.items))
            found = list(unpacked.outputs)
        return list(zip(argument.items, found, strict=True))

    def wants(self, item: Item) -> bool:
        """Does it need a gradient?"""
        return isinstance(item, Value) and item in self.needs

    def arguments_of(self, node: Node) -> tuple[Schema, list[Item]]:
        """The overload, and what is known of each argument."""
        if node.kind == "prim::ConstantChunk":
            (schema,) = schemas("aten::chunk")
            return schema, [item_of(node.inputs[0]), Known(node.attributes["chunks"].value), Known(node.attributes["dim"].value)]
        declared = schema_of(node)
        if declared is None:
            raise UnsupportedError(unknown_operator(node.kind) or f"the gradient of {node.kind} is not supported yet")
        schema = declared
        found: list[Item] = []
        for given, argument in zip(node_arguments(node, schema), schema.arguments, strict=False):
            if isinstance(given, Value) and argument.fixed_size and given.type.key == INT.key:      # `stride=1` for `int[2] stride`
                found.append(Items([item_of(given)] * argument.fixed_size, False, types.list_of(INT)))
            elif isinstance(given, Value):
                found.append(self.steady(given, node))
            elif isinstance(given, Literal):
                found.append(Known(given.value))
            else:
                found.append(Items([item_of(value) for value in given], False, argument.type))
        return schema, found

    def steady(self, value: Value, node: Node) -> Item:
        """What is known of an operand; of a list that changes, a copy of what it is now, which may be saved."""
        if not self.changes.is_changed(value):
            return item_of(value)
        copy = Builder(self.f).before(node).node("aten::list", (value,), output_types=(value.type,)).output
        self.copies[copy] = value
        if value in self.needs:
            self.needs.add(copy)
        return copy

    def results_of(self, node: Node, schema: Schema) -> list[Item]:
        """The results as the schema counts them: until 2018 a list was written as several results."""
        if len(schema.returns) == 1 and isinstance(schema.returns[0].type, ListType) and (
                len(node.outputs) != 1 or isinstance(node.outputs[0].type, TensorType)):
            return [Items(list(node.outputs), False, types.list_of(types.TENSOR))]
        return list(node.outputs)

    def gradient_of_result(self, item: Item) -> Item:
        """What comes in for one result."""
        if isinstance(item, Items):
            values = [each for each in item.items if isinstance(each, Value)]
            return Items([self.gradients.get(value, NONE) for value in values], False, item.type)
        assert isinstance(item, Value)
        return self.gradient(item) if item in self.needs else NONE

    def located(self, error: Error, node: Node) -> Error:
        """The error, at the node's line."""
        if error.diagnostics and not isinstance(error, UnsupportedError):
            return error
        message = error.message
        if not error.diagnostics and self.f.source is not None and node.line:
            line = self.f.source.line(node.line)
            column = len(line) - len(line.lstrip()) + 1
            error.diagnostics = [Diagnostic("error", message, self.f.source, node.line, column, len(line.rstrip()) + 1)]
        return error

def _values(item: Item) -> list[Value]:
    if isinstance(item, Value):
        return [item]
    return [value for each in item.items for value in _values(each)] if isinstance(item, Items) else []


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _is_complex(type: Type) -> bool | None:
    """Is it a tensor of complex numbers? None where that is not said."""
    return type.dtype.startswith("complex") if isinstance(type, TensorType) and type.dtype is not None else None


__all__ = ["FLOATING", "Differentiator", "Reverse", "differentiate_graph", "holds_tensors", "requiring"]
