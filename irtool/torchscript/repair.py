"""Code of archives that torch reads and Python does not: attributes named `lambda`, 120 levels of blocks, parameters without a default
after others with one. The text is changed until `ast` accepts it, without changing lines; then the tree is changed back."""
from __future__ import annotations

import ast
import re
from keyword import kwlist

MARK = "\ua66e"
"""A letter that replaces the last letter of a Python keyword."""
NO_DEFAULT = "__no_default__"
"""The default given to a parameter that has none, after one that has."""
LEVELS = 60
"""Blocks nested deeper than this are parsed separately. Python accepts 100 levels."""
WORDS = [word for word in kwlist if word not in ("None", "True", "False")]
USED_AS_NAME = re.compile(rf"(?<=\.)(?:{'|'.join(WORDS)})\b(?=[^\w'\"]|$)|^(?P<indent>[ ]*)(?P<word>{'|'.join(WORDS)})(?=[ ]:[ ])"
                          rf"|(?<=def )(?:{'|'.join(WORDS)})(?=\()", re.MULTILINE)
HEAD = re.compile(r"^[ ]*def \w+\((?P<parameters>.*?)\)(?: -> [^\n]*)?:$", re.MULTILINE | re.DOTALL)
SUITE = "__suite_{}__"


def parse(text: str, filename: str) -> ast.Module:
    """The tree of a file of an archive. Raises SyntaxError, ValueError, RecursionError and MemoryError as `ast.parse` does."""
    try:
        return ast.parse(text, filename)
    except SyntaxError as error:
        changed = HEAD.sub(_with_defaults, USED_AS_NAME.sub(_marked, text))
        if "indentation" in str(error.msg) or "nested blocks" in str(error.msg):
            return _restored(_in_pieces(changed, filename))
        if changed == text:
            raise
    try:
        return _restored(ast.parse(changed, filename))
    except SyntaxError as error:
        if "indentation" not in str(error.msg) and "nested blocks" not in str(error.msg):
            raise
        return _restored(_in_pieces(changed, filename))


def _marked(match: re.Match[str]) -> str:
    return match[0][:-1] + MARK


def _with_defaults(match: re.Match[str]) -> str:
    """The head of a function, changed so that no parameter without a default follows one with a default."""
    head = match[0]
    parameters = match["parameters"].split(",\n")
    if not any("=" in each for each in parameters):
        return head
    seen = False
    for index, each in enumerate(parameters):
        seen = seen or "=" in each
        if seen and "=" not in each and each.strip():
            parameters[index] = f"{each}={NO_DEFAULT}"
    return head.replace(match["parameters"], ",\n".join(parameters), 1)


def _in_pieces(text: str, filename: str) -> ast.Module:
    """The tree of a text of many levels: blocks deeper than LEVELS are parsed separately and then inserted."""
    lines = text.split("\n")
    width = 2 * LEVELS
    suites: dict[str, ast.Module] = {}
    outer: list[str] = []
    start = 0
    while start < len(lines):
        if not lines[start].startswith(" " * width):
            outer.append(lines[start])
            start += 1
            continue
        end = start
        while end < len(lines) and (lines[end].startswith(" " * width) or not lines[end].strip()):
            end += 1
        name = SUITE.format(start)
        suites[name] = _in_pieces("\n" * start + "\n".join(each[width:] for each in lines[start:end]), filename)
        outer += [" " * width + name, *[""] * (end - start - 1)]
        start = end
    tree = ast.parse("\n".join(outer), filename)
    return _Filled(suites).visit(tree) if suites else tree


class _Filled(ast.NodeTransformer):
    """Replaces names by the blocks that they stand for."""

    def __init__(self, suites: dict[str, ast.Module]) -> None:
        self.suites = suites

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:      # noqa: N802 (ast's name)
        if isinstance(node.value, ast.Name) and node.value.id in self.suites:
            return self.suites[node.value.id].body
        return node


def _restored(tree: ast.Module) -> ast.Module:
    """The tree with the original words of the text."""
    words = {word[:-1] + MARK: word for word in WORDS}
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for field in ("attr", "id", "arg", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str) and value in words:
                setattr(node, field, words[value])
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MARK in node.value:
            for marked, word in words.items():
                node.value = node.value.replace(marked, word)
        todo.extend(ast.iter_child_nodes(node))
    return tree
