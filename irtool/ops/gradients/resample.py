"""Gradients of resizing: the backward operator of the same mode; and of that, resizing again."""
from __future__ import annotations

from irtool.ops.kernels.resample import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("aten::upsample_nearest1d")
def upsample_nearest1d_gradient(self: Tensor, output_size: list[int], scales: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_nearest1d_backward(grad, output_size, sizes, scales)
        return for_self, None, None

    return torch.upsample_nearest1d(self, output_size, scales), backward


@table.gradient("upsample_nearest1d.vec")
def upsample_nearest1d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales: float | None = None
        if scale_factors is not None:
            scales = scale_factors[0]
        for_input = torch.upsample_nearest1d_backward(grad, grad.size()[2:], sizes, scales)
        return for_input, None, None

    return torch.upsample_nearest1d(input, output_size, scale_factors), backward


@table.gradient("upsample_nearest1d_backward")
def upsample_nearest1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_nearest1d(grad, output_size, scales)
        return for_grad, None, None, None

    return torch.upsample_nearest1d_backward(grad_output, output_size, input_size, scales), backward


@table.gradient("aten::upsample_nearest2d")
def upsample_nearest2d_gradient(self: Tensor, output_size: list[int], scales_h: float | None, scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_nearest2d_backward(grad, output_size, sizes, scales_h, scales_w)
        return for_self, None, None, None

    return torch.upsample_nearest2d(self, output_size, scales_h, scales_w), backward


@table.gradient("upsample_nearest2d.vec")
def upsample_nearest2d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch.upsample_nearest2d_backward(grad, grad.size()[2:], sizes, scales_h, scales_w)
        return for_input, None, None

    return torch.upsample_nearest2d(input, output_size, scale_factors), backward


@table.gradient("upsample_nearest2d_backward")
def upsample_nearest2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_h: float | None,
                                         scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_nearest2d(grad, output_size, scales_h, scales_w)
        return for_grad, None, None, None, None

    return torch.upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w), backward


@table.gradient("aten::upsample_nearest3d")
def upsample_nearest3d_gradient(self: Tensor, output_size: list[int], scales_d: float | None, scales_h: float | None,
                                scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_nearest3d_backward(grad, output_size, sizes, scales_d, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch.upsample_nearest3d(self, output_size, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_nearest3d.vec")
def upsample_nearest3d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_d: float | None = None
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_d = scale_factors[0]
            scales_h = scale_factors[1]
            scales_w = scale_factors[2]
        for_input = torch.upsample_nearest3d_backward(grad, grad.size()[2:], sizes, scales_d, scales_h, scales_w)
        return for_input, None, None

    return torch.upsample_nearest3d(input, output_size, scale_factors), backward


@table.gradient("upsample_nearest3d_backward")
def upsample_nearest3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_d: float | None,
                                         scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_nearest3d(grad, output_size, scales_d, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch.upsample_nearest3d_backward(grad_output, output_size, input_size, scales_d, scales_h, scales_w), backward


@table.gradient("aten::_upsample_nearest_exact1d")
def upsample_nearest_exact1d_gradient(self: Tensor, output_size: list[int], scales: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_nearest_exact1d_backward(grad, output_size, sizes, scales)
        return for_self, None, None

    return torch._upsample_nearest_exact1d(self, output_size, scales), backward


@table.gradient("_upsample_nearest_exact1d.vec")
def upsample_nearest_exact1d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales: float | None = None
        if scale_factors is not None:
            scales = scale_factors[0]
        for_input = torch._upsample_nearest_exact1d_backward(grad, grad.size()[2:], sizes, scales)
        return for_input, None, None

    return torch._upsample_nearest_exact1d(input, output_size, scale_factors), backward


@table.gradient("_upsample_nearest_exact1d_backward")
def upsample_nearest_exact1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_nearest_exact1d(grad, output_size, scales)
        return for_grad, None, None, None

    return torch._upsample_nearest_exact1d_backward(grad_output, output_size, input_size, scales), backward


@table.gradient("aten::_upsample_nearest_exact2d")
def upsample_nearest_exact2d_gradient(self: Tensor, output_size: list[int], scales_h: float | None, scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_nearest_exact2d_backward(grad, output_size, sizes, scales_h, scales_w)
        return for_self, None, None, None

    return torch._upsample_nearest_exact2d(self, output_size, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact2d.vec")
def upsample_nearest_exact2d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch._upsample_nearest_exact2d_backward(grad, grad.size()[2:], sizes, scales_h, scales_w)
        return for_input, None, None

    return torch._upsample_nearest_exact2d(input, output_size, scale_factors), backward


@table.gradient("_upsample_nearest_exact2d_backward")
def upsample_nearest_exact2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int],
                                               scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_nearest_exact2d(grad, output_size, scales_h, scales_w)
        return for_grad, None, None, None, None

    return torch._upsample_nearest_exact2d_backward(grad_output, output_size, input_size, scales_h, scales_w), backward


@table.gradient("aten::_upsample_nearest_exact3d")
def upsample_nearest_exact3d_gradient(self: Tensor, output_size: list[int], scales_d: float | None, scales_h: float | None,
                                      scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_nearest_exact3d_backward(grad, output_size, sizes, scales_d, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch._upsample_nearest_exact3d(self, output_size, scales_d, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact3d.vec")
def upsample_nearest_exact3d_by_factor_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_d: float | None = None
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_d = scale_factors[0]
            scales_h = scale_factors[1]
            scales_w = scale_factors[2]
        for_input = torch._upsample_nearest_exact3d_backward(grad, grad.size()[2:], sizes, scales_d, scales_h, scales_w)
        return for_input, None, None

    return torch._upsample_nearest_exact3d(input, output_size, scale_factors), backward


@table.gradient("_upsample_nearest_exact3d_backward")
def upsample_nearest_exact3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int],
                                               scales_d: float | None, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_nearest_exact3d(grad, output_size, scales_d, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch._upsample_nearest_exact3d_backward(grad_output, output_size, input_size, scales_d, scales_h, scales_w), backward


@table.gradient("aten::upsample_linear1d")
def upsample_linear1d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_linear1d_backward(grad, output_size, sizes, align_corners, scales)
        return for_self, None, None, None

    return torch.upsample_linear1d(self, output_size, align_corners, scales), backward


@table.gradient("upsample_linear1d.vec")
def upsample_linear1d_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                         scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales: float | None = None
        if scale_factors is not None:
            scales = scale_factors[0]
        for_input = torch.upsample_linear1d_backward(grad, grad.size()[2:], sizes, align_corners, scales)
        return for_input, None, None, None

    return torch.upsample_linear1d(input, output_size, align_corners, scale_factors), backward


@table.gradient("upsample_linear1d_backward")
def upsample_linear1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                        scales: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_linear1d(grad, output_size, align_corners, scales)
        return for_grad, None, None, None, None

    return torch.upsample_linear1d_backward(grad_output, output_size, input_size, align_corners, scales), backward


@table.gradient("aten::upsample_bilinear2d")
def upsample_bilinear2d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None,
                                 scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_bilinear2d_backward(grad, output_size, sizes, align_corners, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch.upsample_bilinear2d(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("upsample_bilinear2d.vec")
def upsample_bilinear2d_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                           scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch.upsample_bilinear2d_backward(grad, grad.size()[2:], sizes, align_corners, scales_h, scales_w)
        return for_input, None, None, None

    return torch.upsample_bilinear2d(input, output_size, align_corners, scale_factors), backward


@table.gradient("upsample_bilinear2d_backward")
def upsample_bilinear2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                          scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_bilinear2d(grad, output_size, align_corners, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch.upsample_bilinear2d_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("aten::upsample_trilinear3d")
def upsample_trilinear3d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_d: float | None,
                                  scales_h: float | None, scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_trilinear3d_backward(grad, output_size, sizes, align_corners, scales_d, scales_h, scales_w)
        return for_self, None, None, None, None, None

    return torch.upsample_trilinear3d(self, output_size, align_corners, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_trilinear3d.vec")
def upsample_trilinear3d_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                            scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_d: float | None = None
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_d = scale_factors[0]
            scales_h = scale_factors[1]
            scales_w = scale_factors[2]
        for_input = torch.upsample_trilinear3d_backward(grad, grad.size()[2:], sizes, align_corners, scales_d, scales_h, scales_w)
        return for_input, None, None, None

    return torch.upsample_trilinear3d(input, output_size, align_corners, scale_factors), backward


@table.gradient("upsample_trilinear3d_backward")
def upsample_trilinear3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                           scales_d: float | None, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_trilinear3d(grad, output_size, align_corners, scales_d, scales_h, scales_w)
        return for_grad, None, None, None, None, None, None

    return torch.upsample_trilinear3d_backward(grad_output, output_size, input_size, align_corners, scales_d, scales_h, scales_w), backward


@table.gradient("aten::upsample_bicubic2d")
def upsample_bicubic2d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None,
                                scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch.upsample_bicubic2d_backward(grad, output_size, sizes, align_corners, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch.upsample_bicubic2d(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("upsample_bicubic2d.vec")
def upsample_bicubic2d_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                          scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch.upsample_bicubic2d_backward(grad, grad.size()[2:], sizes, align_corners, scales_h, scales_w)
        return for_input, None, None, None

    return torch.upsample_bicubic2d(input, output_size, align_corners, scale_factors), backward


@table.gradient("upsample_bicubic2d_backward")
def upsample_bicubic2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                         scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch.upsample_bicubic2d(grad, output_size, align_corners, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch.upsample_bicubic2d_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("aten::_upsample_bilinear2d_aa")
def upsample_bilinear2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None,
                                    scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_bilinear2d_aa_backward(grad, output_size, sizes, align_corners, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch._upsample_bilinear2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bilinear2d_aa.vec")
def upsample_bilinear2d_aa_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                              scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch._upsample_bilinear2d_aa_backward(grad, grad.size()[2:], sizes, align_corners, scales_h, scales_w)
        return for_input, None, None, None

    return torch._upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors), backward


@table.gradient("_upsample_bilinear2d_aa_backward")
def upsample_bilinear2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                             scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_bilinear2d_aa(grad, output_size, align_corners, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch._upsample_bilinear2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("aten::_upsample_bicubic2d_aa")
def upsample_bicubic2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None,
                                   scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_bicubic2d_aa_backward(grad, output_size, sizes, align_corners, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch._upsample_bicubic2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bicubic2d_aa.vec")
def upsample_bicubic2d_aa_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                             scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch._upsample_bicubic2d_aa_backward(grad, grad.size()[2:], sizes, align_corners, scales_h, scales_w)
        return for_input, None, None, None

    return torch._upsample_bicubic2d_aa(input, output_size, align_corners, scale_factors), backward


@table.gradient("_upsample_bicubic2d_aa_backward")
def upsample_bicubic2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                            scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_bicubic2d_aa(grad, output_size, align_corners, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch._upsample_bicubic2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("aten::_upsample_lanczos2d_aa")
def upsample_lanczos2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None,
                                   scales_w: float | None):
    sizes = self.size()

    def backward(grad: Tensor):
        for_self = torch._upsample_lanczos2d_aa_backward(grad, output_size, sizes, align_corners, scales_h, scales_w)
        return for_self, None, None, None, None

    return torch._upsample_lanczos2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_lanczos2d_aa.vec")
def upsample_lanczos2d_aa_by_factor_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool,
                                             scale_factors: list[float] | None):
    sizes = input.size()

    def backward(grad: Tensor):
        scales_h: float | None = None
        scales_w: float | None = None
        if scale_factors is not None:
            scales_h = scale_factors[0]
            scales_w = scale_factors[1]
        for_input = torch._upsample_lanczos2d_aa_backward(grad, grad.size()[2:], sizes, align_corners, scales_h, scales_w)
        return for_input, None, None, None

    return torch._upsample_lanczos2d_aa(input, output_size, align_corners, scale_factors), backward


@table.gradient("_upsample_lanczos2d_aa_backward")
def upsample_lanczos2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool,
                                            scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        for_grad = torch._upsample_lanczos2d_aa(grad, output_size, align_corners, scales_h, scales_w)
        return for_grad, None, None, None, None, None

    return torch._upsample_lanczos2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward
