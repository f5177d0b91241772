"""Operators that look at the memory around a tensor see in plans what they see in the interpreter: the tensor's own, not the arena."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

BODIES = {
    "result": "y = x.neg().exp()",
    "view": "y = (x * 2)[1:]",
    "written over": "y = (x + 1).tanh() * x",
    "copy": "y = (x * 2)[1:].clone()",
    "branch": "y = x.neg()\n    if n > 0:\n        y = x.exp() * 2",
    "carried": "y = x.neg()\n    for i in range(n):\n        y = y * 2 + x",
    "in a loop": "y = x.neg()\n    z = y\n    for i in range(n):\n        z = y.exp() + i\n        y = z.as_strided([2], [1], 0).sum() + x",
    "list": "l: List[Tensor] = []\n    for i in range(n):\n        l.append(x * i)\n    y = l[n - 1]",
    "softmax": "y = torch.softmax(x * 2, 0)",
}
READERS = {
    "from the start": "y.as_strided([2, 1], [1, 1], 0) * 2",
    "from there": "y.as_strided([2], [1]).exp()",
    "offset": "torch.ones([]) * y.storage_offset()",
}


@pytest.mark.parametrize("size", [4, 2000])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("body", BODIES)
def test_a_plan_gives_what_the_interpreter_gives(body: str, reader: str, size: int) -> None:
    source = f"def f(x, n: int):\n    {BODIES[body]}\n    r = {READERS[reader]}\n    return r, (x.cos() + 1).sum()\n"
    module, x = irtool.from_script(source), np.linspace(0.1, 1, size)
    (wanted,) = irtool.run(module, [x, 3], interpret=True)
    executor = irtool.compile(module)
    for _ in range(3):
        for got, each in zip(executor(x, 3)[0], wanted, strict=True):
            np.testing.assert_array_equal(got, each)
