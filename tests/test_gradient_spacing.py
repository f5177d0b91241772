"""`torch.gradient` of one spacing: torch's own formula to the bit, also where the spacing is 0."""
from __future__ import annotations

import numpy as np
import pytest

import irtool


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spacing", [0, 0.0, 2, 0.3])
def test_ends_are_differences_divided_by_the_spacing(spacing: float, order: int) -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 7.0])
    (result,) = irtool.torch.ops.aten.gradient(irtool.torch.tensor(x), spacing=spacing, edge_order=order)
    first, last = (1.0, -1.0) if order == 1 else (-1.5 * 1 + 2 * 2 - 0.5 * 4, 0.5 * 4 - 2 * 8 + 1.5 * 7)
    with np.errstate(divide="ignore"):
        want = np.array([first, *(np.array([3.0, 6.0, 3.0]) / 2), last]) / spacing
    np.testing.assert_allclose(result.array, want, rtol=1e-15)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int8", "int64"])
def test_torch_gives_the_same_bits(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for spacing in (0.0, 0, 2, *rng.normal(size=20).tolist()):
        for order in (1, 2):
            x = (rng.normal(size=(4, 5)) * 4).astype(dtype)
            wants = torch.ops.aten.gradient(torch.tensor(x), spacing=spacing, edge_order=order)
            gots = irtool.torch.ops.aten.gradient(irtool.torch.tensor(x), spacing=spacing, edge_order=order)
            for got, want in zip(gots, wants, strict=True):
                np.testing.assert_array_equal(got.array, want.numpy())


@pytest.mark.parametrize(("x", "order", "expected"), [
    (np.int32([-2**31, 1, 2**31 - 1]), 1, [-2147483647, -0.5, 2147483646]),
    (np.int8([0, 100, -100]), 1, [100, -50, 56]), (np.int8([0, 100, -100]), 2, [-6, -50, -94])])
def test_integers_wrap_round_as_in_torch(x, order, expected):
    (result,) = irtool.torch.ops.aten.gradient(irtool.torch.tensor(x), spacing=1, edge_order=order)
    np.testing.assert_array_equal(result.array, np.float32(expected))


def test_ends_have_the_precision_of_the_samples():
    """Coordinates at the ends are single numbers, which do not promote; those in the middle do."""
    x, at = np.float32([1.1, 2.3, 4.7]), np.array([0.0, 0.3, 0.7])
    (result,) = irtool.torch.ops.aten.gradient(irtool.torch.tensor(x), spacing=[irtool.torch.tensor(at)])
    assert result.array.dtype == np.float64
    np.testing.assert_array_equal(result.array[[0, 2]], [(x[1] - x[0]) / np.float32(0.3), (x[2] - x[1]) / np.float32(at[2] - at[1])])


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int8", "int64"])
def test_torch_gives_the_same_bits_at_coordinates(dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for order in (1, 2):
        x, at = (rng.normal(size=(4, 5)) * 40).astype(dtype), np.sort(rng.normal(size=5)).astype("f4" if dtype == "float16" else "f8")
        (want,) = torch.ops.aten.gradient(torch.tensor(x), spacing=[torch.tensor(at)], dim=1, edge_order=order)
        (got,) = irtool.torch.ops.aten.gradient(irtool.torch.tensor(x), spacing=[irtool.torch.tensor(at)], dim=1, edge_order=order)
        np.testing.assert_allclose(got.array, want.numpy(), *((2e-3, 0) if dtype == "float16" else (0, 0)))
