"""Tensors as text, as torch's C++ prints them: `print`, `str` and `format` in graphs show the numbers in columns, then dtype and sizes."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import title

LINE = 80
"""The most characters in a line of a matrix."""


class Columns:
    """How the numbers of a matrix are written: a common factor before them, and a width and a notation for each."""

    def __init__(self, numbers: Any) -> None:
        finite = numbers[np.isfinite(numbers)]
        sizes = np.abs(finite)
        smallest, largest = (_digits(sizes.min()), _digits(sizes.max())) if finite.size else (1, 1)
        is_whole = bool((finite == np.ceil(finite)).all())
        self.factor = 1.0
        """By what all numbers are divided."""
        self.notation = ".4f"
        if largest > 9 if is_whole else largest - smallest > 4:
            self.notation, self.width = ".4e", 11
            if not is_whole and max(abs(largest), abs(smallest)) > 99:
                self.width = 12
        elif is_whole:
            self.notation, self.width = "g", largest + 1
        elif 0 <= largest <= 5:
            self.width = largest + 6 if largest else 7
        else:
            self.width = 7
            self.factor = 10.0 ** (largest - 1)

    def of(self, number: float) -> str:
        """A number as it stands in a column."""
        return f"{number / self.factor:{self.width}{self.notation}}"

    def heading(self) -> str:
        """The line with the common factor; empty if it is 1."""
        return "" if self.factor == 1 else f"{_shortest(self.factor)} *\n"


def _shortest(number: float) -> str:
    return repr(number).removesuffix(".0")


def _digits(size: float) -> int:
    """The digits before the point; 0 or less for numbers below 1."""
    return math.floor(math.log10(size)) + 1 if size else 1


def tensor_text(array: Any) -> str:
    """A tensor of any dtype and number of dimensions; of complex numbers the real parts, as in torch."""
    numbers = np.real(np.asarray(array)).astype(np.float64)
    sizes = ",".join(map(str, numbers.shape))
    kind = f"[ CPU{title(array.dtype)}Type{{{sizes}}} ]"
    if numbers.ndim == 0:
        return f"{_shortest(float(numbers))}\n{kind}"
    return (_rows(numbers) if numbers.size else "") + kind


def _rows(numbers: Any) -> str:
    if numbers.ndim == 1:
        columns = Columns(numbers)
        return columns.heading() + "".join(f"{columns.of(number)}\n" for number in numbers.tolist())
    if numbers.ndim == 2:
        return _matrix(numbers, "")
    return "\n".join(f"({','.join(str(each + 1) for each in index)},.,.) = \n{_matrix(numbers[index], ' ')}"
                     for index in _indices(numbers.shape[:-2]))


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All indices, the first dimension counting fastest."""
    for index in np.ndindex(*shape[::-1]):
        yield index[::-1]


def _matrix(numbers: Any, indent: str) -> str:
    """The lines of a matrix, as many columns at a time as fit. torch does not indent the first line."""
    columns = Columns(numbers)
    height, width = numbers.shape
    at_once = (LINE - len(indent)) // (columns.width + 1)
    heading = columns.heading() and columns.heading() + indent
    row_start = indent + " " if heading else indent
    parts = []
    for first in range(0, width, at_once):
        last = min(first + at_once, width)
        name = f"Columns {first + 1} to {last}{indent}" if at_once < width else ""
        rows = [" ".join(map(columns.of, row)) + "\n" for row in numbers[:, first:last].tolist()]
        parts.append(name + heading + row_start.join(rows))
    return "\n".join(parts)
