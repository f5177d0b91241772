"""An operator that has no gradient refuses only who asks for it: where no cotangent comes, the gradients of the others are given, as in
torch."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import grad, jvp, vjp
from irtool.torchscript.front import compile_source

Y, W = np.array([[2., 1.], [1., 3.]]), np.array([3., 4.])
CALLS = ["torch.unique(y)", "torch.unique(y, dim=0)", "torch.unique_consecutive(y)", "torch.geqrf(y)[0]", "torch.linalg.ldl_factor(y)[0]"]


@pytest.mark.parametrize("call", CALLS)
def test_it_is_refused_only_if_asked_for(call: str) -> None:
    text = f"def f(y, w):\n    u = {call}\n    return w * w + y.sum(), u\n"
    graph = compile_source(text)
    made: dict[str, Any] = {"torch": torch}
    exec(text, made)
    _, u = made["f"](torch.tensor(Y), torch.tensor(W))
    back = vjp(made["f"], Y, W)[1]
    for options in ({}, {"interpret": True}):
        y, w = irtool.vjp(graph, [Y, W], [(np.ones(2), None)], [0, 1], **options)
        np.testing.assert_allclose(y, np.full((2, 2), 2.))
        np.testing.assert_allclose(w, 2 * W)
        with pytest.raises(irtool.UnsupportedError, match="gradient of aten::"):
            irtool.vjp(graph, [Y, W], [(np.ones(2), np.ones(u.shape))], [0, 1], **options)
    for _ in range(2):
        np.testing.assert_allclose(irtool.compile(graph).vjp([Y, W], [(np.ones(2), None)], [1])[0], 2 * W)
    np.testing.assert_allclose(np.asarray(back((torch.tensor(np.ones(2)), None))[1]), 2 * W)
    np.testing.assert_allclose(np.asarray(grad(lambda w: made["f"](torch.tensor(Y), w)[0].sum())(W)), 2 * W)
    with pytest.raises(irtool.UnsupportedError, match="gradient of aten::"):
        back((torch.tensor(np.ones(2)), torch.tensor(np.ones(u.shape))))
    with pytest.raises(irtool.UnsupportedError, match="gradient of aten::"):        # torch has no forward mode for it either
        jvp(lambda y: made["f"](y, torch.tensor(W))[0], (Y,), (Y,))
