"""`irtool.torch` beside torch: the same lines of Python, run with both."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool

pytestmark = pytest.mark.oracle

KEYS = {"row": lambda t: 0, "all": lambda t: ..., "slice": lambda t: slice(1), "index": lambda t: t.tensor([1, 0]), "new": lambda t: None,
        "table": lambda t: t.tensor([[1], [0]]), "mask": lambda t: t.tensor([True, False]), "true": lambda t: True, "list": lambda t: [0],
        "elements": lambda t: t.tensor([[True, False, True], [False, False, True]]), "columns": lambda t: (slice(None), t.tensor([2, 0])),
        "two": lambda t: (t.tensor([0, 1]), t.tensor([1, 2])), "both": lambda t: (1, t.tensor([0])), "element": lambda t: (0, 1)}
SHAPES = [(), (1,), (3,), (1, 3), (2, 3), (1, 2, 3), (1, 1, 3), (1, 1, 1, 1), (2, 1, 3), (1, 2, 2, 3), (2, 1), (1, 1, 2, 1)]


@pytest.mark.parametrize("key", KEYS)
def test_assignments_broadcast_as_torch_does(key: str) -> None:
    torch = pytest.importorskip("torch")

    def assigned(library: Any, value: Any) -> Any:
        x = library.zeros(2, 3)
        x[KEYS[key](library)] = library.tensor(value)
        return np.asarray(x).tolist()

    for shape in SHAPES:
        value = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)
        try:
            wanted = assigned(torch, value)
        except RuntimeError:
            with pytest.raises(irtool.Error):
                assigned(irtool.torch, value)
        else:
            assert assigned(irtool.torch, value) == wanted, shape


def test_medians_of_nothing() -> None:
    torch = pytest.importorskip("torch")
    for name, dtype in product(["median", "nanmedian"], ["bool", "uint8", "int64", "float32", "complex64"]):
        one, other = [getattr(library, name)(library.zeros(2, 0, dtype=getattr(library, dtype))) for library in (torch, irtool.torch)]
        assert np.array_equal(one.numpy(), np.asarray(other), equal_nan=True) and one.numpy().dtype == np.asarray(other).dtype
