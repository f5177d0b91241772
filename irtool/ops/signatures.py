"""Operators as Python shows them: parameters and types from schemas, docstrings of kernels. Stubs are generated from the same."""
from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any

from irtool.ir.schema import Argument, Schema, schemas

NUMBERS = {"Scalar": "complex", "SymInt": "int", "ScalarType": "int", "MemoryFormat": "int", "Layout": "int", "Device": "str"}
TYPES = {**{name: name for name in ("Tensor", "int", "float", "bool", "complex", "str", "Generator")}, **NUMBERS}
"""Python's annotations for types of schemas."""


class Annotation(str):
    """An annotation that is shown without quotes, like a type."""

    __slots__ = ()
    __repr__ = str.__str__


def annotation(text: str, is_result: bool = False) -> str | None:
    """A schema's type as a Python annotation; None for types that no function of tensors takes. Results have exact types: lists are
    lists."""
    if text.endswith("?"):
        inner = annotation(text[:-1], is_result)
        return inner and f"{inner} | None"
    if text.endswith("]"):
        element, _, count = text[:-1].rpartition("[")
        inner = annotation(element, is_result)
        return inner and (f"list[{inner}]" if is_result else f"Sequence[{inner}] | {inner}" if count else f"Sequence[{inner}]")
    return "int | float | complex" if is_result and text == "Scalar" else TYPES.get(text)


def is_written_out(argument: Argument) -> bool:
    """Is the argument the `out` of an overload that writes its result there?"""
    return argument.keyword_only and argument.alias is not None and argument.alias.is_write


def is_of_tensors(schema: Schema) -> bool:
    """Are the operands and results of an overload tensors, and of types that Python has? (`aten::sin.int` is Python's own.)"""
    texts = [*(each.type_text for each in schema.arguments), *(each.type_text for each in schema.returns)]
    return not (schema.is_vararg or schema.is_varret) and any("Tensor" in text for text in texts) and all(map(annotation, texts))


def overloads(kind: str) -> list[tuple[Schema, bool]]:
    """The overloads on tensors, in torch's order, each with whether a similar one takes `out`."""
    of_tensors = [schema for schema in schemas(kind) if is_of_tensors(schema)]
    plain = [schema for schema in of_tensors if not any(map(is_written_out, schema.arguments))]
    writing = {tuple(each.name for each in schema.arguments[:-1]) for schema in of_tensors
               if schema not in plain and sum(map(is_written_out, schema.arguments)) == 1 and schema.arguments[-1].name == "out"}
    return [(schema, tuple(each.name for each in schema.arguments) in writing) for schema in plain]


def parameters(schema: Schema, takes_out: bool, is_method: bool = False) -> Iterator[Parameter]:
    """The parameters of an overload; the first tensor of a function is `input`, as in torch."""
    names = {each.name for each in schema.arguments}
    for each in schema.arguments:
        name = "input" if each.name == "self" and not is_method and "input" not in names else each.name
        default: Any = Parameter.empty if not each.has_default else each.default
        yield Parameter(f"{name}_" if keyword.iskeyword(name) else name, Parameter.KEYWORD_ONLY if each.keyword_only else
                        Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotation(annotation(each.type_text)))
    if takes_out:
        yield Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=Annotation("Tensor | None"))


def result(schema: Schema) -> str:
    """The results of an overload as a Python annotation."""
    texts = [str(annotation(each.type_text, True)) for each in schema.returns]
    return texts[0] if len(texts) == 1 else f"tuple[{', '.join(texts)}]" if texts else "None"


def signature(kind: str, is_method: bool = False) -> inspect.Signature | None:
    """One signature for all overloads of a kind: the default of parameters that some do not require is `...`. None if no overload is on
    tensors."""
    each = [({one.name: one for one in parameters(schema, takes_out, is_method)}, result(schema)) for schema, takes_out in overloads(kind)]
    if not each:
        return None
    widest = max((names for names, _ in each), key=len)
    more = {name: one.replace(kind=Parameter.KEYWORD_ONLY) for names, _ in each for name, one in names.items() if name not in widest}
    merged: list[Parameter] = []
    for name, one in sorted({**widest, **more}.items(), key=lambda item: item[1].kind):
        is_optional = one.kind is not Parameter.KEYWORD_ONLY and bool(merged) and merged[-1].default is not Parameter.empty
        if one.default is Parameter.empty and (is_optional or not all(name in names for names, _ in each)):
            one = one.replace(default=Annotation("..."))
        types = dict.fromkeys(str(names[name].annotation) for names, _ in each if name in names)
        merged.append(one.replace(annotation=Annotation(" | ".join(types))))
    return inspect.Signature(merged, return_annotation=Annotation(" | ".join(dict.fromkeys(gives for _, gives in each))))


def documented(function: Callable[..., Any], kind: str, is_method: bool = False) -> Callable[..., Any]:
    """The function with the name, signature and docstring of an operator, for `help` and `inspect.signature`."""
    from irtool.ops import OPS

    function.__name__ = function.__qualname__ = kind.removeprefix("aten::")
    declared = [schema for schema in schemas(kind) if is_of_tensors(schema)] or schemas(kind)
    docs = (op.doc for name in (kind, kind.removesuffix("_")) for schema in (*declared, *schemas(name))
            if (op := OPS.get(f"{name}.{schema.overload}" if schema.overload else name)) and op.doc)
    function.__doc__ = "\n".join([inspect.cleandoc(next(docs, f"The operator {kind}.")), "", *map(str, declared)])
    if (shown := signature(kind, is_method)) is not None:
        function.__signature__ = shown      # type: ignore[attr-defined]
    return function
