"""Methods and attributes of tensors that are no operators, or differ from the operator of their name.

`Tensor` looks here before it looks for an operator of a name. Attributes that only make sense with torch's own gradients raise an error
that names the replacement.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, dtype_of
from irtool.ops.checks import check_device, fit
from irtool.ops.kernels.cast import check_diagonal
from irtool.ops.tensor import Tensor, call
from irtool.ops.tensor_facts import BY_NAME, DTYPES, Size
from irtool.ops.tensor_parts import has_tensors, made_of, of_parts, refuse_others

GRADIENTS = "gradients are asked for by irtool.grad(f)(x), or irtool.value_and_grad"


# -- methods
def new_tensor(self: Tensor, data: Any, dtype: int | None = None, device: str | None = None, requires_grad: bool = False) -> Any:
    """A tensor of numbers, tensors, or lists of them, by default in this one's dtype; no gradient goes back to the tensors."""
    refuse_gradient(requires_grad, "new_tensor")
    check_device(device)
    dtype = self.dtype if dtype is None else dtype
    if isinstance(data, Tensor):
        return call("aten::to", (call("aten::detach", (data,), {}), dtype), {"copy": True})
    if has_tensors(data):
        return of_parts(data, dtype)
    made = made_of(data)
    if not isinstance(data, np.ndarray):
        refuse_others(made.array, dtype_of(dtype))
    return call("aten::to", (made, dtype), {})


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Any:
    """Write a number on the diagonal, also of more than two equal dimensions. wrap: continue the diagonal below, if there are more rows
    than columns."""
    check_diagonal(self.shape)
    if isinstance(fill_value, int | float | complex):
        fit(fill_value, dtype_of(self.dtype))       # what is too large for float16 is refused, other than by `fill_`
    rows, columns = self.shape[:2]
    if self.ndim == 2 and not (wrap and rows > columns + 1):
        call("aten::fill_", (call("aten::diagonal", (self,), {}), fill_value), {})
        return self
    step = sum(call("aten::stride", (self,), {}))
    count = rows if self.ndim > 2 else -(-rows * columns // (columns + 1))
    call("aten::fill_", (call("aten::as_strided", (self, [count], [step]), {}), fill_value), {})
    return self


def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Distinct elements, or slices along `dim`; with more options a tuple: also the index of each element among them, and the counts."""
    if dim is None:
        results = call("aten::_unique2", (self, sorted, return_inverse, return_counts), {})
    else:
        results = call("aten::unique_dim", (self, dim, sorted, return_inverse, return_counts), {})
    return chosen(results, return_inverse, return_counts)


def unique_consecutive(self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """One of each run of equal elements; with more options a tuple, as for `unique`."""
    return chosen(call("aten::unique_consecutive", (self, return_inverse, return_counts, dim), {}), return_inverse, return_counts)


def chosen(results: tuple[Any, ...], return_inverse: bool, return_counts: bool) -> Any:
    """The wanted parts of (distinct elements, inverse, counts): a tensor, or a tuple of tensors."""
    values, inverse, counts = results
    parts = [values, *[inverse] * return_inverse, *[counts] * return_counts]
    return tuple(parts) if len(parts) > 1 else values


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Any, ...]:
    """LU and row swaps; get_infos: also the first zero on U's diagonal."""
    results = call("aten::_lu_with_info", (A, pivot, not get_infos), {})
    return tuple(results[:3 if get_infos else 2])


def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of elements that are not zero: a row for each; as_tuple: a tensor for each dimension."""
    return tuple(call("aten::nonzero_numpy", (self,), {})) if as_tuple else call("aten::nonzero", (self,), {})


def where(self: Tensor, condition: Any, other: Any) -> Any:
    """Its elements where the condition is true, those of `other` elsewhere."""
    return call("aten::where", (condition, self, other), {})


def polygamma(self: Tensor, n: int) -> Any:
    """The derivative of order n of digamma."""
    return call("aten::polygamma", (n, self), {})


def stft(self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Any:
    """Fourier transforms of windows of the signal. By default windows are centred, other than in TorchScript's method."""
    return call("aten::stft", (self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex,
                               align_to_window), {})


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The elements in another dtype; without a dtype, the name of torch's class of tensors, `torch.FloatTensor`."""
    if dtype is not None:
        return call("aten::to", (self, dtype), {})
    names = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
             "bool": "Bool", "float16": "Half", "bfloat16": "BFloat16", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}
    return f"torch.{names[CODES[self.dtype]]}Tensor"


