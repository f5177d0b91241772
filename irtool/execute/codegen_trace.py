"""What one node does, as NumPy calls: its kernel is run once on arrays without elements, and the calls it makes are written down.

A `Traced` has a dtype, a shape and strides, says it is an array, and answers every NumPy function and operator by noting the call.
A kernel that wants to see elements (`if x.any()`), that writes, or that calls what is not in the tables here, cannot be traced:
`Untraceable`, and the node is called as the interpreter calls it. So what is noted depends on dtypes, shapes and constants alone,
and running it again gives, bit for bit, what the kernel gives.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irtool.execute.codegen_layout import Meta, allocated, contiguous_strides, dummy, fresh_meta, layout_like, meta_of
from irtool.ir.errors import Error
from irtool.ops.select import chooses_bits, select

MAX_CONSTANT = 4096
"""Elements of an array that a kernel made while it was traced; a larger one is made anew in each run."""


class Untraceable(BaseException):
    """The kernel does something that is not known without elements. (No Exception: a kernel must not catch it.)"""


class Step:
    """One call: `function(*args, **named)` gives an array of these facts. Arguments are Traced, containers of them, or values."""

    __slots__ = ("function", "args", "named", "out", "way")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], out: Traced, way: str) -> None:
        self.function = function
        self.args = args
        self.named = named
        self.out = out
        self.way = way      # "ufunc": takes out=, any operand of the result's facts may be its place; "out": takes out=, no operand may
        #                     "fresh": makes its result; "view": the result looks into the first argument; "into": writes the first


class Recorder:
    """The calls of one kernel, in order."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def note(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], meta: Meta, way: str,
             root: Traced | None = None) -> Traced:
        """Write a call down; gives its result."""
        for each in (*args, *named.values()):
            refuse_large(each)
        out = Traced(self, meta, root)
        self.steps.append(Step(function, args, named, out, way))
        return out


def refuse_large(value: Any) -> None:
    """Raise Untraceable for an array that would be kept between runs at a price."""
    if type(value) is np.ndarray and value.size > MAX_CONSTANT:
        raise Untraceable("a large array made by the kernel")
    if isinstance(value, list | tuple):
        for item in value:
            refuse_large(item)


