"""Programs that write into what they make agree with torch.func under every transformation, and traced; its results are recorded."""
from __future__ import annotations

import numpy as np
import pytest
from buffer_programs import PROGRAMS, RECORDED, WAYS, XS, of_torch

import irtool
from irtool import dispatch

FOUND = dict(np.load(RECORDED))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_torch_func(name: str) -> None:
    f = PROGRAMS[name]
    assert f"{name} value" in FOUND
    for way, run in WAYS.items():
        wanted = FOUND.get(f"{name} {way}")
        if wanted is None:      # torch refuses
            continue
        found = np.asarray(run(dispatch, irtool.torch, f, lambda array: irtool.Tensor(array.copy())))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8, err_msg=way)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_is_a_loop_and_a_trace_is_what_it_traces(name: str) -> None:
    def f(x: object) -> object:
        return PROGRAMS[name](irtool.torch, x)

    def slope(x: object) -> object:
        return irtool.grad(lambda x: (f(x) ** 2).sum())(x)
    for function in (f, slope):
        rows = np.stack([np.asarray(function(irtool.Tensor(x.copy()))) for x in XS])
        np.testing.assert_allclose(np.asarray(irtool.vmap(function)(XS.copy())), rows, rtol=1e-9, atol=1e-12)
    jitted = irtool.jit(slope)
    for x, row in zip(XS, rows, strict=True):
        np.testing.assert_allclose(np.asarray(jitted(x.copy())), row, rtol=1e-9, atol=1e-12)


@pytest.mark.oracle
def test_the_record_is_what_torch_func_says() -> None:
    found = of_torch()
    assert found.keys() == FOUND.keys()
    for key, value in found.items():
        np.testing.assert_allclose(value, FOUND[key], rtol=1e-6, atol=1e-9, err_msg=key)
