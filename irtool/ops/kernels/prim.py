"""prim:: operators on values alone, and the aten:: ones between tensors and Python numbers. `structure.py` has those that need their node.

An undefined tensor (`prim::AutogradZero`, a gradient nothing flows into) is None.
"""
from __future__ import annotations

import enum
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irtool.ir.errors import OutputError, RunError, UnsupportedError
from irtool.ir.source import clean
from irtool.ir.types import parse_type
from irtool.ops.arrays import as_array, code_of, dtype_of, title, to_number
from irtool.ops.call import call_op
from irtool.ops.kernels.c_numbers import c_int
from irtool.ops.kernels.string import value_text
from irtool.ops.op import OpTable
from irtool.ops.promotion import can_cast, promote_types, result_type
from irtool.ops.quantized import Packed

table = OpTable("prim")
RECORD = parse_type("__torch__.torch.classes.profiler._RecordFunction")

table.define("prim::abs(Tensor x) -> Tensor", lambda xp, x: call_op("aten::abs", [x]), doc="Magnitude: torch's `abs(x)`.")


# -- facts about a tensor
table.define("prim::dtype(Tensor a) -> int", lambda xp, a: code_of(a.dtype), doc="torch's number of the dtype.")
table.define("prim::device(Tensor a) -> Device", lambda xp, a: "cpu" if xp.__name__ == "numpy" else "cuda:0", doc="Where it lies.")
table.define("aten::get_device(Tensor self) -> int", lambda xp, self: -1 if xp.__name__ == "numpy" else 0,
             doc="Number of its GPU; -1: none.")
table.define("prim::layout(Tensor a) -> Layout", lambda xp, a: 0, doc="Strided.")
table.define("prim::itemsize(Tensor a) -> int", lambda xp, a: a.itemsize, doc="Bytes of an element.")
table.define("prim::nbytes(Tensor a) -> int", lambda xp, a: a.nbytes, doc="Bytes of all elements.")
table.define("prim::name(Tensor a) -> str?", lambda xp, a: None, doc="Tensors have no names.")
table.define("prim::is_cpu(Tensor a) -> bool", lambda xp, a: xp.__name__ == "numpy", doc="Is it on the CPU?")
table.define("prim::is_cuda(Tensor a) -> bool", lambda xp, a: xp.__name__ != "numpy", doc="Is it on a GPU?")
table.define("prim::requires_grad(Tensor a) -> bool", lambda xp, a: False, doc="Are gradients taken through it? Not through an array.")
table.define([f"prim::is_{name}(Tensor a) -> bool" for name in
              ("ipu", "maia", "meta", "mkldnn", "mps", "mtia", "nested", "quantized", "sparse", "sparse_csr", "vulkan", "xla",
               "xpu")],
             lambda xp, a: False, doc="Is it of this kind? Arrays never are.")
table.define("aten::is_floating_point(Tensor self) -> bool", lambda xp, self: self.dtype.kind == "f", doc="Is the dtype a float?")
table.define("aten::is_complex(Tensor self) -> bool", lambda xp, self: self.dtype.kind == "c", doc="Is the dtype complex?")
table.define("aten::is_signed(Tensor self) -> bool", lambda xp, self: self.dtype.kind in "ifc", doc="Has the dtype negative numbers?")
table.define("aten::is_leaf(Tensor self) -> bool", lambda xp, self: True, doc="Is it no result of recorded operations? No array is one.")
table.define("aten::retains_grad(Tensor self) -> bool", lambda xp, self: False, doc="Does it keep its gradient? Arrays have none.")
table.define("prim::data(Tensor(a) a) -> Tensor(a)", lambda xp, a: a[...], doc="Another tensor on the same memory, without its history.")
table.define("prim::type(Device self) -> str", lambda xp, self: str(self).partition(":")[0], doc="`cpu`, `cuda`.")


@table.op("prim::index(Device self) -> int?")
def device_index(xp, self):
    """1 for `cuda:1`, None for `cpu`."""
    _, colon, number = str(self).partition(":")
    return int(number) if colon else None


@table.op("aten::device(str a) -> Device")
def device(xp, a):
    """A device by name."""
    kind, colon, number = a.partition(":")
    if not kind.isidentifier() or colon and not number.isdecimal():
        raise RunError(f"Invalid device string: '{a}'")
    return a


