"""Running a graph by the executor, with gradients, repetitions, counters and times."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.execute.compilation import Options
    from irtool.execute.executor import Executor
    from irtool.interop.cotangents import Cotangents
    from irtool.ir.graph import Graph

def options_of(arguments: Arguments, on_pass: Callable[[str, Graph], None] | None = None) -> Options:
    """The executor's options for the command line."""
    from irtool.execute.compilation import Options

    by_groups = bool(arguments.autodiff_threshold or arguments.inline_threshold or arguments.no_autodiff_inlining)
    thresholds = (1, 1) if arguments.no_autodiff_inlining else (arguments.autodiff_threshold or 2, arguments.inline_threshold or 5)
    native = {"auto": None, "all": True, "none": False}[arguments.native]
    return Options(not arguments.no_optimize, arguments.backend, not by_groups, *thresholds, on_pass, native, min(arguments.threads, 64),
                   profiling=bool(arguments.profiling))


def requiring(graph: Graph, arguments: Arguments, values: Sequence[Any], by_default: bool,
              note: Callable[[str], None] | None = None) -> list[int]:
    """The positions of inputs that need gradients. Raises UsageError for a name of no input.

    by_default: all floating-point tensors need gradients, if neither an option nor a type says otherwise; `note` takes a line about each
    that is left out all the same.
    """
    from irtool.ir.types import TensorType

    floating = [position for position, value in enumerate(values) if is_floating(value)]
    said: tuple[str, ...] | None = arguments.requires_grad
    if arguments.no_grad or said == ("none",):
        return []
    if said == ("all",):
        return floating
    if said is None:
        typed = [i for i, value in enumerate(graph.inputs) if isinstance(value.type, TensorType) and value.type.requires_grad is True]
        return typed or (list(default_wrt(graph, values, note)) if by_default else [])
    chosen = graph_inputs.inputs_called(said, graph, "--requires-grad")
    for place in chosen:
        if place not in floating:
            raise Error(f"--requires-grad: input %{graph.inputs[place].name} is no floating-point tensor, only those have gradients",
                        code="E0506")
    return sorted(chosen)


def default_wrt(graph: Graph, values: Sequence[Any], note: Callable[[str], None] | None = None) -> tuple[int, ...]:
    """The positions of inputs that have gradients if nobody asks for some by name: all floating-point tensors, but for inputs that an
    operator has no gradient for, such as running statistics; `note` takes a line about each of these."""
    from irtool.autodiff.refusals import refused_inputs

    refused = refused_inputs(graph)
    floating = [place for place, value in enumerate(values) if is_floating(value)]
    for place in floating:
        if place in refused and note is not None:
            note(f"note: %{graph.inputs[place].name} is left without a gradient, since nothing asks for one by name: {refused[place]}")
    return tuple([place for place in floating if place not in refused])


def is_floating(value: Any) -> bool:
    """Is a value a floating-point or complex tensor, or a list, tuple or dict that contains one?"""
    if isinstance(value, list | tuple | dict):
        return any(map(is_floating, value.values() if isinstance(value, dict) else value))
    return hasattr(value, "dtype") and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16")


def leaves(cotangent: Any, output: Any) -> list[Any]:
    """One cotangent, or None, per tensor of an output."""
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, list | tuple):
        pieces = [None] * len(output) if cotangent is None else cotangent
        return [each for piece, one in zip(pieces, output, strict=True) for each in leaves(piece, one)]
    return [cotangent]


