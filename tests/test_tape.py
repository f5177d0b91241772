"""Laws of the layers over every formula's samples: gradients by tape are those of `differentiate`, nest, and batch."""
from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import irtool
from irtool.dispatch import Autograd, Batched, current
from irtool.dispatch.batch_rules import rule_of
from irtool.dispatch.batched import draws as draws_numbers
from irtool.dispatch.graph_functions import function_of, tape_gradients
from irtool.dispatch.stack import pushed
from irtool.dispatch.tracer import TraceWarning, trace
from irtool.execute.graph_gradients import Differentiated
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.structure_kinds import MOVERS
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.batching.batch_dim import pointwise
from irtool.ops.formula import refused_arguments
from irtool.ops.structure import STRUCTURE
from irtool.ops.tensor import Tensor, unwrapped, wrapped
from irtool.testing.finite_differences import drawn, flattened
from irtool.testing.formulas import Trial
from tests.laws import family, kind, over, overload_samples

STATISTICS = ("aten::native_layer_norm_backward", "aten::native_group_norm_backward")
"""Operators that are given statistics, which must belong to their operand."""
LIMITS = "is not supported where|running_mean or running_var"
"""What a rule says that does not take everything batched."""


SAMPLES = [overload_samples(name) for name in OPS if name in OPS[name].formulas]
"""By overload with a formula, its samples. Laws of layers upon layers take one of them: some laws the first, others the last."""
EVERY = [case for cases in SAMPLES for case in cases]
FIRST = [cases[0] for cases in SAMPLES if cases]
LAST = [cases[-1] for cases in SAMPLES if cases]


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


@over("name, call", EVERY, kind)
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


@over("name, call", LAST, family)
def test_the_gradient_of_one_operand_is_that_among_those_of_all(name, call):
    """A tape computes only the gradients that are needed: the backward half of a formula for some operands gives the bits of the whole."""
    trial, inputs, cotangents = prepared(name, call)
    if len(trial.wrt) < 2 or "(a!)" in OPS[name].schemas[OPS[name].names.index(name)]:
        pytest.skip("one operand has a gradient, or it writes")
    wanted = dict(zip(trial.wrt, by_tape(trial, inputs, cotangents), strict=True))
    for place, expected in wanted.items():
        trial.wrt = [place]
        for one, other in zip(leaves_of(by_tape(trial, inputs, cotangents)), leaves_of([expected]), strict=True):
            assert (one is None) == (other is None)
            np.testing.assert_array_equal(unwrapped(one), unwrapped(other))


@over("name, call", LAST, family)
def test_batched_gradients_are_looped_gradients(name, call):
    if rule_of(name) is None or "!)" in OPS[name].schemas[OPS[name].names.index(name)]:
        pytest.skip("no batching rule, or it writes")
    if draws(name, call):
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


def floating(trial):
    """Arrays among the inputs that have gradients: [(input, place in its list or None)]."""
    return [(i, j) for i in trial.wrt for j in (range(len(trial.inputs[i])) if isinstance(trial.inputs[i], list) else (None,))]


def gradient_function(trial, inputs, cotangents, places):
    """A function of the arrays at some places of the inputs that gives those gradients of the trial that there are."""
    def gradient(*given):
        args = [list(each) if isinstance(each, list) else each for each in inputs]
        for (i, j), value in zip(places, given, strict=True):
            if j is None:
                args[i] = value
            else:
                args[i][j] = value
        return [each for each in leaves_of(by_tape(trial, args, cotangents)) if each is not None]
    return gradient


def arrays_of(trial, places):
    return [trial.inputs[i] if j is None else trial.inputs[i][j] for i, j in places]


def draws(name, call):
    return draws_numbers(name, call.arguments(OPS[name].schemas[OPS[name].names.index(name)])) or "rrelu" in name


@over("name, call", FIRST, family)
def test_a_traced_gradient_is_the_gradient_and_nested_tapes_give_its_gradients(name, call):
    """The tape under a tracer makes a graph; `differentiate` of that graph is what a tape on top of the tape gives."""
    if "!)" in OPS[name].schemas[OPS[name].names.index(name)] or draws(name, call):
        pytest.skip("writes into its operands, or draws random numbers")
    if name == "prim::awaitable_nowait":
        pytest.skip("its result is no tensor")
    trial, inputs, cotangents = prepared(name, call)
    places = floating(trial)
    gradient = gradient_function(trial, inputs, cotangents, places)
    arrays = arrays_of(trial, places)
    direct = [unwrapped(each) for each in gradient(*map(Tensor, arrays))]
    if not direct:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        graph = trace(gradient, arrays)
    for found, wanted in zip(irtool.run(graph, arrays), direct, strict=True):
        np.testing.assert_array_equal(found, wanted)
    outer = Autograd(current())
    variables = [outer.variable(Tensor(each)) for each in arrays]
    try:
        with pushed(outer):
            first = gradient(*variables)
        random = np.random.default_rng(0)
        seeds = [drawn(each, random) for each in direct]
        nested = outer.gradients(first, [Tensor(each) for each in seeds], variables)
        wanted = Differentiated(graph, range(len(arrays)), arrays).gradients(arrays, seeds, 0)
    except UnsupportedError as error:
        assert "gradient of" in error.message
        pytest.skip(error.message)
    for found, other in zip(nested, wanted, strict=True):
        same(None if found is None else unwrapped(found), other, 1e-8)


