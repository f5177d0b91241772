"""`np`: NumPy; where it is not installed, as in a web page, names that stand for what it has.

Reading, rewriting, differentiating and printing compute nothing with arrays. The modules that do this name functions and types of NumPy all
the same, in tables and `isinstance`. These names exist without it, and so do arrays without elements: the tensors of an archive, of which
dtype and sizes are known. Whatever needs an element, or calls another function, raises UnsupportedError.
"""
from __future__ import annotations

import re
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from irtool.ir.errors import UnsupportedError

__all__ = ["NeedsNumpy", "has_elements", "np"]

FORM = re.compile(r"[<>|=]?(bool|float|complex|int|uint|[?bfciu])_?(\d*)")
WORDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


class NeedsNumpy(UnsupportedError, AttributeError):
    """NumPy is needed, and is not installed. An AttributeError, so that `hasattr` returns False."""

    def __init__(self, name: str) -> None:
        super().__init__(f"numpy.{name}: this needs NumPy, which is not installed (pip install numpy)")


class AbsentName(type):
    """The type of stand-ins for NumPy's functions, types and modules."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or "is_absent" not in cls.__dict__:
            raise AttributeError(name)
        setattr(cls, name, AbsentName(name, (), {"is_absent": True}))
        return cls.__dict__[name]

    def __getitem__(cls, key: Any) -> Any:
        return cls      # in annotations

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if cls.__dict__.get("is_absent"):
            raise NeedsNumpy(cls.__name__)
        return super().__call__(*args, **named)


class AbsentDtype:
    """A dtype by name."""

    name: str
    kind: str
    itemsize: int
    known: dict[str, AbsentDtype] = {}

    def __new__(cls, form: Any) -> AbsentDtype:
        """The dtype of a name or a code (`float32`, `<f4`), or of a type of NumPy: always the same object. Raises TypeError."""
        if isinstance(form, AbsentDtype):
            return form
        match = FORM.fullmatch(form if isinstance(form, str) else form.__name__)
        if match is None:
            raise TypeError(f"data type {form!r} not understood")
        word, digits = match.groups()
        is_bool = word in ("?", "b", "bool")
        size = 1 if is_bool else int(digits) // (1 if len(word) == 1 else 8) if digits else 16 if word == "complex" else 8
        name = "bool" if is_bool else f"{WORDS.get(word, word)}{8 * size}"
        if name not in cls.known:
            self = cls.known[name] = super().__new__(cls)
            self.name, self.kind, self.itemsize = name, name[0], size
        return cls.known[name]

    def __class_getitem__(cls, key: Any) -> Any:
        return cls

    def __str__(self) -> str:
        return self.name


class AbsentArray(metaclass=AbsentName):
    """An array without elements."""

    is_absent = False
    base = None

    def __init__(self, shape: Any, dtype: Any = "float64", buffer: Any = None, offset: int = 0, strides: Any = None) -> None:
        """strides: in bytes; by default, the array is row-major."""
        self.shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
        self.dtype = AbsentDtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.size = prod(self.shape)
        self.nbytes = self.size * self.itemsize
        self.ndim = len(self.shape)
        dense = tuple([self.itemsize * prod([max(n, 1) for n in self.shape[i + 1:]]) for i in range(self.ndim)])
        self.strides = dense if strides is None else tuple(strides)
        self.flags = SimpleNamespace(c_contiguous=self.strides == dense)

    def __getattr__(self, name: str) -> Any:
        raise NeedsNumpy(f"ndarray.{name}")

    def refused(self, *args: Any) -> Any:
        """Refuses an operator: the elements are unknown."""
        raise NeedsNumpy("ndarray")

    __getitem__ = __setitem__ = __len__ = __iter__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = refused
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __invert__ = refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = refused
    __pow__ = __rpow__ = __floordiv__ = __mod__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = refused
    __hash__ = None     # type: ignore[assignment]

    def view(self, dtype: Any) -> AbsentArray:
        """The same bytes as elements of another dtype."""
        return AbsentArray(self.nbytes // AbsentDtype(dtype).itemsize, dtype)


def has_elements(array: Any) -> bool:
    """Is this an array of NumPy, with elements?"""
    return not isinstance(array, AbsentArray)


def empty(shape: Any, dtype: Any = "float64") -> AbsentArray:
    """An array without elements, for `np.empty` and `np.zeros`."""
    return AbsentArray(shape, dtype)


def array(value: Any, order: str = "K") -> AbsentArray:
    """For `np.array` and `np.asarray`: the array itself, since a copy without elements would be the same. Raises UnsupportedError."""
    if isinstance(value, AbsentArray):
        return value
    raise NeedsNumpy("array")


def frombuffer(memory: Any, dtype: Any, count: int = -1, offset: int = 0) -> AbsentArray:
    """For `np.frombuffer`: an array without elements. Raises UnsupportedError if its size is not given."""
    if count < 0:
        raise NeedsNumpy("frombuffer")
    return AbsentArray(count, dtype)


if TYPE_CHECKING:
    import numpy as np
else:
    try:
        import numpy as np
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        np = AbsentName("numpy", (), {
            "is_absent": True, "dtype": AbsentDtype, "ndarray": AbsentArray, "empty": empty, "zeros": empty, "frombuffer": frombuffer,
            "array": array, "asarray": array, "nan": float("nan"), "inf": float("inf")})