table.define("aten::device.with_index(str type, int index) -> Device", lambda xp, type, index: f"{type}:{index}", doc="`cuda:1`.")


# -- tensors and numbers
@table.op("prim::NumToTensor.Scalar(Scalar a) -> Tensor", "prim::NumToTensor.bool(bool a) -> Tensor")
def num_to_tensor(xp, a):
    """A 0-d tensor: float64, int64, bool or complex128."""
    return as_array(a)


def _item(a: Any) -> Any:
    if a.size != 1:
        raise RunError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
    return to_number(a)


@table.op("aten::item(Tensor self) -> Scalar", "aten::_local_scalar_dense(Tensor self) -> Scalar")
def item(xp, self):
    """The only element as a number."""
    return _item(self)


def _sole(a: Any) -> Any:
    if a.ndim:
        raise RunError("Cannot input a tensor of dimension other than 0 as a scalar argument")
    return _item(a)


@table.op("aten::ScalarImplicit(Tensor a) -> Scalar")
def scalar_implicit(xp, a):
    """The number in a 0-d tensor."""
    return _sole(a)


@table.op("aten::IntImplicit(Tensor a) -> int")
def int_implicit(xp, a):
    """The int in a 0-d tensor of integers."""
    number = _sole(a)
    if a.dtype.kind not in "iu":
        raise RunError("Cannot input a tensor of type " + title(a.dtype) + " as an integral argument")
    return int(number)


@table.op("aten::FloatImplicit(Tensor a) -> float")
def float_implicit(xp, a):
    """The float in a 0-d tensor."""
    return float(_sole(a))


table.define("aten::ComplexImplicit(Tensor a) -> complex", lambda xp, a: complex(_sole(a)), doc="The complex number in a 0-d tensor.")


def _real(number: Any, wanted: str) -> Any:
    if isinstance(number, complex):
        if number.imag:
            raise RunError(f"value cannot be converted to type {wanted} without overflow")
        return number.real
    return number


@table.op("aten::Int.Tensor(Tensor a) -> int")
def int_of_tensor(xp, a):
    """int() of the only element, towards zero."""
    number = _real(_item(a), "int64_t")
    if not isinstance(number, float):
        return int(number)
    if not -2.0 ** 63 <= number <= 2.0 ** 63:       # the upper bound is the smallest int in C, and in torch
        raise RunError("value cannot be converted to type int64_t without overflow")
    return c_int(number)


table.define("aten::Float.Tensor(Tensor a) -> float", lambda xp, a: float(_real(_item(a), "double")), doc="float() of the only element.")


@table.op("aten::Bool.Tensor(Tensor a) -> bool")
def bool_of_tensor(xp, a):
    """Is the only element not zero?"""
    if a.size != 1:
        raise RunError("Boolean value of Tensor with " + ("no values" if a.size == 0 else "more than one value") + " is ambiguous")
    return bool(a.reshape(-1)[0])


table.define("aten::Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex",
             lambda xp, a, b: complex(_item(a), _item(b)), doc="complex(a, b).")
table.define([f"aten::Complex.Tensor_{t}(Tensor x, {t} y) -> complex" for t in ("bool", "float", "int")],
             lambda xp, x, y: complex(_item(x), y), doc="complex(x, y).")
table.define([f"aten::Complex.{t}_Tensor({t} x, Tensor y) -> complex" for t in ("bool", "float", "int")],
             lambda xp, x, y: complex(x, _item(y)), doc="complex(x, y).")


# -- dtypes
table.define("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
             lambda xp, a, b: code_of(promote_types(dtype_of(a), dtype_of(b))), doc="The common dtype of two.")
table.define("aten::can_cast(ScalarType from_, ScalarType to) -> bool", lambda xp, a, b: can_cast(dtype_of(a), dtype_of(b)),
             doc="May values of one dtype be stored as another?")
table.define(["aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
              "aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
              "aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
              "aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType"],
             lambda xp, a, b: code_of(result_type([a, b])), doc="The dtype a result of both has.")


