"""A graph as calls of NumPy functions, for inputs of known dtypes, shapes and strides.

An *item* stands for each value of the graph: it is known (a number, a size, None: computed here, once), a variable of the program, or a
group of items (a list or tuple that nobody changes). A node whose operands' facts are known becomes the calls that its kernel makes
(`irtool.ops.symbols`); any other is called as the interpreter calls it (`Visit`). Blocks become branches and loops.
"""
from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.analysis.overlaps import may_overlap
from irtool.analysis.shape_changes import changes_shapes, loose_tensors
from irtool.execute.fusion import BY_SIZE, Bound, BoundToMany, Fused, GroupOptions, is_slow
from irtool.execute.plan.buffers import RECYCLED
from irtool.execute.plan.convolutions import convolution_calls, is_convolution
from irtool.execute.plan.copies import COPIES
from irtool.execute.plan.filled_lists import APPEND, GET, STACK, RoundList, round_list
from irtool.execute.plan.known_lists import IDENTITY, compares_lists, names_of
from irtool.execute.plan.loop_numbers import bounds_of, computed, selected
from irtool.execute.plan.lowered_blocks import FUSION_GROUP, MAX_CALLS, Blocks, NotLowered
from irtool.execute.plan.opaque_calls import predicted_meta, visitor
from irtool.execute.plan.program import (
    Branch,
    Call,
    Group,
    Instruction,
    Item,
    Known,
    Lowered,
    Program,
    Variable,
    Visit,
    leaves,
    meta_of_item,
    operand_of,
    roots_of,
)
from irtool.ir.effects import facts_of, is_random, node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import ListType, TensorType
from irtool.ops.array_library import np
from irtool.ops.node_calls import from_values, plan_for
from irtool.ops.overload import Overload
from irtool.ops.size_facts import BY_MEMORY, CONJUGATES, TRACEABLE_PRIMS, WRITES_ALL
from irtool.ops.structure import STRUCTURE, handler_of, own_array
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of
from irtool.ops.symbols.recorded_calls import NAMESPACE, trace
from irtool.ops.symbols.recorded_writes import trace_copy, trace_write
from irtool.ops.symbols.recorder import StandIn, Step, Untraceable, is_traced

WORTH_FUSING = 1 << 18
"""Bytes of a result from which computing block by block, in the cache, is faster than on whole arrays."""


class Template:
    """The calls of a node, reused for every node of the same kind, types, attributes and facts of operands.

    stand_ins: arrays without elements that the calls have as operands, one per variable of `leaves`, in that order.
    """

    __slots__ = ("steps", "result", "stand_ins")

    def __init__(self, steps: list[Step], result: Any, stand_ins: Sequence[StandIn]) -> None:
        self.steps = steps
        self.result = result
        self.stand_ins = stand_ins


_templates: dict[Any, Template | None] = {}
MAX_TEMPLATES = 10_000
Observed = Mapping[Node, Sequence["Meta | None"]]


def lower(graph: Graph, inputs: Sequence[Any], observed: Observed | None = None, options: GroupOptions = BY_SIZE,
          without: Collection[tuple[Node, int]] = ()) -> Program:
    """The program of a graph for inputs such as these: a Meta for an array, Known for a value, anything else stays unknown until the run.

    observed: facts of results seen in a run, by node, for nodes whose facts no trace shows; each run of the plan checks them.
    without: copies to leave out, as (node, number of the call among the node's). Raises NotLowered.
    """
    return Lowering(graph, observed, options, without).run(inputs)


def list_changes(graph: Graph) -> tuple[bool, bool]:
    """Two answers: may a node of the graph change a list or dict? May a node of an inner graph (of a group) change one? Raises NotLowered
    if there are too many nodes."""
    stack, seen, changed = [graph], 0, [False, False]
    while stack:
        at = stack.pop()
        for node in at.walk():
            seen += 1
            if seen > MAX_CALLS:
                raise NotLowered(f"it takes more than {MAX_CALLS} calls")
            if node.kind[:1] == "^" or node_may_write(node) and any(not isinstance(value.type, TensorType) for value in node.inputs[:1]):
                changed[at is not graph] = True
            if node.subgraph is not None:
                stack.append(node.subgraph)
    return changed[0], changed[1]


