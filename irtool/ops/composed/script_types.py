"""Types and functions that TorchScript knows and Python does not, defined for Python."""
from typing import Any, TypeAlias, TypeVar

from irtool.ir.errors import RunError, did_you_mean

T = TypeVar("T")
number: TypeAlias = int | float | complex
BroadcastingList1: TypeAlias = T | list[T]
"""A list of one element, for which a number may stand."""
BroadcastingList2: TypeAlias = T | list[T]
BroadcastingList3: TypeAlias = T | list[T]
BroadcastingList4: TypeAlias = T | list[T]
Generator: TypeAlias = Any


def annotate(type: Any, value: Any) -> Any:
    """The value; TorchScript takes its type from here."""
    return value


def is_scripting() -> bool:
    """False; true where the front end compiles the function."""
    return False


def number_of(what: str, word: Any, numbers: dict[str, int]) -> int:
    """The number by which operators mean a word. Raises RunError for a word that is not in `numbers`."""
    if word not in numbers:
        raise RunError(f"{what}={word!r}; expected {', '.join(map(repr, numbers))}{did_you_mean(str(word), numbers)}")
    return numbers[word]
