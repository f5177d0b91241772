"""Gradients of resizing. Resizing is linear: the gradient of its gradient operator is the resizing itself."""
from __future__ import annotations

from irtool.ops.resample import table
from irtool.ops.tensor import Tensor, torch


def scale_at(scale_factors: list[float] | None, place: int) -> float | None:
    """One of several factors, None without them."""
    if scale_factors is None:
        return None
    return scale_factors[place]


@table.gradient("upsample_nearest1d")
def upsample_nearest1d_gradient(self: Tensor, output_size: list[int], scales: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_nearest1d_backward(grad, output_size, size, scales), None, None

    return torch.upsample_nearest1d(self, output_size, scales), backward


@table.gradient("upsample_nearest1d.vec")
def upsample_nearest1d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_nearest1d(input, output_size, scale_factors)
    sizes = [result.size(2)]

    def backward(grad: Tensor):
        found = torch.upsample_nearest1d_backward(grad, sizes, size, scale_at(scale_factors, 0))
        return found, None, None

    return result, backward


@table.gradient("upsample_nearest1d_backward")
def upsample_nearest1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales: float | None):
    def backward(grad: Tensor):
        return torch.upsample_nearest1d(grad, output_size, scales), None, None, None

    return torch.upsample_nearest1d_backward(grad_output, output_size, input_size, scales), backward


