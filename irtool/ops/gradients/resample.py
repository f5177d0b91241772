"""Gradients of resizing: the backward operator of the same mode; and of that, resizing again."""
from __future__ import annotations

from irtool.ops.kernels.resample import table
from irtool.ops.tensor import torch


@table.derivative("aten::upsample_nearest1d")
def upsample_nearest1d_gradient(grad, output_size, scales, self_size):
    for_self = torch.upsample_nearest1d_backward(grad, output_size, self_size, scales)
    return for_self


@table.derivative("upsample_nearest1d.vec")
def upsample_nearest1d_by_factor_gradient(grad, scale_factors, input_size):
    scales: float | None = None
    if scale_factors is not None:
        scales = scale_factors[0]
    for_input = torch.upsample_nearest1d_backward(grad, grad.size()[2:], input_size, scales)
    return for_input


@table.derivative("upsample_nearest1d_backward")
def upsample_nearest1d_backward_gradient(grad, output_size, scales):
    for_grad = torch.upsample_nearest1d(grad, output_size, scales)
    return for_grad


@table.derivative("aten::upsample_nearest2d")
def upsample_nearest2d_gradient(grad, output_size, scales_h, scales_w, self_size):
    for_self = torch.upsample_nearest2d_backward(grad, output_size, self_size, scales_h, scales_w)
    return for_self


