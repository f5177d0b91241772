"""The pass relayout-weights: products of constant weights are the same, whatever their layout."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.passmanager import PassManager

PRODUCTS = {
    "linear": ("%y : Tensor = aten::linear(%x, %w, %b)", (70, 5), (70,)),
    "linear of rows": ("%y : Tensor = aten::linear(%x, %w, %b)", (70, 5), (1,)),
    "mm": ("%y : Tensor = aten::mm(%x, %w)", (5, 70), (1,)),
    "matmul": ("%y : Tensor = aten::matmul(%x, %w)", (5, 70), (1,)),
    "addmm": ("%y : Tensor = aten::addmm(%b, %x, %w, %one, %one)", (5, 70), (70,)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_the_same_and_the_right_factor_lies_in_rows(name: str, dtype: str, order: Any) -> None:
    line, sizes, bias = PRODUCTS[name]
    source = f"graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %one : int = prim::Constant[value=1]()\n  {line}\n  return (%y)\n"
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(each).astype(dtype) for each in ((9, 5), sizes, bias))
    graph = irtool.freeze(irtool.parse(source).graph(), {"w": np.asarray(w, order=order), "b": b})
    after = PassManager("relayout-weights").run(graph).graph()
    (weight,) = [each for each in arrays(after) if each.shape == sizes]
    assert (weight.T if name.startswith("linear") else weight).flags.c_contiguous
    assert np.array_equal(weight, w)
    np.testing.assert_allclose(irtool.run(after, [x]), irtool.run(graph, [x]), rtol=1e-5 if dtype == "float32" else 1e-12)


def test_a_weight_of_two_layers_is_stored_once_and_one_that_is_looked_up_stays() -> None:
    source = """graph(%x : Tensor, %i : Tensor, %w : Tensor, %t : Tensor):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %minus : int = prim::Constant[value=-1]()
  %a : Tensor = aten::linear(%x, %w, %none)
  %b : Tensor = aten::linear(%a, %w, %none)
  %c : Tensor = aten::linear(%b, %t, %none)
  %e : Tensor = aten::embedding(%t, %i, %minus, %no, %no)
  return (%c, %e)
"""
    rng = np.random.default_rng(0)
    w, t = (rng.standard_normal((64, 64)).astype("float32") for _ in range(2))
    graph = irtool.freeze(irtool.parse(source).graph(), {"w": w, "t": t})
    after = PassManager("inference").run(graph).graph()
    assert sorted((np.array_equal(each, w), bool(each.flags.c_contiguous)) for each in arrays(after)) == [(False, True), (True, False)]


@pytest.mark.parametrize("two_ways", [False, True])
def test_recurrent_operators_read_the_weights_of_their_input_by_column(two_ways: bool) -> None:
    directions, layers, width = 1 + two_ways, 2, 16
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(each).astype("float32") for layer in range(layers) for _ in range(directions)
               for each in ((64, 6 if layer == 0 else width * directions), (64, width), (64,), (64,))]
    names = ", ".join(f"%w{place}" for place in range(len(weights)))
    declared = ", ".join(f"%w{place} : Tensor" for place in range(len(weights)))
    source = f"""graph(%x : Tensor, %h : Tensor, %c : Tensor, {declared}):
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %ways : bool = prim::Constant[value={int(two_ways)}]()
  %layers : int = prim::Constant[value={layers}]()
  %p : float = prim::Constant[value=0.]()
  %state : Tensor[] = prim::ListConstruct(%h, %c)
  %weights : Tensor[] = prim::ListConstruct({names})
  %a : Tensor, %b : Tensor, %d : Tensor = aten::lstm(%x, %state, %weights, %yes, %layers, %p, %no, %ways, %no)
  return (%a, %b, %d)
"""
    graph = irtool.freeze(irtool.parse(source).graph(), {f"w{place}": each for place, each in enumerate(weights)})
    after = PassManager("relayout-weights").run(graph).graph()
    assert [each.flags.f_contiguous and not each.flags.c_contiguous for each in arrays(after) if each.ndim == 2] \
        == [True, False] * layers * directions
    x = rng.standard_normal((7, 3, 6)).astype("float32")
    state = [rng.standard_normal((layers * directions, 3, width)).astype("float32") for _ in range(2)]
    for ours, theirs in zip(irtool.run(after, [x, *state]), irtool.run(graph, [x, *state]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def arrays(graph: irtool.Graph) -> list[np.ndarray]:
    """The arrays of the graph's constants, in order."""
    found = [getattr(node.attributes["value"].value, "data", None) for node in graph.walk()
             if node.kind == "prim::Constant" and "value" in node.attributes]
    return [each for each in found if each is not None]
