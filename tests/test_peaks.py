"""What plans take at most: hardly more than is alive at one time, and no more than torch eager, whose figures were recorded.

The figures of torch 2.13.0 are those of `benchmarks/memory.py`, on the same programs.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.executor import Executor
from irtool.torchscript import compile_source
from tests.loop_texts import LSTM_SOURCE
from tests.peaks import peak_of, plans_of
from tests.plan_samples import chain
from tests.random_graphs import Writer

LIMIT = 1.1
"""Times what is alive."""
SIDE = 512
"""Extent of matrices: 1 MiB, beside which buffers of NumPy's, of 32 KiB each, do not count for much."""
NETWORKS = LSTM_SOURCE + """
def mlp(x, w1, c1, w2, c2, w3, c3):
    h = torch.relu(torch.mm(x, w1) + c1)
    h = torch.relu(torch.mm(h, w2) + c2)
    return torch.mm(h, w3) + c3


def mlp_loss(x, w1, c1, w2, c2, w3, c3):
    return torch.pow(mlp(x, w1, c1, w2, c2, w3, c3), 2).sum()


def block(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2):
    h = torch.layer_norm(x, [256], g1, e1)
    qkv = (torch.matmul(h, wqkv) + bqkv).view(2, 64, 3, 4, 64).permute(2, 0, 3, 1, 4)
    q, k, v = qkv[0], qkv[1], qkv[2]
    att = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.125, -1)
    y = torch.matmul(att, v).transpose(1, 2).reshape(2, 64, 256)
    x = x + torch.matmul(y, wo) + bo
    h = torch.layer_norm(x, [256], g2, e2)
    u = torch.matmul(h, w1) + c1
    u = 0.5 * u * (1.0 + torch.tanh(0.7978845608 * (u + 0.044715 * u * u * u)))
    return x + torch.matmul(u, w2) + c2


def block_loss(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2):
    return torch.pow(block(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2), 2).sum()


def lstm_loss(x, h, c, wi, wh, b):
    return torch.pow(lstm(x, h, c, wi, wh, b), 2).sum()


def residual(x, w0, w1, w2):
    h = torch.relu(torch.conv2d(x, w0, None, [1, 1], [1, 1]))
    r = torch.conv2d(torch.relu(torch.conv2d(h, w1, None, [1, 1], [1, 1])), w2, None, [1, 1], [1, 1])
    return torch.relu(h + r)


def residual_loss(x, w0, w1, w2):
    return torch.pow(residual(x, w0, w1, w2), 2).sum()


def classify(x, w, g, e):
    return torch.log_softmax(torch.mm(torch.layer_norm(x, [256], g, e), w), -1)


def attend(x, w, v):
    q, k, u = torch.matmul(x, w).chunk(3, -1)
    a = torch.dropout(torch.softmax(torch.matmul(q, k.transpose(1, 2)) * 0.1, -1), 0.1, False)
    return torch.matmul(torch.matmul(a, u), v)


def attend_loss(x, w, v):
    return torch.pow(attend(x, w, v), 2).sum()


def recurrent_loss(x, h, w, r, b, c):
    found, last = torch.gru(x, h, [w, r, b, c], True, 1, 0., False, False, True)
    return torch.pow(found, 2).sum()


def steps(p, g, m, v):
    found: List[Tensor] = []
    for _ in range(3):
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        p = p - 0.01 * m / (torch.sqrt(v * v) + 0.1)
        found.append(p)
    return found
"""
MLP = [(128, 512), (512, 1024), (1024,), (1024, 1024), (1024,), (1024, 512), (512,)]
BLOCK = [(2, 64, 256), (256, 768), (768,), (256, 256), (256,), (256, 1024), (1024,), (1024, 256), *[(256,)] * 5]
LSTM = [(100, 32, 256), (32, 256), (32, 256), (256, 1024), (256, 1024), (1024,)]
SMALL_LSTM = [(100, 8, 64), (8, 64), (8, 64), (64, 256), (64, 256), (256,)]
IMAGES = [(8, 3, 64, 64), (16, 3, 3, 3), (16, 16, 3, 3), (16, 16, 3, 3)]
HEAD = [(64, 256), (256, 8192), (256,), (256,)]
ATTEND = [(4, 128, 128), (128, 384), (128, 128)]
RECURRENT = [(4, 100, 80), (1, 4, 256), (768, 80), (768, 256), (768,), (768,)]
SQUARES = [(256, 512)] * 4
RECORDED = [("mlp", MLP, 1_572_864), ("mlp_loss", MLP, 9_185_288), ("block", BLOCK, 3_014_668), ("block_loss", BLOCK, 7_081_000),
            ("lstm", LSTM, 589_824), ("lstm_loss", SMALL_LSTM, 1_614_856), ("residual", IMAGES, 8_397_824),
            ("residual_loss", IMAGES, 12_601_352), ("classify", HEAD, 4_194_304),
            ("attend", ATTEND, 1_572_864), ("attend_loss", ATTEND, 2_359_312), ("recurrent_loss", RECURRENT, 5_734_408),
            ("steps", SQUARES, 3_670_028)]
