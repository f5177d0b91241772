"""Everything runs on CuPy arrays: the operators' samples and facts, on a stand-in for CuPy that has what CuPy has, and no more."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import fake_cupy
import numpy as np
import pytest
from op_facts import FACTS
from plan_samples import runnable
from side_by_side import difference

import irtool
from irtool import Error
from irtool.cli.main import main
from irtool.execute.compilation import Options
from irtool.execute.device.cupy_kernels import KernelGroup, literal, source
from irtool.execute.device.device_executor import DeviceExecutor
from irtool.execute.device.device_plan import DevicePlan
from irtool.execute.native.c_source import ARITHMETIC, Untranslatable
from irtool.ops import OPS, device
from irtool.ops.arrays import code_of, seeded, using
from irtool.ops.call import call_op, overload
from irtool.ops.device import backend
from irtool.ops.symbols.elementwise import NotPointwise, Symbol, flattened, program, symbolic
from tests.corpus import TEXTS, origin
from tests.laws import over


@pytest.fixture(autouse=True)
def cupy() -> Iterator[Any]:
    """The stand-in, where `import cupy` looks."""
    with fake_cupy.installed() as found:
        backend("cupy")     # from now on its arrays are known as arrays
        yield found


def moved(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Arrays on the device; one that is there twice is there twice again."""
    known = {} if known is None else known
    if isinstance(value, np.ndarray):
        if id(value) not in known:
            known[id(value)] = fake_cupy.NAMESPACE.asarray(value)
        return known[id(value)]
    if isinstance(value, list | tuple):
        return type(value)([moved(each, known) for each in value])
    return value


def back(value: Any) -> Any:
    """Arrays on the host. What is on the host already should not be."""
    assert not isinstance(value, np.ndarray | np.generic), f"a result that is no CuPy array: {value!r}"
    if isinstance(value, fake_cupy.ndarray):
        return value.get(order="A")
    if isinstance(value, list | tuple):
        return type(value)([back(each) for each in value])
    return value


def outcome(call: Any) -> Any:
    try:
        with np.errstate(all="ignore"), seeded(0):
            return call()
    except Error as error:
        return f"{type(error).__name__}: {error}"


def compared(name: str, sample: Any, schema: str) -> str | None:
    """How the results of a call differ."""
    wanted = outcome(lambda: overload(name)(sample.arguments(schema)))
    with using(backend("cupy")):
        found = outcome(lambda: back(overload(name)(moved(sample.arguments(schema)))))
    return difference(found, wanted)


@pytest.mark.parametrize("family", sorted({op.family for op in OPS.values()}))
def test_samples_give_the_same(family: str) -> None:
    problems = []
    for name, op in OPS.items():
        if op.family == family:
            for number, sample in enumerate(op.samples.get(name, ())):
                schema = next(text for text, own in zip(op.schemas, op.names, strict=True) if own == name)
                if why := compared(name, sample, schema):
                    problems.append(f"{name}, sample {number}: {why}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("title", "name", "args", "named"), FACTS, ids=[fact[0] for fact in FACTS])
def test_facts_are_the_same(title: str, name: str, args: Any, named: dict[str, Any]) -> None:
    given = {key: code_of(value) if isinstance(value, np.dtype) else value for key, value in named.items()}
    wanted = outcome(lambda: call_op(name, deepcopy(list(args)), **deepcopy(given)))
    with using(backend("cupy")):
        found = outcome(lambda: back(call_op(name, moved(list(args)), **{key: moved(value) for key, value in given.items()})))
    assert difference(found, wanted) is None


def test_where_a_tensor_lies() -> None:
    for x, found in ((np.ones(2), ("cpu", True, False)), (moved(np.ones(2)), ("cuda:0", False, True))):
        with using(backend("cupy" if found[2] else "numpy")):
            assert tuple(call_op(f"prim::{name}", [x]) for name in ("device", "is_cpu", "is_cuda")) == found


def test_a_special_function_that_cupy_has_not() -> None:
    x = np.array([-2.0, 0.0, 1.5], np.float32)
    with using(backend("cupy")):
        found = back(call_op("aten::special_airy_ai", [moved(x)]))
    assert difference(found, call_op("aten::special_airy_ai", [x])) is None


# -- graphs
GROUP = """graph(%x : Float(*, *), %y : Float(*), %n : Long(*, *)):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.1]()
  %a : Float(*, *) = aten::mul(%x, %y)
  %b : Float(*, *) = aten::tanh(%a)
  %c : Float(*, *) = aten::add(%b, %half, %one)
  %d : Float(*, *) = aten::relu(%c)
  %e : Bool(*, *) = aten::gt(%d, %n)
  %f : Float(*, *) = aten::where(%e, %d, %x)
  %g : Float(*, *) = aten::sigmoid(%f)
  %h : Float(*) = aten::exp(%y)
  %i : Float(*) = aten::mul(%h, %h)
  return (%g, %e, %i)
"""
needs_compiler = pytest.mark.skipif(fake_cupy.compiler() is None, reason="elementwise kernels are compiled for the processor")


def group_inputs() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32), rng.integers(0, 2, (3, 4))]


