"""What df computes again instead of taking it: the same gradients bit for bit, fewer bytes kept."""
from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_ways import with_gradients

import irtool
from irtool import PassManager
from irtool.autodiff.min_cut import min_cut
from irtool.autodiff.reverse import differentiate_graph
from irtool.execute.pairs import Forward
from irtool.ir.pair import pairs
from irtool.ir.types import TensorType
from irtool.testing.pair_size import pair_size, saved_bytes

RECORDS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data/differentiation_size.json").read_text())

BRANCH = """graph(%x : Float(3), %y : Float(3), %c : bool):
  %1 : Float(3) = aten::exp(%x)
  %2 : Float(3) = aten::mul(%1, %y)
  %3 : Float(3) = prim::If(%c)
    block0():
      %4 : Float(3) = aten::tanh(%2)
      %5 : Float(3) = aten::mul(%4, %2)
      -> (%5)
    block1():
      %6 : Float(3) = aten::mul(%2, %2)
      -> (%6)
  %7 : Float(3) = aten::mul(%3, %2)
  return (%7)
"""
MASK = """graph(%x : Float(3), %y : Float(3)):
  %z : int = prim::Constant[value=0]()
  %1 : Bool(3) = aten::gt(%x, %z)
  %2 : Float(3) = aten::where(%1, %x, %y)
  %3 : Float(3) = aten::mul(%2, %x)
  return (%3)
"""
VIEW = """graph(%x : Float(2, 3), %y : Float(3, 2)):
  %1 : Float(2, 3) = aten::exp(%x)
  %2 : Float(3, 2) = aten::t(%1)
  %3 : Float(3, 2) = aten::mul(%2, %y)
  return (%3)
"""
WRITTEN = """graph(%x : Float(3), %m : Float(3)):
  %z : int = prim::Constant[value=1]()
  %0 : Bool(3) = aten::gt(%m, %z)
  %1 : Float(3) = aten::where(%0, %x, %m)
  %2 : Float(3) = aten::mul(%1, %m)
  %3 : Float(3) = aten::add_(%m, %z, %z)
  return (%2)
"""


def graph_inputs(text: str) -> list[Any]:
    rng = np.random.default_rng(3)
    return [(rng.random(value.type.shape) * 0.8 + 0.2).astype(np.float32) if isinstance(value.type, TensorType) and value.type.shape
            is not None else True for value in irtool.parse(text).graph().inputs]


def gradients(text: str, save: str) -> dict[int, Any]:
    flags = ",".join(str(int(flag)) for flag in with_gradients(irtool.parse(text).graph()))
    module = PassManager(f"differentiate{{requires-grad={flags}{save}}},lower-grad-of", verify=True).run(irtool.parse(text))
    (pair,) = pairs(module)
    forward = Forward(pair, graph_inputs(text))
    rng = np.random.default_rng(4)
    return forward.backward({i: rng.standard_normal(np.shape(output)).astype(np.float32) for i, output in enumerate(forward.outputs)})[0]


@pytest.mark.parametrize("text", [*[record["graph"] for record in RECORDS.values()], BRANCH, MASK, VIEW],
                         ids=[*RECORDS, "branch", "mask", "view"])
def test_gradients_are_the_same_bit_for_bit(text: str) -> None:
    for one, other in zip(gradients(text, "").values(), gradients(text, " save=least").values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", RECORDS)
def test_no_more_bytes_than_the_minimum_cut_of_torch(name: str) -> None:
    text = RECORDS[name]["graph"]
    inputs = graph_inputs(text)
    flags = with_gradients(irtool.parse(text).graph())
    kept = [saved_bytes(differentiate_graph(irtool.parse(text).graph(), flags, True, True, least=least), inputs) for least in (False, True)]
    assert kept[1] <= kept[0] and kept[1] <= RECORDS[name]["cut"]


@pytest.mark.parametrize(("text", "kinds"), [(MASK, ["aten::gt"]), (VIEW, ["aten::t"])], ids=["mask", "view"])
def test_what_costs_nothing_is_computed_again(text: str, kinds: list[str]) -> None:
    """A mask of a captured tensor by default, a view where that keeps less; nothing takes part that f has no use for."""
    pair = differentiate_graph(irtool.parse(text).graph(), [True, True], True, least=text is VIEW)
    again = [node.kind for node in pair.df.block if node.kind in kinds]
    assert again == kinds
    assert pair_size(pair.f, pair.df, len(pair.input_vjps))["tensors"] == 2


def test_what_is_written_is_captured() -> None:
    """%m changes after the comparison: the comparison cannot be made again."""
    pair = differentiate_graph(irtool.parse(WRITTEN).graph(), [True, False], True)
    assert [node.kind for node in pair.df.walk() if node.kind == "aten::gt"] == []


def test_of_the_second_order() -> None:
    """x * y * x + y: df takes only inputs of f, so that it is a function of them, and its gradient goes through what it computes again."""
    module = PassManager("differentiate{requires-grad=all save=least},specialize-undef").run(irtool.parse(RECORDS["product"]["graph"]))
    df = module.graph("df")
    df.metadata = {}
    (pair,) = pairs(PassManager("differentiate{requires-grad=all},lower-grad-of").run(irtool.parse(str(df))))
    rng = np.random.default_rng(8)
    g, x, y, u, v = rng.random((5, 4, 6), np.float32)
    found = Forward(pair, [g, x, y]).backward({0: u, 1: v})[0]
    np.testing.assert_allclose(found[0], 2 * x * y * u + (x * x + 1) * v, rtol=1e-5)
    np.testing.assert_allclose(found[1], 2 * y * g * u + 2 * x * g * v, rtol=1e-5)
    np.testing.assert_allclose(found[2], 2 * x * g * u, rtol=1e-5)


def test_least_is_refused_by_name() -> None:
    with pytest.raises(irtool.Error, match="option 'save'.*expected least, not 'most'"):
        PassManager("differentiate{save=most}").run(irtool.parse(MASK))


def test_cut_is_the_cheapest() -> None:
    """Against every set of vertices, on small random graphs."""
    draw = random.Random(5)
    for _ in range(150):
        n = draw.randrange(2, 7)
        weights = [draw.randrange(1, 6) for _ in range(n)]
        edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if draw.random() < 0.5]
        given = [v for v in range(n) if draw.random() < 0.4] or [0]
        wanted = [v for v in range(n) if draw.random() < 0.4] or [n - 1]

        def is_cut(chosen: frozenset[int], edges: list[tuple[int, int]] = edges, given: list[int] = given,
                   wanted: list[int] = wanted) -> bool:
            reached = set(given) - chosen
            for a, b in sorted(edges):
                if a in reached and b not in chosen:
                    reached.add(b)
            return reached.isdisjoint(wanted)

        found = min_cut(weights, edges, given, wanted)
        subsets = [frozenset(each) for size in range(n + 1) for each in itertools.combinations(range(n), size)]
        assert is_cut(frozenset(found))
        assert sum(weights[v] for v in found) == min(sum(weights[v] for v in each) for each in subsets if is_cut(each))


def test_a_long_chain_is_cut_without_recursion() -> None:
    n = 3000
    lines = "".join(f"  %v{i + 1} : Float(3) = aten::{('sin', 'exp', 'tanh')[i % 3]}(%v{i})\n" for i in range(n))
    graph = irtool.parse(f"graph(%v0 : Float(3)):\n{lines}  return (%v{n})\n").graph()
    pair = differentiate_graph(graph, [True], True, least=True)
    assert (pair.captured_inputs, pair.captured_outputs) == ([0], [])
