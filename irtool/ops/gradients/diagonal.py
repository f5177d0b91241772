"""Gradients of triangles, diagonals and copies of views."""
from __future__ import annotations

from irtool.ops.kernels.diagonal import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("tril")
def tril_gradient(self: Tensor, diagonal: int):
    def backward(grad: Tensor):
        return grad.tril(diagonal), None

    return self.tril(diagonal), backward


@table.gradient("triu")
def triu_gradient(self: Tensor, diagonal: int):
    def backward(grad: Tensor):
        return grad.triu(diagonal), None

    return self.triu(diagonal), backward


@table.gradient("diag_embed")
def diag_embed_gradient(self: Tensor, offset: int, dim1: int, dim2: int):
    def backward(grad: Tensor):
        return grad.diagonal(offset, dim1, dim2), None, None, None

    return torch.diag_embed(self, offset, dim1, dim2), backward


@table.gradient("diag")
def diag_gradient(self: Tensor, diagonal: int):
    size = self.size()

    def backward(grad: Tensor):
        if len(size) == 1:
            for_self = grad.diagonal(diagonal)
        else:
            for_self = torch.diagonal_backward(grad, size, diagonal, 0, 1)
        return for_self, None

    return torch.diag(self, diagonal), backward


@table.gradient("diagflat")
def diagflat_gradient(self: Tensor, offset: int):
    size = self.size()

    def backward(grad: Tensor):
        return grad.diagonal(offset).reshape(size), None

    return torch.diagflat(self, offset), backward


@table.gradient("trace")
def trace_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return torch.trace_backward(grad, size)

    return torch.trace(self), backward


@table.gradient("trace_backward")
def trace_backward_gradient(grad: Tensor, sizes: list[int]):
    def backward(again: Tensor):
        return torch.trace(again), None

    return torch.trace_backward(grad, sizes), backward


@table.gradient("select_scatter")
def select_scatter_gradient(self: Tensor, src: Tensor, dim: int, index: int):
    src_size = src.size()

    def backward(grad: Tensor):
        part = grad.select(dim, index)
        return torch.select_scatter(grad, torch.zeros_like(part), dim, index), part.sum_to_size(src_size), None, None

    return torch.select_scatter(self, src, dim, index), backward


@table.gradient("slice_scatter")
def slice_scatter_gradient(self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int):
    src_size = src.size()

    def backward(grad: Tensor):
        part = torch.slice(grad, dim, start, end, step)
        rest = torch.slice_scatter(grad, torch.zeros_like(part), dim, start, end, step)
        return rest, part.sum_to_size(src_size), None, None, None, None

    return torch.slice_scatter(self, src, dim, start, end, step), backward


@table.gradient("diagonal_scatter")
def diagonal_scatter_gradient(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int):
    src_size = src.size()

    def backward(grad: Tensor):
        part = grad.diagonal(offset, dim1, dim2)
        rest = torch.diagonal_scatter(grad, torch.zeros_like(part), offset, dim1, dim2)
        return rest, part.sum_to_size(src_size), None, None, None

    return torch.diagonal_scatter(self, src, offset, dim1, dim2), backward


@table.gradient("select_backward")
def select_backward_gradient(grad_output: Tensor, input_sizes: list[int], dim: int, index: int):
    def backward(grad: Tensor):
        return grad.select(dim, index), None, None, None

    return torch.select_backward(grad_output, input_sizes, dim, index), backward


@table.gradient("slice_backward")
def slice_backward_gradient(grad_output: Tensor, input_sizes: list[int], dim: int, start: int, end: int, step: int):
    def backward(grad: Tensor):
        return torch.slice(grad, dim, start, end, step), None, None, None, None, None

    return torch.slice_backward(grad_output, input_sizes, dim, start, end, step), backward


@table.gradient("diagonal_backward")
def diagonal_backward_gradient(grad_output: Tensor, input_sizes: list[int], offset: int, dim1: int, dim2: int):
    def backward(grad: Tensor):
        return grad.diagonal(offset, dim1, dim2), None, None, None, None

    return torch.diagonal_backward(grad_output, input_sizes, offset, dim1, dim2), backward


