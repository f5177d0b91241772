"""Programs that write into tensors: fused they give what the interpreter gives, bit for bit; and their gradients, node by node on the
tape, are those of the whole graph, which takes the writes out.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_samples import difference, outcome
from write_programs import write_program

import irtool
from irtool.dispatch.callables import function_of
from irtool.execute import fusing
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.execute.plan import lower
from irtool.execute.plan.compiled import compile_plan
from irtool.interpret import run as interpret
from irtool.ir.errors import RunError
from irtool.torchscript.front import compile_source

WAYS = {"groups": Options(whole=False), "every operator a group": Options(whole=False, autodiff_threshold=1, inline_threshold=1),
        "fallback": Options(optimize=False)}
REFUSED = ("one of the variables needed for gradient computation has been modified by an inplace operation",
           "more than one element of the written-to tensor refers to a single memory location")
"""What torch says of such programs, too."""

PROGRAMS = {
    "a part": "def f(x, y):\n    a = x * y\n    a[0].mul_(y[1])\n    return a * x\n",
    "the whole, of which there is a view": "def f(x, y):\n    a = x * y\n    b = a.diagonal()\n    a.mul_(y)\n    return a, b * b\n",
    "a part of a part": "def f(x, y):\n    a = x * y\n    b = a[1:].t()\n    b[0].sigmoid_()\n    return b * 2, a\n",
    "two parts that overlap": "def f(x, y):\n    a = x * y\n    b = a[:2]\n    c = a[1:]\n    b.add_(y[0])\n    c.mul_(x[1])\n"
                              "    return a, b * c\n",
    "a new tensor": "def f(x, y):\n    a = torch.zeros_like(x)\n    a[0] = x[1]\n    a[1].copy_(y[2])\n    return a * y\n",
    "written and detached": "def f(x, y):\n    a = x * y\n    b = a.detach()\n    a.neg_()\n    return a * b\n",
    "a detached tensor": "def f(x, y):\n    a = x * y\n    a.detach().mul_(2)\n    return a + x\n",
    "what is overwritten is needed by the write": "def f(x, y):\n    a = x * y\n    a.pow_(3)\n    a.clamp_(-0.5, 0.5)\n    return a * y\n",
    "by itself": "def f(x, y):\n    a = x * y\n    a.mul_(a)\n    return a\n",
    "other shapes": "def f(x, y):\n    a = x * y\n    a.t_()\n    b = a * x\n    b.unsqueeze_(0)\n    b[0].mul_(y)\n    b.squeeze_(0)\n"
                    "    return a * x + b\n",
    "pieces": "def f(x, y):\n    a = x * y\n    b, c, d = a.unbind(0)\n    b.mul_(y[0])\n    d.zero_()\n    return a * x, b\n",
    "sorted": "def f(x, y):\n    a, i = torch.sort(x * y, 0)\n    a.mul_(y)\n    return a * i\n",
    "statistics": "def f(x, y):\n    m = torch.zeros(3, dtype=torch.float64)\n    v = torch.ones(3, dtype=torch.float64)\n"
                  "    return torch.nn.functional.batch_norm(x * y, m, v, training=True, momentum=0.5), v * x\n",
    "polygamma": "def f(x, y):\n    a = x * x + 1\n    a.polygamma_(1)\n    return a * y\n",
    "in a loop": "def f(x, y):\n    a = x * y\n    for i in range(3):\n        a[i] = torch.sin(a[i] * y[i])\n        a.mul_(y)\n"
                 "    return a\n",
    "complex": "def f(x, y):\n    a = torch.complex(x, y)\n    a[0].mul_(y[1])\n    b = torch.real(a)\n    return torch.imag(a) * b\n",
}


def gradients_of(graph: Any, options: Options, values: list[Any], cotangents: list[Any]) -> list[Any]:
    return [np.zeros_like(value) if found is None else found
            for value, found in zip(values, Executor(graph, options).vjp(values, cotangents, [0, 1]), strict=True)]


def cotangents_of(graph: Any, values: list[Any]) -> list[Any]:
    outputs = irtool.run(graph, values)
    rng = np.random.default_rng(1)
    return [rng.standard_normal(np.shape(each)) for output in outputs for each in (output if isinstance(output, tuple) else [output])]


def check(source: str, way: str) -> None:
    """Gradients in one way are those of the graph without writes; or what was needed is gone, as torch says it too."""
    graph = compile_source(source).graph()
    x, y = np.random.default_rng(0).standard_normal((2, 3, 3))
    cotangents = cotangents_of(graph, [x, y])
    try:
        expected = gradients_of(graph, Options(), [x, y], cotangents)
        found = gradients_of(graph, WAYS[way], [x, y], cotangents)
    except RunError as error:
        assert way == "fallback" and any(words in str(error) for words in REFUSED), str(error)
        return
    for mine, its in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, way: str) -> None:
    check(PROGRAMS[name], way)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    source = write_program(seed)
    if isinstance(outcome(lambda: interpret(compile_source(source), list(np.ones((2, 3, 3))))), list):     # else the program is none
        check(source, "fallback")


@pytest.mark.parametrize("name", ["functionalize", "remove-inplace", "remove-mutation"])
@pytest.mark.parametrize("seed", range(40))
def test_results_without_writes(seed: int, name: str) -> None:
    """What a pass leaves gives what the program gives, bit for bit."""
    module = compile_source(write_program(seed, 12, control=seed % 2 == 0))
    inputs = np.random.default_rng(seed).standard_normal((2, 3, 3))
    wanted = outcome(lambda: interpret(module.graph(), list(inputs.copy())))
    if isinstance(wanted, list):
        rewritten = irtool.PassManager(name, verify=True).run(irtool.parse(str(module)))
        assert not difference(outcome(lambda: interpret(rewritten.graph(), list(inputs.copy()))), wanted)


@pytest.mark.parametrize("name", ["a part", "two parts that overlap", "a new tensor", "pieces"])
def test_second_order(name: str) -> None:
    """The gradient of a gradient: differences of the gradient."""
    graph = compile_source(PROGRAMS[name]).graph()
    x, y, way_x, way_y = np.random.default_rng(0).standard_normal((4, 3, 3))
    cotangents = cotangents_of(graph, [x, y])
    run = Executor(graph, Options(optimize=False))
    found = run.record([x, y], [0, 1]).backward_recorded(cotangents).backward([way_x, way_y])

    def along(x: Any, y: Any) -> Any:
        first = run.vjp([x, y], cotangents, [0, 1])
        return (first[0] * way_x).sum() + (first[1] * way_y).sum()

    for place, gradient in enumerate(found):
        step = np.random.default_rng(place).standard_normal((3, 3)) * 1e-6
        up, down = (along(x + sign * step, y) if place == 0 else along(x, y + sign * step) for sign in (1, -1))
        np.testing.assert_allclose((gradient * step).sum() if gradient is not None else 0, (up - down) / 2, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("way", ["whole", *WAYS])
@pytest.mark.parametrize("source", [
    "def f(x, y):\n    a = x * 1\n    a.add_(y)\n    return a * a\n",
    "def f(x, y):\n    a = x * 1\n    a[0].mul_(y[1])\n    return a * a\n",
    "def f(x, y):\n    a = x * 1\n    b = a.t()\n    b[0].mul_(y[1])\n    return a.view(-1) * 2\n",
])
def test_a_tensor_keeps_its_dtype_and_shape(source: str, way: str) -> None:
    """float32, into which float64 is written; and what is written through a transposed view can still be seen in another shape."""
    graph = compile_source(source).graph()
    x, y = np.random.default_rng(0).standard_normal((2, 3, 3))
    x = x.astype(np.float32)
    record = Executor(graph, WAYS.get(way, Options())).record([x, y], [0, 1])
    (expected,) = interpret(graph, [x, y])
    assert record.outputs[0].dtype == expected.dtype == np.float32 and np.array_equal(record.outputs[0], expected)
    assert [each.dtype for each in record.backward([np.ones_like(expected)])] == [np.float32, np.float64]


# -- fusion
@pytest.mark.parametrize("seed", range(50))
def test_fused_is_interpreted_bit_for_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups form between writes; with branches, loops and lists, and however small the tensors are."""
    monkeypatch.setattr(fusing, "WORTH_FUSING", 0)
    monkeypatch.setattr(lower, "WORTH_FUSING", 0)
    graph = compile_source(write_program(seed, 16, control=True)).graph()
    x, y = np.random.default_rng(seed).standard_normal((2, 3, 3))
    wanted = outcome(lambda: interpret(graph, [x, y]))
    plan = compile_plan(graph, native=False)
    for _ in range(3):
        assert not difference(outcome(lambda: plan([x, y])), wanted)


