"""Operators of tensors of different dtypes, some without dimensions: dtypes and numbers are torch's, also where a step overflows.

torch computes steps of some operators in the dtype of one operand, which is narrower than that of all of them.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

DTYPES = ("float16", "float32", "float64", "int64", "complex64")
NUMBERS = [12.5, -30.0, 3.25]
"""2 ** 30 and exp(30) are infinite in float16."""
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "addr": lambda torch, x, y: torch.addr(x, y.reshape(-1), y.reshape(-1)),
    "addcmul": lambda torch, x, y: torch.addcmul(x, y, y),
    "copysign": lambda torch, x, y: torch.copysign(x, y),
    "fmod": lambda torch, x, y: torch.fmod(x, y),
    "gradient": lambda torch, x, y: torch.gradient(x.reshape(-1), spacing=(y.reshape(-1),))[0],
    "gradient of the second order": lambda torch, x, y: torch.gradient(x.reshape(-1), spacing=(torch.real(y).reshape(-1),),
                                                                       edge_order=2)[0],
    "hypot": lambda torch, x, y: torch.hypot(x, y),
    "ldexp": lambda torch, x, y: torch.ldexp(x, y),
    "logaddexp": lambda torch, x, y: torch.logaddexp(x, y),
    "mul": lambda torch, x, y: torch.mul(x, y),
    "soft_margin_loss": lambda torch, x, y: torch.ops.aten.soft_margin_loss(x, -y, 0),
    "soft_margin_loss, its mean": lambda torch, x, y: torch.ops.aten.soft_margin_loss(x, -y, 1),
    "soft_margin_loss_backward": lambda torch, x, y: torch.ops.aten.soft_margin_loss_backward(torch.ones_like(x), x, -y, 1),
    "where": lambda torch, x, y: torch.where(torch.real(x) > 0, x, y),
    "xlogy": lambda torch, x, y: torch.xlogy(x, torch.abs(y)),
}
TOLERANCES = {"float16": 4e-3, "float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "complex128": 1e-10}


def computed(library: Any, name: str, arrays: list[np.ndarray]) -> np.ndarray | None:
    """The result of a call; None where it is refused."""
    try:
        return np.asarray(CALLS[name](library, *map(library.from_numpy, arrays)))
    except (irtool.Error, RuntimeError, IndexError, TypeError):     # a TypeError: torch makes no array of complex32
        return None


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_each_pair_of_dtypes_gives_the_result_of_torch(name: str) -> None:
    import torch

    for first, second, size, other_size in itertools.product(DTYPES, DTYPES, (None, 3), (None, 3)):
        x, y = (np.array(NUMBERS if length else NUMBERS[0]) for length in (size, other_size))
        arrays = [x.astype(first), y.astype(second)]
        expected, found = computed(torch, name, arrays), computed(irtool.torch, name, arrays)
        if expected is None:
            continue
        assert found is not None, (name, arrays)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (name, arrays)
        tolerance = TOLERANCES.get(expected.dtype.name, 0)
        assert np.allclose(found, expected, tolerance, tolerance, equal_nan=True), (name, arrays, found, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["bool", "byte", "char", "short", "int", "long", "half", "float", "double", "cfloat", "cdouble"])
def test_methods_that_convert_take_a_memory_format(name: str) -> None:
    import torch

    array = np.arange(24.0).reshape(1, 2, 3, 4)
    for layout in ("contiguous_format", "preserve_format", "channels_last"):
        expected, found = (getattr(library.from_numpy(array), name)(memory_format=getattr(library, layout))
                           for library in (torch, irtool.torch))
        assert (str(found.dtype), list(found.stride())) == (str(expected.dtype), list(expected.stride()))
