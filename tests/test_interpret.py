"""Running graphs: control flow, mutation and aliasing, liveness, errors with lines, Python operators, texts of every year."""
from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.interpret import Observer, walk
from irtool.ir.graph import Node, Value


def run(text: str, *inputs: Any, **options: Any) -> list[Any]:
    return irtool.run(irtool.parse(text, filename="g.ir"), list(inputs), **options)


LOOP = """graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %zero : int = prim::Constant[value=0]()
  %y : Tensor, %count : int = prim::Loop(%n, %true, %x, %zero)
    block0(%i : int, %t : Tensor, %c : int):
      %r : int = aten::remainder(%i, %two)
      %odd : bool = aten::eq(%r, %one)
      %u : Tensor, %d : int = prim::If(%odd)
        block0():
          %m : Tensor = aten::mul(%t, %two)
          %e : int = aten::add(%c, %one)
          -> (%m, %e)
        block1():
          %a : Tensor = aten::add(%t, %one, %one)
          -> (%a, %c)
      -> (%true, %u, %d)
  return (%y, %count)
"""


def test_loops_and_branches() -> None:
    x = np.ones(2, np.float32)
    y, count = run(LOOP, x, 4)
    assert y.tolist() == [10.0, 10.0] and y.dtype == np.float32 and count == 2
    assert run(LOOP, x, 0)[0] is x and run(LOOP, x, -3)[1] == 0


def test_a_while_loop_asks_its_condition() -> None:
    text = """graph(%n : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %two : int = prim::Constant[value=2]()
  %limit : int = prim::Constant[value=100]()
  %go : bool = aten::lt(%n, %limit)
  %out : int = prim::Loop(%max, %go, %n)
    block0(%i : int, %k : int):
      %d : int = aten::mul(%k, %two)
      %more : bool = aten::lt(%d, %limit)
      -> (%more, %d)
  return (%out)
"""
    assert run(text, 3) == [192] and run(text, 500) == [500]


def test_nesting_does_not_recurse() -> None:
    depth = 150
    lines = ["graph(%c : bool, %x : Tensor):"]
    for i in range(depth):
        lines += [f"{'    ' * i}  %y{i} : Tensor = prim::If(%c)", f"{'    ' * i}    block0():"]
    lines.append(f"{'    ' * depth}  %z : Tensor = aten::neg(%x)")
    for i in reversed(range(depth)):
        inner = f"%y{i + 1}" if i + 1 < depth else "%z"
        lines += [f"{'    ' * i}      -> ({inner})", f"{'    ' * i}    block1():", f"{'    ' * i}      -> (%x)"]
    text = "\n".join([*lines, "  return (%y0)", ""])
    graph = irtool.parse(text).graph()
    limit = sys.getrecursionlimit()
    assert irtool.run(graph, [True, np.ones(1)])[0].tolist() == [-1.0]
    assert irtool.run(graph, [False, np.ones(1)])[0].tolist() == [1.0]
    assert sys.getrecursionlimit() == limit


def test_lists_tuples_dicts_and_types() -> None:
    text = """graph(%x : Tensor, %k : str):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %list : int[] = prim::ListConstruct(%1, %2)
  %3 : int[] = aten::append(%list, %2)
  %pair : (Tensor, int[]) = prim::TupleConstruct(%x, %list)
  %a : Tensor, %b : int[] = prim::TupleUnpack(%pair)
  %d : Dict(str, int[]) = prim::DictConstruct(%k, %b)
  %e : int[] = aten::__getitem__(%d, %k)
  %p : int, %q : int, %r : int = prim::ListUnpack(%e)
  %is : bool = prim::isinstance[types=[Tensor]](%x)
  %s : Tensor = prim::TupleIndex(%pair, %1)
  return (%pair, %d, %r, %is, %s)
"""
    x = np.ones(1)
    pair, table, last, is_tensor, second = run(text, x, "key")
    assert pair[0].tolist() == [1] and pair[1] == [1, 2, 2] and table == {"key": [1, 2, 2]}
    assert last == 2 and is_tensor is True and second == [1, 2, 2]


# -- mutation and aliasing
MUTATES = """graph(%x : Tensor, %l : int[]):
  %1 : int = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %v : Tensor = aten::select(%x, %0, %1)
  %w : Tensor = aten::add_(%v, %1, %1)
  %m : int[] = aten::append(%l, %1)
  return (%x, %v, %l)
"""


def test_writes_go_through_views_but_never_into_the_callers_arrays() -> None:
    x, items = np.zeros((2, 2), np.float32), [5]
    y, view, grown = run(MUTATES, x, items)
    assert y.tolist() == [[0, 0], [1, 1]] and np.shares_memory(y, view) and grown == [5, 1]
    assert not x.any() and items == [5]
    x.flags.writeable = False
    assert run(MUTATES, x, items)[1].tolist() == [1, 1]


