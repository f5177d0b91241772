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

# a dtype without a kernel counts only where there is something to compute
row("aten::adaptive_avg_pool1d", np.zeros((0, 2, 3), np.int64), [2], gives=np.zeros((0, 2, 2), np.int64))
row("aten::adaptive_avg_pool2d", np.zeros((1, 0, 3, 3), np.bool_), [2, 2], gives=np.zeros((1, 0, 2, 2), np.bool_))

# an order that the dtype cannot hold is infinity for distances between rows
row("aten::cdist", np.float32([[1, 2], [3, 5]]), np.float32([[1, 2]]), 1e300, None, gives=np.float32([[0], [3]]))
row("aten::pdist", np.float32([[1, 2], [3, 5]]), 1e300, gives=np.float32([3]))
row("aten::pdist", np.zeros((2, 0), np.float32), 1e300, gives=np.float32([0]))

# alpha * vec1 comes first
row("aten::addr", np.array([[0.5]]), np.array([-2.0]), np.array([1.7e308]), -2, 0, gives=np.array([[-1.0]]))
row("aten::addr", np.array([[0.5]]), np.array([4.0]), np.array([1e308]), 1, 0.25, gives=np.array([[1e308]]))
# what is not below 0 is not multiplied by alpha
row("aten::celu", np.array([-1, 0.0, -0.0, 4, NAN]), 1e-320, gives=np.array([-1e-320, 0.0, -0.0, 4, NAN]))
row("aten::celu", np.array([0.0, -0.0, 4]), -INF, gives=np.array([0.0, -0.0, 4]))
# products of narrow integers are computed in int32, and then wrap round
row("aten::lcm", np.int8([65, -128, 127]), np.int8([2, 3, -128]), gives=np.int8([-126, -128, -128]))
row("aten::lcm", np.int16([32767, 6]), np.int16([-2, -4]), gives=np.int16([-2, 12]))
# spacing 0
row("aten::fft_fftfreq", 3, 0.0, None, None, None, None, gives=np.float32([NAN, INF, -INF]))
row("aten::fft_rfftfreq", 3, 0.0, 7, None, None, None, gives=np.float64([NAN, INF]))
# dtype=None is int64 for indices
row("aten::tril_indices", 2, 1, 0, None, None, None, None, gives=np.int64([[0, 1], [0, 0]]))
row("aten::triu_indices", 1, 2, 0, None, None, None, None, gives=np.int64([[0, 0], [0, 1]]))
row("aten::randperm", 1, None, None, None, None, gives=np.int64([0]))
row("aten::randperm.generator", 1, None, None, None, None, None, gives=np.int64([0]))
# constants that torch holds as floats
TINY, SIXTH = (float(np.float32(number)) for number in (1e-12, 1 / 6))
row("aten::binary_cross_entropy_backward", np.ones(1), np.zeros(1), np.array([0.5]), None, 0, gives=np.array([-0.5 / TINY]))
row("aten::hardsigmoid_backward", np.array([3.0, 3.0]), np.array([0.0, 4.0]), gives=np.array([3 * SIXTH, 0]))

# an element that equals a bound stays, with its sign
ZEROS = np.array([0.0, -0.0, -1.0, 1.0, NAN])
for dtype in (np.float16, np.float32, np.float64):
    X = np.tile(ZEROS.astype(dtype), 9)
    for name, args, wanted in (
            ("relu", (), [0.0, -0.0, 0.0, 1, NAN]), ("relu_", (), [0.0, -0.0, 0.0, 1, NAN]), ("relu6", (), [0.0, -0.0, 0.0, 1, NAN]),
            ("clamp", (0.0, None), [0.0, -0.0, 0.0, 1, NAN]), ("clamp", (None, -0.0), [0.0, -0.0, -1, -0.0, NAN]),
            ("clamp", (-0.0, 1), [0.0, -0.0, -0.0, 1, NAN]), ("clamp_", (0.0, None), [0.0, -0.0, 0.0, 1, NAN]),
            ("clamp_", (None, 0.0), [0.0, -0.0, -1, 0.0, NAN]), ("clamp_min", (0.0,), [0.0, -0.0, 0.0, 1, NAN]),
            ("clamp_max", (-0.0,), [0.0, -0.0, -1, -0.0, NAN]), ("hardtanh", (0.0, 2.0), [0.0, -0.0, 0.0, 1, NAN]),
            ("hardtanh", (-2.0, -0.0), [0.0, -0.0, -1, -0.0, NAN]), ("hardtanh_", (-2.0, 0.0), [0.0, -0.0, -1, 0.0, NAN])):
        row("aten::" + name, X, *args, gives=np.tile(np.array(wanted, dtype), 9))

