"""Class instances as inputs: what is read of them is in the spec, and has gradients."""
from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.callables import as_function
from irtool.execute.compilation import Options
from irtool.execute.device.device_executor import new_executor
from irtool.execute.executor import Executor
from irtool.ir.errors import RunError, UnsupportedError

LINEAR = """graph(%self : __torch__.Model, %x : Tensor):
  %2 : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="fc"](%self)
  %3 : Tensor = prim::GetAttr[name="weight"](%2)
  %4 : Tensor? = prim::GetAttr[name="bias"](%2)
  %5 : float = prim::GetAttr[name="scale"](%self)
  %6 : Tensor = aten::linear(%x, %3, %4)
  %7 : Tensor = aten::mul(%6, %5)
  %8 : Tensor = prim::GetAttr[name="weight"](%2)
  %9 : Tensor = aten::tanh(%8)
  return (%7, %9)
"""
COUNTER = """graph(%self : __torch__.Counter, %x : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = prim::GetAttr[name="count"](%self)
  %4 : Tensor = prim::GetAttr[name="by"](%self)
  %5 : Tensor = aten::add(%3, %x, %2)
   = prim::SetAttr[name="count"](%self, %5)
  %6 : Tensor = prim::GetAttr[name="count"](%self)
  %7 : Tensor = aten::mul(%6, %4)
  return (%7)
"""


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def model(weight: Any, bias: Any) -> Any:
    return SimpleNamespace(fc=SimpleNamespace(weight=weight, bias=bias), scale=2.0)


def test_attributes_are_in_the_spec() -> None:
    run = irtool.compile(irtool.parse(LINEAR))
    x, weight, bias = numbers(2, 3), numbers(4, 3), numbers(4)
    as_dict = {"fc": {"weight": weight, "bias": bias}, "scale": 2.0}
    for instance in (model(weight, bias), as_dict, model(numbers(7, 3), numbers(7))):
        expected = irtool.run(irtool.parse(LINEAR), [instance, x], interpret=True)
        for mine, its in zip(run(instance, x), expected, strict=True):
            assert np.array_equal(mine, its)
    assert run.stats["execution_plan_cache_miss"] == 1 and run.stats["execution_plan_cache_hit"] == 2
    for instance in (model(weight, None), model(weight.astype(np.float32), bias), model(weight[0], bias[0])):
        assert run.plan_for(instance, x) is not run.plan_for(model(weight, bias), x)


@pytest.mark.parametrize("options", [Options(), Options(whole=False), Options(optimize=False), Options(profiling=True)],
                         ids=["whole", "groups", "fallback", "profiling"])
def test_attributes_have_gradients(options: Options) -> None:
    run = new_executor(irtool.parse(LINEAR).graph(), options)
    x, weight, bias, g, h = numbers(2, 3), numbers(4, 3), numbers(4), numbers(2, 4), numbers(4, 3)
    for _ in range(3):
        of_model, of_x = run.vjp([model(weight, bias), x], [g, h], [0, 1])
        np.testing.assert_allclose(of_x, g @ weight * 2)
        np.testing.assert_allclose(of_model["fc.weight"], g.T @ x * 2 + h * (1 - np.tanh(weight) ** 2))
        np.testing.assert_allclose(of_model["fc.bias"], g.sum(0) * 2)
        assert of_model["scale"] is None
    assert run.vjp([model(weight, None), x], [g, None], [0])[0]["fc.bias"] is None


def test_attributes_that_are_written_stay_in_the_instance() -> None:
    run = irtool.compile(irtool.parse(COUNTER))
    counter = SimpleNamespace(count=np.zeros(2), by=np.full(2, 3.0))
    for _ in range(3):
        assert run(counter, np.ones(2))[0].tolist() == [3.0, 3.0]
    assert counter.count.tolist() == [0.0, 0.0]
    assert str(run.plan_for(counter, np.ones(2)).spec).count("Double") == 2     # by and x


