"""New tensors: filled, counted, spaced. Without a dtype, numbers decide it: float32 for floats, int64 for whole numbers."""
import math
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import as_array, astype, default_dtype, dtype_of, memory_order, number_dtype, strided_view, title, to_number
from irtool.ops.checks import check_device, fit, fit_fill
from irtool.ops.kernels.cast import CHANNELS_LAST, PRESERVE, check_layout
from irtool.ops.kernels.pointwise_binary import complex_power
from irtool.ops.op import OpTable

table = OpTable("factory")

OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
"""The last arguments of every factory."""

LARGEST = 1 << 40
"""More bytes than this are refused before NumPy is asked: a text must not be able to ask for everything."""


def check_size(size, itemsize=1):
    """Refuses negative and absurd sizes."""
    for length in size:
        if length < 0:
            raise RunError(f"Trying to create tensor with negative dimension {length}: {list(size)}")
    if math.prod(size) * itemsize > LARGEST:
        raise RunError(f"a tensor of size {list(size)} does not fit into memory", code="E0406")


def options(dtype, layout, device, default=None):
    """NumPy dtype of a factory's options; `default` (NumPy's, None: the default float) when none is named."""
    check_layout(layout)
    check_device(device)
    return dtype_of(dtype) if dtype is not None else default_dtype if default is None else default


def whole(dtype, layout, device):
    """As `options`, for indices: int64 when no dtype is named, also where None is written and the schema's default is int64."""
    return options(dtype, layout, device, number_dtype(0))


def number_of(number, dtype, count=1):
    """A number as a 0-d array of a dtype, for a tensor of `count` elements. Raises as torch does for one out of range; -1 as uint8 is 255
    though, and 1e300 as float16 an infinity in a tensor of one element."""
    return as_array(fit_fill(number, dtype, count), dtype)


def filled(xp, size, number, dtype):
    """A tensor of one number."""
    check_size(size, dtype.itemsize)
    return xp.full(tuple(size), number_of(number, dtype, math.prod(size)), dtype)


# ---- one number everywhere

def _sized(name, number):
    """zeros, ones, empty: of a size."""
    def kernel(xp, size, dtype, layout, device, pin_memory, memory_format=None):
        if name == "zeros" and any(length < 0 for length in size):
            raise RunError("zeros: Dimension size must be non-negative.")
        return filled(xp, size, number, options(dtype, layout, device))
    schema = ".memory_format" if name == "empty" else ""
    tail = ", MemoryFormat? memory_format=None" if name == "empty" else ""
    table.define(f"aten::{name}{schema}(SymInt[] size, {OPTIONS}{tail}) -> Tensor", kernel,
                 doc=f"A tensor of {number}s." if name != "empty" else "A tensor of anything: of zeros here, so that runs repeat.")


def _like_kernel(number):
    def kernel(xp, self, dtype, layout, device, pin_memory, memory_format):
        return like(xp, self, number, options(dtype, layout, device, self.dtype), memory_format)
    return kernel


def like(xp, self, number, dtype, memory_format=None):
    """A tensor of one number with self's shape, and its strides if it has no gaps."""
    if memory_format is not None and memory_format >= CHANNELS_LAST:
        return xp.moveaxis(filled(xp, (self.shape[0], *self.shape[2:], self.shape[1]), number, dtype), -1, 1)
    is_kept = memory_format in (None, PRESERVE)
    if is_kept and 0 in self.strides:
        order = memory_order(self)
        return filled(xp, [self.shape[place] for place in order], number, dtype).transpose([order.index(i) for i in range(self.ndim)])
    return xp.full_like(self, number_of(number, dtype, self.size), dtype=dtype, order="K" if is_kept else "C")


def _new_kernel(number):
    def kernel(xp, self, size, dtype, layout, device, pin_memory):
        return filled(xp, size, number, options(dtype, layout, device, self.dtype))
    return kernel


for _name, _number in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _sized(_name, _number)
    table.define(f"aten::{_name}_like(Tensor self, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", _like_kernel(_number),
                 doc=f"{_name} with self's shape and dtype, unless another is named.")
    table.define(f"aten::new_{_name}(Tensor self, SymInt[] size, {OPTIONS}) -> Tensor", _new_kernel(_number),
                 doc=f"{_name} of a size with self's dtype, unless another is named.")


def _strided(xp, size, stride, dtype):
    """Zeros with given strides, counted in elements."""
    check_size(size, dtype.itemsize)
    length = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    check_size([length], dtype.itemsize)
    return strided_view(xp.zeros(max(length, 1), dtype), size, stride)


