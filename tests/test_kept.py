"""Plans kept on disk: found again by another executor, made anew when damaged or when anything is different."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute import fallbacks, plan_cache
from irtool.execute.argument_spec import arrays_key
from irtool.execute.executor import Executor
from irtool.execute.phases import clear_custom_passes, register_custom_pass
from irtool.execute.plan.compiled import Plan
from irtool.ir.errors import RunError
from irtool.ir.graph import Graph


def text_of(n: int = 150, extra: str = "") -> str:
    lines = ["graph(%x : Tensor, %y : Tensor):", "  %one : int = prim::Constant[value=1]()", "  %v0 : Tensor = aten::mul(%x, %y)"]
    forms = "mul(%v{}, %y)", "sub(%v{}, %y, %one)", "maximum(%v{}, %y)"
    lines += [f"  %v{i + 1} : Tensor = aten::{forms[i % 3].format(i)}" for i in range(n)]
    return "\n".join([*lines, extra, f"  return (%v{n})"]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def arrays(*shape: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).standard_normal(shape) for i in range(2)]


def shelved(executor: Executor) -> list[object]:
    assert executor.shelf is not None
    return [each for each in executor.shelf.entries.values() if isinstance(each, plan_cache.Kept)]


def warmed(text: str, values: list[np.ndarray]) -> list[np.ndarray]:
    run = irtool.compile(irtool.parse(text))
    assert not shelved(run)
    for _ in range(2):
        outputs = run(*values)
    return outputs


def test_the_next_executor_finds_the_function(folder: Path) -> None:
    values = arrays(3, 4)
    expected = warmed(text_of(), values)
    run = irtool.compile(irtool.parse(text_of()))
    for _ in range(2):
        (found,) = run(*values)
        assert found.tobytes() == expected[0].tobytes()
    assert len(shelved(run)) == 1 and not run.plans
    assert run.stats["graph_executor_invocations"] == 2
    other = arrays(2, 5)
    (found,) = run(*other)
    assert found.tobytes() == irtool.run(irtool.parse(text_of()).graph(), other, interpret=True)[0].tobytes()
    assert run.plans


def test_a_result_is_not_written_over_while_somebody_holds_it(folder: Path) -> None:
    values = arrays(100, 100)
    warmed(text_of(), values)
    run = irtool.compile(irtool.parse(text_of()))
    first = run(*values)[0]
    bits = first.tobytes()
    run(*[each + 1 for each in values])
    assert first.tobytes() == bits and shelved(run)


def test_a_graph_that_ran_once_before_is_kept_the_second_time(folder: Path) -> None:
    values = arrays(3)
    for process in range(3):
        run = irtool.compile(irtool.parse(text_of()))
        run(*values)
        assert bool(shelved(run)) == (process == 2)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_entry_is_made_anew(folder: Path, damage: str) -> None:
    values = arrays(3)
    expected = warmed(text_of(), values)
    (path,) = folder.glob("*.plan")
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    path.write_bytes({"cut": bytes(data[:-7]), "empty": b"", "flipped": bytes(data)}[damage])
    run = irtool.compile(irtool.parse(text_of()))
    assert run(*values)[0].tobytes() == expected[0].tobytes() and not shelved(run)


def test_what_custom_passes_made_is_not_kept(folder: Path) -> None:
    """Not even when they are gone, and the plan that they rewrote runs on."""
    values = arrays(3)

    def other(graph: Graph) -> bool:
        for node in graph.walk():
            if node.kind == "aten::maximum":
                node.kind = "aten::minimum"
        return True

    register_custom_pass(other)
    try:
        run = irtool.compile(irtool.parse(text_of()))
        rewritten = run(*values)[0].tobytes()
    finally:
        clear_custom_passes()
    for size in (4, 3):
        for _ in range(4):
            found = run(*arrays(size))
    assert found[0].tobytes() == rewritten
    again = irtool.compile(irtool.parse(text_of()))
    expected = irtool.run(irtool.parse(text_of()).graph(), values, interpret=True)[0].tobytes()
    assert again(*values)[0].tobytes() == expected != rewritten and not shelved(again)


def test_what_else_a_plan_depends_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = arrays(3)
    warmed(text_of(), values)
    for options in ({"optimize": False}, {"native": False}):
        run = irtool.compile(irtool.parse(text_of()), **options)        # type: ignore[arg-type]
        run(*values)
        assert run.shelf is None or not shelved(run)
    register_custom_pass(lambda graph: False)
    try:
        run = irtool.compile(irtool.parse(text_of()))
        run(*values)
        assert not shelved(run)
    finally:
        clear_custom_passes()
    monkeypatch.setattr(plan_cache, "versions", lambda: "another")
    run = irtool.compile(irtool.parse(text_of()))
    run(*values)
    assert not shelved(run)


def test_every_module_of_irtool_is_among_the_versions() -> None:
    versions = plan_cache.versions()
    modules = [each for name, each in list(sys.modules.items()) if name.partition(".")[0] == "irtool"]
    assert len(modules) > 100
    for each in modules:
        assert each.__file__ is not None and f"'{Path(each.__file__).name}'" in versions, each.__name__


@pytest.mark.parametrize("extra", ["  %z : Tensor = aten::relu_(%v3)", "  %z : Tensor = aten::dropout(%v3, %p, %t)", "  = ^Unknown()(%v3)"])
def test_what_is_never_kept(folder: Path, extra: str) -> None:
    constants = "  %p : float = prim::Constant[value=0.5]()\n  %t : bool = prim::Constant[value=1]()\n  %one"
    text = text_of(extra=extra).replace("  %one", constants, 1)
    if "%z" in extra:
        text = text.replace("return (%v150)", "return (%z)")
    run = irtool.compile(irtool.parse(text))
    for _ in range(2):
        try:
            run(*arrays(3))
        except (irtool.UnsupportedError, RunError):
            break
    assert not list(folder.glob("*.plan"))


def test_errors_are_those_of_the_graph(folder: Path) -> None:
    """What a kept function cannot do, the graph is asked for: it says where it fails."""
    values = arrays(3)
    warmed(text_of(), values)
    run = irtool.compile(irtool.parse(text_of()))
    run(*values)
    (found,) = shelved(run)
    assert isinstance(found, plan_cache.Kept)

    def fails(*_: object) -> list[object]:
        raise ValueError

    found.function = fails
    with pytest.raises(fallbacks.Fault, match="the function of this graph failed"):
        run(*values)
    run.quick[arrays_key(values)] = found
    fallbacks.raise_faults(False)
    try:
        with pytest.warns(fallbacks.FallbackWarning, match="the function of this graph failed"):
            given = run(*values)[0]
    finally:
        fallbacks.raise_faults()
    assert given.tobytes() == irtool.run(irtool.parse(text_of()).graph(), values, interpret=True)[0].tobytes()


def test_groups_are_kept_too(folder: Path) -> None:
    values = [each.astype(np.float32) for each in arrays(600, 600)]
    expected = warmed(text_of(), values)
    run = irtool.compile(irtool.parse(text_of()))
    assert run(*values)[0].tobytes() == expected[0].tobytes() and shelved(run)


@pytest.mark.parametrize("inputs", [[True], [False], [None]])
def test_graphs_that_take_flags_are_kept_for_each_flag(folder: Path, inputs: list[Any]) -> None:
    lines = "".join([f"  %a{i + 1} : Tensor = aten::relu(%a{i})\n" for i in range(120)])
    kind = "bool" if inputs[0] is not None else "Tensor?"
    graph = f"graph(%x : Tensor, %flag : {kind}):\n  %a0 : Tensor = aten::erf(%x)\n{lines}"
    graph += "  %y : Tensor = prim::If(%flag)\n    block0():\n      %n : Tensor = aten::neg(%a120)\n      -> (%n)\n    block1():\n" \
             "      -> (%a120)\n  return (%y)\n" if kind == "bool" else "  return (%a120)\n"
    x = np.linspace(-1, 1, 12).astype(np.float32).reshape(3, 4)
    wanted = irtool.interpret.run(irtool.parse(graph).graph(), [x, *inputs])[0].tobytes()
    for _ in range(3):
        executor = irtool.compile(irtool.parse(graph))
        for _ in range(3):
            assert executor(x, *inputs)[0].tobytes() == wanted
    assert shelved(executor)


def test_functions_that_call_nodes_as_the_interpreter_does_are_kept(folder: Path) -> None:
    lines = "".join([f"  %a{i + 1} : Tensor = aten::relu(%a{i})\n" for i in range(120)])
    text = f"""graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %zero : float = prim::Constant[value=0.]()
  %mean : Tensor = aten::mean(%x, %none)
  %more : Tensor = aten::gt(%mean, %zero)
  %flag : bool = aten::Bool(%more)
  %a0 : Tensor = prim::If(%flag)
    block0():
      %n : Tensor = aten::neg(%x)
      -> (%n)
    block1():
      -> (%x)
{lines}  %found : Tensor = aten::nonzero(%a120)
  return (%found)
