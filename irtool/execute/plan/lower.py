"""A graph as calls of NumPy functions, for inputs of known dtypes, shapes and strides.

Every value of the graph is *known* (a number, a size, None: worked out here, once), a *variable* of the compiled plan, or a group of
those (a list or tuple that nobody changes). A node whose operands' facts are known becomes the calls its kernel makes
(`irtool.ops.symbols`); any other is called as the interpreter calls it (`Visit`). Blocks become branches and loops.
"""
from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from irtool.analysis.alias import Aliases
from irtool.analysis.shape_changes import changes_shapes, loose_tensors
from irtool.execute.fusion import Bound, BoundToMany, Fused, is_slow
from irtool.execute.plan.buffers import RECYCLED
from irtool.execute.plan.copies import COPIES
from irtool.execute.plan.filled_lists import APPEND, GET, RoundList, round_list
from irtool.execute.plan.known_lists import names_of
from irtool.execute.plan.loop_numbers import bounds_of, computed, selected
from irtool.execute.plan.lowered_blocks import FUSION_GROUP, MAX_CALLS, Blocks, NotLowered
from irtool.execute.plan.opaque_calls import visitor
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
from irtool.ops.call import from_values, plan_for
from irtool.ops.overload import Overload
from irtool.ops.size_facts import TRACEABLE_PRIMS, WRITES_ALL
from irtool.ops.structure import STRUCTURE, handler_of
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of
from irtool.ops.symbols.recorded_calls import NAMESPACE, trace
from irtool.ops.symbols.recorded_writes import trace_copy, trace_write
from irtool.ops.symbols.recorder import StandIn, Step, Untraceable, is_traced

WORTH_FUSING = 1 << 18
"""Bytes of a result from which blocks that stay in the cache are faster than whole arrays."""
IDENTITY = frozenset(("aten::__is__", "aten::__isnot__"))


class Template:
    """The calls of a node, to be used for every node that has the same kind, types, attributes and operands' facts."""

    __slots__ = ("steps", "result", "given")

    def __init__(self, steps: list[Step], result: Any, given: Sequence[StandIn]) -> None:
        self.steps = steps
        self.result = result
        self.given = given


_templates: dict[Any, Template | None] = {}
MAX_TEMPLATES = 10_000
Observed = Mapping[Node, Sequence["Meta | None"]]


def lower(graph: Graph, inputs: Sequence[Any], observed: Observed | None = None, fusion: tuple[bool | None, int] = (None, 1),
          without: Collection[tuple[Node, int]] = ()) -> Program:
    """The program of a graph for inputs such as these: a Meta for an array, Known for a value, anything else stays unknown until the run.

    observed: facts of results that were seen in a run, by node, for nodes whose kernels do not tell; the plan checks them.
    Raises NotLowered.
    """
    return Lowering(graph, observed, fusion, without).run(inputs)


def list_changes(graph: Graph) -> tuple[bool, bool]:
    """May a list or dict be changed by a node of the graph; by one of a graph that a node owns? Raises NotLowered for too many nodes."""
    stack, seen, found = [graph], 0, [False, False]
    while stack:
        at = stack.pop()
        for node in at.walk():
            seen += 1
            if seen > MAX_CALLS:
                raise NotLowered(f"it takes more than {MAX_CALLS} calls")
            if node.kind[:1] == "^" or node_may_write(node) and any(not isinstance(value.type, TensorType) for value in node.inputs[:1]):
                found[at is not graph] = True
            if node.subgraph is not None:
                stack.append(node.subgraph)
    return found[0], found[1]


def is_fusible(lowered: Lowered, results: list[Item], operands: list[Item], least: int) -> bool:
    """Are there several steps (at least so many), all known, whose results have one layout?"""
    calls = [each for each in lowered.instructions if isinstance(each, Call)]
    metas = [meta_of_item(item) for item in results]
    return (len(calls) == len(lowered.instructions) >= least and all(meta is not None for meta in metas)
            and not any(isinstance(item, Variable) and item.meta is None or isinstance(item, Group) for item in operands)
            and len({meta.strides for meta in metas if meta is not None}) == 1)


