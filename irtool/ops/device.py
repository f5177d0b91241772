"""CuPy as an array namespace for kernels: CuPy's own functions, with replacements where they are missing or differ from NumPy's.

Kernels are written against NumPy's names, nearly all of which CuPy has. The exceptions are here: its ufuncs take no `order=`, and few have
reduce, accumulate and scatter; the error state is NumPy's. Writes with repeated indices that CuPy cannot do (its atomic operations support
few dtypes and lose nans) are done on the host: results are right, at the price of a copy.

Limits: results are CuPy's. So the last bits of transcendental functions and of long sums are not NumPy's, float32 numbers below 2**-126 are
zero, floats out of the range of integers are converted as CUDA does, and sums of repeated indices (`index_add`, `scatter_add`) have any
order.
"""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import XP, add_namespace

SCATTERED = frozenset(("int32", "uint32", "uint64", "float32", "float64"))
"""The dtypes of CuPy's add.at."""
ON_HOST = frozenset(("logaddexp", "logical_and", "logical_or", "bitwise_xor", "maximum", "minimum", "multiply", "add"))
"""Ufuncs whose methods run on the host."""


class DeviceUfunc:
    """A ufunc of CuPy, with `order=` and the methods that CuPy's own lacks."""

    __slots__ = ("function", "host", "space")

    def __init__(self, function: Any, host: Any, space: CupyNamespace) -> None:
        self.function = function
        self.host = host
        self.space = space

    def __call__(self, *operands: Any, order: str = "K", **named: Any) -> Any:
        result = self.function(*operands, **named)
        return self.space.ascontiguousarray(result).reshape(result.shape) if order == "C" else result

    def at(self, target: Any, index: Any, values: Any) -> None:
        """As numpy.ufunc.at."""
        cupy = self.space.cupy
        if self.host is np.add and target.dtype.name in SCATTERED and not _has_mask(index):
            self.function.at(target, index, values)
            return
        copy = target.get()
        self.host.at(copy, _on_host(index), _on_host(values))
        target[...] = cupy.asarray(copy)

    def reduce(self, x: Any, axis: Any = 0, **named: Any) -> Any:
        """As numpy.ufunc.reduce."""
        return self.space.cupy.asarray(self.host.reduce(x.get(), axis, **named))

    def accumulate(self, x: Any, axis: int = 0, **named: Any) -> Any:
        """As numpy.ufunc.accumulate."""
        return self.space.cupy.asarray(self.host.accumulate(x.get(), axis, **named))


class DeviceFunctions:
    """SciPy's special functions: CuPy's copies, and for the others SciPy on the host."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy

    def __getattr__(self, name: str) -> Any:
        """The function, which is cached."""
        function = getattr(import_module("cupyx.scipy.special"), name, None)
        if function is None:
            host_function = getattr(import_module("scipy.special"), name)

            def function(*operands: Any) -> Any:
                results = host_function(*[_on_host(each) for each in operands])
                return tuple([self.cupy.asarray(each) for each in results]) if isinstance(results, tuple) else self.cupy.asarray(results)
        setattr(self, name, function)
        return function


class CupyNamespace:
    """The namespace `xp` for kernels on CuPy arrays."""

    __name__ = "cupy"

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.cupyx = import_module("cupyx")
        self.errstate = np.errstate
        self.ndindex = np.ndindex
        self.special = DeviceFunctions(cupy)
        tricks = cupy.lib.stride_tricks
        self.lib = SimpleNamespace(stride_tricks=SimpleNamespace(
            as_strided=lambda x, shape, strides, writeable=True: tricks.as_strided(x, tuple(shape), tuple(strides)),
            sliding_window_view=tricks.sliding_window_view))

    def unravel_index(self, index: Any, shape: Any) -> Any:
        """As numpy.unravel_index; for a Python number, computed on the host."""
        return (np if isinstance(index, int) else self.cupy).unravel_index(index, shape)

    def remainder(self, x: Any, y: Any) -> Any:
        """As numpy.remainder. CuPy's of floats is x - floor(x / y) * y, which is nan for infinite y and wrong by up to y elsewhere."""
        cupy = self.cupy
        if self.result_type(x, y).kind != "f":
            return cupy.remainder(x, y)
        rest = cupy.fmod(x, y)
        return cupy.where(rest == 0, cupy.copysign(rest, y), cupy.where((rest < 0) != (y < 0), rest + y, rest))

    def floor_divide(self, x: Any, y: Any) -> Any:
        """As numpy.floor_divide; CuPy's of floats is floor(x / y), which may be one too large."""
        cupy = self.cupy
        if self.result_type(x, y).kind != "f":
            return cupy.floor_divide(x, y)
        rest, quotient = cupy.fmod(x, y), cupy.true_divide(x, y)
        exact = (x - rest) / y - ((rest != 0) & ((rest < 0) != (y < 0)))
        whole = cupy.floor(exact)
        whole = whole + (exact - whole > 0.5)
        return cupy.where(y == 0, quotient, cupy.where(whole == 0, cupy.copysign(whole, quotient), whole))

    def repeat(self, x: Any, repeats: Any, axis: int | None = None) -> Any:
        """As numpy.repeat; CuPy's needs the counts on the host."""
        return self.cupy.repeat(x, repeats.tolist() if hasattr(repeats, "tolist") else repeats, axis)

    def __getattr__(self, name: str) -> Any:
        """CuPy's own function, which is cached."""
        function = getattr(self.cupy, name)
        if name in UFUNCS:
            function = DeviceUfunc(function, getattr(np, name), self)
        setattr(self, name, function)
        return function


UFUNCS = ON_HOST | {"subtract"}


def _on_host(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_on_host(each) for each in value])
    return value.get() if hasattr(value, "get") and hasattr(value, "dtype") else value


def _has_mask(index: Any) -> bool:
    return any(getattr(each, "dtype", None) == np.bool_ for each in (index if isinstance(index, tuple) else (index,)))


_made: dict[Any, CupyNamespace] = {}


def backend(name: str) -> XP:
    """The namespace called `numpy` or `cupy`. Raises RunError for another name, and if CuPy, or a GPU for it, is missing."""
    if name == "numpy":
        return np
    if name != "cupy":
        raise RunError(f"backend '{name}': expected numpy or cupy", code="E0805")
    return cupy_namespace()


def cupy_namespace() -> CupyNamespace:
    """The namespace of CuPy arrays. Raises RunError if CuPy is not installed, cannot be loaded, or finds no GPU."""
    try:
        cupy = import_module("cupy")
        namespace = _made.get(cupy) or CupyNamespace(cupy)
    except ImportError as error:
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) and error.name == "cupy" else f"cannot be loaded ({error})"
        raise RunError(f"the backend cupy needs CuPy, which {reason}: pip install 'irtool[cuda]'", code="E0404") from error
    if cupy not in _made:
        _need_gpu(cupy.cuda.runtime.getDeviceCount)
        add_namespace(cupy.ndarray, namespace)
        _made[cupy] = namespace
    return namespace


def _need_gpu(count: Callable[[], int]) -> None:
    try:
        if count():
            return
        reason = "there is none"
    except Exception as error:      # CUDA's own errors, whose classes only CuPy knows
        reason = str(error)
    raise RunError(f"the backend cupy needs a GPU: {reason}", code="E0404")
