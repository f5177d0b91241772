"""Copies of functions for tracing, in which `int(x)` and `float(x)` of tensors and traced numbers stay in the trace.

Python's `int(x)` always returns a plain number, whose origin a trace cannot know. So a trace runs a copy of the user's function that calls
`to_int` instead of the builtin `int`, and similarly for `float`, `type` and the module `math`. A function without these names runs
itself. If a copy is impossible, each such number becomes a decision, which is correct too, but needs more variants.
"""
from __future__ import annotations

import builtins
import dis
import math
import sys
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from irtool.dispatch.traced_numbers import MATHEMATICS, class_of, to_float, to_int
from irtool.ir.callers import is_ours

CALLED: dict[str, Any] = {"int": to_int, "float": to_float, "type": class_of}
"""Builtins that are replaced in calls."""
MOST_CONSTANTS = 255


def followed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a trace runs: a copy, if something is replaced in it or in functions that it calls; else the function."""
    copy: Callable[..., Any] = _followed(function, {})
    return copy


def _followed(function: Any, known: dict[int, Any]) -> Any:
    if type(function) is MethodType:
        copied = _followed(function.__func__, known)
        return function if copied is function.__func__ else MethodType(copied, function.__self__)
    if type(function) is not FunctionType:
        return function
    if id(function) in known:
        return known[id(function)][0]
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = function.__kwdefaults__, function.__qualname__, function.__module__
    copy.__dict__.update(function.__dict__)
    known[id(function)] = copy, function
    code = function.__code__
    if not is_ours(code.co_filename):
        code = replaced(code, function.__globals__, known)
    cells = tuple([_cell(cell, known) for cell in function.__closure__ or ()])
    if code is function.__code__ and all(a is b for a, b in zip(cells, function.__closure__ or (), strict=True)):
        known[id(function)] = function, function
        return function
    if cells != (function.__closure__ or ()):
        rebound = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
        rebound.__kwdefaults__ = function.__kwdefaults__
        rebound.__qualname__, rebound.__module__ = function.__qualname__, function.__module__
        rebound.__dict__.update(function.__dict__)
        known[id(function)] = rebound, function
        return rebound
    copy.__code__ = code
    return copy


def _cell(cell: CellType, known: dict[int, Any]) -> CellType:
    """A cell of a closure; if it contains a function that is replaced, a new cell with the copy."""
    try:
        content = cell.cell_contents
    except ValueError:      # not set yet
        return cell
    if type(content) is not FunctionType:
        return cell
    copy = _followed(content, known)
    return cell if copy is content else CellType(copy)


def replaced(code: CodeType, names: dict[str, Any], known: dict[int, Any]) -> CodeType:
    """A code object that loads the replacements; the same code object if it has nothing to replace, or an unknown layout."""
    if not IS_KNOWN:
        return code
    constants = [replaced(each, names, known) if isinstance(each, CodeType) else each for each in code.co_consts]
    changed = any(a is not b for a, b in zip(constants, code.co_consts, strict=True))
    text = bytearray(code.co_code)
    steps = list(dis.get_instructions(code))
    for step, after in zip(steps, steps[1:], strict=False):
        if step.opname != "LOAD_GLOBAL" or step.arg is None or after.offset - step.offset < 6:
            continue
        is_call = bool(step.arg & 1) and after.opname not in ("LOAD_ATTR", "LOAD_METHOD")
        other = substitute(step.argval, is_call, names, known)
        if other is None or len(constants) > MOST_CONSTANTS:
            continue
        load = [dis.opmap["LOAD_CONST"], len(constants)]
        push = [dis.opmap["PUSH_NULL"], 0]
        parts = [load] if not step.arg & 1 else [push, load] if NULL_FIRST else [load, push]
        parts += [[dis.opmap["NOP"], 0]] * ((after.offset - step.offset) // 2 - len(parts))
        text[step.offset:after.offset] = bytes([byte for part in parts for byte in part])
        constants.append(other)
        changed = True
    return code.replace(co_code=bytes(text), co_consts=tuple(constants)) if changed else code


NULL_FIRST = sys.version_info < (3, 13)
"""Does a call of this Python expect NULL below the function on the stack (else above it)?"""
IS_KNOWN = (3, 11) <= sys.version_info < (3, 14)
"""Is the bytecode of this Python known here? If not, nothing is replaced."""


def substitute(name: str, is_call: bool, names: dict[str, Any], known: dict[int, Any]) -> Any:
    """The replacement of a global name; None: it is not replaced."""
    meaning = names.get(name)
    if meaning is None:
        return CALLED.get(name) if is_call and name not in names and CALLED.get(name) and hasattr(builtins, name) else None
    if meaning is math:
        return MATHEMATICS
    if is_call and type(meaning) is FunctionType and not is_ours(meaning.__code__.co_filename):
        other = _followed(meaning, known)
        return None if other is meaning else other
    return None