@needs_compiler
def test_a_group_is_one_kernel() -> None:
    graph = irtool.parse(GROUP).graph()
    wanted = irtool.run(graph, group_inputs())
    plan = DevicePlan(graph)
    before = len(fake_cupy.ElementwiseKernel.made)
    for _ in range(3):
        assert difference(back(plan(group_inputs())), wanted) is None
    assert len(fake_cupy.ElementwiseKernel.made) == before + 2      # one for each of two shapes, made once
    chosen = [each for _, group in plan.groups for each in group.chosen.values()]
    assert chosen == ["1 CuPy kernel(s), 11 steps", "1 CuPy kernel(s), 2 steps"]
    assert "const float t1 = tanhf(t0);" in plan.source


@needs_compiler
def test_results_of_several_shapes_come_from_several_kernels() -> None:
    graph = irtool.parse("""graph(%x : Float(*, *), %y : Float(*)):
  %a : Float(*) = aten::exp(%y)
  %b : Float(*, *) = aten::mul(%x, %a)
  return (%b, %a, %y)
""").graph()
    group = KernelGroup(graph, fake_cupy.NAMESPACE)
    x, y, _ = group_inputs()
    assert difference(back(group([moved(x), moved(y)])), irtool.run(graph, [x, y])) is None
    assert list(group.chosen.values()) == ["2 CuPy kernel(s), 2 steps"]


def test_what_is_no_kernel_runs_operator_by_operator() -> None:
    graph = irtool.parse("""graph(%x : ComplexDouble(*)):
  %a : ComplexDouble(*) = aten::exp(%x)
  %b : ComplexDouble(*) = aten::mul(%a, %a)
  return (%b)
""").graph()
    group = KernelGroup(graph, fake_cupy.NAMESPACE)
    x = np.array([1j, 2.0])
    with using(backend("cupy")):
        assert difference(back(group([moved(x)])), irtool.run(graph, [x], backend="numpy")) is None
    assert list(group.chosen.values()) == ["operator by operator: dtype complex128"]


@needs_compiler
def test_the_executor_runs_on_the_device() -> None:
    graph = irtool.parse(GROUP).graph()
    wanted = irtool.run(graph, group_inputs())
    executor = DeviceExecutor(graph, Options(backend="cupy"))
    for _ in range(3):
        assert difference(back(executor(*group_inputs())), wanted) is None
    assert executor.stats["execution_plan_cache_hit"] == 2