def test_one_array_given_twice_is_one_array_inside() -> None:
    text = """graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = aten::add_(%x, %1, %1)
  return (%y)
"""
    x = np.zeros(2)
    assert run(text, x, x)[0].tolist() == [1, 1] and run(text, x, x.copy())[0].tolist() == [0, 0]


def test_strides_of_inputs_are_kept() -> None:
    text = """graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = aten::add_(%x, %1, %1)
  %s : int[] = aten::stride(%x)
  return (%s)
"""
    assert run(text, np.zeros((3, 4)).T) == [[1, 4]] and run(text, np.zeros((3, 4))[:, :2]) == [[4, 1]]


def test_inputs_are_made_fit() -> None:
    text = """graph(%x : Float(*), %n : int, %f : float, %t : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %t, %1)
  return (%y, %n, %f, %t)
"""
    y, n, f, t = run(text, np.arange(4.0, dtype=np.float32)[::-1], np.int64(3), 2, 5)
    assert y.tolist() == [8, 7, 6, 5] and (n, f) == (3, 2.0) and type(f) is float and t.dtype == np.int64 and t.shape == ()
    assert run(text, np.ones(1, ">f4"), 1, 1.0, 1.5)[0].dtype == np.float32
    with pytest.raises(irtool.RunError, match="expected 4 inputs"):
        run(text, 1)
    with pytest.raises(irtool.RunError, match="%x is an array of dtype object"):
        run(text, np.array([None]), 1, 1.0, 1.0)


def test_numbers_in_the_text_promote_as_numbers() -> None:
    text = """graph(%x : Long(3)):
  %c : Double() = prim::Constant[value={2.5}]()
  %1 : int = prim::Constant[value=1]()
  %y : Float(3) = aten::mul(%x, %c)
  return (%y, %c)
"""
    y, c = run(text, np.arange(3))
    assert y.dtype == np.float32 and y.tolist() == [0, 2.5, 5] and c.dtype == np.float64 and c.shape == ()


def test_a_constant_that_is_written_into_is_fresh_every_time() -> None:
    text = """graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %out : Tensor = prim::Loop(%n, %true, %z)
    block0(%i : int, %o : Tensor):
      %c : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
      %d : Tensor = aten::add_(%c, %1, %1)
      -> (%true, %d)
  return (%out)
"""
    graph = irtool.parse(text).graph()
    assert irtool.run(graph, [3])[0].tolist() == [2, 3] == irtool.run(graph, [3])[0].tolist()


# -- liveness
class Big:
    """A value that counts its kind alive."""

    alive = 0
    peak = 0

    def __init__(self) -> None:
        Big.alive += 1
        Big.peak = max(Big.peak, Big.alive)

    def __del__(self) -> None:
        Big.alive -= 1


def fresh_values(node: Node, operands: list[Any]) -> list[Any]:
    del operands
    return [True if value.type.text == "bool" else 3 if value.type.text == "int" else Big() for value in node.outputs]


def peak_of(text: str, *inputs: Any) -> int:
    Big.alive = Big.peak = 0
    values = [Big() if value is Big else value for value in inputs]
    walk(irtool.parse(text).graph(), values, fresh_values)
    assert not values
    return Big.peak


def test_a_chain_peaks_at_two_buffers() -> None:
    lines = [f"  %{i + 1} : Tensor = aten::neg(%{i})" for i in range(50)]
    assert peak_of("\n".join(["graph(%0 : Tensor):", *lines, "  return (%50)", ""]), Big) == 2


def test_loops_and_branches_let_go_too() -> None:
    text = """graph(%x : Tensor, %c : bool):
  %n : int = prim::Constant[value=3]()
  %y : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int, %t : Tensor):
      %u : Tensor = prim::If(%c)
        block0():
          %a : Tensor = aten::neg(%t)
          %b : Tensor = aten::neg(%a)
          -> (%b)
        block1():
          -> (%t)
      -> (%c, %u)
  %unused : Tensor = aten::neg(%y)
  %z : Tensor = aten::neg(%y)
  return (%z)
"""
    assert peak_of(text, Big, True) <= 3


