"""What a trace was decided by: the outcome of a question about elements or numbers, and the line of the user's code that asked it."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from irtool.ir.graph import Value

PACKAGE = str(Path(__file__).resolve().parent.parent)
PASSES = str(Path(__file__).resolve().parent.parent.parent / "passes")


class Decision:
    """A question that a trace asked. step: the number of the arguments' numbers (`Steps`) that answers it, or -1; output: the value of the
    graph that does, or None."""

    __slots__ = ("question", "outcome", "place", "step", "output")

    def __init__(self, question: str, outcome: Any, step: int, output: Value | None) -> None:
        self.question = question
        self.outcome = outcome
        self.place = place_in_users_code()
        self.step = step
        self.output = output

    @property
    def form(self) -> Any:
        """What two traces that asked alike have in common."""
        return self.question, self.step, self.place

    @property
    def key(self) -> Any:
        """The outcome, to look it up."""
        return key_of(self.outcome)

    def __repr__(self) -> str:
        return f"{self.place}: {self.question} is {self.outcome!r}"


def key_of(outcome: Any) -> Any:
    """An outcome as traces are looked up by it: NaNs are alike, zeros of different signs are not, nor are 1, 1.0 and True."""
    if isinstance(outcome, float):
        return outcome.__class__, "nan" if outcome != outcome else outcome.hex()
    if isinstance(outcome, complex):
        return complex, key_of(outcome.real), key_of(outcome.imag)
    if isinstance(outcome, list | tuple):
        return tuple(map(key_of, outcome))
    return outcome.__class__, outcome


class Steps:
    """How numbers follow from the numbers among the arguments: Python functions of earlier ones, in order."""

    def __init__(self) -> None:
        self.functions: list[tuple[Callable[..., Any] | None, tuple[Any, ...]]] = []

    def argument(self, place: int) -> int:
        """One more number: the leaf at a place of the arguments."""
        return self.add(None, (place,))

    def add(self, function: Callable[..., Any] | None, operands: tuple[Any, ...]) -> int:
        """One more number: a function of numbers (`Earlier`) and constants."""
        self.functions.append((function, operands))
        return len(self.functions) - 1


class Earlier(int):
    """The number of an earlier step, as an operand of one."""

    __slots__ = ()


class Answers:
    """The numbers of `Steps` for one call's arguments, computed as far as they are asked for. Raises what the functions raise."""

    __slots__ = ("steps", "leaves", "values")

    def __init__(self, steps: Steps, leaves: Sequence[Any]) -> None:
        self.steps = steps
        self.leaves = leaves
        self.values: list[Any] = []

    def __getitem__(self, step: int) -> Any:
        values = self.values
        for function, operands in self.steps.functions[len(values):step + 1]:
            if function is None:
                values.append(self.leaves[operands[0]])
            else:
                values.append(function(*[values[each] if each.__class__ is Earlier else each for each in operands]))
        return values[step]


# -- lines
def users_frame() -> FrameType | None:
    """The innermost frame that is none of ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_ours(filename: str) -> bool:
    """Is it code of this package, or of the standard library that it goes through?"""
    return filename.startswith((PACKAGE, PASSES, "<torch.", "<irtool")) or filename.endswith(("contextlib.py", "functools.py"))


def place_in_users_code() -> str:
    """`train.py:12`."""
    frame = users_frame()
    return "?" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def warn_in_users_code(message: str, category: type[Warning]) -> None:
    """A warning that names the user's line."""
    frame = users_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__"), registry)


__all__ = ["Answers", "Decision", "Earlier", "Steps", "key_of", "place_in_users_code", "warn_in_users_code"]