def test_what_is_refused() -> None:
    run = irtool.compile(irtool.parse(LINEAR))
    for interpreted in (False, True):
        with pytest.raises(RunError, match="has no attribute 'bias'"):
            inputs = [{"fc": {"weight": numbers(4, 3)}, "scale": 1.0}, numbers(2, 3)]
            irtool.run(irtool.parse(LINEAR), inputs, interpret=True) if interpreted else run(*inputs)
    with pytest.raises(RunError, match="expected 2 inputs, but got only 1"):
        run(model(numbers(4, 3), None))
    counter = SimpleNamespace(count=np.zeros(2), by=np.ones(2))
    with pytest.raises(UnsupportedError, match=r"gradients of %self are not supported: the graph writes count"):
        irtool.compile(irtool.parse(COUNTER)).vjp([counter, np.ones(2)], [np.ones(2)], [0])
    (gradient,) = irtool.compile(irtool.parse(COUNTER)).vjp([counter, np.ones(2)], [np.full(2, 3.0)], [1])
    assert gradient.tolist() == [3, 3] and counter.count.tolist() == [0, 0]


@pytest.mark.parametrize("options", [Options(), Options(whole=False), Options(optimize=False)], ids=["whole", "groups", "fallback"])
def test_a_gradient_does_not_get_lost_in_an_instance(options: Options) -> None:
    """It came out as 4 instead of 12."""
    graph = irtool.parse("""graph(%x : Tensor):
  %1 : __torch__.Box = prim::CreateObject()
  %2 : Tensor = aten::mul(%x, %x)
   = prim::SetAttr[name="content"](%1, %2)
  %3 : Tensor = prim::GetAttr[name="content"](%1)
  %4 : Tensor = aten::mul(%3, %x)
  return (%4)
""").graph()
    run = Executor(graph, options)
    assert run(np.array([2.0]))[0].tolist() == [8.0]
    for _ in range(2):
        assert run.vjp([np.array([2.0])], [np.ones(1)], [0])[0].tolist() == [12.0]


MADE_INSIDE = {
    "read": "c = Held(x)\n    return (c.x * c.x).sum()",
    "assigned": "c = Held(x * 2)\n    c.x = c.x * x + 1\n    return (c.x * c.x).sum()",
    "a list": "c = Held(x)\n    c.items.append(x * x)\n    c.items.append(c.x)\n    return (c.items[0] * c.items[1]).sum()",
    "a dict": "c = Held(x)\n    c.named[\"a\"] = x * x\n    return (c.named[\"a\"] * c.x).sum()",
    "an instance of an instance": "c = Holder(Held(x * x))\n    c.held.x = c.held.x * x\n    return (c.held.x + c.scaled(x)).sum()",
    "a loop": "c = Held(x)\n    for i in range(3):\n        c.x = c.x * x\n    return c.x.sum()",
    "a write": "c = Held(x * 1)\n    y = c.x\n    y.mul_(x)\n    return (c.x * c.x).sum()",
    "a write through another name": "c = Held(x * 1)\n    d = c\n    d.x.mul_(2)\n    return (c.x * x).sum()",
    "a fork": "c = Held(x)\n    y = torch.jit.wait(torch.jit.fork(scale, c, x))\n    return (y + c.x).sum()",
    "a part": "c = Held(x * 1)\n    c.x[0] = x[1] * x[1]\n    return (c.x * x).sum()",
}
CLASSES = """
class Held:
    def __init__(self, x: Tensor):
        self.x = x
        self.items: List[Tensor] = []
        self.named: Dict[str, Tensor] = {}

class Holder:
    def __init__(self, held: Held):
        self.held = held

    def scaled(self, x: Tensor) -> Tensor:
        return self.held.x * x

def scale(c: Held, y: Tensor) -> Tensor:
    c.x = c.x + y
    return c.x * y

def f(x: Tensor):
    """