class Execution:
    """The run of one graph as the options say."""

    def __init__(self, graph: Graph, arguments: Arguments, console: Console) -> None:
        from irtool.execute.device.device_executor import new_executor

        self.graph = graph
        self.arguments = arguments
        self.console = console
        self.executor: Executor = new_executor(graph, options_of(arguments))
        self.times: list[float] = []

    def run(self, values: list[Any], cotangents: Cotangents | None) -> tuple[list[Any], dict[int, Any] | None]:
        """The outputs, and input position -> gradient; None if no option asks for gradients. Raises Error.

        The measured time includes copying arrays from the device.
        """
        from contextlib import nullcontext
        from time import perf_counter

        from irtool.cli.interrupt import interruptible
        from irtool.cli.show.progress import Progress
        from irtool.execute.fallbacks import noted
        from irtool.ops.arrays import hosted

        self.say_what_is_in_vain(cotangents)
        wanted = bool(self.arguments.backward or self.arguments.create_graph or cotangents is not None and cotangents.parts)
        is_said = self.arguments.requires_grad is not None      # then its names are checked even if no gradients are computed
        wrt = requiring(self.graph, self.arguments, values, True, self.console.err) if wanted or is_said else []
        results: tuple[list[Any], dict[int, Any] | None] = [], None
        repeat = self.arguments.repeat
        progress = Progress(self.console, "running", repeat if repeat > 1 else None)
        with interruptible(self.console.owns_process), noted(self.console.err), nullcontext() if self.arguments.time else progress:
            for i in range(repeat):
                progress.step("running", i)
                start = perf_counter()
                if wanted:
                    results = self.forward_and_back(values, wrt, cotangents)
                else:
                    results = hosted(self.executor(*values, seed=self.arguments.seed)), None
                self.times.append(perf_counter() - start)
        self.report(values)
        return results

    def say_what_is_in_vain(self, cotangents: Cotangents | None) -> None:
        """Print a note if gradients are asked for, and no input can have one."""
        arguments = self.arguments
        asked = "--backward" if arguments.backward else "--create-graph" if arguments.create_graph else None
        if asked is None and cotangents is not None and cotangents.parts:
            asked = f"vjp{min(cotangents.parts)}"
        if asked is not None and (arguments.no_grad or arguments.requires_grad == ("none",)):
            said = "--no-grad" if arguments.no_grad else "--requires-grad none"
            self.console.err(f"note: {asked} asks for gradients, but {said} says that no input has one")

    def forward_and_back(self, values: list[Any], wrt: list[int], cotangents: Cotangents | None) -> tuple[list[Any], dict[int, Any]]:
        """The outputs, and input position -> gradient."""
        import numpy as np

        from irtool.execute.pairs import sole_scalar
        from irtool.ops.arrays import hosted

        recorded = self.executor.record(values, wrt, seed=self.arguments.seed)
        outputs = hosted(recorded.outputs)
        seeds = cotangents.fitted(outputs) if cotangents is not None and cotangents.parts else sole_scalar(outputs)
        if seeds is None:
            raise Error(f"no cotangents: {graph_inputs.NEEDED}", code="E0502")
        listed = [each for i, output in enumerate(outputs) for each in leaves(seeds.get(i), output)]
        for _ in range((self.arguments.create_graph or 1) - 1):
            recorded = recorded.backward_recorded(listed)
            pieces = [each for gradient in hosted(recorded.outputs) for each in leaves(gradient, gradient)]
            listed = [None if each is None else np.ones_like(each) for each in pieces]
        return outputs, dict(zip(wrt, hosted(recorded.backward(listed)), strict=True))

    def report(self, values: list[Any]) -> None:
        """Print times, counters, and why there is no plan."""
        if self.arguments.time:
            first, rest = self.times[0], sorted(self.times[1:])
            line = f"first run {first * 1e3:.3f} ms"
            if rest:
                line += f", median of {len(rest)} more {rest[len(rest) // 2] * 1e3:.3f} ms, fastest {rest[0] * 1e3:.3f} ms"
            self.console.err(line)
        if self.arguments.stats:
            import json

            from irtool.execute.fallbacks import why

            reason = self.executor.why_no_plan(values) if self.executor.options.optimize else None
            if reason is not None:
                self.console.err(why(reason, self.executor.graph))
            self.console.err(json.dumps(self.executor.stats))
