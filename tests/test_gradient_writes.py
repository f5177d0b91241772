"""Gradients of operators that write into their operand: they become those that do not, or are refused, never ignored."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gradient_ways import differences

import irtool
from irtool import PassManager
from irtool.torchscript.front import compile_source

PROGRAMS = {
    "a chain": "def f(x, y):\n    a = x * y\n    b = a.tanh_()\n    a.mul_(y)\n    return a + b * x\n",
    "nobody reads the result": "def f(x, y):\n    z = x * 2\n    z.mul_(y)\n    return z\n",
    "in a branch": "def f(x, y):\n    a = x * y\n    if bool(x.sum() < 100):\n        b = a + 1\n        b.sigmoid_()\n        a = b * b\n"
                   "    a.tanh_()\n    return a\n",
    "behind a branch that reads it": "def f(x, y):\n    a = x * y\n    if bool(x.sum() < 100):\n        b = a * 3\n"
                                     "    else:\n        b = a\n"
                                     "    c = b + a\n    c.exp_()\n    return c * b\n",
    "in a branch that is never taken": "def f(x, y):\n"
                                       "    return y * torch.nn.functional.silu(x) + torch.nn.functional.dropout(x, 0.5, False)\n",
    "through a view": "def f(x, y):\n    a = x * y\n    b = a.view(-1)\n    b.mul_(3)\n    a[0].mul_(y[1])\n    return a * x\n",
    "in a loop": "def f(x, y):\n    a = x * 2\n    for i in range(3):\n        a.mul_(y)\n        a[1] = torch.sin(a[0])\n    return a\n",
    "what a loop carries on": "def f(x, y):\n    h = x\n    for i in range(3):\n        a = h + y * h\n        a.mul_(x)\n        h = a\n"
                              "    return h\n",
    "what is overwritten is needed": "def f(x, y):\n    c = torch.ones_like(y) * 3\n    a = x * c\n    c.mul_(5)\n    return a * c * y\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_differences(name: str) -> None:
    module = compile_source(PROGRAMS[name])
    rng = np.random.default_rng(3)
    x, y, way = rng.standard_normal((3, 2, 3))
    found = irtool.vjp(module, [x, y], [np.ones((2, 3))], [0])[0]
    up, down = (irtool.run(module, [x + step * way, y])[0].sum() for step in (1e-6, -1e-6))
    np.testing.assert_allclose((found * way).sum(), (up - down) / 2e-6, rtol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_pass_does_the_same(name: str) -> None:
    """The pair that the pass makes gives the gradients of `vjp`; what it rewrote is written no more."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 2, 3))
    pair = PassManager("differentiate", verify=True).run(compile_source(PROGRAMS[name]))
    f, df = (pair.graph(each) for each in pair.names())
    from irtool.execute.pairs import Forward
    from irtool.ir.pair import pairs

    (linked,) = pairs(pair)
    forward = Forward(linked, [x, y])
    np.testing.assert_array_equal(forward.outputs[0], irtool.run(compile_source(PROGRAMS[name]), [x, y])[0])
    gradients, _ = forward.backward({0: np.ones((2, 3))})
    np.testing.assert_allclose(gradients[0], irtool.vjp(compile_source(PROGRAMS[name]), [x, y], [np.ones((2, 3))], [0])[0], rtol=1e-12)
    assert "mul_(" not in str(f) and "tanh_(" not in str(f) and not re.search(r"[^_]_\(", str(df))


@pytest.mark.parametrize("source", [
    "def f(x):\n    a = x * 2\n    b = a.as_strided([2], [2])\n    b.mul_(3)\n    return a\n",
    "def f(x):\n    a = x * 2\n    b = a if bool(x.sum() > 0) else x * 3\n    for i in range(3):\n        b.mul_(x)\n    return a, b\n",
])
def test_writes_that_others_see_are_refused(source: str) -> None:
    with pytest.raises(irtool.UnsupportedError, match="mul_, which writes into"):
        PassManager("differentiate").run(compile_source(source))


def test_a_graph_that_writes_into_its_input_goes_on_doing_so() -> None:
    source = "def f(x, y):\n    a = x * 2\n    a.view(-1).mul_(3)\n    y.add_(1)\n    return a\n"
    with pytest.raises(irtool.UnsupportedError, match="mul_, which writes into"):
        PassManager("differentiate{requires-grad=1,0}").run(compile_source(source))


@pytest.mark.parametrize("held", ["y", "[y][-1]", "[x, y][n]", "(y, x)[0]"])
@pytest.mark.parametrize("view", ["y", "y.expand_as(x)", "y.view_as(x)", "y.detach()", "y.unfold(0, 1, 1)", "y.as_strided([2], [1])",
                                  "torch.chunk(y, 2)[0]", "[y, y][-n]", "y.swapaxes(0, 0)"])
def test_a_write_behind_a_product_does_not_reach_its_gradient(held: str, view: str) -> None:
    """What the gradient needs is what was multiplied, by whatever name the tensor is overwritten afterwards."""
    start = f"def f(x: Tensor, n: int):\n    y = x * 1.5\n    z = {held}\n    r = y * z\n"
    written, plain = (irtool.from_script(start + line + "    return r\n").graph() for line in (f"    ({view}).mul_(0.5)\n", ""))
    x, ones = np.array([2.0, -3.0]), np.ones(2)
    (expected,) = irtool.vjp(plain, [x, 1], [ones], [0], interpret=True)
    for way in (lambda: irtool.vjp(written, [x, 1], [ones], [0]), lambda: irtool.vjp(written, [x, 1], [ones], [0], interpret=True),
                lambda: irtool.compile(written).vjp([x, 1], [ones], [0]),
                lambda: irtool.compile(written).record([x, 1], [0]).backward([ones])):
        np.testing.assert_array_equal(way()[0], expected)


