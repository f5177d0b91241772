"""PLAN_PASSES: what rewrites a lowered program, and how it can be watched."""
from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import irtool
from irtool.execute import phases
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.plan_passes import ALWAYS, FUNCTION, PLAN_PASSES
from irtool.passes import BY_NAME
from irtool.pipelines import check_order, parse_pipeline

ROOT = Path(__file__).parent.parent
LOOP = """
def f(x: Tensor, n: int):
    y = x
    for i in range(n):
        y = torch.tanh(y * 2.0) + x
    return y.clone() + 1.0
"""


def test_each_pass_has_a_name_a_time_and_a_reason() -> None:
    names = [each.name for each in PLAN_PASSES]
    assert len(set(names)) == len(names)
    assert all(each.when in (ALWAYS, FUNCTION) and each.reason for each in PLAN_PASSES)


def test_the_program_is_shown_after_each_pass() -> None:
    plan = Plan(irtool.from_script(LOOP).graphs[0])
    programs = plan.programs([np.ones((2, 3), np.float32), 4])
    assert [name for name, _ in programs] == ["lower", *[each.name for each in PLAN_PASSES]]
    assert "loop v2 below 4 while True, carrying (v3: float32[2, 3] = v0):" in programs[0][1]
    assert all(text.startswith("program(v0: float32[2, 3], v1") for _, text in programs)
    before, after = (dict(programs)[name] for name in ("lower", "update-in-place"))
    assert before != after


def test_a_program_is_rewritten_by_nothing_else() -> None:
    """Who runs a rewrite runs the table: no module but the table's calls one of its functions."""
    table = ROOT / "irtool" / "execute" / "plan" / "plan_passes.py"
    rewrites = {alias.name for node in ast.walk(ast.parse(table.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
                for alias in node.names if (node.module or "").startswith("irtool.execute.plan.") and alias.name.islower()}
    callers = [path.name for path in (ROOT / "irtool").rglob("*.py") if path != table
               for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
               if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in rewrites]
    assert not callers


def test_phases_run_passes_that_opt_knows_in_the_order_that_presets_keep() -> None:
    whole = (*phases.STRUCTURE, *phases.REQUIRED, *phases.PROPAGATE, *phases.AGAIN, *phases.GRADIENTS, *phases.DIFFERENTIABLE,
             *phases.WITHOUT_GRADIENTS)
    names = [step.name for text, _ in whole for step in parse_pipeline(text)]
    assert set(names) <= set(BY_NAME)
    check_order(names, "a compilation")
