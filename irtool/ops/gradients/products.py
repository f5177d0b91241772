"""Gradients of products of many matrices, of groups of matrices, and of the gradients of products."""
from __future__ import annotations

from irtool.ops.kernels.matmul import table
from irtool.ops.tensor import Tensor, number, torch

# ---- chains

def factors_back(grad: Tensor, factors: list[Tensor]) -> list[Tensor]:
    """Gradient of a product of matrices for each of them: what stands left and right of it, transposed, around the gradient."""
    count = len(factors)
    behind = [factors[count - 1]]       # products from the last factor back
    for back in range(count - 2):
        behind = behind + [factors[count - 2 - back] @ behind[back]]
    for_factors: list[Tensor] = []
    left = grad
    for place in range(count - 1):
        for_factors = for_factors + [left @ behind[count - 2 - place].t()]
        left = factors[place].t() @ left
    return for_factors + [left]


@table.gradient("chain_matmul")
def chain_matmul_gradient(matrices: list[Tensor]):
    def backward(grad: Tensor):
        return factors_back(grad, matrices)

    return torch.chain_matmul(matrices), backward


@table.gradient("linalg_multi_dot")
def multi_dot_gradient(tensors: list[Tensor]):
    def backward(grad: Tensor):
        count = len(tensors)
        first, last = tensors[0], tensors[count - 1]
        if first.dim() == 1:
            first = first.unsqueeze(0)
        if last.dim() == 1:
            last = last.unsqueeze(1)
        factors = [first] + tensors[1:count - 1] + [last]
        for_factors = factors_back(grad.reshape([first.size(0), last.size(1)]), factors)
        return [for_factors[place].reshape(tensors[place].size()) for place in range(count)]

    return torch.linalg_multi_dot(tensors), backward


# ---- three tensors

def grown(x: Tensor, dims: list[int], rank: int) -> Tensor:
    """With dimensions of 1 put in at the places `dims` of `rank`."""
    for dim in range(rank):
        if dim in dims or dim - rank in dims:
            x = x.unsqueeze(dim)
    return x


def shrunk(whole: Tensor, size: list[int], dims: list[int]) -> Tensor:
    """A gradient summed over the dimensions put in, and where the tensor was broadcast."""
    if len(dims) > 0:
        whole = whole.sum(dims)
    return whole.sum_to_size(size)


@table.gradient("_trilinear")
def trilinear_gradient(i1: Tensor, i2: Tensor, i3: Tensor, expand1: list[int], expand2: list[int], expand3: list[int],
                       sumdim: list[int], unroll_dim: int):
    def backward(grad: Tensor):
        rank = i1.dim() + len(expand1)
        first, second, third = grown(i1, expand1, rank), grown(i2, expand2, rank), grown(i3, expand3, rank)
        spread = grown(grad, sumdim, rank)
        ones = torch.ones_like(first) * torch.ones_like(second) * torch.ones_like(third)
        return (shrunk(spread * second * third * ones, i1.size(), expand1), shrunk(spread * first * third * ones, i2.size(), expand2),
                shrunk(spread * first * second * ones, i3.size(), expand3), None, None, None, None, None)

    return torch._trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim), backward


# ---- products given in a wider dtype

@table.gradient("mm.dtype")
def wide_mm_gradient(self: Tensor, mat2: Tensor, out_dtype: int):
    def backward(grad: Tensor):
        wide = grad.to(self.dtype)
        return wide.mm(mat2.t()), self.t().mm(wide), None

    return torch.mm(self, mat2, out_dtype), backward


@table.gradient("bmm.dtype")
def wide_bmm_gradient(self: Tensor, mat2: Tensor, out_dtype: int):
    def backward(grad: Tensor):
        wide = grad.to(self.dtype)
        return wide.bmm(mat2.transpose(1, 2)), self.transpose(1, 2).bmm(wide), None

    return torch.bmm(self, mat2, out_dtype), backward


@table.gradient("addmm.dtype")
def wide_addmm_gradient(self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: int, beta: number, alpha: number):
    size, self_dtype = self.size(), self.dtype

    def backward(grad: Tensor):
        wide = grad.to(mat1.dtype) * alpha
        return (grad * beta).sum_to_size(size).to(self_dtype), wide.mm(mat2.t()), mat1.t().mm(wide), None, None, None

    return torch.addmm(self, mat1, mat2, out_dtype, beta=beta, alpha=alpha), backward


@table.gradient("baddbmm.dtype")
def wide_baddbmm_gradient(self: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: int, beta: number, alpha: number):
    size, self_dtype = self.size(), self.dtype

    def backward(grad: Tensor):
        wide = grad.to(batch1.dtype) * alpha
        return ((grad * beta).sum_to_size(size).to(self_dtype), wide.bmm(batch2.transpose(1, 2)), batch1.transpose(1, 2).bmm(wide), None,
                None, None)

    return torch.baddbmm(self, batch1, batch2, out_dtype, beta=beta, alpha=alpha), backward


# ---- groups

@table.gradient("_grouped_mm")
def grouped_mm_gradient(self: Tensor, mat2: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: int | None):
    def backward(grad: Tensor):
        # whether groups are rows, columns, or what is summed over: the gradients are products of groups of the other sorts
        return torch._grouped_mm(grad, mat2.mT, offs), torch._grouped_mm(self.mT, grad, offs), None, None, None

    return torch._grouped_mm(self, mat2, offs, bias, out_dtype), backward


# ---- gradients of products

@table.gradient("linear_backward")
def linear_backward_gradient(self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: list[bool]):
    for_input, for_weight, for_bias = torch.linear_backward(self, grad_output, weight, output_mask)

    def backward(grad_input: Tensor | None, grad_weight: Tensor | None, grad_bias: Tensor | None):
        second_self, second_grad, second_weight = torch.zeros_like(self), torch.zeros_like(grad_output), torch.zeros_like(weight)
        if grad_input is not None:
            second_grad = second_grad + torch.matmul(grad_input, weight.t())
            second_weight = grad_output.reshape([-1, weight.size(0)]).t().mm(grad_input.reshape([-1, weight.size(1)]))
        if grad_weight is not None:
            second_grad = second_grad + torch.matmul(self, grad_weight.t())
            second_self = torch.matmul(grad_output, grad_weight)
        if grad_bias is not None:
            second_grad = second_grad + grad_bias
        return second_self, second_grad, second_weight, None

    return for_input, for_weight, for_bias, backward


@table.gradient("matmul_backward")
def matmul_backward_gradient(grad: Tensor, self: Tensor, other: Tensor, mask: list[bool]):
    for_self, for_other = torch.matmul_backward(grad, self, other, mask)

    def backward(grad_self: Tensor | None, grad_other: Tensor | None):
        second_grad, second_self, second_other = torch.zeros_like(grad), torch.zeros_like(self), torch.zeros_like(other)
        if grad_self is not None:
            second_grad = second_grad + torch.matmul(grad_self, other)
            second_other = torch.matmul_backward(grad, grad_self, other, [False, True])[1]
        if grad_other is not None:
            second_grad = second_grad + torch.matmul(self, grad_other)
            second_self = torch.matmul_backward(grad, self, grad_other, [True, False])[0]
        return second_grad, second_self, second_other, None

    return for_self, for_other, backward
