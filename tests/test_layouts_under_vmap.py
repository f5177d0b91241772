"""What a function asks under vmap of how a tensor lies in memory: the answer is that of one place of the batch, as in a loop."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

ASKED = ["a.is_contiguous()", "a.is_contiguous(memory_format=torch.channels_last)",
         "torch.ops.aten.is_non_overlapping_and_dense(a)", "a.stride()[1:]"]
DATA = np.arange(96.0).reshape(2, 2, 4, 6)
BATCHES = {"rows": DATA.reshape(2, 1, 2, 4, 6), "channels last": DATA.reshape(2, 1, 4, 6, 2).transpose(0, 1, 4, 2, 3),
           "turned": DATA.reshape(2, 1, 2, 6, 4).swapaxes(-1, -2), "with gaps": DATA.reshape(2, 1, 2, 4, 6)[..., ::2],
           "repeated": np.broadcast_to(DATA.reshape(2, 1, 2, 4, 6)[:1], (2, 1, 2, 4, 6)), "batch last": np.moveaxis(DATA[None], 1, 0)}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", BATCHES)
def test_as_in_a_loop(name: str, asked: str) -> None:
    torch = irtool.torch

    def answer(a: Any) -> Any:
        return a.sum() * 0 + torch.tensor(eval(asked, {"a": a, "torch": torch}))      # noqa: S307  the texts above

    want = [np.asarray(answer(torch.as_tensor(each))).tolist() for each in BATCHES[name]]
    assert np.asarray(irtool.vmap(answer)(BATCHES[name])).tolist() == want
