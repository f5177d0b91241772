"""Gradients of splitting a weight into its length and its direction."""
from __future__ import annotations

from irtool.ops.kernels.joining import table
from irtool.ops.tensor import Tensor, torch


def weight_norm_back(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of v * (g / norms) for v and g, the norms being those of v."""
    along = (grad * v).sum_to_size(norms.size())
    for_v = (grad - v * (along / (norms * norms))) * (g / norms)
    return for_v, (along / norms).sum_to_size(g.size())


table.derivative("_weight_norm", lambda grad, v, g, dim: weight_norm_back(grad, v, g, torch.norm_except_dim(v, 2, dim)))
table.derivative("_weight_norm_interface", lambda grad, v, g, dim: weight_norm_back(grad, v, g, torch.norm_except_dim(v, 2, dim)))


@table.derivative("norm_except_dim")
def norm_except_dim_gradient(grad, v, pow, result):
    if pow == 2:
        slope = v / result
    elif pow == 1:
        slope = v.sgn()
    else:
        slope = v.sgn() * (v.abs() / result).pow(pow - 1)
    return (grad * slope).masked_fill(result == 0, 0)
