"""Gradients in half precision of operands whose squares do not fit it: those of double precision, rounded."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

CALLS = """
F.rms_norm(x, [6])
F.rms_norm(x, [6], y[0])
F.layer_norm(x, [6], y[0], y[1])
F.group_norm(x.view(2, 2, 6), 2)
F.instance_norm(x.view(2, 2, 6))
F.instance_norm(x.view(2, 2, 6), weight=y[0, :2], bias=y[1, :2])
F.batch_norm(x, None, None, y[0], y[1], training=True)
F.cosine_similarity(x, y)
F.normalize(x, dim=1)
F.pairwise_distance(x, y)
F.gelu(x)
F.gelu(x, approximate="tanh")
x.std(1)
x.norm(dim=1)
torch.hypot(x, y)
""".strip().splitlines()


@pytest.mark.parametrize("scale", [300.0, 3000.0])
@pytest.mark.parametrize("call", CALLS)
def test_gradients_whose_squares_do_not_fit(call: str, scale: float) -> None:
    """What torch computes in single precision does not become 0 or nan."""
    torch, rng = irtool.torch, np.random.default_rng(3)
    x, y = (torch.tensor((rng.standard_normal((4, 6)) * scale).astype(np.float16)) for _ in range(2))
    function = eval(f"lambda x, y: {call}", {"torch": torch, "F": torch.nn.functional})
    weights = torch.tensor(rng.integers(1, 4, function(x, y).shape).astype(np.float64))

    def gradients(*operands: Any) -> Any:
        return irtool.grad(lambda x, y: (function(x, y).to(torch.float64) * weights).sum(), argnums=(0, 1))(*operands)

    for half, double in zip(gradients(x, y), gradients(x.double(), y.double())):
        assert np.asarray(half).dtype == np.float16
        limit = 0.02 * np.abs(np.asarray(double)).max() + 1e-6
        np.testing.assert_allclose(np.asarray(half).astype(np.float64), np.asarray(double), rtol=0.05, atol=limit)
