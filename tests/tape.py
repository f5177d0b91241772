"""A little autograd engine whose operators are graphs and whose backward steps are their reverse graphs, which are on the tape too.

What autograd does with functions that save values for their backward, this does with gradient pairs: f runs with its temporaries,
gradients of all its outputs, of temporaries too, go into df, and df is a graph like any other, differentiated when it is wanted again.
So a gradient of any order passes through every vjp that a pair takes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import irtool
from irtool.autodiff.reverse import Reverse, differentiate_graph
from irtool.ir.edits import clone_graph
from irtool.ir.graph import Graph

SUM = irtool.parse("graph(%a : Tensor, %b : Tensor):\n  %c : int = prim::Constant[value=1]()\n"
                   "  %d : Tensor = aten::add(%a, %b, %c)\n  return (%d)\n").graph()


class Taped:
    """A value, and the step that made it."""

    def __init__(self, value: Any, step: Step | None = None, index: int = 0) -> None:
        self.value, self.step, self.index = value, step, index


class Step:
    """One graph that ran."""

    def __init__(self, tape: Tape, graph: Graph, args: Sequence[Taped]) -> None:
        self.args = args
        self.pair = tape.pair(graph, tuple(takes_gradient(arg) for arg in args))
        self.outputs = [Taped(value, self, i) for i, value in enumerate(irtool.run(self.pair.f, [arg.value for arg in args]))]


class Tape:
    """Steps in the order in which they ran."""

    def __init__(self, modern: bool = True) -> None:
        self.modern = modern
        self.steps: list[Step] = []
        self.pairs: dict[tuple[Graph, tuple[bool, ...]], Reverse] = {}

    def pair(self, graph: Graph, flags: tuple[bool, ...]) -> Reverse:
        """The pair of a graph, made once."""
        if (graph, flags) not in self.pairs:
            self.pairs[graph, flags] = differentiate_graph(clone_graph(graph), flags, self.modern)
            irtool.verify(self.pairs[graph, flags].f)
            irtool.verify(self.pairs[graph, flags].df)
        return self.pairs[graph, flags]

    def run(self, graph: Graph, args: Sequence[Taped]) -> list[Taped]:
        """Run a graph; gives its results, temporaries too."""
        self.steps.append(Step(self, graph, args))
        return self.steps[-1].outputs

    def gradients(self, outputs: Sequence[Taped], seeds: Sequence[Taped], wrt: Sequence[Taped]) -> list[Taped]:
        """Gradients of the sum of `outputs` times `seeds`."""
        found: dict[Taped, Taped] = {}
        for output, seed in zip(outputs, seeds, strict=True):
            self.add(found, output, seed)
        for step in reversed(list(self.steps)):
            if not any(output in found for output in step.outputs):
                continue
            pair = step.pair
            args = [found.get(step.outputs[i], Taped(None)) for i in pair.input_vjps]
            args += [step.args[i] for i in pair.captured_inputs] + [step.outputs[i] for i in pair.captured_outputs]
            for i, gradient in zip(pair.output_vjps, self.run(pair.df, args), strict=False):
                if gradient.value is not None and is_float(step.args[i].value):
                    self.add(found, step.args[i], gradient)
        return [found.get(value) or Taped(np.zeros_like(value.value)) for value in wrt]

    def add(self, found: dict[Taped, Taped], value: Taped, gradient: Taped) -> None:
        """One more gradient of a value."""
        found[value] = self.run(SUM, [found[value], gradient])[0] if value in found else gradient


def is_float(value: Any) -> bool:
    """May it have a gradient? A gradient that is not there may not."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def takes_gradient(value: Taped) -> bool:
    """Does a gradient of it go on to what it was computed from? Not that of the mean that `native_layer_norm` saves."""
    return is_float(value.value) and (value.step is None or value.index in value.step.pair.input_vjps)


def orders(graph: Graph, inputs: Sequence[Any], seeds: Sequence[np.ndarray], modern: bool = True) -> list[list[np.ndarray]]:
    """By order, gradients of all floating inputs: of the output times seeds[0]; then of the sum of those before times seeds[k]."""
    tape = Tape(modern)
    args = [Taped(value) for value in inputs]
    wrt = [arg for arg in args if is_float(arg.value)]
    values = tape.run(graph, args)[:1]
    found = []
    for seed in seeds:
        values = tape.gradients(values, [Taped(np.broadcast_to(seed, np.shape(value.value)).copy()) for value in values], wrt)
        found.append([value.value for value in values])
    return found
