"""Where torch has no gradient there is none, not one of zeros, which an infinite slope in front would make nan; and the other way round."""
from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from missing_gradients import RECORDED, behind_roots, is_missing

import irtool
from irtool.ops import OPS
from irtool.testing.formulas import Trial
from tests.laws import over

OTHERWISE = {
    "torch has no gradient of these": "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0 "
        "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
        "special_scaled_modified_bessel_k1 special_spherical_bessel_j0",
    "torch has zeros, of operands that only say which elements take part": "hardtanh_backward threshold_backward leaky_relu_backward "
        "hardshrink_backward softshrink_backward rrelu_with_noise_backward nll_loss_backward nll_loss2d_backward",
    "of a kernel alone torch has the gradient of no input": "convolution_backward",
}


@cache
def answers() -> dict[str, list[list[int] | None]]:
    found: dict[str, list[list[int] | None]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {name: each for name, each in found.items()
            if name.removeprefix("aten::").partition(".")[0] not in " ".join(OTHERWISE.values()).split()}


@over("name", [pytest.param(name, id=name) for name in answers()], lambda name: name.removeprefix("aten::")[0])
def test_gradients_that_torch_does_not_have(name: str) -> None:
    for sample, wanted in zip(OPS[name].samples[name], answers()[name], strict=True):
        if wanted is None:
            continue
        trial = Trial(name, sample)
        graph, count = behind_roots(trial), len(trial.inputs)
        zeros = [np.zeros_like(trial.inputs[place]) for place in trial.wrt]
        with np.errstate(all="ignore"):
            found = irtool.vjp(graph, [*trial.inputs, *zeros], trial.cotangents, list(range(count, count + len(zeros))), interpret=True)
        assert [int(is_missing(gradient)) for gradient in found] == wanted, sample
