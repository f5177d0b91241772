"""Every overload of the operators of numbers gives what torch gives, on a grid of numbers: recorded."""
from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from number_operators import RECORDED, operands, overloads, written

import irtool
from irtool.ir.errors import Error
from irtool.ir.schema import Schema
from irtool.ops.call import call_op
from tests.laws import over


@cache
def recorded() -> Any:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def alike(one: Any, other: Any) -> bool:
    """Equal types and values, zeros of one sign; a function of C's library may round its last digit otherwise."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return one != one and other != other or math.copysign(1.0, one) == math.copysign(1.0, other) and (
            one == other or abs(one - other) <= 1e-12 * abs(other))
    return bool(one == other)


def result_of(name: str, values: tuple[Any, ...]) -> Any:
    try:
        return written(call_op(name, list(values)))
    except Error as error:
        return {"e": str(error)}


@over("schema", [pytest.param(schema, id=schema.name) for schema in overloads()], lambda schema: schema.kind)
def test_an_overload_gives_what_torch_gives(schema: Schema) -> None:
    rows = zip(operands(schema), recorded()[schema.name], strict=True)
    wrong = [(values, wanted, found) for values, wanted in rows
             if wanted is not None and not alike(found := result_of(schema.name, values), wanted) and not both_raise(wanted, found)]
    assert not wrong, wrong[:10]


def both_raise(wanted: Any, found: Any) -> bool:
    """In torch's words, but for the digits of a large number."""
    return isinstance(wanted, dict) and isinstance(found, dict) and "e" in wanted and "e" in found and (
        wanted["e"] == found["e"] or wanted["e"].startswith("Cannot convert float 1") and found["e"].startswith("Cannot convert float 1"))


WAYS = {"interpreted": lambda module, values: irtool.run(module, values, interpret=True), "run": irtool.run,
        "compiled": lambda module, values: irtool.compile(module).run(values),
        "not optimized": lambda module, values: irtool.compile(module, optimize=False).run(values)}


@pytest.mark.parametrize("body, values, wanted", [
    ("max(x, y)", (True, math.nan), math.nan), ("max(x, y)", (math.nan, True), 1.0), ("max(x, y)", (-0.0, False), 0.0),
    ("min(x, y)", (False, -0.0), -0.0), ("min(x, y)", (True, False), 0), ("max(x, y)", (True, 5), 5),
    ("divmod(x, y)", (True, 0.1), [9.0, 0.09999999999999995]), ("divmod(x, y)", (1, 0.1), [10.0, -1.4901161193847656e-08]),
    ("x // y", (0.0, -1.25), -0.0), ("x // y", (0, -1.25), -0.0), ("complex(x, y)", ((1 << 32) + 5, 1), {"c": [5.0, 1.0]}),
    ("math.factorial(x) + y", ((1 << 32) + 5, 1), 121)])
def test_a_program_takes_the_overload_that_torch_takes(body: str, values: tuple[Any, ...], wanted: Any) -> None:
    """Of two numbers, `max` and `min` are no reductions of a list, also where a bool has to become a number first."""
    names = [type(value).__name__ for value in values]
    source = f"import math\ndef f(x: {names[0]}, y: {names[1]}):\n    return {body}\n"
    for way, call in WAYS.items():
        (found,) = call(irtool.from_script(source), list(values))
        assert alike(written(found), wanted), way


@pytest.mark.parametrize("body, number, wanted", [
    ("-x.item()", 0.1, -0.10000000149011612), ("-x.item()", (1 << 40) + 1, -1), ("abs(x.item())", 0.1, 0.10000000149011612),
    ("math.sqrt(x.item())", 0.1, 0.3162277638912201), ("math.exp(x.item())", 1e-10, 1.0), ("math.floor(x.item())", 3e9, -1294967296),
    ("x.item() // -1.25", 0.0, -0.0), ("int(x.item())", -2.5, -2), ("float(x.item())", 0.1, 0.1)])
def test_a_number_of_a_tensor_is_of_32_bits_after_an_operator_of_one_number(body: str, number: Any, wanted: Any) -> None:
    source = f"import math\ndef f(x: Tensor):\n    return {body}\n"
    for way, call in WAYS.items():
        (found,) = call(irtool.from_script(source), [np.array(number)])
        assert alike(written(found), wanted), way


@pytest.mark.parametrize("body, number, message", [
    ("int(x.item())", 3e9, "value cannot be converted to type int without overflow"), ("x.item() + 1", True, "expected int"),
    ("-x.item()", True, "expected int"), ("divmod(float(x), 2)", math.inf, "Cannot convert float inf to integer"),
    ("divmod(float(x), 0.0)", 1.0, r"ZeroDivisionError: float divmod\(\)"), ("math.ceil(x.item())", math.nan, "Cannot convert float nan")])
def test_numbers_that_torch_refuses(body: str, number: Any, message: str) -> None:
    for call in WAYS.values():
        with pytest.raises(irtool.RunError, match=message):
            call(irtool.from_script(f"import math\ndef f(x: Tensor):\n    return {body}\n"), [np.array(number)])
