"""Arrays: one namespace (NumPy or CuPy), torch's dtype numbers, and the few places where the two namespaces or torch differ.

Kernels never import NumPy or CuPy: they get the namespace as `xp`, and take functions that it lacks from here. The run chooses the
namespace (`using`): NumPy, or CuPy with additions (`irtool.ops.device`).

Limits: `bfloat16` arrays are float32 arrays whose values were rounded to bfloat16 when they were converted (`to_bfloat16`); arithmetic
between conversions is float32. `complex32` is complex64. Quantized tensors are no arrays (`irtool.ops.quantized`).
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeGuard

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.shapes import pointwise_strides
from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]
XP = Any
"""The type of an array namespace: a module such as `numpy` or `cupy`."""

xp: XP = np

_namespace: ContextVar[XP] = ContextVar("irtool_namespace", default=np)
current_namespace = _namespace.get
"""The namespace of the current run, in which new arrays are made."""

array_types: tuple[type, ...] = (np.ndarray,)
"""The types of arrays; a backend adds its own when it is first used."""
_namespaces: dict[type, XP] = {np.ndarray: np}


def is_array(x: Any) -> TypeGuard[Array]:
    """Is `x` an array, of any namespace?"""
    return isinstance(x, array_types)


def namespace_of(x: Any) -> XP:
    """The namespace of an array; for any other value, that of the current run."""
    if isinstance(x, np.ndarray):
        return np
    namespace = _namespaces.get(type(x))
    return _namespace.get() if namespace is None else namespace


def add_namespace(kind: type, namespace: XP) -> None:
    """Register the namespace of arrays of the type `kind`."""
    global array_types
    if kind not in array_types:
        array_types = (*array_types, kind)
    _namespaces[kind] = namespace


@contextmanager
def using(namespace: XP) -> Iterator[None]:
    """A context in which new arrays are of this namespace, and singular matrices are errors as in NumPy."""
    token = _namespace.set(namespace)
    try:
        with nullcontext() if namespace is np else namespace.cupyx.errstate(linalg="raise"):
            yield
    finally:
        _namespace.reset(token)


def namespace_for(values: Any) -> XP:
    """The namespace for a computation with values: that of the first array on a device among them; else that of the current run."""
    if len(array_types) > 1:
        for value in values:
            namespace = namespace_for(value) if isinstance(value, list | tuple) else namespace_of(value)
            if namespace is not np:
                return namespace
    return _namespace.get()


def on_host(x: Any) -> Array:
    """An array as a NumPy array: itself, or a copy of an array on a device.

    Arrays for foreign code go through here. An object that only passes for an array (a tracer) is asked for its elements, and refuses: if
    f2py found that out itself, it would drop a reference to the dtype too many (SciPy 1.17), until Python aborts.
    """
    if issubclass(type(x), np.ndarray):
        array: Array = x
        return array
    device: Any = x
    copy: Array = device.get() if is_array(x) else np.asarray(x)
    return copy


def is_of_numbers(value: list[Any] | tuple[Any, ...]) -> bool:
    """Does a list or tuple contain numbers and texts only? (No Python code runs per element: a program's list may have millions.)"""
    return all(issubclass(each, int | float | complex | str) for each in set(map(type, value)))


def hosted(value: Any) -> Any:
    """A value in which arrays, also those in lists, tuples and dicts, are NumPy arrays."""
    if isinstance(value, list | tuple) and not is_of_numbers(value):
        items = [hosted(each) for each in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: hosted(each) for key, each in value.items()}
    return on_host(value) if is_array(value) else value


def on_this_device(x: Any) -> Array:
    """An array of the namespace of the current run: moved from a device or to it, or made of numbers."""
    namespace = _namespace.get()
    if namespace is np or isinstance(x, array_types) and not isinstance(x, np.ndarray):
        return on_host(x) if namespace is np else x
    array: Array = namespace.asarray(x)
    return array


def memory_of(x: Any) -> Any:
    """The owner of an array's memory: the array from which all views of it come; on a device, the piece of memory."""
    if not isinstance(x, np.ndarray):
        return x.data.mem
    while hasattr(x.base, "base"):      # between an array and the result of `as_strided` is an object that is no array
        x = x.base
    return x


def share_memory(a: Any, b: Any) -> bool:
    """May two arrays of one namespace share memory? Bounds are compared."""
    return type(a) is type(b) and bool(namespace_of(a).may_share_memory(a, b))


def are_apart(arrays: Sequence[Any]) -> bool:
    """Is it known at once that NumPy arrays share no memory? If not, their bounds tell.

    Different owners tell it only if NumPy allocated the memory of each: two arrays may be made from one buffer, or from one tensor of
    torch, and then have nothing in common but addresses.
    """
    if len(arrays) < 3:
        return len(arrays) < 2 or not np.may_share_memory(*arrays)
    owners = {id(owner): owner for owner in map(memory_of, arrays)}
    return len(owners) == len(arrays) and all([owner.flags.owndata for owner in owners.values()])


def bounds_of(array: Any) -> tuple[int, int]:
    """The addresses of the first byte of a NumPy array, and of the first one behind it."""
    low = high = address_of(array)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high + array.itemsize


def address_of(array: Any) -> int:
    """The address of the first element of a NumPy array."""
    return int(array.__array_interface__["data"][0])

CODES: dict[int, str] = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
                         8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
                         27: "uint16", 28: "uint32", 29: "uint64"}
