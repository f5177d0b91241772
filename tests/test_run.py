"""`irtool.run` and `irtool.vjp`: the reference the first time, plans from then on, never those of a graph that was changed since."""
from __future__ import annotations

import gc
import sys
import threading
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pytest

import irtool
from irtool.execute import run as running
from irtool.execute.executor import last_executed_graph
from irtool.execute.phases import clear_custom_passes, register_custom_pass
from irtool.execute.run import Runs
from irtool.interpret import Observer
from irtool.ir.types import tensor_type

TEXT = """graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mul(%x, %y)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::add(%3, %x, %1)
  return (%4)
"""
X, Y = np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 2, 6).reshape(2, 3)


def new(text: str = TEXT) -> Any:
    """A graph."""
    return irtool.parse(text, filename="g.ir").graph()


def stats(graph: Any) -> dict[str, int]:
    """The counters of the graph's executor; of none, where there is none."""
    runs = graph.runs
    assert isinstance(runs, Runs)
    return runs.executors["numpy"].stats if runs.executors else {}


def alike(found: Any, wanted: Any) -> None:
    """The same bits."""
    assert [each.tobytes() for each in found] == [each.tobytes() for each in wanted]


# -- which of the two
def test_what_runs_once_is_interpreted_and_what_comes_again_is_planned() -> None:
    graph = new()
    wanted = irtool.run(graph, [X, Y], interpret=True)
    alike(irtool.run(graph, [X, Y]), wanted)
    assert not stats(graph)
    for _ in range(3):
        alike(irtool.run(graph, [X + 0, Y]), wanted)
    assert stats(graph) == {"graph_executors_constructed": 1, "graph_executor_invocations": 3, "execution_plan_cache_hit": 2,
                            "execution_plan_cache_miss": 1}
    assert last_executed_graph() is graph.runs.executors["numpy"].plan_for(X, Y).graph


def test_other_dtypes_and_ranks_are_interpreted_once_too() -> None:
    graph = new()
    for values in ([X, Y], [X[0], Y[0]], [X.astype(np.float32), Y]) * 3:
        alike(irtool.run(graph, values), irtool.run(graph, values, interpret=True))
    assert stats(graph)["execution_plan_cache_miss"] == 3
    assert stats(graph)["graph_executor_invocations"] == 6


def test_an_observer_and_the_flag_interpret() -> None:
    class Kinds(Observer):
        """Notes kinds."""

        def __init__(self) -> None:
            self.kinds: list[str] = []

        def before(self, node: Any, operands: Any) -> None:
            """A node."""
            self.kinds.append(node.kind)

    graph = new()
    for _ in range(3):
        observer = Kinds()
        irtool.run(graph, [X, Y], observer=observer)
        assert observer.kinds == ["prim::Constant", "aten::mul", "aten::tanh", "aten::add"]
        irtool.run(graph, [X, Y], interpret=True)
        irtool.vjp(graph, [X, Y], [X], [0], interpret=True)
    assert graph.runs is None


def test_gradients_take_the_same_way() -> None:
    graph = new()
    wanted = irtool.vjp(graph, [X, Y], [X], [0, 1], interpret=True)
    for _ in range(4):
        for found, each in zip(irtool.vjp(graph, [X, Y], [X], [0, 1]), wanted, strict=True):
            np.testing.assert_allclose(found, each, rtol=1e-14)
    assert stats(graph)["graph_executor_invocations"] == 6      # f and df, three times
    for _ in range(3):
        alike(irtool.vjp(graph, [X, Y], [None], [0, 1]), irtool.vjp(graph, [X, Y], [None], [0, 1], interpret=True))
    assert len(irtool.vjp(graph, [X, Y], [X], [1])) == 1


# -- changed graphs
def retype(graph: Any) -> None:
    """Another type of an input."""
    graph.inputs[0].type = tensor_type("float32")


def rename_kind(graph: Any) -> None:
    """Another operator."""
    graph.nodes[2].kind = "aten::sin"


def swap(graph: Any) -> None:
    """Other operands."""
    graph.nodes[3].set_inputs((graph.inputs[1], graph.nodes[2].output, graph.nodes[0].output))


def result(graph: Any) -> None:
    """Another result."""
    graph.block.set_outputs([graph.nodes[1].output])


