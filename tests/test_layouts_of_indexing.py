"""How `x[:, t]` lies in memory: the dimensions that stay in x's order, those that index tensors bring in theirs, as torch's iterator has
it. It shows: a write into `x[:, t].flatten()` is one into `x[:, t]` only if that lies in rows."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from irtool.ops.call import call_op

HAND = [        # shape of x, the order of its dimensions in memory, indices by dimension, the strides that torch gives
    ((3, 4, 2), (2, 1, 0), [None, [0, 0]], (1, 3, 6)),
    ((3, 4, 2), (0, 1, 2), [None, [0, 0]], (4, 2, 1)),
    ((3, 4, 2), (2, 1, 0), [[[0, 1], [1, 0]]], (16, 8, 1, 4)),
    ((3, 4, 2), (1, 0, 2), [[0, 1, 2], None, [0, 1, 0]], (4, 1)),
]


def drawn(draw: random.Random) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """A tensor in any order in memory, with gaps or repeated, and index tensors for some of its dimensions, in any order too."""
    shape = [draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(1, 4))]
    x = np.arange(float(np.prod(shape)) * 2, dtype=np.float32).reshape(*shape, 2)[..., 0]
    x = (x if draw.random() < 0.3 else np.ascontiguousarray(x)).transpose(draw.sample(range(x.ndim), x.ndim))
    if draw.random() < 0.2:
        x = np.broadcast_to(x, [3 if size == 1 and draw.random() < 0.5 else size for size in x.shape])
    brought, indices = [draw.choice([2, 3]) for _ in range(draw.randint(0, 3))], []
    for size in x.shape:
        sizes = [each if draw.random() < 0.8 else 1 for each in brought]
        index: Any = np.array([draw.randrange(size) for _ in range(int(np.prod(sizes)))], np.int64).reshape(sizes)
        if index.ndim > 1 and draw.random() < 0.4:
            index = np.asfortranarray(index)
        kind = draw.random()
        indices.append(None if kind < 0.45 else index if kind < 0.9 else np.array([draw.random() < 0.6 for _ in range(size)]))
        if draw.random() < 0.15:
            break
    return x, indices


def steps(shape: Any, strides: Any, size: int) -> list[int]:
    """Strides in elements of dimensions of more than one element."""
    return [step // size for extent, step in zip(shape, strides) if extent > 1]


@pytest.mark.parametrize(("shape", "order", "indices", "wanted"), HAND)
def test_by_hand(shape: Any, order: Any, indices: Any, wanted: Any) -> None:
    x = np.arange(float(np.prod(shape))).reshape([shape[place] for place in order]).transpose(np.argsort(order))
    result = call_op("aten::index.Tensor", [x, [None if each is None else np.array(each) for each in indices]])
    assert tuple(step // 8 for step in result.strides) == wanted


@pytest.mark.oracle
def test_random_indices_side_by_side() -> None:
    torch = pytest.importorskip("torch")
    compared = 0
    for seed in range(3000):
        x, indices = drawn(random.Random(seed))
        if all(each is None for each in indices):
            continue
        try:
            base = torch.as_strided(torch.arange(4096.0), x.shape, [step // 4 for step in x.strides])
            wanted = torch.ops.aten.index.Tensor(base, [None if each is None else torch.from_numpy(each) for each in indices])
        except (IndexError, RuntimeError):
            continue
        got = call_op("aten::index.Tensor", [base.numpy(), indices])
        np.testing.assert_array_equal(got, wanted.numpy())
        if wanted.numel():
            assert steps(got.shape, got.strides, 4) == steps(wanted.shape, wanted.stride(), 1), seed
        compared += 1
    assert compared > 1500
