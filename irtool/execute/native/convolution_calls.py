"""Convolutions that run in C (`irtool.execute.native.convolution_source`): which can, and their call.

Nothing is kept of a weight between calls: it is multiplied as it lies.
"""
from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from irtool.execute.native import building
from irtool.execute.native.c_source import C_TYPES
from irtool.execute.native.convolution_source import FIELDS, MOST_OPERANDS, MOST_TAPS, TRANSFORM, text
from irtool.execute.native.stages import NotNative
from irtool.execute.thread_pool import share
from irtool.ops.array_library import np

WORTH_IT = 1 << 15
"""Products of two numbers from which a convolution is faster in C than in NumPy."""
WORTH_THREADS = 1 << 24
"""Products from which several threads share a convolution."""
FEWEST = 4
"""Positions below which a product without columns is faster: most of a vector would be empty."""
WORTH_TRANSFORMING = 1000
"""Products with an element of the weight in the time in which its filter is transformed."""
MOST_TILES = 128
"""Tiles of samples computed together."""
MOST_KEPT = 8
"""Times the bytes of operand and result that the transformed filters of a frozen weight may take: they are kept beside the weight."""
FEW_CHANNELS = 4
"""Channels times outs by their sum, below which the transforms of Winograd's algorithm cost more than it saves."""
WORTH_TURNING = 256
"""Positions, of all samples, from which a gradient for the input is a convolution with the weight turned around, which is a copy."""

Sizes = tuple[int, ...]
ONES: Sizes = (1, 1, 1)


