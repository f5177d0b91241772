"""`linear` with biases of any sizes: torch takes a bias that can be added to the product of two matrices, or into the result."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import irtool
from irtool.ops.samples.draw import call, real
from irtool.testing.formulas import check_formula

INPUTS = (3,), (2, 3), (2, 2, 3), (1, 3), (0, 3), (2, 1, 2, 3), (1, 2, 3)
BIASES = ((4,), (1,), (), (1, 4), (2, 4), (4, 1), (1, 1), (2, 1), (2, 2, 4), (1, 2, 4), (1, 1, 4), (2, 1, 2, 4), (1, 1, 1, 1), (5,), (3,))


def size(torch, sizes):
    """The size of the result; None for a refusal."""
    try:
        return tuple(torch.nn.functional.linear(*[torch.ones(each) for each in sizes]).shape)
    except (RuntimeError, irtool.Error):
        return None


@pytest.mark.oracle
def test_what_is_taken() -> None:
    torch = pytest.importorskip("torch")
    for sizes in itertools.product(INPUTS, ((4, 3), (1, 3), (3,)), BIASES):
        assert size(irtool.torch, sizes) == size(torch, sizes), sizes


@pytest.mark.parametrize(("input", "bias"), [((3,), (4,)), ((2, 3), (2, 1)), ((2, 2, 3), (1, 4)),
                                             ((2, 2, 3), (2, 4)), ((2, 2, 3), (2, 2, 4)), ((2, 2, 3), (1,)), ((3,), ())])
def test_gradients(input: tuple[int, ...], bias: tuple[int, ...]) -> None:
    assert check_formula("aten::linear", call(real(*input), real(4, 3), real(*bias))) == []


@pytest.mark.parametrize("sizes", list(itertools.product(INPUTS, ((4, 3), (1, 3)), BIASES)))
def test_plans_take_what_the_interpreter_takes(sizes: tuple[tuple[int, ...], ...]) -> None:
    graph = irtool.parse("graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %0 : Tensor = aten::linear(%x, %w, %b)\n"
                         "  %1 : Tensor = aten::relu(%0)\n  return (%1)\n").graph()
    inputs = [np.ones(each, np.float32) for each in sizes]
    executor = irtool.compile(graph)

    def outcome(run):
        try:
            return run(inputs)[0].shape
        except irtool.Error:
            return None
    expected = outcome(lambda values: irtool.run(graph, values))
    for _ in range(3):
        assert outcome(executor.run) == expected