def test_the_source_of_a_kernel() -> None:
    single, whole = np.dtype(np.float32), np.dtype(np.int64)
    steps = program(irtool.parse(GROUP).graph(), [(single, False), (single, False), (whole, False)])
    inputs, outputs, body, reads = source(steps, steps.outputs[:2])
    assert (inputs, outputs, reads) == ("float32 x0, float32 x1, int64 x2", "float32 y0, bool y1", [0, 1, 2])
    largest = ARITHMETIC["maximum"].format("(0.0f)", "t2")
    assert body == f"""\
const float t0 = x0 * x1;
const float t1 = tanhf(t0);
const float t2 = t1 + (0.1f);
const float t3 = {largest};
const float t4 = (float)x2;
const bool t5 = t3 > t4;
const float t6 = t5 ? t3 : x0;
const float t7 = -t6;
const float t8 = expf(t7);
const float t9 = (1.0f) + t8;
const float t10 = (1.0f) / t9;
y0 = t10;
y1 = t5;"""


@needs_compiler
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_whole_numbers_wrap_around(dtype: str) -> None:
    """Signed overflow is undefined in C++, and compilers make use of that: x + 1 > x is true to them."""
    graph = irtool.parse("""graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %one, %one)
  %b : Tensor = aten::gt(%a, %x)
  %c : Tensor = aten::mul(%x, %x)
  %d : Tensor = aten::neg(%x)
  %e : Tensor = aten::sub(%d, %c, %one)
  %f : Tensor = aten::abs(%x)
  %g : Tensor = aten::lt(%f, %d)
  return (%b, %e, %f, %g)
""").graph()
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 7, limits.max, limits.max - 1, limits.min, limits.min + 1], dtype)
    group = KernelGroup(graph, fake_cupy.NAMESPACE)
    assert difference(back(group([moved(x)])), irtool.run(graph, [x])) is None
    assert list(group.chosen.values()) == ["1 CuPy kernel(s), 7 steps"]


@pytest.mark.parametrize("value", ["0.1", "-0.0", "1e30", "nan", "inf", "-inf", "16777217.0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_literals_are_exact(dtype: str, value: str) -> None:
    number = np.dtype(dtype).type(value)
    text = literal(number)
    if np.isfinite(number):
        assert np.dtype(dtype).type(float(text.strip("()f"))).tobytes() == number.tobytes()
    else:
        assert text.strip("(-)").startswith("__")
    assert literal(np.int64(-2**63)) == "(-9223372036854775807LL - 1)"


POINTWISE = sorted(name for family in ("pointwise", "pointwise_binary", "comparison", "activation", "bitwise")
                   for name, op in OPS.items() if op.family == family and op.samples.get(name))


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1, 7.25, 1e30, -1e30, 2.0**31, np.inf, -np.inf, np.nan]


def corners(dtype: Any) -> Any:
    """The numbers of a dtype at which operators differ, if they do."""
    if dtype.kind == "f":
        return np.array(FLOATS, dtype)
    limits = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1], dtype)


def crossed(args: list[Any], dtype: Any) -> list[Any]:
    """The arrays of float64 among arguments of another dtype, so that each of its corners meets each."""
    numbers = corners(dtype)
    ways = iter((np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)))
    return [next(ways, np.resize(numbers[::-1], numbers.size**2)) if isinstance(a, np.ndarray) and a.ndim and a.dtype == np.float64 else a
            for a in args]


@needs_compiler
def test_kernels_of_pointwise_operators_compute_what_numpy_does() -> None:
    """The operators that become steps, on the samples and where dtypes have their corners: all in one library."""
    kernels: dict[Any, Any] = {}
    for name in POINTWISE:
        schema = next(text for text in OPS[name].schemas if text.partition("(")[0] == name)
        for sample in OPS[name].samples[name]:
            kernels |= kernel_of(name, sample.arguments(schema))
            for dtype in map(np.dtype, ("float64", "float32", "int64", "int32", "int8", "uint8")):
                if dtype.kind != "f" and OPS[name].family == "activation":      # nearly all of which are of floats alone
                    continue
                kernels |= kernel_of(name, crossed(sample.arguments(schema), dtype))
    assert len(kernels) > 400
    fake_cupy.compile_all([kernel for _, kernel, _, _ in kernels.values()])
    for name, kernel, arrays, args in kernels.values():
        with np.errstate(all="ignore"):
            wanted = overload(name)(list(args))
        assert difference(back(kernel(*arrays)), wanted) is None, f"{name}\n{kernel.operation}"


