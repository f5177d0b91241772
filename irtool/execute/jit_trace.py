"""Tracing one call of a jitted function: computes the call's results, and makes the variant for later calls.

The trace computes the results, so nothing runs twice. The function writes into copies of the arguments, which are then copied back.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.accepted_values import copied
from irtool.analysis.liveness import remove_dead_nodes
from irtool.dispatch.decisions import Answers, key_of
from irtool.dispatch.followed import followed
from irtool.dispatch.follower import Follower, plain
from irtool.dispatch.stack import Boxed, DispatchError, current, pushed
from irtool.dispatch.traced_numbers import Number
from irtool.dispatch.trees import flatten
from irtool.execute.executor import Executor
from irtool.execute.jit_arguments import Span, array_of, described, is_data, spans_of
from irtool.execute.jit_results import Item, Write, anew, containers, fetcher, rebased, rebuilt, refill, rest_of
from irtool.execute.jit_variants import Outer, Variant
from irtool.ir.arguments import called
from irtool.ir.effects import facts_of
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Value
from irtool.ops.array_library import np
from irtool.ops.arrays import generator
from irtool.ops.conjugates import has_conjugates
from irtool.ops.tensor import Tensor

CONSTANTS = Tensor | bool | int | float | complex | str | bytes | None | np.generic | np.ndarray | range | slice | type | type(...)
"""Classes of values that a function may return beside values of the trace: of these each call gives the same."""


class Trace:
    """The trace of one call."""

    def __init__(self, arguments: Any, leaves: Sequence[Any], shape: Any) -> None:
        self.originals = arguments
        self.leaves = leaves
        self.shape = shape
        self.follower = Follower(current())
        self.outputs: list[Value] = []          # of the graph
        self.contents: list[Any] = []           # their values in this call
        self.places: dict[Value, int] = {}
        self.tensors: list[int | Span] = []
        self.boxes: dict[int, Boxed] = {}       # leaves that are tensors, by place
        self.arguments: dict[int, int] = {}     # id of a traced leaf -> place of the leaf
        self.tree = rebuilt(arguments, iter(self.opened()), {})
        self.traced_leaves = flatten(self.tree)[0]
        self.containers = list(containers(self.tree))

    # -- in
    def opened(self) -> list[Any]:
        """The leaves as the function sees them."""
        arrays = {place: array for place, leaf in enumerate(self.leaves) if (array := array_of(leaf)) is not None}
        forwards = [each if min(each.strides, default=0) >= 0 else np.ascontiguousarray(each) for each in arrays.values()]
        copies = dict(zip(arrays, copied(forwards), strict=True))
        spans = spans_of(arrays)
        self.is_tangled = spans is None
        self.follower.has_conjugates = has_conjugates(arrays.values())
        for span in spans or ():
            self.share(span, copies)
        opened: list[Any] = []
        handles: dict[int, Boxed] = {}          # one box for a tensor that is an argument twice
        for place, leaf in enumerate(self.leaves):
            if place in copies:
                box = handles.get(id(leaf)) if isinstance(leaf, Tensor) else None
                if box is None:
                    box = self.boxes[place] if place in self.boxes else self.input(place, copies[place])
                handles[id(leaf)] = self.boxes[place] = box
                opened.append(box)
            else:
                opened.append(self.follower.argument(leaf, place) if is_data(leaf) else leaf)
            self.arguments.setdefault(id(opened[-1]), place)
        return opened

    def share(self, span: Span, copies: dict[int, Any]) -> None:
        """Make inputs for arguments that share memory: one input if they are the same array, else an input for the memory, and views."""
        follower = self.follower
        if span.is_one(copies):
            first = self.boxes[span.first] = self.input(span.first, copies[span.first])
            for place in span.parts:
                if place != span.first:
                    self.boxes[place] = Boxed(follower, Tensor(copies[place]), first.known)
            return
        memory = follower.watch(follower.input(Tensor(span.of(copies))))
        self.tensors.append(span)
        for place in span.parts:
            with pushed(follower):
                self.boxes[place] = follower.apply("aten::as_strided", [memory, *span.view(place, copies[place])])

    def input(self, place: int, array: Any) -> Boxed:
        """Add an input for an array."""
        self.tensors.append(place)
        return self.follower.watch(self.follower.input(Tensor(array)))

    # -- the run
    def run(self, function: Callable[..., Any]) -> Any:
        """The result of the function. If it raises, its writes so far are made in the arguments."""
        args, named = self.tree
        try:
            with pushed(self.follower):
                return called("jit", followed(function), args, named)
        except (DispatchError, UnsupportedError):
            raise
        except Exception:
            try:
                rest = self.changed()
            except RunError:        # what cannot be given, as a tensor of a transformation that is over: the function's error says more
                rest = None
            self.write_back(self.writes())
            self.refill(rest)
            raise

    def write_back(self, writes: Sequence[Write]) -> None:
        """Copy what the trace wrote into the arguments."""
        arrays = {place: array for place, leaf in enumerate(self.leaves) if (array := array_of(leaf)) is not None}
        for write in writes:
            write.commit(arrays, self.contents[write.output] if write.output >= 0 else None)

    # -- out
    def output(self, value: Value, content: Any) -> int:
        """The position of a value among the outputs of the graph; adds it if it is new."""
        if value not in self.places:
            self.places[value] = len(self.outputs)
            self.outputs.append(value)
            self.contents.append(content)
        return self.places[value]

    def item(self, leaf: Any) -> Item:
        """The source of a result of the function, or of a value in a container. Raises DispatchError for a tensor of another layer."""
        follower = self.follower
        place = self.arguments.get(id(leaf))
        if place is not None and (isinstance(leaf, Boxed) or type(leaf) is Number or leaf is self.leaves[place]) \
                and not isinstance(leaf, bool | int | float | str | None):
            return Item("argument", place)
        if type(leaf) is Number:
            if leaf.is_of_arguments:
                return Item("step", int(leaf.source))       # type: ignore[arg-type]
            return Item("output", self.output(follower.operand(leaf), leaf.value))
        if follower.owns(leaf):
            return Item("output", self.output(leaf.known, leaf.value.array), is_tensor=True)
        if isinstance(leaf, Boxed):
            return Item("output", self.output(follower.operand(leaf), None), is_tensor=True)
        if not isinstance(leaf, CONSTANTS):
            raise RunError("jit: the function must give tensors, numbers, texts, None, and lists, tuples and dicts of these, "
                           f"it gave {type(leaf).__name__}")
        return Item("constant", value=leaf, is_tensor=isinstance(leaf, Tensor) and not follower.is_from_outside(leaf))

    def writes(self) -> list[Write]:
        """The writes into arguments, for the end of a run. Raises UnsupportedError."""
        follower = self.follower
        writes = []
        if follower.written and self.is_tangled:
            raise UnsupportedError("jit: arguments share memory as items of different sizes or backwards, or one is the conjugate of a "
                                   "tensor, and the function writes into them", code="E0507")
        for place, spot in enumerate(self.tensors):
            box, memory = follower.watched[place]
            if place in follower.written and isinstance(spot, Span):
                writes.append(Write(spot.first, self.output(box.known, box.value.array), span=spot))
            elif place in follower.written and isinstance(spot, int):
                shown = box.value.array
                view = None if (shown.shape, shown.strides) == (memory.shape, memory.strides) else (shown.shape, shown.strides)
                if view is not None and memory.strides != array_of(self.leaves[spot]).strides:
                    raise UnsupportedError("jit: the shape of an argument whose elements lie far apart is changed", code="E0507")
                writes.append(Write(spot, self.output(box.known, shown), view))
        return [*writes, *self.views({each.place for each in writes if each.span is None})]

    def views(self, done: set[int]) -> list[Write]:
        """Writes for other arguments whose arrays have another shape or other strides after the call."""
        views = []
        for place, box in self.boxes.items():
            shown, leaf = box.value.array, array_of(self.leaves[place])
            is_done = place in done or any(array_of(self.leaves[each]) is leaf for each in done) or min(leaf.strides, default=0) < 0
            if not is_done and (shown.shape, shown.strides) != (leaf.shape, leaf.strides):
                done.add(place)
                views.append(Write(place, -1, (shown.shape, shown.strides)))
        return views

    def finish(self, result: Any) -> tuple[Variant, list[Any] | None]:
        """The variant, and the leaves of this call's result; None if the variant has to run for them. Raises RunError for a result
        that each call must make anew."""
        follower = self.follower
        leaves, result_shape = flatten(result)
        items = [self.item(each) for each in leaves]
        writes = self.writes()
        rest = self.changed()
        asked = [(each, self.output(each.output, None)) for each in follower.decisions if each.output is not None]
        follower.graph.block.set_outputs(self.outputs)
        follower.is_alive = False
        remove_dead_nodes(follower.graph)
        variant = Variant(Executor(follower.graph), follower.steps, follower.decisions)
        variant.arguments = described(self.leaves)
        variant.tensors = self.tensors
        variant.more = [each if isinstance(each, int) else Outer(each) for each in follower.inputs]
        variant.results, variant.shape, variant.writes, variant.rest, variant.asked = items, result_shape, writes, rest, asked
        variant.is_random = any(facts_of(node.kind).is_random for node in follower.graph.walk())
        if self.reads_written_memory(variant):
            return variant, None
        self.write_back(writes)
        return variant, [self.content(item, each) for item, each in zip(items, leaves, strict=True)]

    def reads_written_memory(self, variant: Variant) -> bool:
        """Does a tensor from outside share memory with an argument that the function writes into? The trace writes into copies, which that
        tensor does not show; a run of the graph gives the right values."""
        written = [array_of(self.leaves[place]) for each in variant.writes for place in (each.span.parts if each.span else (each.place,))]
        return any(np.may_share_memory(each.array, array) for each in variant.more if isinstance(each, Outer) for array in written)

    def content(self, item: Item, leaf: Any) -> Any:
        """The value of an Item in this call."""
        if item.source == "argument":
            return fetcher(self.leaves, (), None)(item)
        if item.source == "constant":
            return anew(item)
        if not self.follower.owns(leaf):
            return plain(leaf)
        return Tensor(self.in_arguments(leaf.value.array))

    def in_arguments(self, array: Any) -> Any:
        """A view of an argument as a view of the caller's memory; any other value unchanged."""
        for place, spot in enumerate(self.tensors):
            if isinstance(spot, int):
                array = rebased(array, self.follower.watched[place][1], array_of(self.leaves[spot]))
        return array

    def changed(self) -> Any:
        """The containers of the arguments after the call; None if they are unchanged."""
        leaves, shape = flatten(self.tree)
        before = self.traced_leaves
        if shape == self.shape and len(leaves) == len(before) and all(a is b for a, b in zip(leaves, before, strict=True)) and \
                all(a is b or isinstance(a, tuple) for (_, a), (_, b) in zip(containers(self.tree), self.containers, strict=True)):
            return None
        return rest_of(self.tree, {id(each): path for path, each in self.containers}, self.item, {})

    def refill(self, rest: Any) -> None:
        """Update the caller's containers to a state that `changed` has returned."""
        if rest is not None:
            contents = [self.in_arguments(each) for each in self.contents]
            refill(rest, dict(containers(self.originals)), fetcher(self.leaves, contents, Answers(self.follower.steps, self.leaves)), {})


def trace_call(function: Callable[..., Any], arguments: Any, leaves: Sequence[Any], shape: Any) -> tuple[Variant, list[Any]]:
    """A variant for a call, and the leaves of its result. Raises the function's errors."""
    trace = Trace(arguments, leaves, shape)
    draws = generator()
    state = draws.bit_generator.state
    variant, results = trace.finish(trace.run(function))
    if results is None:
        draws.bit_generator.state = state
        answers = Answers(variant.steps, leaves)
        outputs = variant.executor.run(variant.inputs(leaves, answers), None)
        if any(key_of(outputs[place]) != decision.key for decision, place in variant.asked):
            raise UnsupportedError("jit: a decision depends on a tensor from outside that shares memory with an argument that the function "
                                   "writes into: give it as an argument", code="E0507")
        return variant, variant.deliver(leaves, arguments, outputs, answers)
    trace.refill(variant.rest)
    return variant, results
