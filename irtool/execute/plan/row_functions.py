"""Elementwise functions along short rows: by a loop in C.

Where operands are broadcast (`x[:, :, None] * y[:, None]`), NumPy runs a loop per row, and spends more time between short rows than in
them. The loop in C (`irtool.execute.native.building`) is compiled once for all shapes and cached on disk. Only functions whose rounding
IEEE 754 prescribes are computed by it, so that the bits are NumPy's.
"""
from __future__ import annotations

from typing import Any

from irtool.execute.fusion import Way, coalesced
from irtool.execute.native import building
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Call, Program, Variable
from irtool.ops.array_library import np
from irtool.ops.symbols import elementwise
from irtool.ops.symbols.array_layout import Meta, dummy, meta_of

EXACT = frozenset((np.add, np.subtract, np.multiply, np.divide))
"""Functions whose results IEEE 754 prescribes."""
LARGE = 1 << 15
"""Bytes of a result from which the loop in C pays."""
LONG = 1024
"""Elements of a row from which NumPy is as fast."""


class Rows:
    """One elementwise function as a loop in C, for operands that have the same shapes and strides in every call."""

    __slots__ = ("function", "quick", "is_tried")
    __name__ = "rows"       # in the source of plans

    def __init__(self, function: np.ufunc) -> None:
        self.function = function
        self.quick: Any = None
        self.is_tried = False

    def __call__(self, *operands: Any, out: Any) -> Any:
        """The result, in `out`, which may be an operand of its shape and strides."""
        if self.quick is not None:
            self.quick.call(*operands, out)
            return out
        if not self.is_tried:
            self.is_tried = True
            steps = elementwise.Program([each.dtype for each in operands], [elementwise.Step(self.function, (0, 1), out.dtype)], [2])
            way = Way(steps, list(operands), True, 1)
            way(list(operands), [out])
            self.quick = way.quick(operands, [out])
            return out
        return self.function(*operands, out)


def use_rows(program: Program, wanted: bool | None) -> None:
    """Replace such calls in a program. wanted: as `native` of `irtool.compile`."""
    calls = [each for each in every(program.body) if isinstance(each, Call) and each.function in EXACT and has_short_rows(each)]
    if calls and wanted is not False and building.compiler() is not None and building.reads_objects():
        for call in calls:
            call.function = Rows(call.function)      # type: ignore[arg-type]


def has_short_rows(call: Call) -> bool:
    """Is the result large and contiguous, with short rows, and are the operands of its dtype and broadcast?"""
    meta = call.out.meta
    if call.way != "ufunc" or call.function is np.power or meta is None or meta.nbytes < LARGE:
        return False
    if meta.dtype.kind != "f" or not meta.is_contiguous:
        return False
    metas = [each.meta if isinstance(each, Variable) else meta_of(each) for each in call.args if isinstance(each, Variable | np.ndarray)]
    if len(metas) != 2 or any(each is None or each.dtype != meta.dtype for each in metas):
        return False
    extents, strides = coalesced(meta.shape, [meta.strides, *[broadcast_strides(each, meta) for each in metas if each is not None]])
    return len(extents) > 1 and extents[-1] < LONG and all(each[-1] in (0, meta.dtype.itemsize) for each in strides)


def broadcast_strides(operand: Meta, result: Meta) -> tuple[int, ...]:
    """The strides of an operand broadcast to the shape of the result."""
    return np.broadcast_to(dummy(operand), result.shape).strides
