"""Gradients of triangles, diagonals, and of operators that reverse views."""
from irtool.ops.kernels.diagonal import table
from irtool.ops.tensor import torch

table.derivative("tril", lambda grad, diagonal: grad.tril(diagonal))
table.derivative("triu", lambda grad, diagonal: grad.triu(diagonal))
table.derivative("diag_embed", lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))


@table.derivative("diag")
def diag_gradient(grad, diagonal, self_size):
    return grad.diagonal(diagonal) if len(self_size) == 1 else torch.diagonal_backward(grad, self_size, diagonal, 0, 1)


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


@table.derivative("as_strided_scatter")
def as_strided_scatter_gradient(grad, self, src, size, stride, storage_offset):
    # as torch: self gets the gradient where src was written, not (as would be its derivative) everywhere else
    part = torch.as_strided_copy(grad.contiguous(), size, stride, storage_offset)
    return torch.as_strided_scatter(torch.zeros_like(self), part, size, stride, storage_offset), part
