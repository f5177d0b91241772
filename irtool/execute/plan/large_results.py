"""Calls whose large results NumPy would allocate write into buffers of the plan instead.

So the memory of sums and copies is planned like that of elementwise functions: other results reuse it, and runs allocate no large arrays.
"""
from __future__ import annotations

from typing import Any

from irtool.execute.plan.buffers import RECYCLED
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Call, Program, Variable
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, allocated
from irtool.ops.symbols.recorded_writes import spread

REDUCTIONS = frozenset((np.ndarray.sum, np.ndarray.mean, np.ndarray.max, np.ndarray.min))
JOINS = frozenset((np.concatenate, np.stack))
COPIES = frozenset((np.ndarray.astype, np.ndarray.copy, np.ndarray.reshape))


def copy(x: Any, out: Any) -> None:
    """Write the elements of x into `out`, in order, converted to its dtype. If `out` has another shape than x, it is contiguous."""
    np.copyto(out if out.shape == x.shape else out.reshape(x.shape), x, "unsafe")


def zeros(out: Any) -> None:
    """Write zeros."""
    out.fill(0)


def room(meta: Meta, out: Any = None) -> Any:
    """An uninitialised array."""
    return allocated(meta) if out is None else out


def into_buffers(program: Program) -> None:
    """Rewrite the calls of a program that make large results."""
    for call in every(program.body):
        if not isinstance(call, Call) or call.way != "fresh" or call.out.meta is None or call.out.meta.nbytes < RECYCLED:
            continue
        if call.function in JOINS and not call.named:
            call.way = "out"
            continue
        x = call.args[0] if call.args else None
        if not isinstance(x, Variable) or x.meta is None:
            continue
        if call.function in REDUCTIONS and len(call.args) == 1 and x.meta.is_contiguous and x.meta.dtype.char != "e":
            call.way = "out"
        elif call.function in COPIES and not call.named:
            call.function, call.args, call.way = copy, (x,), "out"
        elif call.function is np.zeros_like:
            call.function, call.args, call.named, call.way = zeros, (), {}, "out"


__all__ = ["copy", "into_buffers", "room", "spread", "zeros"]
