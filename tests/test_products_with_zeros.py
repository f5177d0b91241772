"""The second gradient of a product under vmap, some of whose places have factors that are 0, and others not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irtool import torch

func = torch.func
ROWS = [[0.5, 0.0, 2.0], [1.5, 1.0, 3.0], [0.0, 0.0, 2.0]]


@pytest.mark.parametrize("call", [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.prod(0, keepdim=True).sum()])
@pytest.mark.parametrize("rows", [ROWS[:1], ROWS[1:2], ROWS[2:], ROWS])
def test_each_place_is_as_alone(call: Any, rows: Any) -> None:
    xs, scale = np.array(rows), np.array([1.0, 2.0, -1.0])
    slopes = func.jacrev(lambda k: func.vmap(func.grad(lambda x: call(x * k)))(xs))(scale)
    alone = [func.jacrev(lambda k, x=x: func.grad(lambda x: call(x * k))(x))(scale) for x in xs]
    np.testing.assert_allclose(np.asarray(slopes), np.stack([np.asarray(each) for each in alone]), 1e-12)
