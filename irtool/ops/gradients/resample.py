"""Gradients of resizing: the backward operator of the same mode; and of that, resizing again."""
from __future__ import annotations

from irtool.ops.derivative import rule_of
from irtool.ops.kernels.resample import table
from irtool.ops.tensor import torch

SCALES = {"1": ["scales"], "2": ["scales_h", "scales_w"], "3": ["scales_d", "scales_h", "scales_w"]}
MODES = ("upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
         "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
         "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa").split()


def factor(scale_factors: list[float] | None, place: int) -> float | None:
    """The scale of one dimension, if scales were asked for."""
    scale = scale_factors[place] if scale_factors is not None else None
    return scale


for mode in MODES:
    names = next(names for count, names in SCALES.items() if f"{count}d" in mode)
    corners = [] if "nearest" in mode else ["align_corners"]
    rest = ", ".join([*corners, *names])
    factors = ", ".join([*corners, *[f"factor(scale_factors, {place})" for place in range(len(names))]])
    rules = {f"aten::{mode}": f"grad, output_size, {rest}, self_size: torch.{mode}_backward(grad, output_size, self_size, {rest})",
             f"{mode}.vec": f"{', '.join(['grad', *corners, 'scale_factors', 'input_size'])}: "
                            f"torch.{mode}_backward(grad, grad.size()[2:], input_size, {factors})",
             f"{mode}_backward": f"grad, output_size, {rest}: torch.{mode}(grad, output_size, {rest})"}
    for name, rule in rules.items():
        table.derivative(name, rule_of(f"lambda {rule}", {"torch": torch, "factor": factor}))
