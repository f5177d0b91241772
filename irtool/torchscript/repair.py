"""Code of archives that torch reads and Python does not: attributes named `lambda`, 120 levels of blocks, parameters without a default
behind some with one. The text is changed until `ast` takes it, lines staying lines, and what was changed is put back in the tree.
"""
from __future__ import annotations

import ast
import re
from keyword import kwlist

MARK = "\ua66e"
"""A letter that stands for the last one of a Python word."""
NO_DEFAULT = "__no_default__"
"""The default of a parameter that has none, behind one that has."""
LEVELS = 60
"""Blocks in blocks that are parsed as one text; deeper ones are parsed by themselves. Python takes 100."""
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
    """A function's head where no parameter without a default stands behind one that has one."""
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
    """The tree of a text of many levels: what stands deeper than LEVELS is parsed by itself and put in its place."""
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
    """Puts blocks where their names stand."""

    def __init__(self, suites: dict[str, ast.Module]) -> None:
        self.suites = suites

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:      # noqa: N802 (ast's name)
        if isinstance(node.value, ast.Name) and node.value.id in self.suites:
            return self.suites[node.value.id].body
        return node


def _restored(tree: ast.Module) -> ast.Module:
    """The tree with the words that stood in the text."""
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
