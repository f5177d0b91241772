"""Tensors -> text as torch prints them in attributes: `{1}`, ` 1  2 [ CPULongType{2} ]`, `<Tensor>`. The inverse of `tensor_literal`.

After ATen/core/Formatting.cpp: a column width and a notation for a whole matrix, wide rows in blocks of columns, slices from three
dimensions on, and every newline turned into a blank. At most 6 digits are printed: the text alone does not give the tensor back.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.ir.tensor_literal import Number, TensorLiteral
from irtool.ir.type_model import DTYPE_WORDS

SHOWN = 10
"""Tensors of more elements print as `<Tensor>`."""

LINE = 80
"""The width at which rows are broken."""


def dump_text(numbers: Sequence[Number], shape: tuple[int, ...], dtype: str) -> str:
    """The attribute text of a tensor: row-major elements, sizes, torch's dtype name (`float32`)."""
    if len(numbers) > SHOWN:
        return "<Tensor>"
    if len(numbers) == 1:
        return _one(numbers[0], dtype)
    word = DTYPE_WORDS.get(dtype, dtype)
    tag = f"[ CPU{word}Type{{{','.join(map(str, shape))}}} ]"
    if not numbers:
        return tag
    values = [float(number.real) for number in numbers]
    return _Formatter().tensor(values, shape) + tag


def literal_of(numbers: Sequence[Number], shape: tuple[int, ...], dtype: str, data: object | None = None) -> TensorLiteral:
    """The literal of a computed tensor, with torch's text; `data` is its array, which later steps use instead of the text."""
    return TensorLiteral(dump_text(numbers, shape, dtype), dtype, shape, data)


def _one(number: Number, dtype: str) -> str:
    if isinstance(number, complex) or dtype.startswith("complex"):
        return f"{{({number.real:g},{number.imag:g})}}"
    if dtype.startswith(("float", "bfloat", "q")):
        return f"{{{float(number):g}}}"
    return f"{{{int(number)}}}"


class _Formatter:
    """Prints matrices, each with its own width, notation and scale."""

    __slots__ = ("precision", "notation", "width", "scale")

    def __init__(self) -> None:
        self.precision = 6
        self.notation = "g"
        self.width = 0
        self.scale = 1.0

    def tensor(self, values: list[float], shape: tuple[int, ...]) -> str:
        if len(shape) == 1:
            self.choose(values)
            return self.scale_text() + "".join(self.number(value) + " " for value in values)
        if len(shape) == 2:
            return self.matrix(values, shape[0], shape[1], 0)
        rows, columns = shape[-2], shape[-1]
        size = rows * columns
        slices: list[str] = []
        for i in range(len(values) // size):
            place, rest = [], i
            for length in reversed(shape[:-2]):
                rest, at = divmod(rest, length)
                place.append(at + 1)
            label = "".join(f"{at}," for at in reversed(place))
            slices.append(f"({label}.,.) = {self.matrix(values[i * size:(i + 1) * size], rows, columns, 1)}")
        return " ".join(slices)

    def choose(self, values: list[float]) -> None:
        """Width, notation and scale for these values."""
        finite = [abs(value) for value in values if math.isfinite(value)]
        low, high = _exponent(min(finite, default=1.0)), _exponent(max(finite, default=1.0))
        if not finite:
            low = high = 1
        self.scale = 1.0
        if all(value == math.ceil(value) for value in values if math.isfinite(value)):
            if high > 9:
                self.width, self.notation, self.precision = 11, "e", 4
            else:
                self.width, self.notation, self.precision = high + 1, "g", 6
        elif high - low > 4:
            self.width, self.notation, self.precision = 12 if abs(high) > 99 or abs(low) > 99 else 11, "e", 4
        else:
            self.notation, self.precision = "f", 4
            if high > 5 or high < 0:
                self.width, self.scale = 7, 10.0 ** (high - 1)
            else:
                self.width = 7 if high == 0 else high + 6

    def number(self, value: float) -> str:
        return f"{value / self.scale:.{self.precision}{self.notation}}".rjust(self.width)

    def scale_text(self) -> str:
        return "" if self.scale == 1.0 else f"{self.scale:.0f} * " if self.scale > 1 else f"{self.scale:g} * "

    def matrix(self, values: list[float], rows: int, columns: int, indent: int) -> str:
        self.choose(values)
        lead = " " * indent
        per_line = (LINE - indent) // (self.width + 1)
        out = [lead]
        first = 0
        while first < columns:
            last = min(first + per_line, columns) - 1
            if per_line < columns:
                out.append(f"{' ' if first else ''}Columns {first + 1} to {last + 1}{lead}")
            if self.scale != 1.0:
                out += (self.scale_text(), lead)
            for row in range(rows):
                out.append(" ".join(self.number(values[row * columns + c]) for c in range(first, last + 1)) + " ")
                if row != rows - 1:
                    out.append(lead if self.scale == 1.0 else lead + " ")
            first = last + 1
        return "".join(out)


def _exponent(value: float) -> int:
    return math.floor(math.log10(value)) + 1 if value else 1
