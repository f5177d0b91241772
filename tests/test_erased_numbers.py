"""erase-number-types on every operator that torch declares."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.ir.schema import Schema, declared_kinds, schemas
from irtool.ir.verify import violations
from irtool.passes.erase_number_types import erase_number_types


def call_of(schema: Schema) -> str:
    """A graph that calls an overload on inputs."""
    operands = [f"%a{i}" for i in range(len(schema.arguments))]
    results = [f"%r{i}" for i in range(len(schema.returns))]
    inputs = ", ".join([f"{name} : {each.type}" for name, each in zip(operands, schema.arguments)])
    declared = ", ".join([f"{name} : {each.type}" for name, each in zip(results, schema.returns)]) + " = " * bool(results)
    return f"graph({inputs}):\n  {declared}{schema.kind}({', '.join(operands)})\n  return ({', '.join(results)})\n"


def test_what_verifies_still_does_when_numbers_are_erased() -> None:
    tried, broken = 0, []
    for kind in declared_kinds():
        for schema in schemas(kind) if kind.startswith("aten::") else ():
            try:
                graph = irtool.parse(call_of(schema)).graph()
            except irtool.ParseError:       # torch.jit itself has no text for a type
                continue
            if schema.is_vararg or violations(graph):
                continue
            erase_number_types(graph)
            tried += 1
            broken += [f"{schema.name}: {each.message}" for each in violations(graph)]
    assert tried > 3000 and not broken


@pytest.mark.parametrize("number", ("0.5", "7", "True", "-3.0"))
def test_writes_of_erased_numbers_write_them(number: str) -> None:
    """`aten::tensor` of a number that is a tensor now makes a tensor of its numbers: it made bools."""
    source = f"def f(x):\n    x = x.clone()\n    x[0] = {number}\n    x[x > 4] = {number}\n    return x\n"
    x = np.array([1.0, 5.0, 2.0])
    erased = irtool.PassManager("erase-number-types").run(irtool.from_script(source))
    for interpret in (True, False, False, False):
        np.testing.assert_array_equal(irtool.run(erased, [x], interpret=interpret)[0], irtool.run(irtool.from_script(source), [x])[0])