def test_groups_stand_between_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "WORTH_FUSING", 0)
    monkeypatch.setattr(lower, "WORTH_FUSING", 0)
    graph = compile_source("def f(x, y):\n    a = torch.tanh(x * y)\n    b = a[0]\n    c = torch.relu(a + y)\n    b.zero_()\n"
                           "    d = torch.relu(a - y)\n    return a, c, d\n").graph()
    plan = compile_plan(graph, native=False)
    x, y = np.random.default_rng(0).standard_normal((2, 3, 3))
    for _ in range(3):
        assert not difference(plan([x, y]), interpret(graph, [x, y]))
    assert [[node.kind for node in group.graph.block if node.kind != "prim::Constant"] for _, group in plan.groups] \
        == [["aten::mul", "aten::tanh", "aten::add", "aten::relu"], ["aten::sub", "aten::relu"]]


def test_inputs_in_one_memory_one_of_which_is_written_into() -> None:
    """The gradient of a plan, or a refusal: never that of inputs that lie apart."""
    graph = compile_source("def f(x, y):\n    x.add_(1)\n    return y * y\n").graph()
    both = np.arange(4.0)
    for options in (Options(), Options(optimize=False), Options(whole=False)):
        run = Executor(graph, options)
        try:
            record = run.record([both[:3], both[1:]], [1])
        except irtool.UnsupportedError as error:
            assert "share memory" in str(error)
            continue
        assert np.array_equal(record.outputs[0], run(both[:3], both[1:])[0])


