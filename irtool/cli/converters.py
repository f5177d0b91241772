"""Converters of words on the command line to numbers, names and dialects. Each raises ValueError("expected ...") for other words."""
from __future__ import annotations

from collections.abc import Callable

from irtool.ir.errors import Error, did_you_mean

MAX_COUNT = 1_000_000


def at_least(least: int) -> Callable[[str], int]:
    """A converter for decimal integers of at least `least`."""
    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"expected an integer, not '{text}'") from None
        if number < least:
            raise ValueError(f"expected at least {least}, not {number}")
        return number
    return convert


def count(text: str) -> int:
    """A positive integer."""
    if not text.isdecimal() or len(text) > 7 or not 1 <= int(text) <= MAX_COUNT:
        raise ValueError(f"expected a number from 1 to {MAX_COUNT}, not '{text[:40]}'")
    return int(text)


def dimension(text: str) -> int:
    """A dimension; negative ones count from the end."""
    if not text.removeprefix("-").isdecimal() or len(text) > 4:
        raise ValueError(f"expected a dimension, not '{text[:40]}'")
    return int(text)


def seed(text: str) -> int:
    """An integer that is not negative."""
    if not text.isdecimal() or len(text) > 40:
        raise ValueError(f"expected an integer that is not negative, not '{text[:40]}'")
    return int(text)


def tolerance(text: str) -> float:
    """A number that is not negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise ValueError(f"expected a number that is not negative, not '{text}'")
    return number


def positions(text: str) -> tuple[int, ...]:
    """`0,2` as positions of inputs, each once."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or len(word) > 9:
            raise ValueError(f"expected positions of inputs such as 0,2, not '{word[:40]}'")
    numbers = tuple(int(word) for word in words)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"the same input twice in '{text[:40]}'")
    return numbers


def positions_or_names(text: str) -> tuple[str, ...]:
    """`0,2` or `x,w` as positions and names of inputs, each once."""
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if not word or word.isdecimal() and len(word) > 9:
            raise ValueError(f"expected positions or names of inputs such as 0,2 or x,w, not '{text[:40]}'")
    if len(set(words)) < len(words):
        raise ValueError(f"the same input twice in '{text[:40]}'")
    return words


def names(text: str) -> tuple[str, ...]:
    """`x,y` as names of inputs, without `%`."""
    words = tuple(word.strip().removeprefix("%") for word in text.split(","))
    if "" in words:
        raise ValueError("expected names of inputs, all or none")
    return words


def non_finite(text: str) -> tuple[str, ...]:
    """`nan,inf` as a tuple of words."""
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in ("nan", "inf"):
            raise ValueError(f"expected nan, inf or nan,inf, not '{word}'{did_you_mean(word, ('nan', 'inf'))}")
    return words


def dialect_name(text: str) -> str:
    """The name or alias of a dialect."""
    from irtool.ir.dialect import ALIASES, DIALECTS, dialect

    try:
        dialect(text)
    except Error as error:
        raise ValueError(f"{error.message}{did_you_mean(text.upper(), [*DIALECTS, *ALIASES])}") from None
    return text
