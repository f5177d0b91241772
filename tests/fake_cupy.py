"""CuPy without a GPU: its functions, under its names and with its signatures alone, on hidden NumPy memory.

Which functions, arguments, dtypes of ufuncs and attributes of arrays there are is in `data/cupy_api.json`, taken from CuPy 14.2. Beyond
that the stand-in does as CuPy does where CuPy does otherwise than NumPy:

- an array is no NumPy array, and NumPy's functions raise on it; NumPy arrays, 0-d ones too, are no operands;
- whatever is computed is an array, never a NumPy scalar; an element taken from an array is a view of it;
- ufuncs take `out`, `dtype` and `casting`, no more; few of them reduce, accumulate or scatter, and scattering knows few dtypes;
- the remainder of floats is rounded as often as it is computed;
- indices out of range wrap; strides cannot be set; singular matrices are no error unless that is asked for.

Elementwise kernels are compiled by a C++ compiler and run on the elements, one by one.
"""
from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

API: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "cupy_api.json").read_text(encoding="utf-8"))
NUMBERS = (bool, int, float, complex, np.generic)
HOST_WELCOME = frozenset(("array", "asarray", "asanyarray"))
BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
          "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
          "matmul": "matmul"}
COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


class Flags:
    """What CuPy tells of an array's layout."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous = flags.c_contiguous
        self.f_contiguous = flags.f_contiguous
        self.owndata = flags.owndata


class ndarray:  # noqa: N801  CuPy's name
    """An array on a device that is not there."""

    __slots__ = ("_inner", "_of", "__weakref__")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None
    __array_priority__ = 100

    def __init__(self, inner: Any) -> None:
        self._inner: Any = np.asarray(inner)
        self._of = "a view"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} on a CuPy array")

    dtype = property(lambda self: self._inner.dtype)
    ndim = property(lambda self: self._inner.ndim)
    size = property(lambda self: self._inner.size)
    itemsize = property(lambda self: self._inner.itemsize)
    nbytes = property(lambda self: self._inner.nbytes)
    strides = property(lambda self: self._inner.strides)
    flags = property(lambda self: Flags(self._inner.flags))
    T = property(lambda self: ndarray(self._inner.T))
    mT = property(lambda self: ndarray(self._inner.mT))  # noqa: N815
    base = property(lambda self: None if self._inner.base is None or self._of == "memory" else ndarray(self._inner.base))
    data = property(lambda self: types.SimpleNamespace(ptr=self._inner.ctypes.data, mem=owner(self._inner)))
    __cuda_array_interface__ = property(lambda self: {"shape": self.shape})

    @property
    def shape(self) -> Any:
        return self._inner.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._inner.shape = shape

    @property
    def real(self) -> Any:
        return ndarray(self._inner.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self._inner.real = raw(value)

    @property
    def imag(self) -> Any:
        return ndarray(self._inner.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._inner.imag = raw(value)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if order not in ("C", "F", "A"):
            raise ValueError(f"unsupported order: {order}")
        return self._inner.copy(order)

    def fill(self, value: Any) -> None:
        if isinstance(value, ndarray) and (value.dtype != self.dtype or value.ndim):
            raise TypeError("fill: another dtype")
        self._inner.fill(raw(value))

    def __getitem__(self, index: Any) -> Any:
        index = indices(index, self.shape)
        if all(each is None or each is Ellipsis or isinstance(each, slice | int | np.integer) for each in index):
            return ndarray(self._inner[(*index, ...) if Ellipsis not in index else index])
        return ndarray(self._inner[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            raise TypeError("a NumPy array stored in a CuPy array")
        if isinstance(value, ndarray):
            while value.ndim and value.shape[0] == 1:
                value = value.reshape(value.shape[1:])
        with np.errstate(all="ignore"):
            self._inner[indices(index, self.shape)] = raw(value)

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        return bool(self._inner)

    def __int__(self) -> int:
        return int(self._inner)

    def __float__(self) -> float:
        return float(self._inner)

    def __complex__(self) -> complex:
        return complex(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self._inner), spec)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __neg__(self) -> Any:
        return NAMESPACE.negative(self)

    def __pos__(self) -> Any:
        return self.copy()

    def __abs__(self) -> Any:
        return NAMESPACE.absolute(self)

    def __invert__(self) -> Any:
        return NAMESPACE.invert(self)

    def __reduce__(self) -> Any:
        raise TypeError("no pickles here")


def owner(array: Any) -> Any:
    """What holds the memory."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def raw(value: Any) -> Any:
    """What NumPy is to compute with. Raises TypeError for a NumPy array."""
    if isinstance(value, ndarray):
        return value._inner
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {np.ndarray}")
    if isinstance(value, list | tuple):
        return type(value)([raw(each) for each in value])
    return value