def size(self: Tensor, dim: int | None = None) -> Any:
    """All sizes, or that of a dimension."""
    return self.shape if dim is None else call("aten::size", (self, dim), {})


def stride(self: Tensor, dim: int | None = None) -> Any:
    """All strides, counted in elements, or that of a dimension."""
    strides = call("aten::stride", (self,) if dim is None else (self, dim), {})
    return Size(strides) if isinstance(strides, list) else strides


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Any:
    """The tensor, if no gradient is wanted. Raises UnsupportedError otherwise."""
    refuse_gradient(requires_grad, "requires_grad_")
    return self


def refuse_gradient(requires_grad: bool, where: str) -> None:
    """Raises UnsupportedError if a tensor itself is to collect gradients."""
    if requires_grad:
        raise UnsupportedError(f"{where}: tensors do not collect gradients; {GRADIENTS}")


def refused(name: str, instead: str) -> Callable[..., Any]:
    """A method of torch's tensors that these do not have."""
    def method(self: Tensor, *args: Any, **named: Any) -> Any:
        raise UnsupportedError(f"Tensor.{name} is not supported: {instead}")
    return method


METHODS: dict[str, Callable[..., Any]] = {
    "new_tensor": new_tensor, "fill_diagonal_": fill_diagonal_, "unique": unique, "unique_consecutive": unique_consecutive, "lu": lu,
    "where": where, "polygamma": polygamma, "stft": stft,
    "nonzero": nonzero, "type": type_, "size": size, "stride": stride, "requires_grad_": requires_grad_,
    "nelement": lambda self: call("aten::numel", (self,), {}), "ndimension": lambda self: self.ndim,
    "cfloat": lambda self, memory_format=None: call("aten::to", (self, BY_NAME["complex64"], False, False, memory_format), {}),
    "cdouble": lambda self, memory_format=None: call("aten::to", (self, BY_NAME["complex128"], False, False, memory_format), {}),
    "backward": refused("backward", GRADIENTS), "register_hook": refused("register_hook", f"{GRADIENTS}; hooks are an executor's"),
    "retain_grad": refused("retain_grad", GRADIENTS),
    "cuda": refused("cuda", "arrays are NumPy's; irtool.compile(graph, backend='cupy') runs graphs on a GPU"),
}


# -- attributes
def requires_grad(self: Tensor) -> bool:
    """Are gradients taken through the tensor?"""
    return variable_of(self) is not None


def is_leaf(self: Tensor) -> bool:
    """Is the tensor no result of recorded operations?"""
    variable = variable_of(self)
    return variable is None or variable.made_by < 0


def variable_of(self: Any) -> Any:
    """The variable of a tape that gradients are taken for or through; None: the tensor is a constant."""
    layer = getattr(self, "layer", None)
    return layer.variable_of(self) if layer is not None else None


ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "itemsize": lambda self: DTYPES[self.dtype].itemsize,
    "nbytes": lambda self: DTYPES[self.dtype].itemsize * self.numel(),
    "is_cuda": lambda self: False, "is_sparse": lambda self: False, "is_quantized": lambda self: False, "is_mps": lambda self: False,
    "requires_grad": requires_grad, "is_leaf": is_leaf, "grad_fn": lambda self: None, "grad": lambda self: None,
    "data": lambda self: call("aten::detach", (self,), {}), "layout": lambda self: 0,
}
