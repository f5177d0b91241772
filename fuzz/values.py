"""Inputs as text: irtool's literals (`2x3xf32=0.5,1,...`), and `1000x1000xf32~17` for elements that are drawn from a seed.

Elements are small multiples of a quarter, so that sums and products of a few of them are exact in every dtype and in every order.
"""
from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from irtool.interop.literal import DTYPES, parse_literal
from irtool.ops.arrays import copy_in_layout

Array = np.ndarray[Any, np.dtype[Any]]
WORDS = {name: word for word, name in DTYPES.items() if word != "bf16"}
"""NumPy's name of a dtype: the literal's."""
SPELLED = 12
"""Arrays of so many elements are spelled; larger ones are drawn from a seed."""
_DRAWN = re.compile(r"((?:\d+x)*)(\w+)~(\d+)")


def value_of(literal: str) -> Any:
    """The value that a literal stands for. Raises irtool.Error for what is none."""
    drawn = _DRAWN.fullmatch(literal)
    if drawn is None:
        return parse_literal(literal, no_files)
    shape = tuple(map(int, drawn[1].split("x")[:-1]))
    return elements(np.random.default_rng(int(drawn[3])), shape, DTYPES[drawn[2]])


def no_files(name: str) -> Array:
    """A case stands for itself."""
    raise ValueError(f"a case reads no file: {name}")


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """An array of small numbers that every order of summing gives the same sum of."""
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    numbers = rng.integers(0 if dtype.startswith("u") else -9, 10, shape)
    if dtype.startswith("complex"):
        return np.asarray(numbers * 0.25 + 0.5j * rng.integers(-4, 5, shape)).astype(dtype)
    return np.asarray(numbers if "int" in dtype else numbers * 0.25).astype(dtype)


def draw_literal(rng: random.Random, shape: tuple[int, ...], dtype: str) -> str:
    """A literal for a tensor."""
    seed = rng.randrange(10**6)
    drawn = f"{''.join(f'{size}x' for size in shape)}{WORDS[dtype]}~{seed}"
    return drawn if np.prod(shape, dtype=int) > SPELLED else spelled(value_of(drawn))


def spelled(value: Any) -> str:
    """The literal of a value."""
    if isinstance(value, np.ndarray):
        words = [str(each).lower() if value.dtype == bool else format_number(each) for each in value.ravel().tolist()]
        return f"{''.join(f'{size}x' for size in value.shape)}{WORDS[value.dtype.name]}={','.join(words) if words else 0}"
    return str(value).lower() if isinstance(value, bool) else format_number(value) if isinstance(value, float) else str(value)


def format_number(value: Any) -> str:
    """A number that reads as what it is: 2.0 is a float, 2 an int."""
    return repr(value).strip("()")


def other_values(values: list[Any]) -> list[Any]:
    """Values of the same kinds that take other branches: signs change, bools flip, ints and floats move."""
    return [other(value) for value in values]


def other(value: Any) -> Any:
    """One other value of a kind. A list or tuple changes elementwise."""
    if isinstance(value, list | tuple):
        return type(value)(other(each) for each in value)
    if isinstance(value, dict):
        return {key: other(each) for key, each in value.items()}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return (value + 1) % 4
    if isinstance(value, float):
        return 0.5 - value
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == bool:
        return np.asarray(~value)
    if value.dtype.kind == "u":
        return np.asarray((value + 3) % 10).astype(value.dtype)
    return np.asarray(-value + 1).astype(value.dtype)


SIZES: dict[str, Callable[[int], int]] = {
    "grown": lambda size: size + 1 if size > 1 else size, "doubled": lambda size: 2 if size == 1 else size,
    "emptied": lambda size: 0 if size == 2 else size,
}
"""Ways to change sizes, equal ones alike, so that operands still fit."""
OTHER_DTYPE = {"float64": "float32", "float32": "float64", "int64": "int32", "int32": "int64", "complex128": "complex64",
               "complex64": "complex128", "uint8": "int16", "float16": "float32"}
OTHER_KINDS = (*SIZES, "turned", "deepened", "cast")
"""Inputs of other sizes, ranks or dtypes: what an executor has specialised is not for them."""


def of_other_kind(value: Any, how: str) -> Any:
    """A value whose tensors have other sizes, another rank or another dtype; `how` is one of OTHER_KINDS."""
    if isinstance(value, list | tuple):
        return type(value)(of_other_kind(each, how) for each in value)
    if isinstance(value, dict):
        return {key: of_other_kind(each, how) for key, each in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    if how == "cast":
        return value.astype(OTHER_DTYPE.get(value.dtype.name, value.dtype.name))
    if how == "deepened":
        return value[None]
    if how == "turned":
        return value.reshape(value.shape[1:] + value.shape[:1])
    return np.resize(value, [SIZES[how](size) for size in value.shape]).astype(value.dtype)


def other_memory(values: list[Any]) -> list[Any]:
    """The same values with other strides: transposed, stepped, reversed, read-only."""
    return [restrided(value, place) if isinstance(value, np.ndarray) else value for place, value in enumerate(values)]


def restrided(array: Array, how: int) -> Array:
    """The same values in other memory."""
    if how % 4 == 0 and array.ndim >= 2:
        return np.ascontiguousarray(array.T).T
    if how % 4 == 1 and array.ndim >= 1:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if how % 4 == 2 and array.ndim >= 1:
        return np.ascontiguousarray(array[::-1])[::-1]
    view = array.copy()
    view.flags.writeable = False
    return view


def copied(value: Any) -> Any:
    """The same value, with arrays of its own, of the same strides if none is negative."""
    if isinstance(value, np.ndarray):
        return copy_in_layout(value) if min(value.strides, default=0) >= 0 else value.copy()
    if isinstance(value, list | tuple):
        return type(value)(copied(each) for each in value)
    return {key: copied(each) for key, each in value.items()} if isinstance(value, dict) else value