@table.gradient("upsample_nearest2d")
def upsample_nearest2d_gradient(self: Tensor, output_size: list[int], scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_nearest2d_backward(grad, output_size, size, scales_h, scales_w), None, None, None

    return torch.upsample_nearest2d(self, output_size, scales_h, scales_w), backward


@table.gradient("upsample_nearest2d.vec")
def upsample_nearest2d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_nearest2d(input, output_size, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch.upsample_nearest2d_backward(grad, sizes, size, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None

    return result, backward


@table.gradient("upsample_nearest2d_backward")
def upsample_nearest2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch.upsample_nearest2d(grad, output_size, scales_h, scales_w), None, None, None, None

    return torch.upsample_nearest2d_backward(grad_output, output_size, input_size, scales_h, scales_w), backward


@table.gradient("upsample_nearest3d")
def upsample_nearest3d_gradient(self: Tensor, output_size: list[int], scales_d: float | None, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_nearest3d_backward(grad, output_size, size, scales_d, scales_h, scales_w), None, None, None, None

    return torch.upsample_nearest3d(self, output_size, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_nearest3d.vec")
def upsample_nearest3d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_nearest3d(input, output_size, scale_factors)
    sizes = [result.size(2), result.size(3), result.size(4)]

    def backward(grad: Tensor):
        found = torch.upsample_nearest3d_backward(grad, sizes, size, scale_at(scale_factors, 0), scale_at(scale_factors, 1), scale_at(scale_factors, 2))
        return found, None, None

    return result, backward


@table.gradient("upsample_nearest3d_backward")
def upsample_nearest3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_d: float | None, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch.upsample_nearest3d(grad, output_size, scales_d, scales_h, scales_w), None, None, None, None, None

    return torch.upsample_nearest3d_backward(grad_output, output_size, input_size, scales_d, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact1d")
def upsample_nearest_exact1d_gradient(self: Tensor, output_size: list[int], scales: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_nearest_exact1d_backward(grad, output_size, size, scales), None, None

    return torch._upsample_nearest_exact1d(self, output_size, scales), backward


@table.gradient("_upsample_nearest_exact1d.vec")
def upsample_nearest_exact1d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_nearest_exact1d(input, output_size, scale_factors)
    sizes = [result.size(2)]

    def backward(grad: Tensor):
        found = torch._upsample_nearest_exact1d_backward(grad, sizes, size, scale_at(scale_factors, 0))
        return found, None, None

    return result, backward


@table.gradient("_upsample_nearest_exact1d_backward")
def upsample_nearest_exact1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales: float | None):
    def backward(grad: Tensor):
        return torch._upsample_nearest_exact1d(grad, output_size, scales), None, None, None

    return torch._upsample_nearest_exact1d_backward(grad_output, output_size, input_size, scales), backward


@table.gradient("_upsample_nearest_exact2d")
def upsample_nearest_exact2d_gradient(self: Tensor, output_size: list[int], scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_nearest_exact2d_backward(grad, output_size, size, scales_h, scales_w), None, None, None

    return torch._upsample_nearest_exact2d(self, output_size, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact2d.vec")
def upsample_nearest_exact2d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_nearest_exact2d(input, output_size, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch._upsample_nearest_exact2d_backward(grad, sizes, size, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None

    return result, backward


@table.gradient("_upsample_nearest_exact2d_backward")
def upsample_nearest_exact2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch._upsample_nearest_exact2d(grad, output_size, scales_h, scales_w), None, None, None, None

    return torch._upsample_nearest_exact2d_backward(grad_output, output_size, input_size, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact3d")
def upsample_nearest_exact3d_gradient(self: Tensor, output_size: list[int], scales_d: float | None, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_nearest_exact3d_backward(grad, output_size, size, scales_d, scales_h, scales_w), None, None, None, None

    return torch._upsample_nearest_exact3d(self, output_size, scales_d, scales_h, scales_w), backward


@table.gradient("_upsample_nearest_exact3d.vec")
def upsample_nearest_exact3d_vec_gradient(input: Tensor, output_size: list[int] | None, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_nearest_exact3d(input, output_size, scale_factors)
    sizes = [result.size(2), result.size(3), result.size(4)]

    def backward(grad: Tensor):
        found = torch._upsample_nearest_exact3d_backward(grad, sizes, size, scale_at(scale_factors, 0), scale_at(scale_factors, 1), scale_at(scale_factors, 2))
        return found, None, None

    return result, backward


@table.gradient("_upsample_nearest_exact3d_backward")
def upsample_nearest_exact3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], scales_d: float | None, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch._upsample_nearest_exact3d(grad, output_size, scales_d, scales_h, scales_w), None, None, None, None, None

    return torch._upsample_nearest_exact3d_backward(grad_output, output_size, input_size, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_linear1d")
def upsample_linear1d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_linear1d_backward(grad, output_size, size, align_corners, scales), None, None, None

    return torch.upsample_linear1d(self, output_size, align_corners, scales), backward


@table.gradient("upsample_linear1d.vec")
def upsample_linear1d_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_linear1d(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2)]

    def backward(grad: Tensor):
        found = torch.upsample_linear1d_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0))
        return found, None, None, None

    return result, backward


@table.gradient("upsample_linear1d_backward")
def upsample_linear1d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales: float | None):
    def backward(grad: Tensor):
        return torch.upsample_linear1d(grad, output_size, align_corners, scales), None, None, None, None

    return torch.upsample_linear1d_backward(grad_output, output_size, input_size, align_corners, scales), backward


@table.gradient("upsample_bilinear2d")
def upsample_bilinear2d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_bilinear2d_backward(grad, output_size, size, align_corners, scales_h, scales_w), None, None, None, None

    return torch.upsample_bilinear2d(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("upsample_bilinear2d.vec")
def upsample_bilinear2d_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_bilinear2d(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch.upsample_bilinear2d_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None, None

    return result, backward


@table.gradient("upsample_bilinear2d_backward")
def upsample_bilinear2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch.upsample_bilinear2d(grad, output_size, align_corners, scales_h, scales_w), None, None, None, None, None

    return torch.upsample_bilinear2d_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("upsample_trilinear3d")
def upsample_trilinear3d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_d: float | None, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_trilinear3d_backward(grad, output_size, size, align_corners, scales_d, scales_h, scales_w), None, None, None, None, None

    return torch.upsample_trilinear3d(self, output_size, align_corners, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_trilinear3d.vec")
def upsample_trilinear3d_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_trilinear3d(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3), result.size(4)]

    def backward(grad: Tensor):
        found = torch.upsample_trilinear3d_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1), scale_at(scale_factors, 2))
        return found, None, None, None

    return result, backward


@table.gradient("upsample_trilinear3d_backward")
def upsample_trilinear3d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_d: float | None, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch.upsample_trilinear3d(grad, output_size, align_corners, scales_d, scales_h, scales_w), None, None, None, None, None, None

    return torch.upsample_trilinear3d_backward(grad_output, output_size, input_size, align_corners, scales_d, scales_h, scales_w), backward


@table.gradient("upsample_bicubic2d")
def upsample_bicubic2d_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch.upsample_bicubic2d_backward(grad, output_size, size, align_corners, scales_h, scales_w), None, None, None, None

    return torch.upsample_bicubic2d(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("upsample_bicubic2d.vec")
def upsample_bicubic2d_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch.upsample_bicubic2d(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch.upsample_bicubic2d_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None, None

    return result, backward


@table.gradient("upsample_bicubic2d_backward")
def upsample_bicubic2d_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch.upsample_bicubic2d(grad, output_size, align_corners, scales_h, scales_w), None, None, None, None, None

    return torch.upsample_bicubic2d_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bilinear2d_aa")
def upsample_bilinear2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_bilinear2d_aa_backward(grad, output_size, size, align_corners, scales_h, scales_w), None, None, None, None

    return torch._upsample_bilinear2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bilinear2d_aa.vec")
def upsample_bilinear2d_aa_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch._upsample_bilinear2d_aa_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None, None

    return result, backward


@table.gradient("_upsample_bilinear2d_aa_backward")
def upsample_bilinear2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch._upsample_bilinear2d_aa(grad, output_size, align_corners, scales_h, scales_w), None, None, None, None, None

    return torch._upsample_bilinear2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bicubic2d_aa")
def upsample_bicubic2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_bicubic2d_aa_backward(grad, output_size, size, align_corners, scales_h, scales_w), None, None, None, None

    return torch._upsample_bicubic2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_bicubic2d_aa.vec")
def upsample_bicubic2d_aa_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_bicubic2d_aa(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch._upsample_bicubic2d_aa_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None, None

    return result, backward


@table.gradient("_upsample_bicubic2d_aa_backward")
def upsample_bicubic2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch._upsample_bicubic2d_aa(grad, output_size, align_corners, scales_h, scales_w), None, None, None, None, None

    return torch._upsample_bicubic2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_lanczos2d_aa")
def upsample_lanczos2d_aa_gradient(self: Tensor, output_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    size = self.size()

    def backward(grad: Tensor):
        return torch._upsample_lanczos2d_aa_backward(grad, output_size, size, align_corners, scales_h, scales_w), None, None, None, None

    return torch._upsample_lanczos2d_aa(self, output_size, align_corners, scales_h, scales_w), backward


@table.gradient("_upsample_lanczos2d_aa.vec")
def upsample_lanczos2d_aa_vec_gradient(input: Tensor, output_size: list[int] | None, align_corners: bool, scale_factors: list[float] | None):
    size, result = input.size(), torch._upsample_lanczos2d_aa(input, output_size, align_corners, scale_factors)
    sizes = [result.size(2), result.size(3)]

    def backward(grad: Tensor):
        found = torch._upsample_lanczos2d_aa_backward(grad, sizes, size, align_corners, scale_at(scale_factors, 0), scale_at(scale_factors, 1))
        return found, None, None, None

    return result, backward


@table.gradient("_upsample_lanczos2d_aa_backward")
def upsample_lanczos2d_aa_backward_gradient(grad_output: Tensor, output_size: list[int], input_size: list[int], align_corners: bool, scales_h: float | None, scales_w: float | None):
    def backward(grad: Tensor):
        return torch._upsample_lanczos2d_aa(grad, output_size, align_corners, scales_h, scales_w), None, None, None, None, None

    return torch._upsample_lanczos2d_aa_backward(grad_output, output_size, input_size, align_corners, scales_h, scales_w), backward
