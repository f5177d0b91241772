"""A tensor that is written after it was put into a list or dict: the container has the new elements, and their gradients."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

PUT = {
    "append": "g.append(y)", "insert": "g.insert(0, y)", "setitem": "g[0] = y", "extend": "g.extend([y])", "add": "g += [y]",
    "branch": "if n > 0:\n        g.append(y)", "loop": "for i in range(n):\n        y.mul_(2)\n        g.append(y)",
    "dict": "d['a'] = y", "setdefault": "d.setdefault('b', y)", "update": "d.update({'b': y})",
}


@pytest.mark.parametrize("tensor", ["x * 1", "x"])
@pytest.mark.parametrize("put", PUT)
def test_every_way_gives_the_gradient_of_the_new_elements(put: str, tensor: str) -> None:
    module = irtool.from_script(f"def f(x, g: List[Tensor], d: Dict[str, Tensor], n: int):\n    y = {tensor}\n    {PUT[put]}\n"
                                "    y.mul_(3)\n    return g, d\n")
    values = [np.array([1.0, 2.0]), [np.ones(2)], {"k": np.ones(2)}, 2]
    results = irtool.run(module, values, interpret=True)
    ones = [np.ones(2) for each in (*results[0][0], *results[0][1].values()) if each.size]
    wanted = irtool.vjp(module, values, ones, [0], interpret=True)[0]
    assert wanted[0] == (24 if put == "loop" else 3)
    executor = irtool.compile(module)
    groups = irtool.compile(module, autodiff_threshold=1, inline_threshold=1)
    for _ in range(2):
        for got in (executor.vjp(values, ones, [0]), executor.record(values, [0]).backward(ones), groups.vjp(values, ones, [0])):
            np.testing.assert_array_equal(got[0], wanted)