def kernel_of(name: str, args: list[Any]) -> dict[Any, Any]:
    """The kernel of a call, if it is one: by its source, with the operator, the arrays it reads, and all arguments."""
    symbols = {id(a): Symbol(a.dtype, not a.ndim) for a in args if isinstance(a, np.ndarray)}
    try:
        with np.errstate(all="ignore"):
            overload(name)(list(args))
        steps = flattened(list(symbols.values()), list(symbolic(overload(name), [symbols.get(id(a), a) for a in args])))
        inputs, outputs, body, reads = source(steps, steps.outputs)
    except (NotPointwise, Untranslatable, Error):
        return {}
    arrays = list({id(a): a for a in args if isinstance(a, np.ndarray)}.values())
    kernel = fake_cupy.ElementwiseKernel(inputs, outputs, body)
    shapes = tuple([a.shape for a in arrays])
    return {(inputs, outputs, body, shapes): (name, kernel, [fake_cupy.ndarray(arrays[i]) for i in reads], args)} if reads else {}


def test_gradients_are_the_same() -> None:
    graph = irtool.parse(GROUP.replace("(%g, %e, %i)", "(%g, %i)")).graph()
    x, y, n = group_inputs()
    cotangents = [np.ones((3, 4), np.float32), np.ones(4, np.float32)]
    wanted = irtool.compile(graph).vjp([x, y, n], cotangents, [0, 1])
    for options in (Options(backend="cupy", optimize=False), Options(backend="cupy"))[0 if fake_cupy.compiler() else 1:]:
        assert difference(back(DeviceExecutor(graph, options).vjp([x, y, n], cotangents, [0, 1])), wanted) is None
    assert difference(back(irtool.vjp(graph, [moved(x), moved(y), moved(n)], [moved(each) for each in cotangents], [0, 1])), wanted) is None


def test_arrays_of_either_kind_are_taken() -> None:
    graph = irtool.parse("graph(%x : Float(*)):\n  %y : Float(*) = aten::neg(%x)\n  return (%y)\n").graph()
    x = np.ones(3, np.float32)
    assert type(irtool.run(graph, [x])[0]) is np.ndarray
    assert type(irtool.run(graph, [x], backend="cupy")[0]) is fake_cupy.ndarray
    assert type(irtool.run(graph, [moved(x)])[0]) is fake_cupy.ndarray
    assert type(irtool.run(graph, [moved(x)], backend="numpy")[0]) is np.ndarray


def test_a_graph_without_inputs_is_made_on_the_device() -> None:
    text = """graph():
  %size : int[] = prim::Constant[value=[2, 3]]()
  %dtype : int = prim::Constant[value=6]()
  %none : NoneType = prim::Constant()
  %x : Tensor = aten::ones(%size, %dtype, %none, %none, %none)
  %c : Float(1) = prim::Constant[value={2}]()
  return (%x, %c)
"""
    found = irtool.run(irtool.parse(text).graph(), [], backend="cupy")
    assert [each.tolist() for each in back(found)] == [[[1, 1, 1], [1, 1, 1]], [2]]


def test_writes_do_not_reach_the_caller() -> None:
    graph = irtool.parse("graph(%x : Float(*)):\n  %y : Float(*) = aten::relu_(%x)\n  return (%y)\n").graph()
    x = moved(np.array([-1.0, 2.0], np.float32))
    assert back(irtool.run(graph, [x])[0]).tolist() == [0, 2]
    assert back(x).tolist() == [-1, 2]


