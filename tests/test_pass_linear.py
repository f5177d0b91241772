"""Work per node does not grow with the graph: no pass, nor the verifier, is quadratic in any of the shapes of `growing_graphs`.

Work is counted in lines of Python that are run, so that no clock is asked. What one line does in C (a union of sets, a slice) is not seen.
"""
from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from growing_graphs import SHAPES, long_list, outputs, unpacked, written_list

import irtool
from irtool.analysis import alias_roots, autodiff_groups
from irtool.ir.graph import Node, Value
from irtool.passes import PASSES, Pass

SMALL, LARGE = 60, 240
MOST = 1.5
"""How often the work per node of the small graph may be that of the large one."""
GROWING = {
    ("nested_branches", "differentiate"): "each value that df needs leaves through all branches around it, of which a text has 200 at most",
    ("nested_writes", "differentiate"): "each write in a branch leaves through all branches around it",
}
"""(shape, pass) -> why the work per node grows."""
GROWING_PLANS = {
    "loops": "each loop that is carried in place redirects views in the whole program",
    "carried": "what the round after it reads is asked for each carried tensor",
}
"""Shape -> why the work per node of its plan grows."""


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs."""
    count = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return inside
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: inside)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def lines_per_node(text: str, entry: Pass | None) -> float:
    """Of one pass, or of the verifier."""
    module = irtool.parse(text)
    nodes = sum(1 for _ in module.graphs[0].walk())
    return lines_run(lambda: applied(module, entry)) / nodes


def applied(module: irtool.Module, entry: Pass | None) -> None:
    """Run one pass, or the verifier."""
    if entry is None:
        irtool.verify(module)
    else:
        entry.function(module if entry.takes_module else module.graphs[0])


@pytest.mark.parametrize(("make", "pipeline"), [
    *[(make, "differentiate" + more) for make in (long_list, written_list, unpacked)
      for more in ("", ",lower-grad-of", ",specialize-undef")],
    (written_list, "functionalize"), (long_list, "functionalize"), (long_list, "cse"), (outputs, "dce"), (long_list, "vmap")])
def test_operands_and_results_are_not_copied_one_by_one(make: Callable[[int], str], pipeline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `test_work_per_node_does_not_grow` does not see: a tuple of all operands or results made anew, or searched, for each of them."""
    touched = 0

    def set_attribute(node: Node, name: str, value: Any) -> None:
        nonlocal touched
        touched += len(value) if name in ("inputs", "outputs") else 0
        object.__setattr__(node, name, value)

    def index(value: Value) -> int:
        nonlocal touched
        place = value.node.outputs.index(value)
        touched += place
        return place
    work = []
    for size in (SMALL, LARGE):
        module = irtool.parse(make(size))
        nodes, touched = sum(1 for _ in module.graphs[0].walk()), 0
        with monkeypatch.context() as patch:
            patch.setattr(Node, "__setattr__", set_attribute, raising=False)
            patch.setattr(Value, "index", property(index))
            irtool.PassManager(pipeline).run(module)
        work.append(touched / nodes)
    assert work[1] <= MOST * work[0] + 2


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_work_per_node_does_not_grow(make: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodiff_groups, "PATIENCE", (500, 8))      # what is looked at over a whole block is bounded: let it end soon
    monkeypatch.setattr(autodiff_groups, "REACH", 16)
    monkeypatch.setattr(autodiff_groups, "NEAR", 4)
    monkeypatch.setattr(alias_roots, "MOST", 8)         # more roots than that are merged, in the small graph too
    wrong = []
    for entry in [*PASSES, None]:
        name = entry.name if entry else "verify"
        if (make.__name__, name) in GROWING:
            continue
        try:
            applied(irtool.parse(make(SMALL)), entry)      # schemas are read on first use
        except irtool.Error:
            continue        # a pass for other graphs
        small, large = (lines_per_node(make(n), entry) for n in (SMALL, LARGE))
        if large > MOST * small + 2:
            wrong.append(f"{name}: {small:.1f} lines a node of {SMALL}, {large:.1f} of {LARGE}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("make", [make for make in SHAPES if make.__name__ not in GROWING_PLANS], ids=lambda make: make.__name__)
def test_work_per_node_of_a_plan_does_not_grow(make: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first runs of an executor, which make its plan."""
    monkeypatch.setenv("IRTOOL_CACHE_DIR", "")

    def lines_per_node_of_plan(n: int) -> float:
        module = irtool.parse(make(n))
        arrays = [np.ones((2, 3), np.float32) for each in module.graphs[0].inputs if str(each.type).startswith("Float")]

        def runs() -> None:
            run = irtool.compile(module, native=False)
            for _ in range(3):
                run(*arrays, True, 2)
        try:
            return lines_run(runs) / sum(1 for _ in module.graphs[0].walk())
        except irtool.Error:
            return 0        # a graph that cannot run
    lines_per_node_of_plan(SMALL)
    small, large = lines_per_node_of_plan(SMALL), lines_per_node_of_plan(LARGE)
    assert large <= MOST * small + 2, f"{small:.1f} lines a node of {SMALL}, {large:.1f} of {LARGE}"


@pytest.mark.parametrize("pipeline", ["cse", "dce", "create-autodiff-subgraphs,inline-autodiff-subgraphs"])
def test_removed_nodes_are_not_left_to_the_collector(pipeline: str) -> None:
    """A collection of the garbage of 64,000 nodes took as long as the passes."""
    lines = "".join(f"  %{i} : Tensor = aten::mul(%x, %x)\n" for i in range(300))
    module = irtool.parse(f"graph(%x : Tensor):\n{lines}  return (%299)\n")
    manager = irtool.PassManager(pipeline)
    manager.run(irtool.parse("graph(%x : Tensor):\n  return (%x)\n"))      # imports
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        manager.run(module)
        assert gc.collect() < 100
    finally:
        if enabled:
            gc.enable()
