"""How a sample call is written: small arrays that are drawn, numbers as they are.

    table.sample("addmm", call(real(2, 4), real(2, 3), real(3, 4), beta=0.5))
    args = OPS["aten::addmm"].samples["aten::addmm"][0].arguments("aten::addmm")       # one value per argument, defaults filled in

Arrays are of double precision, and the same every time. Those that are drawn have a gradient, unless they are `fixed`; the operator is
smooth where they are.
"""
from __future__ import annotations

from typing import Any
from zlib import crc32

from irtool.ir.schema import parse_schema
from irtool.ops.array_library import np
from irtool.ops.checks import bind

Array = np.ndarray[Any, np.dtype[Any]]


class Draw:
    """An array to be drawn."""

    def __init__(self, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0, form: str = "", is_complex: bool = False,
                 numbers: Array | None = None) -> None:
        self.shape = shape
        self.low = low
        self.high = high
        self.form = form
        self.is_complex = is_complex
        self.numbers = numbers
        self.has_gradient = True

    @property
    def is_hermitian(self) -> bool:
        """Is the array a Hermitian matrix, and stays one when it is moved?"""
        return self.form in ("hermitian", "definite")

    def array(self, random: np.random.Generator) -> Array:
        """Numbers."""
        if self.numbers is not None:
            return self.numbers.copy()
        if self.form == "apart":
            count = int(np.prod(self.shape))
            return random.permutation(np.linspace(self.low, self.high, count) + random.uniform(-0.02, 0.02, count)).reshape(self.shape)
        array = random.uniform(self.low, self.high, self.shape)
        if self.is_complex:
            array = array + 1j * random.uniform(self.low, self.high, self.shape)
        if self.is_hermitian:
            array = (array + array.conj().swapaxes(-1, -2)) / 2
        if self.form in ("definite", "regular", "triangle"):
            array = array + (self.high - self.low) * self.shape[-1] / 2 * np.diag(1 + np.arange(self.shape[-1]) / 3)
        if self.form == "logs":
            array = array - np.log(np.exp(array).sum(-1, keepdims=True))
        return np.tril(array) if self.form == "triangle" else array

    def direction(self, value: Array, step: Array) -> Array:
        """The directions in which `value` may move: the part of a random direction that keeps its form."""
        if self.form == "logs":
            step = step - (np.exp(value) * step).sum(-1, keepdims=True)
        if self.is_hermitian:
            return step + step.conj().swapaxes(-1, -2)
        return np.tril(step) if self.form == "triangle" else step


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Draw:
    """Any numbers."""
    return Draw(shape, low, high)


def exactly(numbers: Array) -> Draw:
    """Exactly these numbers, for arguments that depend on each other."""
    return Draw(numbers.shape, numbers=numbers)


def positive(*shape: int) -> Draw:
    """Positive numbers."""
    return Draw(shape, 0.2, 2.0)


def unit(*shape: int) -> Draw:
    """Numbers within (-1, 1)."""
    return Draw(shape, -0.9, 0.9)


def chance(*shape: int) -> Draw:
    """Numbers within (0, 1)."""
    return Draw(shape, 0.1, 0.9)


def apart(*shape: int, low: float = -2.0, high: float = 2.0) -> Draw:
    """Numbers of which no two are near each other, in any order."""
    return Draw(shape, low, high, "apart")


def complexes(*shape: int, low: float = -1.5, high: float = 1.5) -> Draw:
    """Any complex numbers."""
    return Draw(shape, low, high, is_complex=True)


def regular(*shape: int, is_complex: bool = False) -> Draw:
    """Matrices far from singular, with eigenvalues and singular values far from each other."""
    return Draw(shape, -1.0, 1.0, "regular", is_complex)


def hermitian(*shape: int, is_complex: bool = False) -> Draw:
    """Matrices that are symmetric, or Hermitian; they move within those."""
    return Draw(shape, -1.0, 1.0, "hermitian", is_complex)


def definite(*shape: int, is_complex: bool = False) -> Draw:
    """Positive definite ones."""
    return Draw(shape, -1.0, 1.0, "definite", is_complex)


def triangle(*shape: int) -> Draw:
    """Lower triangles far from singular."""
    return Draw(shape, -1.0, 1.0, "triangle")


def logs(*shape: int) -> Draw:
    """Logarithms of chances that make one together."""
    return Draw(shape, form="logs")


def fixed(draw: Draw) -> Draw:
    """The array, without a gradient."""
    draw.has_gradient = False
    return draw


def ints(*values: Any) -> Array:
    """An index tensor: of the numbers, or of a nested list."""
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.int64)


def flags(*values: Any) -> Array:
    """A mask, of truth values or rows of them."""
    return np.array(values, bool)


class Call:
    """One call of an operator."""

    def __init__(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.args = args
        self.named = named
        self.results: tuple[int, ...] | None = None
        """The results whose slope is defined, if not all are."""
        self.why_rough = ""
        """Why differences of the results do not approximate slopes; empty if they do."""

    def taking(self, *results: int) -> Call:
        """The call, with a slope for these results only: eigenvectors are defined up to a factor."""
        self.results = results
        return self

    def rough(self, reason: str) -> Call:
        """The call, marked as one whose slopes finite differences do not approximate."""
        self.why_rough = reason
        return self

    def _bound(self, schema: str) -> list[Any]:
        declared = parse_schema(schema)
        return [[value] * argument.fixed_size if argument.fixed_size and isinstance(value, int | float) else value
                for argument, value in zip(declared.arguments, bind(declared, self.args, self.named), strict=True)]

    def arguments(self, schema: str) -> list[Any]:
        """One value per argument of the overload, arrays drawn."""
        random = np.random.default_rng(crc32(f"{schema.partition('(')[0]}{len(self.args)}".encode()))
        return [_drawn(value, random) for value in self._bound(schema)]

    def places(self, schema: str) -> list[int]:
        """The arguments that have a gradient."""
        return [place for place, value in enumerate(self._bound(schema))
                if any(isinstance(each, Draw) and each.has_gradient for each in _each(value))]

    def draws(self, schema: str) -> dict[int, Draw]:
        """The arguments that are drawn, as they are written."""
        return {place: value for place, value in enumerate(self._bound(schema)) if isinstance(value, Draw)}


def call(*args: Any, **named: Any) -> Call:
    """A call with these arguments, by position around those given by name; the rest have their defaults."""
    return Call(args, named)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _drawn(value: Any, random: np.random.Generator) -> Any:
    if isinstance(value, list):
        return [_drawn(each, random) for each in value]
    return value.array(random) if isinstance(value, Draw) else value.copy() if isinstance(value, np.ndarray) else value