@pytest.mark.parametrize("body", MADE_INSIDE.values(), ids=MADE_INSIDE)
def test_transformations_see_what_instances_made_inside_hold(body: str) -> None:
    """grad gave 0 and vmap the sum over the batch, without a word: layers saw elements in attributes instead of tensors."""
    module = irtool.from_script(CLASSES + body, "f")
    x, v = np.array([0.5, 1.0, 2.0]), np.array([1.0, -2.0, 0.5])
    batch = np.stack([x, v])
    (expected,) = irtool.vjp(module, [x], [np.ones(())], [0], interpret=True)
    assert np.abs(expected).min() > 0
    np.testing.assert_allclose(irtool.vjp(module, [x], [np.ones(())], [0])[0], expected)
    np.testing.assert_allclose(np.asarray(irtool.grad(module)(x)), expected)
    np.testing.assert_allclose(np.asarray(irtool.jvp(module, (x,), (v,))[1]), expected @ v)
    np.testing.assert_allclose(np.asarray(irtool.vmap(module)(batch)), [irtool.run(module, [each])[0] for each in batch])
    np.testing.assert_allclose(np.asarray(irtool.jit(irtool.vmap(irtool.grad(module)))(batch))[0], expected)


HELD_AND_WRITTEN = {
    "an instance": "c = Held(torch.tensor([1.0]))\n    c.x.add_(0.5)\n    m = c.x\n    y = x * m\n    c.x.sub_(0.5)\n    return y",
    "an instance that is read late": "c = Held(torch.tensor([1.0]))\n    y = x * c.x\n    c.x.add_(1)\n    return y * c.x",
    "a context": "c = Scale(torch.tensor([1.5]))\n    with c as m:\n        y = x * m\n        y = y * m\n    return y * c.x",
    "a dict": "d = {\"a\": torch.tensor([1.0])}\n    y = x * d[\"a\"]\n    d[\"a\"].add_(1)\n    return y * d[\"a\"]",
    "a list": "l = [torch.tensor([1.0])]\n    y = x * l[0]\n    for t in l:\n        t.mul_(3)\n    return y * l[0]",
    "an instance in a list": "l = [Held(torch.tensor(2.0))]\n    y = x * l[0].x\n    l[0].x.mul_(3)\n    return y * l[0].x",
    "a branch": "d = {\"a\": torch.tensor([1.0])}\n    y = x * d[\"a\"]\n    if bool(x.sum() > 0):\n        d[\"a\"].add_(1)\n"
                "    return y * d[\"a\"]",
}
CONTEXT = """
class Scale:
    def __init__(self, x: Tensor):
        self.x = x

    def __enter__(self):
        self.x.add_(0.5)
        return self.x

    def __exit__(self, type: Any, value: Any, trace: Any):
        self.x.sub_(0.5)
"""


@pytest.mark.parametrize("body", HELD_AND_WRITTEN.values(), ids=HELD_AND_WRITTEN)
def test_gradients_read_what_was_held_before_a_write(body: str) -> None:
    """What torch.tensor(numbers) made had no handle on the tape: gradients read it as later writes left it, and a write into one in a dict
    was a traceback."""
    module = irtool.from_script(CONTEXT + CLASSES + body, "f")
    x, v, seed = np.array([0.5, 1.0, 2.0]), np.array([1.0, -2.0, 0.5]), np.array([1.0, 10.0, 100.0])
    along = (irtool.run(module, [x + 1e-4 * v])[0] - irtool.run(module, [x - 1e-4 * v])[0]) / 2e-4 @ seed
    executor = irtool.compile(module)
    for gradient in (irtool.vjp(module, [x], [seed], [0], interpret=True)[0], *[irtool.vjp(module, [x], [seed], [0])[0] for _ in range(3)],
                     executor.record([x], [0]).backward([seed])[0]):
        np.testing.assert_allclose(gradient @ v, along, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(irtool.jvp(module, (x,), (v,))[1]) @ seed, along, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(irtool.grad(lambda x: (as_function("grad", module)(x) * seed).sum())(x)) @ v, along, rtol=1e-6)


