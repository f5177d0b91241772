"""Calls are taken as torch.func takes them, which is recorded: results, and what is refused."""
from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from func_calls import CALLS, PUBLIC, RECORDED, outcome, shown, signature

import irtool
from irtool import dispatch

FOUND = json.loads(RECORDED.read_text())
OWN = ("unused",)
"""Parameters that torch.func does not have."""


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_torch_func_gives(name):
    wanted = FOUND["calls"][name]
    if wanted == "refused":
        with pytest.raises((irtool.Error, AttributeError)):
            CALLS[name](dispatch, irtool.torch, lambda array: irtool.Tensor(np.asarray(array)))
    else:
        assert shown(CALLS[name](dispatch, irtool.torch, lambda array: irtool.Tensor(np.asarray(array)))) == wanted


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_are_torch_func_s(name):
    assert [each for each in signature(getattr(dispatch, name)) if each[0] not in OWN] == FOUND["signatures"][name]


@pytest.mark.oracle
def test_the_record_is_what_torch_func_says():
    torch = pytest.importorskip("torch")
    func = pytest.importorskip("torch.func")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in CALLS.items():
            assert json.loads(json.dumps(outcome(call, func, torch, torch.tensor))) == FOUND["calls"][name], name


def test_chunks_of_the_same_random_numbers():
    """Every chunk draws the same; different ones differ."""
    x = np.ones((6, 50))
    for randomness, distinct in (("same", 1), ("different", 6)):
        found = np.asarray(irtool.vmap(lambda x: x * irtool.torch.rand([50]), randomness=randomness, chunk_size=2)(x))
        assert len({row.tobytes() for row in found}) == distinct


def test_chunks_under_a_trace_and_a_tape():
    def gradients(x):
        return irtool.grad(lambda x: irtool.vmap(lambda row: (row * row).sum(), chunk_size=2)(x).sum())(x)
    x = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(np.asarray(gradients(x)), 2 * x)
    np.testing.assert_array_equal(irtool.run(irtool.trace(gradients, [x]), [x])[0], 2 * x)


def test_a_function_linearized_once_runs_once():
    runs = []

    def function(x):
        runs.append(1)
        return x.sin() * x
    x = np.array([0.3, 1.2])
    outputs, moved = dispatch.linearize(function, x)
    for direction in np.eye(2):
        np.testing.assert_allclose(np.asarray(moved(direction)), (np.cos(x) * x + np.sin(x)) * direction)
    assert len(runs) == 1 and np.allclose(np.asarray(outputs), np.sin(x) * x)
