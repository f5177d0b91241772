"""The functions torch's own gradient graphs call by name: `Function = prim::Constant[name="AD_matmul_bw_size"]()`.

Their bodies are TorchScript inside torch (runtime/symbolic_script.cpp) and never stand in a text, so they are here, by the same names.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ops.call import call_op


def unsqueeze_multiple(t: Any, dims: list[int], n_dims: int) -> Any:
    """`t` with the dimensions `dims` (of the `n_dims` it then has) put back as 1."""
    seen = {dim % n_dims for dim in dims} if n_dims else set()
    for dim in sorted(seen):
        t = call_op("aten::unsqueeze", [t, dim])
    return t


def sum_backward(grad: Any, sizes: list[int], dims: list[int] | None, keepdim: bool) -> Any:
    """The gradient of a sum over `dims`: repeated."""
    if not keepdim and sizes and dims is not None:
        grad = unsqueeze_multiple(grad, dims, len(sizes))
    return call_op("aten::expand", [grad, sizes])


def logsumexp_backward(grad: Any, self: Any, result: Any, dim: list[int], keepdim: bool) -> Any:
    """grad * exp(self - result), the reduced dimensions put back."""
    if not keepdim and self.ndim:
        grad, result = unsqueeze_multiple(grad, dim, self.ndim), unsqueeze_multiple(result, dim, self.ndim)
    return call_op("aten::mul.Tensor", [grad, call_op("aten::exp", [call_op("aten::sub.Tensor", [self, result])])])


def _centred(grad: Any, self: Any, mean: Any, count: Any) -> Any:
    product = call_op("aten::mul.Tensor", [grad, call_op("aten::sub.Tensor", [self, mean])])
    doubled = call_op("aten::mul.Tensor", [product, 2.0])
    return call_op("aten::div.Tensor", [doubled, count])


def var_backward_0(grad: Any, self: Any, correction: Any) -> Any:
    """The gradient of the variance of all elements."""
    return _centred(grad, self, call_op("aten::mean", [self]), self.size - correction)


def safe_size(sizes: list[int], dims: list[int] | None) -> int:
    """Number of elements along `dims` (all when None), 1 for a 0-d shape."""
    return math.prod(sizes if dims is None else [sizes[dim] for dim in dims]) if sizes else 1


def var_backward_1(grad: Any, self: Any, dim: list[int], correction: Any, keepdim: bool) -> Any:
    """The gradient of the variance along `dim`."""
    if not self.ndim:
        return var_backward_0(grad, self, correction)
    if not keepdim and self.ndim > 1:
        grad = unsqueeze_multiple(grad, dim, self.ndim)
    return _centred(grad, self, call_op("aten::mean.dim", [self, dim, True]), safe_size(list(self.shape), dim) - correction)


def var_backward_2(grad: Any, self: Any, dim: list[int] | None, correction: Any, keepdim: bool) -> Any:
    """The same with everything optional."""
    correction = 1 if correction is None else correction
    if not self.ndim or dim is None:
        return var_backward_0(grad, self, correction)
    return var_backward_1(grad, self, dim, correction, keepdim)


def _zeros(sizes: list[int], grad: Any) -> Any:
    return call_op("aten::new_zeros", [grad, sizes])


def index_select_backward(grad: Any, dim: int, indices: Any, sizes: list[int], keepdim: bool) -> Any:
    """Zeros with `grad` scattered along `dim`."""
    if not keepdim and sizes:
        grad, indices = call_op("aten::unsqueeze", [grad, dim]), call_op("aten::unsqueeze", [indices, dim])
    return call_op("aten::scatter.src", [_zeros(sizes, grad), dim, indices, grad])


def select_backward(grad: Any, input_sizes: list[int], dim: int, index: int) -> Any:
    """Zeros with `grad` at one index."""
    result = _zeros(input_sizes, grad)
    call_op("aten::select.int", [result, dim, index])[...] = grad
    return result


def slice_backward(grad: Any, input_sizes: list[int], dim: int, start: int, end: int, step: int) -> Any:
    """Zeros with `grad` in a slice."""
    result = _zeros(input_sizes, grad)
    call_op("aten::slice.Tensor", [result, dim, start, end, step])[...] = grad
    return result


def permute_backward(grad: Any, fwd_dims: list[int]) -> Any:
    """The inverse permutation."""
    dims = [0] * len(fwd_dims)
    for place, dim in enumerate(fwd_dims):
        dims[dim] = place
    return call_op("aten::permute", [grad, dims])


def unsqueeze_to_0(self: Any, sizes: list[int]) -> Any:
    """Dimensions of size 1 put back."""
    for dim, size in enumerate(sizes):
        if size == 1:
            self = call_op("aten::unsqueeze", [self, dim])
    return self


def unsqueeze_to_1(self: Any, dim: int, sizes: list[int]) -> Any:
    """One dimension put back where it had size 1."""
    return call_op("aten::unsqueeze", [self, dim]) if sizes and sizes[dim] == 1 else self


def mat_transpose(mat: Any) -> Any:
    """The last two dimensions exchanged; vectors stay."""
    return mat if mat.ndim < 2 else call_op("aten::transpose.int", [mat, -2, -1])


def matmul_special_fold(mat1: Any, mat2: Any) -> Any:
    """Sum over the batch of products, as one product of folded matrices."""
    turned = mat_transpose(mat1)
    folded = turned.reshape(-1, turned.shape[-1])
    return call_op("aten::mm", [folded.T, mat2.reshape(-1, mat2.shape[-1])])


def matmul_bw_size(mat1: Any, mat2: Any, out_size: list[int]) -> Any:
    """The product of two factors of a matmul's gradient, which is to become `out_size`."""
    dim1, dim2, dim_out = mat1.ndim, mat2.ndim, len(out_size)
    if not dim1 or not dim2:
        return call_op("aten::mul.Tensor", [mat1, mat2])
    if dim_out == 2 and dim1 == dim2 and dim1 >= 3:
        return matmul_special_fold(mat1, mat2)
    if dim_out == 1 and dim1 - dim2 == 1 and dim1 >= 3:
        return matmul_special_fold(mat1, mat2[..., None])[..., 0]
    if dim1 + dim2 == dim_out:
        return call_op("aten::matmul", [mat1[..., None], call_op("aten::unsqueeze", [mat2, 0 if dim2 == 1 else -2])])
    if dim_out == dim1 - dim2:
        return call_op("aten::matmul", [mat1, mat2[..., None]])[..., 0]
    if dim_out == dim2 - dim1:
        return call_op("aten::matmul", [call_op("aten::unsqueeze", [mat1, -2]), mat2]).squeeze(-2)
    return call_op("aten::matmul", [mat1, mat2])


