"""Fused groups of pointwise operators: blocks have the bits of the graph run node by node, native loops come close."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.execute import disk_cache, fusion
from irtool.execute.fusion import Fused
from irtool.execute.native import building
from irtool.interpret import run
from irtool.ir.schema import schemas
from irtool.ops import OPS
from irtool.ops.call import call_op, overload
from irtool.ops.symbols.elementwise import NotPointwise, Symbol, program, symbolic
from irtool.passes import BY_NAME
from tests.laws import family, over

HAS_COMPILER = building.compiler() is not None
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="there is no C compiler")

CHAIN = """graph(%a : Float(*, *), %b : Float(*, *), %w : Float(*)):
  %one : int = prim::Constant[value=1]()
  %two : float = prim::Constant[value=2.5]()
  %none : str = prim::Constant[value="none"]()
  %1 : Float(*, *) = aten::mul(%a, %b)
  %2 : Float(*) = aten::mul(%w, %two)
  %3 : Float(*, *) = aten::add(%1, %2, %one)
  %4 : Float(*, *) = aten::tanh(%3)
  %5 : Float(*, *) = aten::sigmoid(%4)
  %6 : Float(*, *) = aten::relu(%5)
  %7 : Bool(*, *) = aten::gt(%6, %1)
  %8 : Float(*, *) = aten::where(%7, %6, %3)
  %9 : Float(*, *) = aten::gelu(%8, %none)
  return (%9, %2, %4, %7)
