"""Random nestings of transformations over random programs agree with torch.func, whose results are recorded; traced, they are the same."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
from func_nestings import RECORDED, SEEDS, Maker

import irtool
from irtool import dispatch
from irtool.dispatch.tracer import TraceWarning, trace


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORDED) as archive:
        return dict(archive)


@pytest.mark.parametrize("seed", SEEDS)
def test_nestings_agree_with_torch_func(seed, recorded):
    maker = Maker(seed)
    function = maker.transformed(dispatch, irtool.torch, irtool.Tensor)
    found = np.asarray(function(*map(irtool.Tensor, maker.args)))
    wanted = recorded[str(seed)]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10, err_msg=repr(maker))
    if seed % 3 == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceWarning)
            graph = trace(function, maker.args)
        np.testing.assert_array_equal(irtool.run(graph, maker.args)[0], found, err_msg=repr(maker))


@pytest.mark.parametrize("seed", [*SEEDS[1::6], 60, 65])
def test_the_graph_of_a_nesting_has_the_gradients_that_a_tape_has(seed):
    maker = Maker(seed)
    function = maker.transformed(dispatch, irtool.torch, irtool.Tensor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        graph = trace(function, maker.args)
    irtool.verify(graph)
    result, back = dispatch.vjp(function, *maker.args)
    seeds = np.cos(np.arange(np.asarray(result).size)).reshape(result.shape)
    for found, wanted in zip(irtool.vjp(graph, maker.args, [seeds], [0, 1]), back(seeds), strict=True):
        wanted = np.asarray(wanted)
        np.testing.assert_allclose(np.zeros_like(wanted) if found is None else found, wanted, rtol=1e-9, atol=1e-12, err_msg=repr(maker))
