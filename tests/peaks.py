"""How much memory for arrays a run takes, with what is kept between runs."""
from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from irtool.execute.executor import Executor
from irtool.execute.plan.compiled import Plan

SETTLED = 5
"""Runs after which functions have been made, and memory is what it will be."""


def peak_of(make: Callable[[], Callable[[], Any]]) -> tuple[int, Callable[[], Any]]:
    """The most bytes that arrays take during a run of what `make` gives, without what was there before; and what it gave.

    What the caller holds (inputs, constants of the program) must be there before; results are let go of before the next run.
    """
    gc.freeze()     # what was there before is not looked through
    tracemalloc.start(1)
    try:
        run = make()
        for _ in range(SETTLED):
            run()
        gc.collect()
        kept = arrays_held()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    return kept + peak - before, run


def arrays_held() -> int:
    """Bytes of NumPy's arrays that were made since tracing began and are still there."""
    only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only]).traces)


def plans_of(executor: Executor) -> list[Plan]:
    """The compiled plans that its runs use: of f and df as one where there is one."""
    found: list[Plan] = []
    for plan in executor.plans.values():
        if plan.together:
            found += plans_of(plan.together.executor)
        elif isinstance(plan.code.plan, Plan):
            found.append(plan.code.plan)
    return found