def wrapped(value: Any, known: dict[int, Any]) -> Any:
    """A result as CuPy gives it; what is an operand itself is that."""
    if isinstance(value, np.ndarray):
        found = known.get(id(value))
        return ndarray(value) if found is None else found
    if isinstance(value, np.generic):
        return ndarray(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[wrapped(each, known) for each in value])
    if isinstance(value, list | tuple):
        return type(value)([wrapped(each, known) for each in value])
    return value


def operands(values: Any) -> dict[int, Any]:
    """The arrays among arguments by the identity of what NumPy sees of them."""
    return {id(value._inner): value for value in values if isinstance(value, ndarray)}


def indices(index: Any, shape: tuple[int, ...]) -> Any:
    """An index as NumPy takes it; whole numbers out of range wrapped around, if they are in arrays."""
    found = index if isinstance(index, tuple) else (index,)
    if any(isinstance(each, np.ndarray) for each in found):
        raise TypeError("a NumPy array as an index of a CuPy array")
    consumed = sum(each.ndim if getattr(each, "dtype", None) == np.bool_ else 1
                   for each in found if each is not None and each is not Ellipsis)
    axis = 0
    made: list[Any] = []
    for each in found:
        if each is Ellipsis:
            axis += len(shape) - consumed
        elif each is not None:
            part = raw(each)
            if isinstance(part, list):
                part = np.asarray(part) if part else np.asarray(part, np.int32)
            is_mask = getattr(part, "dtype", None) == np.bool_
            if isinstance(part, np.ndarray) and not is_mask and axis < len(shape) and shape[axis]:
                part = part % shape[axis]
            made.append(part)
            axis += part.ndim if is_mask else 1
            continue
        made.append(each)
    return tuple(made)


HOST = frozenset("""axis axis1 axis2 shape newshape dtype order k num n ndmin keepdims kind side mode ddof decimals full_matrices compute_uv
axes pad_width minlength start stop step retstep endpoint UPLO indexing descending invert stable strides norm M N dims offset""".split())
"""Parameters that are looked at on the host: arrays of a device have no `__index__`."""
ARRAYS = frozenset("a x arr ar m array element test_elements condition ary keys indices".split())
"""Parameters of functions that take nothing but arrays."""
ANYTHING = HOST_WELCOME | {"shape", "ndim", "size", "result_type", "can_cast", "min_scalar_type", "isscalar", "may_share_memory"}

NO_LISTS = {("flip", "axis"), ("expand_dims", "axis"), ("sliding_window_view", "axis")}
"""Numbers or tuples of them."""
EITHER = {("take", "indices"), ("where", "x"), ("where", "y")}
"""Arrays or numbers."""


def is_on_device(value: Any) -> bool:
    return isinstance(value, ndarray) or isinstance(value, list | tuple) and any(map(is_on_device, value))