"""torch's numbers for dtypes (c10/core/ScalarType.h) to torch's names."""

BFLOAT16 = 15
_STANDS_FOR = {"bfloat16": "float32", "complex32": "complex64"}
_DTYPES: dict[int, np.dtype[Any]] = {code: np.dtype(_STANDS_FOR.get(name, name)) for code, name in CODES.items()}
_CODE_OF: dict[np.dtype[Any], int] = {np.dtype(name): code for code, name in CODES.items() if name not in _STANDS_FOR}
_TITLES = {"uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half", "float32": "Float",
           "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble", "bool": "Bool", "bfloat16": "BFloat16",
           "complex32": "ComplexHalf", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}

default_dtype: np.dtype[Any] = np.dtype(np.float32)
"""The dtype of a Python float as a tensor, and of an integer array that must become floating-point."""
default_complex: np.dtype[Any] = np.dtype(np.complex64)


def dtype_of(code: int) -> np.dtype[Any]:
    """The NumPy dtype for torch's dtype number. Raises UnsupportedError for quantised and other dtypes that NumPy does not have."""
    try:
        return _DTYPES[code]
    except KeyError:
        raise UnsupportedError(f"dtype number {code} is not supported", code="E0409") from None


def dtype_named(name: str) -> np.dtype[Any]:
    """torch's dtype name (`float32`) -> NumPy dtype. Raises UnsupportedError."""
    try:
        return np.dtype(_STANDS_FOR.get(name, name))
    except TypeError:
        raise UnsupportedError(f"dtype {name} is not supported", code="E0409") from None


def code_of(dtype: Any) -> int:
    """NumPy dtype -> torch's number. Raises UnsupportedError."""
    try:
        return _CODE_OF[np.dtype(dtype)]
    except KeyError:
        raise UnsupportedError(f"dtype {dtype} is not supported", code="E0409") from None


def title(dtype: Any) -> str:
    """torch's name of a dtype in error messages: `Float`, `Long`."""
    return _TITLES.get(np.dtype(dtype).name, str(dtype))


def is_float(dtype: Any) -> bool:
    """Is the dtype float16, float32 or float64?"""
    return bool(np.dtype(dtype).kind == "f")


def is_complex(dtype: Any) -> bool:
    """Is the dtype complex?"""
    return bool(np.dtype(dtype).kind == "c")


def real_of(dtype: Any) -> np.dtype[Any]:
    """complex64 -> float32, complex128 -> float64; real dtypes stay."""
    real: np.dtype[Any] = np.dtype({"complex64": "float32", "complex128": "float64"}.get(np.dtype(dtype).name, dtype))
    return real


def complex_of(dtype: Any) -> np.dtype[Any]:
    """The complex dtype for a real one: complex128 for float64, else complex64; complex dtypes are unchanged."""
    exact: np.dtype[Any] = np.dtype(dtype)
    if exact.kind == "c":
        return exact
    return np.dtype(np.complex128 if exact == np.float64 else np.complex64)


def to_bfloat16(x: Array) -> Array:
    """float32 values rounded to the nearest bfloat16 (ties to even), still as float32."""
    xp = namespace_of(x)
    wide = xp.ascontiguousarray(x, np.float32)
    bits = wide.view(np.uint32)
    rounded = ((bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)).view(np.float32)
    narrow: Array = xp.where(xp.isnan(wide), wide, rounded).reshape(x.shape)
    return narrow