class Geometry(NamedTuple):
    """The sizes of a convolution in three dimensions (fewer have extents of 1 in front): of (samples, groups * channels, *extents) with
    (groups * outs, channels, *kernel) to (samples, groups * outs, *counts)."""

    samples: int
    groups: int
    channels: int
    outs: int
    extents: Sizes
    counts: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    padding: Sizes

    @property
    def products(self) -> int:
        """How many products of two numbers it takes."""
        return self.samples * self.groups * self.channels * self.outs * math.prod(self.counts) * math.prod(self.kernel)

    @property
    def is_depthwise(self) -> bool:
        """Has each channel filters of its own?"""
        return self.channels == 1 and self.groups > 1 and math.prod(self.kernel) <= MOST_TAPS

    @property
    def has_transform(self) -> bool:
        """Can Winograd's algorithm compute it?"""
        return self.kernel == (1, 3, 3) and self.stride == self.dilation == ONES and self.counts[0] == 1 and not self.padding[0]

    @property
    def tiles(self) -> int:
        """The tiles of Winograd's algorithm of a sample."""
        return (self.counts[1] + 1) // 2 * ((self.counts[2] + 1) // 2 + 1) - 1

    @property
    def together(self) -> int:
        """How many samples are best computed together by that algorithm, so that vectors are full."""
        most = min(self.samples, MOST_TILES // self.tiles)
        return min(range(1, most + 1), key=lambda count: vectors(count * self.tiles) / count, default=1)

    def is_worth_transforming(self, is_frozen: bool) -> bool:
        """Is it faster by that algorithm? is_frozen: the weight need not be transformed in each call."""
        tiles = vectors(self.together * self.tiles) / self.together
        moved = self.samples * (self.channels * math.prod(self.extents) + self.outs * math.prod(self.counts))
        is_kept = is_frozen and 16 * self.channels * self.outs <= MOST_KEPT * moved
        return self.channels * self.outs >= FEW_CHANNELS * (self.channels + self.outs) and \
            20 * tiles + (0 if is_kept else WORTH_TRANSFORMING / self.samples) < 9 * vectors(math.prod(self.counts))

    def reversed(self) -> Geometry:
        """From the result to the operand."""
        return self._replace(channels=self.outs, outs=self.channels, extents=self.counts, counts=self.extents)

    def turned(self) -> Geometry | None:
        """A convolution of the result with each kernel backwards that gives a gradient for the operand; None if there is none, or a sum of
        overlapping products is faster. With a stride, elements of its operand have zeros between them."""
        around = tuple([d * (k - 1) - p for d, k, p in zip(self.dilation, self.kernel, self.padding, strict=True)])
        if min(around) < 0 or not (self.is_depthwise and self.outs == 1
                                   or self.stride == ONES and self.samples * math.prod(self.extents) >= WORTH_TURNING):
            return None
        return self.reversed()._replace(stride=ONES, padding=around)


def vectors(count: int) -> int:
    """A number of elements in whole vectors."""
    return -(-count // 16) * 16


class Convolution:
    """A convolution of known sizes as a function, by its use: "forward" of x, weight and bias (or None); "transposed" of a result, weight
    and bias, the gradient for x; "weight" of x and the gradient of the result, the gradient for the weight; "maximum" of x and x, the
    largest element of each window. Raises NotNative if it cannot run in C.

    prepare: what each call does to the weight first, or None."""

    __slots__ = ("arguments", "use", "products", "sizes", "shape", "dtype", "prepare", "has_bias", "kernel", "direct", "epilogue")
    __name__ = "convolution"        # in the source of plans

    def __init__(self, use: str, at: Geometry, shape: Sizes, dtype: Any, has_bias: bool, threads: int, is_frozen: bool = False) -> None:
        """is_frozen: is the weight the same in all calls? Then the caller prepares it."""
        self.arguments = use, at, shape, dtype, has_bias, threads
        self.shape, self.dtype, self.products = shape, dtype, at.products
        self.has_bias = has_bias
        self.epilogue: Any = None       # a loop, and the strides of its operands
        self.prepare: Callable[[Any], Any] | None = None
        up, is_turned = ONES, False
        if use == "transposed":
            around = at.turned()
            if around is not None:
                use, up, is_turned, self.prepare = "forward", at.stride, True, partial(turned, groups=at.groups)
            at = around or at.reversed()
        if use == "forward" and up == ONES and at.has_transform and at.is_worth_transforming(is_frozen):
            use, self.prepare = "winograd", partial(transformed, at=at, is_turned=is_turned)
        elif use not in ("transposed", "maximum") and at.is_depthwise:
            use = {"forward": "depthwise", "weight": "depthwise weight"}[use]
        elif up != ONES:
            raise NotNative("it has a stride")
        if use in ("forward", "weight") and set(at.kernel) == set(at.stride) == {1} and not any(at.padding):
            at = at._replace(extents=(1, 1, math.prod(at.extents)), counts=(1, 1, math.prod(at.counts)))
        if math.prod(at.extents if use == "transposed" else at.counts) < FEWEST:
            raise NotNative("it has too few positions")
        self.use = use
        crew = threads if at.products >= WORTH_THREADS else 1
        together = max(at.together if use == "winograd" else at.samples // crew if use == "transposed" else 1, 1)
        if at.groups * (at.samples // together) < crew:
            together = 1
        units = at.groups * (1 if "weight" in use else -(-at.samples // together))
        parts = 1 if units >= crew or "depthwise" in use or use == "maximum" else crew
        numbers = [*at[:4], *at.extents, *at.counts, *at.kernel, *at.stride, *at.dilation, *at.padding, *up, int(has_bias), parts, together]
        bounds = [units * parts * each // crew for each in range(crew + 1)]
        self.sizes = [(ctypes.c_longlong * len(FIELDS))(*numbers, first, last) for first, last in pairwise(bounds) if first < last]
        source = text(use, C_TYPES[np.dtype(dtype).name])
        compiled = building.built(source, lambda: source)
        if compiled is None:
            raise NotNative("the C compiler fails on it")
        self.kernel = compiled.kernel
        self.direct: Any = None
        if compiled.direct is not None:
            compiled.direct.argtypes = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.py_object] * (4 + MOST_OPERANDS))
            self.direct = compiled.direct

    @property
    def is_sampled(self) -> bool:
        """Is the result one for an input of samples and channels, on which pointwise operators can follow part by part?"""
        sizes = dict(zip(FIELDS, self.sizes[0], strict=True))
        return "weight" not in self.use and self.shape[:2] == (sizes["samples"], sizes["groups"] * sizes["outs"])

    def frozen(self, weight: Any) -> tuple[Convolution, Any]:
        """The same for one weight, and the weight prepared."""
        other = Convolution(*self.arguments, is_frozen=True)
        if other.prepare is not None:
            weight, other.prepare = other.prepare(weight), None
        return other, weight

    def bounded(self, low: float, high: float) -> Convolution | None:
        """The same, with the larger of each result and a number, and the smaller of that and another. None if sums are not complete where
        they are computed."""
        if self.use not in ("forward", "winograd", "depthwise", "maximum"):
            return None
        other = copy(self)
        numbers = [1, *struct.unpack("qq", struct.pack("dd", low, high))]
        place = FIELDS.index("bounded")
        other.sizes = [type(sizes)(*sizes[:place], *numbers, *sizes[place + 3:]) for sizes in self.sizes]
        return other

    def finished(self, loop: building.Loop, strides: Sequence[Any]) -> Convolution:
        """The same, and then a loop over each part of the result, with further operands of such strides by sample, channel and position."""
        other = copy(self)
        other.epilogue = loop, (ctypes.c_longlong * (3 * len(strides) + 1))(*[each for some in strides for each in some])
        address = ctypes.cast(loop.kernel, ctypes.c_void_p).value or 0
        other.sizes = [type(sizes)(*sizes[:-2], address, len(strides)) for sizes in self.sizes]
        return other

    def __call__(self, x: Any, weight: Any, *more: Any, out: Any = None) -> Any:
        """The result, in `out` or new. more: the bias, if there is one; then operands of what follows."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        if self.prepare is not None:
            weight = self.prepare(weight)
        arrays = [x, weight, more[0] if self.has_bias else x, out]
        arrays = [each if each.flags.c_contiguous else np.ascontiguousarray(each) for each in arrays]
        arrays += more[self.has_bias:]
        arrays += [x] * (4 + MOST_OPERANDS - len(arrays))
        if len(self.sizes) == 1:
            self.run(self.sizes[0], arrays)
        else:
            share(len(self.sizes), lambda sizes: self.run(sizes, arrays), self.sizes)
        return out

    def run(self, sizes: Any, arrays: Sequence[Any]) -> None:
        """Some parts."""
        strides = None if self.epilogue is None else ctypes.addressof(self.epilogue[1])
        if self.direct is not None:
            self.direct(ctypes.addressof(sizes), strides, *arrays)
        else:
            self.kernel(sizes, (ctypes.c_void_p * len(arrays))(*[each.ctypes.data for each in arrays]), strides)


class WholeProduct:
    """A convolution whose kernel covers its whole input, by its use: one product of BLAS over all samples. Arguments as of Convolution."""

    __slots__ = ("use", "shape", "dtype", "products")
    __name__ = "product"        # in the source of plans

    def __init__(self, use: str, at: Geometry, shape: Sizes, dtype: Any) -> None:
        self.use, self.shape, self.dtype, self.products = use, shape, dtype, at.products

    def __call__(self, x: Any, weight: Any, bias: Any = None, out: Any = None) -> Any:
        """The result, in `out` or new."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        if self.use == "weight":        # the second operand is the gradient of the result
            np.dot(weight.reshape(-1, out.shape[0]).T, x.reshape(-1, out[0].size), out=out.reshape(out.shape[0], -1))
            return out
        matrix = weight.reshape(weight.shape[0], -1)
        rows = matrix.shape[0] if self.use == "transposed" else matrix.shape[1]
        np.dot(x.reshape(-1, rows), matrix if self.use == "transposed" else matrix.T, out=out.reshape(x.size // rows, -1))
        if bias is not None:
            out += bias.reshape(-1, *[1] * (weight.ndim - 2))
        return out


def convolution(use: str, at: Geometry, shape: Sizes, dtype: Any, has_bias: bool, threads: int,
                is_frozen: bool = False) -> Convolution | WholeProduct:
    """The function for a use of a convolution, which see. Raises NotNative."""
    if at.groups == math.prod(at.counts) == 1 and not any(at.padding) and at.kernel == at.extents:
        return WholeProduct(use, at, shape, dtype)
    return Convolution(use, at, shape, dtype, has_bias, threads, is_frozen)


def turned(weight: Any, groups: int) -> Any:
    """(groups * outs, channels, ...) as (groups * channels, outs, ...), each kernel backwards."""
    apart = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)
    return np.ascontiguousarray(apart.swapaxes(1, 2)[..., ::-1])


def transformed(weight: Any, at: Geometry, is_turned: bool) -> Any:
    """The transform of a weight for Winograd's algorithm; is_turned: the weight is that of the convolution which `at` reverses."""
    source = text(TRANSFORM, C_TYPES[weight.dtype.name])
    compiled = building.built(source, lambda: source)
    if compiled is None:
        raise NotNative("the C compiler fails on it")
    weight = np.ascontiguousarray(weight)
    result = np.empty(16 * (at.groups * -(-at.outs // 8) * 8 * at.channels + 16), weight.dtype)
    strides = (1, at.outs) if is_turned else (at.channels, 1)
    numbers = (ctypes.c_longlong * 6)(at.groups, at.outs, at.channels, *strides, is_turned)
    compiled.kernel(numbers, (ctypes.c_void_p * 2)(weight.ctypes.data, result.ctypes.data), None)
    return result


__all__ = ["WORTH_IT", "Convolution", "Geometry", "WholeProduct", "convolution"]