def is_fusible(lowered: Lowered, results: list[Item], operands: list[Item], least: int) -> bool:
    """Are all instructions calls, at least `least` of them, and all results arrays of known facts and equal strides?"""
    calls = [each for each in lowered.instructions if isinstance(each, Call)]
    metas = [meta_of_item(item) for item in results]
    return (len(calls) == len(lowered.instructions) >= least and all(meta is not None for meta in metas)
            and not any(isinstance(item, Variable) and item.meta is None or isinstance(item, Group) for item in operands)
            and len({meta.strides for meta in metas if meta is not None}) == 1)


def calls_slow(instructions: Sequence[Instruction]) -> bool:
    """Do the calls take so long per element that they are worth a native loop?"""
    return is_slow([(each.function.__name__, each.out.meta.nbytes // each.out.meta.dtype.itemsize) for each in instructions
                    if isinstance(each, Call) and isinstance(each.function, np.ufunc) and each.out.meta is not None])


def is_large(results: list[Item]) -> bool:
    """Is a result so large that computing block by block, in the cache, is faster than on whole arrays?"""
    return max(meta.nbytes for meta in map(meta_of_item, results) if meta is not None) >= WORTH_FUSING


def kind_of_operand(item: Item) -> Any:
    """The facts of an operand that a fused group depends on: the value, or the dtype and whether it has no dimensions."""
    meta = meta_of_item(item)
    return item.value if isinstance(item, Known) else None if meta is None else (meta.dtype, not meta.shape)


class Lowering(Blocks):
    """The state of one lowering. `options`: how groups and loops may run."""

    def __init__(self, graph: Graph, observed: Observed | None, options: GroupOptions, without: Collection[tuple[Node, int]]) -> None:
        super().__init__(Program(graph), options)
        self.without = without      # copies to leave out: by node and number of the call among its node's
        self.graph = graph
        self.observed = observed or {}
        self.names: dict[Value, list[Value]] = {}      # a list whose items are always known -> all values that are this list
        outside, self.inside_changes = list_changes(graph)
        self.loose = loose_tensors(graph)              # tensors whose shapes change in place: only a run knows their facts
        self.aliases = Aliases(graph) if outside else None
        self.writes = any(node_may_write(node) for node in graph.walk())
        self.compares = any(map(compares_lists, graph.walk()))      # by `is`: then a list is one object, not made anew by each reader

    def run(self, inputs: Sequence[Any]) -> Program:
        """Lower the graph's block."""
        for value, fact in zip(self.graph.inputs, inputs, strict=True):
            variable = self.variable(fact if isinstance(fact, Meta) and value not in self.loose else None)
            self.program.inputs.append(variable)
            self.env[value] = fact if isinstance(fact, Known) and not (self.compares and isinstance(fact.value, list | tuple)) else variable
        self.block(self.graph.block, self.program.body)
        self.program.body.results = [self.env[value] for value in self.graph.outputs]
        return self.program

    # -- nodes
    def node(self, node: Node, into: Lowered) -> None:
        """A node without blocks."""
        if node.kind in ("prim::Constant", "onnx::Constant") and self.constant(node):
            return
        if node.kind in ("prim::ListConstruct", "prim::TupleConstruct") and len(node.outputs) == 1 and not self.compares:
            make = list if node.kind == "prim::ListConstruct" else tuple
            if make is tuple or not self.changes(node.outputs[0]) or self.is_known_list(node):
                self.env[node.outputs[0]] = Group([self.env[value] for value in node.inputs], make)
                return
            held = round_list(node)
            if held is not None:
                self.lists[node.outputs[0]] = held
        elif node.kind in (APPEND, GET) and node.inputs[0] in self.lists and self.round_list(node, self.lists[node.inputs[0]], into):
            return
        elif node.kind == STACK and node.inputs[0] in self.lists and meta_of_item(self.env[node.inputs[0]]) is not None:
            self.env[node.outputs[0]] = self.env[node.inputs[0]]        # the loop in C made it of all items
            return
        items = [self.env[value] for value in node.inputs]
        if node.kind in CONJUGATES and self.writes or node.kind == "aten::is_conj":
            self.check_conjugate(node, items)
        if node.kind == APPEND and node.inputs[0] in self.names and isinstance(items[0], Group):
            self.env.update(dict.fromkeys(self.names[node.inputs[0]], Group([*items[0].items, items[1]], list)))
            return
        if len(node.outputs) == 1 and any(isinstance(item, Variable) and item.bounds is not None for item in items) \
                and self.number(node, items, into):
            return
        if is_convolution(node.kind) and self.loose.isdisjoint(node.outputs) and self.convolution(node, items, into):
            return
        template = self.template(node, items)
        if template is None:
            self.visit(node, items, into)
        else:
            self.instantiate(node, template, items, into)

    def convolution(self, node: Node, items: list[Item], into: Lowered) -> bool:
        """A convolution, or its gradients, in C. False where it stays a call of the operator."""
        calls, results = convolution_calls(node, items, self.program, self.options)
        into.instructions += calls
        self.env.update(zip(node.outputs, results, strict=False))
        return bool(results)

    def round_list(self, node: Node, held: RoundList, into: Lowered) -> bool:
        """An append to a list that a loop fills, or a read of one of its items. False where too little is known."""
        whole, item = [self.env[value] for value in node.inputs]
        if node.kind == APPEND:
            limit, counter = self.env[held.loop.inputs[0]], self.env[held.loop.blocks[0].inputs[0]]
            if held.appended(item, limit) and isinstance(item, Variable) \
                    and (self.overwrites or not held.looks_again(counter, into.instructions)):
                if not self.overwrites and held.is_looked_up and is_piece(item, counter):
                    held.item = self.copy_of(item, node, into)
                into.instructions.append(Call(list.append, (whole, held.item), {}, self.variable(), "keep", node))
            return held.item is not None
        element = held.item
        if element is None or not held.holds(item):
            return False
        if not isinstance(element, Variable):
            self.env[node.output] = element
            return True
        index = self.from_front(item, held.count, node, into)
        self.env[node.output] = self.item_at(node.inputs[0], held, index, node, into) if held.recipe is None \
            else self.recomputed_item(held, index, node, into)
        return True

    def copy_of(self, item: Variable, node: Node, into: Lowered) -> Variable:
        """A contiguous copy."""
        assert item.meta is not None
        copy = self.variable(fresh_meta(item.meta.dtype, item.meta.shape))
        into.instructions.append(Call(np.positive, (item,), {}, copy, "ufunc", node))
        return copy

    def item_at(self, value: Value, held: RoundList, index: Any, node: Node, into: Lowered) -> Variable:
        """An item of a list, or a row of the array that the list has become."""
        assert isinstance(held.item, Variable)
        whole = self.env[value]
        if held.view is not None:
            whole, roots, index = held.view.args[0], held.view.out.roots, held.index_again(index)
        elif isinstance(whole, Variable) and whole.meta is not None:
            roots = whole.roots
        else:
            roots = held.item.roots | roots_of(whole)
        out = self.variable(held.item.meta, roots)
        into.instructions.append(Call(operator.getitem, (whole, index), {}, out, "view", node))
        return out

    def recomputed_item(self, held: RoundList, index: Any, node: Node, into: Lowered) -> Variable:
        """The item for a round, computed by the recipe from items of the round before; the item of the first round is the array that the
        loop began with."""
        assert held.recipe is not None
        maker, start = held.recipe
        if index == 0:
            return start
        low, high = (index, index) if type(index) is int else index.bounds
        block, before = Lowered() if low == 0 else into, index - 1 if type(index) is int else self.variable()
        if before.__class__ is Variable:
            before.bounds = max(low - 1, 0), high - 1
            block.instructions.append(Call(operator.sub, (index, Known(1)), {}, before, "number", node))
        lists = {each.item: (value, each) for value, each in self.lists.items() if each.loop is held.loop}
        rows = tuple([self.item_at(*lists[each], before, node, block) for each in maker.args])
        recomputed = self.variable(maker.out.meta)
        block.instructions.append(Call(maker.function, rows, {}, recomputed, "ufunc", node))
        if block is into:
            return recomputed
        first = Lowered()
        block.results, first.results = [recomputed], [start]
        out = self.variable(recomputed.meta)
        out.roots |= recomputed.roots | start.roots
        into.instructions.append(Branch([index], [block, first], [out], node, False))
        return out

    def from_front(self, item: Item, count: int, node: Node, into: Lowered) -> Any:
        """An index into `count` items, which may be negative, counted from the first item."""
        if isinstance(item, Known):
            return item.value % count
        assert isinstance(item, Variable) and item.bounds is not None
        if item.bounds[0] >= 0:
            return item
        number = self.variable()
        number.bounds = (item.bounds[0] + count, item.bounds[1] + count)
        into.instructions.append(Call(operator.add, (item, Known(count)), {}, number, "number", node))
        return number

    def check_conjugate(self, node: Node, items: list[Item]) -> None:
        """Raises NotLowered for a conjugated view of what may be written into, as the calls of NumPy's do not keep it up to date, and where
        it is asked what is one."""
        meta = meta_of_item(items[0])
        if meta is not None and meta.dtype.kind != "c":
            return
        if node.kind not in CONJUGATES:
            raise NotLowered(f"'{node.kind}' asks for what arrays of NumPy's do not say", node)
        if self.aliases_at_all.is_written(node.outputs[0]):
            raise NotLowered(f"a tensor is written into that '{node.kind}' gives a view of", node)

    def is_known_list(self, node: Node) -> bool:
        """Are the items of the list that a node makes known in front of every node?"""
        names = names_of(node, self.graph)
        read = [each for each in names if each.has_uses]        # not what each of a thousand appends returns: it changes with the list
        self.names.update(dict.fromkeys(read, read))
        return bool(names)

    def changes(self, value: Value) -> bool:
        """May the list that a value is, or one in it, be changed?"""
        if self.inside_changes or self.aliases is None:
            return self.inside_changes
        holds_tensors = isinstance(value.type, ListType) and isinstance(value.type.element, TensorType)
        return self.aliases.is_written_itself(value) if holds_tensors else self.aliases.is_written(value)

    def constant(self, node: Node) -> bool:
        """Lower a prim::Constant to a known item or a constant array, which a run copies if someone may write into it. False: it fails, or
        each run must make it anew."""
        try:
            (value,) = STRUCTURE["prim::Constant"](node, []) if (data := own_array(node)) is None else (data,)
        except Exception:       # the run reports the error, when it comes to the node
            return False
        if isinstance(value, np.ndarray):
            if self.depth and self.writes or node.outputs[0] in self.loose:      # a new one in each round
                return False
            variable = self.variable(meta_of(value), None, value)
            self.env[node.outputs[0]] = variable
            return True
        if isinstance(value, dict) or isinstance(value, list) and self.changes(node.outputs[0]) or contains_arrays(value) \
                or self.compares and isinstance(value, list | tuple):
            return False
        self.env[node.outputs[0]] = Known(value)
        return True

    def number(self, node: Node, items: list[Item], into: Lowered) -> bool:
        """Lower a node on whole numbers, or one that selects with such a number. False: the node might fail."""
        bounds = [item.bounds if isinstance(item, Variable) else bounds_of(item.value) if isinstance(item, Known) else None
                  for item in items]
        numbers = [each for each in bounds if each is not None]
        out = node.outputs[0]
        if len(numbers) == len(items):
            computation = computed(node.kind, numbers)
            if computation is None or node.attributes:
                return False
            variable = self.env[out] = self.variable()
            variable.bounds = computation[1]
            into.instructions.append(Call(computation[0], tuple(items), {}, variable, "number", node))
            return True
        if node.kind == GET:
            items = self.as_select(node, items)
        x = items[0]
        if node.kind not in ("aten::select", GET) or len(items) != 3 or bounds[-1] is None or not isinstance(x, Variable) \
                or x.meta is None or not isinstance(items[1], Known):
            return False
        place = selected(x.meta, items[1].value, bounds[-1])
        if place is None:
            return False
        variable = self.env[out] = self.variable(place[1], x.roots)
        rank = len(x.meta.shape)
        index = items[2] if rank > 1 and not place[0] else (*[slice(None)] * place[0], items[2], *[...] * (rank == 1))
        into.instructions.append(Call(operator.getitem, (x, index), {}, variable, "view", node))
        return True

    def as_select(self, node: Node, items: list[Item]) -> list[Item]:
        """The operands of `select`, for an item of `aten::unbind`; the operands unchanged for an item of another list."""
        unbind = node.inputs[0].node
        if unbind.kind != "aten::unbind" or unbind.owner is None or len(unbind.inputs) != 2 or self.changes(node.inputs[0]):
            return items
        return [self.env[unbind.inputs[0]], self.env[unbind.inputs[1]], items[1]]

    def template(self, node: Node, items: list[Item]) -> Template | None:
        """The calls of a node; None when they are not known."""
        facts = facts_of(node.kind)
        writes = node_may_write(node)
        if not self.loose.isdisjoint(node.outputs) or node.kind in BY_MEMORY:
            return None
        if facts.side_effects or writes and not is_in_place(node) or node.kind[:1] == "^" or facts.is_random and is_random(node):
            self.program.is_random |= facts.is_random or facts.side_effects or "::" not in node.kind
            return None
        if writes and may_overlap(node, lambda a, b: not roots_of(self.env[a]).isdisjoint(roots_of(self.env[b]))):
            return None     # the operator refuses some writes between overlapping operands: only the run knows whether these overlap
        operands = [operand_of(item) for item in items]
        if None in operands:
            return None
        values = [operand[0] for operand in operands if operand is not None]
        if node.kind in IDENTITY and not any(value is None for value in values):
            return None     # only the run knows which objects the operands are
        try:
            key = (node.kind, len(node.outputs), *[value.type for value in node.inputs], *[value.type for value in node.outputs],
                   *[(name, attribute.text) for name, attribute in node.attributes.items()], *[key_of(value) for value in values])
            if key not in _templates:
                if len(_templates) > MAX_TEMPLATES:
                    _templates.clear()
                _templates[key] = make_template(node, values)
            template = _templates[key]
        except TypeError:
            return None
        self.program.writes |= writes
        if template is not None and any(type(each) is list and (self.compares or self.changes(value))
                                     for value, each in zip(node.outputs, template.result, strict=True)):
            return None
        return template

    def instantiate(self, node: Node, template: Template, items: list[Item], into: Lowered) -> None:
        """Append the calls of a template, with new variables for their results."""
        variables: dict[int, Variable] = {}
        for traced, variable in zip(template.stand_ins, leaves(items), strict=True):
            variables[id(traced)] = variable

        def renamed(value: Any) -> Any:
            if is_traced(value):
                return variables[id(value)]
            return tuple([renamed(item) for item in value]) if type(value) is tuple else value

        for number, step in enumerate(template.steps):
            needless = (node, number) in self.without and step.function in COPIES
            if needless or is_itself(step) and renamed(step.args[0]).roots.isdisjoint(self.program.inputs):
                variables[id(step.out)] = renamed(step.args[0])
                continue
            args = tuple([renamed(each) for each in step.args])
            if step.way != "into":
                roots = variables[id(step.out.root)].roots if step.out.root is not step.out else None
                variables[id(step.out)] = self.variable(step.out.meta, roots)
            named = {name: renamed(value) for name, value in step.named.items()}
            into.instructions.append(Call(step.function, args, named, variables[id(step.out)], step.way, node, number))

        def item_of(value: Any) -> Item:
            if is_traced(value):
                return variables[id(value)]
            if type(value) in (list, tuple):
                return Group([item_of(item) for item in value], type(value))
            return Known(value)

        for value, result in zip(node.outputs, template.result, strict=True):
            self.env[value] = item_of(result)

    def visit(self, node: Node, items: list[Item], into: Lowered) -> None:
        """Lower a node to a `Visit`: it is called as the interpreter calls it."""
        function, sole, fresh = visitor(node)
        keeps = node_may_write(node) or facts_of(node.kind).side_effects
        reads = frozenset().union(*[roots_of(item) for item in items]) if items and not fresh else frozenset()
        seen = self.observed.get(node)
        outs: list[Variable] = []
        visit = Visit(function, items, outs, node, sole, keeps)
        visit.fresh = fresh and sole
        for place, value in enumerate(node.outputs):
            meta = seen[place] if seen is not None and len(seen) == len(node.outputs) else predicted_meta(node, items)
            if value in self.loose:
                meta = None
            out = self.variable(meta)
            out.roots = out.roots | reads
            outs.append(out)
            visit.facts.append(meta)
        into.instructions.append(visit)
        self.env.update(zip(node.outputs, outs, strict=True))

    def subgraph(self, node: Node, into: Lowered) -> None:
        """A node with an inner graph, such as a group: the inner graph's nodes in its place."""
        graph = node.subgraph
        if graph is None or len(graph.inputs) != len(node.inputs) or len(graph.outputs) < len(node.outputs):
            raise NotLowered("a subgraph of another form")
        if not self.loose.isdisjoint(node.outputs) or any(map(changes_shapes, graph.walk())):
            raise NotLowered("it owns a graph that sees a tensor change its shape")
        self.inside()
        operands = [self.env[value] for value in node.inputs]
        self.env.update(zip(graph.inputs, operands, strict=True))
        inner = Lowered()
        self.block(graph.block, inner)
        results = [self.env[value] for value in graph.outputs[:len(node.outputs)]]
        self.depth -= 1
        slow = node.kind == FUSION_GROUP and self.options.native is None and calls_slow(inner.instructions)
        if node.kind == FUSION_GROUP and not self.opened and is_fusible(inner, results, operands, 1 if slow else 2):
            group = Fused(graph, *self.options)
            if slow or is_large(results) or self.options.native and group.is_native_for([kind_of_operand(item) for item in operands]):
                self.fused(node, group, operands, results, into)
                return
        into.instructions += inner.instructions
        self.env.update(zip(node.outputs, results, strict=True))

    def fused(self, node: Node, group: Fused, operands: list[Item], results: list[Item], into: Lowered) -> None:
        """A group that runs block by block, or as a native loop, instead of the calls of its operators."""
        known = [(meta_of_item(item), item) for item in operands]
        group.way([item.value if isinstance(item, Known) else None if meta is None else dummy(meta) for meta, item in known])  # now
        self.program.groups.append((node, group))
        metas = [meta_of_item(item) for item in results]
        if len(metas) == 1 and metas[0] is not None:
            out = self.env[node.outputs[0]] = self.variable(metas[0])
            into.instructions.append(Call(Bound(group, metas[0]), tuple(operands), {}, out, "ufunc", node))
            return
        outs = [self.variable(meta) for meta in metas]
        visit = Visit(BoundToMany(group, metas), operands, outs, node, False, False)
        visit.fills = all(meta is not None and meta.nbytes >= RECYCLED for meta in metas)
        visit.facts = list(metas) if visit.fills else [None] * len(outs)
        into.instructions.append(visit)
        self.env.update(zip(node.outputs, outs, strict=True))


def is_piece(item: Variable, counter: Item) -> bool:
    """Is an item a view of a part of a larger array that its round computes? A list with such a view keeps the larger array alive."""
    if item.meta is None or item.meta.dtype.kind not in "iufc" or not isinstance(counter, Variable):
        return False
    return all(root.number > counter.number and root.meta is not None and root.meta.nbytes > item.meta.nbytes for root in item.roots)


def is_itself(step: Step) -> bool:
    """Is a step a reshape to the shape that its operand has?"""
    return step.function is np.ndarray.reshape and step.way == "view" and bool(step.args[0].meta == step.out.meta)


def contains_arrays(value: Any) -> bool:
    """Does a value contain an array?"""
    if isinstance(value, list | tuple):
        return any(map(contains_arrays, value))
    return isinstance(value, np.ndarray)


def key_of(value: Any) -> Any:
    """A key that is equal only for equal values of equal types (`1`, `1.0` and `True` differ, and so do `0.0` and `-0.0`)."""
    if type(value) is Meta:
        return value
    if type(value) is float:
        return float, repr(value)
    if isinstance(value, list | tuple):
        return type(value), tuple([key_of(each) for each in value])
    return type(value), value


# -- nodes
def make_template(node: Node, values: list[Any]) -> Template | None:
    """The calls that the kernel of a node makes, traced on arrays without elements. None when it cannot be traced."""
    handler = handler_of(node.kind)
    if handler is not None and node.kind not in TRACEABLE_PRIMS:
        return None

    def call(operands: list[Any]) -> Any:
        if handler is not None:
            return handler(node, operands)
        if node.kind in WRITES_ALL:
            if node.attributes:     # old texts: `fill_[value={7}](%x)`
                operands = from_values(node, operands)[1]
            return (trace_copy(operands[0], operands[1] if len(operands) > 1 else 0, node.kind != "aten::copy_"),)
        plan = plan_for(node)
        overload, args = (plan.overload, plan.arguments(operands)) if plan is not None else from_values(node, operands)
        if overload.mode == "inplace":
            return (trace_write(args[0], traced_overload(overload)._compute(args)),)
        if overload.mode != "plain" or any(each.alias is not None and each.alias.is_write for each in overload.schema.arguments):
            raise Untraceable("writes")
        result = traced_overload(overload)._compute(args)
        if len(overload.schema.returns) > 1 and len(node.outputs) > 1 or len(node.outputs) != 1:
            if not isinstance(result, list | tuple) or len(result) != len(node.outputs):
                raise Untraceable("another number of results")
            return tuple(result)
        return (result,)

    try:
        result, steps, stand_ins = trace(call, values)
    except Untraceable:
        return None
    if not isinstance(result, list | tuple) or len(result) != len(node.outputs) or not all(map(is_simple, result)):
        return None
    return Template(steps, tuple(result), stand_ins)


def is_in_place(node: Node) -> bool:
    """Is a node the in-place form of an operator on tensors, with a sole result?"""
    return node.kind[:6] == "aten::" and node.kind[-1] == "_" and node.kind[-2] != "_" and len(node.outputs) == 1 and bool(node.inputs)


def is_simple(value: Any) -> bool:
    """Is a value a traced array, a number, a string, None, or a list or tuple of those?"""
    if type(value) in (list, tuple):
        return all(map(is_simple, value))
    return is_traced(value) or value is None or type(value) in (int, float, bool, complex, str)


_traced_overloads: dict[Overload, Overload] = {}


def traced_overload(overload: Overload) -> Overload:
    """The overload with a kernel that gets the namespace for tracing."""
    twin = _traced_overloads.get(overload)
    if twin is None:
        twin = _traced_overloads[overload] = Overload(overload.schema, overload.op, overload.mode, overload.outs)
        kernel = overload.kernel
        twin.kernel = lambda xp, *values: kernel(NAMESPACE, *values)
    return twin
