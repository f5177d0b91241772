"""Gradients of views: the gradient, seen in the shape of the operand."""
from __future__ import annotations

from irtool.ops.kernels.shape import table
from irtool.ops.tensor import torch

table.derivative("view _unsafe_view view_as reshape reshape_as _reshape_alias _reshape_from_tensor ravel flatten.using_ints unflatten.int "
                 "squeeze squeeze.dim squeeze.dims", lambda grad, self_size: grad.reshape(self_size))
table.derivative("contiguous", lambda grad: grad)
table.derivative("transpose.int swapdims", lambda grad, dim0, dim1: grad.transpose(dim0, dim1))
table.derivative("swapaxes", lambda grad, axis0, axis1: grad.transpose(axis0, axis1))
table.derivative("t", lambda grad: grad.t())
table.derivative("mT mT.a", lambda grad: grad.mT)
table.derivative("mH mH.a adjoint", lambda grad: torch.adjoint(grad))
table.derivative("matrix_H matrix_H.a", lambda grad: torch.matrix_H(grad))
table.derivative("numpy_T numpy_T.a", lambda grad: torch.numpy_T(grad))


@table.derivative("permute")
def permute_gradient(grad, dims):
    inverse = [0 for dim in dims]
    for place in range(len(dims)):
        inverse[dims[place]] = place
    return grad.permute(inverse)


table.derivative("movedim.int moveaxis.int movedim.intlist moveaxis.intlist",
                 lambda grad, source, destination: torch.movedim(grad, destination, source))
table.derivative("unsqueeze", lambda grad, dim: grad.squeeze(dim))
table.derivative("expand broadcast_to expand_as", lambda grad, self_size: grad.sum_to_size(self_size))
table.derivative("select.int", lambda grad, dim, index, self_size: torch.select_backward(grad, self_size, dim, index))
table.derivative("slice.Tensor",
                 lambda grad, dim, start, end, step, self_size: torch.slice_scatter(grad.new_zeros(self_size), grad, dim, start, end, step))


@table.derivative("narrow")
def narrow_gradient(grad, dim, start, length, self_size):
    first = start if start >= 0 else start + self_size[dim]
    return torch.slice_backward(grad, self_size, dim, first, first + length, 1)


@table.derivative("narrow.Tensor")
def narrow_tensor_gradient(grad, dim, start, length, self_size):
    places = torch.where(start < 0, start + self_size[dim], start) + torch.arange(length)
    return grad.new_zeros(self_size).index_add(dim, places, grad), None


table.derivative("diagonal", lambda grad, offset, dim1, dim2, self_size: torch.diagonal_backward(grad, self_size, offset, dim1, dim2))
table.derivative("linalg_diagonal", lambda grad, offset, dim1, dim2, A_size: torch.diagonal_backward(grad, A_size, offset, dim1, dim2))
table.derivative("unfold", lambda grad, dimension, size, step, self_size: torch.unfold_backward(grad, self_size, dimension, size, step))


@table.derivative("as_strided")
def as_strided_gradient(grad, size, stride, storage_offset, self_size, self_stride, self_offset):
    begin = storage_offset if storage_offset is not None else self_offset
    room = 1
    for place in range(len(self_size)):
        room = max(room, self_offset + 1)
        room = room + (self_size[place] - 1) * self_stride[place]
    reach = begin + 1
    for place in range(len(size)):
        reach = reach + (size[place] - 1) * stride[place]
    memory = grad.new_zeros([max(room + self_offset, reach)])
    places = torch.arange(memory.numel(), device=grad.device)
    source = torch.as_strided(places, size, stride, begin).reshape([-1])
    memory = memory.index_add(0, source, grad.reshape([-1]))
    target = torch.as_strided(places, self_size, self_stride, self_offset).reshape([-1])
    return memory.index_select(0, target).reshape(self_size)


table.derivative("view_as_real", lambda grad: torch.view_as_complex(torch.real(grad).contiguous()).conj())
table.derivative("view_as_complex", lambda grad: torch.view_as_real(grad.conj().resolve_conj()))


table.no_gradient("the bits mean something else", "view.dtype")
table.no_gradient("a fact about the tensor", "size sym_size len dim numel sym_numel _shape_as_tensor stride sym_stride storage_offset "
                  "sym_storage_offset is_contiguous is_non_overlapping_and_dense is_same_size")
