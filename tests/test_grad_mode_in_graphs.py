"""Gradients stop in `with torch.no_grad()`, on every way to take them, as in torch; what cannot be told is refused."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

X = np.array([1.0, 2.0, 0.5])
HEAD = "def f(x: Tensor):\n"
PROGRAMS = {
    "a constant factor": ("with torch.no_grad():\n    y = x * 2\nreturn y * x", [2.0, 4.0, 1.0]),
    "a write": ("y = x * 3\nwith torch.no_grad():\n    y.mul_(x)\nreturn y * x", [6.0, 18.0, 2.25]),
    "a list joined": ("y = x * 3\nwith torch.no_grad():\n    w = torch.cat([x, y]) * y.sum()\n"
                      "return w.sum() * x", [147.0] * 3),
    "a loop": ("y = x * 3\nfor i in range(3):\n    with torch.no_grad():\n        a, b, d = y.unbind(0)\n    y = y / 2 + a\n"
               "return y", [0.375] * 3),
    "a branch": ("with torch.no_grad():\n    if bool(x.sum() > 1):\n        y = x.exp()\n    else:\n        y = x.sin()\n"
                 "return y.log() * x", [1.0, 2.0, 0.5]),
    "a result from inside": ("with torch.no_grad():\n    if bool(x.sum() > 1):\n        return x * x\nreturn x * 2", [0.0, 0.0, 0.0]),
    "a shape that nothing reads": ("z = x.reshape(1, 3) * 1\nw = z + x\nwith torch.no_grad():\n    z.squeeze_(0)\nreturn w[0] * x",
                                   [4.0, 8.0, 2.0]),
    "is_grad_enabled": ("p = torch.is_grad_enabled()\ntorch.set_grad_enabled(False)\ny = x * 2\ntorch.set_grad_enabled(p)\nreturn y * x",
                        [2.0, 4.0, 1.0]),
}
DECIDED = "torch.set_grad_enabled(bool(x.sum() > 1))\ny = x * 2\ntorch.set_grad_enabled(True)\nreturn y * x"


def module(body: str) -> Any:
    """The program compiled."""
    return irtool.from_script(HEAD + "".join(f"    {line}\n" for line in body.splitlines()), "f")


def tensors(arrays: list[Any]) -> list[Any]:
    """Arrays as irtool's tensors."""
    return [irtool.torch.tensor(array) for array in arrays]


WAYS: dict[str, Callable[[Any, list[Any], list[Any]], Any]] = {
    "vjp": lambda f, inputs, cotangents: irtool.vjp(f, inputs, cotangents, [0])[0],
    "interpret": lambda f, inputs, cotangents: irtool.vjp(f, inputs, cotangents, [0], interpret=True)[0],
    "executor": lambda f, inputs, cotangents: irtool.compile(f).vjp(inputs, cotangents, [0])[0],
    "unoptimised": lambda f, inputs, cotangents: irtool.compile(f, optimize=False).vjp(inputs, cotangents, [0])[0],
    "layers": lambda f, inputs, cotangents: irtool.torch.func.vjp(f, *tensors(inputs))[1](*tensors(cotangents))[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_torch(name: str, way: str) -> None:
    body, want = PROGRAMS[name]
    f = module(body)
    (result,) = irtool.run(f, [X])
    np.testing.assert_allclose(np.asarray(WAYS[way](f, [X], [np.ones_like(result)])), want, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_a_mode_that_is_decided_when_it_runs_is_refused(way: str) -> None:
    f = module(DECIDED)
    np.testing.assert_allclose(irtool.run(f, [X])[0], 2 * X * X)
    with pytest.raises(irtool.UnsupportedError, match="the mode is decided when it runs"):
        WAYS[way](f, [X], [np.ones(3)])


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    body, want = PROGRAMS[name]
    space = {"torch": torch, "Tensor": torch.Tensor}
    exec(HEAD + "".join(f"    {line}\n" for line in body.splitlines()), space)
    x = torch.tensor(X, requires_grad=True)
    out = space["f"](x)
    if out.requires_grad:
        out.backward(torch.ones_like(out))
    np.testing.assert_allclose(np.zeros(3) if x.grad is None else x.grad.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize(("line", "slope"), [("torch.dropout(y, 0.5, False)", 2.0), ("torch.positive(y)", 2.0), ("torch.exp(y) * 0", 0.0)])
def test_what_gives_its_operand_itself_hands_its_gradient_on(line: str, slope: float) -> None:
    graph = irtool.from_script(f"def f(x):\n    y = x * 2\n    with torch.no_grad():\n        z = {line}\n    return z\n")
    (gradient,) = irtool.vjp(graph, [np.ones(3)], [np.ones(3)], [0])
    np.testing.assert_array_equal(np.zeros(3) if gradient is None else gradient, np.full(3, slope))


def test_a_gradient_that_shows_only_when_it_runs_is_refused() -> None:
    graph = irtool.from_script("def f(x, on: bool):\n    y = x * 2\n    with torch.no_grad():\n        z = torch.dropout(y, 0.5, on)\n"
                               "    return z\n")
    with pytest.raises(irtool.UnsupportedError, match="gives its operand itself"):
        irtool.PassManager("differentiate").run(graph)


ASKED = {
    "a context": ("with torch.no_grad():\n    b = torch.is_grad_enabled()\nreturn b, torch.is_grad_enabled(), x", [False, True]),
    "a switch": ("torch.set_grad_enabled(False)\nb = torch.is_grad_enabled()\ntorch.set_grad_enabled(True)\n"
                 "return b, torch.is_grad_enabled(), x", [False, True]),
    "a loop": ("b = True\nfor i in range(3):\n    with torch.no_grad():\n        b = torch.is_grad_enabled()\n"
               "return b, torch.is_grad_enabled(), x", [False, True]),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_graph_that_asks_gets_the_mode(name: str) -> None:
    body, want = ASKED[name]
    graph = module(body).graph()
    passed = irtool.PassManager("constant-propagation,cse,dce,peephole").run(irtool.parse(str(graph))).graph()
    for each in (graph, passed):
        for ways in ({"interpret": True}, {}, {}, {}):
            assert list(irtool.run(each, [X], **ways)[0][:2]) == want


def test_a_run_that_ends_with_an_error_leaves_the_mode_on() -> None:
    graph = module("with torch.no_grad():\n    y = x.view(7)\nreturn y").graph()
    with pytest.raises(irtool.RunError):
        irtool.run(graph, [X], interpret=True)
    assert irtool.run(module("return torch.is_grad_enabled()").graph(), [X]) == [True]
