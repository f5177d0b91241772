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
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
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
