"""Running a gradient pair of a file: f on inputs, then df on cotangents of the outputs of f and on the captures."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.autodiff.reach import holds_tensors, requiring
from irtool.execute.graph_gradients import fitted
from irtool.execute.output_cotangents import as_seed
from irtool.interpret import run
from irtool.ir.errors import RunError
from irtool.ir.graph import Graph
from irtool.ir.pair import DEFINED, GradientPair
from irtool.ops.array_library import np

Runner = Callable[[Graph, Sequence[Any]], list[Any]]


class Forward:
    """A finished run of f: `outputs` are its real outputs; `backward` runs df and may be called many times."""

    def __init__(self, pair: GradientPair, inputs: Sequence[Any], runner: Runner = run) -> None:
        self.pair = pair
        self.inputs = list(inputs)
        self.runner = runner
        self.all_outputs = runner(pair.f, self.inputs)
        self.outputs = self.all_outputs[:pair.real_outputs]

    def backward(self, cotangents: Mapping[int, Any]) -> tuple[dict[int, Any], list[str]]:
        """Gradients by index of an input of f, and notes about cotangents that were not needed.

        cotangents: by index of a real output, an array of its shape (a list of arrays for a list). A missing cotangent, and that of a
        temporary, is zeros if df was specialised for a defined one, else undefined. The gradient of an input that no path in f connects to
        an output is None; any other undefined gradient is zeros. Raises RunError for a cotangent that df was specialised to be undefined.
        """
        pair = self.pair
        flags = pair.defined
        seeds: list[Any] = []
        for position, index in enumerate(pair.input_vjps):
            output, cotangent = self.all_outputs[index], cotangents.get(index)
            is_defined = flags is not None and flags[position]
            if cotangent is not None and flags is not None and not is_defined:
                raise RunError(f"vjp{index} is given, but '{pair.df.name}' was specialised for its being undefined "
                               f"({DEFINED}={pair.df.metadata[DEFINED]})", code="E0503")
            seed = as_seed(cotangent, output)
            seeds.append(with_zeros(seed, output) if is_defined else seed)
        values = [*seeds, *[self.inputs[i] for i in pair.captured_inputs], *[self.all_outputs[i] for i in pair.captured_outputs]]
        gradients = dict(zip(pair.output_vjps, self.runner(pair.df, values), strict=True))
        notes = [f"'{pair.df.name}' takes no gradient of output {index}: vjp{index} is ignored"
                 for index in sorted(cotangents) if index not in pair.input_vjps]
        return self._by_input(gradients), notes

    def _by_input(self, gradients: dict[int, Any]) -> dict[int, Any]:
        """The gradients of df by input of f; None for tensors that the outputs of f do not depend on."""
        out: dict[int, Any] = {}
        for index, value in enumerate(self.pair.f.inputs):
            gradient = gradients.get(index)
            if gradient is not None:
                out[index] = fitted(gradient, self.inputs[index])
            elif holds_tensors(value.type) or index in gradients:
                if not is_reached(self.pair, index):
                    out[index] = None
                elif index in gradients:
                    out[index] = fitted(None, self.inputs[index])
        return out


def with_zeros(gradient: Any, output: Any) -> Any:
    """The gradient of an output, with zeros where it is undefined."""
    if isinstance(output, list | tuple):
        return [with_zeros(*each) for each in zip(gradient or [None] * len(output), output, strict=True)]
    return np.zeros_like(np.asarray(output)) if gradient is None else gradient


def is_reached(pair: GradientPair, index: int) -> bool:
    """Is there a differentiable path in f from this input to a real output?"""
    f = pair.f
    dependent = requiring(f, [i == index for i in range(len(f.inputs))], False)
    return any(value in dependent for value in f.outputs[:pair.real_outputs])


def sole_scalar(outputs: Sequence[Any]) -> dict[int, Any] | None:
    """The default cotangent: 1 for the only output, if it is one floating-point number; else None."""
    if len(outputs) != 1 or not isinstance(outputs[0], np.ndarray | np.generic):
        return None
    output = np.asarray(outputs[0])
    return {0: np.ones_like(output)} if output.size == 1 and output.dtype.kind in "fc" else None
