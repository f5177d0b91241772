"""Type promotion, outside the kernels: torch's rules, not NumPy's (torch.result_type; c10/core/ScalarType).

Three priority groups: tensors with dimensions > 0-dim tensors > numbers. The category (bool < int < float < complex) is taken over
all operands; the dtype comes from the highest-priority group that reaches it. A number brings only its category (float: the
default dtype, float32). A rule is what an op stanza names as `promote=`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import complex_of, default_dtype, is_array, number_dtype

DType = np.dtype[Any]


class Rule:
    """The conversion of operands before a kernel, and of its result after it."""

    __slots__ = ("name", "compute", "result", "refuse", "exact_numbers")

    def __init__(self, name: str, compute: str, result: str, refuse: Callable[[list[Any]], None] | None = None,
                 exact_numbers: bool = False) -> None:
        self.name = name
        # beside float16, numbers and 0-d operands are not rounded to it: the kernel computes in float32
        self.exact_numbers = exact_numbers
        self.refuse = refuse        # called with the operands before conversion; raises for operands that the operator refuses
        self.compute = compute      # "common": torch.result_type of all; "float": the same, but ints and bools become the default dtype
        # "compute": the dtype of the computation; "bool": converted to bool; "kernel": the dtype of the kernel's result
        self.result = result

    def __repr__(self) -> str:
        return self.name


PROMOTE = Rule("PROMOTE", "common", "compute")         # add, mul, where, maximum: result in the common dtype
TO_FLOAT = Rule("TO_FLOAT", "float", "compute")        # div, sin, sigmoid: integers become the default float dtype
COMPARE = Rule("COMPARE", "common", "bool")            # eq, lt, logical_and: computed in the common dtype, result bool
PROMOTE_IN = Rule("PROMOTE_IN", "common", "kernel")    # operands converted, the kernel decides the result's dtype

ARITHMETIC = Rule("ARITHMETIC", "common", "compute", exact_numbers=True)      # add, mul
QUOTIENT = Rule("QUOTIENT", "float", "compute", exact_numbers=True)           # div

_KIND_LEVEL = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def promote_types(a: DType, b: DType) -> DType:
    """torch.promote_types: the dtype of two arrays of one priority group. A float beside an integer keeps its width."""
    if a == b:
        return a
    level_a, level_b = _KIND_LEVEL[a.kind], _KIND_LEVEL[b.kind]
    if level_a < level_b:
        a, b, level_a, level_b = b, a, level_b, level_a
    if level_a == level_b or (level_a == 3 and level_b == 2):
        return np.promote_types(a, b) if level_a == level_b else np.promote_types(a, complex_of(b))
    return a


def result_type(args: Iterable[Any]) -> DType:
    """torch.result_type of arrays and Python numbers (None is skipped). Raises ValueError without any."""
    groups: list[DType | None] = [None, None, None]     # arrays with dimensions, 0-d arrays, numbers
    for arg in args:
        if isinstance(arg, np.ndarray):
            place, dtype = (0 if arg.ndim else 1), arg.dtype
        elif arg is None:
            continue
        elif is_array(arg):
            place, dtype = (0 if arg.ndim else 1), arg.dtype
        elif hasattr(arg, "is_number"):     # a stand-in for an array (`irtool.ops.symbols.elementwise`)
            place, dtype = (1 if arg.is_number else 0), arg.dtype
        else:
            place, dtype = 2, number_dtype(arg)
        old = groups[place]
        groups[place] = dtype if old is None else promote_types(old, dtype)
    dtype_found = _combine(groups[0], _combine(groups[1], groups[2]))
    if dtype_found is None:
        raise ValueError("no operand has a dtype")
    return dtype_found


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """The common dtype of a priority group and the groups below it (combine_categories of ATen/native/TypeProperties.cpp)."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.kind == "c":
        return higher
    if higher.kind == "f":
        return complex_of(higher) if lower.kind == "c" else higher
    if higher.kind == "b" or lower.kind in "fc":
        return promote_types(higher, lower)
    return higher


def float_of(dtype: DType) -> DType:
    """The default float dtype for integers and bool; floating-point and complex dtypes are unchanged."""
    return dtype if dtype.kind in "fc" else default_dtype


def compute_dtype(rule: Rule, args: Iterable[Any]) -> DType:
    """The dtype to which operands are converted before the kernel."""
    args = list(args)
    if rule.refuse is not None:
        rule.refuse(args)
    dtype = _same_dtype(args) or result_type(args)
    return float_of(dtype) if rule.compute == "float" else dtype


def _same_dtype(args: list[Any]) -> DType | None:
    """The dtype of arrays that all have the same one, the usual case; else None."""
    dtype: DType | None = getattr(args[0], "dtype", None)
    for arg in args:
        if type(arg) is not np.ndarray or arg.dtype is not dtype:
            return None
    return dtype


def can_cast(source: DType, target: DType) -> bool:
    """May a result of dtype `source` be written into an array of dtype `target` (torch.can_cast)? Categories may only rise, and not from
    bool."""
    if source.kind == "c" and target.kind != "c":
        return False
    if source.kind == "f" and target.kind in "biu":
        return False
    return not (source.kind != "b" and target.kind == "b")
