"""What torch makes of the samples of the stanzas: for each sample and each tensor that has a gradient one number, the gradient's product
with a random direction.

`python tests/formula_samples.py` (with torch) records them in tests/data/formula_gradients.json, by overload.
"""
from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from irtool.ops import OPS
from irtool.testing.finite_differences import drawn, inner
from irtool.testing.formulas import Trial

RECORDED = Path(__file__).parent / "data" / "formula_gradients.json"
DIFFERENT = {
    "the sign of singular vectors and eigenvectors is anybody's": "linalg_svd _linalg_svd svd linalg_eigh _linalg_eigh",
    "random numbers": "dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout rrelu rrelu_with_noise",
    "torch forgets that rows are scaled by how often they occur": "embedding_backward",
    "torch has no gradient of these": "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 "
        "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
        "special_scaled_modified_bessel_k1 special_spherical_bessel_j0",
}
"""Where torch's numbers say nothing about ours, and why. Of operators for which it raises there are none."""


def products(trial: Trial, gradients: list[Any]) -> list[float | None]:
    """Each gradient's product with a random direction; None stays None."""
    random = np.random.default_rng(1)
    directions = [drawn(trial.inputs[i], random) for i in trial.wrt]
    return [None if gradient is None else float(f"{inner(gradient, direction):.12g}")
            for gradient, direction in zip(gradients, directions, strict=True)]


def by_torch(trial: Trial) -> list[float | None] | None:
    """torch's numbers for one sample; None where torch has no such operator, or no gradient of it."""
    import torch

    in_place = trial.name.removeprefix("aten::").partition(".")[0].endswith("_")
    found = torch_gradients(trial, lambda leaf: leaf.clone() if in_place else leaf)
    return None if found is None else products(trial, [
        None if gradient is None else (gradient.resolve_conj() + torch.zeros_like(leaf)).detach().numpy() for leaf, gradient in found])


def torch_gradients(trial: Trial, through: Callable[[Any], Any], at_zero: bool = False) -> list[tuple[Any, Any]] | None:
    """For each tensor that has a gradient a leaf of torch's, and its gradient; `through`: of a leaf, what the operator takes in its place.

    The leaf holds the tensor's numbers; with `at_zero` zeros, which are added to them behind `through`. None where torch raises.
    """
    import torch

    kind, _, variant = trial.name.removeprefix("aten::").partition(".")
    wanted = {id(trial.inputs[i]) for i in trial.wrt}
    leaves: dict[int, Any] = {}

    def tensor(value: Any) -> Any:
        if isinstance(value, list):
            return [tensor(each) for each in value]
        if not isinstance(value, np.ndarray):
            return value
        made = torch.tensor(value)
        if id(value) not in wanted:
            return made
        leaf = leaves[id(value)] = (torch.zeros_like(made) if at_zero else made).requires_grad_()
        return made + through(leaf) if at_zero else through(leaf)

    try:
        op = getattr(getattr(torch.ops.aten, kind), variant or "default")
        given = [tensor(arg) for arg in trial.args]
        arguments = op._schema.arguments
        positional = [value for value, argument in zip(given, arguments, strict=True) if not argument.kwarg_only]
        named = {argument.name: value for value, argument in zip(given, arguments, strict=True) if argument.kwarg_only}
        outputs = op(*positional, **named)
        flat = [each for out in (outputs if isinstance(outputs, list | tuple) else [outputs])
                for each in (out if isinstance(out, list | tuple) else [out])]
        pairs = [(out, torch.tensor(c)) for out, c in zip(flat, trial.cotangents, strict=True)
                 if c is not None and isinstance(out, torch.Tensor) and out.requires_grad]
        inputs = [leaves[id(trial.inputs[i])] for i in trial.wrt]
        found = [None] * len(inputs)
        if pairs:
            found = torch.autograd.grad([out for out, _ in pairs], inputs, [c for _, c in pairs], allow_unused=True)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        print(f"{trial.name}: {str(error).splitlines()[0]}")
        return None
    return list(zip(inputs, found, strict=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    recorded = {name: [by_torch(Trial(name, sample)) for sample in op.samples.get(name, [])] for name, op in OPS.items()
                if name in op.formulas and name.startswith("aten::")}
    recorded = {name: numbers for name, numbers in recorded.items() if any(each is not None for each in numbers)}
    lines = [f"{json.dumps(name)}:{json.dumps(numbers, separators=(',', ':'))}" for name, numbers in sorted(recorded.items())]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