def check(name: str, given: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuses arguments that CuPy's function does not have, and arrays where numbers are wanted."""
    parameters = given.split() if isinstance(given, str) and given != "-" else []
    by_position = len(parameters) if not any(each.startswith("*") for each in parameters) else [
        each.startswith("*") for each in parameters].index(True)
    for parameter, value in (*zip(parameters[:by_position], args, strict=False), *named.items()):
        if is_on_device(value) and parameter in HOST:
            raise TypeError(f"{name}: a CuPy array cannot be interpreted as an integer")
        if isinstance(value, list) and (name, parameter) in NO_LISTS:
            raise TypeError(f"{name}: 'list' object cannot be interpreted as an integer")
        if parameter in ARRAYS and name not in ANYTHING and not isinstance(value, ndarray) and (name, parameter) not in EITHER:
            raise TypeError(f"{name}: {parameter} is no CuPy array but {type(value).__name__}")
    if "**any" in parameters:
        return
    if not any(each.startswith("*") for each in parameters) and len(args) > len(parameters):
        raise TypeError(f"{name}() takes {len(parameters)} positional arguments but {len(args)} were given")
    if not any(each.startswith("**") for each in parameters):
        for each in named:
            if each not in parameters:
                raise TypeError(f"{name}() got an unexpected keyword argument '{each}'")


def method(name: str, parameters: str) -> Callable[..., Any]:
    """A method of arrays."""
    def call(self: ndarray, *args: Any, **named: Any) -> Any:
        if name in ("reshape", "transpose") and is_on_device(args):
            raise TypeError(f"{name}: a CuPy array cannot be interpreted as an integer")
        if name not in ("reshape", "transpose"):
            check(name, parameters, args, named)
        if name == "repeat" and isinstance(args[0], ndarray):
            raise ValueError("cupy.ndaray cannot be specified as `repeats` argument.")
        if name == "astype" and named.get("casting", 1) is None:
            named.pop("casting")
        if name == "take":
            args = (wrap_indices(self, *args, **named), *args[1:])
        with np.errstate(all="ignore"):
            found = getattr(self._inner, name)(*raw(args), **{key: raw(value) for key, value in named.items()})
        if name in ("item", "tolist", "tobytes"):
            return found
        return wrapped(found, operands((self, *args, *named.values())))
    call.__name__ = name
    return call


def wrap_indices(x: Any, index: Any, axis: int | None = None, **_: Any) -> Any:
    size = x.size if axis is None else x.shape[axis]
    return index % size if isinstance(index, ndarray) and size else index


class Ufunc:
    """A universal function, with the loops CuPy has."""

    def __init__(self, name: str, function: Any, loops: list[str], scatter: str | None) -> None:
        self.__name__ = name
        self.function = function
        self.loops = loops
        self.scatter = scatter
        self.nin = len(loops[0].partition("->")[0])

    def __call__(self, *args: Any, **named: Any) -> Any:
        wrong = named.keys() - {"out", "dtype", "casting"}
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        for each in args:
            if not isinstance(each, (ndarray, *NUMBERS)):
                raise TypeError(f"Unsupported type {type(each)}")
        if not self.takes(args[:self.nin]):
            raise TypeError(f"{self.__name__}: no loop for {[getattr(each, 'dtype', each) for each in args]}")
        with np.errstate(all="ignore"):
            found = self.function(*raw(args), **{key: raw(value) for key, value in named.items()})
        return wrapped(found, operands((*args, *named.values())))

    def takes(self, args: tuple[Any, ...]) -> bool:
        kinds = [getattr(each, "dtype", None) for each in args]
        return any(all(kind is None or np.can_cast(kind, wanted) for kind, wanted in zip(kinds, loop, strict=False))
                   for loop in self.loops)

    def at(self, target: Any, index: Any, values: Any) -> None:
        if self.scatter is None:
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        scatter(self.function, target, index, values)

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.__name__}.reduce` is not supported yet")
        return wrapped(self.function.reduce(raw(array), axis, dtype, raw(out), keepdims), {})

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.__name__}.accumulate` is not supported yet")
        return wrapped(self.function.accumulate(raw(array), axis, dtype, raw(out)), {})


def floor_divide(x: Any, y: Any, **named: Any) -> Any:
    """Of floats as CuPy rounds it."""
    return np.floor(np.true_divide(x, y), **named) if np.result_type(x, y).kind == "f" else np.floor_divide(x, y, **named)


def remainder(x: Any, y: Any, **named: Any) -> Any:
    """Of floats as CuPy rounds it."""
    return np.subtract(x, floor_divide(x, y) * y, **named) if np.result_type(x, y).kind == "f" else np.remainder(x, y, **named)


UFUNCS = {"floor_divide": floor_divide, "remainder": remainder, "mod": remainder}
"""Those that are not NumPy's."""


def scatter(function: Any, target: Any, index: Any, values: Any) -> None:
    """Atomic operations of a device."""
    allowed = {"int32", "uint32", "uint64", "float32", "float64"} | ({"float16"} if function is np.add else set())
    if target.dtype.name not in allowed:
        raise TypeError(f"scatter: {target.dtype} is not supported")
    with np.errstate(all="ignore"):
        function.at(target._inner, indices(index, target.shape), np.asarray(raw(values)).astype(target.dtype))