# -- identity and None
def identical(a: Any, b: Any, one_value: bool = False) -> bool:
    """a is b. Numbers are compared, and nan is none of them; `one_value`: both are one value of the graph.

    A string, complex number or member of an enumeration that a graph gets twice is two objects in torch and may be one in Python: raises
    UnsupportedError where only that could tell.
    """
    if a is None or b is None or type(a) is not type(b):
        return a is b
    if isinstance(a, bool | int | float):
        return bool(a == b)
    if one_value or a is not b:
        return one_value
    if isinstance(a, str | complex | enum.Enum):
        raise UnsupportedError(f"whether two equal values of type {type(a).__name__} are one object is not known here; compare them by ==")
    return True


table.define("aten::__is__(t1 self, t2 obj) -> bool", lambda xp, self, obj: identical(self, obj), doc="self is obj.")
table.define("aten::__isnot__(t1 self, t2 obj) -> bool", lambda xp, self, obj: not identical(self, obj), doc="self is not obj.")


@table.op("aten::_unwrap_optional(t(a)? optional) -> t(a)", "prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)")
def unwrap_optional(xp, optional):
    """The value. Raises for None."""
    if optional is None:
        raise RunError("Unwrapping null optional")
    return optional


table.define("prim::unchecked_cast(t x) -> t", lambda xp, x: x, doc="The value itself, under another type.")
table.define("prim::Uninitialized() -> Any", lambda xp: None, doc="A value nobody reads.")
table.define("prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)",
             lambda xp, cond, x, y: x if cond else y, doc="x if cond else y.")
table.define("prim::Guard(Tensor(a) t) -> Tensor(a)", lambda xp, t: t, doc="The tensor, whose type is checked in torch.")
table.define("prim::BailoutTemplate() -> int", lambda xp: 0, doc="The number of a piece of code to go back to.")
table.define("aten::wait(Future(t) self) -> t", lambda xp, self: self, doc="The result of a fork, which ran at once.")
table.define(["prim::awaitable_nowait(t self) -> Await(t)", "prim::awaitable_wait(Await(t) self) -> t"], lambda xp, self: self,
             doc="The value itself: nothing is put off.")


# -- undefined tensors
table.define(["prim::AutogradZero() -> Tensor"], lambda xp: None, doc="The undefined tensor.")


@table.op("prim::AutogradAdd(Any a, Any b) -> Any")
def autograd_add(xp, a, b):
    """Sum in which an undefined tensor counts as zero; of lists, or tuples, of one length, element by element; of dicts, key by key."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, dict):
        return {key: autograd_add.kernel(xp, a.get(key), b.get(key)) for key in {**a, **b}}
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            raise RunError(f"the gradients of a list have {len(a)} and {len(b)} elements")
        total = [autograd_add.kernel(xp, one, other) for one, other in zip(a, b, strict=True)]
        return total if isinstance(a, list) else tuple(total)
    dtype = result_type([a, b])
    return as_array(as_array(a, dtype) + as_array(b, dtype), dtype)     # of two without dimensions NumPy makes a number


def is_there(value: Any) -> bool:
    """Is a tensor defined, or at least one of a list, tuple or dict?"""
    if isinstance(value, dict):
        value = [*value.values()]
    return any(map(is_there, value)) if isinstance(value, list | tuple) else value is not None


table.define("prim::AutogradAnyNonZero(...) -> bool", lambda xp, *values: any(map(is_there, values)), doc="Is one defined?")
table.define("prim::AutogradAllNonZero(...) -> bool", lambda xp, *values: all(v is not None for v in values), doc="Are all defined?")
table.define("prim::AutogradAllZero(...) -> bool", lambda xp, *values: all(v is None for v in values), doc="Is none defined?")


# -- joining
@table.op("prim::VarConcat(...) -> Tensor")
def var_concat(xp, *values):
    """Tensors joined along the last operand, a dimension."""
    return call_op("aten::cat", [list(values[:-1]), values[-1]])


@table.op("prim::VarStack(...) -> Tensor")
def var_stack(xp, *values):
    """Tensors stacked along the last operand, a new dimension."""
    return call_op("aten::stack", [list(values[:-1]), values[-1]])


@table.op("prim::MMTreeReduce(...) -> Tensor")
def mm_tree_reduce(xp, *values):
    """Sum of the products of the first half of the matrices with the second half."""
    half = len(values) // 2
    total = None
    for a, b in zip(values[:half], values[half:], strict=True):
        product = xp.matmul(a, b)
        total = product if total is None else total + product
    return total


# -- effects
@table.op("prim::Print(...) -> ()")
def print_values(xp, *values):
    """Prints values with spaces between, on standard output."""
    text = " ".join(value_text(value) for value in values)
    try:
        print(clean(text) if sys.stdout is not None and sys.stdout.isatty() else text, file=sys.stdout)
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


@table.op("prim::RaiseException(str msg, str? cls=None) -> ()")
def raise_exception(xp, msg, cls):
    """Raises RunError with the message, after the name of the class if there is one."""
    raise RunError(f"{cls.rpartition('.')[2]}: {msg}" if cls else msg, code="E0410")


@table.op("aten::warn(str message, int stacklevel=2) -> ()")
def warn(xp, message, stacklevel):
    """A Python warning."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)


