"""Running one case: under a time limit, with what is wrong as a `Finding`; and comparing results."""
from __future__ import annotations

import re
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

import irtool
from fuzz.case import Case

TOLERANCES = {"float16": 1e-2, "float32": 2e-4, "float64": 1e-7, "complex64": 2e-4, "complex128": 1e-7}
Check = Callable[[Case, Counter[str]], None]
WRONG, INTERNAL, HANG = "wrong", "exit 3", "hang"


class Wrong(Exception):
    """What must hold does not: on which way to run, and how."""

    def __init__(self, way: str, what: str) -> None:
        super().__init__(f"{way}: {what}")
        self.way = way
        self.what = what


class Skip(Exception):
    """The case says nothing: what it is about is refused, or raises in torch as well. The text is counted."""


class Hang(BaseException):
    """The time of a case is over."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with a case: `sort` is WRONG, INTERNAL or HANG; `symptom` is what a smaller case must show, too."""

    sort: str
    symptom: str
    message: str


def attempt(check: Check, case: Case, tally: Counter[str], limit: float) -> Finding | None:
    """Check a case; None when all holds. `tally` counts ways, refusals and skipped comparisons."""
    try:
        with time_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(case, tally)
        return None
    except Skip as reason:
        tally[f"skipped: {reason}"] += 1
        return None
    except Wrong as error:
        sort = INTERNAL if error.what.startswith(INTERNAL) else WRONG
        return Finding(sort, f"{symptom_of(error.way)}: {symptom_of(error.what)}", str(error))
    except Hang:
        return Finding(HANG, "hang", f"no end after {limit} seconds")
    except irtool.Error as error:
        return Finding(WRONG, f"error: {symptom_of(last_line(error))}", str(error))
    except MemoryError:
        return Finding(INTERNAL, "MemoryError", "memory ran out")
    except Exception as error:
        return Finding(INTERNAL, f"{type(error).__name__} {place_of(error)}", "".join(traceback.format_exception(error))[-3000:])


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Hang after so many seconds of computing, or ten times as many on the clock, since other programs may hold the processors; again
    each second, as a handler may swallow the first."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    clocks = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, stop) for number, _, _ in clocks]
    for _, clock, limit in clocks:
        signal.setitimer(clock, limit, 1.0)
    try:
        yield
    finally:
        for (number, clock, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(clock, 0)
            signal.signal(number, handler)


def place_of(error: BaseException) -> str:
    """The innermost function of irtool in a traceback."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "irtool" in each.filename or "passes" in each.filename]
    return f"in {frames[-1].name}" if frames else ""


def symptom_of(text: str) -> str:
    """A message without its numbers and names, so that smaller cases say the same."""
    text = re.sub(r"(aten|prim)::\w+(\.\w+)?", "operator", text)
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|%[\w.]+|-?\b\d[\w.+-]*|\bnan\b|\binf\b", "", text.partition("\n")[0])
    return " ".join(re.sub(r"[^A-Za-z0-9_: ]+", " ", text).split())[:90]


def last_line(error: Exception) -> str:
    """What an error of irtool says, without where it stands in the text."""
    return str(error).partition("error: ")[2].partition("\n")[0] or str(error).partition("\n")[0]


def refusal(error: Exception) -> str:
    """The words that a refusal is counted by."""
    return re.sub(r"%[\w.]+|\d+", "N", last_line(error))[:90]


SCRIPT_ALONE = "as eager torch has it, not as TorchScript"
"""What a comparison is counted as in which TorchScript alone differs: it drops writes whose results its annotations say are unused."""

OVERLAPPING = "as torch has it where operands that share memory with what is written are copied first"
Outcome = tuple[str, Any]
"""("value", results), ("error", text) of what the operators refuse, ("refused", text) of what irtool does not support."""


def outcome(call: Callable[[], Any]) -> Outcome:
    """What comes of a call; anything but an irtool.Error goes on as it is, and is a finding."""
    try:
        return "value", call()
    except irtool.UnsupportedError as error:
        return "refused", refusal(error)
    except irtool.Error as error:
        return "error", last_line(error)


def agree(got: Outcome, want: Outcome, way: str, exact: bool = False, least: float = 0.0) -> None:
    """Compare two outcomes. Raises Wrong. Where `want` is an error `got` may be a value: dead code that would raise may be dropped."""
    if got[0] == "value" and want[0] == "value":
        same(got[1], want[1], way, exact, least)
    elif got[0] != "value" and want[0] == "value":
        raise Wrong(way, f"{got[0]}: {got[1]}, but the others give a value")
    elif got[0] != want[0] and got[0] != "value":
        raise Wrong(way, f"{got[0]}: {got[1]}, but the others say {want[0]}: {want[1]}")


def agree_with_either(compare: Callable[[Any], None], script: Any, eager: Callable[[], Any], tally: Counter[str]) -> None:
    """Compare with TorchScript, and where that differs with eager torch. Raises what TorchScript's comparison raised where all differ."""
    from fuzz import oracle  # which imports this

    try:
        compare(script)
    except Wrong:
        for said, other in (SCRIPT_ALONE, eager), (OVERLAPPING, lambda: oracle.apart(eager())):
            try:
                compare(other())
            except Exception:       # whatever else the source does in Python: it is not what irtool does
                continue
            tally[said] += 1
            return
        raise


def same(got: Any, want: Any, way: str, exact: bool = False, least: float = 0.0) -> None:
    """Compare values of any structure; 0-d arrays are no Python numbers. Raises Wrong."""
    if isinstance(want, np.ndarray):
        if not isinstance(got, np.ndarray):
            raise Wrong(way, f"structure: {type(got).__name__}, expected a tensor of {want.dtype}")
        same_array(got, want, way, exact, least)
    elif isinstance(want, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(want):
            raise Wrong(way, f"structure: {shorten(got)}, expected {shorten(want)}")
        for one, other in zip(got, want):
            same(one, other, way, exact, least)
    elif isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            raise Wrong(way, f"structure: {shorten(got)}, expected {shorten(want)}")
        for key, value in want.items():
            same(got[key], value, way, exact, least)
    elif type(got) is not type(want):
        raise Wrong(way, f"structure: {type(got).__name__} {shorten(got)}, expected {type(want).__name__} {shorten(want)}")
    elif not (got == want or isinstance(want, float) and bool(np.isclose(got, want, 1e-4, 1e-5, equal_nan=True))):
        raise Wrong(way, f"value {shorten(got)}, expected {shorten(want)}")


def same_array(got: Any, want: Any, way: str, exact: bool, least: float) -> None:
    """Compare dtype, shape and elements: within the dtype's tolerance (or `least`) of the largest element, or bit for bit. Raises Wrong."""
    if got.dtype != want.dtype:
        raise Wrong(way, f"dtype {got.dtype}, expected {want.dtype}")
    if got.shape != want.shape:
        raise Wrong(way, f"shape {got.shape}, expected {want.shape}")
    if exact or want.dtype.kind not in "fc":
        is_same = np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
    else:
        limit = max(TOLERANCES[want.dtype.name], least)
        with np.errstate(all="ignore"):
            wide = np.complex128 if want.dtype.kind == "c" else np.float64
            precise, other = want.astype(wide), got.astype(wide)
            scale = max(1.0, float(np.max(np.abs(precise[np.isfinite(precise)]), initial=0.0)))
            is_same = np.allclose(other, precise, rtol=limit, atol=limit * scale, equal_nan=True)
    if not is_same:
        raise Wrong(way, f"values {shorten(got)}, expected {shorten(want)}")


def shorten(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {value.ravel()[:6].tolist()}"
    return repr(value)[:120]
