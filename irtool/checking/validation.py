"""Validation: an observer of a pipeline that runs the graphs after each pass, and stops at the first pass that changes their results.

    manager.run(module, Validation())               # raises ValidationError, which names pass, value and worst element
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from irtool.checking.computed import Named, difference, gradients_of, results_of
from irtool.ir.defaults import DEFAULTS
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.pair import OF, GradientPair, is_in_pair, pairs
from irtool.ops.made_inputs import NoInputs, input_sets
from irtool.passmanager import Observer, PassRecord

CHANGES_RESULTS = ("vmap", "differentiate", "freeze")
"""Passes that change results or inputs on purpose. The passes after them are compared with the graphs that they left."""
FAILS = "the graph fails"
SETS = 3
"""The number of sets of inputs per graph, among those on which it runs without errors."""
Run = Callable[[Sequence[Any]], Named]


class ValidationError(Error):
    """A pass changed the results of a graph."""

    code = "E0311"


class Baseline:
    """The results of one graph or gradient pair on some sets of inputs."""

    def __init__(self, graph: Graph, inputs: Iterator[list[Any]], run: Run) -> None:
        self.takes = len(graph.inputs)
        self.rows: list[tuple[list[Any], Named]] = []
        self.why_none = ""
        try:
            for each in inputs:
                try:
                    self.rows.append((each, run(each)))
                except Error as error:
                    self.why_none = self.why_none or error.message
                if len(self.rows) == SETS:
                    break
        except NoInputs as error:
            self.why_none = str(error)


class Validation(Observer):
    """Compares the results of graphs after each pass with those before it. not_run: name of a graph that was not compared -> the reason.

    inputs: of a graph; None, or where it gives None: made from the types, with corner values. state: name of a graph -> the values of its
    last inputs, which are attributes of a module; `inputs` gets a graph of the others, without nodes, then. rtol, atol: as in
    `irtool.testing.closeness`; None: by dtype. gradients: compare gradient pairs, too.
    """

    def __init__(self, inputs: Callable[[Graph], Sequence[Any] | None] | None = None, *, rtol: float | None = None,
                 atol: float | None = None, seed: int = 0, gradients: bool = False,
                 state: Mapping[str, Sequence[Any]] | None = None) -> None:
        self.inputs = inputs
        self.state = state or {}
        self.rtol, self.atol, self.seed = rtol, atol, seed
        self.gradients = gradients
        self.baselines: dict[str, Baseline] = {}
        self.not_run: dict[str, str] = {}
        self.comparisons = 0

    def start(self, module: Module) -> None:
        """Run all graphs and pairs of the module."""
        self.baselines = {}
        for name, graph, run in self.subjects(module):
            baseline = self.baselines[name] = Baseline(graph, self.sets(graph), run)
            if baseline.rows:
                self.not_run.pop(name, None)
            else:
                self.not_run[name] = baseline.why_none

    def sets(self, graph: Graph) -> Iterator[list[Any]]:
        """The sets of inputs on which a graph is tried. Raises the errors of `inputs`."""
        state = self.state.get(graph.name, ())
        taking = arguments_of(graph, len(graph.inputs) - len(state)) if state else graph
        arguments = None if self.inputs is None else self.inputs(taking)
        if arguments is not None:
            return iter([[*arguments, *state]])
        by_types = islice(input_sets(graph, self.seed), 4 * SETS)
        if not state:
            return by_types
        # attributes of other shapes may fit the arguments, whose shapes are a guess
        return chain(([*each, *state] for each in islice(input_sets(taking, self.seed), 4 * SETS)), by_types)

    def subjects(self, module: Module) -> Iterator[tuple[str, Graph, Run]]:
        """The graphs that are no df, and the pairs, each with its name and the function that runs it."""
        for name, graph in zip(module.names(), module.graphs, strict=True):
            if OF not in graph.metadata and not is_in_pair(graph):
                yield name, graph, lambda inputs, graph=graph: results_of(graph, inputs, self.seed)     # type: ignore[misc]
        for pair in pairs(module):
            yield f"{pair.f.name}, a gradient pair" if self.gradients else pair.f.name, pair.f, self.of_pair(pair)

    def of_pair(self, pair: GradientPair) -> Run:
        """The function that runs a pair, with its gradients or only f."""
        if self.gradients:
            return lambda inputs: gradients_of(pair, inputs, self.seed)
        count = pair.real_outputs
        return lambda inputs: [row for row in results_of(pair.f, inputs, self.seed) if is_real(row[0], count)]

    def before(self, record: PassRecord, module: Module) -> None:
        """Before the first pass, run all graphs."""
        if not self.baselines:
            self.start(module)

    def after(self, record: PassRecord, module: Module) -> None:
        """Compare the results. Raises ValidationError."""
        if record.step.name in CHANGES_RESULTS:
            self.start(module)
            return
        reason = self.difference(module)
        if reason:
            raise ValidationError(f"pass '{record.step.name}' changes what {reason}")
        known = {name for name, _, _ in self.subjects(module)}
        if known != set(self.baselines):
            self.start(module)

    def difference(self, module: Module) -> str:
        """How the results of the graphs differ from those before, the first difference alone: `'f' computes: output 0: ...`; empty if they
        do not."""
        for name, graph, run in self.subjects(module):
            baseline = self.baselines.get(name)
            if baseline is None or baseline.takes != len(graph.inputs):
                continue
            for inputs, expected in baseline.rows:
                try:
                    reason = difference(run(inputs), expected, self.rtol, self.atol)
                except Error as error:
                    reason = f"{FAILS}: {error.message}"
                self.comparisons += 1
                if reason:
                    return f"'{name}' computes: {reason}"
        return ""


def arguments_of(graph: Graph, count: int) -> Graph:
    """A graph with the first `count` inputs of a graph, their defaults, and no nodes."""
    taking = Graph(graph.dialect, graph.name)
    for value in graph.inputs[:count]:
        taking.block.add_input(value.name, value.type)
    if DEFAULTS in graph.metadata:
        taking.metadata[DEFAULTS] = graph.metadata[DEFAULTS]
    return taking


def is_real(name: str, count: int) -> bool:
    """Is a value one of the first `count` outputs, and no temporary?"""
    head, _, rest = name.removeprefix("length of ").partition(" ")
    return head != "output" or int(rest.partition("[")[0]) < count
