"""Promotion under vmap is that of one place of the batch: of a tensor without dimensions there, which counts less than one with dimensions,
the batch has one more dimension."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops import OPS
from irtool.ops.call import overload

torch = irtool.torch
NUMBERS = {"b": [True, False], "u": [200, 3], "i": [-1, 3], "f": [-1.5, 300.7], "c": [-1.5 + 2j, 0.3]}
"""By kind of dtype; 300.7 is rounded where it is converted to float16."""
DTYPES = ["bool", "uint8", "int64", "float16", "float32", "complex64"]


def is_binary(name: str) -> bool:
    """Is it an overload that promotes two tensors, and needs no more arguments?"""
    found = overload(name)
    tensors = [each for each in found.schema.arguments if each.type.text == "Tensor"]
    needed = [each for each in found.schema.arguments if each.default is None and each.type.text != "Tensor"]
    return found.mode == "plain" and len(tensors) == 2 and not needed


BINARY = sorted(name for name, op in OPS.items() if name.startswith("aten::") and op.promote is not None and is_binary(name))


@pytest.mark.parametrize("name", BINARY)
def test_as_in_a_loop(name: str) -> None:
    kind = name.removeprefix("aten::").partition(".")[0]
    function: Callable[..., Any] = getattr(torch.ops.aten, kind)
    for first, second in product(DTYPES, repeat=2):
        x, y = (np.array(NUMBERS[np.dtype(each).kind], each) for each in (first, second))
        rows, numbers = torch.tensor(np.stack([x, x[::-1]])), torch.tensor(y)
        for call in (function, lambda a, b: function(b, a)):
            try:
                want = np.stack([np.asarray(call(rows[place], numbers[place])) for place in range(2)])
            except irtool.Error:
                continue
            got = np.asarray(irtool.vmap(call)(rows, numbers))
            assert got.dtype == want.dtype, (first, second)
            np.testing.assert_allclose(got, want, 1e-3 if want.dtype == np.float16 else 1e-6, err_msg=f"{first} {second}")