@table.gradient("diagonal_copy")
def diagonal_copy_gradient(self: Tensor, offset: int, dim1: int, dim2: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.diagonal_backward(grad, size, offset, dim1, dim2), None, None, None

    return torch.diagonal_copy(self, offset, dim1, dim2), backward


@table.gradient("expand_copy")
def expand_copy_gradient(self: Tensor, size: list[int], implicit: bool):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(own_size), None, None

    return torch.expand_copy(self, size, implicit=implicit), backward


@table.gradient("narrow_copy")
def narrow_copy_gradient(self: Tensor, dim: int, start: int, length: int):
    size = self.size()
    first = start if start >= 0 else start + self.size(dim)

    def backward(grad: Tensor):
        return torch.slice_backward(grad, size, dim, first, first + length, 1), None, None, None

    return torch.narrow_copy(self, dim, start, length), backward


@table.gradient("permute_copy")
def permute_copy_gradient(self: Tensor, dims: list[int]):
    inverse = [0 for dim in dims]
    for place in range(len(dims)):
        inverse[dims[place]] = place

    def backward(grad: Tensor):
        return grad.permute(inverse), None

    return torch.permute_copy(self, dims), backward


@table.gradient("select_copy.int")
def select_copy_gradient(self: Tensor, dim: int, index: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.select_backward(grad, size, dim, index), None, None

    return torch.select_copy(self, dim, index), backward


@table.gradient("slice_copy.Tensor")
def slice_copy_gradient(self: Tensor, dim: int, start: int | None, end: int | None, step: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.slice_scatter(grad.new_zeros(size), grad, dim, start, end, step), None, None, None, None

    return torch.slice_copy(self, dim, start, end, step), backward


@table.gradient("squeeze_copy")
def squeeze_copy_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return torch.squeeze_copy(self), backward


@table.gradient("squeeze_copy.dim")
def squeeze_copy_dim_gradient(self: Tensor, dim: int):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return torch.squeeze_copy(self, dim), backward


@table.gradient("squeeze_copy.dims")
def squeeze_copy_dims_gradient(self: Tensor, dim: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return torch.squeeze_copy(self, dim), backward


@table.gradient("t_copy")
def t_copy_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.t()

    return torch.t_copy(self), backward


@table.gradient("transpose_copy.int")
def transpose_copy_gradient(self: Tensor, dim0: int, dim1: int):
    def backward(grad: Tensor):
        return grad.transpose(dim0, dim1), None, None

    return torch.transpose_copy(self, dim0, dim1), backward


@table.gradient("unfold_copy")
def unfold_copy_gradient(self: Tensor, dimension: int, size: int, step: int):
    own_size = self.size()

    def backward(grad: Tensor):
        return torch.unfold_backward(grad, own_size, dimension, size, step), None, None, None

    return torch.unfold_copy(self, dimension, size, step), backward


@table.gradient("unsqueeze_copy")
def unsqueeze_copy_gradient(self: Tensor, dim: int):
    def backward(grad: Tensor):
        return grad.squeeze(dim), None

    return torch.unsqueeze_copy(self, dim), backward


@table.gradient("view_copy")
def view_copy_gradient(self: Tensor, size: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(own_size), None

    return torch.view_copy(self, size), backward


@table.gradient("view_as_real_copy")
def view_as_real_copy_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.view_as_complex(torch.real(grad).contiguous()).conj()

    return torch.view_as_real_copy(self), backward


@table.gradient("view_as_complex_copy")
def view_as_complex_copy_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.view_as_real(grad.conj().resolve_conj())

    return torch.view_as_complex_copy(self), backward


@table.gradient("as_strided_copy")
def as_strided_copy_gradient(self: Tensor, size: list[int], stride: list[int], storage_offset: int | None):
    own_size = self.size()

    def backward(grad: Tensor):
        places = torch.arange(self.numel(), device=grad.device)
        source = torch.as_strided(places, size, stride, storage_offset).reshape([-1])
        return grad.new_zeros([self.numel()]).index_add(0, source, grad.reshape([-1])).reshape(own_size), None, None, None

    return torch.as_strided_copy(self, size, stride, storage_offset), backward


@table.gradient("as_strided_scatter")
def as_strided_scatter_gradient(self: Tensor, src: Tensor, size: list[int], stride: list[int], storage_offset: int | None):
    def backward(grad: Tensor):
        # torch's: self gets the gradient where src was written, not (as the slope would be) everywhere else
        part = torch.as_strided_copy(grad.contiguous(), size, stride, storage_offset)
        return torch.as_strided_scatter(torch.zeros_like(self), part, size, stride, storage_offset), part, None, None, None

    return torch.as_strided_scatter(self, src, size, stride, storage_offset), backward


table.no_gradient("the bits mean something else", "view_copy.dtype")
