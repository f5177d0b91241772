"""Gradients through tuples that stay tuples, and of complex tensors whose types say nothing."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import PassManager
from irtool.autodiff.reverse import differentiate_graph
from irtool.execute.graph_gradients import fitted, prepared, run_pair
from irtool.torchscript.front import compile_source

BODY = """  %i : int = prim::Constant[value=1]()
  %j : int = prim::Constant[value=-2]()
  %2 : Tensor = prim::TupleIndex(%t, %i)
  %5 : Tensor = prim::TupleIndex(%t, %j)
  %3 : Tensor = aten::mul(%2, %5)
  return (%3)
"""


@pytest.mark.parametrize("made", ["%t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)",
                                  "%t : NamedTuple(a : Tensor, b : Tensor) = prim::TupleConstruct(%x, %y)",
                                  "%t : (Tensor, Tensor) = prim::NamedTupleConstruct(%x, %y)"])
def test_elements_of_tuples(made: str) -> None:
    module = irtool.parse(f"graph(%x : Tensor, %y : Tensor):\n  {made}\n{BODY}")
    pair = PassManager("differentiate", verify=True).run(module)
    assert "prim::TupleIndex" not in str(pair.graph("df"))


def test_a_tuple_that_is_given() -> None:
    text = f"graph(%x : Tensor, %t : (Tensor, Tensor)):\n{BODY.replace('aten::mul(%2, %5)', 'aten::mul(%2, %x)')}"
    PassManager("differentiate", verify=True).run(irtool.parse(text))
    x = np.arange(3.0)
    found = irtool.vjp(irtool.parse(text), [x, (x + 1, x + 2)], [np.ones(3)], [0, 1])
    np.testing.assert_array_equal(found[0], x + 2)
    np.testing.assert_array_equal(found[1], [np.zeros(3), x])


def test_an_index_that_is_computed_is_refused_at_its_line() -> None:
    text = ("graph(%x : Tensor, %t : (Tensor, Tensor), %i : int):\n  %2 : Tensor = prim::TupleIndex(%t, %i)\n"
            "  %3 : Tensor = aten::mul(%2, %x)\n  return (%3)\n")
    with pytest.raises(irtool.UnsupportedError, match="only where the index is a constant") as caught:
        PassManager("differentiate").run(irtool.parse(text))
    assert caught.value.diagnostics[0].line == 2


COMPLEX = ["x * y", "torch.sin(x * y)", "x / y", "torch.mm(x, y)", "torch.linalg.inv(x)", "torch.linalg.solve(x, y)", "torch.std(x, 0) * y",
           "torch.cumprod(x, 0)", "torch.linalg.matrix_exp(x)", "torch.addmm(x, x, y)", "torch.conv1d(x[None], y[:, :, None])",
           "torch.conv_transpose1d(x[None], y[:, :, None])", "torch.fft.fft(x) * y"]


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["modern", "2018"])
@pytest.mark.parametrize("expression", COMPLEX)
def test_complex_gradients_without_types(expression: str, form: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x, y, seed = rng.standard_normal((3, 3, 3)) + 1j * rng.standard_normal((3, 3, 3))
    space = {"torch": torch}
    source = f"def f(x, y):\n    return {expression}\n"
    exec(source, space)
    wrt = [torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)]
    out = space["f"](*wrt)
    seed = np.broadcast_to(seed, out.shape).copy()
    expected = torch.autograd.grad(out, wrt, torch.tensor(seed), allow_unused=True)
    pair = differentiate_graph(prepared(compile_source(source).graph()), [True, True], form == "modern")
    _, found = run_pair(pair, [x, y], [seed])
    for index, (value, other) in enumerate(zip((x, y), expected, strict=True)):
        if other is not None:
            np.testing.assert_allclose(fitted(found[index], value), other.resolve_conj().numpy(), rtol=1e-9, atol=1e-9)


def test_a_sum_of_gradients_without_dimensions_is_a_tensor() -> None:
    """NumPy makes a number of it, which an operator would take for a Python number, of float32."""
    graph = irtool.parse("""graph(%a : Tensor, %b : Tensor):
  %1 : Tensor = prim::AutogradAdd(%a, %b)
  %2 : int = prim::Constant[value=2]()
  %3 : Tensor = aten::mul(%1, %2)
  return (%3)
