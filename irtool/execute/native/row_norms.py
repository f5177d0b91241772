"""Layer norm and group norm in C: rows to mean 0 and variance 1, times weight, plus bias, in three passes over a row in the cache."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from irtool.execute.native import building
from irtool.execute.native.c_source import C_TYPES, direct
from irtool.execute.native.small_products import declarations
from irtool.execute.native.stages import NotNative
from irtool.execute.thread_pool import share
from irtool.ops.array_library import np

WORTH_IT = 1 << 13
"""Elements from which the loop in C pays."""
WORTH_THREADS = 1 << 20
"""Elements from which threads share the rows."""

_KERNEL = """
struct sizes { long long first, last, groups, channels, count, weight, bias, eps; };
#if WIDEST == 64
typedef REAL_64 vector;
#elif WIDEST == 32
typedef REAL_32 vector;
#else
typedef REAL_16 vector;
#endif
enum { LANES = WIDEST / sizeof(REAL) };

/* The mean of the elements of a row, or of their squares, minus a number. */
static REAL mean_of(const REAL *a, long n, REAL less, int squared)
{
    vector sums[4] = {{0}, {0}, {0}, {0}};
    REAL parts[4 * LANES], rest = 0;
    long i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int j = 0; j < 4; j++) {
            const vector each = *(const vector *)(a + i + j * LANES) - less;
            if (squared)
                sums[j] += each * each;
            else
                sums[j] += each;
        }
    for (; i < n; i++)
        rest += squared ? (a[i] - less) * (a[i] - less) : a[i] - less;
    for (int j = 0; j < 4; j++)
        *(vector *)(parts + j * LANES) = sums[j];
    for (int half = 2 * LANES; half; half /= 2)
        for (int k = 0; k < half; k++)
            parts[k] += parts[k + half];
    return (parts[0] + rest) / (REAL)n;
}

void kernel(const long long *n, char *const *base, const long long *stride)
{
    const struct sizes *g = (const struct sizes *)n;
    const REAL *weight = (const REAL *)base[1], *bias = (const REAL *)base[2];
    const long size = g->channels * g->count;
    double eps;
    memcpy(&eps, &g->eps, sizeof eps);
    for (long row = g->first; row < g->last; row++) {
        const REAL *const x = (const REAL *)base[0] + row * size;
        REAL *const out = (REAL *)base[3] + row * size;
        const REAL mean = mean_of(x, size, 0, 0), variance = mean_of(x, size, mean, 1), inverse = 1 / ROOT(variance + (REAL)eps);
        const REAL *const w = weight + row % g->groups * g->channels, *const b = bias + row % g->groups * g->channels;
        if (g->count == 1 && g->weight && g->bias)
            for (long i = 0; i < size; i++)
                out[i] = (x[i] - mean) * inverse * w[i] + b[i];
        else
            for (long c = 0; c < g->channels; c++) {
                const REAL scale = g->weight ? w[c] : 1, shift = g->bias ? b[c] : 0;
                for (long i = c * g->count; i < (c + 1) * g->count; i++)
                    out[i] = (x[i] - mean) * inverse * scale + shift;
            }
    }
}
"""


class Rows(NamedTuple):
    """How an array lies: rows of `channels` times `elements` elements, where `groups` rows in turn have weights of their own."""

    rows: int
    groups: int
    channels: int
    elements: int


class RowNorm:
    """A norm of contiguous rows as a function of x, then weight and bias if there are any. Raises NotNative if it cannot run in C."""

    __slots__ = ("shape", "dtype", "has_weight", "has_bias", "sizes", "kernel", "direct")
    __name__ = "norm"       # in the source of plans

    def __init__(self, at: Rows, shape: tuple[int, ...], dtype: Any, has_weight: bool, has_bias: bool, eps: float, threads: int) -> None:
        self.shape, self.dtype, self.has_weight, self.has_bias = shape, dtype, has_weight, has_bias
        type_ = C_TYPES[np.dtype(dtype).name]
        root = "__builtin_sqrtf" if type_ == "float" else "__builtin_sqrt"
        kernel = _KERNEL.replace("REAL", type_).replace("ROOT", root)
        text = "#include <string.h>\n" + declarations({type_}) + kernel + direct(4)
        compiled = building.built(text, lambda: text)
        if compiled is None:
            raise NotNative("the C compiler fails on it")
        self.kernel = compiled.kernel
        self.direct: Any = compiled.direct
        if self.direct is not None:
            self.direct.argtypes = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.py_object] * 4)
        crew = max(1, min(threads, at.rows)) if at.rows * at.channels * at.elements >= WORTH_THREADS else 1
        numbers = (at.groups, at.channels, at.elements, has_weight, has_bias, *struct.unpack("q", struct.pack("d", eps)))
        bounds = pairwise([at.rows * each // crew for each in range(crew + 1)])
        self.sizes = [(ctypes.c_longlong * 8)(first, last, *numbers) for first, last in bounds]

    def __call__(self, x: Any, *more: Any, out: Any = None) -> Any:
        """The result, in `out` or new."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        weight = more[0] if self.has_weight else x
        arrays = [np.ascontiguousarray(each) for each in (x, weight, more[-1] if self.has_bias else x)]
        if len(self.sizes) == 1:
            self.run(self.sizes[0], [*arrays, out])
        else:
            share(len(self.sizes), lambda sizes: self.run(sizes, [*arrays, out]), self.sizes)
        return out

    def run(self, sizes: Any, arrays: Sequence[Any]) -> None:
        """Some rows."""
        if self.direct is not None:
            self.direct(ctypes.addressof(sizes), None, *arrays)
        else:
            self.kernel(sizes, (ctypes.c_void_p * 4)(*[each.ctypes.data for each in arrays]), None)


__all__ = ["WORTH_IT", "RowNorm", "Rows"]
