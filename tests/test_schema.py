"""Schemas: reading declarations, torch's choice among overloads, arguments by name."""
from __future__ import annotations

import pytest

import irtool
from irtool.ir import types
from irtool.ir.schema import (
    MISSING,
    Literal,
    declared_kinds,
    node_argument,
    node_arguments,
    parse_schema,
    resolve,
    schema_named,
    schema_of,
    schemas,
)


def test_every_declaration_reads_and_says_its_name() -> None:
    kinds = declared_kinds()
    found = [schema for kind in kinds for schema in schemas(kind)]
    assert len(kinds) == 1978
    assert len(found) == len({schema.name for schema in found}) == 4062
    assert all(schema.text.startswith(schema.name + "(") for schema in found)


def test_a_declaration_in_parts() -> None:
    schema = parse_schema('aten::f.x(Tensor(a!) self, SymInt[2] size, *, ScalarType? dtype=None, str s="a, \\"b\\"", float f=1., '
                          'Tensor(b!)[] out) -> (Tensor(a!), int n)')
    assert (schema.kind, schema.overload) == ("aten::f", "x")
    self, size, dtype, text, number, out = schema.arguments
    assert self.alias is not None and self.alias.is_write and self.alias.sets == ("a",) and not self.alias.on_elements
    assert (size.type.key, size.type_text, size.fixed_size, size.default) == ("int[]", "SymInt[2]", 2, MISSING)
    assert (dtype.type.text, dtype.keyword_only, dtype.has_default, dtype.default) == ("int?", True, True, None)
    assert text.default == 'a, "b"'
    assert number.default == 1.0 and isinstance(number.default, float)
    assert out.alias is not None and out.alias.on_elements
    assert [r.type.text for r in schema.returns] == ["Tensor", "int"]
    assert schema.is_mutable


def test_containers_and_wildcards() -> None:
    schema = parse_schema("aten::_set_item.str(Dict(str, t)(a!) l, str(b -> *) idx, t(c -> *) v) -> ()")
    first, _, value = schema.arguments
    assert first.type.text == "Dict(str, t)" and first.alias is not None and first.alias.is_write
    assert value.alias is not None and "*" in value.alias.after
    assert schema.returns == ()
    assert parse_schema("prim::TupleUnpack(Any tup) -> ...").is_varret
    assert parse_schema("aten::format(str self, ...) -> str").is_vararg


@pytest.mark.parametrize("text", ["", "aten::f", "aten::f(", "aten::f()", "aten::f() -> ", "aten::f(Tensor) -> int"])
def test_what_is_no_declaration(text: str) -> None:
    with pytest.raises(ValueError):
        parse_schema(text)


CHOICES = [
    ("aten::add", "Tensor Tensor int", "aten::add.Tensor"),
    ("aten::add", "Tensor int int", "aten::add.Scalar"),
    ("aten::add", "int int", "aten::add.int"),
    ("aten::add", "int float", "aten::add.int_float"),
    ("aten::add", "int[] int[]", "aten::add.t"),
    ("aten::add", "str str", "aten::add.str"),
    ("aten::add", "Scalar int", "aten::add"),
    ("aten::max", "Tensor", "aten::max"),
    ("aten::max", "Tensor int bool", "aten::max.dim"),
    ("aten::max", "Tensor Tensor Tensor", "aten::max.out"),
    ("aten::__getitem__", "Tensor[] int", "aten::__getitem__.t"),
    ("aten::__getitem__", "Dict(str,Tensor) str", "aten::__getitem__.Dict_str"),
    ("aten::size", "Float(2,3) int", "aten::size.int"),
    ("aten::append", "int[] int", "aten::append.t"),
    ("aten::eq", "bool bool", "aten::eq.bool"),
    ("aten::conv2d", "Tensor Tensor NoneType int[] int[] int[] int", "aten::conv2d"),
    ("aten::conv2d", "Tensor Tensor Tensor? int[] str int[] int", "aten::conv2d.padding"),
    ("aten::mul", "Dynamic Dynamic", "aten::mul.Tensor"),
    ("mul", "UNKNOWN_TYPE UNKNOWN_TYPE", "aten::mul.Tensor"),
    ("aten::add", "Tensor Tensor", "aten::add.Tensor"),
    ("aten::sum", "Dynamic", "aten::sum"),
]


@pytest.mark.parametrize(("kind", "operands", "name"), CHOICES)
def test_overloads(kind: str, operands: str, name: str) -> None:
    found = resolve(kind, [types.parse_type(text) for text in operands.split()])
    assert found is not None and found.name == name


@pytest.mark.parametrize(("kind", "operands"), [("aten::add", "str int"), ("aten::append", "int[] str"), ("aten::nothing", "Tensor"),
                                                ("aten::neg", "Tensor Tensor Tensor")])
def test_no_overload(kind: str, operands: str) -> None:
    assert resolve(kind, [types.parse_type(text) for text in operands.split()]) is None


def test_arguments_by_name_from_operands_attributes_and_defaults() -> None:
    graph = irtool.parse("graph(%a : Tensor, %b : Tensor):\n  %n : int = prim::Constant[value=3]()\n"
                         "  %c : Tensor = aten::add(%a, %b, %n)\n  return (%c)\n").graphs[0]
    node = graph.outputs[0].node
    assert node_argument(node, "alpha") is node.inputs[2]
    assert node_argument(node, "beta") is None

    old = irtool.parse("graph(%0 : Float(2)\n      %1 : Float(2)) {\n  %2 : Float(2) = aten::add[alpha={3}](%0, %1)\n"
                       "  %3 : Float(4) = aten::cat[dim=0](%0, %1, %2)\n  %4 : Float(2) = mul(%0, %1)\n  return (%3);\n}\n").graphs[0]
    add, cat, _ = old.nodes
    alpha = node_argument(add, "alpha")
    assert isinstance(alpha, Literal) and alpha.value == 3
    tensors, dim = node_arguments(cat)
    assert tensors == [*old.inputs, add.output] and isinstance(dim, Literal) and dim.value == 0
    assert isinstance(node_argument(add, "self"), irtool.Value)


def test_a_note_is_no_argument() -> None:
    graph = irtool.parse('graph(%s : str, %n : int):\n   = aten::warn[warn_id=0](%s, %n)\n  return ()\n').graphs[0]
    (node,) = graph.nodes
    assert schema_of(node) is schema_named("aten::warn")


@pytest.mark.oracle
def test_declarations_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    ours = {schema.name for kind in declared_kinds() for schema in schemas(kind)}
    theirs = {schema.name + ("." + schema.overload_name if schema.overload_name else "")
              for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")}
    missing = {name for name in theirs - ours if not name.startswith(("aten::_test", "aten::_mps", "aten::_nnpack"))}
    assert len(missing) <= 0.02 * len(theirs), sorted(missing)[:20]


@pytest.mark.oracle
def test_the_choice_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    for kind, operands, name in CHOICES:
        if "UNKNOWN" in operands or "Dynamic" in operands or name == "aten::add.Tensor" and len(operands.split()) == 2:
            continue
        inputs = ", ".join(f"%{i} : {text.replace(',', ', ')}" for i, text in enumerate(operands.split()))
        names = ", ".join(f"%{i}" for i in range(len(operands.split())))
        graph = torch._C.parse_ir(f"graph({inputs}):\n  %r = {kind}({names})\n  return ()\n")
        schema = next(iter(graph.nodes())).schema()
        assert parse_schema(schema).name == name, (kind, operands)