def constant(graph: Any) -> None:
    """Another constant, in the place of the old one."""
    from irtool.ir.attribute import Attribute

    graph.nodes[0].set_attribute("value", Attribute("3"))


def pipeline(graph: Any) -> None:
    """A pass that changes something, after a node was made."""
    builder = irtool.Builder(graph).before(graph.block.return_node)
    made = builder.call("aten::mul", graph.outputs[0], graph.inputs[1])
    graph.block.set_outputs([made])
    irtool.PassManager("constant-pooling,dce").run(graph)


EDITS = [rename_kind, swap, result, constant, pipeline]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_a_plan_never_outlives_a_change(edit: Any) -> None:
    graph = new()
    for _ in range(3):
        before = irtool.run(graph, [X, Y])
        irtool.vjp(graph, [X, Y], [X], [0])
    edit(graph)
    wanted = irtool.run(graph, [X, Y], interpret=True)
    assert wanted[0].tobytes() != before[0].tobytes()
    gradient = irtool.vjp(graph, [X, Y], [X], [0], interpret=True)
    for _ in range(3):
        alike(irtool.run(graph, [X, Y]), wanted)
        np.testing.assert_allclose(irtool.vjp(graph, [X, Y], [X], [0])[0], gradient[0], rtol=1e-14)


def test_types_count_since_numbers_are_made_arrays_by_them() -> None:
    graph = new()
    for _ in range(3):
        assert irtool.run(graph, [2.0, 1])[0].dtype == np.float32
    graph.inputs[0].type = tensor_type("float64")
    for _ in range(3):
        assert irtool.run(graph, [2.0, 1])[0].dtype == np.float64


def test_graphs_in_blocks_and_in_nodes_count() -> None:
    graph = new("""graph(%c : bool, %x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::add(%x, %x, %1)
      -> (%a)
    block1():
      %b : Tensor = aten::neg(%x)
      -> (%b)
  return (%y)
""")
    for _ in range(3):
        assert irtool.run(graph, [False, X])[0].tolist() == (-X).tolist()
    graph.nodes[1].blocks[1].nodes[0].kind = "aten::exp"
    for _ in range(3):
        assert irtool.run(graph, [False, X])[0].tolist() == np.exp(X).tolist()
    graph = new("""graph(%x : Tensor):
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %1 : Tensor = aten::neg(%x)
  return (%1)
""")
    for _ in range(3):
        assert irtool.run(graph, [X])[0].tolist() == (-X).tolist()
    graph.nodes[0].subgraph.nodes[0].kind = "aten::exp"
    for _ in range(3):
        assert irtool.run(graph, [X])[0].tolist() == np.exp(X).tolist()


def test_a_python_operator_may_be_registered_anew() -> None:
    graph = new("graph(%x : Float(2)):\n  %1 : Float(2) = ^RunTwice()(%x)\n  return (%1)\n")
    x = np.array([1, 2], np.float32)
    for factor in (2, 3, 4):
        irtool.register_python_op("RunTwice", lambda x, factor=factor: x * factor)
        for _ in range(3):
            assert irtool.run(graph, [x])[0].tolist() == (x * factor).tolist()


def test_passes_that_users_register_hold_for_plans_made_before() -> None:
    graph = new()
    for _ in range(3):
        irtool.run(graph, [X, Y])
    seen: list[Any] = []

    @register_custom_pass
    def note(copy: Any) -> bool:
        seen.append(copy)
        return False

    try:
        irtool.run(graph, [X, Y])
        assert seen
    finally:
        clear_custom_passes()


# -- what is kept, and for how long
def test_plans_go_with_their_graph() -> None:
    graph = new()
    for _ in range(3):
        irtool.run(graph, [X, Y])
    kept = ref(graph.runs.executors["numpy"])
    copy = irtool.parse(str(graph)).graph()
    assert copy.runs is None
    del graph
    gc.collect()
    assert kept() is None


def test_only_so_many_graphs_have_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_GRAPHS", 2)
    graphs = [new() for _ in range(4)]
    for graph in graphs:
        for _ in range(2):
            irtool.run(graph, [X, Y])
    assert [graph.runs is not None for graph in graphs] == [False, False, True, True]
    for _ in range(3):
        alike(irtool.run(graphs[0], [X, Y]), irtool.run(graphs[0], [X, Y], interpret=True))


