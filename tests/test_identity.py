"""`is`: what torch says of two values, in every way to run. The results are torch's."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

ONE = np.ones(1)
TWO = "a is a, a is b, a is not b"
PROGRAMS: list[tuple[str, str, list[tuple[list[Any], Any]]]] = [
    ("a: float, b: float", f"return {TWO}", [([math.nan, math.nan], (False, False, True)), ([0.0, -0.0], (True, True, False))]),
    ("a: int, b: int", f"return {TWO}", [([1 << 40, 1 << 40], (True, True, False)), ([1, 2], (True, False, True))]),
    ("a: bool, b: int", f"return {TWO}", [([True, 1], (True, False, True))]),
    ("a: Optional[float], b: Optional[float]", f"return {TWO}", [([None, None], (True, True, False)), ([None, 1.0], (True, False, True)),
                                                                ([math.nan, 1.0], (False, False, True))]),
    ("a: str, b: str", f"return {TWO}", [(["ab", "".join("ab")], (True, False, True))]),
    ("a: complex, b: complex", f"return {TWO}", [([1j, complex(0, 1.0)], (True, False, True))]),
    ("a: Device, b: Device", f"return {TWO}", [(["cpu", "cpu"], (True, True, False))]),
    ("a: Dict[str, int], b: Dict[str, int]", f"return {TWO}", [([{"a": 1}, {"a": 1}], (True, False, True))]),
    ("a: Tensor, b: Tensor", f"return {TWO}", [([ONE, ONE.copy()], (True, False, True)), ([ONE, ONE], (True, True, False))]),
    ("a: Tensor", "return (a + 0) is a, a.view(-1) is a, a.contiguous() is a", [([ONE], (False, False, True))]),
    ("a: List[int]", "y = a\n    return y is a, a is not y, list(a) is a, a[:] is a", [([[1]], (True, False, False, False))]),
    ("a: Optional[List[int]]", "y = a\n    return y is a", [([[1]], True), ([None], True)]),
    ("a: List[int]", "x = [1]\n    y = [1]\n    return x is y, x is x, x is a", [([[1]], (False, True, False))]),
    ("a: List[int], c: bool", "x = a if c else [1]\n    y = [2]\n    z = y if c else a\n    return x is a, z is y, z is a",
     [([[1], True], (True, True, False)), ([[1], False], (False, False, True))]),
    ("a: List[List[int]]", "return a[0] is a[0], a[0] is a[1]", [([[[1], [1]]], (True, False))]),
    ("a: List[Tensor], c: bool", "x = [a[0]]\n    y = x if c else a\n    return y is x, y is a, y[0] is x[0]",
     [([[ONE], True], (True, False, True)), ([[ONE], False], (False, True, True))]),
    ("a: Tensor, c: bool", "x = a.split(1)\n    y = x if c else [a]\n    return x is y, x[0] is y[0]",
     [([ONE, True], (True, True)), ([ONE, False], (False, False))]),
    ("a: Tensor, c: bool", "x = (a, 1)\n    y = x if c else (a, 2)\n    return x is y, x[0] is y[0]",
     [([ONE, True], (True, True)), ([ONE, False], (False, True))]),
    ("a: Tensor, n: int", """x: List[Tensor] = []
    y = x
    for i in range(n):
        x.append(a)
        if i > 1:
            y = [a]
    return x is y, x[0] is y[0]""", [([ONE, 1], (True, True)), ([ONE, 3], (False, True))]),
]


def ways(source: str) -> dict[str, Callable[[list[Any]], list[Any]]]:
    module = irtool.from_script(source)
    executors = {"compiled": irtool.compile(module), "not optimized": irtool.compile(module, optimize=False),
                 "profiling": irtool.compile(module, profiling=True)}
    return {"interpreted": lambda values: irtool.run(module, values, interpret=True), "run": lambda values: irtool.run(module, values),
            **{name: executor.run for name, executor in executors.items()}}


@pytest.mark.parametrize("parameters, body, calls", [pytest.param(*each, id=each[0] + " " + each[1][:40]) for each in PROGRAMS])
def test_what_is_one_object(parameters: str, body: str, calls: list[tuple[list[Any], Any]]) -> None:
    for name, way in ways(f"def f({parameters}):\n    {body}\n").items():
        for values, wanted in calls:
            for _ in range(3):
                assert way(values) == [wanted], (name, values)


@pytest.mark.parametrize("type_, value", [("str", "x"), ("complex", 1j)])
def test_equal_values_that_may_be_two_objects_are_refused(type_: str, value: Any) -> None:
    """Two strings given are two objects in torch; Python has one object for both."""
    for way in ways(f"def f(a: {type_}, b: {type_}):\n    return a is b\n").values():
        with pytest.raises(irtool.UnsupportedError, match="one object is not known here"):
            way([value, value])
