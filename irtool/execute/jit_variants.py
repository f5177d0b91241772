"""The variants of a jitted function, in a tree of decisions.

A trace asks its questions in order, and the answers so far determine the next question. So the traces of one signature are the leaves of
a tree whose inner nodes are questions. A run computes the answers on its path; if one differs, the tree gives the variant for it, if any.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.dispatch.decisions import Answers, Decision, Steps, key_of
from irtool.execute.executor import Executor
from irtool.execute.jit_arguments import Span, array_of
from irtool.execute.jit_results import Item, Write, containers, fetcher, rebased, refill
from irtool.ir.errors import RunError
from irtool.ops.arrays import generator


class Outer:
    """A tensor or an array from outside the function (of a closure, or global), which the graph takes as an input."""

    __slots__ = ("held", "facts")

    def __init__(self, held: Any) -> None:
        self.held = held
        self.facts = facts_of_array(array_of(held))

    @property
    def array(self) -> Any:
        """The array. Raises RunError if its dtype, sizes or strides have changed since the trace."""
        array = array_of(self.held)
        if facts_of_array(array) != self.facts:
            raise RunError("a tensor from outside of the function has other sizes than before")
        return array


def facts_of_array(array: Any) -> Any:
    """The facts about an array that a trace depends on."""
    return array.dtype, array.shape, array.strides


class Variant:
    """One trace: its graph, the decisions that it depends on, and where its inputs come from and its outputs go."""

    def __init__(self, executor: Executor, steps: Steps, decisions: list[Decision]) -> None:
        self.executor = executor
        self.steps = steps
        self.guards = decisions
        self.reason = ""                    # why it was traced
        self.arguments = ""                 # their signature, in words
        self.tensors: list[int | Span] = []         # array inputs of the graph: leaves, or memory that several leaves share
        self.more: list[int | Outer] = []           # the inputs after those: numbers, and tensors from outside
        self.results: list[Item] = []
        self.shape: Any = None
        self.writes: list[Write] = []
        self.rest: Any = None               # the containers of the arguments, if the function changes them
        self.asked: list[tuple[Decision, int]] = []         # decisions about elements, and the outputs with the answers
        self.is_random = False
        self.path: list[tuple[Fork, Any]] = []

    @property
    def graph(self) -> Any:
        """The graph that was traced."""
        return self.executor.graph

    @property
    def is_plain(self) -> bool:
        """Does the variant only map arrays to tensors, without decisions, writes or other inputs?"""
        if self.guards or self.writes or self.more or self.rest is not None:
            return False
        return all(each.source == "output" and each.is_tensor and each.place == place for place, each in enumerate(self.results))

    def inputs(self, leaves: Sequence[Any], answers: Answers) -> list[Any]:
        """The inputs of the graph for a call."""
        arrays = {place: array_of(leaf) for place, leaf in enumerate(leaves)}
        values = [each.of(arrays) if isinstance(each, Span) else array_of(leaves[each]) for each in self.tensors]
        return [*values, *[each.array if isinstance(each, Outer) else answers[each] for each in self.more]]

    def run(self, leaves: Sequence[Any], answers: Answers) -> tuple[list[Any], dict[Any, Any] | None]:
        """The outputs, and None if all answers equal the decisions; else the answers by fork, up to the first that differs."""
        draws = generator() if self.is_random else None
        state: Any = draws.bit_generator.state if draws is not None else None
        try:
            outputs = self.executor.run(self.inputs(leaves, answers), None)
        except BaseException:
            if draws is not None:
                draws.bit_generator.state = state
            raise
        for decision, place in self.asked:
            if key_of(outputs[place]) != decision.key:
                if draws is not None:
                    draws.bit_generator.state = state
                return outputs, self.answers(outputs)
        return outputs, None

    def answers(self, outputs: Sequence[Any]) -> dict[Any, Any]:
        """The answers to questions about elements, by fork, up to the first that differs from this variant's."""
        places = {id(decision): place for decision, place in self.asked}
        answers = {}
        for (fork, key), decision in zip(self.path, self.guards, strict=True):
            if id(decision) in places:
                answers[fork] = key_of(outputs[places[id(decision)]])
                fork.seen = outputs[places[id(decision)]]
                if answers[fork] != key:
                    break
        return answers

    def deliver(self, leaves: Sequence[Any], arguments: Any, outputs: Sequence[Any], answers: Answers) -> list[Any]:
        """Write into the arguments what the function writes; returns the leaves of the result."""
        if self.writes:
            arrays = {place: array_of(leaf) for place, leaf in enumerate(leaves)}
            for write in self.writes:
                content = outputs[write.output] if write.output >= 0 else None
                write.commit(arrays, content)
                if content is not None and write.span is None:
                    target = arrays[write.place]
                    outputs = [each if each is content else rebased(each, content, target) for each in outputs]
        fetch = fetcher(leaves, outputs, answers)
        if self.rest is not None:
            refill(self.rest, dict(containers(arguments)), fetch, {})
        return [fetch(item) for item in self.results]

    def __repr__(self) -> str:
        lines = [f"({self.arguments}), traced because {self.reason}", *[f"    {each!r}" for each in self.guards]]
        return "\n".join(lines)


