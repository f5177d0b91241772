"""Results of loops in C whose shape changes in place: what reads them reads the new shape."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

MADE = {
    "layer_norm": "F.layer_norm(x, x.size()[-1:])", "group_norm": "F.group_norm(x, 2)", "conv1d": "F.conv1d(x, w)",
    "conv_transpose1d": "F.conv_transpose1d(x, w)", "conv2d": "F.conv2d(x[None], w[None])",
    "conv3d": "F.conv3d(x[None, None], w[None, None])",
    "max_pool1d": "F.max_pool1d(x, 2)", "avg_pool2d": "F.avg_pool2d(x, 2)", "max_pool3d": "F.max_pool3d(x[None], 1)",
    "sums": "torch.sin(x + 0.1) * torch.cos(x)", "products": "torch.matmul(x, w)", "softmax": "F.softmax(x, -1)",
}
"""Makers of tensors of x and w, both of shape (2, 2, 2), by all kinds of loops in C, and by others."""
CHANGES = ("unsqueeze_(-1)", "unsqueeze_(0)", "t_()", "transpose_(-1, -2)", "swapaxes_(0, 1)", "squeeze_()")
WAYS = ({}, {"native": True}, {"native": True, "threads": 2})


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("made", MADE)
def test_readers_see_the_new_shape(made: str, change: str) -> None:
    """Beside a write, which keeps the change of shape out of a graph of its own."""
    source = (f"def f(x, w):\n    a = torch.exp(x)\n    v = {MADE[made].replace('(x', '(a', 1)}\n    v.{change}\n    a.chunk(2)[0].neg_()\n"
              "    return v * 0.5, v.size(), (v * v).sum() + (a * 0.5).sum()\n")
    module = irtool.from_script(source)
    x = np.linspace(-1, 2, 8).reshape(2, 2, 2)
    try:
        (want,) = irtool.run(module, [x, x + 1], interpret=True)
    except irtool.Error:
        assert change == "t_()"         # of more than two dimensions
        return
    seeds = [want[0], want[2]]
    wanted = [*seeds, *irtool.vjp(module, [x, x + 1], seeds, [0, 1], interpret=True)]
    for options in WAYS:
        executor = irtool.compile(irtool.from_script(source), **options)
        for _ in range(3):
            (got,) = executor(x, x + 1)
            assert got[1] == want[1]
            for one, other in zip([got[0], got[2], *executor.vjp([x, x + 1], seeds, [0, 1])], wanted, strict=True):
                assert (one is None) == (other is None) and np.shape(one) == np.shape(other), options
                if one is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=str(options))
