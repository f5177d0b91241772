"""Paddings. Negative ones that leave nothing of one dimension: torch's kernels of two and three dimensions refuse only if nothing is left
of any.

The sizes are those that torch 2.13 gives; None: it refuses.
"""
from __future__ import annotations

import numpy as np
import pytest

import irtool

SIZES = {
    ("reflection_pad1d", (2, 4), (-2, -2)): None,
    ("replication_pad1d", (2, 4), (-5, 1)): None,
    ("reflection_pad2d", (2, 2, 4), (-4, 0, 0, 0)): (2, 2, 0),
    ("reflection_pad2d", (2, 2, 4), (-5, 0, 0, 0)): None,
    ("replication_pad2d", (1, 2, 2, 1), (0, -1, 0, 2)): (1, 2, 4, 0),
    ("replication_pad2d", (2, 2, 4), (-2, -2, -1, -1)): None,
    ("reflection_pad3d", (1, 2, 4, 4), (1, 0, -1, 2, -1, -1)): (1, 0, 5, 5),
    ("replication_pad3d", (2, 1, 2, 3), (2, 2, 2, -3, -2, 1)): (2, 0, 1, 7),
}


@pytest.mark.parametrize(("kind", "sizes", "pad"), SIZES)
def test_sizes(kind: str, sizes: tuple[int, ...], pad: tuple[int, ...]) -> None:
    graph = irtool.parse(f"graph(%x : Tensor):\n  %0 : int[] = prim::Constant[value={list(pad)}]()\n"
                         f"  %1 : Tensor = aten::{kind}(%x, %0)\n  return (%1)\n")
    x, expected = np.ones(sizes), SIZES[kind, sizes, pad]
    run = irtool.compile(graph)
    if expected is None:
        for call in (lambda: irtool.run(graph, [x]), lambda: run(x)):
            with pytest.raises(irtool.Error, match="is too small|negative dimension"):
                call()
        return
    for _ in range(2):
        assert irtool.run(graph, [x])[0].shape == run(x)[0].shape == expected
    np.testing.assert_array_equal(irtool.vjp(graph, [x], [np.ones(expected)], [0])[0], np.zeros(sizes))
    torch = irtool.torch
    batch = irtool.vmap(lambda each: getattr(torch.ops.aten, kind)(each, list(pad)))(torch.tensor(np.stack([x, x])))
    assert tuple(batch.shape) == (2, *expected)


@pytest.mark.parametrize("other", [(1, 1), (3, 1), (3,), (4, 3)])
@pytest.mark.parametrize("side", ["left", "right"])
def test_sequences_repeat_along_the_rest(other: tuple[int, ...], side: str) -> None:
    """pad_sequence copies each sequence into its place, which has the sizes of the first: values, gradients, vmap."""
    torch = irtool.torch
    x, y = np.arange(6.0).reshape(2, 3), np.arange(float(np.prod(other))).reshape(other) + 7.0

    def padded(x, y):
        return torch.ops.aten.pad_sequence([x, y], True, 0.5, side)

    longest, rows = max(2, len(y)), np.broadcast_to(y, (len(y), 3))
    expected = np.full((2, longest, 3), 0.5)
    for place, part in enumerate((x, rows)):
        expected[place, longest - len(part) if side == "left" else 0:][:len(part)] = part
    np.testing.assert_array_equal(padded(torch.tensor(x), torch.tensor(y)).array, expected)
    slope = irtool.grad(lambda y: padded(torch.tensor(x), y).sum())(torch.tensor(y))
    np.testing.assert_array_equal(slope.array, np.full(other, rows.size / y.size))
    batch = irtool.vmap(padded, in_dims=(None, 0))(torch.tensor(x), torch.tensor(np.stack([y, y])))
    np.testing.assert_array_equal(batch.array, [expected, expected])


@pytest.mark.parametrize("borders", [[0, 0, 0, 0], [0, 0], [1, 0, 0, 2], [-1, 0, 1, 1]])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 1, 0), (1, 0, 2)])
def test_plans_know_how_paddings_lie_in_memory(order: tuple[int, ...], borders: list[int]) -> None:
    source = "def f(x: Tensor, pad: List[int]):\n    y = torch.sin(x)\n    return torch.constant_pad_nd(y, pad) * 2\n"
    graph = irtool.from_script(source, "f")
    x = np.arange(24.0).reshape(2, 3, 4).transpose(order)
    (want,) = irtool.run(graph, [x, borders], interpret=True)
    executor = irtool.compile(graph)
    for _ in range(3):
        (got,) = executor(x, borders)
        np.testing.assert_array_equal(got, want)
        assert got.strides == want.strides
