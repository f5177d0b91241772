"""Operators that are declared to give more or fewer results than they do: what verifies (a list whose elements are the results, as in old
texts) every pass takes."""
from __future__ import annotations

import pytest

import irtool
from irtool.ir.doubtful_types import doubtful
from irtool.ir.schema import Schema, schemas
from irtool.ir.types import ListType
from irtool.ops import OPS
from irtool.passes import PASSES
from irtool.passmanager import violations

KINDS = sorted({name.partition(".")[0] for name in OPS})


def called(schema: Schema, kind: str, count: int) -> str:
    """A call of an operator on inputs of the declared types that gives `count` results."""
    first = schema.returns[0].type
    element = first.element if isinstance(first, ListType) else first
    inputs = ", ".join(f"%a{i} : {each.type}" for i, each in enumerate(schema.arguments))
    operands = ", ".join(f"%a{i}" for i in range(len(schema.arguments)))
    results = ", ".join(f"%r{i}" for i in range(count))
    made = ", ".join(f"%r{i} : {element}" for i in range(count))
    return f"graph({inputs}):\n  {made} = {kind}({operands})\n  return ({results})\n"


def verified(text: str) -> bool:
    """Does a text parse and verify?"""
    try:
        return not violations(irtool.parse(text))
    except irtool.Error:
        return False


@pytest.mark.parametrize("part", range(4))
def test_passes_take_as_many_results_as_verify(part: int) -> None:
    texts = [text for kind in KINDS[part::4] for schema in schemas(kind) if schema.returns
             for count in {2, 3, len(schema.returns) + 1} - {len(schema.returns)} if verified(text := called(schema, kind, count))]
    assert len(texts) > 50
    for number, text in enumerate(texts):
        for name in ["erase-number-types", "differentiate", *[each.name for each in PASSES[number % 12::12]]]:
            try:
                irtool.PassManager(name, verify=True).run(irtool.parse(text))
            except irtool.Error as error:
                assert "after pass" not in str(error) or doubtful(irtool.parse(text)), (name, error, text)


@pytest.mark.parametrize("count, message", [(2, "aten::mul gives 1 result, found 2"), (1, "")])
def test_a_repeated_list_is_one_result(count: int, message: str) -> None:
    """`mul` of a list and a number is declared for elements of any type: no old text has them as results."""
    results = ", ".join(f"%{i} : Tensor" for i in range(count)) if count > 1 else "%0 : Tensor[]"
    text = f"graph(%l : Tensor[], %n : int):\n  {results} = aten::mul(%l, %n)\n  return (%0)\n"
    assert [each.message for each in violations(irtool.parse(text))] == [message] * bool(message)
