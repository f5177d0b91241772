"""Gradients of choosing, filling and putting elements by index or mask."""
from __future__ import annotations

from irtool.ops.kernels.indexing import table
from irtool.ops.tensor import Tensor, torch

table.derivative("index.Tensor _unsafe_index.Tensor index.Tensor_hacked_twin _unsafe_index.Tensor_hacked_twin",
                 lambda grad, indices, self_size: (torch.index_put(grad.new_zeros(self_size), indices, grad, True), None))


@table.derivative("index_put _unsafe_index_put index_put_ index_put.hacked_twin _unsafe_index_put.hacked_twin index_put_.hacked_twin "
                  "_index_put_impl _index_put_impl_")
def index_put_gradient(grad, indices, accumulate, values_size):
    self_grad = grad
    if not accumulate:
        self_grad = torch.index_put(grad, indices, grad.new_zeros(values_size), False)
    return self_grad, None, torch.index(grad, indices).sum_to_size(values_size)


@table.gradient("_index_put_impl_.hacked_twin")
def index_put_impl_gradient(self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool, unsafe: bool):
    values_size = values.size()

    def backward(grad: Tensor):
        self_grad = grad
        if not accumulate:
            self_grad = torch.index_put(grad, indices, grad.new_zeros(values_size), False)
        return self_grad, None, torch.index(grad, indices).sum_to_size(values_size), None, None

    return torch.index_put(self, indices, values, accumulate), backward


@table.derivative("_unsafe_masked_index")
def unsafe_masked_index_gradient(grad, mask, indices, self_size):
    return torch._unsafe_masked_index_put_accumulate(grad.new_zeros(self_size), mask, indices, grad), None, None


@table.derivative("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_gradient(grad, mask, indices, values_size):
    return grad, None, None, torch._unsafe_masked_index(grad, mask, indices, 0).sum_to_size(values_size)


table.derivative("index_select", lambda grad, dim, index, self_size: (torch.index_add(grad.new_zeros(self_size), dim, index, grad), None))
table.derivative("index_select_backward", lambda again, dim, index: (torch.index_select(again, dim, index), None))


@table.derivative("index_add")
def index_add_gradient(grad, dim, index, alpha, source_size):
    return grad, None, (torch.index_select(grad, dim, index) * alpha).reshape(source_size)


@table.derivative("index_copy")
def index_copy_gradient(grad, dim, index, source_size):
    return torch.index_fill(grad, dim, index, 0), None, torch.index_select(grad, dim, index).reshape(source_size)


table.derivative("index_fill.int_Scalar", lambda grad, dim, index: (torch.index_fill(grad, dim, index, 0), None))


@table.derivative("index_fill.int_Tensor")
def index_fill_tensor_gradient(grad, dim, index):
    for_self = torch.index_fill(grad, dim, index, 0)
    return for_self, None, (grad - for_self).sum()


table.derivative("gather", lambda grad, dim, index, self_size: (torch.scatter_add(grad.new_zeros(self_size), dim, index, grad), None))
table.derivative("gather_backward", lambda again, dim, index: (torch.gather(again, dim, index), torch.zeros_like(again), None))


@table.derivative("take_along_dim")
def take_along_dim_gradient(grad, self, indices, dim, self_size):
    if dim is None:
        flat = grad.new_zeros([self.numel()])
        for_self = flat.scatter_add(0, indices.reshape([-1]) % self.numel(), grad.reshape([-1])).reshape(self_size)
    else:
        at = dim if dim >= 0 else dim + len(self_size)
        wide = [length for length in grad.size()]
        wide[at] = self_size[at]
        narrow = [length for length in grad.size()]
        places = indices.expand(narrow) % self_size[at]
        for_self = grad.new_zeros(wide).scatter_add(at, places, grad).sum_to_size(self_size)
    return for_self, None


table.derivative("take", lambda grad, index, self_size: (torch.put(grad.new_zeros(self_size), index, grad, True), None))


@table.derivative("put")
def put_gradient(grad, index, accumulate, source_size):
    self_grad = grad
    if not accumulate:
        self_grad = torch.put(grad, index, torch.zeros(source_size, dtype=grad.dtype, device=grad.device), False)
    return self_grad, None, torch.take(grad, index).reshape(source_size)


table.pointwise("masked_fill.Scalar", lambda grad, mask: (torch.masked_fill(grad, mask, 0), None))


@table.derivative("masked_fill.Tensor")
def masked_fill_tensor_gradient(grad, mask, self_size):
    return torch.masked_fill(grad, mask, 0).sum_to_size(self_size), None, torch.where(mask, grad, torch.zeros_like(grad)).sum()


@table.pointwise("masked_select")
def masked_select_gradient(grad, mask, self_size):
    wide = torch._infer_size(self_size, mask.size())
    return torch.masked_scatter(grad.new_zeros(wide), mask, grad), None


table.derivative("masked_select_backward", lambda again, mask: (torch.masked_select(again, mask), torch.zeros_like(again), None))


@table.derivative("masked_scatter")
def masked_scatter_gradient(grad, mask, self_size, source_size):
    taken = torch.masked_scatter_backward(grad, mask, source_size)
    return torch.masked_fill(grad, mask, 0).sum_to_size(self_size), None, taken


table.derivative("masked_scatter_backward",
                 lambda grad, grad_output, mask: (torch.masked_scatter(torch.zeros_like(grad_output), mask, grad), None))


table.no_gradient("places are whole numbers", "nonzero argwhere nonzero_numpy where nonzero_static")
