"""Gradients stop in `with torch.no_grad()`, on every way to take them, and tangents pass it, as in torch."""
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
    "a shape that stays": ("y = x * 3\nz = y.sum()\nwith torch.no_grad():\n    y.squeeze_(0)\nreturn y * x * z", [110.25, 173.25, 78.75]),
    "a new dimension": ("y = x * 2\nwith torch.no_grad():\n    y.unsqueeze_(0)\nreturn y * x", [4.0, 8.0, 2.0]),
    "a square turned over": (
        "y = x.reshape(1, 3) * x.reshape(3, 1)\nwith torch.no_grad():\n    y.t_()\nreturn y * x", [12.25, 19.25, 8.75]),
    "a part written before": ("y = x * 3\ny.view(-1)[0] = 1.5\nwith torch.no_grad():\n    z = y * 2\nreturn y * z", [0.0, 36.0, 9.0]),
    "a part written before, read in a branch": (
        "y = x * 3\ny.view(-1)[0] = 1.5\nwith torch.no_grad():\n    if bool(x.sum() > 1):\n        z = y * 2\n    else:\n        z = y\n"
        "return y * z", [0.0, 36.0, 9.0]),
    "a view of what was written before": (
        "y = x * 3\nv = y[1:]\ny.mul_(2.0)\nwith torch.no_grad():\n    z = v * 1\nreturn torch.cat([y[:1], v * z])", [6.0, 72.0, 18.0]),
    "a part written in each round": (
        "y = x * 3\nz = y\nfor i in range(2):\n    y[0] = 1.5\n    with torch.no_grad():\n        z = y * 2\nreturn y * z",
        [0.0, 36.0, 9.0]),
    "the same inside and outside": ("y = x * x\nwith torch.no_grad():\n    z = x * x\nreturn y * z", [2.0, 16.0, 0.25]),
    "the same inside first": ("with torch.no_grad():\n    z = x * x\ny = x * x\nreturn y * z", [2.0, 16.0, 0.25]),
    "the same in each round": ("r = x\nfor i in range(3):\n    with torch.no_grad():\n        w = x * 2\n    r = r * w\nreturn r",
                               [8.0, 64.0, 1.0]),
    "in both branches": ("with torch.no_grad():\n    if bool(x.sum() > 1):\n        y = x * 2\n    else:\n        y = x * 2\nreturn y * x",
                         [2.0, 4.0, 1.0]),
    "decided when it runs": ("torch.set_grad_enabled(bool(x.sum() > 1))\ny = x * 2\ntorch.set_grad_enabled(bool(x.sum() > 100))\n"
                             "z = x * 3\ntorch.set_grad_enabled(True)\nreturn y * z", [6.0, 12.0, 3.0]),
    "a write decided when it runs": ("y = x * 3\ntorch.set_grad_enabled(bool(x.sum() > 100))\ny.mul_(x)\na = torch.is_grad_enabled()\n"
                                     "torch.set_grad_enabled(True)\nreturn y * x * (2 if a else 1)", [6.0, 18.0, 2.25]),
    "a branch that leaves it off": ("if bool(x.sum() > 1):\n    torch.set_grad_enabled(False)\ny = x * 2\ntorch.set_grad_enabled(True)\n"
                                    "return y * x", [2.0, 4.0, 1.0]),
    "is_grad_enabled": ("p = torch.is_grad_enabled()\ntorch.set_grad_enabled(False)\ny = x * 2\ntorch.set_grad_enabled(p)\nreturn y * x",
                        [2.0, 4.0, 1.0]),
}
TURNED = "y = (x * 2).reshape(1, 3) * 1\nwith torch.no_grad():\n    y.squeeze_(0)\nreturn y * x"
TANGENTS = {"a constant factor": [4.0, 8.0, 2.0], "a write": [9.0, 36.0, 2.25], "a result from inside": [2.0, 4.0, 1.0],
            "a new dimension": [[4.0, 8.0, 2.0]], "decided when it runs": [12.0, 24.0, 6.0]}


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


