"""erase-number-types on every operator that torch declares."""
from __future__ import annotations

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