@contextmanager
def errstate(*, linalg: str | None = None, **_: Any) -> Iterator[None]:
    """cupyx.errstate."""
    old = STATE["linalg"]
    STATE["linalg"] = linalg or old
    try:
        yield
    finally:
        STATE["linalg"] = old


STATE = {"linalg": "ignore"}


def function(name: str, own: Any, parameters: str) -> Callable[..., Any]:
    """A function of the namespace."""
    def call(*args: Any, **named: Any) -> Any:
        check(name, parameters, args, named)
        if name not in HOST_WELCOME:
            _refuse_host(name, args, named)
        if name == "repeat" and isinstance(args[1], ndarray):
            raise ValueError("cupy.ndaray cannot be specified as `repeats` argument.")
        if name == "take":
            args = (args[0], wrap_indices(*args, **named), *args[2:])
        if name in ("full", "full_like") and isinstance(args[1], ndarray):
            dtype = args[2] if len(args) > 2 else named.get("dtype")
            if dtype is not None and np.dtype(dtype) != args[1].dtype:
                raise TypeError("fill: another dtype")
        plain = {key: raw(value) for key, value in named.items() if key != "blocking"}
        given = args if name in HOST_WELCOME and isinstance(args[0], np.ndarray) else raw(args)
        if name in HOST_WELCOME and isinstance(args[0], np.ndarray):
            plain["copy"] = True
        with np.errstate(all="ignore"):
            try:
                found = own(*given, **plain)
            except np.linalg.LinAlgError:
                if STATE["linalg"] == "raise" or given[0].shape[-1:] != given[0].shape[-2:-1]:
                    raise
                found = own(*[each + np.eye(each.shape[-1]) if i == 0 else each for i, each in enumerate(given)], **plain)
                found = found * np.nan if isinstance(found, np.ndarray) else type(found)(*[each * np.nan for each in found])
        result = wrapped(found, operands((*args, *named.values())))
        if name == "as_strided":
            result._of = "memory"       # an array of its own, as far as CuPy knows
        return result
    call.__name__ = name
    return call


def _refuse_host(name: str, args: Any, named: Any) -> None:
    for each in (*args, *named.values()):
        for part in each if isinstance(each, list | tuple) else (each,):
            if isinstance(part, np.ndarray):
                raise TypeError(f"{name}: a NumPy array among the arguments")


def module(name: str, home: Any) -> types.ModuleType:
    """A module of CuPy with what it has, done by NumPy's or SciPy's module of the same kind."""
    made = types.ModuleType(name)
    for each, given in API[name].items():
        own = getattr(home, each, None)
        if own is None:
            continue
        if isinstance(given, dict):
            made.__dict__[each] = Ufunc(each, UFUNCS.get(each, own), given["types"].split(), given.get("at")) if "types" in given else own
        else:
            made.__dict__[each] = function(each, own, given)
    return made


class ElementwiseKernel:
    """A kernel in CUDA C++, compiled for the processor. Types and names of parameters are those of the source."""

    made: list[ElementwiseKernel] = []

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", *, preamble: str = "",
                 options: tuple[str, ...] = ()) -> None:
        self.inputs = [tuple(each.split()) for each in in_params.split(",") if each.strip()]
        self.outputs = [tuple(each.split()) for each in out_params.split(",")]
        self.operation = operation
        self.name = name
        self.preamble = preamble
        self.function: Any = None
        self.made.append(self)

    def source(self, name: str = "kernel") -> str:
        """A loop over the elements."""
        every = [*self.inputs, *self.outputs]
        lines = [self.preamble, f'extern "C" void {name}(long long n, char **base) {{', "    for (long long i = 0; i < n; i++) {"]
        for place, (kind, name) in enumerate(every):
            reference = "&" if place >= len(self.inputs) else ""
            constant = "" if reference else "const "
            lines.append(f"        {constant}{C_NAMES[kind]} {reference}{name} = (({constant}{C_NAMES[kind]} *)base[{place}])[i];")
        return "\n".join([*lines, self.operation, "    }", "}", ""])

    def __call__(self, *args: Any, size: Any = None) -> Any:
        assert size is None
        given = [raw(each) for each in args]
        for each, (kind, _) in zip(given, (*self.inputs, *self.outputs), strict=False):
            assert each.dtype.name == kind, f"{each.dtype} for {kind}"
        outputs = given[len(self.inputs):]
        shape = np.broadcast_shapes(*[each.shape for each in given])
        whole = [np.ascontiguousarray(np.broadcast_to(each, shape)) for each in given[:len(self.inputs)]]
        found = [np.empty(shape, kind) for kind, _ in self.outputs]
        arrays = (*whole, *found)
        if self.function is None:
            compile_all([self])
        self.function(ctypes.c_longlong(int(np.prod(shape))), (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays]))
        for place, out in enumerate(outputs):
            out[...] = found[place]
        results = list(args[len(self.inputs):]) or [ndarray(each) for each in found]
        return results[0] if len(results) == 1 else tuple(results)