IN_A_FORK = HEAD.replace("f(", "g(") + """{body}
def f(x: Tensor):
    held: Dict[str, Tensor] = {{}}
    held["x"] = x * 3
    y = held.pop("x") * 2
    z = torch.jit._wait(torch.jit._fork(g, x.clone()))
    return {result}
"""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "decided" not in name])
def test_in_a_fork_beside_a_dict(name: str) -> None:
    """The dict keeps executors from one pair for the whole graph: they differentiate groups of it."""
    body, want = PROGRAMS[name]
    text = "".join(f"    {line}\n" for line in body.splitlines())
    f = irtool.from_script(IN_A_FORK.format(body=text, result="z.sum() + y.sum()"), "f")
    for way in WAYS:
        np.testing.assert_allclose(np.asarray(WAYS[way](f, [X], [np.ones(())])), np.array(want) + 6, rtol=1e-12, err_msg=way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_torch(name: str, way: str) -> None:
    body, want = PROGRAMS[name]
    f = module(body)
    (result,) = irtool.run(f, [X])
    np.testing.assert_allclose(np.asarray(WAYS[way](f, [X], [np.ones_like(result)])), want, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_a_gradient_that_does_not_fit_is_refused_in_torchs_words(way: str) -> None:
    """torch: Function MulBackward0 returned an invalid gradient at index 0 - got [3] but expected shape compatible with [1, 3]"""
    f = module(TURNED)
    np.testing.assert_allclose(irtool.run(f, [X])[0], 2 * X * X)
    with pytest.raises(irtool.RunError, match=r"shape \[3\] but expected shape compatible with \[1, 3\]"):
        WAYS[way](f, [X], [np.ones(3)])


@pytest.mark.parametrize("name", TANGENTS)
def test_tangents_pass(name: str) -> None:
    f = module(PROGRAMS[name][0])
    for each in (f, irtool.compile(f), irtool.jit(f)):
        got = irtool.torch.func.jvp(each, (irtool.Tensor(X),), (irtool.torch.ones(3, dtype=irtool.torch.float64),))[1]
        np.testing.assert_allclose(got.array, TANGENTS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_gradients(name: str) -> None:
    """Of those that leave one graph of one input, all."""
    body, want = PROGRAMS[name]
    tried = 0
    for each in irtool.passes.BY_NAME:
        changed = irtool.parse(str(module(body)))
        try:
            irtool.PassManager(each, verify=True).run(changed)
        except (irtool.PassError, irtool.UnsupportedError):
            continue
        if len(changed.graphs) == len(changed.graph(changed.names()[0]).inputs) == 1:
            (result,) = irtool.run(changed, [X])
            (gradient,) = irtool.vjp(changed, [X], [np.ones_like(result)], [0])
            np.testing.assert_allclose(np.zeros(3) if gradient is None else gradient, want, rtol=1e-12, err_msg=each)
            tried += 1
    assert tried > 30


def test_a_mode_ends_with_the_run() -> None:
    f = module("p = torch.is_grad_enabled()\ntorch.set_grad_enabled(bool(x.sum() > 100))\nreturn x * (2 if p else 3)")
    runs = irtool.compile(f)
    for _ in range(3):
        np.testing.assert_allclose(runs(X)[0], 2 * X)
        np.testing.assert_allclose(irtool.vjp(f, [X], [np.ones(3)], [0])[0], np.zeros(3))


def test_a_trace_has_no_switches() -> None:
    f = module(PROGRAMS["decided when it runs"][0])
    with pytest.raises(irtool.UnsupportedError, match="the mode is decided when it runs"):
        irtool.trace(lambda x: irtool.torch.func.jvp(f, (x,), (x,))[1], [X])


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
    if name in TANGENTS:
        x = torch.tensor(X)
        np.testing.assert_allclose(torch.func.jvp(space["f"], (x,), (torch.ones_like(x),))[1].numpy(), TANGENTS[name], rtol=1e-12)


@pytest.mark.parametrize(("line", "slope"), [("torch.dropout(y, 0.5, False)", 2.0), ("torch.positive(y)", 2.0), ("torch.exp(y) * 0", 0.0),
                                             ("torch.ops.aten._cast_Double(y)", 2.0), ("torch.as_tensor(y)", 2.0)])
def test_what_gives_its_operand_itself_hands_its_gradient_on(line: str, slope: float) -> None:
    graph = irtool.from_script(f"def f(x):\n    y = x * 2\n    with torch.no_grad():\n        z = {line}\n    return z\n")
    (gradient,) = irtool.vjp(graph, [np.ones(3)], [np.ones(3)], [0])
    np.testing.assert_array_equal(np.zeros(3) if gradient is None else gradient, np.full(3, slope))


@pytest.mark.parametrize("way", ["mT", "mH", "matrix_H", "adjoint"])
@pytest.mark.parametrize("shape", [(), (2, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_number_turned_is_itself(way: str, shape: tuple[int, ...], dtype: type) -> None:
    """A matrix turned where gradients are off has none; a tensor without dimensions is returned itself, with its own, if not conjugated."""
    text = f"def f(x):\n    y = x * 2\n    with torch.no_grad():\n        z = torch.ops.aten.{way}(y)\n    return z * y\n"
    graph = irtool.from_script(text)
    x = np.full(shape, 0.5, dtype)
    slope = 4.0 if shape == () and (way == "mT" or dtype == np.float64) else 2.0
    for _ in range(3):
        (gradient,) = irtool.vjp(graph, [x], [np.ones(shape, dtype)], [0])
        np.testing.assert_array_equal(gradient, x * slope * 2)
    renamed = irtool.from_script(f"def f(x):\n    y = x * 2\n    z = torch.ops.aten.{way}(y)\n    y.unsqueeze_(0)\n    return z\n")
    is_itself = slope == 4.0
    assert irtool.run(renamed, [x])[0].shape == ((1,) if is_itself else shape)


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


def test_second_derivatives_pass_as_for_functions() -> None:
    """torch.func.hessian: the tangent of the gradient has that of the constant factor."""
    graph = module("y = x * 2\nwith torch.no_grad():\n    z = y.sin()\nreturn (z * y).sum()")
    x = irtool.Tensor(X)
    want = np.diag(4 * np.cos(2 * X))
    for transform in (irtool.torch.func.hessian, lambda f: irtool.jit(irtool.torch.func.hessian(f))):
        np.testing.assert_allclose(transform(graph)(x).array, want, atol=1e-12)
    np.testing.assert_allclose(irtool.torch.func.jacfwd(graph)(x).array, 2 * np.sin(2 * X) + 4 * X * np.cos(2 * X))
    np.testing.assert_allclose(irtool.torch.func.jacrev(graph)(x).array, 2 * np.sin(2 * X))
