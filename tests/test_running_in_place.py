"""Running sums and products in place are computed in the dtype of the tensor, on every layer as on arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch


def outcome(call: Callable[[], Any]) -> tuple[Any, Any]:
    """Dtype and elements, or that the call is refused, and why."""
    try:
        result = call()
    except irtool.Error as error:
        return "error", error.message
    return result.dtype, np.asarray(result).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 2), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
def test_every_layer_computes_in_the_dtype_of_the_tensor(name: str, shape: tuple[int, ...], dtype: str) -> None:
    def run(x: Any) -> Any:
        y = x.clone()
        getattr(y, name)(-1)
        return y
    batch = np.full((2, *shape), 100).astype(dtype)
    rows = [torch.tensor(row) for row in batch]
    want = outcome(lambda: torch.stack([run(row) for row in rows]))
    assert want[0] == ("error" if dtype == "bool" and shape and 0 not in shape else rows[0].dtype)
    ways: dict[str, Callable[[], Any]] = {
        "vmap": lambda: irtool.vmap(run)(torch.tensor(batch)),
        "jit": lambda: torch.stack([irtool.jit(run)(row) for row in rows]),
        "trace": lambda: torch.stack([torch.tensor(irtool.run(irtool.trace(run, [row]), [row])[0]) for row in rows]),
        "jit of vmap": lambda: irtool.jit(irtool.vmap(run))(torch.tensor(batch)),
    }
    for way, call in ways.items():
        got = outcome(call)
        assert got[0] == want[0] and (got[0] == "error" or got == want), way
