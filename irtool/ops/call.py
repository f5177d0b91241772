"""One operator on values: find the overload, bind arguments, call it.

Tensors are NumPy arrays, other values are Python's (`irtool.interpret`).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ir.kinds import not_supported
from irtool.ir.schema import Argument, Schema, forgets_kinds, parse_schema, schemas
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type, TypeVar
from irtool.ops import OPS
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.checks import bind
from irtool.ops.op import Op
from irtool.ops.overload import Overload

_found: dict[str, Overload | None] = forgets_kinds({})


def overload(name: str) -> Overload:
    """The overload called `aten::add.Tensor`, `aten::add_.Tensor` or `aten::add.out`, derived from the plain one if it has no stanza.

    Raises UnsupportedError, which names it.
    """
    entry = find_overload(name)
    if entry is None:
        raise not_supported(name.partition(".")[0], f"{name} is not supported yet")
    return entry


def find_overload(name: str) -> Overload | None:
    """The overload, as by `overload`; None if it does not exist."""
    if name not in _found:
        _found[name] = _find(name)
    return _found[name]


OPTIONS = "dtype", "layout", "device", "pin_memory"
"""The last arguments of factories; overloads with out= take the dtype from the `out` argument."""


def _find(name: str) -> Overload | None:
    op = OPS.get(name)
    if op is not None:
        return Overload(own_schema(op, name), op)
    kind, _, variant = name.partition(".")
    schema = next((s for s in schemas(kind) if s.name == name), None)
    if schema is None:
        return None
    base = _functional(kind)
    if base is not None:
        return _derived(_same_arguments(base, variant, schema), schema, "inplace", 0)
    outs = sum(argument.keyword_only and argument.alias is not None and argument.alias.is_write for argument in schema.arguments)
    if outs:
        names = [(a.name, a.type.text) for a in schema.arguments[:len(schema.arguments) - outs]]
        for other in schemas(kind):
            if [(a.name, a.type.text) for a in other.arguments] == names:
                return _derived(other.name, schema, "out", outs)
            if outs == 1 and [a.name for a in other.arguments] == [*[name for name, _ in names], *OPTIONS] and other.name in OPS:
                return Overload(schema, OPS[other.name], "out", outs)
    if kind.endswith("_copy"):
        return _derived(kind.removesuffix("_copy") + (f".{variant}" if variant else ""), schema, "plain", 0)
    return None


def _functional(kind: str) -> str | None:
    """The kind without in-place form: `aten::add_` -> `aten::add`, `aten::__iand__` -> `aten::__and__`; None for a kind that is not
    in-place."""
    if kind.startswith("aten::__i") and kind.endswith("__"):
        return "aten::__" + kind.removeprefix("aten::__i")
    return kind[:-1] if kind.endswith("_") and not kind.endswith("__") else None


def _same_arguments(base: str, variant: str, schema: Schema) -> str:
    """The overload of `base` that takes the arguments of an in-place schema: mostly that of the same name, but that of `ldexp_` is
    `ldexp.Tensor`, that of `pow_.Tensor` is `pow.Tensor_Tensor`."""
    def types(of: Schema) -> list[str]:
        return [argument.type.text.replace("SymInt", "int") for argument in of.arguments]

    named = f"{base}.{variant}" if variant else base
    alike = [other.name for other in schemas(base) if types(other) == types(schema)]
    if named in alike or not alike:
        return named if named in alike or any(s.name == named and types(s)[:1] == ["Tensor"] for s in schemas(base)) else ""
    return alike[0]


def _derived(base: str, schema: Schema, mode: str, outs: int) -> Overload | None:
    """The overload `schema`, computed by the kernel of `base`, if both take the same arguments."""
    op = OPS.get(base)
    if op is None:
        return None
    base_schema = own_schema(op, base)
    if len(base_schema.arguments) != len(schema.arguments) - outs:
        return None
    return Overload(schema, op, mode, outs)


def own_schema(op: Op, name: str) -> Schema:
    """The schema that the stanza states for the overload."""
    return parse_schema(next(text for text, each in zip(op.schemas, op.names, strict=True) if each == name))


def call_op(name: str, args: Sequence[Any], **named: Any) -> Any:
    """Run the operator `aten::add.Tensor` on values. Returns a single result itself, several as a tuple."""
    chosen = overload(name)
    values = bind(chosen.schema, args, named)
    with np.errstate(all="ignore"):
        return chosen(values)


def fits(argument: Argument, value: Any, lenient: bool) -> bool:
    """May `value` be passed for the argument? If lenient, a number for a 0-d tensor that is only read, and the other way round."""
    if argument.alias is not None and argument.alias.is_write:
        lenient = False
    return _fits(argument.type, value, lenient) or lenient and bool(argument.fixed_size) and isinstance(value, int)


def _fits(type: Type, value: Any, lenient: bool) -> bool:
    if isinstance(type, OptionalType):
        return value is None or _fits(type.element, value, lenient)
    if isinstance(type, TensorType):
        return is_array(value) or lenient and isinstance(value, int | float | complex)
    if isinstance(type, ListType):
        return isinstance(value, list) and all(_fits(type.element, item, lenient) for item in value)
    if isinstance(type, TupleType):
        return isinstance(value, tuple) and len(value) == len(type.elements)
    if isinstance(type, DictType):
        return isinstance(value, dict) and all(_fits(type.key_type, key, lenient) for key in value)
    if isinstance(type, TypeVar):
        return True
    kinds = _SIMPLE.get(str(type.key))
    if kinds is None:
        return str(type.key) in ("Any", "Function") or str(type.key) == "Generator" and isinstance(value, np.random.Generator)
    if lenient and str(type.key) == "Device" and isinstance(value, list):
        return len(value) == 2      # kind and index, before 2019
    if lenient and str(type.key) == "float" and isinstance(value, int):
        return True
    if lenient and is_array(value) and value.ndim == 0:
        return complex in kinds or value.dtype.kind != "c" and bool({bool, int, float} & {*kinds})
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool) or lenient)


_SIMPLE: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "bool": (bool,), "complex": (complex,), "str": (str,), "Device": (str,), "None": (type(None),),
    "Scalar": (int, float, complex, bool),
}
