"""Sums, means and extremes of short rows in C: NumPy's bits, and where plans use them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native.building import compiler, reads_objects
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.row_reductions import Folds

pytestmark = pytest.mark.skipif(compiler() is None or not reads_objects(), reason="no C compiler")
ROWS = 40


def numbers(length: int, dtype: Any, kind: str) -> Any:
    """Rows of numbers of very different sizes; with zeros of both signs, or with infinities and nans."""
    draw = np.random.default_rng(length)
    x = (draw.standard_normal((ROWS, length)) * 10.0 ** draw.integers(-3, 4, (ROWS, length))).astype(dtype)
    if kind == "zeros":
        x[draw.random(x.shape) < 0.5] = 0
        x[draw.random(x.shape) < 0.3] = -0.0
        x[ROWS // 2:] = np.minimum(x[ROWS // 2:], 0)
    if kind == "special":
        x[draw.random(x.shape) < 0.05] = np.nan
        x[draw.random(x.shape) < 0.1] = -np.inf
    return x


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "zeros", "special"])
def test_rows_of_any_length_have_numpys_bits(name: str, dtype: Any, kind: str) -> None:
    for length in (2, 7, 8, 9, 15, 16, 17, 31, 64, 100, 127, 128, 129, 137, 255, 256, 300, 512):
        x = numbers(length, dtype, kind)
        folds = Folds(name, (1,), (ROWS, 1), True)
        with np.errstate(all="ignore"):
            wanted = getattr(x, name)(axis=-1, keepdims=True)
            out = np.empty_like(wanted)
            assert folds(x, out=out) is out and folds.call is not None
        assert out.tobytes() == wanted.tobytes()
        assert folds(x).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("shape", [(7, 7), (2, 1), (14, 14), (3, 2, 5), (16, 32)])
def test_several_last_dimensions_have_numpys_bits(name: str, shape: tuple[int, ...]) -> None:
    axes = tuple(range(2, 2 + len(shape)))
    x = numbers(int(np.prod(shape)), np.float32, "plain").reshape(4, ROWS // 4, *shape)
    folds = Folds(name, axes, (4, ROWS // 4), False)
    assert folds(x).tobytes() == getattr(x, name)(axis=axes).tobytes() and folds.call is not None


SOFTMAX = """graph(%x : Tensor):
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::softmax(%x, %last, %none)
  return (%y)
"""


@pytest.mark.parametrize(("shape", "used"), [((4, 8, 32, 32), True), ((2, 3, 4), False), ((64, 2048), False)])
def test_softmax_folds_short_rows(shape: tuple[int, ...], used: bool) -> None:
    graph = irtool.parse(SOFTMAX).graph()
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = irtool.interpret.run(graph, [x])[0]
    plan = Plan(graph)
    for _ in range(3):
        assert plan([x])[0].tobytes() == wanted.tobytes()
    assert ("folds" in plan.source) == used


def test_plans_without_native_loops_leave_them_to_numpy() -> None:
    plan = Plan(irtool.parse(SOFTMAX).graph(), native=False)
    x = np.ones((64, 64), np.float32)
    for _ in range(3):
        plan([x])
    assert "folds" not in plan.source


def test_they_are_kept_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    lines = "".join([f"  %a{i + 1} : Tensor = aten::relu(%a{i})\n" for i in range(120)])
    text = SOFTMAX.replace("%y : Tensor = aten::softmax(%x", "%a0 : Tensor = aten::softmax(%x") \
        .replace("  return (%y)", f"{lines}  return (%a120)")
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    wanted = irtool.interpret.run(irtool.parse(text).graph(), [x])[0].tobytes()
    for _ in range(3):
        executor = irtool.compile(irtool.parse(text))
        for _ in range(3):
            assert executor(x)[0].tobytes() == wanted
    assert list(tmp_path.rglob("*.plan"))