table.define("aten::is_scripting() -> bool", lambda xp: True, doc="Graphs are what scripting gives.")
table.define("profiler::_record_function_enter(str name, str? args=None) -> Tensor", lambda xp, name, args=None: xp.zeros((1,), xp.uint8),
             doc="A handle: nothing is recorded.")
table.define("profiler::_record_function_enter_new(str name, str? args=None) -> __torch__.torch.classes.profiler._RecordFunction",
             lambda xp, name, args=None: Packed(RECORD), doc="A record: nothing is in it.")
table.define(["profiler::_record_function_exit(Tensor handle) -> ()",
              "profiler::_record_function_exit._RecordFunction(__torch__.torch.classes.profiler._RecordFunction record) -> ()"],
             lambda xp, handle: None, doc="The end of what would be recorded.")


class GradMode(threading.local):
    """Whether gradients are on, in the run of this thread. Nothing is recorded either way, but a graph can ask."""

    is_on = True

    @contextmanager
    def fresh(self, is_on: bool = True) -> Iterator[None]:
        """On (or as said), as at the start of a run; as before at its end."""
        before, self.is_on = self.is_on, is_on
        try:
            yield
        finally:
            self.is_on = before


GRAD_MODE = GradMode()
table.define("aten::is_grad_enabled() -> bool", lambda xp: GRAD_MODE.is_on, doc="Are gradients on?")


@table.op("aten::set_grad_enabled(bool val) -> ()")
def set_grad_enabled(xp, val):
    """Switches gradients on or off; nothing is recorded either way."""
    GRAD_MODE.is_on = val
table.define(["aten::_get_tracing_state() -> bool", "aten::is_autocast_enabled() -> bool", "aten::is_autocast_cpu_enabled() -> bool",
              "aten::_use_cudnn_rnn_flatten_weight() -> bool", "aten::is_vulkan_available() -> bool", "aten::_nnpack_available() -> bool"],
             lambda xp: False, doc="No.")
table.define("aten::get_autocast_dtype(str device_type) -> ScalarType", lambda xp, device_type: 15 if device_type == "cpu" else 5,
             doc="What autocast would cast to: bfloat16 on the CPU, else float16.")
table.define("aten::has_torch_function(...) -> bool", lambda xp, *values: False, doc="Arrays have no __torch_function__.")


@table.op("aten::_assert_scalar(Scalar self, str assert_msg) -> ()")
def assert_scalar(xp, self, assert_msg):
    """Raises unless the number is true."""
    if not self:
        raise RunError(assert_msg, code="E0410")


LISTED = {"int": "Long", "float": "Float", "bool": "Bool", "complex": "ComplexFloat"}
"""The declared type of elements -> the dtype of tensors that become lists of them; float and complex stand for all of their kind."""


def nested_list(x: Any, dim: int, element: str) -> Any:
    """A tensor as nested lists of numbers, checked as prim::tolist does."""
    if x.ndim != dim:
        raise RunError("Output annotation list dimension and runtime tensor dimension must match for tolist()")
    fits = x.dtype.kind == element[0] if element in ("float", "complex") else title(x.dtype) == LISTED.get(element)
    if not fits and element in LISTED:
        raise RunError("Output annotation element type and runtime tensor element type must match for tolist(): "
                       f"{LISTED.get(element, element)} vs {title(x.dtype)}")
    return x.tolist()

