"""`max_norm` of embedding and embedding_bag: a function shortens the rows that are named, in the table itself; TorchScript's does not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

TABLE = np.arange(6.0).reshape(3, 2)
SHORT = TABLE.copy()
SHORT[2] /= np.linalg.norm(SHORT[2]) + 1e-7
CALLS = {"embedding": "F.embedding(i, w, max_norm=1.0)", "embedding_bag": "F.embedding_bag(i, w, o, max_norm=1.0, mode='sum')"}


def called(name: str, w: Any) -> Any:
    torch = irtool.torch
    space = {"F": torch.nn.functional, "i": torch.tensor([0, 2]), "o": torch.tensor([0, 1]), "w": w}
    return eval(CALLS[name], space)      # noqa: S307  the texts above


@pytest.mark.parametrize("name", CALLS)
def test_functions_shorten_rows(name: str) -> None:
    w = irtool.torch.tensor(TABLE)
    np.testing.assert_allclose(called(name, w).array, SHORT[[0, 2]], rtol=1e-12)
    np.testing.assert_allclose(w.array, SHORT, rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_the_shortened_table(name: str) -> None:
    """torch.autograd's: the rows are shortened where gradients are off."""
    def loss(w: Any) -> Any:
        y = called(name, w * 1.0)
        return (y * y).sum()

    want = np.zeros_like(TABLE)
    want[[0, 2]] = 2 * SHORT[[0, 2]]
    for gradient in (irtool.grad(loss), irtool.jit(irtool.grad(loss))):
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(gradient(TABLE)), want, rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_source_leaves_rows_as_they_are(name: str) -> None:
    module = irtool.from_script(f"def f(i: Tensor, w: Tensor, o: Tensor):\n    return {CALLS[name]}\n")
    w = TABLE.copy()
    np.testing.assert_array_equal(irtool.run(module, [np.array([0, 2]), w, np.array([0, 1])])[0], TABLE[[0, 2]])
    np.testing.assert_array_equal(w, TABLE)
