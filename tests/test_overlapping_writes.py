"""A write that reads another part of what it writes is refused on every way to run, where torch refuses it; and nowhere else."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

REFUSED = [
    "x[1:].add_(x[:-1])", "x[1:].copy_(x[:-1])", "x.view(2, 2).mul_(x.view(2, 2).t())", "x[1:].lerp_(x[:-1], 0.5)", "x[1:].clamp_(x[:-1])",
    "x[:2].index_add_(0, torch.tensor([0, 1]), x[1:3])", "x[:2].index_put_([torch.tensor([0, 1])], x[:2])", "x[1:] += x[:-1]",
    "x[:2] = x[1:3]", "[x[1:]][0].mul_(x[:-1])", "x.view(2, 2).addcmul_(x.view(2, 2).t(), x.view(2, 2))", "x[1:3].eq_(x[:2])",
    "x[1:3].scatter_(0, torch.tensor([0, 1]), x[:2])", "i = x.long()\n    i[:2].index_fill_(0, i[1:3], 5)\n    x = i + x",
    "i = x.long()\n    i.index_fill_(0, i, 5)\n    x = i + x", "m = x > 0\n    m[1:].masked_fill_(m[:-1], False)\n    x = m * x",
]
"""torch 2.13: "some elements of the input tensor and the written-to tensor refer to a single memory location"."""
TAKEN = [
    "x.add_(x)", "x[1:].sigmoid_()", "x[0].add_(x[1])", "x[::2].add_(x[1::2])", "x[:2].add_(x[2:])", "x[1:].add_(x[0])",
    "x[1:].sub_(x[1:].detach())", "x[1:].masked_fill_(x[:-1] > 0, 1)", "x[1:].fill_(x[0])", "x.view(2, 2)[0].add_(x.view(2, 2)[1])",
    "x[:2].addmv_(x.view(2, 2), x[1:3])", "x[1:].cumsum_(0)",
    "x.index_fill_(0, torch.tensor([1]), x[0])", "x[1:].masked_fill_(x[1:] > 0, x[1])",
    "m = x > 0\n    m.masked_fill_(m, False)\n    x = m * x",
]
WINDOWS = ["x.unfold(0, 3, 1).mul_(2)", "x.as_strided([2, 2], [1, 1]).add_(1)", "x.unfold(0, 2, 1)[:2].sigmoid_()"]
"""torch computes these, element by element in an order that it does not promise."""
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "reference": lambda g, x: irtool.run(g, [x], interpret=True), "run": lambda g, x: irtool.run(g, [x]),
    "compiled": lambda g, x: irtool.compile(g)(x), "native": lambda g, x: irtool.compile(g, native=True)(x),
    "vjp": lambda g, x: irtool.vjp(g, [x], [np.ones(4)], [0]), "record": lambda g, x: irtool.compile(g).record([x], [0]),
    "jit": lambda g, x: irtool.jit(g)(x), "vmap": lambda g, x: irtool.vmap(g)(np.stack([x, x])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", [*REFUSED, *TAKEN, *WINDOWS])
def test_every_way_refuses_what_torch_refuses(write: str, way: str) -> None:
    graph = irtool.from_script(f"def f(a: Tensor):\n    x = a * 1.0\n    {write}\n    return x\n").graph()
    if write in TAKEN:
        WAYS[way](graph, np.arange(4.0))
    else:
        with pytest.raises(irtool.Error, match="refers? to a single memory location|not supported"):
            WAYS[way](graph, np.arange(4.0))


@pytest.mark.parametrize("write", [*REFUSED, *TAKEN])
def test_layers_refuse_it_too(write: str) -> None:
    space: dict[str, Any] = {"torch": irtool.torch}
    exec(f"def f(a):\n    x = a * 1.0\n    {write}\n    return x.sum()\n", space)
    def start(function: Any) -> Any:
        return np.stack([np.arange(4.0)] * 2) if function is batched else np.arange(4.0)

    batched = irtool.vmap(space["f"])
    for function in (irtool.grad(space["f"]), irtool.jit(space["f"]), batched):
        if write in TAKEN:
            function(start(function))
        else:
            with pytest.raises(irtool.Error, match="refer to a single memory location"):
                function(start(function))
