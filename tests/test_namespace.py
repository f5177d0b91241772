"""irtool.torch: what is written for torch runs as Python on tensors as it does as TorchScript, and so do its gradients."""
from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.random.default_rng(0).standard_normal((4, 6))
TARGET = np.array([0, 2, 1, 5])

EXPRESSIONS = """
F.softmax(x, dim=1)
F.log_softmax(x, dim=-1)
F.cross_entropy(x, target)
F.cross_entropy(x, target, reduction="sum", label_smoothing=0.1)
F.nll_loss(F.log_softmax(x, 1), target, reduction="none")
F.mse_loss(x, x * 0.5 + 1.0)
F.smooth_l1_loss(x, x * 0.5 + 1.0)
F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(x) * 0.5)
F.kl_div(F.log_softmax(x, 1), F.softmax(x * 2.0, 1), reduction="batchmean")
F.gelu(x, approximate="tanh")
F.leaky_relu(x, 0.1)
F.softplus(x)
F.layer_norm(x, [6], x[0], x[1])
F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True)
F.linear(x, x[:3], x[0, :3])
F.conv2d(x[None, None], x[:2, :2][None, None])
F.max_pool2d(x[None, None], 2)
F.adaptive_avg_pool2d(x[None, None], [2, 2])
F.pad(x, [1, 2])
F.unfold(x[None, None], [2, 2])
F.fold(F.unfold(x[None, None], [2, 2]), [4, 6], [2, 2])
F.normalize(x, dim=1)
F.dropout(x, 0.5, training=False)
F.scaled_dot_product_attention(x[None], x[None], x[None])
F.embedding(target.clamp(max=3), x)
F.triplet_margin_loss(x, x + 1.0, x * 2.0)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, 2, [1])
torch.linalg.svdvals(x)
torch.fft.rfft(x).abs()
torch.special.erf(x)
torch.special.gammaln(x.abs() + 1.0)
""".strip().splitlines()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_python_it_is_what_it_is_as_torchscript(text: str) -> None:
    graph = irtool.from_script("import torch.nn.functional as F\n"
                               f"def f(x: Tensor, target: Tensor) -> Tensor:\n    return {text}\n").graph()

    def f(x: Any) -> Any:
        return eval(text, {"x": x, "F": torch.nn.functional, "torch": torch, "target": irtool.Tensor(TARGET)})
    (wanted,) = irtool.run(graph, [X, TARGET])
    assert np.array_equal(np.asarray(f(irtool.Tensor(X))), wanted)
    cotangent = np.random.default_rng(1).standard_normal(wanted.shape)
    (slope,) = irtool.vjp(graph, [X, TARGET], [cotangent], [0])
    for transformed in (irtool.grad, lambda f: irtool.jit(irtool.grad(f))):
        found = transformed(lambda x: (f(x) * irtool.Tensor(cotangent)).sum())(X)
        np.testing.assert_allclose(np.asarray(found), slope, rtol=1e-9, atol=1e-12)


def test_interpolate() -> None:
    image = X[None, None]
    assert torch.nn.functional.interpolate(irtool.Tensor(image), scale_factor=2, mode="bilinear").shape == [1, 1, 8, 12]
    found = torch.nn.functional.interpolate(irtool.Tensor(image), size=(2, 3))
    assert np.array_equal(np.asarray(found)[0, 0], X[::2, ::2])
    with pytest.raises(irtool.RunError, match="mode is 'area'"):
        torch.nn.functional.interpolate(irtool.Tensor(image), size=2, mode="area")
    with pytest.raises(irtool.RunError, match="3 dimensions is not for mode bilinear"):
        torch.nn.functional.interpolate(irtool.Tensor(image[0]), size=2, mode="bilinear")


def test_copies() -> None:
    assert np.array_equal(np.asarray(copy(torch.linalg).det(irtool.Tensor(np.eye(2)))), 1)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="there is no operator aten::linalg_nonsense"):
        torch.linalg.nonsense(X)
    assert np.asarray(torch.tensor([1, 2], dtype=torch.float64)).dtype == np.float64
