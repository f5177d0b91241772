"""Derivatives: gradients as short functions of the values that they read. The rest of the formula is generated from the schema."""
from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from irtool.ir.schema import Argument, Schema, parse_schema, schemas

ANNOTATIONS = {"Scalar": "number"}
"""Annotations in formulas for types that schemas spell otherwise, apart from lists and optionals."""

FACTS = {"size": "{}.size()", "stride": "{}.stride()", "offset": "{}.storage_offset()", "numel": "{}.numel()",
         "dtype": "{}.dtype", "isnan": "{}.isnan()", "isfinite": "{}.isfinite()", "present": "{} is not None"}
"""Facts about a tensor that a derivative may read instead of the tensor: `self_size`; for a list, the list of the facts."""


def rule_of(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """A rule from the text of a lambda, for tables of operators that differ only in their names; `names` are the globals that it reads."""
    filename = f"<{text}>"
    linecache.cache[filename] = len(text), None, [text], filename
    rule: Callable[..., Any] = eval(compile(text, filename, "eval"), names)
    return rule


def calling(operator: str, name: str) -> Callable[..., Any]:
    """The rule of an overload whose gradient is one operator, called on `grad` and on arguments with the names of that operator's
    arguments."""
    from irtool.ops.tensor import torch

    (stated, *_), (called, *_) = schemas(f"aten::{name}"), schemas(f"aten::{operator}")
    call = f"torch.{operator}({', '.join(['grad', *map(_passed, called.arguments[1:])])})"
    gradients = ", ".join([call, *["None" for argument in stated.arguments[1:] if _is_tensor(argument)]])
    return rule_of(f"lambda {', '.join(['grad', *[each.name for each in called.arguments[1:]]])}: ({gradients})", {"torch": torch})


def renamed(formula: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """The formula of an operator that differs from another's only in its name."""
    text = inspect.getsource(formula)
    name = formula.__name__.replace(old, new)
    return _defined(name, text[text.index("def "):].replace(old, new), f"<{name}>", formula.__globals__)


class Derivative:
    """A function from `grad` and other values, by name, to the gradients of tensors, as `OpTable.derivative` takes it."""

    def __init__(self, rule: Callable[..., Any], names: list[str], schema: str, sums: bool, is_slope: bool,
                 scope: dict[str, Any] | None = None, through: str = "") -> None:
        """scope: names that the formula may read besides the globals of the rule. through: the operator that computes the results, and
        further values that the rule reads, from arguments of the same names."""
        self.rule = rule
        self.scope = scope
        self.names = names
        self.sums = sums
        self.is_slope = is_slope
        self.schema = schema
        self.through = through
        self._formulas: dict[str, Callable[..., Any]] = {}

    @cached_property
    def tensors(self) -> list[str]:
        """The arguments of the first overload whose gradients the rule returns. Other overloads may have numbers in their place."""
        return [argument.name for argument in parse_schema(self.schema).arguments if _is_tensor(argument)]

    def formula(self, name: str, schemas: Iterable[str]) -> Callable[..., Any]:
        """The whole formula of an overload, given the schemas of its stanza. Overloads with equal arguments share it."""
        if name in self._formulas:
            return self._formulas[name]
        stanza = {schema.name: schema for schema in map(parse_schema, schemas)}
        alike = [stanza[each] for each in self.names if each in stanza and _types(stanza[each]) == _types(stanza[name])]
        schema = alike[0] if alike else stanza[name]
        if schema.name not in self._formulas:
            self._formulas[schema.name] = self._compiled(schema)
        self._formulas[name] = self._formulas[schema.name]
        return self._formulas[name]

    def _compiled(self, schema: Schema) -> Callable[..., Any]:
        name = f"{schema.kind.partition('::')[2]}_gradient" if self.rule.__name__ == "<lambda>" else self.rule.__name__
        code = self.rule.__code__
        filename = f"<{schema.name} of {code.co_filename}:{code.co_firstlineno}>"
        return _defined(name, self.source(schema, name), filename,
                        self.rule.__globals__ if self.scope is None else {**self.scope, **self.rule.__globals__})

    def source(self, schema: Schema, name: str) -> str:
        """The formula's text. Raises ValueError if the rule has an unknown parameter, or does not return a gradient for each tensor."""
        *statements, last = _body(self.rule)
        unpacked, returned = self._returned(schema, last)
        computing = schemas(f"aten::{self.through}")[0] if self.through else schema
        results = [each.name or (f"result{place}" if len(computing.returns) > 1 else "result")
                   for place, each in enumerate(computing.returns)]
        read = self.rule.__code__.co_varnames[:self.rule.__code__.co_argcount]
        if self.sums:
            read += tuple(f"{each.name}_size" for each, grad in zip(schema.arguments, returned, strict=True) if "sum_to_size" in grad)
        facts = {each: fact for each in read if (fact := _fact(each, schema))}
        known = {*results, *facts, *[each.name for each in schema.arguments]}
        grads = [each for each in read if each not in known] or ["grad"]
        if len(grads) > len(schema.returns):
            raise ValueError(f"{schema.name}: its derivative reads {', '.join(grads)}, which are no arguments, results or sizes")
        types = [_annotation(each.type.text) + " | None" * (len(grads) > 1) for each in schema.returns]
        space, _, word = computing.kind.partition("::")
        function = word.removesuffix("_") if space == "aten" else f"ops.{space}.{word}"
        call = f"torch.{function}({', '.join(map(_passed, computing.arguments))})"
        return "\n".join([
            f"def {name}({', '.join(f'{each.name}: {_annotation(each.type.text)}' for each in schema.arguments)}):",
            *[f"    {each} = {fact}" for each, fact in facts.items()],
            f"    {', '.join(results)} = {call}",
            "",
            f"    def backward({', '.join(f'{grad}: {type}' for grad, type in zip(grads, types, strict=False))}):",
            *[f"        {line}" for statement in statements for line in ast.unparse(statement).splitlines()],
            *[f"        {line}" for line in unpacked],
            f"        return {', '.join(returned)}",
            "",
            f"    return {', '.join(results[:len(schema.returns)])}, backward", ""])

    def _returned(self, schema: Schema, last: ast.expr) -> tuple[list[str], list[str]]:
        """Statements that unpack the results of calls, and the value that `backward` returns for each argument."""
        grads: list[Any] = last.elts if isinstance(last, ast.Tuple) else [last] if len(self.tensors) == 1 else [ast.Starred(last)]
        unpacked: list[str] = []
        for place, grad in enumerate(grads):
            if isinstance(grad, ast.Starred):
                parts = [f"{name}_part" for name in self.tensors[place:len(self.tensors) - len(grads) + place + 1]]
                unpacked.append(f"{', '.join(parts)} = {ast.unparse(grad.value)}")
                grads = [*grads[:place], *map(ast.Name, parts), *grads[place + 1:]]
        if len(grads) != len(self.tensors) or not {argument.name for argument in schema.arguments}.issuperset(self.tensors):
            raise ValueError(f"{schema.name}: its derivative returns {len(grads)} gradients, expected those of {', '.join(self.tensors)}")
        sums = self.sums and sum(map(_is_tensor, schema.arguments)) > 1
        texts = dict.fromkeys((argument.name for argument in schema.arguments), "None")
        for argument in filter(_is_tensor, schema.arguments):
            grad = dict(zip(self.tensors, grads, strict=True)).get(argument.name)
            if grad is not None and ast.unparse(grad) != "None":
                text = ast.unparse(ast.BinOp(ast.Name("grad"), ast.Mult(), grad) if self.is_slope else grad)
                texts[argument.name] = f"({text}).sum_to_size({argument.name}_size)" if sums else text
        return unpacked, list(texts.values())


def _defined(name: str, text: str, filename: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function `name` of a text, whose source inspect and tracebacks can show."""
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace: dict[str, Any] = {}
    exec(compile(text, filename, "exec", dont_inherit=True, flags=_ANNOTATIONS_ARE_TEXT), names, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


_ANNOTATIONS_ARE_TEXT = 0x1000000      # __future__.annotations.compiler_flag


def _types(schema: Schema) -> list[str]:
    return [argument.type.text for argument in schema.arguments]


def _is_tensor(argument: Argument) -> bool:
    return "Tensor" in argument.type.text


def _annotation(text: str) -> str:
    if text.endswith("?"):
        return f"{_annotation(text[:-1])} | None"
    if text.endswith("[]"):
        return f"list[{_annotation(text[:-2])}]"
    return ANNOTATIONS.get(text, text)


def _passed(argument: Argument) -> str:
    return f"{argument.name}={argument.name}" if argument.keyword_only else argument.name


def _fact(name: str, schema: Schema) -> str:
    """The expression for a parameter such as `self_size`; empty if it is no fact about a tensor."""
    known, _, fact = name.rpartition("_")
    argument = next((each for each in schema.arguments if each.name == known and _is_tensor(each)), None)
    if argument is None or fact not in FACTS or any(each.name == name for each in schema.arguments):
        return ""
    text = FACTS[fact].format(known)
    return f"[{FACTS[fact].format('each')} for each in {known}]" if argument.type.text.endswith("[]") else text


def _body(rule: Callable[..., Any]) -> list[Any]:
    """The statements of a rule, the last of them as the expression that is returned."""
    code = rule.__code__
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno - 1
    while lines[first][0].isspace():        # a lambda may begin below the start of its statement
        first -= 1
    for node in ast.walk(ast.parse("".join(inspect.getblock(lines[first:])))):
        if isinstance(node, ast.Lambda):
            return [node.body]
        if isinstance(node, ast.FunctionDef):
            last = node.body[-1]
            if isinstance(last, ast.Return) and last.value is not None:
                return [*node.body[:-1], last.value]
    raise ValueError(f"{code.co_filename}:{code.co_firstlineno}: expected a derivative whose last statement is its only return")
