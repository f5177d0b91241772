"""Conversions and copies: `to` and its relatives, clone, copy_, fill_, detach. `to` returns its argument itself if nothing changes."""
import math
import warnings
from collections.abc import Sequence

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import as_array, astype, broadcast_view, code_of, convert, copied, is_array
from irtool.ops.checks import check_device, fit, fit_fill, refuse_growth, refuse_overlap, refuse_partial_overlap
from irtool.ops.conjugates import origin
from irtool.ops.op import OpTable

table = OpTable("cast")

CONTIGUOUS, PRESERVE, CHANNELS_LAST, CHANNELS_LAST_3D = range(4)
"""torch's numbers for memory formats."""


def in_format(xp, x, memory_format):
    """A copy of `x` with the strides of a memory format (None: those of `x`, if it has no gaps)."""
    if memory_format in (None, PRESERVE):
        return copied(x)
    if memory_format == CONTIGUOUS:
        return x.copy(order="C")
    rank = 4 if memory_format == CHANNELS_LAST else 5
    if x.ndim != rank:
        raise RunError(f"required rank {rank} tensor to use channels_last format")
    return xp.moveaxis(xp.moveaxis(x, 1, -1).copy(order="C"), -1, 1)


def _has_format(xp, x, memory_format):
    if memory_format in (None, PRESERVE):
        return True
    return bool((x if memory_format == CONTIGUOUS else xp.moveaxis(x, 1, -1)).flags.c_contiguous)


def _converted(xp, x, code, copy, memory_format, device=None):
    """`x` in a dtype (torch's number, None: its own); itself when nothing is to be done."""
    check_device(device)
    result = x if code is None else convert(x, code)
    if not _has_format(xp, result, memory_format) or (copy and result is x):
        return in_format(xp, result, memory_format)
    return result


@table.op("aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)"
          " -> Tensor(a)")
def to_dtype(xp, self, dtype, non_blocking, copy, memory_format):
    """The tensor in another dtype: floats are truncated to whole numbers, complex ones lose the imaginary part."""
    return _converted(xp, self, dtype, copy, memory_format)


@table.op("aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
          "MemoryFormat? memory_format=None) -> Tensor(a)")
def to_device(xp, self, device, dtype, non_blocking, copy, memory_format):
    """The tensor on a device (only the CPU) in another dtype."""
    return _converted(xp, self, dtype, copy, memory_format, device)


