"""Functions whose results have facts that do not depend on elements: NumPy runs them on zeros, which shows the facts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import allocated, meta_of
from irtool.ops.symbols.recorder import Recorder, StandIn, Untraceable, is_traced

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
"""The largest number of elements of such an array of zeros."""


def probe(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> StandIn:
    """Record a function whose result has facts that do not depend on elements; it is run on zeros to learn them."""
    stand: list[tuple[StandIn, Any]] = []

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
        result = function(*zeros(args), **{name: zeros(value) for name, value in named.items()})
    if not isinstance(result, np.ndarray | np.generic):
        raise Untraceable(f"{getattr(function, '__name__', function)} gives {type(result).__name__}")
    result = np.asarray(result)
    root = next((value.root for value, array in stand if np.may_share_memory(result, array)), None)
    return recorder.note(function, tuples(args), {name: tuples(value) for name, value in named.items()}, meta_of(result),
                         "fresh" if root is None else "view", root)


def tuples(value: Any) -> Any:
    """Lists of arrays as tuples, which is how a plan contains arguments."""
    if type(value) in (list, tuple) and any(is_traced(each) for each in value):
        return tuple([tuples(each) for each in value])
    return value
