"""Calls at the ends of what numbers and arguments can be, with torch's results."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irtool.ops.call import call_op

NAN, INF = np.nan, np.inf
CALLS: dict[str, tuple[list[Any], Any]] = {}
"""An overload, a dot and words to tell calls apart -> arguments, result."""


def row(name: str, *args: Any, gives: Any) -> None:
    """Add a call."""
    CALLS[f"{name} {len(CALLS)}"] = list(args), gives


# the norm of one number is its size, also where its square is 0 or infinite
row("aten::linalg_vector_norm", np.array([[1e-200], [-1e200]]), 2, [1], False, None, gives=np.array([1e-200, 1e200]))
row("aten::norm.Scalar", np.float32([-1e-30]), 2, gives=np.float32(1e-30))
row("aten::norm.ScalarOpt_dim", np.float64([[3.0], [2.0]]), 1e3, [1], False, gives=np.float64([3, 2]))
row("aten::linalg_vector_norm", np.complex128([1e200j]), 3, None, False, None, gives=np.float64(1e200))
row("aten::linalg_vector_norm", np.float64([[NAN], [0]]), 0, [1], False, None, gives=np.float64([1, 0]))
row("aten::cosine_similarity", np.float64([[1e-200], [-3]]), np.float64([[2], [1e200]]), 1, 0.0, gives=np.float64([1, -1]))

# an order that the dtype cannot hold is infinity for distances between rows
row("aten::cdist", np.float32([[1, 2], [3, 5]]), np.float32([[1, 2]]), 1e300, None, gives=np.float32([[0], [3]]))
row("aten::pdist", np.float32([[1, 2], [3, 5]]), 1e300, gives=np.float32([3]))
row("aten::pdist", np.zeros((2, 0), np.float32), 1e300, gives=np.float32([0]))


@pytest.mark.parametrize("call", CALLS)
def test_results(call: str) -> None:
    args, wanted = CALLS[call]
    result = call_op(call.split()[0], args)
    assert result.dtype == wanted.dtype and result.shape == wanted.shape
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(np.signbit(result.real), np.signbit(wanted.real))