def sizes_if_not_equal(t1: Any, t2: Any, result: Any) -> tuple[Any, Any]:
    """The shapes of two operands, None where it is the result's."""
    shape = list(result.shape)
    return (None if list(t1.shape) == shape else list(t1.shape), None if list(t2.shape) == shape else list(t2.shape))


def adaptive_avg_pool2d_backward(grad: Any, self: Any, output_size: list[int]) -> Any:
    """The gradient of adaptive_avg_pool2d."""
    if list(output_size) == [1, 1]:
        return call_op("aten::div.Tensor", [call_op("aten::expand", [grad, list(self.shape)]), self.shape[-1] * self.shape[-2]])
    return call_op("aten::_adaptive_avg_pool2d_backward", [grad, self])


def adaptive_avg_pool3d_backward(grad: Any, self: Any, output_size: list[int]) -> Any:
    """The gradient of adaptive_avg_pool3d."""
    if list(output_size) == [1, 1, 1]:
        count = math.prod(self.shape[-3:])
        return call_op("aten::div.Tensor", [call_op("aten::expand", [grad, list(self.shape)]), count])
    return call_op("aten::_adaptive_avg_pool3d_backward", [grad, self])


def adaptive_avg_pool1d_backward(grad: Any, input: Any, output_size: list[int]) -> Any:
    """The gradient of adaptive_avg_pool1d."""
    lifted = call_op("aten::unsqueeze", [grad, 2]), call_op("aten::unsqueeze", [input, 2])
    return call_op("aten::squeeze.dim", [adaptive_avg_pool2d_backward(*lifted, [1, output_size[0]]), 2])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AD_unsqueeze_multiple": unsqueeze_multiple, "AD_sum_backward": sum_backward, "AD_logsumexp_backward": logsumexp_backward,
    "AD_bool_to_int": int, "AD_var_backward_0": var_backward_0, "AD_safe_size": safe_size, "AD_var_backward_1": var_backward_1,
    "AD_var_backward_2": var_backward_2, "AD_index_select_backward": index_select_backward, "AD_permute_backward": permute_backward,
    "AD_mm_backward_self": lambda grad, mat2: call_op("aten::mm", [grad, mat2.T]),
    "AD_mm_backward_mat2": lambda grad, self: call_op("aten::mm", [self.T, grad]),
    "AD_bmm_backward_self": lambda grad, mat2: call_op("aten::bmm", [grad, mat_transpose(mat2)]),
    "AD_bmm_backward_mat2": lambda grad, self: call_op("aten::bmm", [mat_transpose(self), grad]),
    "AD_select_backward": select_backward, "AD_slice_backward": slice_backward, "AD_unsqueeze_to_0": unsqueeze_to_0,
    "AD_unsqueeze_to_1": unsqueeze_to_1, "AD_infer_size": lambda a, b: call_op("aten::_infer_size", [a, b]),
    "AD_mat_transpose": mat_transpose, "AD_matmul_bw_special_fold": matmul_special_fold, "AD_matmul_bw_size": matmul_bw_size,
    "AD_sizes_if_not_equal_multi_0": sizes_if_not_equal, "AD_sizes_if_not_equal_multi_1": sizes_if_not_equal,
    "AD_adaptive_avg_pool1d_backward": adaptive_avg_pool1d_backward, "AD_adaptive_avg_pool2d_backward": adaptive_avg_pool2d_backward,
    "AD_adaptive_avg_pool3d_backward": adaptive_avg_pool3d_backward,
}
"""Name -> function of the operands."""