""").graph()
    (found,) = irtool.run(graph, [np.array(0.1), np.array(0.2)])
    assert found.dtype == np.float64 and found == (0.1 + 0.2) * 2


# -- results that are tuples out of branches and loops
RESULTS = {
    "branch": """
def f(x: Tensor, c: bool):
    if c:
        r = (x * 2, x.sin())
    else:
        r = (x.exp(), x * x)
    return r
""",
    "early return": """
def f(x: Tensor, c: bool):
    if c:
        return (x * 2, x.sin())
    y = x.cos()
    return (y, y * x)
""",
    "read and given": """
def f(x: Tensor, c: bool):
    if c:
        r = (x * 2, x.sin())
    else:
        r = (x.exp(), x * x)
    a, b = r
    return a * b, r
""",
    "a list inside": """
def f(x: Tensor, c: bool):
    if c:
        r = (x * 2, [x.sin(), x * x])
    else:
        r = (x.exp(), [x * x, x.cos()])
    return r
""",
    "tuples in a list": """
def f(x: Tensor, c: bool):
    l = [(x * 1, x.sin())]
    l.append((x * 2, x.cos()))
    if c:
        l.append((x, x))
    s = torch.zeros_like(x)
    for a, b in l:
        s = s + a * b
    return s, l[0]
""",
    "carried by a loop": """
def f(x: Tensor, c: bool):
    r = (x * 1, x.sin())
    for i in range(3):
        r = (r[1] * r[0], r[0] + r[1])
    return r
""",
}


def flat(value: Any) -> list[Any]:
    return [each for item in value for each in flat(item)] if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"profiling": True}], ids=["default", "unoptimised", "profiling"])
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("program", RESULTS)
def test_results_that_are_tuples(program: str, taken: bool, options: dict[str, bool]) -> None:
    graph = compile_source(RESULTS[program]).graph()
    x = np.linspace(0.3, 1.5, 4)
    step = 1e-6
    outputs, more, less = (flat(irtool.run(graph, [at, taken], interpret=True)) for at in (x, x + step, x - step))
    slopes = [(a - b) / (2 * step) for a, b in zip(more, less, strict=True)]
    executor = irtool.compile(graph, **options)
    weights = [np.full(4, 1.5 + place) for place in range(len(outputs))]
    choices = [weights, *[[w if at == place else None for at, w in enumerate(weights)] for place in range(len(outputs))]]
    for cotangents in choices:
        expected = sum(slope * weight for slope, weight in zip(slopes, cotangents, strict=True) if weight is not None)
        for run in (executor.vjp, executor.vjp, partial(irtool.vjp, graph, interpret=True)):
            np.testing.assert_allclose(run([x, taken], cotangents, wrt=[0])[0], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("given", ["both", "first", "second"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_list_of_lists_may_be_read_in_part(place, given):
    source = f"def f(x, y):\n    a = x * 2\n    l = [[a], [y, a]]\n    u = l[{place}][-1]\n    return u * u, l[1][0] * 3\n"
    for returned in ("l[1][0] * 3", "l"):
        PassManager("differentiate", verify=True).run(irtool.from_script(source.replace("l[1][0] * 3", returned), "f"))
    cotangents = [np.ones(2) if given in ("both", name) else None for name in ("first", "second")]
    for interpret in (True, False):
        gradients = irtool.vjp(irtool.from_script(source, "f"), [np.ones(2), np.ones(2)], cotangents, [0, 1], interpret=interpret)
        for gradient, want in zip(gradients, (8.0 * (given != "second"), 3.0 * (given != "first")), strict=True):
            np.testing.assert_array_equal(0 if gradient is None else gradient, want)
