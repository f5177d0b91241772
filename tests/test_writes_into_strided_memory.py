"""Writes into memory that `as_strided` shows of a part of a tensor reach elements outside of this part, and so do gradients, as in torch:
they are writes into the same memory of the whole tensor."""
from __future__ import annotations

from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import grad, jvp, vjp, vmap
from irtool.ir.schema import schema_named
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.torchscript.front import compile_source
from tests.test_result_layouts import SAMPLED

PARTS = {"x[0]": 0, "x[1:3]": 1, "x.view(3, 2).t()[1:, 2:]": 5, "x[2:].detach()": 2}
"""A part of a tensor of six elements -> the place of its first one."""
MEMORY = [([2], [1], 1), ([2], [3], None), ([2, 2], [1, 2], 0), ([1], [1], None)]
"""Sizes, strides and offset."""
USES = ("w.mul_(y)", "p.mul_(3)\n    w.relu_()", "w[..., :1].exp_()\n    p.mul_(p)")
X = np.array([.5, -1.5, 2., .25, -.75, 1.])


def source(part: str, memory: str, use: str) -> str:
    """A program that sees memory and writes."""
    return (f"def f(x):\n    y = x[3] * x[1]\n    x = x * 2\n    p = {part}\n    w = {memory}\n    {use}\n"
            "    return torch.cat([x * 3, w.reshape(-1), p.reshape(-1)])\n")


def programs() -> list[tuple[str, str]]:
    """Programs that see memory of a part, and of the whole."""
    found = []
    uses = cycle(USES)
    for part, first in PARTS.items():
        for size, stride, offset in MEMORY:
            begin = first if offset is None else offset
            if begin + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) < len(X):
                of_part = f"{part}.as_strided({size}, {stride}, {offset})"
                of_whole = f"x{'.detach()' * ('detach' in part)}.as_strided({size}, {stride}, {begin})"
                use = next(uses)
                found.append((source(part, of_part, use), source(part, of_whole, use)))
    return found


def function_of(text: str) -> Any:
    """The program as a function."""
    made: dict[str, Any] = {"torch": torch}
    exec(text, made)
    return made["f"]


@cache
def ways(text: str) -> list[Any]:
    """The result, and the gradient of its weighted sum, which all ways agree on."""
    function, graph = function_of(text), compile_source(text)
    result, back = vjp(function, X)
    seed = np.cos(np.arange(len(result)))
    way = np.linspace(-1, 1, 6)
    gradient = np.asarray(back(torch.tensor(seed))[0])
    if "detach" not in text:
        np.testing.assert_allclose((np.asarray(jvp(function, (X,), (way,))[1]) * seed).sum(), (gradient * way).sum(), rtol=1e-9)
    np.testing.assert_allclose(irtool.run(graph, [X])[0], np.asarray(result), rtol=1e-12)
    np.testing.assert_allclose(irtool.vjp(graph, [X], [seed], [0], interpret=True)[0], gradient, rtol=1e-12)
    return [np.asarray(result), gradient]


def test_it_is_a_write_into_the_memory_of_the_whole() -> None:
    for one, other in programs():
        for found, expected in zip(ways(one), ways(other), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=one)


def test_batches_do_the_same_or_refuse_it_as_in_torch() -> None:
    for one, _ in programs()[::2]:
        function, seed = function_of(one), np.cos(np.arange(len(ways(one)[0])))

        def loss(x: Any, function: Any = function, seed: Any = seed) -> Any:
            return (function(x) * torch.tensor(seed)).sum()
        for batched in (vmap(grad(loss)), grad(lambda x, loss=loss: vmap(loss)(x).sum())):
            try:
                found = np.asarray(batched(np.stack([X, X[::-1], X])))
            except irtool.Error as error:
                assert "out of bounds" in str(error) or "vmap" in str(error)
                continue
            np.testing.assert_allclose(found[[0, 2]], [ways(one)[1]] * 2, rtol=1e-12)


