"""Time per node does not grow with the graph: no pass, nor the verifier, is quadratic on long chains or on one much-used value."""
from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from time import process_time

import pytest

import irtool
from irtool.passes import PASSES, Pass

SMALL, LARGE = 500, 6_000


@cache
def chain(n: int) -> str:
    """A long chain with repeated, dead and foldable nodes; one value that every third node reads."""
    out = ["graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %n : int):\n  %one : int = prim::Constant[value=1]()\n"]
    last, count = "x", "n"
    for i in range(n // 6):
        out.append(f"  %a{i} : Tensor = aten::mul(%{last}, %x)\n  %b{i} : Tensor = aten::mul(%{last}, %x)\n"
                   f"  %c{i} : Tensor = aten::atan2(%a{i}, %b{i})\n  %d{i} : Tensor = aten::exp(%a{i})\n"
                   f"  %k{i} : int = prim::Constant[value={i % 50}]()\n  %m{i} : int = aten::add(%{count}, %k{i})\n")
        last, count = f"c{i}", f"m{i}"
    return "".join([*out, f"  return (%{last}, %{count})\n"])


@cache
def fan_out(n: int) -> str:
    """One value with n readers, each the same expression."""
    out = ["graph(%x : Tensor):\n  %t : Tensor = aten::neg(%x)\n"]
    out += [f"  %e{i} : Tensor = aten::exp(%t)\n" for i in range(n)]
    return "".join([*out, f"  %s : Tensor = aten::mul(%e0, %e{n - 1})\n  return (%s)\n"])


def seconds_per_node(text: str, n: int, entry: Pass | None) -> float:
    """Of one run, garbage collection paused."""
    module = irtool.parse(text)
    gc.disable()
    try:
        start = process_time()
        if entry is None:
            irtool.verify(module)
        else:
            entry.function(module if entry.takes_module else module.graphs[0])
        return (process_time() - start) / n
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [chain, fan_out])
@pytest.mark.parametrize("entry", [*PASSES, None], ids=lambda entry: entry.name if entry else "verify")
def test_time_per_node_does_not_grow(entry: Pass | None, make: Callable[[int], str]) -> None:
    try:
        seconds_per_node(make(SMALL), SMALL, entry)     # schemas are read on first use
    except irtool.Error as error:
        pytest.skip(f"takes other graphs: {error.message}")
    small = min(seconds_per_node(make(SMALL), SMALL, entry) for _ in range(2))
    limit, large = 4 * small + 2e-7, seconds_per_node(make(LARGE), LARGE, entry)
    if large >= limit:      # once more: another process may have been in the way
        large = seconds_per_node(make(LARGE), LARGE, entry)
    assert large < limit, f"{small * 1e6:.2f} us a node at {SMALL}, {large * 1e6:.2f} at {LARGE}"
