"""`irtool plan --time`: how long each instruction of a plan takes."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.program import Call
from irtool.execute.plan.timing import Timed, instruction_times, own_times, times_by_node
from tests.test_cli_opt import irtool_

EXAMPLES = Path(__file__).parent.parent / "examples"
LOOP = """\
graph(%x : Float(4, 4), %n : int):
  %true : bool = prim::Constant[value=1]()
  %y : Float(4, 4) = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Float(4, 4)):
      %b : Float(4, 4) = aten::mm(%a, %x)
      -> (%true, %b)
  return (%y)
"""


def timed(text: str, *inputs: object, native: bool | None = False) -> list[Timed]:
    """The instructions of the plan of a graph."""
    executor = irtool.compile(irtool.parse(text), native=native)
    code = executor.plan_for(*inputs).code.plan
    assert isinstance(code, Plan)
    return instruction_times(code, inputs)


def test_a_loop_counts_its_rounds_and_not_their_time() -> None:
    x = np.eye(4, dtype=np.float32)
    by_kind = {each.node.kind: each for each in timed(LOOP, x, 7)}
    product, loop = by_kind["aten::mm"], by_kind["prim::Loop"]
    assert (product.times, product.word, product.flops) == (7, "dot", 7 * 2 * 4**3)
    assert (loop.times, loop.word, loop.flops, loop.bytes) == (1, "", 0, 0)
    assert product.ns > 0 and loop.ns > 0


def test_views_move_no_bytes_and_groups_name_their_values() -> None:
    text = ("graph(%x : Float(8, 8)):\n  %t : Float(8, 8) = aten::t(%x)\n  %e : Float(8, 8) = aten::exp(%t)\n"
            "  %s : Float(8, 8) = aten::sin(%e)\n  return (%s)\n")
    rows, graph = timed(text, np.ones((8, 8), np.float32), native=True), irtool.parse(text).graphs[0]
    assert [each.bytes for each in rows if each.node.kind == "aten::t"] in ([0], [])
    group = next(each for each in rows if each.word == "fused")
    assert group.bytes == 2 * 8 * 8 * 4
    words = {node.output.name: word for node, word in times_by_node(rows, graph).items()}
    assert words["e"] == words["s"] and words["s"].endswith("in the plan, in a group of 2")


@given(st.recursive(st.integers(1, 9).map(lambda n: (n, [])), lambda inner: st.tuples(st.integers(0, 9), st.lists(inner, max_size=4)),
                    max_leaves=20))
def test_own_times_add_up_to_the_whole(tree: tuple[int, list]) -> None:     # type: ignore[type-arg]
    call = Call(np.add, (), {}, None, "ufunc", None)       # type: ignore[arg-type]
    intervals, owned = [], []

    def lay(part: tuple[int, list], start: int) -> int:     # type: ignore[type-arg]
        own, parts = part
        end = start
        for each in parts:
            end = lay(each, end)
        intervals.append((call, start, end + own, 0))
        owned.append(float(own))
        return end + own

    end = lay(tree, 0)
    assert own_times(intervals) == owned and sum(owned) == end


def test_the_table_and_json_have_the_same_rows() -> None:
    files = (str(EXAMPLES / "mlp.ir"), str(EXAMPLES / "mlp_inputs.npz"))
    lines = irtool_("plan", *files, "--time").out.splitlines()
    report = json.loads(irtool_("plan", *files, "--time=json").out)
    assert lines[0].split() == ["ms", "share", "GFLOP/s", "GB/s", "times", "instruction", "of"]
    assert len(lines) == len(report["instructions"]) + 2
    assert report["ns"] == pytest.approx(sum(each["ns"] for each in report["instructions"]))
    refused = irtool_("plan", *files, "--time", "--no-optimize")
    assert refused.code == 2 and "--time are for plans on NumPy" in refused.err


def test_a_page_says_the_time_in_the_plan(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert irtool_("show", str(EXAMPLES / "mlp.ir"), "--inputs", str(EXAMPLES / "mlp_inputs.npz"), "-o", str(out)).code == 0
    assert "in the plan" in out.read_text()
