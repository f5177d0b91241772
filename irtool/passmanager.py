"""The pass manager: runs a pipeline of passes on every graph of a module.

    module = irtool.PassManager("dce,cse").run(irtool.parse(text))

Law: the result of `PassManager("a,b")` prints byte for byte as the result of `PassManager("b")` on the printed result of
`PassManager("a")`. So no pass depends on what an earlier one left in memory: between passes, counters of names are reset and facts are
computed again.
"""
from __future__ import annotations

from time import perf_counter_ns

from irtool.ir.collector import MANY, HandedOver, collect_where_due
from irtool.ir.dialect import LATEST
from irtool.ir.errors import Error, PassError, PipelineError, VerifyError
from irtool.ir.extensions import Place, raised_in
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.remarks import PassNotes, taking_notes
from irtool.ir.source import Diagnostic
from irtool.passes import Pass, pass_of
from irtool.pipelines import Step, parse_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class PassRecord:
    """The effect of one pass on one module. Times are in ns: `self_ns` in the pass, `total_ns` with verification and reports, which
    began at `start_ns` of `time.perf_counter_ns`."""

    __slots__ = ("index", "step", "ops_before", "ops_after", "changed", "start_ns", "self_ns", "total_ns", "notes")

    def __init__(self, index: int, step: Step) -> None:
        self.index = index          # 1-based position in the pipeline
        self.step = step
        self.ops_before = 0
        self.ops_after = 0
        self.changed = False
        self.start_ns = perf_counter_ns()
        self.self_ns = 0
        self.total_ns = 0
        self.notes = PassNotes(wants_remarks=False)
        """The counters of the pass, and its remarks, if the observer asks for these."""

    def as_dict(self) -> dict[str, object]:
        """The record as JSON data (`--time-passes=json`)."""
        return {"pass": self.step.name, "index": self.index, "self_ns": self.self_ns, "total_ns": self.total_ns,
                "ops_before": self.ops_before, "ops_after": self.ops_after, "changed": self.changed}


class Observer:
    """Its methods are called around every pass. The printing, timing and bisecting options of `irtool opt` are observers."""

    wants_remarks = False
    """Does it ask passes for remarks on what they leave as it is?"""

    def allows(self, step: Step, graph: str) -> bool:
        """May a pass run on the graph of this name (empty: on the module)?"""
        return True

    def before(self, record: PassRecord, module: Module) -> None:
        """Called before a pass."""

    def after(self, record: PassRecord, module: Module) -> None:
        """Called after a pass, and after verification if that is on; `record.total_ns` is complete."""