def test_threads_share_one_executor() -> None:
    graph = new()
    wanted = irtool.run(graph, [X, Y], interpret=True)[0].tobytes()
    gate = threading.Barrier(8)
    found: list[Any] = []

    def call() -> None:
        gate.wait()
        for _ in range(20):
            found.append(irtool.run(graph, [X, Y])[0].tobytes())

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 160
    assert stats(graph)["graph_executors_constructed"] == 1 == stats(graph)["execution_plan_cache_miss"]


# -- errors
def test_errors_are_those_of_the_reference() -> None:
    graph = new()
    for values in ([X, Y], [X, Y], [X, Y], [X, np.ones((4, 5))], [X]):
        for _ in range(3):
            try:
                irtool.run(graph, values)
            except irtool.Error as error:
                found = str(error)
            else:
                continue
            with pytest.raises(irtool.Error) as wanted:
                irtool.run(graph, values, interpret=True)
            assert found == str(wanted.value)
    with pytest.raises(irtool.RunError, match=r"g\.ir:3:3: error: The size of tensor a"):
        irtool.run(graph, [X, np.ones((4, 5))])
    with pytest.raises(irtool.RunError, match="expected 2 inputs"):
        irtool.run(graph, [X])
    with pytest.raises(irtool.RunError, match="expected a Module or a Graph"):
        irtool.run("graph", [X])        # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [
    ([X, Y], [X], [2]), ([X, Y], [X, X], [0]), ([X, Y], [np.ones(7)], [0]), ([X], [X], [0]), ([X, np.ones((4, 5))], [X], [0]),
])
def test_errors_of_gradients_are_those_of_the_reference(arguments: Any) -> None:
    graph = new()
    for _ in range(3):
        irtool.vjp(graph, [X, Y], [X], [0])
    with pytest.raises(irtool.Error) as wanted:
        irtool.vjp(graph, *arguments, interpret=True)
    for _ in range(3):
        with pytest.raises(irtool.Error) as found:
            irtool.vjp(graph, *arguments)
        assert str(found.value) == str(wanted.value)


def test_effects_before_an_error_are_not_had_twice() -> None:
    seen: list[int] = []

    def see(x: Any) -> Any:
        seen.append(1)
        return x

    irtool.register_python_op("RunSeen", see)
    graph = new("""graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = ^RunSeen()(%x)
  %2 : Tensor = aten::mul(%1, %y)
  return (%2)
""")
    for count in range(1, 5):
        with pytest.raises(irtool.RunError, match=r"g\.ir:3:3: error: The size of tensor a"):
            irtool.run(graph, [np.ones(2), np.ones(3)])
        assert len(seen) == count


def test_random_numbers_are_those_of_the_seed() -> None:
    graph = new("""graph(%x : Tensor):
  %1 : None = prim::Constant()
  %2 : Tensor = aten::rand_like(%x, %1, %1, %1, %1, %1)
  return (%2)
""")
    for seed in (0, 1, 0):
        wanted = irtool.run(graph, [X], seed=seed, interpret=True)
        for _ in range(3):
            alike(irtool.run(graph, [X], seed=seed), wanted)


def test_inputs_are_never_modified() -> None:
    graph = new("""graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add_(%x, %y, %1)
  return (%2)
""")
    x = X.copy()
    for _ in range(4):
        alike(irtool.run(graph, [x, Y]), [X + Y])
        alike([x], [X])


