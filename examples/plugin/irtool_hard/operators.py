"""hard::swish(x) = x * clip(x + bound, 0, 2 * bound) / (2 * bound), with its gradient. Source: Howard et al., MobileNetV3, 2019."""
import numpy as np

import irtool
from irtool import Tensor, torch


@irtool.operator("hard::swish(Tensor x, float bound=3.) -> Tensor")
def swish(x, bound):
    """x times a piecewise linear sigmoid. Floating-point; the dtype stays."""
    return (x * np.clip(x + bound, 0, 2 * bound) / (2 * bound)).astype(x.dtype)


@swish.gradient
def swish_gradient(x: Tensor, bound: float):
    gate = torch.clamp(x + bound, 0., 2. * bound) / (2. * bound)

    def backward(grad: Tensor):
        inside = torch.logical_and(x > -bound, x < bound).type_as(x)
        return grad * (gate + x * inside / (2. * bound)), None

    return x * gate, backward


@swish.batching
def swish_of_a_batch(batch, x, bound):
    return batch.box(batch.same(batch.front(x), bound))      # (B, ...) -> (B, ...)


swish.facts(pointwise="keeps")
swish.sample(np.array([[-4.0, -1.5, 0.2], [0.7, 2.5, 5.0]]))
swish.sample(np.linspace(-0.9, 0.8, 4), bound=1.0)
