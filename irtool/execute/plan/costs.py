"""Estimates of the time of an instruction, from the shapes of its operands and results.

The figures were measured on one ordinary core. If they are wrong by a factor of two, other instructions run on threads; results are equal.
"""
from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from irtool.execute import fusion
from irtool.execute.fusion import Bound, BoundToMany
from irtool.execute.native.c_loops import NativeLoop
from irtool.execute.native.c_source import LIBRARY
from irtool.execute.native.convolution_calls import Convolution, WholeProduct
from irtool.execute.plan.large_results import copy, zeros
from irtool.execute.plan.program import Branch, Call, Group, Instruction, Repeat, Visit, leaves
from irtool.ops.array_library import np
from irtool.ops.select import select
from irtool.ops.size_facts import CUBIC
from irtool.ops.symbols.array_layout import Meta

FLOPS = {4: 100.0, 8: 50.0}
"""Floating-point operations per nanosecond of a matrix product, by bytes of an element."""
BYTE = 0.05
"""Nanoseconds to read or write a byte: of every operand and result."""
ELEMENT = 0.1
"""Nanoseconds per element in addition, for arithmetic, comparisons and copies."""
FUNCTION = 1.0
"""The same for all other functions: exp, sorting, unknown ones."""
BLAS_SHARES = 2 * 64**3
"""Floating-point operations from which OpenBLAS shares a product among its threads."""
BLAS_VARIABLES = ("MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
SIMPLE = frozenset((copy, zeros, np.concatenate, np.stack, np.where, select, *[getattr(np.ndarray, name) for name in (
    "copy", "reshape", "astype", "sum", "mean", "max", "min")]))
"""Functions that copy or sum, besides the elementwise ones."""
CONVOLUTIONS = ("aten::conv", "aten::_conv", "aten::thnn_conv", "aten::slow_conv")
"""Prefixes of the kinds of convolutions, whose second operand is the weight."""
BACKWARD = "aten::convolution_backward"
"""Prefix of the kinds that differentiate a convolution: twice its time; the weight is the third operand."""


class Weight:
    """Estimated nanoseconds of an instruction on its thread; if little is known, too few rather than too many."""

    __slots__ = ("cost", "shared_by")

    def __init__(self, cost: float, shared_by: str = "") -> None:
        self.cost = cost
        self.shared_by = shared_by      # what runs it on several threads anyway: BLAS, or the fused group


NOTHING = Weight(0.0)


def weigh(instruction: Instruction, threads: int) -> Weight:
    """The time of an instruction; threads: how many fused groups may use."""
    if isinstance(instruction, Branch):
        return Weight(min([total(block.instructions, threads) for block in instruction.blocks]))
    if isinstance(instruction, Repeat):
        limit = getattr(instruction.limit, "value", None)
        return Weight((limit if type(limit) is int and limit > 0 else 1) * total(instruction.body.instructions, threads))
    if not isinstance(instruction, Call | Visit) or isinstance(instruction, Call) and instruction.way in ("view", "number", "keep"):
        return NOTHING
    metas = metas_of(instruction)
    moved = sum([meta.nbytes for meta in metas]) * BYTE
    way = way_of(instruction.function)
    if way is not None:
        cost = moved + way.size * sum([element_of(step.function) for _, step in way.inside])
        return Weight(cost / threads, "the group") if threads > 1 and way.size >= fusion.WORTH_THREADS else Weight(cost)
    if isinstance(instruction.function, Convolution) and len(instruction.function.sizes) > 1:
        return Weight(2 * instruction.function.products / FLOPS[4] / len(instruction.function.sizes), "the convolution")
    if isinstance(instruction.function, NativeLoop):
        return Weight(instruction.function.steps * ELEMENT)
    flops = flops_of(instruction, metas)
    if flops:
        cost, blas = moved + flops / FLOPS.get(metas[0].dtype.itemsize, FLOPS[8]), blas_threads() if flops >= BLAS_SHARES else 1
        return Weight(cost / blas, "BLAS") if blas > 1 else Weight(cost)
    size = max([meta.nbytes // meta.dtype.itemsize for meta in metas], default=0)
    return Weight(moved + size * element_of(instruction.function))


def element_of(function: Any) -> float:
    """Nanoseconds for one element."""
    if isinstance(function, np.ufunc):
        return FUNCTION if function.__name__ in LIBRARY else ELEMENT
    return ELEMENT if function in SIMPLE else FUNCTION


def total(instructions: Sequence[Instruction], threads: int) -> float:
    """The time of several instructions, one after the other."""
    return sum([weigh(each, threads).cost for each in instructions])


def way_of(function: Any) -> Any:
    """How a fused group runs on its operands; None for any other function."""
    if not isinstance(function, Bound | BoundToMany):
        return None
    return next((way for way in function.group.ways.values() if way is not None), None)


def metas_of(instruction: Call | Visit) -> list[Meta]:
    """The known facts of the operands of an instruction, then of its results."""
    operands = [*instruction.args, *(instruction.named.values() if isinstance(instruction, Call) else ())]
    metas = [each.meta for each in leaves([Group(flat(operands), tuple)])]
    if isinstance(instruction, Call):
        metas.append(instruction.out.meta)
    else:
        metas += [out.meta or meta for out, meta in zip(instruction.outs, instruction.facts, strict=True)]
    return [meta for meta in metas if meta is not None]


def flat(values: Sequence[Any]) -> list[Any]:
    """The items in arguments and tuples of them."""
    items: list[Any] = []
    for each in values:
        items += flat(each) if isinstance(each, tuple) else [each]
    return items


def flops_of(instruction: Call | Visit, metas: list[Meta]) -> float:
    """Floating-point operations of a product, a convolution, or a decomposition of a matrix; 0 for any other instruction."""
    sizes = [meta.nbytes // meta.dtype.itemsize for meta in metas]
    if isinstance(instruction, Call):
        if instruction.function in (np.dot, np.matmul) and len(metas) == 3 and metas[0].shape:
            return 2.0 * sizes[2] * metas[0].shape[-1]
        if instruction.function is np.tensordot and len(metas) == 3:        # (m, k) (k, n) (m, n)
            return 2.0 * math.sqrt(math.prod(sizes))
        return 2.0 * instruction.function.products if isinstance(instruction.function, Convolution | WholeProduct) else 0.0
    kind = instruction.node.kind
    if kind == BACKWARD and len(metas) > 2 and metas[2].shape and metas[2].shape[0]:
        return 4.0 * sizes[0] * sizes[2] / metas[2].shape[0]
    if kind.startswith(CONVOLUTIONS) and len(metas) > 2 and metas[1].shape and metas[1].shape[0]:
        return 2.0 * sizes[-1] * sizes[1] / metas[1].shape[0]
    if (kind in CUBIC or kind.startswith("aten::linalg_")) and metas and len(metas[0].shape) > 1:
        return 4.0 * sizes[0] * max(metas[0].shape[-2:])
    return 0.0


def blas_threads() -> int:
    """How many threads BLAS uses for a large product; if BLAS cannot be asked, the number in the environment, or all cores."""
    ask = _blas()
    if ask is not None:
        return int(ask())
    said = [value for value in map(os.environ.get, BLAS_VARIABLES) if value is not None and value.isdecimal()]
    return int(said[0]) if said else os.cpu_count() or 1


@cache
def _blas() -> Callable[[], int] | None:
    """The function of NumPy's BLAS that returns its number of threads; None if there is none."""
    for module in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        path = getattr(sys.modules.get(module), "__file__", None) or ""
        for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_", "openblas_get_num_threads"):
            try:
                ask: Callable[[], int] = getattr(ctypes.CDLL(path), name)
                return ask
            except (OSError, AttributeError):
                continue
    return None
