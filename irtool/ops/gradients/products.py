"""Gradients of products of many matrices, of groups of matrices, and of the gradients of products."""
from __future__ import annotations

from irtool.ops.kernels.matmul import table
from irtool.ops.tensor import Tensor, torch

# ---- chains

def factors_back(grad: Tensor, factors: list[Tensor]) -> list[Tensor]:
    """Gradient of a product of matrices for each of them: the factors on its left and right, transposed, around the gradient."""
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


table.derivative("chain_matmul", lambda grad, matrices: factors_back(grad, matrices))


@table.derivative("linalg_multi_dot")
def multi_dot_gradient(grad, tensors):
    count = len(tensors)
    first, last = tensors[0], tensors[count - 1]
    if first.dim() == 1:
        first = first.unsqueeze(0)
    if last.dim() == 1:
        last = last.unsqueeze(1)
    factors = [first] + tensors[1:count - 1] + [last]
    for_factors = factors_back(grad.reshape([first.size(0), last.size(1)]), factors)
    return [for_factors[place].reshape(tensors[place].size()) for place in range(count)]


# ---- three tensors

def grown(x: Tensor, dims: list[int], rank: int) -> Tensor:
    """With dimensions of 1 put in at the places `dims` of `rank`."""
    for dim in range(rank):
        if dim in dims or dim - rank in dims:
            x = x.unsqueeze(dim)
    return x


def shrunk(whole: Tensor, size: list[int], dims: list[int]) -> Tensor:
    """A gradient summed over inserted and broadcast dimensions."""
    if len(dims) > 0:
        whole = whole.sum(dims)
    return whole.sum_to_size(size)


@table.derivative("_trilinear")
def trilinear_gradient(grad, i1, i2, i3, expand1, expand2, expand3, sumdim):
    rank = i1.dim() + len(expand1)
    first, second, third = grown(i1, expand1, rank), grown(i2, expand2, rank), grown(i3, expand3, rank)
    spread = grown(grad, sumdim, rank)
    ones = torch.ones_like(first) * torch.ones_like(second) * torch.ones_like(third)
    return (shrunk(spread * second * third * ones, i1.size(), expand1),
            shrunk(spread * first * third * ones, i2.size(), expand2),
            shrunk(spread * first * second * ones, i3.size(), expand3))


# ---- products given in a wider dtype

@table.derivative("mm.dtype")
def wide_mm_gradient(grad, self, mat2):
    wide = grad.to(self.dtype)
    return wide.mm(mat2.t()), self.t().mm(wide)


@table.derivative("bmm.dtype")
def wide_bmm_gradient(grad, self, mat2):
    wide = grad.to(self.dtype)
    return wide.bmm(mat2.transpose(1, 2)), self.transpose(1, 2).bmm(wide)


@table.derivative("addmm.dtype")
def wide_addmm_gradient(grad, mat1, mat2, beta, alpha, self_size, self_dtype):
    wide = grad.to(mat1.dtype) * alpha
    return (grad * beta).sum_to_size(self_size).to(self_dtype), wide.mm(mat2.t()), mat1.t().mm(wide)


@table.derivative("baddbmm.dtype")
def wide_baddbmm_gradient(grad, batch1, batch2, beta, alpha, self_size, self_dtype):
    wide = grad.to(batch1.dtype) * alpha
    return (grad * beta).sum_to_size(self_size).to(self_dtype), wide.bmm(batch2.transpose(1, 2)), batch1.transpose(1, 2).bmm(wide)


# ---- groups

@table.derivative("_grouped_mm")
def grouped_mm_gradient(grad, self, mat2, offs):
    return torch._grouped_mm(grad, mat2.mT, offs), torch._grouped_mm(self.mT, grad, offs), None, None


# ---- gradients of products

@table.derivative("linear_backward")
def linear_backward_gradient(grad_input, grad_weight, grad_bias, self, grad_output, weight):
    second_self, second_grad, second_weight = torch.zeros_like(self), torch.zeros_like(grad_output), torch.zeros_like(weight)
    if grad_input is not None:
        second_grad = second_grad + torch.matmul(grad_input, weight.t())
        second_weight = grad_output.reshape([-1, weight.size(0)]).t().mm(grad_input.reshape([-1, weight.size(1)]))
    if grad_weight is not None:
        second_grad = second_grad + torch.matmul(self, grad_weight.t())
        second_self = torch.matmul(grad_output, grad_weight)
    if grad_bias is not None:
        second_grad = second_grad + grad_bias
    return second_self, second_grad, second_weight


@table.derivative("matmul_backward")
def matmul_backward_gradient(grad_self, grad_other, grad, self, other):
    second_grad, second_self, second_other = torch.zeros_like(grad), torch.zeros_like(self), torch.zeros_like(other)
    if grad_self is not None:
        second_grad = second_grad + torch.matmul(grad_self, other)
        second_other = torch.matmul_backward(grad, grad_self, other, [False, True])[1]
    if grad_other is not None:
        second_grad = second_grad + torch.matmul(self, grad_other)
        second_self = torch.matmul_backward(grad, self, grad_other, [True, False])[0]
    return second_grad, second_self, second_other
