"""Gradients said in short, as functions of what they read: the rest of the formula is written from the schema."""
from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from irtool.ir.schema import Argument, Schema, parse_schema

ANNOTATIONS = {"Scalar": "number"}
"""How a formula annotates types that schemas spell otherwise, lists and options apart."""


class Derivative:
    """A function from `grad` and whatever else it names to the gradients of tensors, as `OpTable.derivative` takes it."""

    def __init__(self, rule: Callable[..., Any], names: list[str], schema: str, sums: bool, is_slope: bool) -> None:
        self.rule = rule
        self.names = names
        self.sums = sums
        self.is_slope = is_slope
        self.tensors = [argument.name for argument in parse_schema(schema).arguments if _is_tensor(argument)]
        """The arguments of the first overload whose gradients the rule returns. Another overload may have numbers in their place."""
        self._formulas: dict[str, Callable[..., Any]] = {}

    def formula(self, name: str, schemas: Iterable[str]) -> Callable[..., Any]:
        """The whole formula of an overload, given the schemas of its stanza. Those with equal arguments share it."""
        stanza = {schema.name: schema for schema in map(parse_schema, schemas)}
        schema = next(stanza[each] for each in self.names if each in stanza and _types(stanza[each]) == _types(stanza[name]))
        if schema.name not in self._formulas:
            self._formulas[schema.name] = self._compiled(schema)
        return self._formulas[schema.name]

    def _compiled(self, schema: Schema) -> Callable[..., Any]:
        name = f"{schema.kind.partition('::')[2]}_gradient" if self.rule.__name__ == "<lambda>" else self.rule.__name__
        code = self.rule.__code__
        filename = f"<{schema.name} of {code.co_filename}:{code.co_firstlineno}>"
        text = self.source(schema, name)
        linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename      # for inspect, and for tracebacks
        namespace: dict[str, Any] = {}
        exec(compile(text, filename, "exec", dont_inherit=True, flags=_ANNOTATIONS_ARE_TEXT), self.rule.__globals__, namespace)
        formula: Callable[..., Any] = namespace[name]
        return formula

    def source(self, schema: Schema, name: str) -> str:
        """The formula's text. Raises ValueError when the rule does not return a gradient for each tensor."""
        *statements, last = _body(self.rule)
        grads = [last]
        if isinstance(last, ast.Tuple) and len(self.tensors) > 1:
            grads = last.elts
        arguments = [argument.name for argument in schema.arguments]
        if len(grads) != len(self.tensors) or not set(self.tensors) <= set(arguments):
            raise ValueError(f"{schema.name}: its derivative returns {len(grads)} gradients, expected those of {', '.join(self.tensors)}")
        if self.is_slope:
            grads = [ast.BinOp(ast.Name("grad"), ast.Mult(), grad) if ast.unparse(grad) != "None" else grad for grad in grads]
        sums = self.sums and sum(map(_is_tensor, schema.arguments)) > 1
        by_name = dict(zip(self.tensors, map(ast.unparse, grads), strict=True))
        returned = [_summed(by_name.get(each.name, "None"), each.name, sums) if _is_tensor(each) else "None" for each in schema.arguments]
        results = [each.name or (f"result{place}" if len(schema.returns) > 1 else "result") for place, each in enumerate(schema.returns)]
        read = [*self.rule.__code__.co_varnames[:self.rule.__code__.co_argcount],
                *[f"{each.name}_size" for each, grad in zip(schema.arguments, returned, strict=True) if sums and grad != "None"]]
        known = {*results, *arguments}
        facts = dict.fromkeys(each for each in read if each not in known and each != "grad")
        grad_type = _annotation(schema.returns[0].type.text)
        return "\n".join([
            f"def {name}({', '.join(f'{each.name}: {_annotation(each.type.text)}' for each in schema.arguments)}):",
            *[f"    {fact} = {_fact(fact, known)}" for fact in facts],
            f"    {', '.join(results)} = torch.{schema.kind.partition('::')[2]}({', '.join(map(_passed, schema.arguments))})",
            "",
            f"    def backward(grad: {grad_type}):",
            *[f"        {line}" for statement in statements for line in ast.unparse(statement).splitlines()],
            f"        return {', '.join(returned)}",
            "",
            f"    return {', '.join(results)}, backward", ""])


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


def _fact(name: str, arguments: set[str]) -> str:
    argument = next((each for each in arguments if name.startswith(f"{each}_")), None)
    if argument is None:
        raise ValueError(f"{name} is neither an argument, nor a result, nor a size of one")
    fact = name[len(argument) + 1:]
    return f"{argument}.{fact}" if fact in ("dtype", "device") else f"{argument}.{fact}()"


def _summed(grad: str, name: str, sums: bool) -> str:
    return f"({grad}).sum_to_size({name}_size)" if sums and grad != "None" else grad


def _body(rule: Callable[..., Any]) -> list[Any]:
    """The statements of a rule, the last of them as the expression that is returned."""
    code = rule.__code__
    kind = ast.Lambda if rule.__name__ == "<lambda>" else ast.FunctionDef
    for node in ast.walk(_parsed(code.co_filename)):
        if isinstance(node, kind) and code.co_firstlineno in (node.lineno, *[each.lineno for each in getattr(node, "decorator_list", [])]):
            if isinstance(node, ast.Lambda):
                return [node.body]
            last = node.body[-1]
            if isinstance(last, ast.Return) and last.value is not None:
                return [*node.body[:-1], last.value]
    raise ValueError(f"{code.co_filename}:{code.co_firstlineno}: expected a derivative whose last statement is its only return")


@cache
def _parsed(filename: str) -> ast.Module:
    with open(filename, encoding="utf-8") as file:
        return ast.parse(file.read())
