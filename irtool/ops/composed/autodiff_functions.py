"""The functions torch's own gradient graphs call by name: `Function = prim::Constant[name="AD_matmul_bw_size"]()`.

Their bodies are TorchScript inside torch (runtime/symbolic_script.cpp) and never stand in a text, so they are here, by the same names.
"""
from typing import List, Optional, Tuple

from irtool.ops.composed.script_types import number
from irtool.ops.tensor import Tensor, torch


def AD_unsqueeze_multiple(t: Tensor, dims: List[int], n_dims: int) -> Tensor:
    """`t` with the dimensions `dims` (of the `n_dims` it then has) put back as 1."""
    seen = [False for i in range(n_dims)]
    for dim in dims:
        seen[dim % n_dims] = True
    for d in range(n_dims):
        if seen[d]:
            t = t.unsqueeze(d)
    return t


def AD_sum_backward(grad: Tensor, sizes: List[int], dims: Optional[List[int]], keepdim: bool) -> Tensor:
    """The gradient of a sum over `dims`: repeated."""
    if not keepdim and len(sizes) > 0 and dims is not None:
        grad = AD_unsqueeze_multiple(grad, dims, len(sizes))
    return grad.expand(sizes)


def AD_logsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    """grad * exp(self - result), the reduced dimensions put back."""
    if not keepdim and self.dim() != 0:
        n_dims = len(self.size())
        grad = AD_unsqueeze_multiple(grad, dim, n_dims)
        result = AD_unsqueeze_multiple(result, dim, n_dims)
    return grad * (self - result).exp()


def AD_bool_to_int(b: bool) -> int:
    """A condition as a number."""
    return int(b)


def AD_safe_size(sizes: List[int], dims: Optional[List[int]]) -> int:
    """Number of elements along `dims` (all when None), 1 for a 0-d shape."""
    size = 1
    if len(sizes) != 0:
        if dims is None:
            for s in sizes:
                size *= s
        else:
            for d in dims:
                size *= sizes[d]
    return size


def AD_var_backward_0(grad: Tensor, self: Tensor, correction: number) -> Tensor:
    """The gradient of the variance of all elements."""
    return grad * (self - self.mean()) * 2.0 / (self.numel() - correction)


def AD_var_backward_1(grad: Tensor, self: Tensor, dim: List[int], correction: number, keepdim: bool) -> Tensor:
    """The gradient of the variance along `dim`."""
    if self.dim() == 0:
        return AD_var_backward_0(grad, self, correction)
    if not keepdim and self.dim() > 1:
        grad = AD_unsqueeze_multiple(grad, dim, len(self.size()))
    return grad * (self - self.mean(dim, True)) * 2.0 / (AD_safe_size(self.size(), dim) - correction)


def AD_var_backward_2(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool) -> Tensor:
    """The same with everything optional."""
    if correction is None:
        correction = 1
    if self.dim() == 0 or dim is None:
        return AD_var_backward_0(grad, self, correction)
    return AD_var_backward_1(grad, self, dim, correction, keepdim)


def AD_index_select_backward(grad: Tensor, dim: int, indices: Tensor, sizes: List[int], keepdim: bool) -> Tensor:
    """Zeros with `grad` scattered along `dim`."""
    if not keepdim and len(sizes) > 0:
        grad = grad.unsqueeze(dim)
        indices = indices.unsqueeze(dim)
    return torch.zeros(sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device).scatter(dim, indices, grad)


def AD_permute_backward(grad: Tensor, fwd_dims: List[int]) -> Tensor:
    """The inverse permutation."""
    dims = [0 for i in range(len(fwd_dims))]
    for i in range(len(fwd_dims)):
        dims[fwd_dims[i]] = i
    return grad.permute(dims)


def AD_mm_backward_self(grad: Tensor, mat2: Tensor) -> Tensor:
    """The gradient of the left factor of a product."""
    return grad.mm(mat2.t())