"""A program, the shapes of its inputs, bytes that torch eager takes; programs that give a loss go backwards, too."""


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))


def measured(graph: irtool.Graph, run: Callable[[Executor], Any]) -> tuple[int, Any]:
    """The peak, and the report of the plan that runs at last."""
    made: list[Executor] = []

    def make() -> Callable[[], Any]:
        made.append(irtool.compile(graph))
        return lambda: run(made[0])

    peak, _ = peak_of(make)
    report = plans_of(made[0])[-1].memory
    assert report is not None
    return peak, report


@pytest.mark.parametrize("name, shapes, torch", RECORDED, ids=[name for name, _, _ in RECORDED])
def test_networks_take_what_is_alive_and_no_more_than_torch(name: str, shapes: list[tuple[int, ...]], torch: int) -> None:
    generator = np.random.default_rng(0)
    given = [(generator.standard_normal(shape) * 0.1).astype(np.float32) for shape in shapes]
    graph = compile_source(NETWORKS, name, "networks.py").graph()
    if name.endswith("loss"):
        one = np.ones((), np.float32)
        peak, report = measured(graph, lambda executor: executor.vjp(given, [one], list(range(1, len(given)))))
    else:
        peak, report = measured(graph, lambda executor: executor(*given))
    assert peak <= torch and not report.unknown
    if name not in ("lstm", "residual"):    # steps are small, NumPy's own buffers are not; columns of windows are no results
        assert report.peak <= peak <= LIMIT * report.live


@pytest.mark.parametrize("count", [1, 2, 12, 100])
def test_chains_take_their_output(count: int) -> None:
    x = np.full((SIDE, SIDE), 0.5, np.float32)
    peak, report = measured(irtool.parse(chain(count)).graph(), lambda executor: executor(x, x))
    assert report.live == x.nbytes and peak <= LIMIT * x.nbytes


class Straight(Writer):
    """Operators, views and joins, one after the other."""

    kinds = {"one": 6, "two": 8, "view": 4, "join": 2}

    def block(self, lines: list[str], values: list[str], depth: int, count: int) -> None:
        for _ in range(count):
            kind = self.random.choices(list(self.kinds), list(self.kinds.values()))[0]
            getattr(self, f"write_{kind}")(lines, values, "  ", depth)


class Writing(Straight):
    """Writes, and lists that grow, among them."""

    kinds = {**Straight.kinds, "write": 3, "list": 3}


@pytest.mark.parametrize("seed", range(15))
def test_random_programs_take_what_is_alive(seed: int) -> None:
    generator = np.random.default_rng(seed)
    x, y, c = [generator.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(3)]
    peak, report = measured(irtool.parse(Straight(seed).graph(SIDE)).graph(), lambda executor: executor(x, y, True, 3, c))
    assert not report.unknown and peak <= LIMIT * report.live + (x.nbytes >> 3)


def test_random_programs_that_write_and_fill_lists() -> None:
    """One of them has results that lie in the way of a join."""
    over = []
    for seed in range(15):
        generator = np.random.default_rng(seed)
        x, y, c = [generator.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(3)]
        graph = irtool.parse(Writing(seed).graph(SIDE)).graph()
        peak, report = measured(graph, lambda executor, given=(x, y, True, 3, c): executor(*given))
        assert not report.unknown
        over.append(peak > LIMIT * report.live + (x.nbytes >> 3))
    assert sum(over) <= 1


def test_what_a_graph_does_not_write_into_is_not_copied() -> None:
    graph = irtool.parse("""graph(%x : Tensor, %w : Tensor):
  %h : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu_(%h)
  return (%r)
""").graph()
    x = np.ones((SIDE, SIDE), np.float32)
    peak, report = measured(graph, lambda executor: executor(x, x))
    assert report.live == x.nbytes and peak <= LIMIT * x.nbytes
    both = irtool.parse("""graph(%x : Tensor, %y : Tensor):
  %r : Tensor = aten::relu_(%x)
  %s : Tensor = aten::neg(%y)
  return (%s)
""").graph()
    y = np.full((2, 3), -1.0, np.float32)
    for _ in range(3):
        assert (irtool.compile(both)(y, y)[0] == 0).all() and (y == -1).all(), "one array given twice is one array"
