"""Gradients of choosing, filling and putting elements by index or mask."""
from __future__ import annotations

from irtool.ops.kernels.indexing import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("index.Tensor _unsafe_index.Tensor")
def index_gradient(self: Tensor, indices: list[Tensor | None]):
    size = self.size()

    def backward(grad: Tensor):
        return torch.index_put(grad.new_zeros(size), indices, grad, True), None

    return torch.index(self, indices), backward


@table.gradient("index.Tensor_hacked_twin _unsafe_index.Tensor_hacked_twin")
def index_all_gradient(self: Tensor, indices: list[Tensor]):
    size = self.size()

    def backward(grad: Tensor):
        return torch.index_put(grad.new_zeros(size), indices, grad, True), None

    return torch.index(self, indices), backward


@table.gradient("index_put _unsafe_index_put index_put_")
def index_put_gradient(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool):
    values_size = values.size()

    def backward(grad: Tensor):
        self_grad = grad
        if not accumulate:
            self_grad = torch.index_put(grad, indices, torch.scalar_tensor(0, dtype=grad.dtype, device=grad.device), False)
        return self_grad, None, torch.index(grad, indices).sum_to_size(values_size), None

    return torch.index_put(self, indices, values, accumulate), backward


@table.gradient("index_put.hacked_twin _unsafe_index_put.hacked_twin index_put_.hacked_twin")
def index_put_all_gradient(self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool):
    values_size = values.size()

    def backward(grad: Tensor):
        self_grad = grad
        if not accumulate:
            self_grad = torch.index_put(grad, indices, torch.scalar_tensor(0, dtype=grad.dtype, device=grad.device), False)
        return self_grad, None, torch.index(grad, indices).sum_to_size(values_size), None

    return torch.index_put(self, indices, values, accumulate), backward


@table.gradient("_index_put_impl _index_put_impl_ _index_put_impl_.hacked_twin")
def index_put_impl_gradient(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool, unsafe: bool):
    values_size = values.size()

    def backward(grad: Tensor):
        self_grad = grad
        if not accumulate:
            self_grad = torch.index_put(grad, indices, torch.scalar_tensor(0, dtype=grad.dtype, device=grad.device), False)
        return self_grad, None, torch.index(grad, indices).sum_to_size(values_size), None, None

    return torch.index_put(self, indices, values, accumulate), backward


@table.gradient("_unsafe_masked_index")
def unsafe_masked_index_gradient(self: Tensor, mask: Tensor, indices: list[Tensor | None], fill: number):
    size = self.size()

    def backward(grad: Tensor):
        return torch._unsafe_masked_index_put_accumulate(grad.new_zeros(size), mask, indices, grad), None, None, None

    return torch._unsafe_masked_index(self, mask, indices, fill), backward