class Flags:
    """`x.flags` of a Traced."""

    __slots__ = ("c_contiguous", "f_contiguous", "writeable")

    def __init__(self, meta: Meta) -> None:
        found = dummy(meta).flags
        self.c_contiguous = found.c_contiguous
        self.f_contiguous = found.f_contiguous
        self.writeable = True


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of which only the facts are known."""

    __slots__ = ("recorder", "meta", "root")

    def __init__(self, recorder: Recorder, meta: Meta, root: Traced | None = None) -> None:
        self.recorder = recorder
        self.meta = meta
        self.root = self if root is None else root

    __class__ = property(lambda self: np.ndarray)       # isinstance(x, np.ndarray) holds
    dtype = property(lambda self: self.meta.dtype)
    shape = property(lambda self: self.meta.shape)
    strides = property(lambda self: self.meta.strides)
    ndim = property(lambda self: len(self.meta.shape))
    itemsize = property(lambda self: self.meta.dtype.itemsize)
    nbytes = property(lambda self: self.meta.nbytes)
    flags = property(lambda self: Flags(self.meta))
    base = property(lambda self: None if self.root is self else self.root)
    T = property(lambda self: self.transpose())

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.meta.shape:
            count *= extent
        return count

    @property
    def real(self) -> Traced:
        """The real part, a view; itself when it is real."""
        return self._view(operator.attrgetter("real")) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Traced:
        """The imaginary part, a view."""
        if self.dtype.kind != "c":
            raise Untraceable("imag")
        return self._view(operator.attrgetter("imag"))

    # -- elements are not known
    def _no_elements(self, *args: Any, **named: Any) -> Any:
        raise Untraceable("elements are not known")

    __array__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = _no_elements
    get = item = tolist = tobytes = nonzero = sort = fill = _no_elements
    __contains__ = _no_elements
    __hash__ = None     # type: ignore[assignment]

    def __len__(self) -> int:
        if not self.meta.shape:
            raise TypeError("len() of unsized object")
        return self.meta.shape[0]

    def __iter__(self) -> Any:
        raise Untraceable("iteration")

    def __getattr__(self, name: str) -> Any:
        if name not in PROBED_METHODS:
            raise Untraceable(f"array.{name}")
        function = getattr(np.ndarray, name)
        return lambda *args, **named: probe(self.recorder, function, (self, *args), named)

    # -- calls
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if method in ("reduce", "accumulate") and len(inputs) == 1 and "out" not in named:
            return probe(self.recorder, getattr(ufunc, method), inputs, named)
        if method != "__call__":
            raise Untraceable(f"{ufunc.__name__}.{method}")
        out = named.pop("out", None)
        order = named.pop("order", "K")
        if named:
            raise Untraceable(f"{ufunc.__name__} with {', '.join(named)}")
        if out is not None:
            return trace_into(self.recorder, ufunc, inputs, out)
        result = trace_ufunc(self.recorder, ufunc, inputs)
        if order not in "KA" and not (order == "C" and result.meta.is_contiguous):
            raise Untraceable(f"{ufunc.__name__} with order")
        return result

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        rule = FUNCTIONS.get(function)
        if rule is None and function not in PROBED:
            raise Untraceable(function.__name__)
        return (rule or probe)(self.recorder, function, args, named)

    def __pow__(self, other: Any) -> Any:
        if not self.ndim or isinstance(other, Traced) or not isinstance(other, int | float):
            raise Untraceable("power")
        tiny = tiny_of(self) ** other
        return self.recorder.note(operator.pow, (self, other), {}, Meta(tiny.dtype, self.shape, layout_like(self.meta, tiny.dtype)),
                                  "fresh")

    # -- methods
    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Traced:
        """A copy in another dtype; itself where none is needed and `copy` is off."""
        dtype = np.dtype(dtype)
        if order != "K":
            raise Untraceable("order")
        if not copy and dtype == self.dtype:
            return self
        return self.recorder.note(np.ndarray.astype, (self, dtype), {}, Meta(dtype, self.shape, layout_like(self.meta, dtype)), "fresh")

    def copy(self, order: str = "C") -> Traced:
        """A copy, row by row, or (K) laid out as this one."""
        if order not in "CK":
            raise Untraceable("order")
        meta = fresh_meta(self.dtype, self.shape) if order == "C" else Meta(self.dtype, self.shape, layout_like(self.meta, self.dtype))
        return self.recorder.note(np.ndarray.copy, (self, order), {}, meta, "fresh")

    def reshape(self, *shape: Any) -> Traced:
        """Another shape: a view where the layout allows it, else a copy."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        wanted = tuple([int(extent) for extent in wanted])
        if -1 in wanted:
            known = 1
            for extent in wanted:
                known *= 1 if extent == -1 else extent
            if not known or self.size % known:
                raise Untraceable("reshape")
            wanted = tuple([self.size // known if extent == -1 else extent for extent in wanted])
        meta = reshaped(self.meta, wanted)
        if meta is None:
            return self.recorder.note(np.ndarray.reshape, (self, wanted), {}, fresh_meta(self.dtype, wanted), "fresh")
        return self.recorder.note(np.ndarray.reshape, (self, wanted), {}, meta, "view", self.root)

    def ravel(self) -> Traced:
        """One dimension."""
        if not self.meta.is_contiguous:
            raise Untraceable("ravel")
        return self.reshape((self.size,))

    def transpose(self, *axes: Any) -> Traced:
        """Dimensions in another order, a view."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        order = None if order is None else tuple([int(axis) for axis in order])
        return self._view(np.ndarray.transpose, *(() if order is None else (order,)))

    def swapaxes(self, a: int, b: int) -> Traced:
        """Two dimensions exchanged, a view."""
        return self._view(np.ndarray.swapaxes, int(a), int(b))

    def squeeze(self, axis: Any = None) -> Traced:
        """Dimensions of size 1 left out, a view."""
        return self._view(np.ndarray.squeeze, axis)

    def __getitem__(self, index: Any) -> Traced:
        parts = index if isinstance(index, tuple) else (index,)
        if not all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts):
            raise Untraceable("index")
        if Ellipsis not in parts and sum(type(part) is int for part in parts) >= self.ndim:
            raise Untraceable("one element")
        return self._view(operator.getitem, parts if len(parts) != 1 else parts[0])

    def __setitem__(self, index: Any, value: Any) -> None:
        trace_assignment(self if index is Ellipsis else self[index], value)

    def as_strided(self, shape: Sequence[int], strides: Sequence[int]) -> Traced:
        """A view of this shape with strides in bytes."""
        shape, strides = tuple(shape), tuple(strides)
        return self.recorder.note(np.lib.stride_tricks.as_strided, (self, shape, strides), {}, Meta(self.dtype, shape, strides), "view",
                                  self.root)

    def _view(self, function: Callable[..., Any], *args: Any) -> Traced:
        """A view that NumPy can make without reading."""
        return self.recorder.note(function, (self, *args), {}, meta_of(function(dummy(self.meta), *args)), "view", self.root)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Traced:
        """Sum."""
        return reduction(np.ndarray.sum, self, axis, dtype, out, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Traced:
        """Mean."""
        return reduction(np.ndarray.mean, self, axis, dtype, out, keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Traced:
        """Largest."""
        return reduction(np.ndarray.max, self, axis, None, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Traced:
        """Smallest."""
        return reduction(np.ndarray.min, self, axis, None, out, keepdims)


def is_traced(value: Any) -> bool:
    """Is it a Traced? (isinstance is deceived.)"""
    return type(value) is Traced


# -- facts of results
def tiny_of(value: Any) -> Any:
    """An operand of the same dtype with no elements (one, if it is 0-d): enough to learn what dtype comes out."""
    if is_traced(value) or type(value) is np.ndarray:
        return np.ones((), value.dtype) if not value.ndim else np.empty((0,), value.dtype)
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    raise Untraceable(f"an operand that is {type(value).__name__}")


def layout_of(shape: tuple[int, ...], dtype: np.dtype[Any], operands: Sequence[Any]) -> tuple[int, ...]:
    """Strides NumPy gives the result of an elementwise function of these operands."""
    plain = contiguous_strides(shape, dtype.itemsize)
    metas = [meta_of(each) for each in operands if (is_traced(each) or type(each) is np.ndarray) and each.ndim]
    if len(shape) < 2 or all(meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize) for meta in metas):
        return plain
    flags: Any = [["readonly"]] * len(metas) + [["writeonly", "allocate"]]
    dtypes: Any = [None] * len(metas) + [dtype]
    iterator = np.nditer([*[dummy(meta) for meta in metas], None], ["zerosize_ok", "refs_ok"], flags, op_dtypes=dtypes, itershape=shape)
    strides: tuple[int, ...] = iterator.operands[-1].strides
    return strides


def reshaped(meta: Meta, shape: tuple[int, ...]) -> Meta | None:
    """The facts of a view of another shape; None when only a copy has it. Raises Untraceable for another number of elements."""
    if Meta(meta.dtype, shape, ()).nbytes != meta.nbytes:
        raise Untraceable("reshape")
    if meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize):
        return fresh_meta(meta.dtype, shape)
    if not meta.nbytes:
        raise Untraceable("reshape of nothing")
    import warnings

    view = dummy(meta)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            view.shape = shape      # refuses where a copy would be needed, and so never reads
    except AttributeError:
        return None
    return meta_of(view)


# -- elementwise functions
def trace_ufunc(recorder: Recorder, ufunc: Any, inputs: tuple[Any, ...]) -> Traced:
    """Note an elementwise function, or a product of matrices."""
    if ufunc is np.matmul:
        return trace_matmul(recorder, *inputs)
    if ufunc.signature is not None or ufunc.nout != 1:
        raise Untraceable(ufunc.__name__)
    with np.errstate(all="ignore"):
        dtype = np.asarray(ufunc(*[tiny_of(each) for each in inputs])).dtype
    shape = np.broadcast_shapes(*[each.shape for each in inputs if hasattr(each, "shape")])
    return recorder.note(ufunc, prepared(inputs), {}, Meta(dtype, shape, layout_of(shape, dtype, inputs)), "ufunc")


def prepared(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Python numbers beside arrays of one floating dtype as 0-d arrays of it, which is what NumPy would make of them in every call."""
    dtypes = {each.dtype for each in inputs if hasattr(each, "dtype")}
    if len(dtypes) != 1:
        return inputs
    (dtype,) = dtypes
    if dtype.kind != "f":
        return inputs
    return tuple([np.array(each, dtype) if type(each) in (int, float) else each for each in inputs])


def trace_into(recorder: Recorder, ufunc: Any, inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> Traced:
    """`x += y` on something the kernel has made itself."""
    target = inputs[0]
    if len(outs) != 1 or outs[0] is not target or not is_traced(target) or ufunc.signature is not None or ufunc.nout != 1:
        raise Untraceable(f"{ufunc.__name__} with out")
    if not any(step.out is target.root for step in recorder.steps):
        raise Untraceable("writes")
    shape = np.broadcast_shapes(*[each.shape for each in inputs if hasattr(each, "shape")])
    with np.errstate(all="ignore"):
        dtype = np.asarray(ufunc(*[tiny_of(each) for each in inputs])).dtype
    if shape != target.shape or dtype != target.dtype:
        raise Untraceable("writes with a conversion")
    recorder.steps.append(Step(ufunc, prepared(inputs), {}, target, "into"))
    made: Traced = target
    return made

def trace_assignment(target: Traced, value: Any) -> None:
    """`x[...] = y` for a part of what the kernel has made itself, and an array of its dtype and shape."""
    if not is_traced(value) or (target.dtype, target.shape) != (value.dtype, value.shape) or target.dtype.kind == "b" \
            or value.root is target.root or not any(step.out is target.root for step in target.recorder.steps):
        raise Untraceable("writes")
    target.recorder.steps.append(Step(np.positive, (value,), {}, target, "into"))


def trace_write(target: Any, result: Any) -> Any:
    """Note what an in-place operator does with what the plain one gave: over the target goes the last step, or a copy. Gives the target."""
    if not is_traced(target) or not is_traced(result) or (target.dtype, target.shape) != (result.dtype, result.shape) \
            or result.root is target.root:
        raise Untraceable("writes")
    if any(step == 0 and extent > 1 for step, extent in zip(target.strides, target.shape, strict=True)):
        raise Untraceable("writes one place twice")
    steps = target.recorder.steps
    last = steps[-1] if steps else None
    if last is not None and last.out is result and last.way == "ufunc" and result.meta == target.meta:
        steps[-1] = Step(last.function, last.args, last.named, target, "into")
    elif target.dtype.kind == "b":
        raise Untraceable("writes bools")
    else:
        steps.append(Step(np.positive, (result,), {}, target, "into"))
    return target


def trace_matmul(recorder: Recorder, a: Any, b: Any) -> Traced:
    """Note a product of matrices, vectors or stacks."""
    if not (hasattr(a, "ndim") and hasattr(b, "ndim")) or a.ndim < 1 or b.ndim < 1 or a.ndim == b.ndim == 1:
        raise Untraceable("matmul")
    if a.dtype != b.dtype:
        raise Untraceable("matmul of two dtypes")
    left = a.shape if a.ndim > 1 else (1, *a.shape)
    right = b.shape if b.ndim > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise Untraceable("matmul")
    shape = (*np.broadcast_shapes(left[:-2], right[:-2]), *((left[-2],) if a.ndim > 1 else ()), *((right[-1],) if b.ndim > 1 else ()))
    function = np.dot if is_plain_product(a, b) else np.matmul
    return recorder.note(function, (a, b), {}, fresh_meta(a.dtype, shape), "out" if shape else "fresh")


def is_plain_product(a: Any, b: Any) -> bool:
    """Two matrices for which np.dot makes the same call of BLAS as np.matmul, with less before it."""
    return (a.ndim == b.ndim == 2 and a.dtype.kind == "f" and a.dtype.itemsize >= 4 and min(*a.shape, *b.shape) >= 2
            and all(x.flags.c_contiguous or x.flags.f_contiguous for x in (a, b)))


# -- functions of NumPy
def trace_where(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    """np.where with three arguments."""
    if named or len(args) != 3:
        raise Untraceable("where")
    dtype = np.asarray(np.where(*[tiny_of(each) for each in args])).dtype
    shape = np.broadcast_shapes(*[each.shape for each in args if hasattr(each, "shape")])
    layout = Meta(dtype, shape, layout_of(shape, dtype, args))
    if chooses_bits(dtype, math.prod(shape)) and all(getattr(each, "dtype", dtype) == dtype for each in args[1:]) and is_mask(args[0]):
        return recorder.note(select, args, {}, layout, "ufunc")
    return recorder.note(np.where, args, {}, layout, "fresh")


def is_mask(value: Any) -> bool:
    """Is it an array of bools?"""
    return is_traced(value) and value.dtype == np.bool_ and value.ndim > 0


def reduction(function: Any, x: Traced, axis: Any, dtype: Any, out: Any, keepdims: Any) -> Traced:
    """Note a sum, mean or extreme over some dimensions of an array that lies row by row."""
    if out is not None or not isinstance(keepdims, bool):
        raise Untraceable("reduction")
    if not x.meta.is_contiguous:
        given = {"axis": axis, "keepdims": keepdims}
        return probe(x.recorder, function, (x,), given if dtype is None else {**given, "dtype": np.dtype(dtype)})
    axes = tuple(range(x.ndim)) if axis is None else tuple([axis] if isinstance(axis, int) else axis)
    axes = tuple([int(each) % x.ndim for each in axes]) if x.ndim else ()
    if function in (np.ndarray.max, np.ndarray.min) and not x.size:
        raise Untraceable("extreme of nothing")
    shape = tuple([1 if at in axes else extent for at, extent in enumerate(x.shape) if keepdims or at not in axes])
    named: dict[str, Any] = {"axis": axis if axis is None or isinstance(axis, int) else tuple(axis)}
    if dtype is not None:
        named["dtype"] = np.dtype(dtype)
    tried = dict(named)
    if keepdims:
        named["keepdims"] = True
    if axis is not None:
        tried["axis"] = 0
    with np.errstate(all="ignore"):
        found = np.asarray(function(np.ones((1,), x.dtype), **tried)).dtype
    return x.recorder.note(function, (x,), named, fresh_meta(found, shape), "fresh")


def probe(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    """Note a function whose result's facts do not depend on elements, and which is run on zeros to learn them."""
    stand: list[tuple[Traced, Any]] = []

    def zeros(value: Any) -> Any:
        if is_traced(value):
            if value.size > MAX_PROBED:
                raise Untraceable("too large to be tried")
            array = allocated(value.meta)
            array[...] = 0
            stand.append((value, array))
            return array
        return type(value)([zeros(each) for each in value]) if type(value) in (list, tuple) else value

    with np.errstate(all="ignore"):
        found = function(*zeros(args), **{name: zeros(value) for name, value in named.items()})
    if not isinstance(found, np.ndarray | np.generic):
        raise Untraceable(f"{getattr(function, '__name__', function)} gives {type(found).__name__}")
    found = np.asarray(found)
    root = next((value.root for value, array in stand if np.may_share_memory(found, array)), None)
    return recorder.note(function, tuples(args), {name: tuples(value) for name, value in named.items()}, meta_of(found),
                         "fresh" if root is None else "view", root)


def tuples(value: Any) -> Any:
    """Lists of arrays as tuples, the form in which a plan has arguments."""
    if type(value) in (list, tuple) and any(is_traced(each) for each in value):
        return tuple([tuples(each) for each in value])
    return value


def trace_reduction(method: Any) -> Callable[..., Traced]:
    """np.sum(x, ...) is x.sum(...)."""
    def rule(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
        if not is_traced(args[0]):
            raise Untraceable("reduction")
        result: Traced = getattr(args[0], method)(*args[1:], **named)
        return result
    return rule


def trace_concatenate(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    """np.concatenate and np.stack of arrays of one dtype that lie row by row."""
    items, axis = list(args[0]), args[1] if len(args) > 1 else named.pop("axis", 0)
    if len(args) > 2 or named:
        raise Untraceable("concatenate")
    first = items[0]
    if not all(is_traced(each) and each.meta.is_contiguous and each.dtype == first.dtype and each.ndim == first.ndim for each in items):
        return probe(recorder, function, (tuple(items), axis), {})
    if function is np.stack:
        axis = axis % (first.ndim + 1)
        if any(each.shape != first.shape for each in items):
            raise Untraceable("stack")
        shape = (*first.shape[:axis], len(items), *first.shape[axis:])
    else:
        axis = axis % first.ndim
        if any(each.shape[:axis] + each.shape[axis + 1:] != first.shape[:axis] + first.shape[axis + 1:] for each in items):
            raise Untraceable("concatenate")
        shape = (*first.shape[:axis], sum(each.shape[axis] for each in items), *first.shape[axis + 1:])
    return recorder.note(function, (tuple(items), axis), {}, fresh_meta(first.dtype, shape), "out")


def trace_view(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    """transpose, moveaxis, expand_dims, ...: a view."""
    if not is_traced(args[0]) or named.keys() - {"axis", "axes", "source", "destination"}:
        raise Untraceable(function.__name__)
    x = args[0]
    if any(is_traced(each) for each in (*args[1:], *named.values())):
        raise Untraceable(function.__name__)
    result = meta_of(function(dummy(x.meta), *args[1:], **named))
    if function is np.expand_dims:      # which is this, by a longer way
        function, args, named = np.ndarray.reshape, (x, result.shape), {}
    made: Traced = x.recorder.note(function, args, named, result, "view", x.root)
    return made


def trace_sharing(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """np.may_share_memory: what the kernel was given apart is apart."""
    return is_traced(args[0]) and is_traced(args[1]) and bool(args[0].root is args[1].root)


def trace_reshape(recorder: Recorder, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traced:
    """np.reshape."""
    if named or len(args) != 2:
        raise Untraceable("reshape")
    result: Traced = args[0].reshape(args[1])
    return result


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: trace_where, np.concatenate: trace_concatenate, np.stack: trace_concatenate, np.may_share_memory: trace_sharing,
    np.sum: trace_reduction("sum"), np.mean: trace_reduction("mean"), np.max: trace_reduction("max"), np.amax: trace_reduction("max"),
    np.min: trace_reduction("min"), np.amin: trace_reduction("min"), np.reshape: trace_reshape,
    **dict.fromkeys((np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze), trace_view),
    np.shape: lambda recorder, function, args, named: args[0].shape,
    np.ndim: lambda recorder, function, args, named: args[0].ndim,
}
"""NumPy's functions that are understood."""
PROBED = frozenset((
    np.flip, np.cumsum, np.cumprod, np.einsum, np.take, np.tile, np.repeat, np.pad, np.argmax, np.argmin, np.broadcast_to, np.full_like,
    np.zeros_like, np.ones_like, np.empty_like, np.roll, np.tril, np.triu, np.diagonal, np.dot, np.tensordot, np.outer, np.kron, np.prod,
    np.var, np.std, np.clip, np.argsort, np.copy, np.rot90, np.ravel, np.any, np.all, np.trace, np.nan_to_num, np.real, np.imag,
    np.angle, np.take_along_axis, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.fftn, np.fft.ifftn, np.fft.rfftn,
    np.fft.irfftn,
))
"""NumPy's functions whose results have facts that do not depend on elements."""
PROBED_METHODS = frozenset("""
cumsum cumprod argmax argmin prod any all repeat take diagonal var std clip conj conjugate view flatten
""".split())
MAX_PROBED = 1 << 20
"""Elements of an array on which a function may be tried."""


class Namespace:
    """NumPy as kernels see it while they are traced: what does not ask its argument asks it here."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        setattr(self, name, found)
        return found

    @staticmethod
    def asarray(value: Any, *args: Any, **named: Any) -> Any:
        """np.asarray; a traced array in row order is itself."""
        if not is_traced(value):
            return np.asarray(value, *args, **named)
        if args and np.dtype(args[0]) != value.dtype or named.keys() - {"order"}:
            raise Untraceable("asarray")
        if named.get("order") == "C" and not value.meta.is_contiguous:
            return value.copy()
        return value

    @staticmethod
    def ascontiguousarray(value: Any, *args: Any, **named: Any) -> Any:
        """np.ascontiguousarray of what has a dimension."""
        if not is_traced(value):
            return np.ascontiguousarray(value, *args, **named)
        if args or named or not value.ndim:
            raise Untraceable("ascontiguousarray")
        return value if value.meta.is_contiguous else value.copy()


NAMESPACE = Namespace()


class Unseeded:
    """Stands for the random generator while a kernel is traced: what it would draw must be drawn in each run."""

    def __getattr__(self, name: str) -> Any:
        raise Untraceable("draws random numbers")


def trace(call: Callable[[list[Any]], Any], operands: Sequence[Any]) -> tuple[Any, list[Step], list[Traced]]:
    """Run `call` on the operands, Metas standing for arrays. Gives its result, the steps, and the Traced that stand for the Metas.

    Raises Untraceable; also when it fails, since it may fail otherwise with elements.
    """
    from irtool.ops import arrays

    recorder = Recorder()
    given: list[Traced] = []

    def stand_in(value: Any) -> Any:
        if isinstance(value, Meta):
            given.append(Traced(recorder, value))
            return given[-1]
        if type(value) is list:
            return [stand_in(item) for item in value]
        if type(value) is tuple:
            return tuple([stand_in(item) for item in value])
        return value

    values = [stand_in(value) for value in operands]
    token = arrays._random.set(Unseeded())      # type: ignore[arg-type]
    try:
        return call(values), recorder.steps, given
    except (Error, Exception) as error:
        raise Untraceable(f"{type(error).__name__}: {error}") from None
    finally:
        arrays._random.reset(token)
