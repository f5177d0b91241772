"""Negative paddings that leave nothing of one dimension: torch's kernels of two and three dimensions refuse only if nothing is left of any.

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