"""


def arrays(shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in (shape, shape, shape[-1:])]


def assert_same_bits(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape and x.strides == y.strides
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (700, 300), (3, 70000), (70000, 3)])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_have_the_bits_of_the_graph(shape, layout, threads, monkeypatch):
    monkeypatch.setattr(fusion, "WORTH_THREADS", 1)
    a, b, w = arrays(shape)
    if layout == "columns":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    elif layout == "gaps":
        a = np.repeat(a, 2, axis=1)[:, ::2]
        w = np.repeat(w, 3)[::3]
    graph = irtool.parse(CHAIN).graph()
    fused = Fused(graph, native=False, threads=threads)
    wanted = run(graph, [a, b, w])
    for _ in range(2):
        found = fused([a, b, w])
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_array_equal(x, y)
    assert "NumPy in blocks" in next(iter(fused.chosen.values()))


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_native_loop_comes_close_and_threads_keep_its_bits(dtype, threads, monkeypatch):
    monkeypatch.setattr(fusion, "WORTH_THREADS", 1)
    inputs = arrays((301, 47), dtype=dtype)
    graph = irtool.parse(CHAIN).graph()
    alone = Fused(graph, native=True)(inputs)
    found = Fused(graph, native=True, threads=threads)(inputs)
    assert_same_bits(found, alone)
    for x, y in zip(found, run(graph, inputs), strict=True):
        if y.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=3e-6 if dtype == np.float32 else 1e-13, atol=1e-6 if dtype == np.float32 else 1e-14)


def is_pointwise(name, operands):
    """Is its kernel on symbols pointwise?"""
    try:
        symbolic(overload(name), [Symbol(np.dtype(np.float32), False) if each is None else each[0] for each in operands])
    except NotPointwise:
        return False
    return True


def overloads_of_tensors_and_numbers():
    """Each overload that may be pointwise, with operands: float arrays, numbers for the rest."""
    for name in OPS:
        for own in OPS[name].names:
            try:
                found = overload(own)
            except irtool.Error:
                continue
            operands = [operand_for(argument) for argument in found.schema.arguments]
            if own == name and not any(each is ... for each in operands) and "rrelu" not in own and "dropout" not in own:
                yield pytest.param(own, operands, id=own.removeprefix("aten::"))


def operand_for(argument):
    """None for a tensor, (value,) for a number, ... for what is not served here."""
    text = argument.type.text
    if text == "Tensor":
        return None
    if isinstance(argument.default, int | float | str | bool):
        return (argument.default,)
    values = {"Scalar": (0.75,), "float": (0.5,), "bool": (False,), "int": (1,), "ScalarType": (7,)}
    return (None,) if text.endswith("?") else values.get(text, ...)


@over("name, operands", overloads_of_tensors_and_numbers(), family)
def test_each_pointwise_operator_in_blocks_and_natively(name, operands, monkeypatch):
    if not is_pointwise(name, operands):
        pytest.skip("its kernel on symbols is not pointwise")
    monkeypatch.setattr(fusion, "BLOCK", 7)
    rng = np.random.default_rng(1)
    tensors = [rng.uniform(-1.5, 1.5, (4, 9)).astype(np.float32) for each in operands if each is None]
    given = iter(tensors)
    args = [next(given) if each is None else each[0] for each in operands]
    wanted = call_op(name, args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    graph = graph_of(name, operands, len(wanted))
    found = Fused(graph, native=False)(tensors)
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    if HAS_COMPILER:
        for x, y in zip(Fused(graph, native=True)(tensors), wanted, strict=True):
            assert x.dtype == y.dtype
            if y.dtype.kind in "bi":
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(x, y, rtol=5e-6, atol=1e-6, equal_nan=True)


def graph_of(name, operands, results):
    """A graph of one node."""
    from irtool.ir import types
    from irtool.ir.builder import Builder
    from irtool.ir.graph import Graph

    schema = next(s for s in schemas(name.partition(".")[0]) if s.name == name)
    graph = Graph(irtool.parse("graph(%a : Float(*)):\n  return (%a)\n").graph().dialect)
    build = Builder(graph)
    tensors = [graph.block.add_input(graph.fresh_id(), types.TENSOR) for each in operands if each is None]
    given = iter(tensors)
    inputs = [next(given) if each is None else build.constant(each[0]) for each in operands]
    node = build.node(schema.kind, inputs, output_types=[types.TENSOR] * results)
    graph.block.set_outputs(node.outputs)
    return graph


def test_it_is_known_which_operators_are_pointwise():
    names = {case.values[0] for case in overloads_of_tensors_and_numbers() if is_pointwise(*case.values)}
    assert {"aten::add.Tensor", "aten::tanh", "aten::gelu", "aten::threshold_backward", "aten::to.dtype"} <= names
    assert not {"aten::sum", "aten::mm", "aten::softmax.int", "aten::view", "aten::cumsum", "aten::bernoulli"} & names
    assert len(names) > 240


@given(st.lists(st.integers(1, 4), min_size=0, max_size=3), st.data())
@settings(max_examples=60, deadline=None)
def test_broadcasting(shape, data):
    """Any operands that broadcast to a shape give what the graph gives."""
    text = """graph(%a : Tensor, %b : Tensor, %c : Tensor):
      %1 : Tensor = aten::mul(%a, %b)
      %2 : Tensor = aten::maximum(%1, %c)
      %3 : Tensor = aten::neg(%b)
      %4 : Tensor = aten::div(%2, %3)
      return (%4, %1, %3)
    """
    operands = []
    for _ in range(3):
        own = [data.draw(st.sampled_from((1, n))) for n in shape]
        own = own[data.draw(st.integers(0, len(own))):]
        dtype = data.draw(st.sampled_from((np.float32, np.float64)))
        operands.append((np.arange(1, 1 + int(np.prod(own, dtype=int))).reshape(own) / 7).astype(dtype))
    graph = irtool.parse(text).graph()
    wanted = run(graph, operands)
    for is_native in (False, True) if HAS_COMPILER else (False,):
        if is_native and data.draw(st.booleans()):
            continue
        for x, y in zip(Fused(graph, native=is_native)(operands), wanted, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_array_equal(x, y)


def test_what_cannot_be_fused_runs_node_by_node():
    graph = irtool.parse(CHAIN).graph()
    empty = [np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32), np.ones(4, np.float32)]
    fused = Fused(graph)
    assert_same_bits(fused(empty), run(graph, empty))
    assert "node by node" in next(iter(fused.chosen.values()))
    with pytest.raises(irtool.Error, match="must match the size of tensor b"):
        fused([np.ones((2, 3), np.float32), np.ones((2, 4), np.float32), np.ones(3, np.float32)])
    with pytest.raises(irtool.Error):
        fused([np.ones((2, 3), np.complex64)] * 2 + [np.ones(3, np.complex64)])


def test_results_are_never_the_operands():
    graph = irtool.parse("graph(%a : Float(*)):\n  %none : NoneType = prim::Constant()\n  %1 : Float(*) = aten::clone(%a, %none)\n"
                         "  %2 : Float(*) = aten::neg(%1)\n  return (%1, %2)\n").graph()
    a = np.ones(5, np.float32)
    found = Fused(graph)([a])
    assert not np.shares_memory(found[0], a)


def test_equal_steps_are_there_once():
    graph = irtool.parse("graph(%a : Float(*)):\n  %1 : Float(*) = aten::neg(%a)\n  %2 : Float(*) = aten::neg(%a)\n"
                         "  %3 : Float(*) = aten::mul(%1, %2)\n  return (%3)\n").graph()
    assert [step.name for step in program(graph, [(np.float32, False)]).steps] == ["negative", "multiply"]


def test_the_pass_finds_the_groups_and_running_them_changes_nothing():
    text = """graph(%x : Float(*, *), %y : Float(*, *)):
      %one : int = prim::Constant[value=1]()
      %2 : Float(*, *) = aten::mul(%x, %y)
      %3 : Float(*, *) = aten::tanh(%2)
      %4 : Float(*, *) = aten::mm(%3, %y)
      %5 : Float(*, *) = aten::add(%2, %y, %one)
      %6 : Float(*, *) = aten::add(%4, %5, %one)
      return (%6)
    """
    graph = irtool.parse(text).graph()
    x, y = np.eye(4, dtype=np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)
    wanted = run(graph, [x, y])
    assert BY_NAME["fuse"](graph)
    assert [node.kind for node in graph.block if "Constant" not in node.kind] == ["prim::FusionGroup", "aten::mm", "prim::FusionGroup"]
    assert_same_bits(run(graph, [x, y]), wanted)
    assert not BY_NAME["fuse"](graph)


# -- what is kept on disk
def test_entries_come_back_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    key = disk_cache.key_of("a", "b")
    assert key != disk_cache.key_of("ab", "")
    path = disk_cache.store(key, "txt", b"hello")
    assert disk_cache.read(key, "txt") == b"hello"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert disk_cache.read(key, "txt") is None and not path.exists()
    monkeypatch.setenv("IRTOOL_CACHE_DIR", "")
    assert disk_cache.store(key, "txt", b"hello") is None and disk_cache.read(key, "txt") is None


def test_a_folder_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    assert disk_cache.folder() is None


def test_the_cache_does_not_grow_without_bound(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 1000)
    for i in range(20):
        disk_cache.store(disk_cache.key_of(str(i)), "txt", bytes(100))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


@needs_compiler
def test_a_damaged_kernel_is_made_anew(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    graph = irtool.parse("graph(%a : Float(*)):\n  %1 : Float(*) = aten::neg(%a)\n  %2 : Float(*) = aten::exp(%1)\n  return (%2)\n").graph()
    a = np.linspace(0, 1, 11, dtype=np.float32)
    wanted = Fused(graph, native=True)([a])
    (kept,) = tmp_path.iterdir()
    damaged = kept.read_bytes()[:1000]
    kept.unlink()       # the file itself is mapped
    kept.write_bytes(damaged)
    monkeypatch.setattr(building, "_loops", {})
    assert_same_bits(Fused(graph, native=True)([a]), wanted)
    assert disk_cache.load(kept.stem, "so") is not None


@needs_compiler
def test_a_folder_that_can_only_be_read_serves_what_it_has(tmp_path, monkeypatch):
    """Kept kernels are not compiled again; others are, and serve this process."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    graphs = [irtool.parse(f"graph(%a : Float(*)):\n  %1 : Float(*) = aten::neg(%a)\n  %2 : Float(*) = aten::{name}(%1)\n"
                           "  return (%2)\n").graph() for name in ("sqrt", "abs")]
    a = -np.linspace(0, 1, 11, dtype=np.float32)
    Fused(graphs[0], native=True)([a])
    before = {path: path.stat() for path in tmp_path.iterdir()}

    def refuse(*args, **named):
        raise PermissionError("only to be read")        # the owner of the test may be root, whom permissions do not stop

    calls = []
    compiled = building._compile
    monkeypatch.setattr(building, "_compile", lambda text, base: calls.append(text) or compiled(text, base))
    monkeypatch.setattr(building, "_loops", {})
    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refuse)
    for name in ("utime", "replace"):
        monkeypatch.setattr(disk_cache.os, name, refuse)
    for graph, compilations in zip(graphs, (0, 1), strict=True):
        for _ in range(2):
            assert_same_bits(Fused(graph, native=True)([a]), run(graph, [a]))
        assert len(calls) == compilations
    assert {path: path.stat() for path in tmp_path.iterdir()} == before