@pytest.mark.parametrize(("body", "expected"), [
    ("return x[:1].as_strided([2], [1], 1)", [0, 0, 0, 0]),
    ("x[:1].as_strided([2], [1], 1).mul_(3)\n    return x", [1, 3, 3, 1]),
    ("x[0].as_strided([2], [1], 1).relu_()\n    return x", [1, 1, 1, 1]),
    ("x[1:3].as_strided([2], [2]).mul_(3)\n    return x", [1, 3, 1, 3]),
    ("v = x[:1].as_strided([2], [1], 1)\n    x.mul_(3)\n    return v", [0, 3, 3, 0]),
    ("v = x[:1]\n    w = v.as_strided([2], [1], 0)\n    v.mul_(3)\n    return w", [3, 1, 0, 0]),
    ("x = x * 1\n    v = x[:1]\n    v.as_strided_([2], [1], 1)\n    x.mul_(3)\n    return v", [0, 3, 3, 0]),
    ("w = x[1:].detach().as_strided([1], [1], 2)\n    w.mul_(2)\n    return x * x", [2, 4, 12, 8]),
    ("w = x[1:3].detach().as_strided([2], [2])\n    x.mul_(2)\n    return x * w.sum()", [24, 24, 24, 24]),
    ("with torch.no_grad():\n        x[1:3].as_strided([2], [2]).mul_(2)\n    return x * x", [2, 8, 6, 16]),
])
def test_gradients_of_torch(body: str, expected: list[float]) -> None:
    x, text = np.arange(1., 5.), f"def f(x):\n    {body}\n"
    seed = np.ones(2 if body.endswith(("v", "w", "1)")) else 4)
    np.testing.assert_allclose(irtool.vjp(compile_source(text), [x], [seed], [0])[0], expected)
    np.testing.assert_allclose(np.asarray(grad(lambda x: function_of(text)(x * 1).sum())(x)), expected)


@pytest.mark.parametrize("body", ["v = x.as_strided([2], [1], 1)\n    x[0].mul_(3)\n    return v",
                                  "x.as_strided([2], [1], 1).mul_(3)\n    return x"])
def test_what_lies_in_another_order_is_refused(body: str) -> None:
    """The new value of a tensor need not lie as the tensor did."""
    text = f"def f(x):\n    x = x.t().sin()\n    {body}\n"
    with pytest.raises(irtool.Error, match="as_strided"):
        vjp(function_of(text), np.ones((2, 3)))


IN_THE_ORDER_OF_TORCH = {f"aten::{name}" for name in "copy _index_put_impl index_put put masked_scatter index_copy scatter scatter_add "
                         "scatter_reduce index_add index_reduce index_fill masked_fill tril triu".split()}
"""Kinds that write elements, or numbers, to places, one after the other."""


@pytest.mark.parametrize("letter", sorted({name.removeprefix("aten::")[0] for name in SAMPLED}))
def test_a_write_into_overlapping_windows_is_that_into_their_elements_or_refused(letter: str) -> None:
    """What an element becomes must not hang on the order in which the elements that share its memory are written."""
    for name in SAMPLED:
        kind, _, variant = name.partition(".")
        written = f"{kind}_.{variant}" if variant else f"{kind}_"
        if name.removeprefix("aten::")[0] != letter or kind.endswith("_") or schema_named(written) is None \
                or kind in IN_THE_ORDER_OF_TORCH:
            continue
        text = dict(zip(OPS[name].names, OPS[name].schemas))[name]
        for sample in OPS[name].samples[name]:
            args = sample.arguments(text)
            if not isinstance(args[0], np.ndarray) or args[0].ndim < 2 or args[0].dtype.kind != "f":
                continue
            memory = np.linspace(0.2, 0.9, sum(args[0].shape)).astype(args[0].dtype)
            windows = np.lib.stride_tricks.as_strided(memory, args[0].shape, (memory.itemsize,) * args[0].ndim)
            try:
                want = np.asarray(call_op(name, [windows.copy(), *args[1:]]))
                result = call_op(written, [windows, *args[1:]])
            except irtool.Error:
                continue
            if result.shape == want.shape:
                np.testing.assert_allclose(result, want, 1e-6, err_msg=name)
