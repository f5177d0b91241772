"""Constructs that torch refuses wherever they stand, also in code that never runs, as its Python front end does (torch/jit/frontend.py)."""
from __future__ import annotations

import ast
from collections.abc import Callable, Container, Sequence
from typing import Any

from irtool.torchscript.emitter import Emitter
from irtool.torchscript.source_text import unsupported

PARTS = (ast.Starred, ast.Slice, ast.FormattedValue)
"""Expressions that occur only inside other expressions."""
Refusal = tuple[ast.AST, str, int]
"""The place, the message, and how many characters of the source are marked (0: the whole construct)."""


def check_syntax(e: Emitter, body: Sequence[ast.stmt], known: Container[type[ast.AST]]) -> None:
    """Refuse constructs that no function can have; nested functions check themselves. known: classes of statements and expressions."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in reversed(body)]
    while pending:
        node, in_loop = pending.pop()
        if isinstance(node, ast.stmt | ast.expr) and type(node) not in known and not isinstance(node, PARTS):
            unsupported(e.place, node)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            unsupported(e.place, node, "without assigned value")
        refused = REFUSED[type(node)](node) if type(node) in REFUSED else None
        if refused is None and isinstance(node, ast.Break | ast.Continue) and not in_loop:
            refused = node, f"SyntaxError: '{type(node).__name__.lower()}' outside loop", 0
        if refused is not None:
            e.fail(*refused)
        if not isinstance(node, ast.FunctionDef):
            in_loop = in_loop or isinstance(node, ast.For | ast.While)
            pending += [(child, in_loop) for child in reversed(list(ast.iter_child_nodes(node)))]


def constant(node: ast.Constant) -> Refusal | None:
    return (node, "Unknown Constant expression type bytes", 0) if isinstance(node.value, bytes) else None


def unary_operator(node: ast.UnaryOp) -> Refusal | None:
    return (node, "unsupported unary operator: UAdd", 0) if isinstance(node.op, ast.UAdd) else None


def dictionary(node: ast.Dict) -> Refusal | None:
    return (node, "Dict expansion (e.g. `{**dict}`) is not supported", 0) if None in node.keys else None


def comprehension(node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> Refusal | None:
    if len(node.generators) > 1:
        return node, "Only a single generator is currently supported", 0
    return (node, "Comprehension ifs are not supported yet", 0) if node.generators[0].ifs else None


def joined_string(node: ast.JoinedStr) -> Refusal | None:
    values = [each for each in node.values if isinstance(each, ast.FormattedValue)]
    if any(each.conversion != -1 for each in values):
        return node, "Don't support conversion in JoinedStr", 0
    return (node, "Don't support formatting in JoinedStr", 0) if any(each.format_spec is not None for each in values) else None


def call(node: ast.Call) -> Refusal | None:
    expanded = [keyword.value for keyword in node.keywords if keyword.arg is None]
    return (expanded[0], "keyword-arg expansion is not supported", 0) if expanded else None


def raised(node: ast.Raise) -> Refusal | None:
    return (node, "raise without an exception is not supported", len("raise")) if node.exc is None else None


def loop(node: ast.For | ast.While) -> Refusal | None:
    name = type(node).__name__.lower()
    return (node, f"else branches of {name} loops aren't supported", len(name)) if node.orelse else None


REFUSED: dict[type[ast.AST], Callable[[Any], Refusal | None]] = {
    ast.Constant: constant, ast.UnaryOp: unary_operator, ast.Dict: dictionary, ast.ListComp: comprehension, ast.DictComp: comprehension,
    ast.GeneratorExp: comprehension, ast.JoinedStr: joined_string, ast.Call: call, ast.Raise: raised, ast.For: loop, ast.While: loop,
}