PARTS = ("unbind(0)[0]", "chunk(2)[0]", "split(1)[0]", "split([1, 1])[0]", "tensor_split(2)[0]", "hsplit(3)[0]", "vsplit(2)[0]")
"""Parts of a tensor of 2 by 3. torch refuses writes into the first four where they need gradients; here their gradients are right."""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("body", [
    "u = y.{}\n    u.mul_(x[1, 1])\n    return y * x", "u = y.{}\n    y.mul_(x)\n    return u * x[0, 0]",
    "l = [y, x]\n    u = y.{}\n    u.mul_(x[1, 1])\n    return torch.cat(l)",
    "z = torch.zeros_like(x)\n    u = z.{}\n    u.add_(x[0, 0])\n    return z * y"])
def test_writes_into_one_of_several_parts(part: str, body: str) -> None:
    """All ways and a tape give one gradient, that of differences."""
    source = f"def f(x: Tensor):\n    y = x * 1.5\n    {body.format(part)}\n"
    graph, x = compile_source(source).graph(), np.arange(1.0, 7.0).reshape(2, 3)
    cotangent = np.cos(np.arange(irtool.run(graph, [x])[0].size)).reshape(irtool.run(graph, [x])[0].shape)

    def total(value: np.ndarray[Any, Any]) -> Any:
        return (irtool.run(graph, [value], interpret=True)[0] * cotangent).sum()

    steps = np.eye(6).reshape(6, 2, 3) * 1e-6
    expected = np.array([total(x + step) - total(x - step) for step in steps]).reshape(2, 3) / 2e-6
    assert not differences(graph, [x], [cotangent], [0], [expected])
    space: dict[str, Any] = {"torch": irtool.torch}
    exec(source.replace(": Tensor", ""), space)
    gradient = irtool.grad(lambda value: (space["f"](value) * irtool.torch.tensor(cotangent)).sum())(irtool.torch.tensor(x))
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-6)


@pytest.mark.parametrize("parts", ["aten::chunk(%w, %2, %0)", "aten::split(%w, %2, %0)", "aten::unbind(%m, %0)",
                                   "aten::unsafe_chunk(%w, %2, %0)"])
def test_parts_that_are_results_as_in_2018(parts: str) -> None:
    """Lists of tensors were several results then: writes into those are seen by whom they are seen today."""
    lines = ("%2 : int = prim::Constant[value=2]()", "%0 : int = prim::Constant[value=0]()", "%w : Dynamic = aten::mul(%x, %x)",
             "%s : int[] = prim::ListConstruct(%2, %2)", "%m : Dynamic = aten::view(%w, %s)", f"%a : Dynamic, %b : Dynamic = {parts}",
             "%c : Dynamic = aten::sigmoid_(%a)", "%d : Dynamic = aten::tanh_(%b)", "%e : Dynamic = aten::mul(%c, %d)",
             "%f : Dynamic = aten::mul(%e, %a)")
    old = "graph(%x : Dynamic) {\n" + "".join(f"  {line}\n" for line in lines) + "  return (%f);\n}\n"
    new = "graph(%x : Tensor):\n" + "".join(f"  {line}\n" for line in lines).replace("Dynamic", "Tensor").replace(
        "%a : Tensor, %b : Tensor =", "%l : Tensor[] =").replace(")\n  %c", ")\n  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)\n  %c") \
        + "  return (%f)\n"
    x = np.random.default_rng(5).standard_normal(4)
    gradients = [irtool.vjp(irtool.parse(text), [x], [np.ones(2)], [0])[0] for text in (old, new)]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12)
    PassManager("differentiate", verify=True).run(irtool.parse(old))


@pytest.mark.parametrize("draw", ["normal_(2.0, 0.0)", "uniform_(2.0, 2.0)", "random_(2, 3)", "bernoulli_(1.0).mul_(2)", "copy_(2)"])
@pytest.mark.parametrize("target", ["z", "z[1:]", "z.view(-1)"])
def test_random_numbers_overwrite_a_gradient(draw: str, target: str) -> None:
    source = f"def f(x):\n    z = x * 3\n    {target}.{draw}\n    y = torch.empty_like(x)\n    y.{draw}\n    return z * x + y * x\n"
    graph = compile_source(source).graph()
    x = np.arange(1.0, 4.0)
    wanted = np.where(np.arange(3) < (target == "z[1:]"), 6 * x, 2.0) + 2.0
    for interpret in (True, False, False):
        np.testing.assert_array_equal(irtool.vjp(graph, [x], [np.ones(3)], [0], interpret=interpret)[0], wanted)


@pytest.mark.parametrize("interpret", [True, False])
def test_a_call_of_what_is_not_in_the_text_is_no_write(interpret: bool) -> None:
    text = """graph(%x : Tensor, %n : int):
  %f : Function = prim::Constant[name="g"]()
  %2 : Tensor = prim::CallFunction(%f, %x, %n)
  return (%2)
"""
    with pytest.raises(irtool.Error, match="prim::CallFunction of 'g' is not supported: its body is not in the text"):
        irtool.vjp(irtool.parse(text), [np.ones(2), 3], [np.ones(2)], [0], interpret=interpret)
