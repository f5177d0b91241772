"""A group whose nodes write into its operands: every pass, and every way to run and to differentiate, sees the writes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

X = np.array([1.0, 2.0, 0.5])
ONCE = """graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::sin(%x)
   = prim::Print(%one)
   = prim::DifferentiableGraph_0(%y, %x)
  %z : Tensor = aten::mul(%y, %x)
  return (%z)
with prim::DifferentiableGraph_0 = graph(%a : Tensor, %b : Tensor):
  %c : Tensor = aten::mul_(%a, %b)
  return ()
"""
TWICE = ONCE.replace("(%y, %x)\n  %z", "(%y, %x)\n   = prim::DifferentiableGraph_1(%y, %x)\n  %z") + \
    ONCE[ONCE.index("with"):].replace("_0", "_1")
VIEWED = ONCE.replace("  %c : Tensor = aten::mul_(%a, %b)\n", """  %zero : int = prim::Constant[value=0]()
  %v : Tensor = aten::select(%a, %zero, %zero)
  %c : Tensor = aten::exp_(%v)
""")
SIN, COS = np.sin(X), np.cos(X)
FIRST = np.array([True, False, False])
GRAPHS = {
    "once": (ONCE, SIN * X * X, COS * X * X + 2 * SIN * X),
    "twice": (TWICE, SIN * X**3, COS * X**3 + 3 * SIN * X**2),
    "viewed": (VIEWED, np.where(FIRST, np.exp(SIN), SIN) * X, np.where(FIRST, np.exp(SIN) * (1 + COS * X), SIN + COS * X)),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda g: irtool.vjp(g, [X], [np.ones(3)], [0])[0],
    "interpret": lambda g: irtool.vjp(g, [X], [np.ones(3)], [0], interpret=True)[0],
    "executor": lambda g: irtool.compile(g).vjp([X], [np.ones(3)], [0])[0],
    "unoptimised": lambda g: irtool.compile(g, optimize=False).vjp([X], [np.ones(3)], [0])[0],
    "layers": lambda g: irtool.torch.func.vjp(g, irtool.Tensor(X))[1](irtool.torch.ones(3, dtype=irtool.torch.float64))[0].array,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GRAPHS)
def test_gradients_see_the_write(name: str, way: str) -> None:
    text, _, gradient = GRAPHS[name]
    np.testing.assert_allclose(WAYS[way](irtool.parse(text).graph("graph")), gradient, rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_passes_keep_the_write(name: str) -> None:
    text, result, gradient = GRAPHS[name]
    tried = 0
    for entry in irtool.PASSES:
        module = irtool.parse(text)
        try:
            irtool.PassManager(entry.name, verify=True).run(module)
        except (irtool.PassError, irtool.UnsupportedError):
            continue
        if len(module.names()) == 1:
            for interpret in (True, False):
                np.testing.assert_allclose(irtool.run(module, [X], interpret=interpret)[0], result, rtol=1e-12, err_msg=entry.name)
            np.testing.assert_allclose(irtool.vjp(module, [X], [np.ones(3)], [0])[0], gradient, rtol=1e-12, err_msg=entry.name)
            tried += 1
    assert tried > 30


def test_the_form_of_2018_groups_nothing_that_is_written() -> None:
    text = ONCE.partition("with")[0].replace("   = prim::DifferentiableGraph_0(%y, %x)\n", "  %w : Tensor = aten::mul_(%y, %x)\n")
    module = irtool.parse(text)
    irtool.PassManager("create-autodiff-subgraphs{threshold=1 form=2018}").run(module)
    np.testing.assert_allclose(irtool.vjp(module, [X], [np.ones(3)], [0])[0], GRAPHS["once"][2], rtol=1e-12)
