"""Operators with dimensions, of numbers and of vectors, with and without elements: what torch refuses is refused, and nothing else."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.stack import current
from irtool.ir.schema import Argument, Schema
from irtool.ops import OPS
from irtool.ops.call import overload

NAMES = frozenset("dim dims dim0 dim1 axis0 axis1 source destination start_dim end_dim dims_self dims_other".split())
GIVEN: dict[str, Any] = {"int": 0, "SymInt": 0, "float": 0.5, "Scalar": 1, "bool": False, "int[]": [0], "SymInt[]": [0]}
PLACES = ((0, [0]), (1, [1]), (-2, [-2]), (-1, [0, 0]), (0, [0, -1]), (0, []))
OTHERWISE = frozenset(("aten::roll", "aten::native_norm.ScalarOpt_dim_dtype"))
"""torch does not look at the dimensions of nothing (roll), or has the operator on other devices alone."""


def with_dimensions() -> list[Schema]:
    """The overloads that take a tensor and a dimension, and whose other arguments have values here or defaults."""
    schemas = [overload(name).schema for name in sorted(OPS) if not name.startswith("aten::_") and name.startswith("aten::")]
    return [schema for schema in schemas if any(each.name in NAMES for each in schema.arguments) and schema.name not in OTHERWISE
            and any(each.type.text == "Tensor" for each in schema.arguments) and "rand" not in schema.name
            and "quantize" not in schema.name and "backward" not in schema.name and all(is_given(each) for each in schema.arguments)]


def is_given(argument: Argument) -> bool:
    """Is there a value for an argument?"""
    return argument.has_default or argument.type.text in ("Tensor", "Tensor[]", *GIVEN) or argument.type.text.endswith("?")


def value_for(argument: Argument, tensor: Any, place: tuple[int, list[int]]) -> Any:
    """The value of an argument: dimensions are `place`."""
    text = argument.type.text
    if argument.name in NAMES and "int" in text.lower():
        return list(place[1]) if "[" in text else place[0]
    if argument.has_default:
        return argument.default
    return tensor if text == "Tensor" else [tensor, tensor] if text == "Tensor[]" else GIVEN.get(text)


def shapes_of(run: Callable[[], Any]) -> list[list[int]] | str:
    """The shapes of what a function returns; "refused" if it raises."""
    try:
        results = run()
    except (RuntimeError, IndexError, irtool.RunError, irtool.UnsupportedError):
        return "refused"
    return [list(each.shape) for each in (results if isinstance(results, tuple | list) else [results]) if hasattr(each, "shape")]


@pytest.mark.oracle
@pytest.mark.parametrize("schema", with_dimensions(), ids=lambda schema: schema.name)
def test_what_torch_refuses_is_refused(schema: Schema) -> None:
    torch = pytest.importorskip("torch")
    kind, _, name = schema.name.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, kind, None), name or "default", None)
    if operator is None:
        pytest.skip("torch does not offer it to Python")
    keywords = {each.name for each in operator._schema.arguments if each.kwarg_only}
    for shape in ((), (2,), (0,)):
        for dtype in ("float32", "int64"):
            for place in PLACES:
                array = np.ones(shape, dtype)
                given = {each.name: value_for(each, torch.tensor(array), place) for each in schema.arguments}
                want = shapes_of(lambda given=given: operator(*[value for key, value in given.items() if key not in keywords],  # type: ignore[misc]
                                                              **{key: value for key, value in given.items() if key in keywords}))
                ours = [value_for(each, irtool.torch.tensor(array), place) for each in schema.arguments]
                assert shapes_of(lambda ours=ours: current().apply(schema.name, ours)) == want, (shape, dtype, place)  # type: ignore[misc]