def test_without_a_compiler_numpy_does_it(monkeypatch):
    monkeypatch.setattr(building, "compiler", lambda: None)
    graph = irtool.parse(CHAIN).graph()
    inputs = arrays((5, 6))
    fused = Fused(graph, native=True)
    assert_same_bits(fused(inputs), run(graph, inputs))


def test_a_group_computes_in_the_dtype_of_its_operands():
    """A kernel that asks for its operands' common dtype itself is told, on symbols as on arrays."""
    graph = irtool.parse("graph(%x : Double(*)):\n  %two : int = prim::Constant[value=2]()\n  %1 : Double(*) = aten::pow(%x, %two)\n"
                         "  %2 : Double(*) = aten::neg(%1)\n  return (%2)\n").graph()
    inputs = [np.linspace(0, 1, 11)]
    assert_same_bits(Fused(graph)(inputs), run(graph, inputs))


def parsed(text: str) -> irtool.Graph:
    return irtool.parse(text).graph()


@pytest.mark.parametrize("native", [False, True])
def test_numbers_that_are_equal_need_not_be_the_same(native: bool) -> None:
    """0.0 and -0.0, and a nan is found again."""
    graph = irtool.parse("graph(%x : Float(*), %n : float):\n  %a : Float(*) = aten::mul(%x, %n)\n  return (%a)\n").graph()
    fused, x = Fused(graph, native=native), np.ones(8, np.float32)
    for number in (0.0, -0.0, float("nan"), float("nan")):
        assert_same_bits(fused([x, number]), run(graph, [x, number]))
    assert len(fused.ways) == 3


def test_small_arrays_that_lie_otherwise_and_results_that_are_equal() -> None:
    """What blocks may get wrong: another layout in one block, one step that gives two results, no step of the largest shape."""
    twice = parsed("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::exp(%1)\n  %3 : Tensor = aten::exp(%1)\n"
                     "  return (%2, %3)\n")
    for x in (np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3).T, np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)):
        first, second = Fused(twice, native=False)([x])
        assert (first == np.exp(-x)).all() and (second == first).all()
        assert not np.shares_memory(first, second) and first.strides == second.strides
        out = np.empty_like(x)
        chain = parsed("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::exp(%1)\n  return (%2)\n")
        Fused(chain, native=False).into([x], [out])
        assert (out == np.exp(-x)).all()
        over = x.copy("K")
        Fused(chain, native=False).into([over], [over])
        assert (over == out).all()
    apart = parsed("graph(%x : Tensor, %y : Tensor, %z : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::neg(%y)\n"
                     "  return (%1, %2)\n")
    found = Fused(apart, native=False)([np.ones((1, 3)), np.ones((3, 1)), np.ones((3, 3))])
    assert [each.shape for each in found] == [(1, 3), (3, 1)]
