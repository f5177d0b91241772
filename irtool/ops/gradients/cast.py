"""Gradients of conversions and copies: the gradient, converted back."""
from __future__ import annotations

from irtool.ops.kernels.cast import table
from irtool.ops.tensor import Device, Tensor, number, torch


@table.gradient("to.dtype")
def to_dtype_gradient(self: Tensor, dtype: int, non_blocking: bool, copy: bool, memory_format: int | None):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None

    return self.to(dtype, non_blocking, copy, memory_format), backward


@table.gradient("to.prim_dtype")
def to_optional_dtype_gradient(self: Tensor, dtype: int | None, non_blocking: bool, copy: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None

    return self.to(dtype, non_blocking, copy), backward


@table.gradient("to.prim_other")
def to_same_gradient(self: Tensor, non_blocking: bool, copy: bool):
    def backward(grad: Tensor):
        return grad, None, None

    return self.to(non_blocking, copy), backward


@table.gradient("to.other")
def to_other_gradient(self: Tensor, other: Tensor, non_blocking: bool, copy: bool, memory_format: int | None):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None

    return self.to(other, non_blocking, copy, memory_format), backward


@table.gradient("to.device")
def to_device_gradient(self: Tensor, device: Device, dtype: int, non_blocking: bool, copy: bool, memory_format: int | None):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None, None

    return self.to(device, dtype, non_blocking, copy, memory_format), backward


@table.gradient("to.prim_Device")
def to_prim_device_gradient(self: Tensor, device: Device | None, dtype: int | None, non_blocking: bool, copy: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None

    return self.to(device, dtype, non_blocking, copy), backward


@table.gradient("to.dtype_layout")
def to_layout_gradient(self: Tensor, dtype: int | None, layout: int | None, device: Device | None, pin_memory: bool | None,
                       non_blocking: bool, copy: bool, memory_format: int | None):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None, None, None, None

    result = self.to(dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, non_blocking=non_blocking, copy=copy,
                     memory_format=memory_format)
    return result, backward


@table.gradient("_to_copy")
def to_copy_gradient(self: Tensor, dtype: int | None, layout: int | None, device: Device | None, pin_memory: bool | None,
                     non_blocking: bool, memory_format: int | None):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None, None, None

    result = torch._to_copy(self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, non_blocking=non_blocking,
                            memory_format=memory_format)
    return result, backward


@table.gradient("type_as")
def type_as_gradient(self: Tensor, other: Tensor):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None

    return self.type_as(other), backward


@table.gradient("_cast_Half")
def cast_half_gradient(self: Tensor, non_blocking: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None

    return self.to(5), backward


@table.gradient("_cast_Float")
def cast_float_gradient(self: Tensor, non_blocking: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None

    return self.to(6), backward


@table.gradient("_cast_Double")
def cast_double_gradient(self: Tensor, non_blocking: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None

    return self.to(7), backward


@table.gradient("clone")
def clone_gradient(self: Tensor, memory_format: int | None):
    def backward(grad: Tensor):
        return grad, None

    return self.clone(memory_format=memory_format), backward


@table.gradient("alias alias_copy lift lift_fresh lift_fresh_copy _lazy_clone cpu")
def alias_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad

    return self.alias(), backward


@table.gradient("copy copy_")
def copy_gradient(self: Tensor, src: Tensor, non_blocking: bool):
    src_size, src_dtype = src.size(), src.dtype

    def backward(grad: Tensor):
        return torch.zeros_like(grad), grad.sum_to_size(src_size).to(src_dtype), None

    return torch.copy(self, src, non_blocking), backward


@table.gradient("fill.Scalar fill_.Scalar")
def fill_gradient(self: Tensor, value: number):
    def backward(grad: Tensor):
        return torch.zeros_like(grad), None

    return torch.fill(self, value), backward


@table.gradient("fill.Tensor fill_.Tensor")
def fill_tensor_gradient(self: Tensor, value: Tensor):
    value_dtype = value.dtype

    def backward(grad: Tensor):
        return torch.zeros_like(grad), grad.sum().to(value_dtype)

    return torch.fill(self, value), backward


@table.gradient("zero zero_")
def zero_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return torch.zeros_like(self), backward


@table.gradient("to_dense")
def to_dense_gradient(self: Tensor, dtype: int | None, masked_grad: bool | None):
    def backward(grad: Tensor):
        return grad, None, None

    return torch.to_dense(self, dtype, masked_grad=masked_grad), backward


@table.gradient("_autocast_to_full_precision")
def full_precision_gradient(self: Tensor, cuda_enabled: bool, cpu_enabled: bool):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None

    return torch._autocast_to_full_precision(self, cuda_enabled, cpu_enabled), backward


@table.gradient("_autocast_to_reduced_precision")
def reduced_precision_gradient(self: Tensor, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: int, cpu_dtype: int):
    self_dtype = self.dtype

    def backward(grad: Tensor):
        return grad.to(self_dtype), None, None, None, None

    return torch._autocast_to_reduced_precision(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype), backward


table.unsupported("pinned memory is not supported", "pin_memory _pin_memory")
table.no_gradient("it is asked for without one", "detach detach_copy data")
table.no_gradient("whole numbers", "_cast_Byte _cast_Char _cast_Short _cast_Int _cast_Long")
table.no_gradient("it initialises or resizes memory", "resize_ resize_as_ _no_grad_fill_ _no_grad_zero_")
table.no_gradient("a fact about the tensor",
                  "is_conj is_neg is_inference is_distributed is_coalesced is_pinned element_size")
table.no_gradient("a number has no gradient", "copy_.int copy_.float")


@table.gradient("copy_.Tensor")
def copy_tensor_gradient(self: Tensor, other: Tensor):
    other_size, other_dtype = other.size(), other.dtype

    def backward(grad: Tensor):
        return torch.zeros_like(grad), grad.sum_to_size(other_size).to(other_dtype)

    return torch.copy(self, other), backward
