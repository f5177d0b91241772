"""A question about a tensor (its dtype, its number of dimensions) raises the error of the operator that makes it, in each way to run.

Types answer such questions, so the operator could be left out: the first run raised, and the compiled ones answered.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irtool

ONES, MATRIX, CUBE = np.ones(2), np.ones((2, 3)), np.ones((2, 2, 2))
FAILING = {
    "x.view(5)": ONES, "x + torch.ones(3)": ONES, "torch.cat([x, torch.ones(3, 3)])": ONES, "x.narrow(0, 1, 5)": ONES,
    "x.permute(0, 1)": ONES, "x.transpose(0, 1)": ONES, "x.unsqueeze(4)": ONES, "x[5]": ONES, "x.t()": CUBE, "-x": np.array([True]),
    "x & 1": ONES, "x.mean()": np.ones(2, np.int64), "torch.mm(x, x)": MATRIX, "torch.max(x, 3)[0]": ONES, "x.expand(3, 5)": ONES,
    "torch.softmax(x, 3)": ONES, "x.view(5).relu() * 2": ONES, "x.view(5).type_as(x)": ONES, "x.reshape(-1, 0)": ONES,
    "torch.zeros(-1)": ONES, "torch.conv2d(x, x)": ONES,
}
QUESTIONS = ("({}).dtype", "({}).dim()", "len(({}).shape)", "({}).is_floating_point()", "({}).device", "({}).size()",
             "x if ({}).dim() == 1 else x + 1")
SOUND = {
    "x.relu().dtype": (ONES, 7), "(x * 2).dim()": (ONES, 1), "x.t().dim()": (MATRIX, 2), "x.sum().dim()": (ONES, 0),
    "x.view(5) is None": (ONES, False), "x.transpose(0, -1).dim()": (CUBE, 3), "(x + x).dtype": (ONES, 7),
}


def ways(source: str, x: Any) -> Iterator[Any]:
    """What each way to run gives; the class of the error if it raises one."""
    module = irtool.from_script("import torch\n" + source, "f")
    runs = [lambda: irtool.run(module, [x], interpret=True), *[lambda: irtool.run(module, [x])] * 3]
    for options in ({}, {"optimize": False}, {"profiling": True}):
        runs += [irtool.compile(module, **options)] * 3         # type: ignore[arg-type]
    for run in runs:
        try:
            yield run()[0] if run.__class__.__name__ == "function" else run(x)[0]       # type: ignore[call-arg, operator]
        except irtool.Error as error:
            yield type(error).__name__


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("operator", FAILING)
def test_the_error_is_raised_in_each_way(operator: str, question: str) -> None:
    source = f"def f(x: torch.Tensor):\n    return {question.format(operator)}\n"
    assert set(ways(source, FAILING[operator])) == {"RunError"}


@pytest.mark.parametrize("expression", SOUND)
def test_what_cannot_fail_is_answered_by_types(expression: str) -> None:
    x, expected = SOUND[expression]
    source = f"def f(x: torch.Tensor):\n    return {expression}\n"
    assert all(each == expected for each in ways(source, x))
    graph = irtool.compile(irtool.from_script("import torch\n" + source, "f")).plan_for(x).graph
    assert [node.kind for node in graph.block] == ["prim::Constant"]


def test_a_question_about_what_the_result_needs_is_answered_by_types() -> None:
    source = "import torch\ndef f(x: torch.Tensor):\n    y = x.view(3, 2)\n    return y.t() if y.dim() == 2 else y + 1\n"
    kinds = [node.kind for node in irtool.compile(irtool.from_script(source, "f")).plan_for(MATRIX).graph.walk()]
    assert "prim::If" not in kinds and "aten::dim" not in kinds


def test_errors_of_dead_code_are_not_seen() -> None:
    """As in torch, in plans."""
    run = irtool.compile(irtool.from_script("import torch\ndef f(x: torch.Tensor):\n    y = x.view(5)\n    return x\n", "f"))
    assert run(ONES)[0].tolist() == [1, 1]