class Observers(Observer):
    """Several observers as one, called in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers
        self.wants_remarks = any(each.wants_remarks for each in observers)

    def allows(self, step: Step, graph: str) -> bool:
        return all([each.allows(step, graph) for each in self.observers])

    def before(self, record: PassRecord, module: Module) -> None:
        for each in self.observers:
            each.before(record, module)

    def after(self, record: PassRecord, module: Module) -> None:
        for each in self.observers:
            each.after(record, module)


class PassManager:
    """A pipeline that is ready to run.

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
        """The pipeline with the value of every option; parses to the same pipeline."""
        return ",".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"<PassManager {','.join([step.name for step in self.steps])}>"

    def run(self, module: Module | Graph, observer: Observer | None = None) -> Module:
        """Run the passes in place, each on all graphs; returns the module (for a Graph, a module of that graph).

        Raises PassError for a graph that a pass does not support, VerifyError (with `verify`) if a pass leaves an invalid graph; the module
        is then in an unknown state. A note in both names the pass.
        """
        if isinstance(module, Graph):
            module = Module([module], module.source.name if module.source is not None else "<graph>")
        if not isinstance(module, Module):
            raise PassError(f"expected a Module or a Graph, got {type(module).__name__}")
        for index, step in enumerate(self.steps, 1):
            record = PassRecord(index, step)
            if observer is not None:
                observer.before(record, module)
                record.ops_before = count_ops(module)
            with taking_notes(observer is not None and observer.wants_remarks) as record.notes:
                self._apply(record, module, observer)
            if record.changed and index < len(self.steps):
                self._reread(module, record)
            if observer is not None:
                record.ops_after = count_ops(module)
                record.total_ns = perf_counter_ns() - record.start_ns
                observer.after(record, module)
        return module

    def _apply(self, record: PassRecord, module: Module, observer: Observer | None) -> None:
        """Run one pass on all graphs, or on the module."""
        step = record.step
        subjects: list[tuple[str, Module | Graph]] = [("", module)]
        if not step.entry.takes_module:
            subjects = list(zip(module.names(), module.graphs, strict=True))
        for graph in module.graphs:
            graph.forget_names()
        collect_where_due(fewest=MANY if record.index > 1 else 0)
        start = perf_counter_ns()
        try:
            for name, subject in subjects:
                if observer is None or observer.allows(step, name):
                    with HandedOver():
                        changed = step.entry(subject, **step.options) if step.entry.is_own else step.entry.function(subject, **step.options)
                        record.changed = bool(changed) or record.changed
        except Error as error:
            raise self._located(error, "in", record) from None
        except Exception as error:
            if step.entry.is_own:
                raise self._located(raised_in(step.entry.function, error), "in", record) from error
            diagnostics = [] if self.verify else violations(module)
            why = VerifyError(diagnostics=diagnostics) if diagnostics else no_pass_takes(module)
            if why is None:
                raise       # a bug of the pass
            raise self._located(why, "in", record) from error       # the graph was so before
        record.self_ns = perf_counter_ns() - start
        if self.verify:
            diagnostics = violations(module)
            if diagnostics and step.entry.is_own:
                raise broken_by(step.entry, diagnostics)
            if diagnostics:
                raise self._located(VerifyError(diagnostics=diagnostics), "after", record)

    def _reread(self, module: Module, record: PassRecord) -> None:
        """See Note [what text leaves out]. Raises PassError if the text after the pass cannot be parsed."""
        try:
            diagnostics = violations(module) if through_text(module) and self.verify else []
        except Error as error:
            diagnostics = error.diagnostics
        if diagnostics:       # graphs of old dialects need not fit today's operators, but their text may now look like today's
            raise self._located(PassError(diagnostics=diagnostics), "in the text after", record)

    def _located(self, error: Error, where: str, record: PassRecord) -> Error:
        """An error, with a note that names the pass."""
        if not error.diagnostics:
            error.diagnostics.append(Diagnostic("error", error.message))
        error.diagnostics[-1].notes.append(Diagnostic("note", f"{where} pass '{record.step.name}' ({record.index} of {len(self.steps)})"))
        return error


def broken_by(entry: Pass, diagnostics: list[Diagnostic]) -> PassError:
    """The error for a user's pass that left an invalid graph: the first line names the pass."""
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
    """Print and parse a module whose dialect omits something in its text; today's dialect omits nothing. Returns whether it was done.

    Note [what text leaves out]: a dialect with literals among the operands does not say where its constants are, and old dialects are
    distinguished by details of the text, which a pass may delete. But the next pass must see only what another process would read. Raises
    ParseError if the text cannot be parsed.
    """
    if all(graph.dialect is LATEST for graph in module.graphs):
        return False
    from irtool.text.parser import parse

    module.items = parse(str(module), module.filename).items
    return True


def count_ops(module: Module) -> int:
    """The number of nodes of all graphs, nested ones included."""
    return sum(1 for graph in module.graphs for _ in graph.walk())


def no_pass_takes(module: Module) -> Error | None:
    """The reason why only the printer understands a module that verifies; None if passes do."""
    from irtool.ir.verify import oldest_loop

    return next(filter(None, map(oldest_loop, module.graphs)), None)


def violations(module: Module) -> list[Diagnostic]:
    """All violations in the graphs of a module, and in their pairs."""
    from irtool.ir.verify import violations as of_graph

    diagnostics = [diagnostic for graph in module.graphs for diagnostic in of_graph(graph)]
    if any(graph.metadata for graph in module.graphs):
        from irtool.ir.pair import pair_violations

        diagnostics += pair_violations(module)
    return diagnostics
