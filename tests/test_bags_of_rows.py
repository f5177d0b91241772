"""`aten::embedding_bag` of indices with two dimensions: each row is a bag, and the offsets, which torch's functions compute, say so.

torch's operator takes other offsets too, and reads them as places in the flat indices or reads memory that is not its own; irtool refuses.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

TABLE = np.arange(12.0).reshape(4, 3)
INDICES = np.array([[0, 1], [2, 3], [3, 3]])


def bags(offsets: Any, mode: int = 0, indices: Any = INDICES, has_last: bool = False) -> Any:
    torch = irtool.torch
    return torch.ops.aten.embedding_bag(torch.tensor(TABLE), torch.tensor(indices), torch.tensor(offsets), mode=mode,
                                        include_last_offset=has_last)[0]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_rows_are_bags(mode: int) -> None:
    expected = [[np.sum, np.mean, np.max][mode](TABLE[row], axis=0) for row in INDICES]
    np.testing.assert_array_equal(bags(np.array([0, 2, 4]), mode).array, expected)
    np.testing.assert_array_equal(bags(np.array([0, 2, 4, 6]), mode, has_last=True).array, expected)


@pytest.mark.parametrize("offsets", [[0, 1, 2], [0], [], [0, 2], [[0, 2, 4]], 0])
def test_other_offsets_are_refused(offsets: Any) -> None:
    given = np.array(offsets, np.int64)
    with pytest.raises(irtool.Error, match="the starts of their rows|has to be a 1D Tensor"):
        bags(given)
    with pytest.raises(irtool.Error, match="the starts of their rows|has to be a 1D Tensor"):
        irtool.vmap(lambda each: bags(each))(np.stack([given, given]))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_rows_under_vmap(mode: int) -> None:
    torch = irtool.torch
    batch = np.stack([INDICES, INDICES[::-1], INDICES % 2])
    expected = np.stack([bags(np.array([0, 2, 4]), mode, each).array for each in batch])

    def one(indices: Any) -> Any:
        return torch.ops.aten.embedding_bag(torch.tensor(TABLE), indices, torch.tensor(np.array([0, 2, 4])), mode=mode)[0]

    np.testing.assert_array_equal(irtool.vmap(one)(batch).array, expected)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("indices", ["int32", "int64"])
@pytest.mark.parametrize("offsets", ["int32", "int64"])
def test_bags_and_sizes_have_the_wider_dtype_of_indices_and_offsets(mode: int, indices: str, offsets: str) -> None:
    torch = irtool.torch
    others = torch.ops.aten.embedding_bag(torch.tensor(TABLE), torch.tensor(np.array([0, 2, 3], indices)),
                                          torch.tensor(np.array([0, 2], offsets)), mode=mode)[1:]
    assert {str(each.array.dtype) for each in others} == {max(indices, offsets)}
