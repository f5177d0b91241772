"""Running a graph through the executor: gradients, repetition, counters, times."""
from __future__ import annotations

from irtool.cli import inputs as given
from irtool.cli.command import Arguments, Option
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from irtool.cli.console import Console
    from irtool.execute.compilation import Options
    from irtool.execute.executor import Executor
    from irtool.interop.cotangents import Cotangents
    from irtool.ir.graph import Graph

EXECUTION = "Execution"

MAX_REPEAT = 1_000_000


def names(text: str) -> tuple[str, ...]:
    """A converter: `x,y` as names, without `%`."""
    words = tuple(word.strip().removeprefix("%") for word in text.split(","))
    if "" in words:
        raise ValueError("expected names of inputs, all or none")
    return words


def count(text: str) -> int:
    """A converter: a number from 1 on."""
    if not text.isdecimal() or len(text) > 7 or not 1 <= int(text) <= MAX_REPEAT:
        raise ValueError(f"expected a number from 1 to {MAX_REPEAT}, not '{text[:40]}'")
    return int(text)


PLAN_OPTIONS = (
    Option("--requires-grad", "inputs that need gradients: names, all or none (default: those whose types say so)", value="X,Y",
           convert=names, group=EXECUTION),
    Option("--no-grad", "no input needs a gradient, whatever is said elsewhere", group=EXECUTION),
    Option("--autodiff-threshold", "operators in a differentiated group, at least (2); differentiates by groups", value="N", convert=count,
           group=EXECUTION),
    Option("--inline-threshold", "groups with fewer operators are opened again (5); differentiates by groups", value="N", convert=count,
           group=EXECUTION),
    Option("--no-autodiff-inlining", "both thresholds are 1", group=EXECUTION),
    Option("--no-optimize", "the graph as it stands, with the required passes only", group=EXECUTION),
    Option("--profiling", "run once to see shapes, then by a plan for these, guarded", group=EXECUTION),
    Option("--backend", "numpy or cupy", value="NAME", choices=("numpy", "cupy"), default="numpy", group=EXECUTION),
    Option("--native", "groups of pointwise operators as loops in C: auto (large ones), all or none", value="WHICH",
           choices=("auto", "all", "none"), default="auto", group=EXECUTION),
    Option("--threads", "threads that share large groups, and run heavy nodes beside each other (1)", value="N", convert=count, default=1,
           group=EXECUTION),
)
RUN_OPTIONS = (
    *PLAN_OPTIONS,
    Option("--backward", "show the gradients of the inputs that need one (of a pair: no gradients is an error)", group=EXECUTION),
    Option("--create-graph", "gradients of gradients, N times; those of the first N-1 times take part with ones", value="N", convert=count,
           group=EXECUTION),
    Option("--interpret", "the reference interpreter instead of a plan", group=EXECUTION),
    Option("--repeat", "run so often (1)", value="K", convert=count, default=1, group=EXECUTION),
    Option("--stats", "the executor's counters, as JSON on standard error", group=EXECUTION),
    Option("--time", "how long it took, on standard error", group=EXECUTION),
)


def options_of(arguments: Arguments, told: Callable[[str, Graph], None] | None = None) -> Options:
    """How plans are to be made."""
    from irtool.execute.compilation import Options

    by_groups = bool(arguments.autodiff_threshold or arguments.inline_threshold or arguments.no_autodiff_inlining)
    thresholds = (1, 1) if arguments.no_autodiff_inlining else (arguments.autodiff_threshold or 2, arguments.inline_threshold or 5)
    native = {"auto": None, "all": True, "none": False}[arguments.native]
    return Options(not arguments.no_optimize, arguments.backend, not by_groups, *thresholds, told, native, min(arguments.threads, 64),
                   profiling=bool(arguments.profiling))


def requiring(graph: Graph, arguments: Arguments, values: Sequence[Any], by_default: bool) -> list[int]:
    """Positions of the inputs that need gradients. Raises UsageError for a name that no input has.

    by_default: where nobody says so, neither a flag nor a type, all floating-point tensors do.
    """
    from irtool.cli.grad import is_floating
    from irtool.ir.types import TensorType

    floating = [position for position, value in enumerate(values) if is_floating(value)]
    said: tuple[str, ...] | None = arguments.requires_grad
    if arguments.no_grad or said == ("none",):
        return []
    if said == ("all",):
        return floating
    if said is None:
        typed = [i for i, value in enumerate(graph.inputs) if isinstance(value.type, TensorType) and value.type.requires_grad is True]
        return typed or (floating if by_default else [])
    chosen = given.inputs_called(said, graph, "--requires-grad")
    for place in chosen:
        if place not in floating:
            raise Error(f"--requires-grad: input %{graph.inputs[place].name} is no floating-point tensor, only those have gradients")
    return sorted(chosen)