def test_arrays_die_at_their_last_use() -> None:
    class Watch(Observer):
        def __init__(self) -> None:
            self.alive: list[weakref.ref[Any]] = []
            self.most = 0

        def after(self, node: Node, results: Any) -> None:
            self.alive += [weakref.ref(r) for r in results if isinstance(r, np.ndarray)]
            self.most = max(self.most, sum(ref() is not None for ref in self.alive))

        def released(self, value: Value, content: Any) -> None:
            self.last = value.name

    lines = [f"  %{i + 1} : Tensor = aten::neg(%{i})" for i in range(20)]
    watch = Watch()
    run("\n".join(["graph(%0 : Tensor):", *lines, "  return (%20)", ""]), np.ones(3), observer=watch)
    assert watch.most == 2 and watch.last == "20"


def test_a_thousand_runs_leave_nothing_behind() -> None:
    module = irtool.parse(LOOP)
    mutating = irtool.parse(MUTATES)
    x = np.ones(4, np.float32)

    def once() -> None:
        irtool.run(module, [x, 5])
        irtool.run(mutating, [np.ones((2, 2)), [1]])

    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(20):
            once()
        before, blocks = len(gc.get_objects()), sys.getallocatedblocks()
        for _ in range(1000):
            once()
        assert abs(sys.getallocatedblocks() - blocks) < 200
        assert abs(len(gc.get_objects()) - before) < 20
    finally:
        if enabled:
            gc.enable()


# -- errors
def test_errors_carry_the_line_and_torchs_words() -> None:
    text = """graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = aten::add(%x, %y, %1)
  return (%z)
"""
    with pytest.raises(irtool.RunError) as raised:
        run(text, np.ones(2), np.ones(3))
    assert str(raised.value).startswith("g.ir:3:3: error: The size of tensor a (2) must match the size of tensor b (3)")
    with pytest.raises(irtool.UnsupportedError, match="aten::frobnicate"):
        run("graph(%x : Tensor):\n  %y : Tensor = aten::frobnicate(%x)\n  return (%y)\n", np.ones(2))


def test_what_the_graph_raises() -> None:
    text = """graph(%c : bool):
  %m : str = prim::Constant[value="no such luck"]()
  %k : str = prim::Constant[value="builtins.ValueError"]()
  %r : int = prim::If(%c)
    block0():
      %1 : int = prim::Constant[value=1]()
      -> (%1)
    block1():
      %u : int = prim::Uninitialized()
       = prim::RaiseException(%m, %k)
      -> (%u)
  return (%r)
"""
    assert run(text, True) == [1]
    with pytest.raises(irtool.RunError, match="g.ir:10:8: error: ValueError: no such luck"):
        run(text, False)


def test_a_function_known_by_name_only_is_named() -> None:
    text = """graph(%x : Tensor):
  %f : Function = prim::Constant[name="mystery"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
"""
    with pytest.raises(irtool.UnsupportedError, match="prim::CallFunction of 'mystery'"):
        run(text, np.ones(1))


# -- Python operators, subgraphs, randomness
def test_python_operators_run_what_is_registered() -> None:
    text = """graph(%x : Tensor):
  %y : Tensor = ^Scale(2, "twice", (1, None))(%x)
  return (%y)
"""
    with pytest.raises(irtool.UnsupportedError, match="no Python op registered as 'Scale'"):
        run(text, np.ones(2))
    seen: list[Any] = []

    def scale(factor: int, word: str, rest: tuple[Any, ...], x: Any) -> Any:
        seen.append((word, rest))
        x *= factor
        return x

    irtool.register_python_op("Scale", scale)
    x = np.ones(2)
    assert run(text, x)[0].tolist() == [2, 2] and x.tolist() == [1, 1] and seen == [("twice", (1, None))]
    irtool.register_python_op("Scale", lambda *values: 1 / 0)
    with pytest.raises(irtool.RunError, match="g.ir:2:3: error: .*ZeroDivisionError"):
        run(text, x)
    with pytest.raises(irtool.RunError):
        irtool.register_python_op("Scale", 3)   # type: ignore[arg-type]


def test_scalars_of_python_operators_are_literals_only() -> None:
    irtool.register_python_op("Evil", lambda *values: values[-1])
    text = "graph(%x : Tensor):\n  %y : Tensor = ^Evil(__import__('os').getcwd())(%x)\n  return (%y)\n"
    with pytest.raises(irtool.Error):
        run(text, np.ones(1))


def test_subgraphs_run() -> None:
    text = """graph(%x : Float(2), %y : Float(2)):
  %z : Float(2) = prim::FusionGroup_0(%x, %y)
  return (%z)
with prim::FusionGroup_0 = graph(%a : Float(2), %b : Float(2)):
  %c : Float(2) = aten::mul(%a, %b)
  %d : Float(2) = aten::tanh(%c)
  return (%d)
"""
    assert np.allclose(run(text, np.ones(2), np.full(2, 2.0))[0], np.tanh(2.0))