"""
    values = [np.linspace(-2, 1, 12).astype(np.float32).reshape(3, 4), np.linspace(-1, 2, 12).astype(np.float32).reshape(3, 4)]
    wanted = [irtool.interpret.run(irtool.parse(text).graph(), [each])[0].tobytes() for each in values]
    for turn in range(3):
        executor = irtool.compile(irtool.parse(text))
        assert executor(values[0])[0].tobytes() == wanted[0]
        assert bool(shelved(executor)) == (turn > 0)
        for each in (0, 1, 0, 1):       # the number of elements that are found differs
            assert executor(values[each])[0].tobytes() == wanted[each]


def test_graphs_that_write_into_what_they_made_are_kept(folder: Path) -> None:
    lines = "".join([f"  %a{i + 1} : Tensor = aten::relu(%a{i})\n" for i in range(120)])
    text = f"""graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %all : Tensor[] = prim::ListConstruct()
  %a0 : Tensor = aten::neg(%x)
{lines}  %first : Tensor[] = aten::append(%all, %a0)
  %second : Tensor[] = aten::append(%all, %a120)
  %stack : Tensor = aten::stack(%all, %zero)
  %more : Tensor = aten::add_(%stack, %one, %one)
  %last : Tensor = aten::__getitem__(%all, %one)
  %twice : Tensor = aten::mul(%last, %last)
  return (%more, %twice)
