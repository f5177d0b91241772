"""Depthwise convolutions as sums of products: the pass and the plan give what the operators give."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.passes import BY_NAME

CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]] = [
    ("conv1d", (2, 3, 9), (4,), (1,), (0,), (1,), False),
    ("conv1d", (1, 3, 9), (3,), (2,), (1,), (2,), True),
    ("conv2d", (2, 4, 7, 6), (3, 3), (1,), (1, 1), (1, 1), True),
    ("conv2d", (1, 4, 8, 9), (3, 2), (2, 3), (1, 0), (1, 2), False),
    ("conv2d", (1, 2, 12, 12), (7, 7), (1, 1), (3, 3), (1, 1), True),
    ("conv3d", (1, 2, 5, 4, 6), (2, 3, 2), (1, 1, 2), (0, 1, 1), (1, 1, 1), True),
    ("_convolution", (2, 64, 28, 28), (3, 3), (1, 1), (1, 1), (1, 1), True),        # enough products for a plan to write it out
    ("convolution", (2, 64, 28, 28), (3, 3), (2, 2), (1, 1), (1, 1), False),
]
"""Kind, sizes of the input, kernel, stride, padding, dilation, and is there a bias?"""


def program(case: Any, dtype: str = "Float") -> str:
    """A graph of one convolution of x with w, and a bias b."""
    kind, x, kernel, stride, padding, dilation, has_bias = case
    channels = x[1]
    numbers = sorted({0, 1, channels, *stride, *padding, *dilation})
    lists = {"s": stride, "p": padding, "d": dilation, "o": (0,) * len(kernel)}
    long = kind.endswith("convolution")
    tail = ["%s", "%p", "%d", *["%no", "%o"] * long, f"%n{channels}", *["%no"] * (4 if kind == "_convolution" else 0)]
    return "\n".join([
        f"graph(%x : {dtype}({', '.join(map(str, x))}), %w : {dtype}({', '.join(map(str, (channels, 1, *kernel)))})"
        + f", %b : {dtype}({channels})" * has_bias + "):",
        *["  %b : NoneType = prim::Constant()"] * (not has_bias), "  %no : bool = prim::Constant[value=0]()",
        *[f"  %n{each} : int = prim::Constant[value={each}]()" for each in numbers],
        *[f"  %{name} : int[] = prim::ListConstruct({', '.join(f'%n{each}' for each in values)})" for name, values in lists.items()],
        f"  %y : Tensor = aten::{kind}(%x, %w, %b, {', '.join(tail)})", "  return (%y)", ""])


def drawn(case: Any, dtype: str = "float32") -> list[Any]:
    """x, w and perhaps b."""
    generator = np.random.default_rng(0)
    sizes = [case[1], (case[1][1], 1, *case[2]), *[(case[1][1],)] * case[6]]
    return [generator.standard_normal(size).astype(dtype) for size in sizes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{case[1:]}")
def test_sums_give_what_the_operator_gives(case: Any, dtype: str) -> None:
    text = program(case, "Float" if dtype == "float32" else "Double")
    values = drawn(case, dtype)
    (expected,) = irtool.run(irtool.parse(text).graph(), values, interpret=True)
    sums = irtool.parse(text).graph()
    assert BY_NAME["decompose-depthwise"](sums) and not any("conv" in node.kind for node in sums.walk())
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    executors = [irtool.compile(irtool.parse(text).graph(), native=native) for native in (None, False)]
    for (result,) in (irtool.run(sums, values), *[executor.run(values) for executor in executors for _ in range(3)]):
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
        assert result.dtype == expected.dtype and result.flags.c_contiguous


def test_gradients_are_those_of_the_operator() -> None:
    case = CASES[-2]
    graph, values = irtool.parse(program(case)).graph(), drawn(case)
    cotangent = np.ones_like(irtool.run(graph, values)[0])
    wanted = irtool.vjp(graph, values, [cotangent], range(3), interpret=True)
    executor = irtool.compile(graph)
    for _ in range(3):
        for result, each in zip(executor.vjp(values, [cotangent], range(3)), wanted, strict=True):
            np.testing.assert_allclose(result, each, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("change", [("x", (2, 3, 2)), ("w", (3, 1, 11)), ("w", (6, 1, 4)), ("w", (3, 3, 4))])
def test_other_convolutions_stay(change: tuple[str, tuple[int, ...]]) -> None:
    kind, x, kernel, *rest = CASES[0]
    text = program((kind, x, kernel, *rest))
    name, sizes = change
    old = {"x": x, "w": (x[1], 1, *kernel)}[name]
    old_text, new_text = [f"%{name} : Float({', '.join(map(str, each))})" for each in (old, sizes)]
    graph = irtool.parse(text.replace(old_text, new_text)).graph()
    assert not BY_NAME["decompose-depthwise"](graph)