class Fork:
    """An inner node of the tree: a question, and the subtree for each answer."""

    __slots__ = ("decision", "steps", "branches", "latest", "seen")

    def __init__(self, decision: Decision, steps: Steps) -> None:
        self.decision = decision
        self.steps = steps
        self.branches: dict[Any, Fork | Variant] = {}
        self.latest: Any = None
        self.seen: Any = None       # the last outcome of a run


class Tree:
    """The variants of one signature."""

    def __init__(self) -> None:
        self.root: Fork | Variant | None = None
        self.last: Variant | None = None        # the variant that ran last

    def find(self, call: Call, known: dict[Fork, Any], failed: Sequence[Variant] = ()) -> Variant | None:
        """A variant, not in `failed`, whose decisions about numbers hold, and those about elements as far as answers are known."""
        stack = [] if self.root is None else [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, Variant):
                if node in failed:
                    continue
                return node
            key = known.get(node) if node.decision.step < 0 else call.answer(node)
            if key is not None:
                if key in node.branches:
                    stack.append(node.branches[key])
                continue
            stack += [each for one, each in node.branches.items() if one != node.latest]
            if node.latest in node.branches:
                stack.append(node.branches[node.latest])
        return None

    def count(self, call: Call) -> int:
        """The number of variants for the numbers of a call."""
        total = 0
        stack = [] if self.root is None else [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, Variant):
                total += 1
            elif node.decision.step < 0:
                stack += node.branches.values()
            elif (key := call.answer(node)) in node.branches:
                stack.append(node.branches[key])
        return total

    def add(self, variant: Variant) -> None:
        """Add a variant. If its questions differ from the tree's (the function depends on more than its arguments), it replaces that part
        of the tree."""
        holder: dict[Any, Any] = {"": self.root}
        place: Any = ""
        root = holder
        for decision in variant.guards:
            node = holder.get(place)
            if not isinstance(node, Fork) or node.decision.form != decision.form:
                node = holder[place] = Fork(decision, variant.steps)
            variant.path.append((node, decision.key))
            holder, place = node.branches, decision.key
        holder[place] = variant
        self.root = root[""]
        self.note(variant)

    def note(self, variant: Variant) -> None:
        """Note that a variant ran."""
        if self.last is not variant:
            self.last = variant
            for fork, key in variant.path:
                fork.latest = key

    def variants(self) -> list[Variant]:
        """All variants."""
        variants = []
        stack = [] if self.root is None else [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, Variant):
                variants.append(node)
            else:
                stack += reversed(list(node.branches.values()))
        return variants


class Call:
    """The arguments of one call, and what follows from the numbers among them."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.leaves = leaves
        self._answers: dict[int, Answers] = {}

    def answers(self, steps: Steps) -> Answers:
        """The numbers computed by `steps` from the numbers among the arguments."""
        answers = self._answers.get(id(steps))
        if answers is None:
            answers = self._answers[id(steps)] = Answers(steps, self.leaves)
        return answers

    def answer(self, fork: Fork) -> Any:
        """The key of the answer to a question about numbers; "" if the arithmetic that computes it raises."""
        try:
            return key_of(self.answers(fork.steps)[fork.decision.step])
        except Exception:       # the user's arithmetic fails on numbers that do not reach this question
            return ""


class Variants(list[Variant]):
    """The variants of a function, as a list; printed, with their guards and why each was traced."""

    def __init__(self, variants: Sequence[Variant], last: str) -> None:
        super().__init__(variants)
        self.why = last
        """Why the last call was traced; empty if it was not."""

    def __repr__(self) -> str:
        text = [f"{place + 1}. {each!r}" for place, each in enumerate(self)]
        return "\n".join([*text, f"the last call was {f'traced because {self.why}' if self.why else 'not traced'}"])