# -- what cannot be differentiated as one graph
HOLDERS = {
    "a tensor in a dict": """graph(%x : Tensor, %k : str):
  %a : Tensor = aten::tanh(%x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
  %b : Tensor = aten::mul(%a, %x)
   = aten::_set_item(%d, %k, %b)
  %c : Tensor = aten::__getitem__(%d, %k)
  %e : Tensor = aten::mul(%c, %a)
  return (%e)
""",
    "a list that a dict holds too": """graph(%x : Tensor, %k : str):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %d : Dict(str, Tensor[]) = prim::DictConstruct(%k, %l)
  %b : Tensor = aten::exp(%x)
  %u : Tensor[] = aten::append(%l, %b)
  %m : Tensor[] = aten::__getitem__(%d, %k)
  %c : Tensor = aten::__getitem__(%m, %1)
  %e : Tensor = aten::mul(%c, %x)
  %f : Tensor[] = aten::_set_item(%l, %0, %e)
  %g : Tensor = aten::__getitem__(%m, %0)
  return (%g)
""",
    "a dict that a loop fills": """graph(%x : Tensor, %k : str):
  %true : bool = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %a : Tensor = aten::tanh(%x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
   = prim::Loop(%3, %true)
    block0(%i : int):
      %c : Tensor = aten::__getitem__(%d, %k)
      %b : Tensor = aten::mul(%c, %x)
       = aten::_set_item(%d, %k, %b)
      -> (%true)
  %r : Tensor = aten::__getitem__(%d, %k)
  return (%r)
""",
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_cannot_be_differentiated_as_one_graph_goes_node_by_node(name: str) -> None:
    graph, x = new(HOLDERS[name]), np.linspace(-1, 1.2, 4)
    up, down = (irtool.run(graph, [x + step, "key"])[0] for step in (1e-6, -1e-6))
    for interpret in (True, False, False, False):
        found = irtool.vjp(graph, [x, "key"], [np.ones(4)], [0], interpret=interpret)[0]
        np.testing.assert_allclose(found, (up - down) / 2e-6, atol=1e-8)


def test_what_cannot_be_differentiated_at_all_is_refused_in_the_words_of_the_reference() -> None:
    graph = new("""graph(%x : Tensor):
  %1 : Tensor = ^RunUnknown()(%x)
  return (%1)
""")
    irtool.register_python_op("RunUnknown", lambda x: x)
    with pytest.raises(irtool.UnsupportedError) as wanted:
        irtool.vjp(graph, [X], [X], [0], interpret=True)
    for _ in range(3):
        with pytest.raises(irtool.UnsupportedError) as found:
            irtool.vjp(graph, [X], [X], [0])
        assert str(found.value) == str(wanted.value)


def test_runs_of_arrays_that_came_before_ask_little() -> None:
    """A steady run calls few functions of Python; a wrapper more is noticed."""
    graph = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %0 : Tensor = aten::mul(%x, %y)\n  %1 : Tensor = aten::tanh(%0)\n"
                         "  return (%1)\n").graph()
    x = np.ones((2, 3), np.float32)
    for most, call in ((25, lambda: irtool.run(graph, [x, x])), (40, lambda: irtool.vjp(graph, [x, x], [x], [0, 1]))):
        for _ in range(5):
            call()
        events = []
        sys.setprofile(lambda frame, event, argument, events=events: events.append(frame.f_code.co_qualname) if event == "call" else None)
        try:
            call()
        finally:
            sys.setprofile(None)
        assert len(events) <= most, events


DEAD = ("torch.mm(x, torch.ones([7, 7]))", "y.view(5)[0].mul_(2)", "y[9].add_(1)", "y[y > 0].add_(torch.ones([50]))", "y.view(77).neg_()")
"""What raises, of a tensor of 2 by 3 and a new tensor `y`."""


@pytest.mark.parametrize("control", ["{}", "if flag:\n        {}", "for i in range(2):\n        {}"])
@pytest.mark.parametrize("dead", DEAD)
def test_what_no_result_depends_on_may_raise(dead: str, control: str) -> None:
    """As in torch, which runs no dead code: every way to run gives the results."""
    module = irtool.from_script(f"def f(x: Tensor, flag: bool):\n    y = x * 2\n    z = y + 1\n    {control.format(dead)}\n    return z\n")
    text = irtool.parse(str(module))
    x = np.ones((2, 3))
    for graph in (module, text):
        calls = [partial(irtool.run, graph, interpret=True), *[partial(irtool.run, graph)] * 3]
        for options in ({"native": False}, {"optimize": False}, {"profiling": True}):
            calls += [irtool.compile(graph, **options).run] * 2
        for call in calls:
            np.testing.assert_array_equal(call([x, True])[0], x * 2 + 1)


def test_what_a_result_depends_on_raises() -> None:
    module = irtool.from_script("def f(x: Tensor):\n    y = x * 2\n    z = y + 1\n    y[9].add_(1)\n    return z, y\n")
    for interpret in (True, False, False):
        with pytest.raises(irtool.RunError, match="out of range"):
            irtool.run(module, [np.ones((2, 3))], interpret=interpret)