@table.op(f"aten::empty_strided(SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor")
def empty_strided(xp, size, stride, dtype, layout, device, pin_memory):
    """Zeros with given strides."""
    return _strided(xp, size, stride, options(dtype, layout, device))


@table.op(f"aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor")
def new_empty_strided(xp, self, size, stride, dtype, layout, device, pin_memory):
    """Zeros with given strides and self's dtype, unless another is named."""
    return _strided(xp, size, stride, options(dtype, layout, device, self.dtype))


@table.op(f"aten::empty_permuted(SymInt[] size, int[] physical_layout, {OPTIONS}) -> Tensor")
def empty_permuted(xp, size, physical_layout, dtype, layout, device, pin_memory):
    """Zeros whose dimensions have a given order in memory."""
    stored = filled(xp, [size[dim] for dim in physical_layout], 0, options(dtype, layout, device))
    return xp.moveaxis(stored, range(len(size)), physical_layout)


@table.op(f"aten::full(SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor")
def full(xp, size, fill_value, dtype, layout, device, pin_memory):
    """A tensor of one number; without a dtype bool, int64, float32 or complex64 as the number is."""
    return filled(xp, size, fill_value, options(dtype, layout, device, number_dtype(fill_value)))


@table.op(f"aten::full_like(Tensor self, Scalar fill_value, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
def full_like(xp, self, fill_value, dtype, layout, device, pin_memory, memory_format):
    """A tensor of one number with self's shape and dtype, unless another is named."""
    return like(xp, self, fill_value, options(dtype, layout, device, self.dtype), memory_format)


@table.op(f"aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor")
def new_full(xp, self, size, fill_value, dtype, layout, device, pin_memory):
    """A tensor of one number of a size with self's dtype, unless another is named."""
    return filled(xp, size, fill_value, options(dtype, layout, device, self.dtype))


# ---- tensors of given numbers
#
# In graphs `aten::tensor(0.1, dtype=float64)` is 0.10000000149011612, as in torch: floats become float32 first, complex numbers complex64.
# Only numbers alone are refused where they are too large for that; in lists they become infinities. `irtool.torch.tensor` is exact.

@table.op(f"aten::scalar_tensor(Scalar s, {OPTIONS}) -> Tensor")
def scalar_tensor(xp, s, dtype, layout, device, pin_memory):
    """A 0-dim tensor of a number, float32 unless another dtype is named."""
    return number_of(s, options(dtype, layout, device))


def _from_list(xp, data, dtype, device):
    """Nested lists of numbers (or of one-element tensors) as a tensor."""
    check_device(device)
    flat, shape = [], []
    level = data
    while isinstance(level, list | tuple):
        shape.append(len(level))
        level = level[0] if level else None
    _flatten(data, shape, flat)
    result = _joined(xp, flat, _common_number_dtype(flat) if flat else default_dtype).reshape(shape)
    return result if dtype is None else astype(result, dtype_of(dtype))


def _joined(xp, flat, dtype):
    result = xp.empty(len(flat), dtype)
    for place, number in enumerate(flat):
        result[place] = as_array(number, dtype)
    return result


def _common_number_dtype(flat):
    kinds = [number_dtype(number) for number in flat]
    return max(kinds, key=lambda dtype: "biufc".index(dtype.kind))


def _flatten(data, shape, flat):
    if not shape:
        flat.append(to_number(data))
        return
    if not isinstance(data, list | tuple) or len(data) != shape[0]:
        actual = len(data) if isinstance(data, list | tuple) else "a number"
        raise RunError(f"Expected sequence of length {shape[0]} at dim {len(shape)} (got {actual})")
    for item in data:
        _flatten(item, shape[1:], flat)


def _of_number(xp, t, dtype, device, requires_grad=False):
    check_device(device)
    result = number_of(t, number_dtype(t))
    return result if dtype is None else astype(result, dtype_of(dtype))


def _of_list(xp, data, dtype, device, requires_grad=False):
    return _from_list(xp, data, dtype, device)


for _name, _tail in (("tensor", ", bool requires_grad=False"), ("as_tensor", "")):
    _end = f"*, ScalarType? dtype=None, Device? device=None{_tail}) -> Tensor"
    table.define([f"aten::{_name}.{kind}({kind} t, {_end}" for kind in ("bool", "int", "float", "complex")], _of_number,
                 doc="A 0-dim tensor of a number.")
table.define("aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor", _of_list,
             doc="A tensor of nested lists of numbers.")
table.define("aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor", _of_list,
             doc="A tensor of nested lists of numbers.")


@table.op("aten::_list_to_tensor(int[] self) -> Tensor")
def list_to_tensor(xp, self):
    """A list of whole numbers as an int32 tensor."""
    return _joined(xp, self, xp.dtype(xp.int32))


@table.op("aten::_tensor_to_list(Tensor self) -> int[]")
def tensor_to_list(xp, self):
    """The elements of an integer tensor as a list."""
    return [int(element) for element in self.reshape(-1)]


# ---- evenly spaced numbers

def _need_numbers(name, dtype, kinds="iuf"):
    if dtype.kind not in kinds:
        raise RunError(f"\"{name}\" not implemented for '{title(dtype)}'", code="E0409")


def _arange(xp, start, end, step, dtype):
    _need_numbers("arange_cpu", dtype)
    if step == 0:
        raise RunError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RunError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RunError("upper bound and lower bound inconsistent with step sign")
    if dtype == xp.int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise RunError("step must be nonzero")
        length = max(-((start - end) // step), 0)
    else:
        length = math.ceil((end - start) / step)
        if dtype.kind in "iu":
            start, step = int(start), int(step)
    check_size([length], 8)
    return _counted(xp, start, step, length, dtype)


def _counted(xp, start, step, length, dtype):
    """start, start + step, ...: computed in float64 (whole numbers exactly) and rounded once."""
    if dtype.kind in "iub":
        return (as_array(start, xp.int64) + as_array(step, xp.int64) * xp.arange(length, dtype=xp.int64)).astype(dtype)
    return (start + step * xp.arange(length, dtype=xp.float64)).astype(dtype)


def _range_dtype(numbers, dtype, layout, device):
    whole = all(isinstance(number, int) for number in numbers)
    return options(dtype, layout, device, number_dtype(0) if whole else None)


@table.op(f"aten::arange(Scalar end, {OPTIONS}) -> Tensor")
def arange(xp, end, dtype, layout, device, pin_memory):
    """0, 1, ... below `end`; int64 for a whole `end`, else float32."""
    return _arange(xp, 0, end, 1, _range_dtype([end], dtype, layout, device))


@table.op(f"aten::arange.start(Scalar start, Scalar end, {OPTIONS}) -> Tensor")
def arange_from(xp, start, end, dtype, layout, device, pin_memory):
    """start, start + 1, ... below `end`."""
    return _arange(xp, start, end, 1, _range_dtype([start, end], dtype, layout, device))


@table.op(f"aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor")
def arange_step(xp, start, end, step, dtype, layout, device, pin_memory):
    """start, start + step, ... before `end`."""
    return _arange(xp, start, end, step, _range_dtype([start, end, step], dtype, layout, device))


def _range(xp, start, end, step, dtype, layout, device):
    if step == 0 or (end - start) * step < 0:
        raise RunError("step must be nonzero" if step == 0 else "upper bound and lower bound inconsistent with step sign")
    chosen = options(dtype, layout, device)
    _need_numbers("range_cpu", chosen)
    if chosen.kind in "iu":
        start, end, step = int(start), int(end), int(step)
    length = int((end - start) / step) + 1 if step else 0
    check_size([length], 8)
    return _counted(xp, start, step, length, chosen)


table.define(f"aten::range(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
             lambda xp, start, end, dtype, layout, device, pin_memory: _range(xp, start, end, 1, dtype, layout, device),
             doc="start, start + 1, ... up to and with `end`; float32.")
table.define(f"aten::range.step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
             lambda xp, start, end, step, dtype, layout, device, pin_memory: _range(xp, start, end, step, dtype, layout, device),
             doc="start, start + step, ... up to and with `end`; float32.")


def _spaced(xp, start, end, steps, dtype):
    """`steps` numbers from start to end, counted from both ends as torch does, so that both are exact."""
    check_steps("linspace", steps, dtype)
    if steps == 1:
        return as_array(start, dtype).reshape(1)
    wide = xp.complex128 if dtype.kind == "c" else xp.float64
    if dtype.kind in "iu":
        start, end = (number_of(end, dtype).item() for end in (start, end))
    places = xp.arange(steps)
    if dtype.kind in "iu":
        # torch's compiled loop multiplies and adds in one rounding, which truncation to a whole number shows: more digits do the same
        places = places.astype(getattr(xp, "longdouble", xp.float64))
    with_step = (end - start) / max(steps - 1, 1)
    result = xp.where(places < steps // 2, start + with_step * places, end - with_step * (steps - 1 - places)).astype(wide)
    return astype(result, dtype)


def check_steps(name: str, steps: int, dtype: Any) -> None:
    """Raises torch's errors for a number of steps, and for a dtype in which it has no kernel for them."""
    if steps < 0:
        raise RunError("number of steps must be non-negative")
    _need_numbers(f"{name}_cpu", dtype, "biufc" if steps < 2 else "iufc")
    check_size([steps], 16)


def check_ends(*ends: Any) -> None:
    """Raises torch's error for ends with dimensions."""
    for end in ends:
        if getattr(end, "ndim", 0):
            raise RunError(f"linspace only supports 0-dimensional start and end tensors, but got start with {end.ndim} dimension(s).")


def _as_numbers(*ends):
    check_ends(*ends)
    return [to_number(end) for end in ends]


def _linspace(xp, start, end, steps, dtype, layout, device, pin_memory):
    start, end = _as_numbers(start, end)
    return _spaced(xp, start, end, steps, options(dtype, layout, device, default_between("linspace", _is_complex(start, end), dtype)))


def _is_complex(*ends):
    return any(isinstance(end, complex) for end in ends)


def default_between(name: str, is_complex: bool, dtype: Any) -> Any:
    """The dtype of numbers between complex ones; None for real ones. Raises torch's error where another is asked for."""
    if not is_complex:
        return None
    if dtype is not None and dtype_of(dtype).kind != "c":
        raise RunError(f"torch.{name}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {title(dtype_of(dtype))}")
    return number_dtype(1j)


def _power(base, exponent):
    """A power of numbers, infinite where it is too large or divided by zero."""
    try:
        return base ** exponent
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _logspace(xp, start, end, steps, base, dtype, layout, device, pin_memory):
    start, end = _as_numbers(start, end)
    chosen = options(dtype, layout, device, default_between("logspace", _is_complex(start, end), dtype))
    check_steps("logspace", steps, chosen)
    if chosen.kind == "c":
        wide = xp.dtype(xp.complex128)
        return astype(complex_power(xp, xp.asarray(base, wide), _spaced(xp, start, end, steps, wide)), chosen)
    if steps == 1:
        return as_array(fit(_power(base, start), chosen), chosen).reshape(1)
    if chosen.kind in "iu":
        start, end = int(start), int(end)
    wide = xp.dtype(xp.float64)
    return astype(xp.power(wide.type(base), _spaced(xp, start, end, steps, wide)), chosen)


for _overload, _start, _end in (("", "Scalar", "Scalar"), (".Tensor_Tensor", "Tensor", "Tensor"), (".Tensor_Scalar", "Tensor", "Scalar"),
                                (".Scalar_Tensor", "Scalar", "Tensor")):
    table.define(f"aten::linspace{_overload}({_start} start, {_end} end, int steps, {OPTIONS}) -> Tensor", _linspace,
                 doc="`steps` evenly spaced numbers from start to end, both included.")
    table.define(f"aten::logspace{_overload}({_start} start, {_end} end, int steps, float base=10., {OPTIONS}) -> Tensor", _logspace,
                 doc="base to the power of `steps` evenly spaced exponents.")


# ---- matrices

@table.op(f"aten::eye(SymInt n, {OPTIONS}) -> Tensor")
def eye(xp, n, dtype, layout, device, pin_memory):
    """The n x n identity."""
    return _eye(xp, n, n, options(dtype, layout, device))


@table.op(f"aten::eye.m(SymInt n, SymInt m, {OPTIONS}) -> Tensor")
def eye_rectangular(xp, n, m, dtype, layout, device, pin_memory):
    """n x m with ones on the diagonal."""
    return _eye(xp, n, m, options(dtype, layout, device))


def _eye(xp, n, m, dtype):
    if n < 0 or m < 0:
        raise RunError(f"n must be greater or equal to 0, got {n}" if n < 0 else f"m must be greater or equal to 0, got {m}")
    check_size((n, m), dtype.itemsize)
    return xp.eye(n, m, dtype=dtype)


def _triangle(name, function):
    def kernel(xp, row, col, offset, dtype, layout, device, pin_memory):
        if row < 0 or col < 0:
            raise RunError(f"{'row' if row < 0 else 'col'} must be non-negative, got {row if row < 0 else col}")
        check_size((row, col), 8)
        return xp.stack(xp.nonzero(getattr(xp, function)(xp.ones((row, col), bool), offset))).astype(whole(dtype, layout, device))
    table.define(f"aten::{name}(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
                 "bool? pin_memory=None) -> Tensor", kernel, doc="Row and column indices of a triangle, 2 x n.")


_triangle("tril_indices", "tril")
_triangle("triu_indices", "triu")


@table.op("aten::chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def chalf(xp, self, memory_format):
    """complex32 does not exist here."""
    raise UnsupportedError("aten::chalf: dtype complex32 is not supported")