def calls_slow(instructions: Sequence[Instruction]) -> bool:
    """Do calls take so long, number by number, that they are worth a native loop?"""
    return is_slow([(each.function.__name__, each.out.meta.nbytes // each.out.meta.dtype.itemsize) for each in instructions
                    if isinstance(each, Call) and isinstance(each.function, np.ufunc) and each.out.meta is not None])


def is_large(results: list[Item]) -> bool:
    """Is a result so large that blocks that stay in the cache are faster than whole arrays?"""
    return max(meta.nbytes for meta in map(meta_of_item, results) if meta is not None) >= WORTH_FUSING


def kind_of_operand(item: Item) -> Any:
    """What a fused group wants to know of an operand."""
    meta = meta_of_item(item)
    return item.value if isinstance(item, Known) else None if meta is None else (meta.dtype, not meta.shape)


class Lowering(Blocks):
    """The state of one lowering. `fusion`: may groups run as native loops (None: by size), and on how many threads."""

    def __init__(self, graph: Graph, observed: Observed | None, fusion: tuple[bool | None, int],
                 without: Collection[tuple[Node, int]]) -> None:
        super().__init__(Program(graph), fusion)
        self.without = without      # copies that are left out: by node and number of the call
        self.graph = graph
        self.observed = observed or {}
        self.names: dict[Value, list[Value]] = {}      # of lists that are known at any time: all names of one
        outside, self.inside_changes = list_changes(graph)
        self.loose = loose_tensors(graph)              # tensors whose shapes change in place: of those nothing is known before the run
        self.aliases = Aliases(graph) if outside else None
        self.writes = any(node_may_write(node) for node in graph.walk())

    def run(self, inputs: Sequence[Any]) -> Program:
        """Lower the graph's block."""
        for value, given in zip(self.graph.inputs, inputs, strict=True):
            variable = self.variable(given if isinstance(given, Meta) and value not in self.loose else None)
            self.program.inputs.append(variable)
            self.env[value] = given if isinstance(given, Known) else variable
        self.block(self.graph.block, self.program.body)
        self.program.body.results = [self.env[value] for value in self.graph.outputs]
        return self.program

    # -- nodes
    def node(self, node: Node, into: Lowered) -> None:
        """A node without blocks."""
        if node.kind in ("prim::Constant", "onnx::Constant") and self.constant(node):
            return
        if node.kind in ("prim::ListConstruct", "prim::TupleConstruct") and len(node.outputs) == 1:
            make = list if node.kind == "prim::ListConstruct" else tuple
            if make is tuple or not self.changes(node.outputs[0]) or self.is_known_list(node):
                self.env[node.outputs[0]] = Group([self.env[value] for value in node.inputs], make)
                return
            held = round_list(node)
            if held is not None:
                self.lists[node.outputs[0]] = held
        elif node.kind in (APPEND, GET) and node.inputs[0] in self.lists and self.round_list(node, self.lists[node.inputs[0]], into):
            return
        items = [self.env[value] for value in node.inputs]
        if node.kind == APPEND and node.inputs[0] in self.names and isinstance(items[0], Group):
            self.env.update(dict.fromkeys(self.names[node.inputs[0]], Group([*items[0].items, items[1]], list)))
            return
        if len(node.outputs) == 1 and any(isinstance(item, Variable) and item.bounds is not None for item in items) \
                and self.number(node, items, into):
            return
        template = self.template(node, items)
        if template is None:
            self.visit(node, items, into)
        else:
            self.instantiate(node, template, items, into)

    def round_list(self, node: Node, held: RoundList, into: Lowered) -> bool:
        """An item for a list that a loop fills, or one out of it. False where too little is known."""
        whole, item = [self.env[value] for value in node.inputs]
        if node.kind == APPEND:
            limit, counter = self.env[held.loop.inputs[0]], self.env[held.loop.blocks[0].inputs[0]]
            if held.appended(item, limit) and isinstance(item, Variable) \
                    and (self.overwrites or not held.looks_again(counter, into.instructions)):
                if not self.overwrites and held.is_looked_up and is_piece(item, counter):
                    held.item = self.copy_of(item, node, into)
                into.instructions.append(Call(list.append, (whole, held.item), {}, self.variable(), "keep", node))
            return held.item is not None
        found = held.item
        if found is None or not held.holds(item):
            return False
        if not isinstance(found, Variable):
            self.env[node.output] = found
            return True
        index = self.from_front(item, held.count, node, into)
        self.env[node.output] = self.item_at(node.inputs[0], held, index, node, into) if held.made is None \
            else self.made_again(held, index, node, into)
        return True

    def copy_of(self, item: Variable, node: Node, into: Lowered) -> Variable:
        """The same elements, row by row."""
        assert item.meta is not None
        copy = self.variable(fresh_meta(item.meta.dtype, item.meta.shape))
        into.instructions.append(Call(np.positive, (item,), {}, copy, "ufunc", node))
        return copy

    def item_at(self, value: Value, held: RoundList, index: Any, node: Node, into: Lowered) -> Variable:
        """An item of a list, or a row of what the list became."""
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

    def made_again(self, held: RoundList, index: Any, node: Node, into: Lowered) -> Variable:
        """What the round before one made; for the first round, what the loop began with."""
        assert held.made is not None
        maker, start = held.made
        if index == 0:
            return start
        low, high = (index, index) if type(index) is int else index.bounds
        block, before = Lowered() if low == 0 else into, index - 1 if type(index) is int else self.variable()
        if before.__class__ is Variable:
            before.bounds = max(low - 1, 0), high - 1
            block.instructions.append(Call(operator.sub, (index, Known(1)), {}, before, "number", node))
        lists = {each.item: (value, each) for value, each in self.lists.items() if each.loop is held.loop}
        rows = tuple([self.item_at(*lists[each], before, node, block) for each in maker.args])
        made = self.variable(maker.out.meta)
        block.instructions.append(Call(maker.function, rows, {}, made, "ufunc", node))
        if block is into:
            return made
        first = Lowered()
        block.results, first.results = [made], [start]
        out = self.variable(made.meta)
        out.roots |= made.roots | start.roots
        into.instructions.append(Branch([index], [block, first], [out], node, False))
        return out

    def from_front(self, item: Item, count: int, node: Node, into: Lowered) -> Any:
        """The index of one of so many items, counted from the first."""
        if isinstance(item, Known):
            return item.value % count
        assert isinstance(item, Variable) and item.bounds is not None
        if item.bounds[0] >= 0:
            return item
        number = self.variable()
        number.bounds = (item.bounds[0] + count, item.bounds[1] + count)
        into.instructions.append(Call(operator.add, (item, Known(count)), {}, number, "number", node))
        return number

    def is_known_list(self, node: Node) -> bool:
        """Is it known at any time what is in the list that a node makes?"""
        names = names_of(node, self.graph)
        self.names.update(dict.fromkeys(names, names))
        return bool(names)

    def changes(self, value: Value) -> bool:
        """May the list that a value is, or one in it, be changed?"""
        if self.inside_changes or self.aliases is None:
            return self.inside_changes
        holds_tensors = isinstance(value.type, ListType) and isinstance(value.type.element, TensorType)
        return self.aliases.is_written_itself(value) if holds_tensors else self.aliases.is_written(value)

    def constant(self, node: Node) -> bool:
        """A constant of the text. False for one that fails, or that is made anew for each run."""
        try:
            (value,) = STRUCTURE["prim::Constant"](node, [])
        except Exception:       # it is the run's business to fail, where the node stands
            return False
        if isinstance(value, np.ndarray):
            if self.depth and self.writes or node.outputs[0] in self.loose:      # a new one in each round
                return False
            variable = self.variable(meta_of(value), None, value)
            self.env[node.outputs[0]] = variable
            return True
        if isinstance(value, dict) or isinstance(value, list) and self.changes(node.outputs[0]) or contains_arrays(value):
            return False
        self.env[node.outputs[0]] = Known(value)
        return True

    def number(self, node: Node, items: list[Item], into: Lowered) -> bool:
        """A node on whole numbers, or one that selects with such a number. False where it is not known to succeed."""
        bounds = [item.bounds if isinstance(item, Variable) else bounds_of(item.value) if isinstance(item, Known) else None
                  for item in items]
        numbers = [each for each in bounds if each is not None]
        out = node.outputs[0]
        if len(numbers) == len(items):
            found = computed(node.kind, numbers)
            if found is None or node.attributes:
                return False
            variable = self.env[out] = self.variable()
            variable.bounds = found[1]
            into.instructions.append(Call(found[0], tuple(items), {}, variable, "number", node))
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
        """An item of the slices of a tensor: the operands of the `select` that it is. Those given for another list."""
        made = node.inputs[0].node
        if made.kind != "aten::unbind" or made.owner is None or len(made.inputs) != 2 or self.changes(node.inputs[0]):
            return items
        return [self.env[made.inputs[0]], self.env[made.inputs[1]], items[1]]

    def template(self, node: Node, items: list[Item]) -> Template | None:
        """The node's calls; None when they are not known."""
        facts = facts_of(node.kind)
        writes = node_may_write(node)
        if not self.loose.isdisjoint(node.outputs):
            return None
        if facts.side_effects or writes and not is_in_place(node) or node.kind[:1] == "^" or facts.is_random and is_random(node):
            self.program.is_random |= facts.is_random or facts.side_effects or "::" not in node.kind
            return None
        operands = [operand_of(item) for item in items]
        if None in operands:
            return None
        values = [operand[0] for operand in operands if operand is not None]
        if node.kind in IDENTITY and len(leaves(items)) > 1:       # the caller may have given one array twice
            return None
        try:
            key = (node.kind, len(node.outputs), *[value.type for value in node.inputs], *[value.type for value in node.outputs],
                   *[(name, attribute.text) for name, attribute in node.attributes.items()], *[key_of(value) for value in values])
            if key not in _templates:
                if len(_templates) > MAX_TEMPLATES:
                    _templates.clear()
                _templates[key] = make_template(node, values)
            found = _templates[key]
        except TypeError:
            return None
        self.program.writes |= writes
        if found is not None and any(type(each) is list and self.changes(value)
                                     for value, each in zip(node.outputs, found.result, strict=True)):
            return None
        return found

    def instantiate(self, node: Node, template: Template, items: list[Item], into: Lowered) -> None:
        """The node's calls with its own variables."""
        own: dict[int, Variable] = {}
        for traced, variable in zip(template.given, leaves(items), strict=True):
            own[id(traced)] = variable

        def mine(value: Any) -> Any:
            if is_traced(value):
                return own[id(value)]
            return tuple([mine(item) for item in value]) if type(value) is tuple else value

        for number, step in enumerate(template.steps):
            needless = (node, number) in self.without and step.function in COPIES
            if needless or is_itself(step) and mine(step.args[0]).roots.isdisjoint(self.program.inputs):
                own[id(step.out)] = mine(step.args[0])
                continue
            args = tuple([mine(each) for each in step.args])
            if step.way != "into":
                roots = own[id(step.out.root)].roots if step.out.root is not step.out else None
                own[id(step.out)] = self.variable(step.out.meta, roots)
            named = {name: mine(value) for name, value in step.named.items()}
            into.instructions.append(Call(step.function, args, named, own[id(step.out)], step.way, node, number))

        def item_of(value: Any) -> Item:
            if is_traced(value):
                return own[id(value)]
            if type(value) in (list, tuple):
                return Group([item_of(item) for item in value], type(value))
            return Known(value)

        for value, result in zip(node.outputs, template.result, strict=True):
            self.env[value] = item_of(result)

    def visit(self, node: Node, items: list[Item], into: Lowered) -> None:
        """The node, called as the interpreter does."""
        function, sole, fresh = visitor(node)
        keeps = node_may_write(node) or facts_of(node.kind).side_effects
        reads = frozenset().union(*[roots_of(item) for item in items]) if items and not fresh else frozenset()
        seen = self.observed.get(node)
        outs: list[Variable] = []
        visit = Visit(function, items, outs, node, sole, keeps)
        visit.fresh = fresh and sole
        for place, value in enumerate(node.outputs):
            meta = seen[place] if seen is not None and len(seen) == len(node.outputs) and value not in self.loose else None
            out = self.variable(meta)
            out.roots = out.roots | reads
            outs.append(out)
            visit.facts.append(meta)
        into.instructions.append(visit)
        self.env.update(zip(node.outputs, outs, strict=True))

    def subgraph(self, node: Node, into: Lowered) -> None:
        """A node that owns a graph: the graph's nodes in its place."""
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
        slow = node.kind == FUSION_GROUP and self.fusion[0] is None and calls_slow(inner.instructions)
        if node.kind == FUSION_GROUP and not self.opened and is_fusible(inner, results, operands, 1 if slow else 2):
            group = Fused(graph, *self.fusion)
            if slow or is_large(results) or self.fusion[0] and group.is_native_for([kind_of_operand(item) for item in operands]):
                self.fused(node, group, operands, results, into)
                return
        into.instructions += inner.instructions
        self.env.update(zip(node.outputs, results, strict=True))

    def fused(self, node: Node, group: Fused, operands: list[Item], results: list[Item], into: Lowered) -> None:
        """A group that is run block by block, or by a native loop: the operators' own calls are dropped."""
        known = [(meta_of_item(item), item) for item in operands]
        group.way([item.value if isinstance(item, Known) else None if meta is None else dummy(meta) for meta, item in known])  # now
        self.program.groups.append((node, group))
        metas = [meta_of_item(item) for item in results]
        if len(metas) == 1 and metas[0] is not None:
            out = self.env[node.outputs[0]] = self.variable(metas[0])
            into.instructions.append(Call(Bound(group, metas[0]), tuple(operands), {}, out, "ufunc", node))
            return
        outs = [self.variable(meta) for meta in metas]
        visit = Visit(BoundToMany(group), operands, outs, node, False, False)
        visit.fills = all(meta is not None and meta.nbytes >= RECYCLED for meta in metas)
        visit.facts = list(metas) if visit.fills else [None] * len(outs)
        into.instructions.append(visit)
        self.env.update(zip(node.outputs, outs, strict=True))


def is_piece(item: Variable, counter: Item) -> bool:
    """Does an array see only a part of what its round has made, all of which would be held with it?"""
    if item.meta is None or item.meta.dtype.kind not in "iufc" or not isinstance(counter, Variable):
        return False
    return all(root.number > counter.number and root.meta is not None and root.meta.nbytes > item.meta.nbytes for root in item.roots)


def is_itself(step: Step) -> bool:
    """Is it a reshape to the shape that is there?"""
    return step.function is np.ndarray.reshape and step.way == "view" and bool(step.args[0].meta == step.out.meta)


def contains_arrays(value: Any) -> bool:
    """Is there an array in it?"""
    if isinstance(value, list | tuple):
        return any(map(contains_arrays, value))
    return isinstance(value, np.ndarray)


def key_of(value: Any) -> Any:
    """A key under which only what is the same in every respect is found."""
    if type(value) is Meta:
        return value
    if type(value) is float:
        return float, repr(value)
    if isinstance(value, list | tuple):
        return type(value), tuple([key_of(each) for each in value])
    return type(value), value


# -- nodes
def make_template(node: Node, values: list[Any]) -> Template | None:
    """Trace the node's kernel. None when that cannot be done."""
    handler = handler_of(node.kind)
    if handler is not None and node.kind not in TRACEABLE_PRIMS:
        return None

    def call(given: list[Any]) -> Any:
        if handler is not None:
            return handler(node, given)
        if node.kind in WRITES_ALL:
            return (trace_copy(given[0], given[1] if len(given) > 1 else 0, node.kind != "aten::copy_"),)
        plan = plan_for(node)
        found, args = (plan.overload, plan.arguments(given)) if plan is not None else from_values(node, given)
        if found.mode == "inplace":
            return (trace_write(args[0], traced_overload(found)._compute(args)),)
        if found.mode != "plain" or any(each.alias is not None and each.alias.is_write for each in found.schema.arguments):
            raise Untraceable("writes")
        result = traced_overload(found)._compute(args)
        if len(found.schema.returns) > 1 and len(node.outputs) > 1 or len(node.outputs) != 1:
            if not isinstance(result, list | tuple) or len(result) != len(node.outputs):
                raise Untraceable("another number of results")
            return tuple(result)
        return (result,)

    try:
        result, steps, given = trace(call, values)
    except Untraceable:
        return None
    if len(result) != len(node.outputs) or not all(map(is_simple, result)):
        return None
    return Template(steps, tuple(result), given)


def is_in_place(node: Node) -> bool:
    """Is it the in-place form of an operator on tensors, with a sole result?"""
    return node.kind[:6] == "aten::" and node.kind[-1] == "_" and node.kind[-2] != "_" and len(node.outputs) == 1 and bool(node.inputs)


def is_simple(value: Any) -> bool:
    """Is it a traced array, a number, a string, None, or a list or tuple of those?"""
    if type(value) in (list, tuple):
        return all(map(is_simple, value))
    return is_traced(value) or value is None or type(value) in (int, float, bool, complex, str)


_traced_overloads: dict[Overload, Overload] = {}


def traced_overload(found: Overload) -> Overload:
    """The same overload whose kernel gets the namespace for tracing."""
    twin = _traced_overloads.get(found)
    if twin is None:
        twin = _traced_overloads[found] = Overload(found.schema, found.op, found.mode, found.outs)
        kernel = found.kernel
        twin.kernel = lambda xp, *values: kernel(NAMESPACE, *values)
    return twin
