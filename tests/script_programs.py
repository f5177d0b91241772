"""The programs of tests/data/script: their functions, their inputs, and results as JSON.

A program is a Python file; the comment lines `# run: T(2, 3), 4` above a function are inputs to run it on. A tensor is written by its
shape: T float32, D float64, I int64, B bool; its numbers are always the same.
"""
from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from irtool.ir.edits import clone_graph
from irtool.ir.graph import Graph
from irtool.torchscript import compile_source

FOLDER = Path(__file__).parent / "data" / "script"
PROGRAMS = ("control_flow", "types_and_values", "tensors", "more", "forms", "classes", "assignments")


def array(letter: str, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor that a letter and a shape stand for."""
    count = int(np.prod(shape, dtype=int))
    numbers = np.arange(count)
    if letter == "I":
        return (numbers * 5 % 3).reshape(shape)
    if letter == "B":
        return (numbers % 3 == 0).reshape(shape)
    return ((numbers * 0.375 + 0.2) % 1.7 - 0.6).astype(np.float32 if letter == "T" else np.float64).reshape(shape)


class Inputs(ast.NodeTransformer):
    """`T(2, 3)` -> a placeholder that is filled in after literal_eval."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)
        self.arrays.append(array(node.func.id, tuple(ast.literal_eval(each) for each in node.args)))
        return ast.Constant(f"\0{len(self.arrays) - 1}")


def inputs_of(line: str) -> list[Any]:
    """The inputs a `# run:` line describes."""
    reader = Inputs()
    tree = reader.visit(ast.parse(f"({line},)" if line.strip() else "()", mode="eval"))
    return [reader.arrays[int(value[1:])] if isinstance(value, str) and value[:1] == "\0" else value
            for value in ast.literal_eval(tree)]


def cases(program: str) -> list[tuple[str, list[str]]]:
    """(function, its `# run:` lines) of a program, in order."""
    found: list[tuple[str, list[str]]] = []
    lines: list[str] = []
    for line in (FOLDER / f"{program}.py").read_text().split("\n"):
        if line.startswith("# run:"):
            lines.append(line[6:].strip())
        elif line.startswith("def "):
            if lines:
                found.append((line[4:].partition("(")[0], lines))
            lines = []
    return found


CASES = [(program, name, lines) for program in PROGRAMS for name, lines in cases(program)]


@cache
def _compiled(program: str) -> dict[str, Graph]:
    """All functions of a program, by name."""
    return {graph.name: graph for graph in compile_source((FOLDER / f"{program}.py").read_text(), filename=f"{program}.py").graphs}


def graph_of(program: str, name: str) -> Graph:
    """A function of a program, compiled."""
    return clone_graph(_compiled(program)[name])


def as_json(value: Any) -> Any:
    """A result as JSON tells it: arrays and numbers keep their dtype and kind."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": [as_json(each) for each in value.reshape(-1).tolist()]}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": repr(value)}
    if isinstance(value, tuple):
        return {"tuple": [as_json(each) for each in value]}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {"dict": [[as_json(key), as_json(each)] for key, each in value.items()]}
    return value


def agree(ours: Any, theirs: Any) -> bool:
    """Do two results as JSON agree? Numbers of tensors and floats to within rounding."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and "float" in theirs and "float" in ours:
        return bool(np.isclose(float(ours["float"]), float(theirs["float"]), rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(agree(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(agree(a, b) for a, b in zip(ours, theirs, strict=True))
    return type(ours) is type(theirs) and ours == theirs