def convert(x: Array, code: int) -> Array:
    """`x` in the dtype numbered `code`; `x` itself if it has that dtype. Complex to real drops the imaginary part, as in torch."""
    if code == BFLOAT16:
        return to_bfloat16(astype(x, np.float32))
    return astype(x, dtype_of(code))


def astype(x: Array, dtype: Any) -> Array:
    """`x` in a NumPy dtype; `x` itself if it has it. Floats out of an integer's range wrap as in torch on x86-64; complex to real drops
    the imaginary part."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    kind = x.dtype.kind
    if kind == "c" and dtype.kind not in "cb":
        x = x.real
    if kind in "fc" and dtype.kind in "iu" and dtype != np.int32 and dtype.itemsize < 8:
        # as C++ compiles it on x86-64: through int32, so that 300.0 becomes uint8 44 and 3e9 becomes 0
        with np.errstate(invalid="ignore"):
            return x.astype(np.int32 if dtype.itemsize < 4 else np.int64).astype(dtype)
    if 0 in x.strides:
        x = copied(x)
    with np.errstate(invalid="ignore", over="ignore"):
        return x.astype(dtype)


def copied(x: Array) -> Array:
    """A copy of `x` with its dimensions in the same order in memory."""
    if 0 not in x.strides:
        return x.copy(order="K")
    order = memory_order(x)
    return x.transpose(order).copy().transpose([order.index(place) for place in range(x.ndim)])


def memory_order(x: Array) -> list[int]:
    """The dimensions of `x` in the order in memory that copies keep, the innermost last. Repeated dimensions (stride 0) are innermost to
    NumPy; torch leaves them where they are."""
    strides = x.strides if 0 not in x.strides else pointwise_strides(x.shape, [(x.shape, element_strides(x))])
    return sorted(range(x.ndim), key=lambda place: -abs(strides[place]))


def number_dtype(number: Any) -> np.dtype[Any]:
    """The dtype of a Python number as a tensor (`torch.tensor(2.5)`): bool, int64, the default float dtype, the default complex dtype."""
    if isinstance(number, bool | np.bool_):
        return np.dtype(np.bool_)
    if isinstance(number, int | np.integer):
        return np.dtype(np.int64)
    if isinstance(number, complex | np.complexfloating) and not isinstance(number, float | np.floating):
        return default_complex
    return default_dtype


def as_array(value: Any, dtype: Any = None) -> Array:
    """A number as a 0-d array, by default of the dtype that torch's wrapped numbers have (int64, float64, bool or complex128); arrays are
    unchanged.

    Numbers out of range of an integer dtype wrap.
    """
    if isinstance(value, np.ndarray):
        return value if dtype is None else astype(value, dtype)
    if hasattr(value, "astype") and not isinstance(value, np.generic):      # an array of another namespace, or a stand-in for one
        return value if dtype is None else astype(value, dtype)
    if isinstance(value, np.generic):
        array = np.asarray(value, dtype)
    elif dtype is None:
        array = np.array(value)
    elif isinstance(value, int) and np.dtype(dtype).kind in "iu":
        array = np.array(value & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(dtype)
    else:
        array = astype(np.array(value), dtype)
    xp = _namespace.get()
    return array if xp is np else xp.asarray(array)


def broadcast_view(x: Array, shape: Sequence[int]) -> Array:
    """`x` expanded to a larger shape, with stride 0 where it repeats. Writable if `x` is, unlike numpy.broadcast_to. -1 keeps a size."""
    lead = len(shape) - x.ndim
    if lead < 0:
        raise RunError(f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to the number of dimensions in the "
                       f"tensor ({x.ndim})", code="E0407")
    sizes, strides = [], []
    for place, size in enumerate(shape):
        old, stride = (x.shape[place - lead], x.strides[place - lead]) if place >= lead else (1, 0)
        if size == -1 and place >= lead:
            size = old
        if old != size:
            if old != 1 or size < 0:
                raise RunError(f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                               f"dimension {place}.  Target sizes: {list(shape)}.  Tensor sizes: {list(x.shape)}", code="E0407")
            stride = 0
        sizes.append(size)
        strides.append(stride)
    return _as_strided(x, sizes, strides)


def strided_view(x: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The memory of `x`, from its first element on, with a shape and strides in *elements*. The caller has checked the bounds."""
    return _as_strided(x, tuple(shape), tuple([s * x.itemsize for s in strides]))


