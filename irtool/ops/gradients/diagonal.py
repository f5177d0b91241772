"""Gradients of triangles, diagonals and copies of views."""
from __future__ import annotations

from irtool.ops.kernels.diagonal import table
from irtool.ops.tensor import Tensor, torch

table.derivative("tril", lambda grad, diagonal: grad.tril(diagonal))
table.derivative("triu", lambda grad, diagonal: grad.triu(diagonal))
table.derivative("diag_embed", lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))


@table.derivative("diag")
def diag_gradient(grad, diagonal, self_size):
    if len(self_size) == 1:
        for_self = grad.diagonal(diagonal)
    else:
        for_self = torch.diagonal_backward(grad, self_size, diagonal, 0, 1)
    return for_self


table.derivative("diagflat", lambda grad, offset, self_size: grad.diagonal(offset).reshape(self_size))
table.derivative("trace", lambda grad, self_size: torch.trace_backward(grad, self_size))
table.derivative("trace_backward", lambda again: torch.trace(again))


@table.derivative("select_scatter")
def select_scatter_gradient(grad, dim, index, src_size):
    part = grad.select(dim, index)
    return torch.select_scatter(grad, torch.zeros_like(part), dim, index), part.sum_to_size(src_size)


@table.derivative("slice_scatter")
def slice_scatter_gradient(grad, dim, start, end, step, src_size):
    part = torch.slice(grad, dim, start, end, step)
    rest = torch.slice_scatter(grad, torch.zeros_like(part), dim, start, end, step)
    return rest, part.sum_to_size(src_size)


@table.derivative("diagonal_scatter")
def diagonal_scatter_gradient(grad, offset, dim1, dim2, src_size):
    part = grad.diagonal(offset, dim1, dim2)
    rest = torch.diagonal_scatter(grad, torch.zeros_like(part), offset, dim1, dim2)
    return rest, part.sum_to_size(src_size)


table.derivative("select_backward", lambda grad, dim, index: grad.select(dim, index))
table.derivative("slice_backward", lambda grad, dim, start, end, step: torch.slice(grad, dim, start, end, step))
table.derivative("diagonal_backward", lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))
table.derivative("diagonal_copy", lambda grad, offset, dim1, dim2, self_size: torch.diagonal_backward(grad, self_size, offset, dim1, dim2))
table.derivative("expand_copy", lambda grad, self_size: grad.sum_to_size(self_size))


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


table.derivative("select_copy.int", lambda grad, dim, index, self_size: torch.select_backward(grad, self_size, dim, index))
table.derivative("slice_copy.Tensor",
                 lambda grad, dim, start, end, step, self_size: torch.slice_scatter(grad.new_zeros(self_size), grad, dim, start, end, step))
table.derivative("squeeze_copy squeeze_copy.dim squeeze_copy.dims view_copy", lambda grad, self_size: grad.reshape(self_size))
table.derivative("t_copy", lambda grad: grad.t())
table.derivative("transpose_copy.int", lambda grad, dim0, dim1: grad.transpose(dim0, dim1))
table.derivative("unfold_copy",
                 lambda grad, dimension, size, step, self_size: torch.unfold_backward(grad, self_size, dimension, size, step))
table.derivative("unsqueeze_copy", lambda grad, dim: grad.squeeze(dim))
table.derivative("view_as_real_copy", lambda grad: torch.view_as_complex(torch.real(grad).contiguous()).conj())
table.derivative("view_as_complex_copy", lambda grad: torch.view_as_real(grad.conj().resolve_conj()))


@table.derivative("as_strided_copy")
def as_strided_copy_gradient(grad, self, size, stride, storage_offset, self_size):
    places = torch.arange(self.numel(), device=grad.device)
    source = torch.as_strided(places, size, stride, storage_offset).reshape([-1])
    return grad.new_zeros([self.numel()]).index_add(0, source, grad.reshape([-1])).reshape(self_size)


@table.derivative("as_strided_scatter")
def as_strided_scatter_gradient(grad, self, src, size, stride, storage_offset):
    # torch's: self gets the gradient where src was written, not (as the slope would be) everywhere else
    part = torch.as_strided_copy(grad.contiguous(), size, stride, storage_offset)
    return torch.as_strided_scatter(torch.zeros_like(self), part, size, stride, storage_offset), part


table.no_gradient("the bits mean something else", "view_copy.dtype")
