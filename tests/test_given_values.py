"""What inputs a graph takes: each value as its type has it, or an error that names the input; torch takes and refuses the same."""
from __future__ import annotations

import enum
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool


class Color(enum.Enum):
    """A member of it goes where a graph has one."""

    RED = 1


TYPES = {       # in source, in text
    "int": "int", "float": "float", "complex": "complex", "str": "str", "Optional[int]": "int?", "List[int]": "int[]",
    "List[float]": "float[]", "List[str]": "str[]", "Tuple[int, float]": "(int, float)",
    "Dict[str, int]": "Dict(str, int)", "Union[int, str]": "Union(int, str)", "Union[float, List[int]]": "Union(float, int[])",
    "List[List[int]]": "int[][]", "Union[float, complex]": "Union(float, complex)", "Tensor": "Tensor",
    "Optional[List[float]]": "float[]?", "List[Optional[int]]": "int?[]",
}
VALUES: tuple[Any, ...] = (
    1, 1.5, True, "a", 1j, None, [1, 2], [1.5], (1, 2.0), (1, 2), [], {"a": 1}, {1: 2}, {"a": "b"}, [[1], [2, 3]], [None, 1], ["a"],
    [1, "a"], 2 ** 70)
UNLIKE = (      # torch takes these by what pybind11 makes of them: a string is a list of its letters, a dict one of its keys
    ("List[str]", "a"), ("List[str]", {"a": 1}), ("List[str]", {"a": "b"}), ("Dict[str, int]", []), ("List[Optional[int]]", {1: 2}),
    ("List[Optional[int]]", {"a": 1}), ("List[Optional[int]]", "a"), ("Union[float, List[int]]", []),
    ("Tensor", 1), ("Tensor", 1.5), ("Tensor", True), ("Tensor", 1j), ("Tensor", 2 ** 70),
    ("Tensor", None))       # an undefined tensor there, of which most operators raise


def given(text: str, value: Any) -> Any:
    """What a graph that gives its input back makes of a value; an error is its class."""
    try:
        return irtool.run(irtool.parse(f"graph(%x : {text}):\n  return (%x)\n"), [value])[0]
    except irtool.RunError as error:
        assert "input %x: expected" in str(error)
        return type(error)


@pytest.mark.parametrize("text, value, wanted", [
    ("int", True, 1), ("int", np.int64(3), 3), ("int", np.array(2.0), 2), ("int", 2.0, 2), ("int", -0.0, 0),
    ("int", np.dtype("float64"), 7), ("float", 1, 1.0),
    ("complex", 2, 2 + 0j), ("int[]", (1, True), [1, 1]), ("float[]", np.float32([1, 2]), [1.0, 2.0]), ("(int, float)", [1, 2], (1, 2.0)),
    ("Device", "cpu", "cpu"), ("Union(int, str)", 3, 3), ("Dict(str, float)", {"a": 1}, {"a": 1.0}), ("bool", 1, True),
    ("Enum<__torch__.some.Color>", Color.RED, Color.RED), ("Any", [1, "a"], [1, "a"]),
])
def test_value_becomes_one_of_the_type(text: str, value: Any, wanted: Any) -> None:
    found = given(text, value)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize("text, value", [
    ("int", 1.5), ("int", 2.0 ** 63), ("int", float("inf")), ("int", float("nan")), ("int[]", [2.0]),
    ("int", np.array(1.5)), ("int", np.zeros(2)), ("float", "1"), ("Device", 1), ("Device", "c p u"),
    ("Union(int, str)", 1.0),
    ("Union(float, int[])", 1), ("Union(Dict(str, int), int[])", {"a": "b"}), ("Union(Dict(str, int), int[])", ["a"]), ("Tensor", [1.0]),
    ("(int, float)", (1,)),
    ("Dict(str, int)", {1: 1}), ("int[]", [None]), ("Enum<__torch__.Shape>", Color.RED), ("str", 3), ("NoneType", 0),
    ("int", 2 ** 63), ("Tensor", "a"),
])
def test_value_of_another_type_is_refused(text: str, value: Any) -> None:
    if text == "Device" and value == "c p u":
        with pytest.raises(irtool.RunError, match="Invalid device string"):
            irtool.run(irtool.parse("graph(%x : Device):\n  return (%x)\n"), [value])
        return
    assert given(text, value) is irtool.RunError


@pytest.mark.oracle
@pytest.mark.parametrize("source", TYPES)
def test_torch_takes_and_refuses_the_same(source: str) -> None:
    torch = pytest.importorskip("torch")
    identity = torch.jit.CompilationUnit(f"def f(x: {source}):\n    return x\n").f
    for value in VALUES:
        if (source, value) in UNLIKE:
            continue
        try:
            wanted = identity(value)
        except (RuntimeError, TypeError, OverflowError):
            wanted = irtool.RunError
        found = given(TYPES[source], value)
        assert found == wanted and type(found) is type(wanted), value


def test_each_way_to_run_refuses_the_same() -> None:
    for (text, value) in product(("Union(int, str)", "int", "int[]"), (1.5, [1.5], {})):
        module = irtool.parse(f"graph(%x : {text}):\n  return (%x)\n")
        with pytest.raises(irtool.RunError, match="input %x: expected"):
            irtool.compile(module)(value)