@pytest.mark.parametrize("order", list(itertools.permutations("abxy")), ids="".join)
def test_instances_at_any_places(order: tuple[str, ...]) -> None:
    """Two instances and two tensors, in any order of the inputs."""
    declared = ", ".join(f"%{name} : {'__torch__.M' if name in 'ab' else 'Tensor'}" for name in order)
    text = f"""graph({declared}):
  %v : Tensor = prim::GetAttr[name="v"](%a)
  %w : Tensor = prim::GetAttr[name="w"](%b)
  %1 : Tensor = aten::mul(%v, %w)
  %2 : Tensor = aten::mul(%x, %y)
  %u : Tensor = prim::GetAttr[name="w"](%a)
  %3 : Tensor = aten::div(%1, %u)
  %4 : Tensor = aten::sub(%3, %2)
  return (%4)
"""
    given = {"a": {"v": np.full(2, 6.0), "w": np.full(2, 3.0)}, "b": {"w": np.full(2, 5.0)}, "x": np.full(2, 2.0), "y": np.full(2, 7.0)}
    inputs, place = [given[name] for name in order], order.index("b")
    module, run = irtool.parse(text), irtool.compile(irtool.parse(text))
    for _ in range(3):
        assert run(*inputs)[0].tolist() == irtool.run(module, inputs)[0].tolist() == [-4.0, -4.0]
        for (gradient,) in (run.vjp(inputs, [np.ones(2)], [place]), irtool.vjp(module, inputs, [np.ones(2)], [place])):
            assert gradient["w"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("wrt", [[0], [1], [0, 1], [1, 0], [0, 0]], ids=str)
@pytest.mark.parametrize("options", [Options(), Options(optimize=False), Options(profiling=True)], ids=["whole", "fallback", "profiling"])
def test_a_recorded_run_gives_the_gradients_of_vjp(options: Options, wrt: list[int]) -> None:
    """They came one by one per attribute, so that they no longer lined up with wrt."""
    run = new_executor(irtool.parse(LINEAR).graph(), options)
    inputs, cotangents = [model(numbers(4, 3), numbers(4)), numbers(2, 3)], [numbers(2, 4), numbers(4, 3)]
    expected = irtool.vjp(irtool.parse(LINEAR), inputs, cotangents, wrt, interpret=True)
    recorded = run.record(inputs, wrt)
    for results in (recorded.backward(cotangents), run.record(inputs, wrt).backward_recorded(cotangents).outputs):
        assert len(results) == len(wrt)
        for place, mine, its in zip(wrt, results, expected, strict=True):
            if place:
                np.testing.assert_allclose(mine, its)
                continue
            assert list(mine) == list(its) and mine["scale"] is None
            for name in ("fc.weight", "fc.bias"):
                np.testing.assert_allclose(mine[name], its[name])


def test_hooks_and_second_gradients_of_a_recorded_run() -> None:
    module = irtool.parse("""graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="w"](%self)
  %v : Tensor = prim::GetAttr[name="v"](%self)
  %q : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::mul(%q, %v)
  return (%r)
""")
    inputs, ones = [{"v": np.full(2, 2.0), "w": np.array([3.0, 4.0])}, np.ones(2)], np.ones(2)
    recorded = irtool.compile(module).record(inputs, [0, 1])
    recorded.hook_input(1, lambda gradient: gradient * 10)
    assert recorded.backward([ones])[1].tolist() == [60, 80]
    for position, message in ((0, "hooks are for tensors, not for dict"), (2, "expected a position in wrt, which is \\[0, 1\\]")):
        with pytest.raises(RunError, match=message):
            recorded.hook_input(position, lambda gradient: gradient)
    second = irtool.compile(module).record(inputs, [1, 0]).backward_recorded([ones])
    of_x, of_self = second.backward([None, {"w": ones, "v": None}])
    assert of_x.tolist() == [2, 2] and of_self["w"].tolist() == [0, 0] and of_self["v"].tolist() == [1, 1]


def test_an_operator_that_sorts_instances_says_what_it_cannot_call() -> None:
    text = """graph(%x : int):
  %no : bool = prim::Constant[value=0]()
  %a : __torch__.Ranked = prim::CreateObject()
   = prim::SetAttr[name="rank"](%a, %x)
  %all : __torch__.Ranked[] = prim::ListConstruct(%a, %a)
   = aten::sort(%all, %no)
  return (%x)
"""
    for interpret in (True, False):
        with pytest.raises(UnsupportedError, match="sorting instances of __torch__.Ranked by an operator is not supported: it cannot call"):
            irtool.run(irtool.parse(text).graph(), [1], interpret=interpret)