@table.derivative("upsample_nearest2d.vec")
def upsample_nearest2d_by_factor_gradient(grad, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch.upsample_nearest2d_backward(grad, grad.size()[2:], input_size, scales_h, scales_w)
    return for_input


@table.derivative("upsample_nearest2d_backward")
def upsample_nearest2d_backward_gradient(grad, output_size, scales_h, scales_w):
    for_grad = torch.upsample_nearest2d(grad, output_size, scales_h, scales_w)
    return for_grad


@table.derivative("aten::upsample_nearest3d")
def upsample_nearest3d_gradient(grad, output_size, scales_d, scales_h, scales_w, self_size):
    for_self = torch.upsample_nearest3d_backward(grad, output_size, self_size, scales_d, scales_h, scales_w)
    return for_self


@table.derivative("upsample_nearest3d.vec")
def upsample_nearest3d_by_factor_gradient(grad, scale_factors, input_size):
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_d = scale_factors[0]
        scales_h = scale_factors[1]
        scales_w = scale_factors[2]
    for_input = torch.upsample_nearest3d_backward(grad, grad.size()[2:], input_size, scales_d, scales_h, scales_w)
    return for_input


@table.derivative("upsample_nearest3d_backward")
def upsample_nearest3d_backward_gradient(grad, output_size, scales_d, scales_h, scales_w):
    for_grad = torch.upsample_nearest3d(grad, output_size, scales_d, scales_h, scales_w)
    return for_grad


@table.derivative("aten::_upsample_nearest_exact1d")
def upsample_nearest_exact1d_gradient(grad, output_size, scales, self_size):
    for_self = torch._upsample_nearest_exact1d_backward(grad, output_size, self_size, scales)
    return for_self


@table.derivative("_upsample_nearest_exact1d.vec")
def upsample_nearest_exact1d_by_factor_gradient(grad, scale_factors, input_size):
    scales: float | None = None
    if scale_factors is not None:
        scales = scale_factors[0]
    for_input = torch._upsample_nearest_exact1d_backward(grad, grad.size()[2:], input_size, scales)
    return for_input


@table.derivative("_upsample_nearest_exact1d_backward")
def upsample_nearest_exact1d_backward_gradient(grad, output_size, scales):
    for_grad = torch._upsample_nearest_exact1d(grad, output_size, scales)
    return for_grad


@table.derivative("aten::_upsample_nearest_exact2d")
def upsample_nearest_exact2d_gradient(grad, output_size, scales_h, scales_w, self_size):
    for_self = torch._upsample_nearest_exact2d_backward(grad, output_size, self_size, scales_h, scales_w)
    return for_self


@table.derivative("_upsample_nearest_exact2d.vec")
def upsample_nearest_exact2d_by_factor_gradient(grad, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch._upsample_nearest_exact2d_backward(grad, grad.size()[2:], input_size, scales_h, scales_w)
    return for_input


@table.derivative("_upsample_nearest_exact2d_backward")
def upsample_nearest_exact2d_backward_gradient(grad, output_size, scales_h, scales_w):
    for_grad = torch._upsample_nearest_exact2d(grad, output_size, scales_h, scales_w)
    return for_grad


@table.derivative("aten::_upsample_nearest_exact3d")
def upsample_nearest_exact3d_gradient(grad, output_size, scales_d, scales_h, scales_w, self_size):
    for_self = torch._upsample_nearest_exact3d_backward(grad, output_size, self_size, scales_d, scales_h, scales_w)
    return for_self


@table.derivative("_upsample_nearest_exact3d.vec")
def upsample_nearest_exact3d_by_factor_gradient(grad, scale_factors, input_size):
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_d = scale_factors[0]
        scales_h = scale_factors[1]
        scales_w = scale_factors[2]
    for_input = torch._upsample_nearest_exact3d_backward(grad, grad.size()[2:], input_size, scales_d, scales_h, scales_w)
    return for_input


@table.derivative("_upsample_nearest_exact3d_backward")
def upsample_nearest_exact3d_backward_gradient(grad, output_size, scales_d, scales_h, scales_w):
    for_grad = torch._upsample_nearest_exact3d(grad, output_size, scales_d, scales_h, scales_w)
    return for_grad


@table.derivative("aten::upsample_linear1d")
def upsample_linear1d_gradient(grad, output_size, align_corners, scales, self_size):
    for_self = torch.upsample_linear1d_backward(grad, output_size, self_size, align_corners, scales)
    return for_self


@table.derivative("upsample_linear1d.vec")
def upsample_linear1d_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales: float | None = None
    if scale_factors is not None:
        scales = scale_factors[0]
    for_input = torch.upsample_linear1d_backward(grad, grad.size()[2:], input_size, align_corners, scales)
    return for_input


@table.derivative("upsample_linear1d_backward")
def upsample_linear1d_backward_gradient(grad, output_size, align_corners, scales):
    for_grad = torch.upsample_linear1d(grad, output_size, align_corners, scales)
    return for_grad


@table.derivative("aten::upsample_bilinear2d")
def upsample_bilinear2d_gradient(grad, output_size, align_corners, scales_h, scales_w, self_size):
    for_self = torch.upsample_bilinear2d_backward(grad, output_size, self_size, align_corners, scales_h, scales_w)
    return for_self


@table.derivative("upsample_bilinear2d.vec")
def upsample_bilinear2d_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch.upsample_bilinear2d_backward(grad, grad.size()[2:], input_size, align_corners, scales_h, scales_w)
    return for_input


@table.derivative("upsample_bilinear2d_backward")
def upsample_bilinear2d_backward_gradient(grad, output_size, align_corners, scales_h, scales_w):
    for_grad = torch.upsample_bilinear2d(grad, output_size, align_corners, scales_h, scales_w)
    return for_grad


@table.derivative("aten::upsample_trilinear3d")
def upsample_trilinear3d_gradient(grad, output_size, align_corners, scales_d, scales_h, scales_w, self_size):
    for_self = torch.upsample_trilinear3d_backward(grad, output_size, self_size, align_corners, scales_d, scales_h, scales_w)
    return for_self


@table.derivative("upsample_trilinear3d.vec")
def upsample_trilinear3d_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_d = scale_factors[0]
        scales_h = scale_factors[1]
        scales_w = scale_factors[2]
    for_input = torch.upsample_trilinear3d_backward(grad, grad.size()[2:], input_size, align_corners, scales_d, scales_h, scales_w)
    return for_input


@table.derivative("upsample_trilinear3d_backward")
def upsample_trilinear3d_backward_gradient(grad, output_size, align_corners, scales_d, scales_h, scales_w):
    for_grad = torch.upsample_trilinear3d(grad, output_size, align_corners, scales_d, scales_h, scales_w)
    return for_grad


@table.derivative("aten::upsample_bicubic2d")
def upsample_bicubic2d_gradient(grad, output_size, align_corners, scales_h, scales_w, self_size):
    for_self = torch.upsample_bicubic2d_backward(grad, output_size, self_size, align_corners, scales_h, scales_w)
    return for_self


@table.derivative("upsample_bicubic2d.vec")
def upsample_bicubic2d_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch.upsample_bicubic2d_backward(grad, grad.size()[2:], input_size, align_corners, scales_h, scales_w)
    return for_input


@table.derivative("upsample_bicubic2d_backward")
def upsample_bicubic2d_backward_gradient(grad, output_size, align_corners, scales_h, scales_w):
    for_grad = torch.upsample_bicubic2d(grad, output_size, align_corners, scales_h, scales_w)
    return for_grad


@table.derivative("aten::_upsample_bilinear2d_aa")
def upsample_bilinear2d_aa_gradient(grad, output_size, align_corners, scales_h, scales_w, self_size):
    for_self = torch._upsample_bilinear2d_aa_backward(grad, output_size, self_size, align_corners, scales_h, scales_w)
    return for_self


@table.derivative("_upsample_bilinear2d_aa.vec")
def upsample_bilinear2d_aa_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch._upsample_bilinear2d_aa_backward(grad, grad.size()[2:], input_size, align_corners, scales_h, scales_w)
    return for_input


@table.derivative("_upsample_bilinear2d_aa_backward")
def upsample_bilinear2d_aa_backward_gradient(grad, output_size, align_corners, scales_h, scales_w):
    for_grad = torch._upsample_bilinear2d_aa(grad, output_size, align_corners, scales_h, scales_w)
    return for_grad


@table.derivative("aten::_upsample_bicubic2d_aa")
def upsample_bicubic2d_aa_gradient(grad, output_size, align_corners, scales_h, scales_w, self_size):
    for_self = torch._upsample_bicubic2d_aa_backward(grad, output_size, self_size, align_corners, scales_h, scales_w)
    return for_self


@table.derivative("_upsample_bicubic2d_aa.vec")
def upsample_bicubic2d_aa_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch._upsample_bicubic2d_aa_backward(grad, grad.size()[2:], input_size, align_corners, scales_h, scales_w)
    return for_input


@table.derivative("_upsample_bicubic2d_aa_backward")
def upsample_bicubic2d_aa_backward_gradient(grad, output_size, align_corners, scales_h, scales_w):
    for_grad = torch._upsample_bicubic2d_aa(grad, output_size, align_corners, scales_h, scales_w)
    return for_grad


@table.derivative("aten::_upsample_lanczos2d_aa")
def upsample_lanczos2d_aa_gradient(grad, output_size, align_corners, scales_h, scales_w, self_size):
    for_self = torch._upsample_lanczos2d_aa_backward(grad, output_size, self_size, align_corners, scales_h, scales_w)
    return for_self


@table.derivative("_upsample_lanczos2d_aa.vec")
def upsample_lanczos2d_aa_by_factor_gradient(grad, align_corners, scale_factors, input_size):
    scales_h: float | None = None
    scales_w: float | None = None
    if scale_factors is not None:
        scales_h = scale_factors[0]
        scales_w = scale_factors[1]
    for_input = torch._upsample_lanczos2d_aa_backward(grad, grad.size()[2:], input_size, align_corners, scales_h, scales_w)
    return for_input


@table.derivative("_upsample_lanczos2d_aa_backward")
def upsample_lanczos2d_aa_backward_gradient(grad, output_size, align_corners, scales_h, scales_w):
    for_grad = torch._upsample_lanczos2d_aa(grad, output_size, align_corners, scales_h, scales_w)
    return for_grad
