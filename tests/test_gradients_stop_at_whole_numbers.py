"""No gradient passes what is written into a tensor of whole numbers or bools, or converted to such: what comes out is a constant."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

MAKE = {
    "copy_": "y = i.clone()\n    y.copy_(x)",
    "copy_ into a result": "y = i * 2\n    y.copy_(x)",
    "copy_ into bools": "y = x > 100\n    y.copy_(x)",
    "setitem": "y = torch.zeros([2, 2], dtype=torch.int64)\n    y[0] = x",
    "setitem of one": "y = torch.zeros([2, 2], dtype=torch.int64)\n    y[0, 0] = x[1]",
    "as_tensor": "y = torch.as_tensor(x, dtype=torch.int64)",
    "to": "y = x.to(torch.int64)",
    "type_as": "y = x.type_as(i)",
}


@pytest.mark.parametrize("make", MAKE)
def test_the_gradient_is_that_with_a_constant(make: str) -> None:
    module = irtool.from_script(f"def f(x, i):\n    {MAKE[make]}\n    return y * x\n")
    values = irtool.from_script(f"def f(x, i):\n    {MAKE[make]}\n    return y\n")
    x, i = np.array([1.5, 2.5]), np.array([1, 2])
    y = np.broadcast_to(irtool.run(values, [x, i])[0], irtool.run(module, [x, i])[0].shape)
    wanted = y.reshape(-1, 2).sum(0)
    executor = irtool.compile(module)
    for gradient in (irtool.vjp(module, [x, i], [np.ones(y.shape)], [0], interpret=True), executor.vjp([x, i], [np.ones(y.shape)], [0]),
                     executor.record([x, i], [0]).backward([np.ones(y.shape)])):
        np.testing.assert_array_equal(gradient[0], wanted)