# in a volume a point that is no number is outside, or at the last place; in an image it is nan, or at the first
LINE = np.arange(3.0).reshape(1, 1, 1, 1, 3)
for x in (NAN, INF, -INF):
    POINT, LAST = np.array([x, 0, 0]).reshape(1, 1, 1, 1, 3), 0.0 if x == -INF else 2.0
    for padding, value in enumerate((0.0, LAST, 2.0)):
        row("aten::grid_sampler_3d", LINE, POINT, 0, padding, True, gives=np.full((1, 1, 1, 1, 1), value))
        row("aten::grid_sampler_2d", LINE[0], POINT[0, :, :, :, :2], 0, padding, True,
            gives=np.full((1, 1, 1, 1), (NAN, 2.0 if x == INF else 0.0, 0.0)[padding]))


@pytest.mark.parametrize("call", CALLS)
def test_results(call: str) -> None:
    args, wanted = CALLS[call]
    result = call_op(call.split()[0], [each.copy() if isinstance(each, np.ndarray) else each for each in args])
    assert result.dtype == wanted.dtype and result.shape == wanted.shape
    np.testing.assert_array_equal(result, wanted)
    is_number = wanted == wanted
    np.testing.assert_array_equal(np.signbit(result.real)[is_number], np.signbit(wanted.real)[is_number])


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_torch_gives_the_same(call: str) -> None:
    torch = pytest.importorskip("torch")
    args, wanted = CALLS[call]
    name, _, overload = call.split()[0].partition(".")
    run, schema = torch._C._get_operation_overload(name, overload)[0], torch._C._get_schema(name, overload)
    values = [torch.from_numpy(each.copy()) if isinstance(each, np.ndarray) else each for each in args]
    named = {argument.name: value for argument, value in zip(schema.arguments, values, strict=True) if argument.kwarg_only}
    result = run(*values[:len(values) - len(named)], **named).numpy()
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)
    is_number = wanted == wanted
    np.testing.assert_array_equal(np.signbit(result.real)[is_number], np.signbit(wanted.real)[is_number])


POINTS, HEIGHTS = np.array([[2.0, 0], [0, 1], [0, 0]]), np.array([[1.0], [2], [3]])
TOLERANCES = [("gelsd", 1.0, [0.5, 2], [9], 2), ("gelsd", INF, [0.5, 2], [9], 2), ("gelsd", NAN, [0.5, 2], [9], 2),
              ("gelsd", 0.9, [0.5, 0], [], 1), ("gelss", NAN, [0.5, 2], [9], 2), ("gelss", 1.0, [0, 0], [], 0)]
"""Driver, rcond; solution, residuals, rank."""


@pytest.mark.parametrize(("driver", "rcond", "solution", "residuals", "rank"), TOLERANCES)
def test_gelsd_takes_a_tolerance_of_1_or_more_for_none(driver: str, rcond: float, solution: list[float], residuals: list[float],
                                                       rank: int) -> None:
    ours = call_op("aten::linalg_lstsq", [POINTS, HEIGHTS, rcond, driver])
    for one, wanted in zip(ours, (np.array(solution)[:, None], residuals, rank, [2, 1]), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12, 1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize(("driver", "rcond", "solution", "residuals", "rank"), TOLERANCES)
def test_torch_takes_it_so(driver: str, rcond: float, solution: list[float], residuals: list[float], rank: int) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.linalg.lstsq(torch.from_numpy(POINTS), torch.from_numpy(HEIGHTS), rcond=rcond, driver=driver)
    for one, wanted in zip(theirs, (np.array(solution)[:, None], residuals, rank, [2, 1]), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12, 1e-12)


def test_the_mode_of_one_number_needs_no_kernel():
    values, indices = call_op("aten::mode", [np.array(2j, np.complex64)])
    assert values == 2j and values.dtype == np.complex64 and indices == 0 and indices.dtype == np.int64
