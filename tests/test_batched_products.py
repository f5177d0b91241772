"""Products that are added to something, under vmap: what they give row by row, in every dtype, for every pair of factors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

SIZES = {"addmm": ((2, 3), (2, 4), (4, 3)), "addmv": ((2,), (2, 4), (4,)), "baddbmm": ((5, 2, 3), (5, 2, 4), (5, 4, 3)),
         "addbmm": ((2, 3), (5, 2, 4), (5, 4, 3)), "addr": ((2, 3), (2,), (3,))}
FACTORS = ((1, 1), (2, 3), (0.6, 0.2), (0, 1), (True, True))


def result(call: Any) -> Any:
    """The dtype and elements of a result, or that it is refused."""
    try:
        array = np.asarray(call())
    except irtool.Error:
        return "refused"
    return array.dtype.name, array.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float64"])
@pytest.mark.parametrize("name", SIZES)
def test_sums_of_products_stay_what_they_are(name: str, dtype: str) -> None:
    """Whole numbers, whose factors are whole numbers; booleans."""
    compare(name, [dtype] * 3)


@pytest.mark.parametrize("name", SIZES)
def test_operands_of_several_dtypes(name: str) -> None:
    """Only addr has a common dtype for them; what is added may have fewer dimensions."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dtypes = [str(each) for each in rng.choice(["uint8", "int8", "int64", "bool", "float32", "float64"], 3)]
        compare(name, dtypes, int(rng.integers(3)))


def compare(name: str, dtypes: list[str], dropped: int = 0) -> None:
    """vmap, and jit of it, against a loop. dropped: how many dimensions the tensor that is added has less."""
    torch, rng = irtool.torch, np.random.default_rng(1)
    shapes = [SIZES[name][0][dropped:], *SIZES[name][1:]]
    operands = [torch.from_numpy(rng.integers(-5, 6, (2, *sizes)).astype(each)) for sizes, each in zip(shapes, dtypes)]
    for beta, alpha in FACTORS:
        def sums(*rows: Any, beta: Any = beta, alpha: Any = alpha) -> Any:
            return getattr(torch, name)(*rows, beta=beta, alpha=alpha)

        want = result(lambda: torch.stack([sums(*[each[row] for each in operands]) for row in range(2)]))    # noqa: B023  called here
        for function in (irtool.vmap(sums), irtool.jit(irtool.vmap(sums))):
            got = result(lambda: function(*operands))        # noqa: B023  called here
            assert got[0] == want[0], (dtypes, dropped, beta, alpha)
            if want != "refused":
                np.testing.assert_allclose(got[1], want[1], rtol=1e-5 if want[0] == "float32" else 1e-12)