"""
    x = np.linspace(-1, 1, 12).astype(np.float32).reshape(3, 4)
    before = x.copy()
    wanted = [each.tobytes() for each in irtool.interpret.run(irtool.parse(text).graph(), [x])]
    for _ in range(3):
        executor = irtool.compile(irtool.parse(text))
        held = executor(x)
        for _ in range(4):
            assert [each.tobytes() for each in executor(x)] == wanted
        assert [each.tobytes() for each in held] == wanted and x.tobytes() == before.tobytes()
    assert executor.quick


def test_a_plan_compiled_at_once_has_observed_facts() -> None:
    """As plans are that ran in an earlier process: unless only a run knows the facts of some results."""
    text = """graph(%x : Tensor):
  %0 : int[] = prim::Constant[value=[2, 2]]()
  %1 : int[] = prim::Constant[value=[0, 0]]()
  %2 : int[] = prim::Constant[value=[1, 1]]()
  %f : bool = prim::Constant[value=0]()
  %y : Tensor, %i : Tensor = aten::max_pool2d_with_indices(%x, %0, %0, %1, %2, %f)
  %z : Tensor = aten::relu(%y)
  return (%z)
"""
    plan = Plan(irtool.parse(text).graph(), compile_after=0)
    for _ in range(2):
        plan([np.ones((1, 2, 8, 8), np.float32)])
    assert "seen(" in plan.source
    simple = Plan(irtool.parse("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n").graph(), compile_after=0)
    simple([np.ones(3, np.float32)])
    assert simple.source