HOLDERS = {
    "an attribute": "a = Holder()\n    a.l.append(y)\n    y.mul_(5)\n    return a.l",
    "an attribute that is a dict": "a = Holder()\n    a.d['b'] = y\n    a.d['b'].mul_(5)\n    return a.d",
    "a list of dicts": "l: List[Dict[str, Tensor]] = [{}]\n    l[0]['a'] = y\n    l[0]['a'].mul_(5)\n    return l",
    "a list of lists": "l: List[List[Tensor]] = [[]]\n    l[0].append(y)\n    l[0][0].mul_(5)\n    return l[0]",
    "a tuple": "t = ([x], 1)\n    t[0][0] = y\n    y.mul_(5)\n    return t[0]",
    "one of two": "d: Dict[str, Tensor] = {}\n    e: Dict[str, Tensor] = {}\n    q = d if x.dim() > 0 else e\n    q['a'] = y\n"
                  "    q['a'].mul_(5)\n    return d",
    "a value of type Any": "d: List[Tensor] = []\n    m: Any = d\n    d.append(y)\n    y.mul_(5)\n    return m",
    "values of a dict": "d = {'a': y}\n    m = list(d.values())\n    y.mul_(5)\n    return m",
    "an update": "d: Dict[str, Tensor] = {}\n    d.update({'a': y})\n    y.mul_(5)\n    return d",
    "a union": "z: Union[Tensor, int] = y\n    y.mul_(5)\n    return z",
    "an optional": "d: Optional[List[Tensor]] = []\n    if d is not None:\n        d.append(y)\n        y.mul_(5)\n    return d",
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_layers_see_writes_into_what_a_container_holds_by_every_name_of_it(holder: str) -> None:
    source = "class Holder:\n    def __init__(self):\n        self.l: List[Tensor] = []\n        self.d: Dict[str, Tensor] = {}\n\n"
    module = irtool.from_script(f"{source}def f(x):\n    y = x * 2\n    {HOLDERS[holder]}\n", "f")
    x = np.arange(1.0, 3.0)

    def only(result: Any) -> Any:
        while not hasattr(result, "shape"):
            result = next(iter(result.values())) if isinstance(result, dict) else result[0]
        return result

    function = function_of(module.graph())
    np.testing.assert_array_equal(only(irtool.run(module, [x])), 10 * x)
    np.testing.assert_array_equal(np.asarray(only(irtool.jit(function)(x))), 10 * x)
    np.testing.assert_array_equal(np.asarray(only(irtool.jvp(function, (x,), (np.ones(2),))[1])), [10.0, 10.0])
    np.testing.assert_array_equal(np.asarray(irtool.grad(lambda a: only(function(a)).sum())(x)), [10.0, 10.0])
