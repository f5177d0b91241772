"""Gradients of conversions and copies: the gradient, converted back."""
from __future__ import annotations

from irtool.ops.kernels.cast import table
from irtool.ops.tensor import Tensor, number, torch


@table.derivative("to.dtype to.prim_dtype to.device to.prim_Device to.dtype_layout _to_copy _cast_Half _cast_Float _cast_Double "
                  "_autocast_to_full_precision _autocast_to_reduced_precision")
def to_dtype_gradient(grad, self_dtype):
    return grad.to(self_dtype)


table.derivative("as_tensor", lambda grad, data_dtype: grad.to(data_dtype))
table.derivative("to.prim_other clone alias alias_copy lift lift_fresh lift_fresh_copy _lazy_clone cpu to_dense", lambda grad: grad)
table.derivative("to.other type_as", lambda grad, self_dtype: (grad.to(self_dtype), None))
table.derivative("copy copy_", lambda grad, src_size, src_dtype: (torch.zeros_like(grad), grad.sum_to_size(src_size).to(src_dtype)))
table.derivative("fill.Scalar fill_.Scalar zero zero_", lambda grad: torch.zeros_like(grad))
table.derivative("fill.Tensor fill_.Tensor", lambda grad, value_dtype: (torch.zeros_like(grad), grad.sum().to(value_dtype)))


table.unsupported("pinned memory is not supported", "pin_memory _pin_memory")
table.unsupported("with False it ends the gradients of the tensor for all that reads it later", "requires_grad_")
table.no_gradient("it is asked for without one", "detach detach_copy data")
table.no_gradient("whole numbers", "_cast_Byte _cast_Char _cast_Short _cast_Int _cast_Long")
table.no_gradient("it initialises or resizes memory", "resize_ resize_as_ _no_grad_fill_ _no_grad_zero_")
table.no_gradient("a fact about the tensor", "is_conj is_neg is_inference is_distributed is_coalesced is_pinned element_size")
table.no_gradient("a number has no gradient", "copy_.int copy_.float")


table.derivative("copy_.Tensor",
                 lambda grad, other_size, other_dtype: (torch.zeros_like(grad), grad.sum_to_size(other_size).to(other_dtype)))


@table.gradient("fill_diagonal_")
def fill_diagonal_gradient(self: Tensor, fill_value: number, wrap: bool):
    diagonal = torch.zeros_like(self, dtype=11).fill_diagonal_(1, wrap)

    def backward(grad: Tensor):
        return grad.masked_fill(diagonal, 0), None, None

    return self.masked_fill(diagonal, fill_value), backward
