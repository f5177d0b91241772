"""Pipelines of passes: what a graph gives stays, types say what is so, the verifier is content; `a,b` is `a` and then `b`, byte for byte;
a pass that promises so changes nothing the second time; and what executors, too, make of the result is the same.
"""
from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import irtool
from fuzz import programs
from fuzz.case import Case
from fuzz.judge import Outcome, Skip, Wrong, agree, outcome
from fuzz.programs import compile_source
from fuzz.source import Style, program
from fuzz.values import copied, other_values, value_of
from irtool.interpret import Observer
from irtool.ir.graph import Node
from irtool.ir.types import TensorType

INTEGERS = re.compile(r"( : int = aten::(?:add|mul)\()(%[\w.]+), (%[\w.]+)\)")
"""A sum or product of two integers, in text."""

OTHERWISE = ("erase-number-types", "vmap", "differentiate", "pack-gradient", "unpack-gradient", "check-inplace", "specialize-undef")
"""Passes that are to change what a graph takes or gives, or that take other graphs."""
OPTIONED = ("create-autodiff-subgraphs{threshold=1}", "fuse{threshold=1}", "inline{groups}", "O1", "O2", "propagate-shapes,O1",
            "inline-autodiff-subgraphs{threshold=100}", "propagate-shapes,peephole")
TYPES = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "bool": "Bool", "uint8": "Byte",
         "complex64": "ComplexFloat"}


def steps() -> list[str]:
    """Passes that keep what a graph gives, some with options."""
    return [entry.name for entry in irtool.PASSES if entry.name not in OTHERWISE] + list(OPTIONED)


def draw(seed: int) -> Case:
    """A program, compiled; the types of its inputs may be complete; five passes."""
    rng = random.Random(seed)
    drawn = program(seed, Style(compiled=True, grad=rng.random() < 0.2, most=10))
    pipeline = [rng.choice(steps()) for _ in range(5)]
    options = {"pipeline": ",".join(pipeline)}
    if rng.random() < 0.5:
        options["typed"] = "yes"
    return Case("pipelines", drawn.source, drawn.inputs, options)


class Types(Observer):
    """Compares each result with what its type says."""

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for value, result in zip(node.outputs, results, strict=True):
            said = value.type
            if isinstance(said, TensorType) and isinstance(result, np.ndarray):
                if said.dtype not in (None, result.dtype.name):
                    raise Wrong("types", f"the type of {node.kind} is {said}, the result of {result.dtype}")
                if said.sizes is not None and (len(said.sizes) != result.ndim or any(
                        size not in (None, real) for size, real in zip(said.sizes, result.shape))):
                    raise Wrong("types", f"the type of {node.kind} is {said}, the result of shape {result.shape}")


def check(case: Case, tally: Counter[str]) -> None:
    """All of it. Raises Wrong, Skip."""
    text, sets, wants = original(case, tally)
    pipeline = case.options["pipeline"]
    changed = apply(pipeline, text)
    if changed[0] == "refused":
        tally[f"refused: {changed[1]}"] += 1
        raise Skip("refused")
    if changed[0] == "error":
        raise Wrong("passes", f"error: {changed[1]}")
    check_results(changed[1], sets, wants, tally)
    check_cuts(pipeline, text, str(changed[1]))
    check_again(pipeline, str(changed[1]))


def original(case: Case, tally: Counter[str]) -> tuple[str, list[list[Any]], list[Outcome]]:
    """The graph of a case as text, two sets of inputs, and what the reference makes of each. Raises Skip where it raises."""
    values = [value_of(literal) for literal in case.inputs.values()]
    text = str(compile_source(case.text, tally))
    if "typed" in case.options:
        text = typed(text, values)
    sets = [values, other_values(values)]
    module = irtool.parse(text)
    wants = [outcome(lambda each=each: irtool.run(module, each, interpret=True)) for each in sets]  # type: ignore[misc]
    if wants[0][0] != "value":
        raise Skip("the reference raises")
    return text, sets, [(kind, copied(value)) for kind, value in wants]


def typed(text: str, values: list[Any]) -> str:
    """The text with complete types for the inputs that are tensors."""
    head, newline, body = text.partition("):\n")
    parameters = head.split(" : ")
    for place, value in enumerate(values):
        if isinstance(value, np.ndarray) and parameters[place + 1].startswith("Tensor"):
            strides = [step // value.itemsize for step in np.empty(value.shape, value.dtype).strides]
            sizes = "".join(f"{size}, " for size in value.shape)
            kind = f"{TYPES[value.dtype.name]}({sizes}strides={strides}, requires_grad=0, device=cpu)"
            parameters[place + 1] = kind.replace("strides=[], ", "") + parameters[place + 1][len("Tensor"):]
    return " : ".join(parameters) + newline + body


def apply(pipeline: str, text: str) -> Outcome:
    """The module after the passes, verified after each."""
    return outcome(lambda: irtool.PassManager(pipeline, verify=True).run(irtool.parse(text)))


def check_results(changed: Any, sets: list[list[Any]], wants: list[Outcome], tally: Counter[str]) -> None:
    """The reference with an eye on types, the text read again, and plans. Raises Wrong."""
    for values, want in zip(sets, wants):
        tally["ways"] += 1
        agree(outcome(lambda: irtool.run(changed, values, interpret=True, observer=Types())), want, "changed")  # noqa: B023
    again = irtool.parse(str(changed))
    if str(again) != str(changed):
        raise Wrong("text", "the text is not printed back")
    executor = irtool.compile(changed, native=False)
    for values, want in [*zip(sets, wants)] * 2:
        tally["ways"] += 2
        agree(outcome(lambda: irtool.run(again, values)), want, "read again and run")  # noqa: B023
        agree(outcome(lambda: executor.run(values)), want, "changed and planned")  # noqa: B023


def check_cuts(pipeline: str, text: str, want: str) -> None:
    """Passes one by one, through text in between. Raises Wrong."""
    for step in pipeline.split(","):
        kind, module = apply(step, text)
        if kind != "value":
            raise Wrong("one by one", f"{kind}: {module}, not so in one pipeline")
        text = str(module)
    if text != want:
        lines = [(one, other) for one, other in zip(text.split("\n"), want.split("\n")) if one != other]
        raise Wrong("one by one", "another text: " + " where the whole pipeline gives ".join(lines[0] if lines else ("shorter", "longer")))


def in_one_order(text: str) -> str:
    """Sums and products of two integers with their operands in order: peephole turns round two that are constants in each run, as torch's
    does, and says that it changed nothing."""
    return INTEGERS.sub(lambda sum: sum[1] + ", ".join(sorted((sum[2], sum[3]))) + ")", text)


def check_again(pipeline: str, text: str) -> None:
    """The last pass once more, where it promises to change nothing then. Raises Wrong."""
    last = pipeline.rpartition(",")[2]
    entry = next((each for each in irtool.PASSES if each.name == last.partition("{")[0]), None)
    if entry is None or entry.repeats:
        return
    kind, module = apply(last, text)
    if kind != "value" or in_one_order(str(module)) != in_one_order(text):
        raise Wrong("second run", f"{last.partition('{')[0]} changes something again")


def smaller(case: Case) -> Iterator[Case]:
    """Fewer passes; then as programs are made smaller."""
    parts = case.options["pipeline"].split(",")
    if len(parts) > 1:
        for place in range(len(parts)):
            yield case.with_option("pipeline", ",".join(parts[:place] + parts[place + 1:]))
    yield from programs.smaller(case)
