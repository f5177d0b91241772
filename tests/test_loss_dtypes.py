"""Elementwise losses take the pairs of dtypes that torch takes, and give results of torch's dtype."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

DTYPES = ("float32", "float16", "float64", "int32", "int64", "uint8", "bool", "complex64")
LOSSES: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "l1_loss": lambda aten, x, y, reduction: aten.l1_loss(x, y, reduction),
    "mse_loss": lambda aten, x, y, reduction: aten.mse_loss(x, y, reduction),
    "huber_loss": lambda aten, x, y, reduction: aten.huber_loss(x, y, reduction, 1.0),
    "smooth_l1_loss": lambda aten, x, y, reduction: aten.smooth_l1_loss(x, y, reduction, 1.0),
    "smooth_l1_loss without a parabola": lambda aten, x, y, reduction: aten.smooth_l1_loss(x, y, reduction, 0.0),
    "soft_margin_loss": lambda aten, x, y, reduction: aten.soft_margin_loss(x, y, reduction),
    "kl_div": lambda aten, x, y, reduction: aten.kl_div(x, y, reduction),
    "poisson_nll_loss": lambda aten, x, y, reduction: aten.poisson_nll_loss(x, y, True, False, 1e-8, reduction),
    "binary_cross_entropy": lambda aten, x, y, reduction: aten.binary_cross_entropy(x, y, None, reduction),
    "binary_cross_entropy_with_logits": lambda aten, x, y, reduction: aten.binary_cross_entropy_with_logits(x, y, None, None, reduction),
    "hinge_embedding_loss": lambda aten, x, y, reduction: aten.hinge_embedding_loss(x, y, 1.0, reduction),
}


def dtype_or_refusal(call: Callable[..., Any], library: Any, arrays: list[np.ndarray], reduction: int) -> str:
    """The name of the dtype of a loss, or "refused"."""
    try:
        return str(call(library.ops.aten, *map(library.from_numpy, arrays), reduction).dtype).rpartition(".")[2]
    except (irtool.Error, RuntimeError):
        return "refused"


@pytest.mark.oracle
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_takes_the_dtypes_that_torch_takes(name: str) -> None:
    torch = pytest.importorskip("torch")
    for first, second, reduction in itertools.product(DTYPES, DTYPES, range(3)):
        arrays = [np.ones((2, 3), first), np.ones((2, 3), second)]
        want, got = (dtype_or_refusal(LOSSES[name], library, arrays, reduction) for library in (torch, irtool.torch))
        assert got == want, (first, second, reduction)


@pytest.mark.parametrize("variance", [math.inf, 0.0, 1e-30, 5.0])
def test_a_bound_of_a_variance_leaves_its_gradient_and_infinities(variance: float) -> None:
    """A variance below `eps` counts as `eps`, with the slope of what it became; an infinite one stays infinite."""
    t, loss = irtool.torch, irtool.torch.nn.functional.gaussian_nll_loss
    value, slope = irtool.value_and_grad(lambda var: loss(t.tensor([1.0]), t.tensor([2.0]), var))(t.tensor([variance], dtype=t.float64))
    bounded = max(variance, 1e-6)
    assert np.allclose(value, 0.5 * (math.log(bounded) + 1 / bounded) if bounded < math.inf else math.inf)
    assert np.allclose(slope, 0.5 * (1 / bounded - 1 / bounded ** 2))


def test_a_variance_of_whole_numbers_cannot_be_bounded() -> None:
    """As in torch, which writes the bound into a copy of it."""
    whole = irtool.torch.tensor([1, 2])
    with pytest.raises(irtool.RunError, match="can't be cast to the desired output type"):
        irtool.torch.nn.functional.gaussian_nll_loss(whole, whole, whole)
