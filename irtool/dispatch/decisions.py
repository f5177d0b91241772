"""Decisions of a trace: a question about elements or numbers, its outcome, and the line of the user's code that asked."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir.callers import place_in_users_code
from irtool.ir.graph import Value


class Decision:
    """A question and its outcome. The answer in a later run is a number computed from the arguments' numbers (step: its position in
    `Steps`, else -1), or a value of the graph (output, else None)."""

    __slots__ = ("question", "outcome", "place", "step", "output")

    def __init__(self, question: str, outcome: Any, step: int, output: Value | None) -> None:
        self.question = question
        self.outcome = outcome
        self.place = place_in_users_code()
        self.step = step
        self.output = output

    @property
    def form(self) -> Any:
        """A key that is equal for the same question of two traces."""
        return self.question, self.step, self.place

    @property
    def key(self) -> Any:
        """The outcome as a key of a dict."""
        return key_of(self.outcome)

    def __repr__(self) -> str:
        return f"{self.place}: {self.question} is {self.outcome!r}"


def key_of(outcome: Any) -> Any:
    """An outcome as a key of a dict: NaNs are equal; zeros of different signs are not, nor are 1, 1.0 and True."""
    if isinstance(outcome, float):
        return outcome.__class__, "nan" if outcome != outcome else outcome.hex()
    if isinstance(outcome, complex):
        return complex, key_of(outcome.real), key_of(outcome.imag)
    if isinstance(outcome, list | tuple):
        return tuple(map(key_of, outcome))
    return outcome.__class__, outcome


class Steps:
    """The computation of numbers from the numbers among the arguments: a list of steps, each a Python function of earlier ones."""

    def __init__(self) -> None:
        self.functions: list[tuple[Callable[..., Any] | None, tuple[Any, ...]]] = []

    def argument(self, place: int) -> int:
        """Add a step: the leaf at a place of the arguments. Returns its position."""
        return self.add(None, (place,))

    def add(self, function: Callable[..., Any] | None, operands: tuple[Any, ...]) -> int:
        """Add a step: a function of earlier steps (`Earlier`) and constants. Returns its position."""
        self.functions.append((function, operands))
        return len(self.functions) - 1


class Earlier(int):
    """The position of an earlier step, as an operand of a step."""

    __slots__ = ()


class Answers:
    """The numbers of `Steps` for one call's arguments, each computed when first read. Raises the functions' errors."""

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