C_NAMES = {"float32": "float", "float64": "double", "bool": "bool", "int64": "long long", "int32": "int", "uint8": "unsigned char",
           "int8": "signed char", "int16": "short"}
HEADER = """#include <cmath>
#include <cstring>
using namespace std;
static float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
"""
"""What CUDA has, and C++ has not."""


def compiler() -> str | None:
    """A C++ compiler."""
    return shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def compile_all(kernels: list[ElementwiseKernel]) -> None:
    """Give the kernels their functions, compiled in one go."""
    library = compiled(HEADER + "\n".join(each.source(f"kernel{i}") for i, each in enumerate(kernels)))
    for i, each in enumerate(kernels):
        each.function = getattr(library, f"kernel{i}")
        each.function.restype = None


@cache
def compiled(source: str) -> Any:
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "kernel.cpp"
        place.write_text(source, encoding="utf-8")
        command = [str(compiler()), "-O0", "-ffp-contract=off", "-shared", "-fPIC", str(place), "-o",
                   str(place.with_suffix(".so"))]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert not done.returncode, done.stderr + source
        return ctypes.CDLL(str(place.with_suffix(".so")))


for _name, _parameters in API["ndarray"].items():
    if _parameters and _name not in ndarray.__dict__:
        setattr(ndarray, _name, method(_name, _parameters))


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        if not isinstance(other, (ndarray, *NUMBERS)):
            if isinstance(other, np.ndarray):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
            return NotImplemented
        own = getattr(NAMESPACE, name)
        return own(other, self) if reflected else own(self, other)
    return call


def _in_place(name: str) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        return getattr(NAMESPACE, name)(self, other, out=self)
    return call


for _short, _long in BINARY.items():
    setattr(ndarray, f"__{_short}__", _operator(_long, False))
    setattr(ndarray, f"__r{_short}__", _operator(_long, True))
    if _short != "matmul":
        setattr(ndarray, f"__i{_short}__", _in_place(_long))
for _short, _long in COMPARE.items():
    setattr(ndarray, f"__{_short}__", _operator(_long, False))


def modules() -> dict[str, types.ModuleType]:
    """All of it, as it is to stand in `sys.modules`."""
    import scipy.special

    cupy = NAMESPACE
    cupyx = types.ModuleType("cupyx")
    cupyx.__dict__.update(scatter_add=lambda target, index, values: scatter(np.add, target, index, values), errstate=errstate,
                          scatter_max=lambda target, index, values: scatter(np.maximum, target, index, values),
                          scatter_min=lambda target, index, values: scatter(np.minimum, target, index, values))
    special = module("cupyx.scipy.special", scipy.special)
    found = {"cupy": cupy, "cupyx": cupyx, "cupyx.scipy": types.ModuleType("cupyx.scipy"), "cupyx.scipy.special": special}
    found["cupyx.scipy"].__dict__["special"] = special
    cupyx.__dict__["scipy"] = found["cupyx.scipy"]
    return found


NAMESPACE: Any = module("cupy", np)
NAMESPACE.ndarray = ndarray
NAMESPACE.ElementwiseKernel = ElementwiseKernel
NAMESPACE.linalg = module("cupy.linalg", np.linalg)
NAMESPACE.fft = module("cupy.fft", np.fft)
NAMESPACE.lib = types.SimpleNamespace(stride_tricks=module("cupy.lib.stride_tricks", np.lib.stride_tricks))
NAMESPACE.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=lambda: 1))


@contextmanager
def installed() -> Iterator[Any]:
    """Within the block, `import cupy` gives this."""
    found = modules()
    before = {name: sys.modules.get(name) for name in found}
    sys.modules.update(found)
    try:
        yield NAMESPACE
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old


__all__ = ["ElementwiseKernel", "installed", "ndarray"]