def AD_mm_backward_mat2(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of the right factor."""
    return self.t().mm(grad)


def AD_mat_transpose(mat: Tensor) -> Tensor:
    """The last two dimensions exchanged; vectors stay."""
    if mat.dim() < 2:
        return mat
    return mat.transpose(-2, -1)


def AD_bmm_backward_self(grad: Tensor, mat2: Tensor) -> Tensor:
    """The gradient of the left factors of a batch of products."""
    return grad.bmm(AD_mat_transpose(mat2))


def AD_bmm_backward_mat2(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient of the right factors."""
    return AD_mat_transpose(self).bmm(grad)


def AD_select_backward(grad: Tensor, input_sizes: List[int], dim: int, index: int) -> Tensor:
    """Zeros with `grad` at one index."""
    result = torch.zeros(input_sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device)
    result.select(dim, index).copy_(grad)
    return result


def AD_slice_backward(grad: Tensor, input_sizes: List[int], dim: int, start: int, end: int, step: int) -> Tensor:
    """Zeros with `grad` in a slice."""
    result = torch.zeros(input_sizes, dtype=grad.dtype, layout=grad.layout, device=grad.device)
    result.slice(dim, start, end, step).copy_(grad)
    return result


def AD_unsqueeze_to_0(self: Tensor, sizes: List[int]) -> Tensor:
    """Dimensions of size 1 put back."""
    for i in range(len(sizes)):
        if sizes[i] == 1:
            self = self.unsqueeze(i)
    return self


def AD_unsqueeze_to_1(self: Tensor, dim: int, sizes: List[int]) -> Tensor:
    """One dimension put back where it had size 1."""
    if len(sizes) > 0 and sizes[dim] == 1:
        return self.unsqueeze(dim)
    return self


def AD_infer_size(a: List[int], b: List[int]) -> List[int]:
    """The shape that two shapes broadcast to."""
    return torch._infer_size(a, b)


def AD_matmul_bw_special_fold(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Sum over the batch of products, as one product of folded matrices."""
    turned = AD_mat_transpose(mat1)
    folded = turned.reshape([-1, turned.size(-1)])
    return folded.t().mm(mat2.reshape([-1, mat2.size(-1)]))


def AD_matmul_bw_size(mat1: Tensor, mat2: Tensor, out_size: List[int]) -> Tensor:
    """The product of two factors of a matmul's gradient, which is to become `out_size`."""
    dim1, dim2, dim_out = mat1.dim(), mat2.dim(), len(out_size)
    if dim1 == 0 or dim2 == 0:
        out = mat1 * mat2
    elif dim_out == 2 and dim1 == dim2 and dim1 >= 3:
        out = AD_matmul_bw_special_fold(mat1, mat2)
    elif dim_out == 1 and dim1 - dim2 == 1 and dim1 >= 3:
        out = AD_matmul_bw_special_fold(mat1, mat2.unsqueeze(-1)).squeeze(-1)
    elif dim1 + dim2 == dim_out:
        if dim2 == 1:
            target = 0
        else:
            target = -2
        out = torch.matmul(mat1.unsqueeze(dim1), mat2.unsqueeze(target))
    elif dim_out == dim1 - dim2:
        out = torch.matmul(mat1, mat2.unsqueeze(dim2)).squeeze(-1)
    elif dim_out == dim2 - dim1:
        out = torch.matmul(mat1.unsqueeze(-2), mat2).squeeze(-2)
    else:
        out = torch.matmul(mat1, mat2)
    return out


def AD_adaptive_avg_pool2d_backward(grad: Tensor, self: Tensor, output_size: List[int]) -> Tensor:
    """The gradient of adaptive_avg_pool2d."""
    if output_size[0] == 1 and output_size[1] == 1:
        return grad.expand(self.size()) / (self.size(-1) * self.size(-2))
    return torch._adaptive_avg_pool2d_backward(grad, self)


def AD_adaptive_avg_pool3d_backward(grad: Tensor, self: Tensor, output_size: List[int]) -> Tensor:
    """The gradient of adaptive_avg_pool3d."""
    if output_size[0] == 1 and output_size[1] == 1 and output_size[2] == 1:
        return grad.expand(self.size()) / (self.size(-1) * self.size(-2) * self.size(-3))
    return torch._adaptive_avg_pool3d_backward(grad, self)


def AD_adaptive_avg_pool1d_backward(grad: Tensor, input: Tensor, output_size: List[int]) -> Tensor:
    """The gradient of adaptive_avg_pool1d."""
    lifted = AD_adaptive_avg_pool2d_backward(grad.unsqueeze(2), input.unsqueeze(2), [1, output_size[0]])
    return lifted.squeeze(2)


def AD_sizes_if_not_equal_multi_0(t1: Tensor, t2: Tensor, result: Tensor) -> Tuple[Optional[List[int]], Optional[List[int]]]:
    """The shapes of two operands, None where it is the result's."""
    return (torch._size_if_not_equal(t1.size(), result.size()), torch._size_if_not_equal(t2.size(), result.size()))


def AD_sizes_if_not_equal_multi_1(t1: Tensor, t2: Tensor, result: Tensor) -> Tuple[Optional[List[int]], Optional[List[int]]]:
    """The shapes of two operands, None where it is the result's."""
    return (torch._size_if_not_equal(t1.size(), result.size()), torch._size_if_not_equal(t2.size(), result.size()))
