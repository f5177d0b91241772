"""The same programs under the same transformations agree with torch.func, whose results are recorded."""
from __future__ import annotations

import numpy as np
import pytest
from func_programs import PROGRAMS, RECORDED, leaves

import irtool
from irtool.dispatch.tracer import trace


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORDED) as archive:
        return dict(archive)


@pytest.mark.parametrize("name", PROGRAMS)
def test_transformations_agree_with_torch_func(name, recorded):
    model, make, args = PROGRAMS[name]
    function = make(irtool, lambda *given: model(irtool.torch, *given))
    found = leaves(function(*args))
    for place, leaf in enumerate(found):
        np.testing.assert_allclose(leaf, recorded[f"{name} {place}"], rtol=1e-6, atol=1e-9)
    assert f"{name} {len(found)}" not in recorded
    if not name.endswith(("grad of vmap of grad", "hessian")):       # one of each kind is enough for the graph
        for one, other in zip(irtool.run(trace(function, args), args), found, strict=True):
            np.testing.assert_array_equal(one, other)
