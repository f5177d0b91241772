"""Rewrite rules as functions in TorchScript, which return the pattern and its replacement.

    def mul_one(x: Tensor):
        assert x.is_floating_point()            # for bools, x * 1 is an integer
        return x * 1, x

A parameter stands for any value of its type, in all places for the same one. Asserts are decided by types: about dtypes
(`is_floating_point`, `is_complex`, `dtype`), devices, numbers of dimensions (`dim`) and sizes (`size`). Files of rules are compiled, never
executed.
"""
from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.edits import clone_graph
from irtool.ir.effects import facts_of, node_may_write
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.type_answers import ANSWERS, answer
from irtool.ir.types import TensorType, same
from irtool.torchscript import compile_source

DTYPES = (("float32",), ("float64",), ("float16",), ("int64",), ("int32",), ("bool",), ("complex64",), ("float32", "int64"),
          ("int64", "float32"), ("float32", "float64"), ("float64", "float32"), ("bool", "float32"))
"""The dtypes of tensors with which a rule is tried: one for all, or several in turn."""


class RewriteRule:
    """One rule: `root`, the pattern, and `replacement`, both values of `graph`; `conditions` are the asserts."""

    def __init__(self, graph: Graph, name: str) -> None:
        """Raises Error for a function that is no rule."""
        self.name = name
        self.graph = graph
        returned = graph.outputs[0].node if len(graph.outputs) == 1 else None
        if returned is None or returned.kind != "prim::TupleConstruct" or len(returned.inputs) != 2:
            raise Error(f"the rule '{self.name}' returns no pair: a pattern, and its replacement", code="E0310")
        self.root, self.replacement = returned.inputs
        self.conditions: list[Value] = []
        for node in graph.block:
            if node.kind == "prim::If" and not node.outputs and any(each.kind == "prim::RaiseException" for each in node.blocks[1]):
                self.conditions.append(node.inputs[0])
            elif node.blocks or node_may_write(node) or facts_of(node.kind).side_effects or facts_of(node.kind).is_random:
                raise Error(f"the rule '{self.name}' has a {node.kind}: rules are of operators without blocks, writes and chance",
                            code="E0310")
        if self.root.is_block_input or constant(self.root) is not NOT_CONSTANT:
            raise Error(f"the rule '{self.name}' looks for no operator", code="E0310")
        self.operators = [node for node in graph.block if node.outputs and node.kind not in ("prim::TupleConstruct", "prim::If")]

    def matched(self, value: Value) -> dict[Value, Value] | None:
        """The value for each parameter and operator of the pattern, if the pattern matches at a value; else None."""
        bindings: dict[Value, Value] = {}
        queue = [(self.root, value)]
        while queue:
            ours, other = queue.pop()
            if ours in bindings:
                if bindings[ours] is not other:
                    return None
                continue
            bindings[ours] = other
            known = constant(ours)
            if known is not NOT_CONSTANT:
                if not equal_constants(known, constant(other)):
                    return None
            elif ours.is_block_input:
                if isinstance(ours.type, TensorType) != isinstance(other.type, TensorType) or not (
                        isinstance(ours.type, TensorType) or same(ours.type, other.type)):
                    return None
            else:
                node, theirs = ours.node, other.node
                if node.kind != theirs.kind or len(node.inputs) != len(theirs.inputs) or len(node.outputs) != len(theirs.outputs) \
                        or ours.index != other.index or theirs.attributes or theirs.blocks:
                    return None
                queue += zip(node.inputs, theirs.inputs, strict=True)
        missing = [each for each in self.needed() if each.is_block_input and each not in bindings]
        return None if missing or not all(decided(each, bindings) for each in self.conditions) else bindings

    def needed(self) -> Iterator[Value]:
        """The values from which the replacement is computed."""
        seen: set[Value] = set()
        queue = [self.replacement]
        while queue:
            value = queue.pop()
            if value not in seen:
                seen.add(value)
                yield value
                queue += value.node.inputs if not value.is_block_input else ()

    def steps(self) -> list[Node]:
        """The nodes that compute the replacement, in order, including those of the pattern."""
        needed = set(self.needed())
        return [node for node in self.operators if not needed.isdisjoint(node.outputs)]

    def problem(self) -> str:
        """Why the rule is wrong: inputs on which its sides differ in value, dtype, shape or the sign of a zero; empty if there are none."""
        from irtool.interpret import run
        from irtool.ops.made_inputs import NoInputs, input_sets

        before, after = (side(self.graph, place) for place in (0, 1))
        count = 0
        try:
            for dtypes in DTYPES:
                for inputs in input_sets(before, 0, dtypes):
                    try:
                        (expected,) = run(before, inputs)
                    except Error:
                        continue        # an assert, or operands of shapes that do not fit
                    count += 1
                    try:
                        (actual,) = run(after, inputs)
                    except Error as error:
                        return f"of {described(before, inputs)} it gives no result: {error.message}"
                    reason = unequal(actual, expected)
                    if reason:
                        return f"of {described(before, inputs)} it gives {reason}"
        except NoInputs as error:
            return f"it cannot be tried: {error}"
        return "" if count else "it cannot be tried: its left side ran on no inputs"


