"""Tangents where a spread or a norm is 0: those of torch, no nan of a quotient that a formula chose not to take."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

CALLS = """
torch.std(x); torch.std(x, False); torch.std(x, 0); torch.std_mean(x, 1)[0]; torch.var(x); torch.norm(x); torch.norm(x, 3)
torch.norm(x, 1.5)
torch.norm(x, 0.5); torch.norm(x, float("inf")); torch.norm(x, 2, 1); torch.linalg.vector_norm(x, 3.0, 1); torch.linalg.matrix_norm(x)
torch.dist(x, x * 1); torch.dist(x, x * 1, 3); F.pairwise_distance(x, x * 1, eps=0.0); F.cosine_similarity(x, x); F.normalize(x)
torch.renorm(x, 2, 0, 1.0); torch.prod(x); torch.cumprod(x, 0); torch.xlogy(x, x); torch.hypot(x, x); torch.special.entr(x)
F.triplet_margin_loss(x, x * 1, x * 2); F.layer_norm(x, [2]); F.group_norm(x[None], 1); torch.logaddexp(x, x); torch.sinc(x)
""".strip().replace("\n", "; ").split("; ")


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_tangents_are_torchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    for x in np.zeros((2, 2)), np.ones((2, 2)), np.eye(2):
        tangents = np.array([[0.5, 1.0], [2.0, 3.0]])
        found: list[Any] = []
        for library, make, jvp in ((irtool.torch, irtool.Tensor, irtool.jvp), (torch, torch.tensor, torch.func.jvp)):
            space = {"torch": library, "F": library.nn.functional}
            function = eval(f"lambda x: {call}", space)     # of the table
            found.append([np.asarray(each) for each in jvp(function, (make(x),), (make(tangents),))])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-6, 1e-9)
