"""Gradients of variances and standard deviations with no degree of freedom left are torch's, as where all elements take part."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

ROWS = ([2.0, 1.0], [3.0], [2.0, 2.0], [1.0, 2.0, 6.0])
CORRECTIONS = (0, 1, 2, 3, 5, 0.5)


def expected(row: list[float], correction: float, of_dims: bool, is_std: bool) -> Any:
    """The gradient as torch computes it: 2 / (count - correction) times the distance from the mean; of all elements, if the quotient's
    divisor is not positive, infinity, and nan at the mean."""
    x, free = np.array(row), len(row) - correction
    with np.errstate(all="ignore"):
        away = x - x.mean()
        factor = 1.0
        if is_std:
            std = np.sqrt((away * away).sum() / np.float64(max(free, 0)))
            factor = 0.0 if std == 0 else 1 / (2 * std)
        if not of_dims and free <= 0:
            return factor * np.where(away == 0, np.nan, np.inf)
        return 2 / np.float64(free) * factor * away


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dims", ["None", "[0]"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_few_elements(name: str, dims: str, keepdim: bool) -> None:
    for correction in CORRECTIONS:
        call = f"torch.{name}(x, {dims}, correction={correction}, keepdim={keepdim}){'[0]' if 'mean' in name else ''}"
        graph = irtool.from_script(f"def f(x: Tensor):\n    return {call}\n").graph()
        function: Any = eval(f"lambda x: {call}.sum()", {"torch": irtool.torch})
        for row in ROWS:
            x, wanted = np.array(row), expected(row, correction, dims != "None", "std" in name)
            with np.errstate(all="ignore"):
                (result,) = irtool.run(graph, [x])
                found = [irtool.vjp(graph, [x], [np.ones_like(result)], [0], interpret=interpret)[0] for interpret in (True, False)]
                if correction == 2 and not keepdim:
                    slope = irtool.grad(function)
                    found += [slope(x), irtool.jit(slope)(x), irtool.vmap(slope)(x[None])[0]]
            for each in found:
                np.testing.assert_allclose(np.asarray(each), wanted, 1e-12, 1e-12, err_msg=f"{call} of {row}")


@pytest.mark.parametrize("call", ["var(x)", "std(x)", "var(x, True)", "std_mean(x)[0]", "var(x, 0)", "std(x, [0], True, True)"])
def test_one_element(call: str) -> None:
    for x in (np.array([3.0]), np.array(3.0)):
        graph = irtool.from_script(f"def f(x: Tensor):\n    return torch.{call}\n").graph()
        with np.errstate(all="ignore"):
            (result,) = irtool.run(graph, [x])
            (found,) = irtool.vjp(graph, [x], [np.ones_like(result)], [0])
        assert np.isnan(found).all()
