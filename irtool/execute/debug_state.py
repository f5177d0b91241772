"""The state of an executor as data: its graph, its plans by spec, and recursively the executors of their gradients."""
from __future__ import annotations

from typing import Any

from irtool.execute.compilation import ExecutionPlan
from irtool.execute.executor import Executor
from irtool.ir.errors import RunError


def debug_state(executor: Executor) -> dict[str, Any]:
    """`{"graph": text, "fallback": plan or None, "execution_plans": {spec: plan}}`; a plan is `{"key", "graph", "executors"}`.

    When profiling also `"profile"`, the graph with the types seen, and `"bailout"`, the state of the executor for other shapes.
    The state is consistent even while other threads run the executor, since plans are only added.
    """
    if not isinstance(executor, Executor):
        raise RunError(f"debug_state: expected an executor, as `compile` makes it, got {type(executor).__name__}")
    state = {"graph": str(executor.graph), "fallback": None if executor.fallback is None else plan_state(executor.fallback),
             "execution_plans": {str(spec): plan_state(plan) for spec, plan in list(executor.plans.items())}}
    profile = executor.profile
    if profile is not None:
        state["profile"] = None if profile.profiled is None else str(profile.profiled.graph)
        state["bailout"] = None if profile.fallback is None else debug_state(profile.fallback)
    return state


def plan_state(plan: ExecutionPlan) -> dict[str, Any]:
    """A plan as data."""
    return {"key": None if plan.spec is None else plan.spec.key, "graph": str(plan.shown),
            "executors": [debug_state(each.backward) for each in plan.differentiables.values()]}
