"""Python's binary operators as one table: syntax, function, special method, NumPy's ufunc, and operator in graphs."""
from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple


class Operator(NamedTuple):
    """One operator."""

    syntax: type[ast.operator | ast.cmpop]
    sign: str
    name: str
    """The name of the special method without underscores; `swapped` is that of the method for swapped operands."""
    swapped: str
    ufunc: str
    kind: str
    function: Callable[[Any, Any], Any]

    @property
    def method(self) -> str:
        """`__add__`"""
        return f"__{self.name}__"


def _read(rows: str, swapped: dict[str, str]) -> tuple[Operator, ...]:
    operators = []
    for row in rows.split("\n"):
        syntax, sign, name, ufunc, kind = row.split()
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        operators.append(Operator(getattr(ast, syntax), sign, name, swapped.get(name, f"r{name}"), ufunc, kind, function))
    return tuple(operators)


ARITHMETIC = _read("""Add + add add aten::add
Sub - sub subtract aten::sub
Mult * mul multiply aten::mul
Div / truediv divide aten::div
FloorDiv // floordiv floor_divide aten::floordiv
Mod % mod remainder aten::remainder
Pow ** pow power aten::pow""", {})
BINARY = ARITHMETIC + _read("""BitAnd & and bitwise_and aten::__and__
BitOr | or bitwise_or aten::__or__
BitXor ^ xor bitwise_xor aten::__xor__
LShift << lshift left_shift aten::__lshift__
RShift >> rshift right_shift aten::__rshift__
MatMult @ matmul matmul aten::matmul""", {})
COMPARISONS = _read("""Eq == eq equal aten::eq
NotEq != ne not_equal aten::ne
Lt < lt less aten::lt
LtE <= le less_equal aten::le
Gt > gt greater aten::gt
GtE >= ge greater_equal aten::ge""", {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"})
BY_SYNTAX: dict[type[ast.AST], Operator] = {each.syntax: each for each in BINARY + COMPARISONS}