@table.gradient("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_gradient(self: Tensor, mask: Tensor, indices: list[Tensor | None], values: Tensor):
    values_size = values.size()

    def backward(grad: Tensor):
        return grad, None, None, torch._unsafe_masked_index(grad, mask, indices, 0).sum_to_size(values_size)

    return torch._unsafe_masked_index_put_accumulate(self, mask, indices, values), backward


@table.gradient("index_select")
def index_select_gradient(self: Tensor, dim: int, index: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return torch.index_add(grad.new_zeros(size), dim, index, grad), None, None

    return torch.index_select(self, dim, index), backward


@table.gradient("index_select_backward")
def index_select_backward_gradient(grad: Tensor, self_sizes: list[int], dim: int, index: Tensor):
    def backward(again: Tensor):
        return torch.index_select(again, dim, index), None, None, None

    return torch.index_select_backward(grad, self_sizes, dim, index), backward


@table.gradient("index_add")
def index_add_gradient(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: number):
    source_size = source.size()

    def backward(grad: Tensor):
        return grad, None, None, (torch.index_select(grad, dim, index) * alpha).reshape(source_size), None

    return torch.index_add(self, dim, index, source, alpha=alpha), backward


@table.gradient("index_copy")
def index_copy_gradient(self: Tensor, dim: int, index: Tensor, source: Tensor):
    source_size = source.size()

    def backward(grad: Tensor):
        return torch.index_fill(grad, dim, index, 0), None, None, torch.index_select(grad, dim, index).reshape(source_size)

    return torch.index_copy(self, dim, index, source), backward


@table.gradient("index_fill.int_Scalar")
def index_fill_gradient(self: Tensor, dim: int, index: Tensor, value: number):
    def backward(grad: Tensor):
        return torch.index_fill(grad, dim, index, 0), None, None, None

    return torch.index_fill(self, dim, index, value), backward


@table.gradient("index_fill.int_Tensor")
def index_fill_tensor_gradient(self: Tensor, dim: int, index: Tensor, value: Tensor):
    def backward(grad: Tensor):
        for_self = torch.index_fill(grad, dim, index, 0)
        return for_self, None, None, (grad - for_self).sum()

    return torch.index_fill(self, dim, index, value), backward


@table.gradient("gather")
def gather_gradient(self: Tensor, dim: int, index: Tensor, sparse_grad: bool):
    size = self.size()

    def backward(grad: Tensor):
        return torch.scatter_add(grad.new_zeros(size), dim, index, grad), None, None, None

    return torch.gather(self, dim, index), backward


@table.gradient("gather_backward")
def gather_backward_gradient(grad: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool):
    def backward(again: Tensor):
        return torch.gather(again, dim, index), torch.zeros_like(again), None, None, None

    return torch.gather_backward(grad, self, dim, index, sparse_grad), backward


@table.gradient("take_along_dim")
def take_along_dim_gradient(self: Tensor, indices: Tensor, dim: int | None):
    size = self.size()

    def backward(grad: Tensor):
        if dim is None:
            for_self = grad.new_zeros([self.numel()]).scatter_add(0, indices.reshape([-1]) % self.numel(), grad.reshape([-1])).reshape(size)
        else:
            at = dim if dim >= 0 else dim + len(size)
            wide = [length for length in grad.size()]
            wide[at] = size[at]
            narrow = [length for length in grad.size()]
            places = indices.expand(narrow) % size[at]
            for_self = grad.new_zeros(wide).scatter_add(at, places, grad).sum_to_size(size)
        return for_self, None, None

    return torch.take_along_dim(self, indices, dim), backward


@table.gradient("take")
def take_gradient(self: Tensor, index: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return torch.put(grad.new_zeros(size), index, grad, True), None

    return torch.take(self, index), backward


@table.gradient("put")
def put_gradient(self: Tensor, index: Tensor, source: Tensor, accumulate: bool):
    source_size = source.size()

    def backward(grad: Tensor):
        self_grad = grad
        if not accumulate:
            self_grad = torch.put(grad, index, torch.zeros(source_size, dtype=grad.dtype, device=grad.device), False)
        return self_grad, None, torch.take(grad, index).reshape(source_size), None

    return torch.put(self, index, source, accumulate), backward


@table.gradient("masked_fill.Scalar")
def masked_fill_gradient(self: Tensor, mask: Tensor, value: number):
    size = self.size()

    def backward(grad: Tensor):
        return torch.masked_fill(grad, mask, 0).sum_to_size(size), None, None

    return torch.masked_fill(self, mask, value), backward


@table.gradient("masked_fill.Tensor")
def masked_fill_tensor_gradient(self: Tensor, mask: Tensor, value: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return torch.masked_fill(grad, mask, 0).sum_to_size(size), None, torch.where(mask, grad, torch.zeros_like(grad)).sum()

    return torch.masked_fill(self, mask, value), backward


@table.gradient("masked_select")
def masked_select_gradient(self: Tensor, mask: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        wide = torch._infer_size(size, mask.size())
        return torch.masked_scatter(grad.new_zeros(wide), mask, grad).sum_to_size(size), None

    return torch.masked_select(self, mask), backward


@table.gradient("masked_select_backward")
def masked_select_backward_gradient(grad: Tensor, input: Tensor, mask: Tensor):
    def backward(again: Tensor):
        return torch.masked_select(again, mask), torch.zeros_like(again), None

    return torch.masked_select_backward(grad, input, mask), backward


@table.gradient("masked_scatter")
def masked_scatter_gradient(self: Tensor, mask: Tensor, source: Tensor):
    size, source_size = self.size(), source.size()

    def backward(grad: Tensor):
        taken = torch.masked_scatter_backward(grad, mask, source_size)
        return torch.masked_fill(grad, mask, 0).sum_to_size(size), None, taken

    return torch.masked_scatter(self, mask, source), backward


@table.gradient("masked_scatter_backward")
def masked_scatter_backward_gradient(grad_output: Tensor, mask: Tensor, sizes: list[int]):
    def backward(grad: Tensor):
        return torch.masked_scatter(torch.zeros_like(grad_output), mask, grad), None, None

    return torch.masked_scatter_backward(grad_output, mask, sizes), backward


table.no_gradient("places are whole numbers", "nonzero argwhere nonzero_numpy where nonzero_static")
