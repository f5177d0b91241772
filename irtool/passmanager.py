"""Run a pipeline of passes over every graph of a module.

    module = irtool.PassManager("dce,cse").run(irtool.parse(text))

Law: `PassManager("a,b")` prints byte for byte what `PassManager("b")` makes of the printed result of `PassManager("a")`. So
no pass sees what an earlier one left in memory: names are forgotten between passes, facts are computed anew.
"""
from __future__ import annotations

from time import perf_counter_ns

from irtool.ir.collector import Paused, collect_where_due, hand_over
from irtool.ir.dialect import LATEST
from irtool.ir.errors import Error, PassError, PipelineError, VerifyError
from irtool.ir.extensions import Place, raised_in
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic
from irtool.passes import Pass, pass_of
from irtool.pipelines import Step, parse_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class PassRecord:
    """What one pass did to one module. Times in ns: `self_ns` in the pass, `total_ns` with verification and reports."""

    __slots__ = ("index", "step", "ops_before", "ops_after", "changed", "self_ns", "total_ns")

    def __init__(self, index: int, step: Step) -> None:
        self.index = index          # 1-based position in the pipeline
        self.step = step
        self.ops_before = 0
        self.ops_after = 0
        self.changed = False
        self.self_ns = 0
        self.total_ns = 0

    def as_dict(self) -> dict[str, object]:
        """The JSON form (`--time-passes=json`)."""
        return {"pass": self.step.name, "index": self.index, "self_ns": self.self_ns, "total_ns": self.total_ns,
                "ops_before": self.ops_before, "ops_after": self.ops_after, "changed": self.changed}


class Observer:
    """Told of every pass; what the printing, timing and bisecting flags of `irtool opt` are made of."""

    def allows(self, step: Step, graph: str) -> bool:
        """May this pass run on this graph? (empty name: on the whole module)"""
        return True

    def before(self, record: PassRecord, module: Module) -> None:
        """A pass is about to run."""

    def after(self, record: PassRecord, module: Module) -> None:
        """A pass has run, and the module was verified if that was asked for; `record.total_ns` is complete."""


