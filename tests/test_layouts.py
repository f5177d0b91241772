"""What is known of arrays that are not there: views of other shapes."""
from __future__ import annotations

import math
import random

import numpy as np
import pytest

import irtool
from irtool.ops.symbols.array_layout import Meta, meta_of, reshaped
from tests.laws import over, seeds, ten


def cut(count: int, choose: random.Random) -> tuple[int, ...]:
    """A shape of so many elements."""
    found = []
    while count > 1:
        factor = choose.choice([each for each in (2, 3, 4, 6, count) if count % each == 0])
        found.append(factor)
        count //= factor
    for _ in range(choose.randrange(3)):
        found.insert(choose.randrange(len(found) + 1), 1)
    return tuple(found)


@over("seed", seeds(300), ten)
def test_views_of_other_shapes_have_the_strides_of_numpy(seed: int) -> None:
    choose = random.Random(seed)
    shape = cut(choose.choice([1, 12, 24, 36]), choose)
    base = np.zeros([extent + choose.randrange(2) * choose.randrange(2) for extent in shape], np.float32)
    x = base[(*[slice(None, extent) for extent in shape], ...)]
    if choose.randrange(2):
        x = x.transpose(choose.sample(range(x.ndim), x.ndim))
    if choose.randrange(4) == 0 and x.ndim:
        x = np.flip(x, choose.randrange(x.ndim))
    if choose.randrange(4) == 0:
        x = np.broadcast_to(x, (2, *x.shape))
    wanted = cut(math.prod(x.shape), choose)
    found, view = reshaped(meta_of(x), wanted), x.reshape(wanted)
    if not np.shares_memory(view, x):
        assert found is None
    else:
        assert found == meta_of(view)


def test_nothing_is_read() -> None:
    """Nor as much memory taken: NumPy makes the copy before it refuses."""
    size = 10**6
    assert reshaped(Meta(np.dtype(np.float32), (size, size), (4, 4 * size)), (size * size,)) is None


EXPANDED = ("x[0].expand(3, -1)", "x.unbind(0)[0].expand(3, -1)", "x[:, 1:2].expand(8, 4)", "x[0, 0].expand(2, 3)")


@pytest.mark.parametrize("turned", ["swapaxes_(0, 1)", "t_()", "unsqueeze_(0)", "transpose_(0, -1)"])
@pytest.mark.parametrize("expanded", EXPANDED)
def test_expanded_tensors_take_another_shape_in_place(expanded: str, turned: str) -> None:
    out_of_place = turned.replace("_(", "(")
    made, same = (irtool.from_script(f"def f(x):\n    v = {expanded}\n{body}") for body in (
        f"    v.{turned}\n    return v\n", f"    return v.{out_of_place}\n"))
    x = np.arange(64.0).reshape(8, 8)
    (want,) = irtool.run(same, [x], interpret=True)
    for found in (irtool.run(made, [x], interpret=True), irtool.run(made, [x]), irtool.run(made, [x])):
        np.testing.assert_array_equal(found[0], want, strict=True)
        assert found[0].strides == want.strides