class Execution:
    """One graph, run as the flags say."""

    def __init__(self, graph: Graph, arguments: Arguments, console: Console) -> None:
        from irtool.execute.device.device_executor import new_executor

        self.graph = graph
        self.arguments = arguments
        self.console = console
        self.executor: Executor = new_executor(graph, options_of(arguments))
        self.times: list[float] = []

    def run(self, values: list[Any], cotangents: Cotangents | None) -> tuple[list[Any], dict[int, Any] | None]:
        """The outputs, and gradients by position of an input; None where none were asked for. Raises Error.

        Arrays come back from the device within the time that is measured.
        """
        from time import perf_counter

        from irtool.cli.interrupt import interruptible
        from irtool.execute.fallbacks import noted
        from irtool.ops.arrays import hosted

        self.say_what_is_in_vain(cotangents)
        wanted = bool(self.arguments.backward or self.arguments.create_graph or cotangents is not None and cotangents.parts)
        is_said = self.arguments.requires_grad is not None      # then its names are looked at, whatever is asked for
        wrt = requiring(self.graph, self.arguments, values, True) if wanted or is_said else []
        found: tuple[list[Any], dict[int, Any] | None] = [], None
        with interruptible(self.console.owns_process), noted(self.console.err):
            for _ in range(self.arguments.repeat):
                start = perf_counter()
                if wanted:
                    found = self.forward_and_back(values, wrt, cotangents)
                else:
                    found = hosted(self.executor(*values, seed=self.arguments.seed)), None
                self.times.append(perf_counter() - start)
        self.report()
        return found

    def say_what_is_in_vain(self, cotangents: Cotangents | None) -> None:
        """A note where gradients are asked for, and no input may have one."""
        arguments = self.arguments
        asked = "--backward" if arguments.backward else "--create-graph" if arguments.create_graph else None
        if asked is None and cotangents is not None and cotangents.parts:
            asked = f"vjp{min(cotangents.parts)}"
        if asked is not None and (arguments.no_grad or arguments.requires_grad == ("none",)):
            said = "--no-grad" if arguments.no_grad else "--requires-grad none"
            self.console.err(f"note: {asked} asks for gradients, but {said} says that no input has one")

    def forward_and_back(self, values: list[Any], wrt: list[int], cotangents: Cotangents | None) -> tuple[list[Any], dict[int, Any]]:
        """Outputs and gradients."""
        import numpy as np

        from irtool.cli.grad import leaves
        from irtool.execute.pairs import sole_scalar
        from irtool.ops.arrays import hosted

        recorded = self.executor.record(values, wrt, seed=self.arguments.seed)
        outputs = hosted(recorded.outputs)
        seeds = cotangents.fitted(outputs) if cotangents is not None and cotangents.parts else sole_scalar(outputs)
        if seeds is None:
            raise Error(f"no cotangents: {given.NEEDED}")
        listed = [each for i, output in enumerate(outputs) for each in leaves(seeds.get(i), output)]
        for _ in range((self.arguments.create_graph or 1) - 1):
            recorded = recorded.backward_recorded(listed)
            pieces = [each for gradient in hosted(recorded.outputs) for each in leaves(gradient, gradient)]
            listed = [None if each is None else np.ones_like(each) for each in pieces]
        return outputs, dict(zip(wrt, hosted(recorded.backward(listed)), strict=True))

    def report(self) -> None:
        """Times and counters."""
        if self.arguments.time:
            first, rest = self.times[0], sorted(self.times[1:])
            line = f"first run {first * 1e3:.3f} ms"
            if rest:
                line += f", median of {len(rest)} more {rest[len(rest) // 2] * 1e3:.3f} ms, fastest {rest[0] * 1e3:.3f} ms"
            self.console.err(line)
        if self.arguments.stats:
            import json

            self.console.err(json.dumps(self.executor.stats))
