"""Laws of the layers over every formula's samples: gradients by tape are those of `differentiate`, nest, and batch."""
from __future__ import annotations

import re

import numpy as np
import pytest

from irtool.dispatch import Autograd, Batched, current
from irtool.dispatch.batching import find
from irtool.dispatch.graphs import function_of
from irtool.dispatch.stack import pushed
from irtool.execute.gradients import Differentiated
from irtool.ir.effects import facts_of
from irtool.ir.errors import Error
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.tensor import Tensor, unwrapped, wrapped
from irtool.testing.formulas import Trial
from irtool.testing.gradcheck import flattened

DECIDES = frozenset(f"aten::{name}" for name in "cumprod linalg_det det _linalg_det".split())
"""Formulas that decide by elements."""
LIMITS = "is not supported where|running statistics|without N"
"""What a rule says that does not take everything batched."""


def samples():
    """Each sample of each operator with a formula."""
    for name in OPS:
        op = OPS[name]
        if name in op.formulas:
            for place, call in enumerate((op.samples or {}).get(name, ())):
                yield pytest.param(name, call, id=f"{name.removeprefix('aten::')}-{place}")


def leaves_of(value):
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves_of(each)]
    return [value]


def by_tape(trial, inputs, cotangents, create_graph=False):
    """Gradients of a trial's graph for its `wrt`, by a tape on the layer on top. Inputs are tensors of that layer."""
    tape = Autograd(current(), create_graph=create_graph)
    given = [tape.variable(each) if place in trial.wrt else each for place, each in enumerate(inputs)]
    with pushed(tape), seeded(0):
        outputs = leaves_of(function_of(trial.graph)(*given))
    seeds = [None if seed is None else wrapped(seed) for seed in cotangents]
    found = tape.gradients(outputs, seeds, [given[place] for place in trial.wrt])
    return found


def same(found, wanted, tolerance=1e-9):
    if wanted is None or found is None:
        rest = found if wanted is None else wanted
        assert rest is None or not np.any(rest)
        return
    assert found.shape == wanted.shape
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


def prepared(name, call):
    trial = Trial(name, call)
    cotangents = [leaf for leaf in trial.cotangents]
    return trial, [wrapped(each) for each in trial.inputs], cotangents


@pytest.mark.parametrize(("name", "call"), list(samples()))
def test_a_tape_gives_the_gradients_of_differentiate(name, call):
    if "(a!)" in OPS[name].schemas[OPS[name].names.index(name)]:
        pytest.skip("writes into its operands: in place on a variable, below")
    if name == "prim::awaitable_nowait":
        pytest.skip("its result is no tensor, and has no cotangent")
    trial, inputs, cotangents = prepared(name, call)
    wanted = Differentiated(trial.graph, trial.wrt, trial.inputs).gradients(trial.inputs, trial.cotangents, 0)
    found = [None if each is None else unwrapped(each) for each in by_tape(trial, inputs, cotangents)]
    for one, other in zip(found, wanted, strict=True):
        for a, b in zip(flattened(one) if isinstance(one, list) else [one], flattened(other) if isinstance(other, list) else [other],
                        strict=True):
            same(a, b)


@pytest.mark.parametrize(("name", "call"), list(samples()))
def test_batched_gradients_are_looped_gradients(name, call):
    kind = name.partition(".")[0]
    if find(name) is None or "!)" in OPS[name].schemas[OPS[name].names.index(name)] or kind in DECIDES:
        pytest.skip("no batching rule, or it writes, or it decides by elements")
    if facts_of(kind).is_random or "rrelu" in name:
        pytest.skip("other random numbers in each place")
    trial, inputs, cotangents = prepared(name, call)
    if any(isinstance(trial.inputs[place], list) for place in trial.wrt):
        pytest.skip("lists")
    factors = (1.0, 1.03)
    layer = Batched(current(), len(factors), randomness="different")
    batched = [layer.box(Tensor(np.stack([each * f for f in factors]))) if place in trial.wrt else wrapped(each)
               for place, each in enumerate(trial.inputs)]
    with pushed(layer):
        try:
            found = by_tape(trial, batched, cotangents)
        except Error as error:
            if re.search(LIMITS, error.message):
                pytest.skip(error.message)
            raise
        found = [None if each is None else unwrapped(layer.whole(each)) for each in found]
    for row, factor in enumerate(factors):
        single = [Tensor(np.asarray(each * factor)) if place in trial.wrt else wrapped(each) for place, each in enumerate(trial.inputs)]
        wanted = [None if each is None else unwrapped(each) for each in by_tape(trial, single, cotangents)]
        for one, other in zip(found, wanted, strict=True):
            same(None if one is None else one[row], other)