def test_random_operators_draw_from_the_seed() -> None:
    text = """graph(%x : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = aten::dropout(%x, %p, %t)
  return (%y)
"""
    x = np.ones(200, np.float32)
    first, again, other = (run(text, x, seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other) and set(first.tolist()) == {0.0, 2.0}


# -- texts of other years
@pytest.mark.parametrize(("text", "inputs", "expected"), [
    ("""graph(%0 : Float(2), %1 : Float(2)) {
  %2 : Float(2) = aten::add[alpha={3}](%0, %1)
  return (%2);
}
""", ([1, 2], [1, 1]), [4, 5]),
    ("""graph(%0 : Double(2)
      %1 : Double(2)) {
  %2 : Double(2) = mul(%0, %1)
  %3 : Double(2) = add[alpha={1}](%2, %1)
  return (%3);
}
""", ([1, 2], [3, 4]), [6, 12]),
    ("""graph(%0 : Float(4)) {
  %1 : Float(2), %2 : Float(2) = aten::chunk[chunks=2, dim=0](%0)
  %3 : Float(4) = aten::cat[dim=0](%2, %1)
  return (%3);
}
""", ([1, 2, 3, 4],), [3, 4, 1, 2]),
    ("""graph(%x : Dynamic
      %y : Dynamic) {
  %2 : int = prim::Constant[value=1]()
  %3 : Dynamic = aten::sub(%x, %y, %2)
  return (%3);
}
""", ([1, 2], [1, 1]), [0, 1]),
])
def test_old_dialects_run(text: str, inputs: tuple[list[float], ...], expected: list[float]) -> None:
    assert run(text, *[np.array(x, np.float32) for x in inputs])[0].tolist() == expected


def test_functions_of_torchs_gradient_graphs_are_known_by_name() -> None:
    text = """graph(%g : Tensor, %dims : int[]):
  %f : Function = prim::Constant[name="AD_permute_backward"]()
  %y : Tensor = prim::CallFunction(%f, %g, %dims)
  return (%y)
"""
    assert run(text, np.zeros((2, 3, 4)), [2, 0, 1])[0].shape == (3, 4, 2)


def test_a_list_of_tensors_without_data_says_so() -> None:
    module = irtool.parse("graph():\n  %0 : Tensor[] = prim::Constant[value=[<Tensors>]]()\n  return (%0)\n")
    with pytest.raises(irtool.UnsupportedError, match="has no data for these tensors"):
        irtool.run(module, [])


@pytest.mark.parametrize("graph, inputs, message", [
    (None, [], "expected a Module or a Graph, got NoneType"),
    ("graph():", [], "expected a Module or a Graph, got str"),
    (irtool.parse("graph(%x : Tensor):\n  return (%x)\n"), {"x": 1}, "expected a list of inputs, one per input of the graph (%x : Tensor)"),
    (irtool.parse("graph(%x : Tensor):\n  return (%x)\n"), np.ones((1, 2)), "expected a list of inputs"),
    (irtool.parse("graph(%x : Tensor):\n  return (%x)\n"), ["a"], "input %x: expected Tensor, got 'a'"),
    (irtool.parse("graph(%n : int):\n  return (%n)\n"), [None], "input %n: expected int, got None"),
    (irtool.parse("graph():\n  %0 : int = prim::Constant[value=" + "9" * 5000 + "]()\n  return (%0)\n"), [], "is no int"),
])
def test_misuse_has_a_message(graph: Any, inputs: Any, message: str) -> None:
    with pytest.raises(irtool.RunError) as raised:
        irtool.run(graph, inputs)
    assert message in str(raised.value)


def test_a_graph_that_is_none_is_refused_by_the_verifier() -> None:
    text = ("graph(%c : bool):\n  %0 : int = prim::If(%c)\n    block0():\n      %1 : int = prim::Constant[value=1]()\n      -> (%1)\n"
            "    block1():\n      %2 : int = prim::Constant[value=2]()\n      -> (%2)\n  return (%2)\n")
    with pytest.raises(irtool.VerifyError, match="%2, which is defined in a block that does not enclose it"):
        irtool.run(irtool.parse(text), [True])


def test_a_subgraph_gives_what_its_node_promises() -> None:
    text = ("graph(%0 : Tensor):\n  %1 : Tensor = prim::DifferentiableGraph_0(%0)\n  return (%1)\n"
            "with prim::DifferentiableGraph_0 = graph(%0 : Tensor):\n  return ()\n")
    with pytest.raises(irtool.Error, match=r"<string>:2:3: error: prim::DifferentiableGraph has 1 results, what it runs gives 0"):
        irtool.run(irtool.parse(text), [np.ones(2)])
