"""Gradients of views: the gradient, seen in the shape of the operand."""
from __future__ import annotations

from irtool.ops.kernels.shape import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("view _unsafe_view")
def view_gradient(self: Tensor, size: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(own_size), None

    return self.view(size), backward


@table.gradient("view_as")
def view_as_gradient(self: Tensor, other: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return self.view_as(other), backward


@table.gradient("reshape")
def reshape_gradient(self: Tensor, shape: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return self.reshape(shape), backward


@table.gradient("reshape_as")
def reshape_as_gradient(self: Tensor, other: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return self.reshape_as(other), backward


@table.gradient("_reshape_alias")
def reshape_alias_gradient(self: Tensor, size: list[int], stride: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(own_size), None, None

    return self.reshape(size), backward


@table.gradient("_reshape_from_tensor")
def reshape_from_tensor_gradient(self: Tensor, shape: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return torch._reshape_from_tensor(self, shape), backward


@table.gradient("ravel")
def ravel_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return self.ravel(), backward


@table.gradient("flatten.using_ints")
def flatten_gradient(self: Tensor, start_dim: int, end_dim: int):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None, None

    return self.flatten(start_dim, end_dim), backward


@table.gradient("unflatten.int")
def unflatten_gradient(self: Tensor, dim: int, sizes: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None, None

    return self.unflatten(dim, sizes), backward


@table.gradient("contiguous")
def contiguous_gradient(self: Tensor, memory_format: int):
    def backward(grad: Tensor):
        return grad, None

    return self.contiguous(memory_format=memory_format), backward


@table.gradient("transpose.int")
def transpose_gradient(self: Tensor, dim0: int, dim1: int):
    def backward(grad: Tensor):
        return grad.transpose(dim0, dim1), None, None

    return self.transpose(dim0, dim1), backward


@table.gradient("swapaxes")
def swapaxes_gradient(self: Tensor, axis0: int, axis1: int):
    def backward(grad: Tensor):
        return grad.transpose(axis0, axis1), None, None

    return self.transpose(axis0, axis1), backward


@table.gradient("swapdims")
def swapdims_gradient(self: Tensor, dim0: int, dim1: int):
    def backward(grad: Tensor):
        return grad.transpose(dim0, dim1), None, None

    return self.transpose(dim0, dim1), backward


@table.gradient("t")
def t_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.t()

    return self.t(), backward


@table.gradient("mT mT.a")
def mT_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.mT

    return self.mT, backward


@table.gradient("mH mH.a adjoint")
def mH_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.adjoint(grad)

    return torch.adjoint(self), backward


@table.gradient("matrix_H matrix_H.a")
def matrix_H_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.matrix_H(grad)

    return torch.matrix_H(self), backward


@table.gradient("numpy_T numpy_T.a")
def numpy_T_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.numpy_T(grad)

    return torch.numpy_T(self), backward


@table.gradient("permute")
def permute_gradient(self: Tensor, dims: list[int]):
    inverse = [0 for dim in dims]
    for place in range(len(dims)):
        inverse[dims[place]] = place

    def backward(grad: Tensor):
        return grad.permute(inverse), None

    return self.permute(dims), backward


@table.gradient("movedim.int moveaxis.int")
def movedim_gradient(self: Tensor, source: int, destination: int):
    def backward(grad: Tensor):
        return torch.movedim(grad, destination, source), None, None

    return torch.movedim(self, source, destination), backward


@table.gradient("movedim.intlist moveaxis.intlist")
def movedims_gradient(self: Tensor, source: list[int], destination: list[int]):
    def backward(grad: Tensor):
        return torch.movedim(grad, destination, source), None, None

    return torch.movedim(self, source, destination), backward


@table.gradient("squeeze")
def squeeze_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return self.squeeze(), backward


@table.gradient("squeeze.dim")
def squeeze_dim_gradient(self: Tensor, dim: int):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return self.squeeze(dim), backward


@table.gradient("squeeze.dims")
def squeeze_dims_gradient(self: Tensor, dim: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size), None

    return self.squeeze(dim), backward


@table.gradient("unsqueeze")
def unsqueeze_gradient(self: Tensor, dim: int):
    def backward(grad: Tensor):
        return grad.squeeze(dim), None

    return self.unsqueeze(dim), backward


@table.gradient("expand")
def expand_gradient(self: Tensor, size: list[int], implicit: bool):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(own_size), None, None

    return self.expand(size, implicit=implicit), backward


@table.gradient("expand_as")
def expand_as_gradient(self: Tensor, other: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(size), None

    return self.expand_as(other), backward


@table.gradient("broadcast_to")
def broadcast_to_gradient(self: Tensor, size: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(own_size), None

    return self.broadcast_to(size), backward


@table.gradient("select.int")
def select_gradient(self: Tensor, dim: int, index: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.select_backward(grad, size, dim, index), None, None

    return self.select(dim, index), backward


@table.gradient("slice.Tensor")
def slice_gradient(self: Tensor, dim: int, start: int | None, end: int | None, step: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.slice_scatter(grad.new_zeros(size), grad, dim, start, end, step), None, None, None, None

    return torch.slice(self, dim, start, end, step), backward


@table.gradient("narrow")
def narrow_gradient(self: Tensor, dim: int, start: int, length: int):
    size = self.size()
    first = start if start >= 0 else start + self.size(dim)

    def backward(grad: Tensor):
        return torch.slice_backward(grad, size, dim, first, first + length, 1), None, None, None

    return self.narrow(dim, start, length), backward


@table.gradient("narrow.Tensor")
def narrow_tensor_gradient(self: Tensor, dim: int, start: Tensor, length: int):
    size = self.size()
    first = int(start)
    if first < 0:
        first = first + self.size(dim)

    def backward(grad: Tensor):
        return torch.slice_backward(grad, size, dim, first, first + length, 1), None, None, None

    return self.narrow(dim, start, length), backward


@table.gradient("diagonal")
def diagonal_gradient(self: Tensor, offset: int, dim1: int, dim2: int):
    size = self.size()

    def backward(grad: Tensor):
        return torch.diagonal_backward(grad, size, offset, dim1, dim2), None, None, None

    return self.diagonal(offset, dim1, dim2), backward


@table.gradient("linalg_diagonal")
def linalg_diagonal_gradient(A: Tensor, offset: int, dim1: int, dim2: int):
    size = A.size()

    def backward(grad: Tensor):
        return torch.diagonal_backward(grad, size, offset, dim1, dim2), None, None, None

    return torch.linalg_diagonal(A, offset=offset, dim1=dim1, dim2=dim2), backward


@table.gradient("unfold")
def unfold_gradient(self: Tensor, dimension: int, size: int, step: int):
    own_size = self.size()

    def backward(grad: Tensor):
        return torch.unfold_backward(grad, own_size, dimension, size, step), None, None, None

    return self.unfold(dimension, size, step), backward


@table.gradient("as_strided")
def as_strided_gradient(self: Tensor, size: list[int], stride: list[int], storage_offset: int | None):
    own_size, own_stride, own_offset = self.size(), self.stride(), self.storage_offset()

    def backward(grad: Tensor):
        begin = own_offset
        if storage_offset is not None:
            begin = storage_offset
        room = 1
        for place in range(len(own_size)):
            room = max(room, own_offset + 1)
            room = room + (own_size[place] - 1) * own_stride[place]
        reach = begin + 1
        for place in range(len(size)):
            reach = reach + (size[place] - 1) * stride[place]
        memory = grad.new_zeros([max(room + own_offset, reach)])
        places = torch.arange(memory.numel(), device=grad.device)
        source = torch.as_strided(places, size, stride, begin).reshape([-1])
        memory = memory.index_add(0, source, grad.reshape([-1]))
        target = torch.as_strided(places, own_size, own_stride, own_offset).reshape([-1])
        return memory.index_select(0, target).reshape(own_size), None, None, None

    return torch.as_strided(self, size, stride, storage_offset), backward


@table.gradient("view_as_real")
def view_as_real_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.view_as_complex(torch.real(grad).contiguous()).conj()

    return torch.view_as_real(self), backward


@table.gradient("view_as_complex")
def view_as_complex_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.view_as_real(grad.conj().resolve_conj())

    return torch.view_as_complex(self), backward


table.no_gradient("the bits mean something else", "view.dtype")
table.no_gradient("a fact about the tensor", "size sym_size len dim numel sym_numel _shape_as_tensor stride sym_stride storage_offset "
                  "sym_storage_offset is_contiguous is_non_overlapping_and_dense is_same_size")
