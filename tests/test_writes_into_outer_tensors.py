"""Writes into tensors from outside a function that is jitted or traced, by themselves and through views: refused, not repeated wrongly."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch as T

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda c: c, "slice": lambda c: c[1:], "transposed": lambda c: c.t(), "detached": lambda c: c.detach(),
    "data": lambda c: c.data, "view of a view": lambda c: c[1:].view(-1)[:1], "item": lambda c: c[0], "chunk": lambda c: c.chunk(2)[0],
    "expanded": lambda c: c[:1].expand(1), "unsqueezed": lambda c: c.unsqueeze(0),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda v, x: v.add_(x.sum()), "copy_": lambda v, x: v.copy_(x[0]), "item": lambda v, x: v.__setitem__(..., x[0]),
    "mul_": lambda v, x: v.mul_(x[0]), "normal_": lambda v, x: v.normal_(), "fill_": lambda v, x: v.fill_(x[0]),
}


def function(view: Any, write: Any, outer: Any) -> Any:
    return lambda x: (write(view(outer), x), x + outer)[1]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_refused(view: str, write: str) -> None:
    outer = T.zeros(2)
    f = function(VIEWS[view], WRITES[write], outer)
    with pytest.raises(irtool.UnsupportedError, match="writes into a tensor that is no argument"):
        irtool.jit(f)(T.ones(2))
    with pytest.raises(irtool.UnsupportedError, match="writes into a tensor from outside"):
        irtool.trace(f, [np.ones(2)])
    assert not outer.array.any()


@pytest.mark.parametrize("view", VIEWS)
def test_of_numbers_alone(view: str) -> None:
    """A trace runs such a write once, as Python does other things; jit, which promises what eager gives, refuses it."""
    outer = T.zeros(2)

    def f(x: Any) -> Any:
        VIEWS[view](outer).add_(1.0)
        return x + outer
    with pytest.raises(irtool.UnsupportedError, match="writes into a tensor that is no argument"):
        irtool.jit(f)(T.ones(2))
    assert not outer.array.any()
    graph = irtool.trace(f, [np.ones(2)])
    assert outer.array.any()
    np.testing.assert_array_equal(irtool.run(graph, [np.ones(2)])[0], 1 + outer.array)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", sorted(WRITES.keys() - {"normal_"}))
def test_arguments_and_tensors_made_inside_are_written_into(view: str, write: str) -> None:
    """Also an argument that is the same tensor as one from outside, which the function reads."""
    outer = T.zeros(2)
    for f in (lambda x, c: (WRITES[write](VIEWS[view](c), x), x + c)[1],
              lambda x, c: (made := c * 1, WRITES[write](VIEWS[view](made), x), x + made)[2],
              lambda x, c: (x + outer, WRITES[write](VIEWS[view](c), x), x + c)[2]):
        jitted = irtool.jit(f)
        for _ in range(3):
            outer.zero_()
            wanted, after = np.array(f(T.ones(2), outer).array), np.array(outer.array)
            outer.zero_()
            np.testing.assert_array_equal(jitted(T.ones(2), outer).array, wanted)
            np.testing.assert_array_equal(outer.array, after)