def _start(x: Array) -> int:
    """The address of its first element."""
    start: int = x.__array_interface__["data"][0]
    return start


def _as_strided(x: Any, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """`x` with other strides, in bytes, writable if `x` is; a stand-in for an array has a method of that name."""
    if type(x) is not np.ndarray and hasattr(type(x), "as_strided"):
        strided: Array = x.as_strided(shape, strides)
        return strided
    if not isinstance(x, np.ndarray):
        seen: Array = namespace_of(x).lib.stride_tricks.as_strided(x, tuple(shape), tuple(strides))
        return seen
    whole = x       # NumPy's own as_strided hides the owner of the memory, so that strides cannot be set in place
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    flags = whole.flags
    if x.size and (flags.c_contiguous or flags.f_contiguous) and whole.dtype.isbuiltin == 1:
        view: Array = np.ndarray(shape, x.dtype, whole, _start(x) - _start(whole), strides)
        if flags.writeable and not x.flags.writeable:
            view.flags.writeable = False
        return view
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=x.flags.writeable)


def copy_in_layout(x: Array) -> Array:
    """A copy with the same strides, none of which is negative: elements that share memory do so in the copy."""
    strides = element_strides(x)
    last = sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True))
    return strided_view(strided_view(x, (last + 1,), (1,)).copy(), x.shape, strides) if x.size else x.copy()


def element_strides(x: Array) -> tuple[int, ...]:
    """Strides in elements, as torch counts them; dimensions of size 1 and empty arrays get the strides that torch gives new arrays."""
    return tuple([s // x.itemsize for s in x.strides])


def is_contiguous(x: Array) -> bool:
    """Is the array row-major without gaps, as torch's is_contiguous decides? (Strides of dimensions of size 1 do not matter.)"""
    return bool(x.flags.c_contiguous)


def add_at(x: Array, index: Any, values: Any) -> None:
    """x[index] += values, repeated indices counted each time."""
    namespace_of(x).add.at(x, index, values)


def mul_at(x: Array, index: Any, values: Any) -> None:
    """x[index] *= values, repeated indices counted each time."""
    namespace_of(x).multiply.at(x, index, values)


def max_at(x: Array, index: Any, values: Any) -> None:
    """x[index] = maximum(x[index], values), repeated indices counted each time; nan wins."""
    namespace_of(x).maximum.at(x, index, values)


def min_at(x: Array, index: Any, values: Any) -> None:
    """x[index] = minimum(x[index], values), repeated indices counted each time; nan wins."""
    namespace_of(x).minimum.at(x, index, values)


def mean_over(x: Array, axes: Any) -> Array:
    """Mean over axes, which are kept, in the array's dtype; nan, without NumPy's warning, where there is nothing to add up."""
    mean: Array = x.mean(axes, keepdims=True, dtype=x.dtype) if x.size else x.sum(axes, keepdims=True, dtype=x.dtype) + x.dtype.type("nan")
    return mean


def to_number(x: Any) -> Any:
    """The single element of an array as a Python number; numbers are unchanged. Raises RunError with torch's text for several elements."""
    if not is_array(x):
        return x.item() if isinstance(x, np.generic) else x
    if x.size != 1:
        raise RunError(f"a Tensor with {x.size} elements cannot be converted to Scalar")
    return x.item()


def wrap_dim(dim: int, rank: int) -> int:
    """A dimension, which may count from the end, counted from the front; a 0-d array counts as 1-d. Raises RunError with torch's text."""
    span = max(rank, 1)
    if not -span <= dim < span:
        raise RunError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})", code="E0408")
    return dim % span


_random: ContextVar[np.random.Generator | None] = ContextVar("irtool_random", default=None)


def generator(source: Any = None) -> np.random.Generator:
    """The random generator of the current run; `source` itself if it is a generator of the graph. Seeded by `seeded`; otherwise by 0."""
    if isinstance(source, np.random.Generator):
        return source
    current = _random.get()
    if current is None:
        current = np.random.default_rng(0)
        _random.set(current)
    return current


def fresh_generator(seed: int) -> np.random.Generator:
    """A random generator for a graph that makes its own."""
    return np.random.default_rng(seed % 2**64)


def reseed(seed: int) -> np.random.Generator:
    """Let kernels draw from a new generator with this seed, which is returned."""
    fresh = np.random.default_rng(seed)
    _random.set(fresh)
    return fresh


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A context in which kernels draw from a new generator with this seed."""
    token = _random.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _random.reset(token)
