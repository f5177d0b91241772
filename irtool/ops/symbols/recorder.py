"""The recorder: the NumPy calls of one kernel, in order, on stand-ins for arrays."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, dummy

MAX_CONSTANT = 4096
"""The most elements of an array that a kernel made while it was traced and that the plan stores; kernels that make larger ones are not
traced."""


class Untraceable(BaseException):
    """The kernel does something that needs elements. (Not an Exception, since a kernel must not catch it.)"""


class Step:
    """One call: `function(*args, **named)` computes `out`. Arguments are StandIns, tuples of them, or values.

    `way` says how a plan may run it:
    "ufunc": it takes out=, which may be any operand of the result's dtype, shape and strides;
    "out": it takes out=, which may be no operand;
    "fresh": its result is new memory;
    "view": the result is in the memory of an operand;
    "into": the result is written into `out`, which an earlier step made.
    """

    __slots__ = ("function", "args", "named", "out", "way")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], out: StandIn, way: str) -> None:
        self.function = function
        self.args = args
        self.named = named
        self.out = out
        self.way = way


class Recorder:
    """The calls of one kernel, in order. Their results are objects of the class `stand_in`."""

    __slots__ = ("steps", "stand_in")

    def __init__(self, stand_in: type[StandIn]) -> None:
        self.steps: list[Step] = []
        self.stand_in = stand_in

    def note(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], meta: Meta, way: str,
             root: StandIn | None = None) -> StandIn:
        """Record a call; returns its result. Raises Untraceable if a large array would have to be stored for it."""
        for each in (*args, *named.values()):
            refuse_large(each)
        out = self.stand_in(self, meta, root)
        self.steps.append(Step(function, args, named, out, way))
        return out


def refuse_large(value: Any) -> None:
    """Raise Untraceable for an array that is too large to be stored between runs."""
    if type(value) is np.ndarray and value.size > MAX_CONSTANT:
        raise Untraceable("a large array made by the kernel")
    if isinstance(value, list | tuple):
        for item in value:
            refuse_large(item)


class Flags:
    """`x.flags` of a StandIn, as far as kernels read it."""

    __slots__ = ("c_contiguous", "f_contiguous", "writeable")

    def __init__(self, meta: Meta) -> None:
        flags = dummy(meta).flags
        self.c_contiguous = flags.c_contiguous
        self.f_contiguous = flags.f_contiguous
        self.writeable = True


class StandIn:
    """An array of which only the facts are known; `irtool.ops.symbols.array_symbol` defines its operations."""

    __slots__ = ("recorder", "meta", "root")

    def __init__(self, recorder: Recorder, meta: Meta, root: StandIn | None = None) -> None:
        self.recorder = recorder
        self.meta = meta
        self.root = self if root is None else root      # the StandIn in whose memory this one is

    __class__ = property(lambda self: np.ndarray)       # so that isinstance(x, np.ndarray) is true
    dtype = property(lambda self: self.meta.dtype)
    shape = property(lambda self: self.meta.shape)
    strides = property(lambda self: self.meta.strides)
    ndim = property(lambda self: len(self.meta.shape))
    itemsize = property(lambda self: self.meta.dtype.itemsize)
    nbytes = property(lambda self: self.meta.nbytes)
    flags = property(lambda self: Flags(self.meta))
    base = property(lambda self: None if self.root is self else self.root)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.meta.shape)

    def lie_as(self, strides: tuple[int, ...]) -> bool:
        """Give the array other strides, in bytes, if it is the result of the last call, and a plan says where that lies."""
        steps = self.recorder.steps
        if not steps or steps[-1].out is not self or steps[-1].way != "ufunc":
            return False
        self.meta = self.meta._replace(strides=strides)
        return True


def is_traced(value: Any) -> bool:
    """Is the value a StandIn? Decided by its type, since its `__class__` is that of an array."""
    return issubclass(type(value), StandIn)
