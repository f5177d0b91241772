"""`index`, `count` and `remove` of a list of tensors compare by value, as torch does: with one element each, in whatever dimensions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_identity import ways

import irtool

ONE, FLAT, TWO, NONE = np.array(1.0), np.ones(1), np.ones(2), np.ones(0)


@pytest.mark.parametrize("held, item, place", [([ONE], FLAT, 0), ([FLAT * 2, FLAT], ONE, 1), ([np.ones(1, np.int64)], FLAT, 0),
                                               ([FLAT, TWO], FLAT, 0)])
def test_equal_values(held: list[Any], item: Any, place: int) -> None:
    for way in ways("def f(a: List[Tensor], t: Tensor):\n    i = a.index(t)\n    a.remove(t)\n    return i, len(a)\n").values():
        assert way([list(held), item]) == [(place, len(held) - 1)]


@pytest.mark.parametrize("held, item, message", [
    ([TWO], TWO, "Boolean value of Tensor with more than one value is ambiguous"), ([NONE], NONE, "with no values is ambiguous"),
    ([FLAT], TWO, "more than one value"), ([FLAT * 2, TWO], FLAT, "more than one value"),
    ([np.ones(3)], TWO, r"The size of tensor a \(2\) must match the size of tensor b \(3\)")])
@pytest.mark.parametrize("call", ["index", "count", "remove"])
def test_more_elements_are_refused(call: str, held: list[Any], item: Any, message: str) -> None:
    for way in ways(f"def f(a: List[Tensor], t: Tensor):\n    return a.{call}(t)\n").values():
        with pytest.raises(irtool.RunError, match=message):
            way([list(held), item])
