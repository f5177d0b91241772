"""Facts about an overload that running its kernel on symbols shows: whether it is pointwise, and the dtype of its result.

`tools/facts.py` writes them to `irtool/ops/facts.txt`, so that passes need no kernels.
"""
from __future__ import annotations

from typing import Any

from irtool.ir.effects import facts_of
from irtool.ir.errors import Error
from irtool.ops.array_library import np
from irtool.ops.call import overload
from irtool.ops.facts import BOOL, KEEPS, OTHER, REAL
from irtool.ops.symbols.elementwise import NotPointwise, Symbol, symbolic

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Scalar": (0.5, 1), "Scalar?": (0.5, None), "float": (0.5,), "float?": (0.5, None), "bool": (False,), "int": (1,), "ScalarType": (6,),
    "int?": (None,), "bool?": (None,), "ScalarType?": (None,), "MemoryFormat?": (None,), "Device": ("cpu",), "Device?": (None,),
    "Layout?": (None,), "str": ("none",), "str?": ("floor", None), "Generator?": (None,),
}
"""Values on which a kernel is run, by the type of the argument."""
DTYPES = ("float32", "float64", "complex64", "int64", "bool")


def pointwise_result(name: str) -> str | None:
    """KEEPS, BOOL, REAL or OTHER for a pointwise overload (`aten::mul.Tensor`); None for an overload that is not pointwise, or whose
    kernel cannot be run."""
    try:
        target = overload(name)
    except Error:
        return None
    if target.mode != "plain" or facts_of(target.schema.kind).is_random:
        return None
    results = {dtype: result for dtype in DTYPES if (result := _result(target, dtype)) is not None}
    if not results:
        return None
    if all(result == "bool" for result in results.values()):
        return BOOL
    if target.schema.arguments[0].type.text != "Tensor" or target.schema.arguments[0].name in ("condition", "mask"):
        return OTHER
    real = [results.get(dtype) for dtype in ("float32", "float64")]
    if real != ["float32", "float64"]:
        return OTHER
    return KEEPS if results.get("complex64") == "complex64" else REAL if results.get("complex64") in (None, "float32") else OTHER


def _result(target: Any, dtype: str) -> str | None:
    """The dtype of the first result if all operands have this dtype; None if the kernel refuses the dtype, or is not pointwise."""
    for place in (0, 1):
        values = [_value(argument, place, dtype) for argument in target.schema.arguments]
        if any(each is ... for each in values) or not any(isinstance(each, Symbol) for each in values):
            return None
        try:
            return str(symbolic(target, values)[0].dtype)
        except NotPointwise:
            continue
    return None


def _value(argument: Any, place: int, dtype: str) -> Any:
    """The first or second value to try for an argument; ... if there is none for its type."""
    text = argument.type.text
    if text in ("Tensor", "Tensor?"):
        return Symbol(np.dtype("bool" if argument.name in ("condition", "mask") else dtype), False)
    if argument.has_default and not place and text not in ("Scalar?", "float?"):
        return argument.default
    choices = ARGUMENTS.get(text)
    return ... if choices is None else choices[min(place, len(choices) - 1)]
