"""Calls of pointwise operators on tensors without choosing an overload, binding and promoting arguments each time.

The overload, the dtype and the resulting array functions depend on the dtypes of the operands and on the numbers among them. They are
determined once (`irtool.ops.symbols.elementwise`) and cached; further calls look them up and call the array functions.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir.errors import Error
from irtool.ops.array_library import np
from irtool.ops.call import overload
from irtool.ops.symbols.elementwise import CAST, WHERE, NotPointwise, Symbol, flattened, symbolic
from irtool.ops.tensor import Tensor, choose

MAX_CALLS = 10_000
SIMPLE = frozenset((int, float, bool, str, type(None)))
_calls: dict[Any, Callable[..., Any] | None] = {}


def run_quickly(kind: str, args: Sequence[Any], is_chosen: bool = False) -> Tensor | None:
    """The result of an operator on numbers and tensors without layers; None if there is no shortcut, or if it fails. is_chosen: the kind
    is the name of an overload, and the operands are all its arguments."""
    key: list[Any] = [kind, is_chosen]
    arrays = []
    for arg in args:
        if arg.__class__ is Tensor:
            array = arg.array
            arrays.append(array)
            key.append(array.dtype.num if array.ndim else ~array.dtype.num)
        elif arg.__class__ in SIMPLE:
            key.append((arg.__class__, arg if arg != 0 or arg.__class__ is not float else repr(arg)))      # -0.0 equals 0.0
        else:
            return None
    place = tuple(key)
    try:
        function = _calls[place]
    except KeyError:
        if len(_calls) >= MAX_CALLS:
            _calls.clear()
        function = _calls[place] = _make(kind, args, is_chosen)
    if function is None or len(arrays) > 1 and not lie_alike(arrays):
        return None
    try:
        return Tensor(function(*arrays))
    except ValueError:      # shapes that do not broadcast: the ordinary call raises torch's error
        return None


def lie_alike(arrays: Sequence[Any]) -> bool:
    """Do all arrays lie in rows or have the same strides? Then NumPy's result lies in memory as torch's."""
    strides = arrays[0].strides
    return all(each.strides == strides for each in arrays) or all(each.flags.c_contiguous for each in arrays)


def _make(kind: str, args: Sequence[Any], is_chosen: bool) -> Callable[..., Any] | None:
    if not any(type(arg) is Tensor for arg in args):
        return None
    try:
        name, values = (kind, args) if is_chosen else choose(kind, args, {})
        if not overload(name).fresh:
            return None
        symbols = {id(arg): Symbol(arg.array.dtype, not arg.array.ndim) for arg in args if type(arg) is Tensor}
        operands = [symbols[id(arg)] for arg in args if type(arg) is Tensor]
        if len({id(each) for each in operands}) != len(operands):
            return None
        (result,) = symbolic(overload(name), [symbols.get(id(value), value) for value in values])
    except (Error, NotPointwise, ValueError):
        return None
    if result.is_number:
        return None     # NumPy returns scalars instead of 0-d arrays
    steps = flattened(operands, [result])
    if len(steps.steps) != 1 or steps.steps[0].function in (WHERE, CAST):
        return None
    (step,) = steps.steps
    function = step.function
    if step.operands == tuple(range(len(operands))):
        direct: Callable[..., Any] = function
        return direct
    if len(operands) == 1 and len(step.operands) == 2:
        first, second = step.operands
        if type(first) is int and type(second) is not int:
            constant = np.asarray(second)
            return lambda x: function(x, constant)
        if type(second) is int and type(first) is not int:
            constant = np.asarray(first)
            return lambda x: function(constant, x)
    return None
