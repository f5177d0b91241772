"""Layer norm and group norm in C give what the operators give, whatever their sizes; the same bits for any number of threads."""
from __future__ import annotations

import random

import numpy as np
import pytest

import irtool
from irtool.execute.native import row_norms
from irtool.execute.native.building import compiler
from irtool.execute.native.row_norms import RowNorm
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.memory import every

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.mark.parametrize("seed", range(40))
def test_drawn_norms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, generator = random.Random(seed), np.random.default_rng(seed)
    monkeypatch.setattr(row_norms, "WORTH_THREADS", 0)
    is_layer, dtype = draw.random() < 0.5, draw.choice(["float32", "float32", "float64"])
    rank = draw.randint(1, 3)
    shape = [draw.randint(1, 4), draw.choice([2, 4, 6]), *[draw.randint(1, 90 // rank) for _ in range(rank)]]
    parts = shape[-draw.randint(1, 2):] if is_layer else [shape[1]]
    has = draw.random() < 0.7, draw.random() < 0.7
    second = f"int[] = prim::Constant[value={parts}]()" if is_layer else f"int = prim::Constant[value={draw.choice([1, 2])}]()"
    names = [name if given else "%none" for name, given in zip(("%w", "%b"), has, strict=True)]
    text = "\n".join([
        "graph(%x : Tensor, %w : Tensor, %b : Tensor):", f"  %s : {second}", "  %none : NoneType = prim::Constant()",
        "  %eps : float = prim::Constant[value=0.001]()", "  %no : bool = prim::Constant[value=0]()",
        f"  %y : Tensor = aten::{'layer' if is_layer else 'group'}_norm(%x, %s, {', '.join(names)}, %eps, %no)", "  return (%y)", ""])
    x, w, b = [(generator.standard_normal(size) * 3 + 5).astype(dtype) for size in (shape, parts, parts)]
    if draw.random() < 0.2:
        x[0, 0].reshape(-1)[:1] = draw.choice([np.nan, np.inf])
    if is_layer and draw.random() < 0.4:
        x = np.asfortranarray(x)
    graph = irtool.parse(text).graph()
    (wanted,) = irtool.run(graph, [x, w, b], interpret=True)
    results = set()
    for threads in (1, 2, 3):
        plan = Plan(graph, native=True, threads=threads)
        for _ in range(3):
            (result,) = plan([x, w, b])
            tolerance = 2e-5 if dtype == "float32" else 1e-11
            assert result.strides == wanted.strides
            np.testing.assert_allclose(result, wanted, tolerance, 20 * tolerance)
            results.add(result.tobytes())
        assert plan.latest is not None and plan.latest.program is not None
        assert any(isinstance(getattr(each, "function", None), RowNorm) for each in every(plan.latest.program.body))
    assert len(results) == 1


def test_wrong_sizes_are_the_errors_of_the_operator() -> None:
    text = ("graph(%x : Tensor):\n  %s : int = prim::Constant[value=3]()\n  %none : NoneType = prim::Constant()\n"
            "  %eps : float = prim::Constant[value=0.001]()\n  %no : bool = prim::Constant[value=0]()\n"
            "  %y : Tensor = aten::group_norm(%x, %s, %none, %none, %eps, %no)\n  return (%y)\n")
    with pytest.raises(irtool.Error, match="divisible by num_groups"):
        irtool.compile(irtool.parse(text).graph(), native=True).run([np.ones((2, 4, 3000), "f")])
