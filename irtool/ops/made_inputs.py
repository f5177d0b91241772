"""Inputs made from the types of a graph: ordinary numbers first, then corner values."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from irtool.ir.dtypes import CODES
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Value
from irtool.ir.source import Diagnostic
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of

MOST_ELEMENTS = 1 << 26
"""The largest tensor, in elements, that is allocated from a type to try operators on."""
SHAPES = ((3, 3), (2, 3), (4,), (2, 3, 4, 4), ())
"""Shapes for tensors whose types have none, tried in turn until the graph runs."""
CORNERS = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-30, 1e30, 0.5)
WHOLE_CORNERS = (0, -1, 1, 2, 127, -128)
NUMBERS: dict[str, Sequence[Any]] = {"int": (1, 2, 0, -1), "float": (0.5, -1.5, 0.0), "bool": (True, False), "Scalar": (2, 0.5),
                                     "complex": (1 + 2j, 0j), "str": ("mean", ""), "Device": ("cpu",), "None": (None,), "NoneType": (None,)}


class NoInputs(Exception):
    """There are no inputs of a type."""


def input_sets(graph: Graph, seed: int = 0, dtypes: Sequence[str] = ("float32",)) -> Iterator[list[Any]]:
    """Sets of inputs for a graph: for each shape of SHAPES (once, if all types have shapes) ordinary numbers, small positive ones, and
    corner values. dtypes: used in turn for tensors whose types have none. Raises NoInputs if there is no value of an input's type,
    UnsupportedError if that has more than MOST_ELEMENTS elements."""
    for value in graph.inputs:
        check_size(value)
    says_shapes = all(is_complete(value.type) for value in graph.inputs)
    for shape in SHAPES[:1] if says_shapes else SHAPES:
        for index, draw in enumerate((ordinary, positive, corners)):
            random = np.random.default_rng((seed, index, len(shape)))
            yield [value_of(value.type, shape, draw, random, index, dtypes[place % len(dtypes)])
                   for place, value in enumerate(graph.inputs)]


def check_size(value: Value) -> None:
    """Raises UnsupportedError for an input of a type of more than MOST_ELEMENTS elements."""
    if elements_of(value.type) > MOST_ELEMENTS:
        graph = value.node.graph
        message = f"%{value.name} : {value.type} has too many elements to be made for a trial: {MOST_ELEMENTS} is the most; give inputs"
        raise UnsupportedError(diagnostics=[Diagnostic("error", message, graph.source if graph is not None else None, value.node.line)],
                               code="E0404")


def elements_of(type: Type) -> int:
    """The number of elements of the tensors in a value of a type, as far as the type says."""
    if isinstance(type, TensorType):
        return prod(3 if size is None else size for size in type.shape or ())
    if isinstance(type, ListType | DictType):
        return 2 * elements_of(type.element if isinstance(type, ListType) else type.value_type)
    return sum(map(elements_of, type.elements)) if isinstance(type, OptionalType | TupleType) else 0


def is_complete(type: Type) -> bool:
    """Are the shapes of all tensors of the type known?"""
    if isinstance(type, TensorType):
        return type.shape is not None and None not in type.shape
    return not isinstance(type, ListType | TupleType | OptionalType) or all(map(is_complete, type.elements))


Draw = Callable[[np.random.Generator, tuple[int, ...], Any], Any]


def value_of(type: Type, shape: tuple[int, ...], draw: Draw, random: np.random.Generator, index: int, dtype: str) -> Any:
    """A value of a type. index: chooses ordinary, positive or corner values; dtype: for tensors whose type has none. Raises NoInputs."""
    if isinstance(type, TensorType):
        sizes = shape if type.shape is None else tuple([3 if size is None else size for size in type.shape])
        return draw(random, sizes, dtype_of(CODES[type.dtype or dtype]))
    if isinstance(type, OptionalType):
        return value_of(type.element, shape, draw, random, index, dtype)
    if isinstance(type, ListType):
        return [value_of(type.element, shape, draw, random, index, dtype) for _ in range(2)]
    if isinstance(type, TupleType):
        return tuple([value_of(each, shape, draw, random, index, dtype) for each in type.elements])
    if isinstance(type, DictType):
        return {key: value_of(type.value_type, shape, draw, random, index, dtype) for key in ("a", "b") if type.key_type.key == "str"}
    values = NUMBERS.get(str(type.key))
    if values is None:
        raise NoInputs(f"no value can be made of the type {type}")
    return values[index % len(values)]


def ordinary(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers around 0; small integers; both truth values."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0 if dtype.kind == "u" else -3, 4, shape).astype(dtype)
    numbers = random.standard_normal(shape)
    return (numbers + 1j * random.standard_normal(shape) if dtype.kind == "c" else numbers).astype(dtype)


def positive(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers from 0.1 to 1; integers from 0 to 2, which can be indices."""
    if dtype.kind in "biu":
        return random.integers(0, 2 if dtype.kind == "b" else 3, shape).astype(dtype)
    return random.uniform(0.1, 1.0, shape).astype(dtype)


def corners(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros of both signs, nan, infinities, very small and very large numbers, in random order."""
    count = int(np.prod(shape))
    with np.errstate(all="ignore"):
        values = np.resize(np.array(WHOLE_CORNERS if dtype.kind in "biu" else CORNERS), count)
        return random.permutation(values).astype(dtype).reshape(shape)
