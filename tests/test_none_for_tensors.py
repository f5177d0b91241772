"""None in place of a tensor is refused with the name of the input, on every way to run; gradient graphs take it as the undefined tensor."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

X = np.ones(2)
REFUSED: dict[str, tuple[str, list[Any], str]] = {
    "mul": ("def f(b, a):\n    return b * a\n", [X, None], "Tensor, got None"),
    "relu": ("def f(a):\n    return torch.relu(a)\n", [None], "Tensor, got None"),
    "size": ("def f(a):\n    return a.size()\n", [None], "Tensor, got None"),
    "returned": ("def f(a):\n    return a\n", [None], "Tensor, got None"),
    "in a list": ("def f(a: List[Tensor]):\n    return torch.cat(a)\n", [[X, None]], r"Tensor\[\], got None in a list"),
    "in a tuple": ("def f(a: Tuple[Tensor, int]):\n    return a[0]\n", [(None, 1)], r"\(Tensor, int\), got None in a tuple"),
    "in a dict": ("def f(a: Dict[str, Tensor]):\n    return a['k']\n", [{"k": None}], r"Dict\(str, Tensor\), got None in a dict"),
}
TAKEN: dict[str, tuple[str, list[Any]]] = {
    "optional": ("def f(a: Optional[Tensor], b):\n    return b if a is None else a\n", [None, X]),
    "of a function": ("def f(b, w: Tensor, bias: Optional[Tensor]):\n    return torch.nn.functional.linear(b, w, bias)\n", [X, X, None]),
    "list of optional": ("def f(a: List[Optional[Tensor]], b):\n    return b if a[0] is None else b + 1\n", [[None], X]),
}
WAYS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "run": lambda module, inputs: [irtool.run(module, inputs) for _ in range(3)],
    "interpreted": lambda module, inputs: irtool.run(module, inputs, interpret=True),
    "compiled": lambda module, inputs: [(executor := irtool.compile(module))(*inputs) and executor(*inputs) for _ in range(2)],
    "not optimized": lambda module, inputs: irtool.compile(module, optimize=False)(*inputs),
    "profiling": lambda module, inputs: irtool.compile(module, profiling=True)(*inputs),
    "jit": lambda module, inputs: irtool.jit(module)(*inputs),
    "vjp": lambda module, inputs: irtool.vjp(module, inputs, [X], [0]),
    "vjp, interpreted": lambda module, inputs: irtool.vjp(module, inputs, [X], [0], interpret=True),
    "record": lambda module, inputs: irtool.compile(module).record(inputs, [0]),
    "gradcheck": lambda module, inputs: irtool.gradcheck(module, inputs, [0]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_none_is_refused_by_name(name: str, way: str) -> None:
    source, inputs, expected = REFUSED[name]
    with pytest.raises(irtool.RunError, match=rf"input %a.1: expected {expected}"):
        WAYS[way](irtool.from_script(source), inputs)


def test_transformations_refuse_it_too() -> None:
    module = irtool.from_script(REFUSED["mul"][0])
    for call in (lambda: irtool.vmap(module, (0, None))(X, None), lambda: irtool.grad(module)(X, None),
                 lambda: irtool.trace(module, [X, None])):
        with pytest.raises(irtool.RunError, match="input %a.1: expected Tensor, got None"):
            call()


@pytest.mark.parametrize("way", ["run", "interpreted", "compiled", "not optimized", "profiling", "jit"])
@pytest.mark.parametrize("name", TAKEN)
def test_optional_tensors_may_be_none(name: str, way: str) -> None:
    source, inputs = TAKEN[name]
    WAYS[way](irtool.from_script(source), inputs)


GRADIENTS = {
    "a sum": "graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = prim::AutogradAdd(%x, %y)\n  return (%1)\n",
    "a question": """graph(%x : Tensor, %y : Tensor):
  %c : bool = prim::AutogradAnyNonZero(%x)
  %1 : Tensor = prim::If(%c)
    block0():
      %2 : Tensor = aten::mul(%x, %y)
      -> (%2)
    block1():
      -> (%y)
  return (%1)
""",
    "a region": """graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = prim::GradOf[name="mul"](%x)
    block0():
      %2 : Tensor = aten::mul(%x, %y)
      -> (%2)
  %3 : Tensor = prim::AutogradAdd(%1, %y)
  return (%3)
""",
}


@pytest.mark.parametrize("way", ["run", "interpreted", "compiled", "not optimized", "profiling"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_graphs_take_undefined_tensors(name: str, way: str) -> None:
    results = WAYS[way](irtool.parse(GRADIENTS[name]), [None, X])
    while isinstance(results, list):
        results = results[-1]
    assert results.tolist() == [1, 1]


def test_a_df_takes_undefined_cotangents() -> None:
    df = irtool.PassManager("differentiate").run(irtool.from_script("def f(x, y):\n    return x * y, x + y\n")).graphs[1]
    for ways in ({}, {"interpret": True}):
        assert [each.tolist() for each in irtool.run(df, [(None, X), X, X], **ways)] == [[1, 1], [1, 1]]
        assert irtool.run(df, [None, X, X], **ways) == [None, None]
