"""Methods of strings give what torch gives, also where the end is before the start or both are beyond the string: recorded."""
from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from string_methods import RECORDED, arguments, methods

import irtool
from irtool.ir.errors import Error
from irtool.ir.schema import Schema
from irtool.ops.call import call_op
from tests.laws import over


@cache
def recorded() -> Any:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def result_of(name: str, values: tuple[Any, ...]) -> Any:
    try:
        result = call_op(name, list(values))
    except Error as error:
        return f"!{error}"
    return list(result) if isinstance(result, tuple) else result


@over("schema", [pytest.param(schema, id=schema.name) for schema in methods()], lambda schema: schema.kind)
def test_a_method_gives_what_torch_gives(schema: Schema) -> None:
    wrong = [(values, wanted, found) for values, wanted in zip(arguments(schema), recorded()[schema.name], strict=True)
             if (found := result_of(schema.name, values)) != wanted or type(found) is not type(wanted)]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("call", ["x.count('')", "x.replace('', 'a')", "x.center(-1)"])
def test_what_never_ends_in_torch_is_refused(call: str) -> None:
    with pytest.raises(irtool.RunError, match="never ends in torch"):
        irtool.run(irtool.from_script(f"def f(x: str):\n    return {call}\n"), ["banana"])