def side(graph: Graph, place: int) -> Graph:
    """The rule as a function that returns one side."""
    copy = clone_graph(graph)
    copy.block.set_outputs([copy.outputs[0].node.inputs[place]])
    return copy


def described(graph: Graph, inputs: list[Any]) -> str:
    """The inputs, for a message."""
    shown = [f"{value.name.partition('.')[0]}: {each.dtype}{list(each.shape)}" if hasattr(each, "dtype")
             else f"{value.name.partition('.')[0]}={each!r}" for value, each in zip(graph.inputs, inputs, strict=True)]
    return ", ".join(shown)


def unequal(actual: Any, expected: Any) -> str:
    """The difference of a result, apart from rounding; empty if there is none."""
    from irtool.ops.array_library import np

    if type(actual) is not type(expected):
        return f"a {type(actual).__name__} instead of a {type(expected).__name__}"
    if not isinstance(expected, np.ndarray):
        return "" if actual == expected or actual != actual and expected != expected else f"{actual} instead of {expected}"
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    with np.errstate(all="ignore"):
        exact = expected.dtype.kind in "biu"
        tolerance = 0 if exact else 8 * np.finfo(expected.dtype).eps
        wrong = ~np.isclose(actual, expected, tolerance, 0, equal_nan=not exact)
        if expected.dtype.kind == "f":
            wrong |= (expected == 0) & (np.signbit(actual) != np.signbit(expected))
    if not wrong.any():
        return ""
    index = tuple(int(each) for each in np.argwhere(wrong)[0])
    return f"{actual[index]} instead of {expected[index]}" + (f" at {list(index)}" if index else "")


def equal_constants(one: Any, other: Any) -> bool:
    """Are two constants equal, including types and signs?"""
    return other is not NOT_CONSTANT and type(one) is type(other) and repr(one) == repr(other)


# -- asserts, decided by types
def decided(condition: Value, bindings: dict[Value, Value]) -> bool:
    """Do types imply that a condition holds?"""
    return fact(condition, bindings) is True


def fact(value: Value, bindings: dict[Value, Value]) -> object:
    """The value of a rule's value, if types determine it; else NOT_CONSTANT."""
    known = constant(value)
    if known is not NOT_CONSTANT:
        return known
    node = value.node
    if value.is_block_input:
        return constant(bindings[value])
    tensor = bindings.get(node.inputs[0]) if node.inputs else None
    type = tensor.type if tensor is not None else None
    if isinstance(type, TensorType) and node.kind in ANSWERS:
        return answer(node, type, lambda value: fact(value, bindings))
    operands = [fact(each, bindings) for each in node.inputs]
    if NOT_CONSTANT in operands:
        return NOT_CONSTANT
    if node.kind in ("aten::eq", "aten::ne"):
        return (operands[0] == operands[1]) is (node.kind == "aten::eq")
    return not operands[0] if node.kind == "aten::__not__" else NOT_CONSTANT


# -- files
STANDARD = str(Path(__file__).parent / "standard_rules.py")
"""The file of irtool's own rules."""


@lru_cache(maxsize=32)
def read_rules(text: str, name: str, is_checked: bool) -> tuple[RewriteRule, ...]:
    """The rules of a text, in order. is_checked: both sides of each are run on inputs made from their types, including corner values.

    Raises ParseError, or Error for a function that is no rule, and for a rule that is wrong.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = []       # the front end reports the error
    lines = text.split("\n")
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):       # imports for editors; TorchScript knows the names
            lines[node.lineno - 1:node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    graphs = compile_source("\n".join(lines), filename=name).graphs
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    rules = [RewriteRule(graph, each) for graph, each in zip(graphs, names, strict=True) if not each.startswith("_")]
    for rule in rules if is_checked else ():
        problem = rule.problem()
        if problem:
            raise Error(f"{name}: the rule '{rule.name}' changes results: {problem}", code="E0310")
    return tuple(rules)
