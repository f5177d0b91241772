"""Alias analysis: which values may share memory, and which nodes write into it.

Every value has *roots*: the values in whose memory it may be. A view has the roots of its operand, the result of an `If` those of both
branches; any other value is its own root. Roots that are put into a container, read from one, or passed in from outside are *wild*: all
wild roots of one memory class may share memory (torch's wildcard sets).

The analysis is conservative, and one walk: a node of a kind that only allocates new memory (nearly all) costs one dict lookup. It is a
snapshot: after edits that change which memory values are in, make a new one.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from irtool.analysis.alias_roots import roots_of_all, union_of
from irtool.analysis.memory_classes import ANYTHING, classes_meet, contained_classes, is_mutable, memory_class
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.effects import (
    DECLARED,
    FRESH,
    GROUP_KINDS,
    OF_ONE,
    SPECIAL,
    UNDECLARED,
    category_of,
    facts_of,
    node_may_write,
    result_alias,
    updates_statistics,
)
from irtool.ir.handlers import Handlers
from irtool.ir.schema import Literal, Schema, node_arguments, qualified, schema_of
from irtool.ir.types import ListType, TensorType, TupleType

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Graph, Node, Value

UNINITIALIZED = "prim::Uninitialized"
"""The kind of values on paths that raise: nobody reads or writes them, so they share no memory."""

GRAD_MODES = "__torch__.torch.autograd.grad_mode."
"""Prefix of the names of classes that are context managers without effects on tensors."""


_RULES: Handlers[Callable[[Aliases, Node], None]] = Handlers()


class Aliases:
    """The aliases and writes of a graph as it is now.

    apart: nodes whose results are known to share no memory that anything else reads, whatever their kinds say.
    """

    def __init__(self, graph: Graph, apart: Container[Node] = ()) -> None:
        self.graph = graph
        self._apart = apart
        self._points: dict[Value, tuple[Value, ...]] = {}     # a value that is no root itself -> the values that it may alias
        self._wild_values: list[Value] = []
        self._writes: dict[Node, list[Value]] = {}            # direct writes, before roots are known
        self._writes_all: set[Node] = set()                   # nodes that may write into any wild memory
        self._plain: dict[str, frozenset[int]] = {}           # kinds that only allocate -> numbers of operands that need a closer look
        self._contents: dict[Value, tuple[Value, ...]] = {}   # lists that never leave: their elements
        self._of_one: dict[Value, list[Value]] = {}           # such a list -> results that may be views of the only tensor in it
        self._roots: dict[Value, frozenset[Value]] = {}       # of every value in _points, computed on first use
        self._names: dict[Value, list[Value]] = {}            # root -> the values that have it, computed on first use
        self._writes_of: dict[Node, tuple[frozenset[Value], frozenset[str]]] = {}
        for value in graph.inputs:
            self._make_wild(value)
        self._analyze_block(graph.block)
        self._settle_containers()
        self._wild: set[Value] = set()
        for value in self._wild_values:
            self._wild.update(self.roots(value))
        self._written: set[Value] = set()
        self._written_classes: set[str] = set()
        for values in self._writes.values():
            for value in values:
                self._note_write(value)
        if self._writes_all:
            self._written_classes.add(ANYTHING)
        self._output_roots: set[Value] = set()
        for value in graph.outputs:
            if is_mutable(value.type):
                self._output_roots.update(self.roots(value))
                for element in self._contents.get(value, ()):
                    self._output_roots.update(self.roots(element))

    def _note_write(self, value: Value) -> None:
        for root in self.roots(value):
            self._written.add(root)
            if root in self._wild:
                self._written_classes.add(memory_class(root.type) or ANYTHING)

    # -- questions about values
    @property
    def has_writes(self) -> bool:
        """Does any node write into memory?"""
        return bool(self._writes or self._writes_all)

    def roots(self, value: Value) -> frozenset[Value]:
        """The roots of a value."""
        if value not in self._points:
            return frozenset((value,))
        if not self._roots:
            self._roots = roots_of_all(self._points)
        return self._roots[value]

    def sharing(self, values: Iterable[Value]) -> Callable[[Value], bool]:
        """A predicate: is a value one of `values`, or may it share memory with one? Its cost does not depend on the number of `values`."""
        these = {value for value in values if is_mutable(value.type)}
        roots = {root for value in these for root in self.roots(value)}
        classes = {memory_class(root.type) for root in roots if root in self._wild}

        def shares(value: Value) -> bool:
            if value in these:
                return True
            if not is_mutable(value.type):
                return False
            mine = self.roots(value)
            return not mine.isdisjoint(roots) or any(
                classes_meet(memory_class(root.type), other) for root in mine if root in self._wild for other in classes)
        return shares

    def elements(self, value: Value) -> tuple[Value, ...]:
        """The elements of a constructed list or tuple that nothing else takes apart; empty for any other value."""
        return self._contents.get(value, ())

    def names_of(self, value: Value) -> list[Value]:
        """The values of the graph that may share memory with a value, including itself. Do not change the list: it is cached."""
        if not self._names:
            for each in self.graph.values():
                if is_mutable(each.type):
                    for root in self.roots(each):
                        self._names.setdefault(root, []).append(each)
        if self.is_wild(value):
            shares = self.sharing([value])
            return [each for each in self.graph.values() if shares(each)]
        names = [self._names.get(root, []) for root in self.roots(value)]
        return names[0] if len(names) == 1 and names[0] else list(dict.fromkeys([value, *itertools.chain(*names)]))

    def is_wild(self, value: Value) -> bool:
        """May the value share memory with something outside the graph or in a container?"""
        return not self._wild.isdisjoint(self.roots(value))

    def may_alias(self, a: Value, b: Value) -> bool:
        """May two values share memory?"""
        if not is_mutable(a.type) or not is_mutable(b.type):
            return False
        mine, yours = self.roots(a), self.roots(b)
        if not mine.isdisjoint(yours):
            return True
        wild_mine = [root for root in mine if root in self._wild]
        wild_yours = [root for root in yours if root in self._wild]
        return any(classes_meet(memory_class(x.type), memory_class(y.type)) for x in wild_mine for y in wild_yours)

    def is_written(self, value: Value) -> bool:
        """May any node of the graph write into the memory of a value, or of elements that it contains?"""
        if not (self._written or self._written_classes):
            return False
        if not memory_class(value.type):
            return False
        if self.is_written_itself(value):
            return True
        if value in self._contents:
            return any(self.is_written(element) for element in self._contents[value])
        return any(classes_meet(inner, other) for inner in contained_classes(value.type) for other in self._written_classes)

    def is_written_itself(self, value: Value) -> bool:
        """As `is_written`, but without the elements of a container."""
        for root in self.roots(value):
            if root in self._written:
                return True
            if root in self._wild and any(classes_meet(memory_class(root.type), other) for other in self._written_classes):
                return True
        return False

    def escapes(self, value: Value) -> bool:
        """May code outside the graph see the memory of a value: through a result, an input, or a container?"""
        if not is_mutable(value.type):
            return False
        roots = self.roots(value)
        return not self._output_roots.isdisjoint(roots) or any(root in self._wild and self._leaves(root) for root in roots)

    def _leaves(self, root: Value) -> bool:
        """May code outside the graph see wild memory? Memory that the graph allocates is seen only where a container or a result may hold
        it."""
        return category_of(root.node) != FRESH or any(classes_meet(memory_class(root.type), other) for other in self._leaving_classes)

    @cached_property
    def _leaving_classes(self) -> set[str]:
        """The memory classes of wild values that may leave: in results and, if a node stores values in memory other than that of tensors,
        anywhere."""
        if self._writes_all or any(memory_class(value.type) != "T" for values in self._writes.values() for value in values):
            return {ANYTHING}
        classes: set[str] = set()
        inputs = set(self.graph.inputs)
        for result in self.graph.outputs:
            for value in (result, *self._contents.get(result, ())):
                roots = self.roots(value) - inputs
                classes.update(memory_class(root.type) for root in roots if root in self._wild)
                if roots and value not in self._contents:
                    classes.update(contained_classes(value.type))
        return classes

    def touched_inputs(self, by_results: bool = True) -> list[bool]:
        """Per input of the graph: may a node write into it, or (by_results) a result share its memory? Two inputs are assumed not to alias
        each other."""
        inputs = set(self.graph.inputs)
        touched = {root for root in self._written if root.node.kind != "prim::CreateObject"}     # a new instance is no part of an input
        if by_results:
            touched |= self._output_roots
        if self._writes_all or any(root in self._wild and root not in inputs for root in touched):      # perhaps an element of an input
            return [True] * len(self.graph.inputs)
        return [not touched.isdisjoint(self.roots(value)) for value in self.graph.inputs]

    # -- questions about nodes
    def has_writers(self, node: Node) -> bool:
        """May any node of the graph write into an operand or result of `node`?"""
        if not (self._written or self._written_classes) or node.kind == UNINITIALIZED:
            return False
        if node.kind == "aten::len":        # independent of the elements
            return any(map(self.is_written_itself, node.inputs))
        return any(map(self.is_written, node.inputs)) or any(map(self.is_written, node.outputs))

    def is_private(self, node: Node) -> bool:
        """Does no node write, and is each result of `node` in memory of its own that nothing outside the graph sees?"""
        if self._writes or self._writes_all:
            return False
        points, wild, leaving = self._points, self._wild, self._output_roots
        for value in node.outputs:
            if value in points or value in wild or value in leaving:
                return False
        return True

    def can_merge(self, earlier: Node, dropped: Node) -> bool:
        """May users of `dropped` read the results of `earlier`, an equal node?

        Not if one of the results is written into, nor if both escape, unless they are views of the same memory anyway.
        """
        if self.is_private(dropped):
            return True
        if earlier.kind == UNINITIALIZED:
            return True
        for mine, yours in zip(earlier.outputs, dropped.outputs, strict=True):
            if self.is_written(mine) or self.is_written(yours):
                return False
        if earlier.kind == "prim::ListUnpack":     # both give the same elements; torch merges them only if these cannot escape
            return self._wild.isdisjoint(self._output_roots)
        escaping = [self.escapes(mine) and self.roots(mine) != self.roots(yours)
                    for mine, yours in zip(earlier.outputs, dropped.outputs, strict=True)]
        return not (any(escaping) and any(map(self.escapes, dropped.outputs)))

    def note_replaced(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Update the analysis after new values have taken the places of old ones: they are now wild, or leave the graph, as these did."""
        for mine, yours in zip(new, old, strict=True):
            for kind in (self._wild, self._output_roots):
                if not kind.isdisjoint(self.roots(yours)):
                    kind.update(self.roots(mine))

    def can_replace(self, old: Value, new: Value) -> bool:
        """May users of `old` read `new` instead, if both have the same elements? (as `can_merge`, for single values)"""
        return not (self.is_written(old) or self.is_written(new) or self.escapes(old) and self.escapes(new))

    def writes(self, node: Node) -> frozenset[Value]:
        """The roots that a node, or one in its blocks, writes into, except wild ones (`writes_wild`)."""
        return self._effects(node)[0]

    def writes_wild(self, node: Node) -> bool:
        """Does a node, or one in its blocks, write into wild memory?"""
        return bool(self._effects(node)[1])

    def _effects(self, node: Node) -> tuple[frozenset[Value], frozenset[str]]:
        """The roots that a node and the nodes in its blocks write into, and the memory classes of wild ones.

        Computed once per node, inner nodes first, so that the time is linear in nested blocks too.
        """
        known = self._writes_of
        stack = [] if node in known else [node]
        while stack:
            at = stack[-1]
            inner = [each for block in at.blocks for each in block if each.blocks or each in self._writes or each in self._writes_all]
            waiting = [each for each in inner if each not in known]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            roots = frozenset(root for value in self._writes.get(at, ()) for root in self.roots(value))
            classes = frozenset(memory_class(root.type) for root in roots if root in self._wild)
            known[at] = (union_of(roots, [known[each][0] for each in inner]),
                         union_of(classes | {ANYTHING} if at in self._writes_all else classes, [known[each][1] for each in inner]))
        return known[node]

    def writes_into(self, node: Node, values: Iterable[Value]) -> bool:
        """May a node write into the memory of one of `values`, or of elements that they contain?"""
        written, classes = self._effects(node)
        if not written and not classes:
            return False
        for value in values:
            for root in self.roots(value):
                if root in written or root in self._wild and any(classes_meet(memory_class(root.type), c) for c in classes):
                    return True
            if value in self._contents:
                if self.writes_into(node, self._contents[value]):
                    return True
            elif any(classes_meet(inner, c) for inner in contained_classes(value.type) for c in classes):
                return True
        return False

    # -- the sweep
    def _make_wild(self, value: Value) -> None:
        if is_mutable(value.type) and value.node.kind != UNINITIALIZED:
            self._wild_values.append(value)

    def _point(self, value: Value, *targets: Value) -> None:
        if is_mutable(value.type):
            real = [target for target in targets if target.node.kind != UNINITIALIZED]
            self._points[value] = (*self._points.get(value, ()), *(real or targets))

    def _write(self, node: Node, value: Value) -> None:
        if is_mutable(value.type):
            self._writes.setdefault(node, []).append(value)

    def _analyze_block(self, block: Block) -> None:
        plain = self._plain
        end = block.return_node
        after = end.next
        while True:     # see Note [warm loops] in irtool/analysis/liveness.py
            node = after
            if node is end:
                break
            after = node.next
            arities = plain.get(node.kind)
            if arities is not None and (not arities or len(node.inputs) + len(node.attributes) not in arities):
                continue
            category = category_of(node)
            if category == FRESH:
                plain[node.kind] = facts_of(node.kind).out_arities
                continue
            if node in self._apart:
                continue
            if category == SPECIAL:
                rule = _RULES.get(node.kind) or _RULES.get("prim::" + node.kind)
                (rule or Aliases._analyze_conservatively)(self, node)
            elif category == DECLARED:
                schema = schema_of(node)
                if schema is None:
                    self._analyze_unknown(node, node_may_write(node))
                else:
                    self._analyze_declared(node, schema)
                    if qualified(node.kind) in UNDECLARED:
                        self._analyze_undeclared(node)
                    elif qualified(node.kind) in OF_ONE:
                        self._analyze_of_one(node)
                    if updates_statistics(node):
                        self._write_statistics(node)
            else:
                self._analyze_unknown(node, False)

    def _analyze_undeclared(self, node: Node) -> None:
        """The results may be, or be views of, the first operand that is a tensor or a list."""
        operand = next((value for value in node.inputs if isinstance(value.type, ListType | TensorType)), None)
        if operand is None:
            return
        for value in node.outputs:
            if isinstance(operand.type, ListType) or isinstance(value.type, ListType):
                self._make_wild(operand)
                self._make_wild(value)
            else:
                self._point(value, operand)

    def _analyze_of_one(self, node: Node) -> None:
        """The result may be a view of the only tensor of a list. Which tensors are in a list that leaves is not known."""
        for value in node.inputs:
            if isinstance(value.type, ListType) and isinstance(value.type.element, TensorType):
                held = self._contents.get(value)
                if held is None:
                    self._make_wild(node.output)
                    continue
                self._of_one.setdefault(value, []).append(node.output)
                if len(held) == 1:
                    self._point(node.output, *held)

    def _analyze_declared(self, node: Node, schema: Schema) -> None:
        actual: dict[str, list[Value]] = {}
        for argument, operand in zip(schema.arguments, node_arguments(node, schema), strict=False):
            alias = argument.alias
            if alias is None or isinstance(operand, Literal):
                continue
            for value in operand if isinstance(operand, list) else (operand,):
                for name in alias.sets:
                    actual.setdefault(name, []).append(value)
                if alias.is_write:
                    if alias.on_elements:
                        self._writes_all.add(node)
                    else:
                        self._write(node, value)
                if "*" in alias.after:
                    self._make_wild(value)
        if schema.is_varret:
            return self._analyze_extraction(node)
        for i, value in enumerate(node.outputs):
            alias = result_alias(node.kind, schema, i)
            if alias is None:
                continue
            if "*" in alias.sets:
                self._make_wild(value)
                continue
            targets = [target for name in alias.sets for target in actual.get(name, ())]
            if alias.on_elements and isinstance(value.type, ListType):
                for target in targets:
                    self._make_wild(target)
            elif targets:
                self._point(value, *targets)
        return None

    def _write_statistics(self, node: Node) -> None:
        for name in ("running_mean", "running_var"):
            operand = node.argument(name)
            if not isinstance(operand, Literal | list | None):
                self._write(node, operand)

    def _analyze_unknown(self, node: Node, writes: bool) -> None:
        """An operator without a schema: its results may be views; it writes if its name ends in `_`; other namespaces may do anything."""
        if facts_of(node.kind).side_effects:
            return self._analyze_conservatively(node)
        if writes or node.kind.endswith(("_", "!")):
            for value in node.inputs:
                self._write(node, value)
        for value in node.outputs:
            if is_mutable(value.type):
                self._make_wild(value)
                self._point(value, value, *[operand for operand in node.inputs if is_mutable(operand.type)])
        return None

    def _analyze_conservatively(self, node: Node) -> None:
        self._writes_all.add(node)
        for value in node.inputs:
            self._make_wild(value)
            self._write(node, value)
        for value in node.outputs:
            self._make_wild(value)
        self._analyze_blocks(node)

    @_RULES.of("prim::Enter", "prim::Exit")
    def _analyze_context(self, node: Node) -> None:
        """`prim::Enter` and `prim::Exit`: grad modes have no effect on tensors, other context managers may do anything."""
        if node.inputs and node.inputs[0].type.text.startswith(GRAD_MODES):
            return self._analyze_extraction(node)
        return self._analyze_conservatively(node)

    def _analyze_blocks(self, node: Node) -> None:
        for block in node.blocks:
            for value in block.inputs:
                self._make_wild(value)
            self._analyze_block(block)
            for value in block.outputs:
                self._make_wild(value)

    @_RULES.of("prim::If", "prim::GradOf")
    def _analyze_if(self, node: Node) -> None:
        for block in node.blocks:
            self._analyze_block(block)
        for i, value in enumerate(node.outputs):
            self._point(value, *[block.outputs[i] for block in node.blocks if i < len(block.outputs)])

    @_RULES.of("prim::Loop")
    def _analyze_loop(self, node: Node) -> None:
        body = node.blocks[0]
        carried = list(zip(node.outputs, node.inputs[2:], body.inputs[1:], body.outputs[1:], strict=False))
        for _, initial, inner, _ in carried:
            self._point(inner, initial)
        self._analyze_block(body)
        for result, initial, inner, again in carried:
            if again is not inner:
                self._point(inner, again)
            self._point(result, initial, again)

    @_RULES.of("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::NamedTupleConstruct")
    def _analyze_construction(self, node: Node) -> None:
        held = tuple(value for value in node.inputs if is_mutable(value.type))
        if held and not node.kind.endswith("DictConstruct"):
            self._contents[node.outputs[0]] = held
        else:
            for value in held:
                self._make_wild(value)

    @_RULES.of("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice", "prim::ListUnpack", "prim::GetAttr", "prim::tolist")
    def _analyze_extraction(self, node: Node) -> None:
        for value in node.outputs:
            self._make_wild(value)

    @_RULES.of("prim::SetAttr")
    def _analyze_set_attribute(self, node: Node) -> None:
        for value in node.inputs:
            self._make_wild(value)
        if node.inputs:
            self._write(node, node.inputs[0])

    @_RULES.of("prim::unchecked_cast", "prim::profile", "prim::profile_ivalue", "prim::TypeCheck", "prim::RequiresGradCheck", "prim::Guard")
    def _analyze_views(self, node: Node) -> None:
        """Result i is operand i, or the first operand."""
        operands = [value for value in node.inputs if is_mutable(value.type)]
        for i, value in enumerate(node.outputs):
            if operands and is_mutable(value.type):     # no operands: a None cast to a tensor, on a path that never runs
                self._point(value, node.inputs[i] if len(node.inputs) == len(node.outputs) else operands[0])

    @_RULES.of("prim::ConstantChunk", "prim::BailOut", "prim::ReplaceIfUndef", "prim::BroadcastMKLDNNTensors", "prim::IfThenElse")
    def _analyze_selection(self, node: Node) -> None:
        operands = [value for value in node.inputs if is_mutable(value.type)]
        for value in node.outputs:
            if operands:
                self._point(value, *operands)

    @_RULES.of("prim::awaitable_wait", "prim::awaitable_nowait", "aten::wait")
    def _analyze_wait(self, node: Node) -> None:
        self._writes_all.add(node)
        for value in (*node.inputs, *node.outputs):     # operands: in ill-typed texts what is waited for is a tensor
            self._make_wild(value)

    @_RULES.of("prim::fork", "prim::awaitable")
    def _analyze_fork(self, node: Node) -> None:
        for value in node.inputs:
            self._make_wild(value)

    @_RULES.of(*GROUP_KINDS, CUSTOM_VJP)
    def _analyze_subgraph(self, node: Node) -> None:
        """A group has the effects of its nodes on its operands; one with side effects may do anything."""
        inner = node.subgraph
        if inner is None or any(facts_of(n.kind).side_effects for n in inner.walk()):
            return self._analyze_conservatively(node)
        for value, operand in zip(inner.inputs, node.inputs, strict=False):
            self._point(value, operand)
        self._analyze_block(inner.block)
        for each in inner.walk():
            for written in self._writes.get(each, ()):
                self._write(node, written)
            if each in self._writes_all:
                self._writes_all.add(node)
        for value, result in zip(node.outputs, inner.outputs, strict=False):
            self._point(value, result)
        return None

    def _settle_containers(self) -> None:
        """Make the elements of a constructed list or tuple wild, unless only operators that allocate their results (`cat`, `stack`) read
        it, or it is a tuple that the graph returns. A list made from another one (`a + b`, `list(a)`) has the same elements."""
        held = self._contents
        if not held:
            return
        leaving: set[Value] = set()
        for block in self.graph.walk_blocks():
            for node in block:
                lists = [value for value in node.inputs if value in held]
                is_fresh = category_of(node) == FRESH or qualified(node.kind) in OF_ONE
                if lists and (not is_fresh or any(contained_classes(value.type) for value in node.outputs)):
                    leaving.update(lists)
            if block is self.graph.block:
                leaving.update(value for value in block.outputs if value in held and not isinstance(value.type, TupleType))
            else:
                leaving.update(value for value in block.outputs if value in held)
        for value in leaving:
            for each in (*held.pop(value), *self._of_one.get(value, ())):
                self._make_wild(each)