@over("name, call", FIRST, family)
def test_gradients_of_a_batch_are_looped_gradients(name, call):
    """The tape below the batch: each place has the gradients it has alone."""
    kind = name.partition(".")[0]
    if rule_of(name) is None or "!)" in OPS[name].schemas[OPS[name].names.index(name)] or draws(name, call):
        pytest.skip("no batching rule, or it writes, or draws random numbers")
    trial, inputs, cotangents = prepared(name, call)
    if any(isinstance(each, list) for each in trial.inputs) or name in ("prim::awaitable_nowait", "aten::as_strided_scatter"):
        pytest.skip("lists; a result that is no tensor; torch's gradient of a scatter is not the slope, and a batch has the slope")
    factors = (1.0, 1.0) if kind in STATISTICS else (1.0, 1.03)
    tape = Autograd(current())
    batched = {place: tape.variable(Tensor(np.stack([trial.inputs[place] * f for f in factors]))) for place in trial.wrt}
    with pushed(tape):
        layer = Batched(current(), len(factors))
        with pushed(layer):
            try:
                outputs = leaves_of(function_of(trial.graph)(*[layer.box(batched[place]) if place in batched else each
                                                               for place, each in enumerate(inputs)]))
            except Error as error:
                if re.search(LIMITS, error.message):
                    pytest.skip(error.message)
                raise
        outputs = [layer.whole(each) if isinstance(each, Tensor) else each for each in outputs]
    seeds = [None if seed is None else Tensor(np.stack([seed] * len(factors))) for seed in cotangents]
    together = tape.gradients(outputs, seeds, list(batched.values()))
    for row, factor in enumerate(factors):
        single = [Tensor(np.asarray(each * factor)) if place in trial.wrt else wrapped(each) for place, each in enumerate(trial.inputs)]
        wanted = by_tape(trial, single, cotangents)
        for one, other in zip(together, wanted, strict=True):
            same(None if one is None else unwrapped(one)[row], None if other is None else unwrapped(other))


def test_pieces_without_a_gradient_count_as_zeros() -> None:
    """Of several results in a list only one goes on."""
    x = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(np.asarray(irtool.grad(lambda x: x.unbind(0)[1].sum())(x)), [[0, 0], [1, 1], [0, 0]])
    assert np.array_equal(np.asarray(irtool.grad(lambda x: (x.chunk(2)[1] * 2).sum())(x)), [[0, 0], [0, 0], [2, 2]])
    assert np.array_equal(np.asarray(irtool.grad(lambda x: irtool.grad(lambda y: (y.unbind(0)[1] ** 3).sum())(x).sum())(x)),
                          [[0, 0], [12, 18], [0, 0]])


def broadcasting():
    """Pointwise operators of several tensors, with a sample and the operand that is to have one more dimension."""
    for name in OPS:
        op = OPS[name]
        if name in op.formulas and rule_of(name) is pointwise and op.samples:
            call = next(iter(op.samples.get(name, ())), None)
            args = call.arguments(op.schemas[op.names.index(name)]) if call is not None else []
            places = [place for place, arg in enumerate(args) if isinstance(arg, np.ndarray)]
            for place in places if len(places) > 1 else ():
                yield pytest.param(name, args, place, id=f"{name.removeprefix('aten::')}-{place}")


@over("name, args, place", broadcasting(), family)
def test_gradients_of_operands_that_broadcast_have_their_shapes(name, args, place):
    """One operand is batched, the others are the same for all places: so a batch runs pointwise operators."""
    tape = Autograd(current())
    rank = max(arg.ndim for arg in args if isinstance(arg, np.ndarray))
    more = np.stack([args[place]] * 2).reshape(2, *[1] * (rank - args[place].ndim), *args[place].shape)
    given = [Tensor(more if i == place else arg) if isinstance(arg, np.ndarray) else arg for i, arg in enumerate(args)]
    variables = [tape.variable(each) if isinstance(each, Tensor) and each.array.dtype.kind in "fc" and i not in refused_arguments(name)
                 else each for i, each in enumerate(given)]
    with pushed(tape):
        results = leaves_of(tape.apply(name, list(variables)))
    wanted = [each for each in variables if tape.owns(each)]
    kept = [each for each in results if tape.owns(each)]
    for found, each in zip(tape.gradients(kept, [Tensor(np.ones_like(unwrapped(one.value))) for one in kept], wanted), wanted, strict=True):
        assert found is None or found.shape == each.shape


def test_chunks_of_a_constant_number_have_gradients() -> None:
    graph = irtool.parse("graph(%x : Tensor):\n  %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=0](%x)\n"
                         "  %y : Tensor = aten::mul(%a, %b)\n  return (%y)\n").graph()
    (found,) = tape_gradients(graph, [np.arange(4.0)], [0], [np.ones(2)])
    assert np.array_equal(found, [2, 3, 0, 1])


@pytest.mark.parametrize("kind", [kind for kind in STRUCTURE if kind not in MOVERS])
def test_no_kind_loses_a_gradient_without_a_word(kind: str) -> None:
    """A kind that computes elements of tensors outside of operators is known to layers, or refused."""
    graph = irtool.parse(f"graph(%x : Tensor):\n  %y : Tensor = {kind}(%x)\n  return (%y)\n").graph()
    x = np.arange(4.0)
    try:
        (result,) = irtool.run(graph, [x], interpret=True)
        if not isinstance(result, np.ndarray) or result.dtype.kind != "f":
            return
        (found,) = tape_gradients(graph, [x], [0], [np.ones_like(result)])
    except (irtool.Error, KeyError, IndexError, TypeError, ValueError):
        return
    assert found is not None or kind == "prim::data"
