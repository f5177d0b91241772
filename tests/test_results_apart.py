"""Results that the program computes apart share no memory, whatever passes leave out: a caller may write into one of them."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import irtool

SAME = ("y", "y * 1", "y / 1", "y - 0", "x * 2", "torch.clone(y)")
FORMS = ("[{}, {}]", "({}, {})", "({}, [{}])", '{{"a": {}, "b": {}}}', "[[{}], [{}]]")
WAYS = ("run", "compile", "peephole", "cse,peephole", "peephole,cse", "O1", "O2", "inference")


def arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays of a nested value."""
    if isinstance(value, np.ndarray):
        yield value
    else:
        for each in value.values() if isinstance(value, dict) else value:
            yield from arrays(each)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_results_computed_apart_are_apart(way: str, form: str) -> None:
    x = np.ones(3, np.float32)
    for one, two in combinations_with_replacement(SAME, 2):
        if one == two == "y":
            continue
        result = form.format(one, two)
        module = irtool.from_script(f"def f(x):\n    y = x * 2\n    return {result}\n")
        module.graph().inputs[0].type = irtool.parse("graph(%x : Float(3)):\n  return (%x)\n").graph().inputs[0].type
        if way not in ("run", "compile"):
            irtool.PassManager(f"propagate-shapes,{way}").run(module)
        run = irtool.compile(module) if way == "compile" else lambda x, module=module: irtool.run(module, [x])
        for _ in range(3):
            first, second = arrays(run(x))
            first += 1
            assert second.tolist() == [2, 2, 2], (one, two)
