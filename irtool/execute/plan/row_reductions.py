"""Sums, means and extremes of short rows: by a loop in C.

NumPy calls its inner loop once per row, which takes longer than a row of some dozen elements itself. The loop in C adds in NumPy's order:
eight partial sums side by side, and halves of rows longer than 128 added pairwise, so that the bits are NumPy's. If a result is 0 or nan,
whose sign or bits depend on more than the order, NumPy computes it.
"""
from __future__ import annotations

import ctypes
import math
from typing import Any

from irtool.execute.native import building
from irtool.execute.native.c_source import DATA, c_type
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Call, Program, Variable
from irtool.ops.array_library import np

SUM = """static REAL fold(const REAL *a, long long n)
{
    if (n > 128) {
        const long long half = n / 2 - n / 2 % 8;
        return fold(a, half) + fold(a + half, n - half);
    }
    if (n < 8) {
        REAL all = a[0];
        for (long long i = 1; i < n; i++)
            all += a[i];
        return all;
    }
    REAL r[8];
    for (int j = 0; j < 8; j++)
        r[j] = a[j];
    long long i = 8;
    for (; i < n - n % 8; i += 8)
        for (int j = 0; j < 8; j++)
            r[j] += a[i + j];
    REAL all = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        all += a[i];
    return all;
}
"""
EXTREME = """static REAL fold(const REAL *a, long long n)
{
    REAL r[16], all = a[0];
    long long i = 0;
    int odd = 0;
    for (long long k = 0; k < n; k++)
        odd |= a[k] != a[k];
    if (odd)
        return 0;
    for (int j = 0; j < 16; j++)
        r[j] = all;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            r[j] = a[i + j] ORDER r[j] ? a[i + j] : r[j];
    for (; i < n; i++)
        all = a[i] ORDER all ? a[i] : all;
    for (int j = 0; j < 16; j++)
        all = r[j] ORDER all ? r[j] : all;
    return all;
}
"""
KERNEL = """int direct(const long long *n, const long long *stride, char **x, char **y)
{
    const REAL *a = (const REAL *)x[DATA];
    REAL *out = (REAL *)y[DATA];
    int odd = 0;
    for (long long i = 0; i < n[0]; i++) {
        out[i] = RESULT;
        odd |= !(out[i] < 0 || out[i] > 0);
    }
    return odd;
}

void kernel(const long long *n, char *const *base, const long long *stride)
{
}
"""
FORMS = {"sum": (SUM, "fold(a + i * n[1], n[1])"), "mean": (SUM, "fold(a + i * n[1], n[1]) / (REAL)n[1]"),
         "max": (EXTREME.replace("ORDER", ">"), "fold(a + i * n[1], n[1])"),
         "min": (EXTREME.replace("ORDER", "<"), "fold(a + i * n[1], n[1])")}
"""Method of arrays -> C code of the function for one row, and of its call."""
FOLDED = {getattr(np.ndarray, name): name for name in FORMS}
LARGE = 1 << 13
"""Bytes of an array from which the loop in C pays."""
LONG = 512
"""Elements of a row from which NumPy is as fast."""


class Folds:
    """One reduction of the last dimensions as a loop in C, for contiguous arrays that have the same shape in every call."""

    __slots__ = ("name", "axes", "shape", "keeps", "call", "extents", "is_tried")
    __name__ = "folds"      # in the source of plans

    def __init__(self, name: str, axes: tuple[int, ...], shape: tuple[int, ...], keeps: bool) -> None:
        self.name = name
        self.axes = axes        # the last
        self.shape = shape      # of the result
        self.keeps = keeps      # does the reduced dimension stay, with size 1?
        self.call: Any = None
        self.extents: Any = None
        self.is_tried = False

    def __call__(self, x: Any, out: Any = None) -> Any:
        """The result, in `out` or new."""
        if not self.is_tried:
            self.is_tried = True
            self.compile(x)
        if out is None:
            out = np.empty(self.shape, x.dtype)
        if self.call is not None and not self.call(self.extents, None, x, out):
            return out
        return getattr(x, self.name)(self.axes, out=out, keepdims=self.keeps)

    def compile(self, x: Any) -> None:
        """Make the loop in C, if there is a compiler."""
        fold, result = FORMS[self.name]
        text = (fold + KERNEL).replace("RESULT", result).replace("REAL", c_type(x.dtype)).replace("[DATA]", f"[{DATA}]")
        compiled = building.built(text, lambda: text)
        if compiled is not None and compiled.direct is not None:
            compiled.direct.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
            compiled.direct.restype = ctypes.c_int
            self.extents = (ctypes.c_longlong * 2)(x.size // size_of(x.shape, self.axes), size_of(x.shape, self.axes))
            self.call = compiled.direct


def use_folds(program: Program, wanted: bool | None) -> None:
    """Replace such calls in a program. wanted: as `native` of `irtool.compile`."""
    calls = [each for each in every(program.body) if isinstance(each, Call) and folds_short_rows(each)]
    if calls and wanted is not False and building.compiler() is not None and building.reads_objects():
        for call in calls:
            assert call.out.meta is not None
            name = FOLDED[call.function]
            x = call.args[0]
            assert isinstance(x, Variable) and x.meta is not None
            axes = last_axes(call.named["axis"], len(x.meta.shape))
            call.function = Folds(name, axes, call.out.meta.shape, bool(call.named.get("keepdims")))
            call.named = {}


def folds_short_rows(call: Call) -> bool:
    """Is a call a sum, mean or extreme of the short rows of an array, in the dtype of the array?"""
    x = call.args[0] if len(call.args) == 1 else None
    if call.function not in FOLDED or not isinstance(x, Variable) or x.meta is None or call.out.meta is None:
        return False
    named, shape = dict(call.named), x.meta.shape
    axes, dtype = last_axes(named.pop("axis", None), len(shape)), named.pop("dtype", None)
    named.pop("keepdims", None)
    return (not named and 0 < len(axes) < len(shape) and 1 < size_of(shape, axes) <= LONG
            and x.meta.dtype.char in "fd" and dtype in (None, x.meta.dtype) and call.out.meta.dtype == x.meta.dtype
            and x.meta.nbytes >= LARGE and x.meta.is_contiguous and call.out.meta.is_contiguous)


def last_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction, if they are the last ones in order; else ()."""
    axes = tuple([each % rank for each in axis]) if isinstance(axis, tuple) else (axis % rank,) if isinstance(axis, int) else ()
    return axes if axes == tuple(range(rank - len(axes), rank)) else ()


def size_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements a reduction of the last axes folds into one."""
    return math.prod(shape[-len(axes):])
