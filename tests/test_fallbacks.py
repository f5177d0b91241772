"""What is run another way than it was to be says so, once; where it is a fault of ours, tests fail."""
from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.execute import fallbacks
from irtool.execute.plan import plan_passes
from irtool.execute.plan.lowered_blocks import MAX_DEPTH, MAX_LOOPS
from irtool.execute.plan.python_source import Source


@pytest.fixture
def forgiving() -> Iterator[None]:
    """As for users: what is a fault is told, and not raised."""
    fallbacks.raise_faults(False)
    yield
    fallbacks.raise_faults()


def nested(depth: int) -> str:
    """A graph of branches in branches."""
    lines, end = [], []
    for level in range(depth):
        lines += [f"%r{level} : Tensor = prim::If(%c)", "block0():"]
        end += [f"-> (%r{level + 1})" if level < depth - 1 else "-> (%y)", "block1():", "-> (%x)"]
    body = [*lines, "%y : Tensor = aten::neg(%x)"]
    for level in reversed(range(depth)):
        body += end[3 * level:3 * level + 3]
    return "\n".join(["graph(%x : Tensor, %t : Tensor):", "%c : bool = aten::Bool(%t)", *body, "return (%r0)", ""])


SUM = "graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::exp(%1)\n  return (%2)\n"
X = np.ones(3)


def test_a_declared_reason_is_told_once_with_the_line() -> None:
    executor = irtool.compile(irtool.parse(nested(MAX_DEPTH + 1), "deep.ir"))
    with pytest.warns(fallbacks.FallbackWarning, match=r"^deep.ir:\d+:\d+: note: .* more than 40 blocks, or 16 loops, are nested") as told:
        for _ in range(4):
            np.testing.assert_array_equal(executor(X, np.array(1))[0], -X)
    assert len(told) == 1


def test_branches_at_the_limit_and_loops_at_theirs_have_plans() -> None:
    whole = nested(MAX_DEPTH - MAX_LOOPS).replace("%y : Tensor = aten::neg(%x)", loops(MAX_LOOPS))
    graphs = irtool.parse(nested(MAX_DEPTH)).graphs + irtool.parse(whole).graphs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for graph in graphs:
            executor = irtool.compile(graph, native=False)
            for flag in (0, 1, 1):
                np.testing.assert_array_equal(executor(X, np.array(flag))[0], irtool.run(graph, [X, np.array(flag)], interpret=True)[0])
    with pytest.warns(fallbacks.FallbackWarning, match="16 loops, are nested"):
        irtool.compile(irtool.parse(nested(1).replace("%y : Tensor = aten::neg(%x)", loops(MAX_LOOPS + 1))), native=False)(X, np.array(1))


def loops(depth: int) -> str:
    """Loops in loops, in the place of a node of `nested`."""
    lines, end = ["%two : int = prim::Constant[value=2]()", "%one : int = prim::Constant[value=1]()"], []
    for level in range(depth):
        name = "y" if not level else f"y{level}"
        lines += [f"%{name} : Tensor = prim::Loop({'%two' if level < 3 else '%one'}, %c, %{'x' if not level else f'a{level - 1}'})",
                  f"block0(%i{level} : int, %a{level} : Tensor):"]
        end.append([f"%c{level} : bool = aten::Bool(%t)", f"-> (%c{level}, %{f'y{level + 1}' if level < depth - 1 else 'm'})"])
    return "\n".join([*lines, f"%m : Tensor = aten::mul(%a{depth - 1}, %two)", *[line for each in reversed(end) for line in each]])


def test_the_command_line_tells_it(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/deep.ir"
    with open(path, "w") as file:
        file.write(nested(MAX_DEPTH + 1))
    for words in (["plan"], ["run", "--repeat", "3", "--stats"]):
        assert main([*words, path, "-i", "x=3xf32=1", "-i", "t=1"]) == 0
        assert capsys.readouterr().err.count("note: no plan is made of this graph") == 1


def test_an_error_of_ours_is_told_and_raised_in_tests(monkeypatch: pytest.MonkeyPatch, forgiving: None) -> None:
    def fails(*_: object) -> None:
        raise KeyError("v50")

    monkeypatch.setattr(plan_passes, "stack_lists", fails)
    graph = irtool.parse(SUM, "sum.ir").graph()
    with pytest.warns(fallbacks.FallbackWarning, match="no plan is made of this graph, the interpreter runs it: KeyError"):
        for _ in range(4):
            np.testing.assert_array_equal(irtool.run(graph, [X])[0], np.exp(-X))
    fallbacks.raise_faults()
    executor = irtool.compile(irtool.parse(SUM))
    with pytest.raises(fallbacks.Fault, match="KeyError"):
        for _ in range(4):
            executor(X)


def test_a_plan_that_fails_where_the_reference_does_not_is_told(monkeypatch: pytest.MonkeyPatch, forgiving: None) -> None:
    old = Source.__init__

    def wrong(self: Source, *given: object) -> None:
        old(self, *given)       # type: ignore[arg-type]
        self.text = self.text.replace("return [", "return [v50, ")

    monkeypatch.setattr(Source, "__init__", wrong)
    graph = irtool.parse(SUM, "sum.ir").graph()
    with pytest.warns(fallbacks.FallbackWarning, match="sum.ir: note: the plan of this graph failed .*v50.*please report"):
        for _ in range(4):
            np.testing.assert_array_equal(irtool.run(graph, [X])[0], np.exp(-X))
    fallbacks.raise_faults()
    with pytest.raises(fallbacks.Fault):
        irtool.run(graph, [X])


def test_what_both_refuse_is_no_fault() -> None:
    graph = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::mm(%x, %y)\n  return (%1)\n").graph()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            with pytest.raises(irtool.RunError, match="size mismatch|shapes cannot be multiplied"):
                irtool.run(graph, [np.ones((2, 3)), np.ones((2, 3))])
