"""irtool.torch's functions that are no operators by that name, or take their arguments in another way."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("data, dtype", [
    (1.5, "float32"), ([1, 2.5], "float32"), ([], "float32"), ([1, 2], "int64"), ([[True]], "bool"), (1 + 2j, "complex64"),
    (np.float64(1.5), "float64"), ([np.float64(1.5)], "float64"), (X, "float64")])
def test_tensors_of_pythons_numbers_have_torchs_dtypes(data: Any, dtype: str) -> None:
    assert torch.tensor(data).array.dtype == dtype


@pytest.mark.parametrize("data", ["text", [[1], [2, 3]], 2**63, [2**70], None, [object()]])
def test_what_is_not_made_of_numbers_is_refused(data: Any) -> None:
    with pytest.raises(irtool.RunError, match="tensor: expected numbers"):
        torch.tensor(data)


def test_tensors_one_by_one() -> None:
    x = irtool.Tensor(X)
    assert np.array_equal(torch.einsum("ij,kj->ik", x, x), X @ X.T)
    assert np.array_equal(torch.einsum("ij,kj->ik", [x, x]), X @ X.T)
    assert np.array_equal(torch.tensordot(x, x, dims=([0], [0])), X.T @ X)
    assert np.array_equal(torch.tensordot(x, x.T, dims=1), X @ X.T)
    assert [each.shape for each in torch.broadcast_tensors(x, x[0])] == [[2, 3], [2, 3]]
    assert [each.shape for each in torch.meshgrid(x[0], x[:, 0], indexing="ij")] == [[3, 2], [3, 2]]
    assert torch.block_diag(x, x).shape == [4, 6] and torch.cartesian_prod(x[0], x[1]).shape == [9, 2]
    assert torch.from_numpy(X).array is X


def test_they_go_through_transformations() -> None:
    assert np.array_equal(irtool.vmap(lambda row: torch.einsum("i,i->", row, row))(X), (X * X).sum(1))
    assert np.array_equal(irtool.grad(lambda x: torch.tensordot(x, x, dims=2))(X), 2 * X)