class Observers(Observer):
    """Several observers as one, told in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def allows(self, step: Step, graph: str) -> bool:
        return all([each.allows(step, graph) for each in self.observers])

    def before(self, record: PassRecord, module: Module) -> None:
        for each in self.observers:
            each.before(record, module)

    def after(self, record: PassRecord, module: Module) -> None:
        for each in self.observers:
            each.after(record, module)


class PassManager:
    """A pipeline, ready to run.

    pipeline: `"dce,cse"`, `"peephole{no-shapes}"`, a preset (`"O1"`), or a list of such texts, of functions that are passes
        (`["dce", my_pass]`), and of steps from `parse_pipeline`. Raises PipelineError for an unknown pass or option, a bad value or
        bad syntax; Error for a function that is no pass.
    verify: check every graph after each pass.
    """

    def __init__(self, pipeline: str | Sequence[str | Step | Callable[..., bool]] = "", *, verify: bool = False) -> None:
        parts = [pipeline] if isinstance(pipeline, str) else pipeline
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str | Step) or callable(part) for part in parts):
            raise PipelineError(f"expected a pipeline as one text, such as 'dce,cse', or a list of names and functions, "
                                f"got {str(pipeline)[:60]}")
        self.steps: tuple[Step, ...] = tuple([step for part in parts for step in steps_of(part)])
        self.verify = verify

    def __str__(self) -> str:
        """The pipeline with every option written out; reads back as the same pipeline."""
        return ",".join(map(str, self.steps))

    def run(self, module: Module | Graph, observer: Observer | None = None) -> Module:
        """Run the passes in place, each on all graphs; gives the module (a Graph: a module of that graph).

        Raises PassError for a graph that a pass cannot take, VerifyError (with `verify`) where a pass broke a graph; the module is
        then in an unknown state. Both say in a note which pass it was.
        """
        if isinstance(module, Graph):
            module = Module([module], module.source.name if module.source is not None else "<graph>")
        if not isinstance(module, Module):
            raise PassError(f"expected a Module or a Graph, got {type(module).__name__}")
        for index, step in enumerate(self.steps, 1):
            record = PassRecord(index, step)
            start = perf_counter_ns()
            if observer is not None:
                observer.before(record, module)
                record.ops_before = count_ops(module)
            self._apply(record, module, observer)
            if record.changed and index < len(self.steps):
                self._reread(module, record)
            if observer is not None:
                record.ops_after = count_ops(module)
                record.total_ns = perf_counter_ns() - start
                observer.after(record, module)
        return module

    def _apply(self, record: PassRecord, module: Module, observer: Observer | None) -> None:
        """One pass on all graphs, or on the module."""
        step = record.step
        subjects: list[tuple[str, Module | Graph]] = [("", module)]
        if not step.entry.takes_module:
            subjects = list(zip(module.names(), module.graphs, strict=True))
        for graph in module.graphs:
            graph.forget_names()
        start = perf_counter_ns()
        try:
            for name, subject in subjects:
                if observer is None or observer.allows(step, name):
                    with Paused():
                        changed = step.entry(subject, **step.options) if step.entry.is_own else step.entry.function(subject, **step.options)
                        record.changed = bool(changed) or record.changed
        except Error as error:
            raise self._located(error, "in", record) from None
        except Exception as error:
            if step.entry.is_own:
                raise self._located(raised_in(step.entry.function, error), "in", record) from error
            diagnostics = [] if self.verify else violations(module)
            if not diagnostics:
                raise       # a bug of the pass
            raise self._located(VerifyError(diagnostics=diagnostics), "in", record) from error     # nobody had verified the graph
        record.self_ns = perf_counter_ns() - start
        hand_over()
        collect_where_due()
        if self.verify:
            diagnostics = violations(module)
            if diagnostics and step.entry.is_own:
                raise broken_by(step.entry, diagnostics)
            if diagnostics:
                raise self._located(VerifyError(diagnostics=diagnostics), "after", record)

    def _reread(self, module: Module, record: PassRecord) -> None:
        """Note [what text leaves out]. Raises PassError where the text after the pass is none that a next process would take."""
        try:
            diagnostics = violations(module) if through_text(module) and self.verify else []
        except Error as error:
            diagnostics = error.diagnostics
        if diagnostics:       # an old dialect is not held to today's operators, and its text may now look like today's
            raise self._located(PassError(diagnostics=diagnostics), "in the text after", record)

    def _located(self, error: Error, where: str, record: PassRecord) -> Error:
        """The error, with a note that names the pass."""
        if not error.diagnostics:
            error.diagnostics.append(Diagnostic("error", error.message))
        error.diagnostics[-1].notes.append(Diagnostic("note", f"{where} pass '{record.step.name}' ({record.index} of {len(self.steps)})"))
        return error


def broken_by(entry: Pass, diagnostics: list[Diagnostic]) -> PassError:
    """What the verifier says after a pass of a user's: the first line names the pass."""
    error = Place(entry.function).error(f"the pass '{entry.name}' leaves a graph that is wrong")
    for each in diagnostics:
        each.severity = "note"
    error.diagnostics[-1].notes += diagnostics
    return PassError(error.message, error.diagnostics, "E0310")


def steps_of(part: str | Step | Callable[..., bool]) -> Sequence[Step]:
    """The steps of a pipeline string, of a function that is a pass, or of a step. Raises PipelineError, or Error for another function."""
    if isinstance(part, str):
        return parse_pipeline(part)
    return (part,) if isinstance(part, Step) else (Step(part if isinstance(part, Pass) else pass_of(part), {}),)


def through_text(module: Module) -> bool:
    """Make the module what its text says, in dialects whose text leaves something out; nothing to do in today's. Was it done?

    Note [what text leaves out]: a dialect with literals among the operands does not say where its constants stand, and an old
    dialect is told from its neighbours by what a text happens to show of it, which a pass may delete. The next pass must not see
    more than the next process would. Raises ParseError where that would be nothing.
    """
    if all(graph.dialect is LATEST for graph in module.graphs):
        return False
    from irtool.text.parser import parse

    module.items = parse(str(module), module.filename).items
    return True


def count_ops(module: Module) -> int:
    """Nodes of all graphs, nested ones included."""
    return sum(1 for graph in module.graphs for _ in graph.walk())


def violations(module: Module) -> list[Diagnostic]:
    """What the verifier finds in all graphs, and in the pairs they make."""
    from irtool.ir.verify import violations as of_graph

    diagnostics = [diagnostic for graph in module.graphs for diagnostic in of_graph(graph)]
    if any(graph.metadata for graph in module.graphs):
        from irtool.ir.pair import pair_violations

        diagnostics += pair_violations(module)
    return diagnostics