@table.op("aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
def to_dtype_layout(xp, self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
    """The tensor in another dtype; options that are None change nothing."""
    check_layout(layout)
    return _converted(xp, self, dtype, copy, memory_format, device)


def check_layout(layout):
    """Only strided tensors here."""
    if layout not in (None, 0):
        raise UnsupportedError(f"layout number {layout} is not supported: only strided tensors are")


@table.op("aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
def to_copy(xp, self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    """A new tensor with the elements in another dtype and memory format."""
    check_layout(layout)
    return _converted(xp, self, dtype, True, memory_format, device)


@table.op("aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)"
          " -> Tensor(a)")
def to_other(xp, self, other, non_blocking, copy, memory_format):
    """The tensor in the dtype of another."""
    return _converted(xp, self, code_of(other.dtype), copy, memory_format)


@table.op("aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")
def to_prim_device(xp, self, device, dtype, non_blocking, copy):
    """The tensor on a device (only the CPU), in another dtype unless that is None."""
    return _converted(xp, self, dtype, copy, None, device)


@table.op("aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")
def to_prim_dtype(xp, self, dtype, non_blocking, copy):
    """The tensor in another dtype unless that is None."""
    return _converted(xp, self, dtype, copy, None)


@table.op("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")
def to_prim_other(xp, self, non_blocking, copy):
    """The tensor itself, or a copy."""
    return _converted(xp, self, None, copy, None)


@table.op("aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)")
def as_tensor(xp, data, dtype, device):
    """The tensor in another dtype unless that is None."""
    return _converted(xp, data, dtype, False, None, device)


@table.op("aten::type_as(Tensor self, Tensor other) -> Tensor")
def type_as(xp, self, other):
    """The tensor in the dtype of another."""
    return astype(self, other.dtype)


for _name, _code in (("Byte", 0), ("Char", 1), ("Short", 2), ("Int", 3), ("Long", 4), ("Half", 5), ("Float", 6), ("Double", 7)):
    table.define(f"aten::_cast_{_name}(Tensor self, bool non_blocking=False) -> Tensor",
                 lambda xp, self, non_blocking, code=_code: convert(self, code), doc=f"The tensor as {_name}.")


@table.op("aten::_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)")
def autocast_to_full_precision(xp, self, cuda_enabled, cpu_enabled):
    """float16 as float32 where autocast is on for the CPU."""
    return astype(self, xp.float32) if cpu_enabled and self.dtype == xp.float16 else self


@table.op("aten::_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, "
          "ScalarType cpu_dtype) -> Tensor(a)")
def autocast_to_reduced_precision(xp, self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype):
    """float32 in the reduced dtype where autocast is on for the CPU."""
    return convert(self, cpu_dtype) if cpu_enabled and self.dtype == xp.float32 else self


# ---- the same numbers

@table.op("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def clone(xp, self, memory_format):
    """A copy, with the same strides unless a memory format is named."""
    return in_format(xp, self, memory_format)


def _copy(xp, self):
    return copied(self)


COPIES = ("alias_copy", "detach_copy", "lift_fresh_copy")
table.define([f"aten::{name}(Tensor self) -> Tensor" for name in COPIES], _copy, doc="A copy.")
table.define("aten::_lazy_clone(Tensor self) -> Tensor", _copy, doc="A copy, with the same strides.")


def _alias(xp, self):
    return self[...]


table.define([f"aten::{name}(Tensor(a) self) -> Tensor(a)" for name in ("alias", "detach")], _alias,
             doc="Another tensor on the same memory.")
table.define("aten::data(Tensor self) -> Tensor", _alias, doc="Another tensor on the same memory.")


@table.op("aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)")
def requires_grad_into(xp, self, requires_grad):
    """The tensor itself, with requires_grad=False: who calls a graph says which inputs have gradients, not the graph."""
    if requires_grad and self.dtype.kind not in "fc":
        raise RunError("Only Tensors of floating point and complex dtype can require gradients")
    if requires_grad:
        raise UnsupportedError("requires_grad_(True) is not supported: gradients are asked for by irtool.grad, irtool.vjp or irtool.record")
    return self


@table.op("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", "aten::lift(Tensor self) -> Tensor")
def lift_fresh(xp, self):
    """The tensor itself."""
    return self


@table.op("aten::cpu(Tensor(a) self) -> Tensor(b|a)")
def cpu(xp, self):
    """The tensor itself, since it is on the CPU."""
    return self


@table.op("aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor")
def to_dense(xp, self, dtype, masked_grad):
    """The tensor in another dtype, unless that is None; every tensor is dense."""
    return _converted(xp, self, dtype, False, None)


# ---- written into

@table.op("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
          "aten::copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
def copy_into(xp, self, src, non_blocking=False):
    """`src`, broadcast and converted, written into self; nothing where both are one tensor."""
    if self is src:
        return self
    refuse_overlap(self)
    refuse_partial_overlap(self, (src,))
    refuse_growth(self, xp.broadcast_shapes(self.shape, src.shape))
    self[...] = astype(broadcast_view(src, self.shape), self.dtype)
    return self


@table.op("aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)", "aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)")
def copy_number_into(xp, self, other):
    """A number written into every element."""
    self[...] = as_array(other, self.dtype)
    return self


@table.op("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
def copy(xp, self, src, non_blocking):
    """`src`, broadcast to self's shape and converted to its dtype."""
    return astype(broadcast_view(src, self.shape), self.dtype).copy()


def _fill_value(value, dtype, count):
    if getattr(value, "ndim", 0):
        raise RunError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    return as_array(value if is_array(value) else fit_fill(value, dtype, count), dtype)


@table.op("aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
          "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
def fill_into(xp, self, value):
    """One number written into every element."""
    if is_array(value):
        refuse_overlap(self)
    self[...] = _fill_value(value, self.dtype, self.size)
    return self


@table.op("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor")
def fill(xp, self, value):
    """A tensor like self with one number everywhere."""
    return xp.full(self.shape, _fill_value(value, self.dtype, self.size), self.dtype)


def check_diagonal(shape: Sequence[int]) -> None:
    """Raises RunError if a tensor of this shape has no one diagonal."""
    if len(shape) < 2:
        raise RunError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RunError("all dimensions of input must be of equal length")


@table.op("aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)")
def fill_diagonal_into(xp, self, fill_value, wrap):
    """One number written on the diagonal. wrap: it goes on in the next block of a matrix of more rows than columns."""
    check_diagonal(self.shape)
    xp.fill_diagonal(self, as_array(fit(fill_value, self.dtype), self.dtype), bool(wrap))      # too large for float16 too, unlike fill_
    return self


@table.op("aten::zero_(Tensor(a!) self) -> Tensor(a!)")
def zero_into(xp, self):
    """0 written into every element."""
    self[...] = 0
    return self


@table.op("aten::zero(Tensor self) -> Tensor")
def zero(xp, self):
    """Zeros like self."""
    return xp.zeros(self.shape, self.dtype)


def _resized(self, size):
    """`self` with another shape of as many elements; NumPy cannot give new memory to a tensor to which others refer."""
    if self.shape == tuple(size):
        return self
    if self.size != math.prod(size) or not self.flags.c_contiguous:
        raise UnsupportedError(f"resizing a tensor of shape {list(self.shape)} in place to {list(size)} is not supported")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)      # NumPy prefers a new view, but other values refer to this one
        self.shape = tuple(size)
    return self


@table.op("aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
def resize_into(xp, self, size, memory_format):
    """The tensor itself with another shape of as many elements."""
    return _resized(self, size)


@table.op("aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
def resize_as_into(xp, self, the_template, memory_format):
    """The tensor itself with the shape of another of as many elements."""
    return _resized(self, the_template.shape)


# ---- initialisation without gradients, as torch.nn.init's scripts have it

table.define("aten::_no_grad_fill_(Tensor(a!) tensor, float val) -> Tensor(a!)", lambda xp, tensor, val: fill_into.kernel(xp, tensor, val),
             doc="One number written into every element.")
table.define("aten::_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)", lambda xp, tensor: zero_into.kernel(xp, tensor),
             doc="0 written into every element.")


# ---- properties that no tensor here has, and the parts of a tensor

@table.op("aten::is_conj(Tensor self) -> bool")
def is_conj(xp, self):
    """Is it a conjugated view of a complex tensor, as made by `conj`?"""
    return self.dtype.kind == "c" and origin(self)[1]


for _name in ("is_neg", "is_inference", "is_distributed", "is_coalesced"):
    table.define(f"aten::{_name}(Tensor self) -> bool", lambda xp, self: False, doc="False: there are no such tensors here.")
table.define("aten::is_pinned(Tensor self, Device? device=None) -> bool", lambda xp, self, device: False,
             doc="False: memory is never pinned here.")


@table.op("aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)",
          "aten::_pin_memory(Tensor self, Device? device=None) -> Tensor")
def pin_memory(xp, self, device):
    """There is no accelerator to pin memory for."""
    raise UnsupportedError("pinned memory is not supported")


@table.op("aten::element_size(Tensor self) -> int")
def element_size(xp, self):
    """Bytes of one element."""
    return self.itemsize


table.laid_out("K", "fill zero")
table.laid_out("C", "alias_copy detach_copy lift_fresh_copy")
table.laid_out("K", "copy")
