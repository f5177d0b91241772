"""`masked_scatter_` of elements of the tensor itself: torch gives what the order of writing gives, irtool refuses on every way to run."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

X = np.arange(6.0) - 1
WAYS: dict[str, Callable[[Any], Any]] = {
    "run": lambda f: irtool.run(f, [X])[0],
    "interpret": lambda f: irtool.run(f, [X], interpret=True)[0],
    "unoptimised": lambda f: irtool.compile(f, optimize=False)(X)[0],
    "vjp": lambda f: irtool.vjp(f, [X], [np.ones(6)], [0])[0],
    "layers": lambda f: irtool.torch.func.vjp(f, irtool.Tensor(X))[0].array,
}


def written(source: str) -> Any:
    """A program that writes what `source` is into a tensor, where that is positive."""
    return irtool.from_script(f"def f(x: Tensor):\n    a = x * 2\n    a.masked_scatter_(a > 0, {source})\n    return a\n", "f")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", ["a", "a[:]", "a.view(2, 3)", "a[::1].t()"])
def test_own_elements_are_refused(source: str, way: str) -> None:
    with pytest.raises(irtool.UnsupportedError, match="elements of the tensor itself"):
        WAYS[way](written(source))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "vjp"])
@pytest.mark.parametrize("source", ["a.clone()", "a + 0", "2 * x"])
def test_a_copy_is_written(source: str, way: str) -> None:
    np.testing.assert_array_equal(WAYS[way](written(source)), [-2, 0, -2, 0, 2, 4])
