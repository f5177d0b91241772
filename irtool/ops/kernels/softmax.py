"""softmax and its relatives: along one dimension, stable against overflow; float16 is computed in float32."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import convert, title, wrap_dim
from irtool.ops.checks import BLOCK, only, row_blocks, widen
from irtool.ops.op import OpTable

table = OpTable("softmax")


def softmax_along(xp, x, dim):
    """exp(x) / sum(exp(x)) along `dim`; a row of -inf gives nan."""
    axis = wrap_dim(dim, x.ndim)
    if x.size:
        only("softmax_lastdim_kernel_impl" if axis >= x.ndim - 1 else "softmax_kernel_impl", "f", x)
    if not x.ndim:
        return xp.where(xp.isfinite(x), x.dtype.type(1), x.dtype.type(math.nan))
    if not x.size:
        return xp.empty(x.shape, x.dtype)
    wide = widen(xp, x)
    result = xp.subtract(wide, wide.max(axis, keepdims=True), order="C")
    xp.exp(result, out=result)
    result /= result.sum(axis, keepdims=True)
    return result.astype(x.dtype, copy=False)


def log_softmax_along(xp, x, dim):
    """log(softmax(x)) without the rounding of the two steps."""
    axis = wrap_dim(dim, x.ndim)
    if x.size:
        only("log_softmax_lastdim_kernel_impl" if axis >= x.ndim - 1 else "log_softmax_kernel_impl", "f", x)
    if not x.ndim:
        return xp.where(xp.isfinite(x), x.dtype.type(0), x.dtype.type(math.nan))
    if not x.size:
        return xp.empty(x.shape, x.dtype)
    wide = widen(xp, x)
    result = xp.subtract(wide, wide.max(axis, keepdims=True), order="C")
    if axis == x.ndim - 1 and x.size > BLOCK:
        for part in row_blocks(result, x.shape[axis]):
            part -= xp.log(xp.exp(part).sum(1, keepdims=True))
    else:
        result -= xp.log(xp.exp(result).sum(axis, keepdims=True))
    return result.astype(x.dtype, copy=False)


def _with_dtype(kernel):
    def converted(xp, self, dim, dtype=None):
        return kernel(xp, self if dtype is None else convert(self, dtype), dim)
    return converted


def _half_to_float(kernel):
    def widened(xp, self, dim, half_to_float):
        if half_to_float and self.dtype != xp.float16:      # torch: on a GPU alone
            raise RunError(f"conversion is supported for Half type only, got {title(self.dtype)}")
        return kernel(xp, self.astype(xp.float32) if half_to_float else self, dim)
    return widened


for _name, _kernel in (("softmax", softmax_along), ("log_softmax", log_softmax_along)):
    _doc = (_kernel.__doc__ or "") + " `dtype`: converted first."
    table.define((f"aten::{_name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                  f"aten::special_{_name}(Tensor self, int dim, {'*, ' * (_name != 'softmax')}ScalarType? dtype=None) -> Tensor"),
                 _with_dtype(_kernel), doc=_doc)
    table.define(f"aten::_{_name}(Tensor self, int dim, bool half_to_float) -> Tensor", _half_to_float(_kernel), doc=_doc)


@table.op("aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def safe_softmax(xp, self, dim, dtype):
    """softmax with zeros for rows of -inf."""
    x = self if dtype is None else convert(self, dtype)
    if "c" in (x.dtype.kind, self.dtype.kind):
        raise RunError("isneginf does not support complex inputs.")
    empty = (x == -math.inf).all(wrap_dim(dim, x.ndim), keepdims=True) if x.ndim else x == -math.inf
    return xp.where(empty, x.dtype.type(0), softmax_along(xp, x, dim))


def spread_mask(xp, mask, mask_type, shape):
    """A mask of scores in their shape (batch, heads, length, length), of which its type says two dimensions. Raises RunError as torch."""
    if mask.ndim != 2 or len(shape) != 4:
        mask_type = 2
    if mask_type not in (0, 1, 2):
        raise RunError("Mask Type should be defined" if mask_type is None else
                       "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)")
    wanted = shape if mask_type == 2 else (shape[0] if mask_type else shape[2], shape[2])
    if mask.shape != wanted:
        word = ("be (L, L)", "be (B, L)", "match input shape")[mask_type]
        raise RunError(f"For mask_type == {mask_type} mask shape should {word}", code="E0407")
    return xp.broadcast_to(mask[:, None, None, :] if mask_type == 1 else mask, shape)


@table.op("aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor")
def masked_softmax(xp, self, mask, dim, mask_type):
    """softmax over the places where the mask is false, and zeros elsewhere; nan in rows that are all masked."""
    if mask.dtype.kind != "b":
        raise RunError("Mask should be a boolean tensor")
    mask, axis = spread_mask(xp, mask, mask_type, self.shape), -1 if dim is None else dim
    result = softmax_along(xp, xp.where(mask, self.dtype.type(-math.inf), self), axis)
    return xp.where(mask & ~mask.all(axis, keepdims=True), self.dtype.type(0), result)


@table.op("aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
def softmax_backward(xp, grad_output, output, dim, input_dtype):
    """Gradient of softmax from its result."""
    product = grad_output * output
    axis = wrap_dim(dim, output.ndim)
    total = product.sum(axis, keepdims=True, dtype=product.dtype) if output.ndim else product
    return product - output * total


@table.op("aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
def log_softmax_backward(xp, grad_output, output, dim, input_dtype):
    """Gradient of log_softmax from its result."""
    axis = wrap_dim(dim, output.ndim)
    total = grad_output.sum(axis, keepdims=True, dtype=grad_output.dtype) if output.ndim else grad_output
    return grad_output - xp.exp(output) * total


@table.op("aten::_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor")
def masked_softmax_backward(xp, grad_output, output, mask, dim):
    """Gradient of _masked_softmax from its result."""
    axis = wrap_dim(-1 if dim is None else dim, output.ndim)
    if not grad_output.shape == output.shape == mask.shape:
        raise RunError("Mask shape should match grad shape", code="E0407")
    if mask.dtype.kind != "b":
        raise RunError("Mask should be a boolean tensor")
    output = xp.where(mask, output.dtype.type(0), output)
    product = grad_output * output
    return product - output * product.sum(axis, keepdims=True)


# ---- dtypes that torch serves

table.takes("hf", "_softmax_backward_data _log_softmax_backward_data _masked_softmax_backward")
table.laid_out("K", "_masked_softmax")
table.laid_out("C", "_softmax_backward_data _log_softmax_backward_data _masked_softmax_backward")
