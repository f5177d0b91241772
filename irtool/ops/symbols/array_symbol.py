"""An array without elements, whose recorder records every NumPy function, operator and method."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.symbols.array_functions import FUNCTIONS, reduction
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, layout_like, meta_of, reshaped
from irtool.ops.symbols.probing import PROBED, PROBED_METHODS, probe
from irtool.ops.symbols.recorded_writes import trace_assignment, trace_into
from irtool.ops.symbols.recorder import StandIn, Untraceable, is_traced
from irtool.ops.symbols.ufuncs import tiny_of, trace_ufunc


class Traced(np.lib.mixins.NDArrayOperatorsMixin, StandIn):
    """An array of which only the facts are known. A kernel can take it in place of an array."""

    __slots__ = ()

    T = property(lambda self: self.transpose())

    @property
    def real(self) -> StandIn:
        """The real part, a view; the array itself if it is real."""
        return self._view(operator.attrgetter("real")) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> StandIn:
        """The imaginary part, a view."""
        if self.dtype.kind != "c":
            raise Untraceable("imag")
        return self._view(operator.attrgetter("imag"))

    # -- elements are unknown
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
        if not self.ndim or is_traced(other) or not isinstance(other, int | float):
            raise Untraceable("power")
        tiny = tiny_of(self) ** other
        return self.recorder.note(operator.pow, (self, other), {}, Meta(tiny.dtype, self.shape, layout_like(self.meta, tiny.dtype)),
                                  "fresh")

    # -- methods
    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> StandIn:
        """A copy in another dtype; the array itself if it has the dtype and `copy` is off."""
        dtype = np.dtype(dtype)
        if order != "K":
            raise Untraceable("order")
        if not copy and dtype == self.dtype:
            return self
        return self.recorder.note(np.ndarray.astype, (self, dtype), {}, Meta(dtype, self.shape, layout_like(self.meta, dtype)), "fresh")

    def copy(self, order: str = "C") -> StandIn:
        """A copy, row-major, or (K) with this array's strides."""
        if order not in "CK":
            raise Untraceable("order")
        meta = fresh_meta(self.dtype, self.shape) if order == "C" else Meta(self.dtype, self.shape, layout_like(self.meta, self.dtype))
        return self.recorder.note(np.ndarray.copy, (self, order), {}, meta, "fresh")

    def reshape(self, *shape: Any) -> StandIn:
        """Another shape: a view if the strides allow it, else a copy."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        wanted = tuple([int(extent) for extent in wanted])
        if -1 in wanted:
            known = 1
            for extent in wanted:
                known *= 1 if extent == -1 else extent
            if not known or self.size % known:
                raise Untraceable("reshape")
            wanted = tuple([self.size // known if extent == -1 else extent for extent in wanted])
        if math.prod(wanted) != self.size or not self.size and not self.meta.is_contiguous:
            raise Untraceable("reshape")
        meta = reshaped(self.meta, wanted)
        if meta is None:
            return self.recorder.note(np.ndarray.reshape, (self, wanted), {}, fresh_meta(self.dtype, wanted), "fresh")
        return self.recorder.note(np.ndarray.reshape, (self, wanted), {}, meta, "view", self.root)

    def ravel(self) -> StandIn:
        """One dimension."""
        if not self.meta.is_contiguous:
            raise Untraceable("ravel")
        return self.reshape((self.size,))

    def transpose(self, *axes: Any) -> StandIn:
        """Dimensions in another order, a view."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        order = None if order is None else tuple([int(axis) for axis in order])
        return self._view(np.ndarray.transpose, *(() if order is None else (order,)))

    def swapaxes(self, a: int, b: int) -> StandIn:
        """The array with two dimensions exchanged, a view."""
        return self._view(np.ndarray.swapaxes, int(a), int(b))

    def squeeze(self, axis: Any = None) -> StandIn:
        """The array without dimensions of size 1, a view."""
        return self._view(np.ndarray.squeeze, axis)

    def __getitem__(self, index: Any) -> StandIn:
        parts = index if isinstance(index, tuple) else (index,)
        if not all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts):
            raise Untraceable("index")
        if Ellipsis not in parts and sum(type(part) is int for part in parts) >= self.ndim:
            raise Untraceable("one element")
        return self._view(operator.getitem, parts if len(parts) != 1 else parts[0])

    def __setitem__(self, index: Any, value: Any) -> None:
        trace_assignment(self if index is Ellipsis else self[index], value)

    def as_strided(self, shape: Sequence[int], strides: Sequence[int]) -> StandIn:
        """A view of this shape with strides in bytes."""
        shape, strides = tuple(shape), tuple(strides)
        return self.recorder.note(np.lib.stride_tricks.as_strided, (self, shape, strides), {}, Meta(self.dtype, shape, strides), "view",
                                  self.root)

    def _view(self, function: Callable[..., Any], *args: Any) -> StandIn:
        """A view that NumPy can make without reading elements."""
        return self.recorder.note(function, (self, *args), {}, meta_of(function(dummy(self.meta), *args)), "view", self.root)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> StandIn:
        """Sum."""
        return reduction(np.ndarray.sum, self, axis, dtype, out, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> StandIn:
        """Mean."""
        return reduction(np.ndarray.mean, self, axis, dtype, out, keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> StandIn:
        """Largest."""
        return reduction(np.ndarray.max, self, axis, None, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> StandIn:
        """Smallest."""
        return reduction(np.ndarray.min, self, axis, None, out, keepdims)