def test_what_is_refused_is_refused_with_torchs_words() -> None:
    graph = irtool.parse("graph(%x : Float(*), %y : Float(*)):\n  %z : Float(*) = aten::mul(%x, %y)\n  return (%z)\n").graph()
    inputs = [np.ones(2, np.float32), np.ones(3, np.float32)]
    with pytest.raises(Error, match="must match the size of tensor b"):
        irtool.run(graph, inputs, backend="cupy")
    with pytest.raises(Error, match="must match the size of tensor b"):
        DeviceExecutor(graph, Options(backend="cupy"))(*inputs)


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(irtool.RunError, match=r"needs CuPy, .*pip install 'irtool\[cuda\]'"):
        irtool.run(irtool.parse("graph():\n  return ()\n").graph(), [], backend="cupy")


def test_without_a_gpu_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    monkeypatch.setattr(fake_cupy.NAMESPACE.cuda.runtime, "getDeviceCount", none)
    monkeypatch.setattr(device, "_made", {})
    with pytest.raises(irtool.RunError, match="needs a GPU: cudaErrorNoDevice"):
        backend("cupy")


# -- the command line
@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A graph and its inputs."""
    (tmp_path / "m.ir").write_text(GROUP.replace("(%g, %e, %i)", "(%g, %i)"), encoding="utf-8")
    x, y, n = group_inputs()
    np.savez(tmp_path / "in.npz", x=x, y=y, n=n)
    np.savez(tmp_path / "vjps.npz", vjp0=np.ones((3, 4), np.float32), vjp1=np.ones(4, np.float32))
    return str(tmp_path / "m.ir"), str(tmp_path / "in.npz")


@needs_compiler
@pytest.mark.parametrize("words", [[], ["--requires-grad", "x,y"], ["--no-optimize"], ["--requires-grad", "x", "--create-graph", "2"]])
def test_run_gives_the_same(files: tuple[str, str], words: list[str], tmp_path: Path) -> None:
    if "--requires-grad" in words:
        words = [*words, "--cotangents", str(tmp_path / "vjps.npz")]
    out = str(tmp_path / "out.npz")
    assert main(["run", *files, *words, "-o", out]) == 0
    assert main(["run", *files, *words, "--backend", "cupy", "--expect", out]) == 0


@needs_compiler
def test_plan_shows_the_kernels(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *files, "--backend", "cupy", "--source"]) == 0
    assert "= tanhf(t" in capsys.readouterr().out


def test_run_without_cupy_says_what_to_install(files: tuple[str, str], capsys: pytest.CaptureFixture[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["run", *files, "--backend", "cupy"]) == 1
    assert "pip install 'irtool[cuda]'" in capsys.readouterr().err


# -- texts of every year, and what cannot be
@over("path", TEXTS, origin)
def test_texts_of_every_year(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the interpreter and through plans, in which groups run operator by operator: what kernels give is tested above."""
    monkeypatch.setattr(KernelGroup, "parts", refused)
    for graph, inputs in runnable(path):
        wanted = outcome(lambda graph=graph, inputs=inputs: irtool.run(graph, inputs))
        if not isinstance(wanted, str):
            assert difference(back(irtool.run(graph, inputs, backend="cupy")), wanted) is None
            assert difference(back(DevicePlan(graph)(inputs)), wanted) is None


def refused(*_: Any) -> Any:
    raise Untranslatable("not now")


def test_a_shape_that_changes_in_place_is_unsupported() -> None:
    """The one thing CuPy arrays cannot do: get other strides. (Contiguous ones may lose and get dimensions of size 1.)"""
    with using(backend("cupy")):
        x = moved(np.ones((2, 1, 3), np.float32))
        assert call_op("aten::squeeze_", [x]).shape == (2, 3)
        with pytest.raises(irtool.UnsupportedError, match="t_ on a CuPy array, whose strides cannot be set, is not supported yet"):
            call_op("aten::t_", [x])
