"""`x.requires_grad` and `x.is_leaf` in graphs say what torch's autograd would, on every way to take gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.callables import as_function

X, W = np.array([1.0, 2.0, 0.5]), np.array([3.0, -1.0, 2.0])
HEAD = "def f(x: Tensor, w: Tensor):\n"
PROGRAMS: dict[str, tuple[str, list[float]]] = {
    "an input": ("if x.requires_grad:\n    return x * w * 2\nreturn x * w * 3", [8.0, 10.5, 8.0, 7.0]),
    "another input": ("if w.requires_grad:\n    return x * w * 2\nreturn x * w * 3", [12.0, 7.0, 8.0, 7.0]),
    "both": ("a = 1\nif x.requires_grad:\n    a = a + 1\nif w.requires_grad:\n    a = a + 5\nreturn x * w * a", [8.0, 21.0, 28.0, 24.5]),
    "a result": ("y = x * 2\nif y.requires_grad:\n    return y * w\nreturn y * w * 5", [8.0, 35.0, 8.0, 7.0]),
    "a result of both": ("y = x * w\nif y.requires_grad:\n    return y * 2\nreturn y * 3", [8.0, 7.0, 8.0, 7.0]),
    "detached": ("y = (x * 2).detach()\nif y.requires_grad:\n    return y * w * x\nreturn y * w * 5 * x", [20.0, 52.5, 20.0, 52.5]),
    "integers": (
        "y = (x * 2).to(torch.int64)\nif y.requires_grad:\n    return y * w * x\nreturn y * w * 5 * x", [20.0, 52.5, 20.0, 52.5]),
    "integers, then not": (
        "y = (x * 2).long() * 1.5\nif y.requires_grad:\n    return y * w * x\nreturn y * w * 5 * x", [30.0, 78.75, 30.0, 78.75]),
    "a comparison": ("y = x > w\nif y.requires_grad:\n    return x * w\nreturn x * w * 5", [20.0, 17.5, 20.0, 17.5]),
    "no_grad": (
        "with torch.no_grad():\n    y = x * 2\nif y.requires_grad:\n    return y * w * x\nreturn y * w * 5 * x",
        [20.0, 52.5, 20.0, 52.5]),
    "an input in no_grad": (
        "a = 1\nwith torch.no_grad():\n    if x.requires_grad:\n        a = 4\nreturn x * w * a", [16.0, 3.5, 16.0, 14.0]),
    "an input in no_grad alone": (
        "y = x\nwith torch.no_grad():\n    b = y.requires_grad\nreturn x * w * (4 if b else 9)", [16.0, 31.5, 16.0, 14.0]),
    "set_grad_enabled by the run": (
        "torch.set_grad_enabled(bool(x.sum() > 1))\ny = x * 2\ntorch.set_grad_enabled(bool(x.sum() > 100))\nz = x * 2\n"
        "torch.set_grad_enabled(True)\na = 1\nif y.requires_grad:\n    a = a + 1\nif z.requires_grad:\n    a = a + 5\n"
        "return x * w * a", [8.0, 3.5, 8.0, 7.0]),
    "in a branch": (
        "y = x\nif bool(x.sum() > 1):\n    if x.requires_grad:\n        y = y * 2\n    else:\n        y = y * w\n"
        "return y * w", [8.0, 4.0, 8.0, 7.0]),
    "of a branch": (
        "y = w.detach()\nif bool(x.sum() > 1):\n    y = x * 2\nif y.requires_grad:\n    return y * w\nreturn y * w * 5",
        [8.0, 35.0, 8.0, 7.0]),
    "of a branch not taken": (
        "y = w.detach()\nif bool(x.sum() > 100):\n    y = x * 2\nif y.requires_grad:\n    return y * w * x\n"
        "return y * w * 5 * x", [70.0, 10.0, 70.0, 10.0]),
    "of an answer": (
        "y = w.detach()\nif not x.requires_grad:\n    y = x * w\nif y.requires_grad:\n    return y * w * x\n"
        "return y * w * 5 * x", [70.0, -1.0, 70.0, 10.0]),
    "in a loop": (
        "y = x\nfor i in range(3):\n    if x.requires_grad:\n        y = y * w\n    else:\n        y = y + w\nreturn y",
        [34.0, 9.0, 34.0, 39.0]),
    "carried by a loop": (
        "y = torch.ones(3, dtype=torch.float64)\na = 0\nfor i in range(3):\n"
        "    a = a * 10 + (1 if y.requires_grad else 2)\n    if i == 0:\n        y = y * x\nreturn y * w * a",
        [844.0, 777.0, 844.0, 738.5]),
    "carried by a loop by the run": (
        "y = torch.ones(3, dtype=torch.float64)\na = 0\ni = 0\nwhile bool(y.sum() < 20):\n"
        "    a = a * 10 + (1 if y.requires_grad else 2)\n    y = y * x if i == 1 else y * 2\n    i += 1\n"
        "return y * w * a", [70752.0, 62216.0, 70752.0, 61908.0]),
    "a write": (
        "y = torch.zeros(3, dtype=torch.float64)\na = 1 if y.requires_grad else 2\ny.add_(x)\n"
        "b = 3 if y.requires_grad else 5\nreturn y * w * a * b", [24.0, 35.0, 24.0, 21.0]),
    "a write into a part": (
        "y = torch.zeros(3, dtype=torch.float64)\na = 1 if y.requires_grad else 2\ny[0] = x[1]\n"
        "b = 3 if y.requires_grad else 5\nreturn y * w * a * b", [18.0, 20.0, 18.0, 12.0]),
    "a write into a view": (
        "y = torch.zeros(3, dtype=torch.float64)\nv = y[1:]\nv.mul_(x[1:])\nb = 3 if y.requires_grad else 5\n"
        "return (y + x) * w * b", [12.0, 17.5, 12.0, 10.5]),
    "a write in no_grad": (
        "y = w * 2\nwith torch.no_grad():\n    y.mul_(x)\nreturn y * x * (3 if y.requires_grad else 5)", [20.0, 21.0, 12.0, 21.0]),
    "a write in no_grad into a constant": (
        "y = torch.ones(3, dtype=torch.float64)\nwith torch.no_grad():\n    y.mul_(x)\n"
        "return y * x * w * (3 if y.requires_grad else 5)", [10.0, 26.25, 10.0, 26.25]),
    "a write in a branch": (
        "y = torch.ones(3, dtype=torch.float64)\nif bool(x.sum() > 1):\n    y.mul_(x)\n"
        "return y * w * (3 if y.requires_grad else 5)", [12.0, 17.5, 12.0, 10.5]),
    "a write in a loop": (
        "y = torch.ones(3, dtype=torch.float64)\na = 0\nfor i in range(3):\n"
        "    a = a * 10 + (1 if y.requires_grad else 2)\n    y[i] = x[i]\nreturn y * w * a", [844.0, 777.0, 844.0, 738.5]),
    "a list": (
        "a = 0\nfor t in [x, w, x * w, x.detach()]:\n    a = a * 10 + (1 if t.requires_grad else 2)\nreturn x * w * a",
        [4848.0, 7392.0, 4448.0, 3892.0]),
    "a list that grows": (
        "ts = [x.detach()]\nts.append(x * w)\nif x.requires_grad:\n    ts.append(w)\na = 0\nfor t in ts:\n"
        "    a = a * 10 + (1 if t.requires_grad else 2)\nreturn x * w * a", [848.0, 73.5, 844.0, 738.5]),
    "any of a list": (
        "if torch.is_grad_enabled() and any([t.requires_grad for t in [x.detach(), w]]):\n    return x * w * 2\n"
        "return x * w * 3", [12.0, 7.0, 8.0, 7.0]),
    "a dict": (
        "d: Dict[str, Tensor] = {}\nd[\"y\"] = x * 2\nd[\"z\"] = w.detach()\na = 1 if d[\"y\"].requires_grad else 2\n"
        "b = 3 if d[\"z\"].requires_grad else 5\nreturn d[\"y\"] * w * a * b", [40.0, 70.0, 40.0, 35.0]),
    "a view": ("y = x.view(3, 1)\nreturn y[:, 0] * w * (3 if y.requires_grad else 5)", [12.0, 17.5, 12.0, 10.5]),
    "a fill of its sizes": ("y = torch.ones_like(x)\nreturn x * w * (3 if y.requires_grad else 5)", [20.0, 17.5, 20.0, 17.5]),
    "as another's dtype": (
        "y = torch.ones(3, dtype=torch.float64).type_as(x)\nreturn x * w * y * (3 if y.requires_grad else 5)",
        [20.0, 17.5, 20.0, 17.5]),
    "a sorted one": (
        "y, i = x.sort()\nreturn x * w * y * (3 if y.requires_grad else 5) * (7 if i.requires_grad else 11)",
        [214.5, 192.5, 214.5, 115.5]),
    "a sign": ("y = x.sign()\nreturn x * w * y * (3 if y.requires_grad else 5)", [12.0, 17.5, 12.0, 10.5]),
    "an index": ("y = x.argmax()\nreturn x * w * (3 if y.requires_grad else 5)", [20.0, 17.5, 20.0, 17.5]),
    "a number made a tensor": (
        "y = torch.tensor(float(x.detach().sum()), dtype=torch.float64)\nreturn x * w * y * (3 if y.requires_grad else 5)",
        [70.0, 61.25, 70.0, 61.25]),
    "a constant": (
        "y = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)\nreturn x * w * y * (3 if y.requires_grad else 5)",
        [35.0, 32.5, 35.0, 32.5]),
    "an optional": (
        "y: Optional[Tensor] = x\nif bool(w.sum() > 100):\n    y = None\nif y is not None and y.requires_grad:\n"
        "    return x * w * 2\nreturn x * w * 3", [8.0, 10.5, 8.0, 7.0]),
    "a number of it": ("return x * w * (int(x.requires_grad) + 2)", [12.0, 7.0, 12.0, 10.5]),
    "leaves": ("y = x * 2\na = 3 if x.is_leaf else 5\nb = 7 if y.is_leaf else 11\nreturn y * w * a * b", [264.0, 147.0, 264.0, 231.0]),
    "a leaf in no_grad": (
        "y = x * 2\na = 3\nwith torch.no_grad():\n    if y.is_leaf:\n        a = 5\nreturn y * w * a", [24.0, 35.0, 24.0, 21.0]),
    "a detached leaf": ("y = x * 2\nz = y.detach()\nreturn y * w * (3 if z.is_leaf else 5)", [24.0, 21.0, 24.0, 21.0]),
    "itself": (
        "y = x.to(torch.float64)\nz = x.contiguous()\n"
        "return z * y * w * (3 if y.is_leaf else 5) * (7 if z.is_leaf else 11) * (13 if y.requires_grad else 17)",
        [1092.0, 1874.25, 1092.0, 1433.25]),
    "dropped": ("y = torch.dropout(x, 0.5, False)\nreturn y * w * (3 if y.requires_grad else 5)", [12.0, 17.5, 12.0, 10.5]),
}
"""Bodies, and the sums of the gradients by torch: of x if it alone has one, of w if it alone has one, of both if both have."""
RUNS = (([0], slice(0, 1)), ([1], slice(1, 2)), ([0, 1], slice(2, 4)))


def source(body: str) -> str:
    """The text of a program."""
    return HEAD + "".join(f"    {line}\n" for line in body.splitlines())


def module(body: str) -> Any:
    """The program compiled."""
    return irtool.from_script(source(body), "f")


def by_layers(f: Any, inputs: list[Any], cotangents: list[Any], wrt: list[int]) -> list[Any]:
    """Gradients of a graph as a function under a tape."""
    function, values = as_function("vjp", f), [irtool.torch.tensor(each) for each in inputs]

    def of_some(*some: Any) -> Any:
        given = dict(zip(wrt, some, strict=True))
        return function(*[given.get(place, each) for place, each in enumerate(values)])
    gradients = irtool.torch.func.vjp(of_some, *[values[place] for place in wrt])[1](*map(irtool.torch.tensor, cotangents))
    return [each.array for each in gradients]


def often(run: Callable[..., Any], *args: Any) -> Any:
    """The last of several results, by when plans are made."""
    return [run(*args) for _ in range(4)][-1]


WAYS: dict[str, Callable[[Any, list[Any], list[Any], list[int]], list[Any]]] = {
    "vjp": irtool.vjp,
    "vjp, planned": lambda *args: often(irtool.vjp, *args),
    "interpret": lambda f, inputs, cotangents, wrt: irtool.vjp(f, inputs, cotangents, wrt, interpret=True),
    "executor": lambda f, inputs, cotangents, wrt: often(irtool.compile(f).vjp, inputs, cotangents, wrt),
    "groups": lambda f, inputs, cotangents, wrt: irtool.compile(f, autodiff_threshold=1, inline_threshold=1).vjp(inputs, cotangents, wrt),
    "unoptimised": lambda f, inputs, cotangents, wrt: irtool.compile(f, optimize=False).vjp(inputs, cotangents, wrt),
    "profiling": lambda f, inputs, cotangents, wrt: often(irtool.compile(f, profiling=True).vjp, inputs, cotangents, wrt),
    "record": lambda f, inputs, cotangents, wrt: irtool.compile(f).record(inputs, wrt).backward(cotangents),
    "recorded again": lambda f, inputs, cotangents, wrt: irtool.compile(f).record(inputs, wrt).backward_recorded(cotangents).outputs,
    "layers": by_layers,
    "jit": lambda f, inputs, cotangents, wrt: by_layers(irtool.jit(f), inputs, cotangents, wrt),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_torch(name: str, way: str) -> None:
    body, want = PROGRAMS[name]
    f = module(body)
    for wrt, places in RUNS:
        got = WAYS[way](f, [X, W], [np.ones(3)], wrt)
        np.testing.assert_allclose([0.0 if each is None else each.sum() for each in got], want[places], rtol=1e-12, err_msg=str(wrt))


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_answers(name: str) -> None:
    """Of those that leave one graph of two inputs, all."""
    body, want = PROGRAMS[name]
    tried = 0
    for each in irtool.passes.BY_NAME:
        changed = irtool.parse(str(module(body)))
        try:
            irtool.PassManager(each, verify=True).run(changed)
        except (irtool.PassError, irtool.UnsupportedError):
            continue
        if len(changed.graphs) == 1 and len(changed.graph(changed.names()[0]).inputs) == 2:
            got = irtool.vjp(changed, [X, W], [np.ones(3)], [0, 1])
            np.testing.assert_allclose([0.0 if one is None else one.sum() for one in got], want[2:], rtol=1e-12, err_msg=each)
            tried += 1
    assert tried > 30


def test_runs_without_gradients_answer_no() -> None:
    f = module("return x.requires_grad, (x * w).requires_grad, x.is_leaf, (x * w).is_leaf")
    for _ in range(3):
        assert irtool.run(f, [X, W]) == [(False, False, True, True)]
    assert irtool.compile(f)(X, W) == [(False, False, True, True)]
    assert irtool.run(f, [X, W], interpret=True) == [(False, False, True, True)]


def test_outputs_of_a_recorded_run_are_those_of_its_answers() -> None:
    """Also where the graph writes into an input, so that outputs come from a further run."""
    f = module("y = x * 2\nb = y.requires_grad\nx.mul_(w)\nreturn y * (3 if b else 5)")
    for optimize in (True, False):
        recorded = irtool.compile(f, optimize=optimize).record([X.copy(), W], [0])
        np.testing.assert_allclose(recorded.outputs[0], X * 6)
        np.testing.assert_allclose(recorded.backward([np.ones(3)])[0], np.full(3, 6.0))


def test_tensors_in_lists() -> None:
    f = irtool.from_script("def f(ts: List[Tensor], w: Tensor):\n    a = 0\n    for t in ts:\n"
                           "        a = a * 10 + (1 if t.requires_grad else 2)\n    return ts[0] * w * a\n")
    for wrt, want in (([0], [[W * 11, W * 0]]), ([1], [X * 22])):
        for gradients in (irtool.vjp(f, [[X, W], W], [np.ones(3)], wrt), irtool.compile(f).vjp([[X, W], W], [np.ones(3)], wrt)):
            np.testing.assert_allclose(np.ravel(gradients), np.ravel(want))


def test_what_only_the_run_shows_has_no_pair_of_graphs() -> None:
    with pytest.raises(irtool.UnsupportedError, match=r"gradients through prim::requires_grad are not supported here: only the run shows"):
        irtool.PassManager("differentiate").run(module(PROGRAMS["of a branch"][0]))
    never = "if False:\n    b = (x * w).requires_grad\n    if b:\n        x = w\nc = (x * w).requires_grad\nreturn x * w"
    for body in (PROGRAMS["both"][0], PROGRAMS["detached"][0], PROGRAMS["of an answer"][0].replace("y = x * w", "x = x * w"), never):
        irtool.PassManager("differentiate").run(module(body))


def test_whole_plans_know_results_in_known_dtypes() -> None:
    plan = irtool.compile(module(PROGRAMS["a result of both"][0])).plan_for(X, W, wrt=[0])
    assert "prim::requires_grad" not in str(plan.graph)


def test_functions_answer_as_in_torch() -> None:
    """Inside a `grad` alone: a batch and a tangent say no, as those of torch.func do."""
    said: list[tuple[bool, ...]] = []

    def f(x: Any) -> Any:
        y = x * 2
        with irtool.torch.no_grad():
            z = x * 2
        said.append((x.requires_grad, y.requires_grad, y.detach().requires_grad, z.requires_grad, x.is_leaf, y.is_leaf))
        return (y * x).sum()

    yes, no = (True, True, False, False, True, False), (False, False, False, False, True, True)
    x, rows, func = irtool.torch.ones(3), irtool.torch.ones(2, 3), irtool.torch.func
    func.grad(f)(x)
    func.vmap(func.grad(f))(rows)
    func.hessian(f)(x)
    assert said == [yes, yes, yes]
    del said[:]
    func.jvp(f, (x,), (x,))
    func.grad(lambda rows: func.vmap(f)(rows).sum())(rows)
    func.grad(lambda x: func.jvp(f, (x,), (x,))[1])(x)
    assert said == [no, no, no]


def test_tangents_of_graphs_are_those_of_runs_without_gradients() -> None:
    f = as_function("jvp", module(PROGRAMS["an input"][0]))
    inputs = (irtool.Tensor(X), irtool.Tensor(W))
    np.testing.assert_allclose(irtool.torch.func.jvp(f, inputs, inputs)[1].array, 6 * X * W)


def test_branches_that_batches_decide_are_refused() -> None:
    """A tape runs the branch on the layer below and, for the gradient, on a tape of its own: the answers would differ."""
    f = irtool.from_script("def f(x: Tensor):\n    y = x * x\n    if bool(x.sum() > 2):\n        y = y * (2 if y.requires_grad else 3)\n"
                           "    return y.sum()\n")
    rows = irtool.Tensor(np.stack([X, W]))
    assert irtool.vmap(f)(rows).tolist() == [15.75, 42.0]
    with pytest.raises(irtool.UnsupportedError, match="not supported with prim::requires_grad in it"):
        irtool.vmap(irtool.grad(f))(rows)


def test_gradcheck_compares_with_runs_of_the_same_answers() -> None:
    assert irtool.gradcheck(module(PROGRAMS["an input"][0]), [X, W]).is_right
    with pytest.raises(irtool.RunError, match="prim::requires_grad hides from gradients what differences see"):
        irtool.gradcheck(module(PROGRAMS["a result of both"][0]), [X, W])


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    body, want = PROGRAMS[name]
    space = {"torch": torch, "Tensor": torch.Tensor}
    exec(source(body), space)
    for wrt, places in RUNS:
        x, w = (torch.tensor(each, requires_grad=place in wrt) for place, each in enumerate((X, W)))
        space["f"](x, w).backward(torch.ones(3, dtype=torch.float64))
        grads = [(x, w)[place].grad for place in wrt]
        np.testing.assert_allclose([0.0 if each is None else each.sum() for each in grads], want[places], rtol=1e-12)
