"""Runs forwards and backwards leave nothing behind: no array, no object, and nothing that only garbage collection would free.

Bytes are tracemalloc's: those of arrays (NumPy reports them) and of all Python objects. CPython keeps freed tuples for later, up to 2000
of each length, and looks as if it grew; a full collection lets go of them. So the collector is off while the calls are made, has to find
nothing at their end, and after that the bytes are what they were. Counters that outgrow CPython's small ints are what `ROOM` is for.
"""
from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor

ROOM = 512

MLP = """graph(%x : Tensor, %w : Tensor, %b : Tensor, %v : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mm(%x, %w)
  %3 : Tensor = aten::add(%2, %b, %1)
  %4 : Tensor = aten::relu(%3)
  %5 : Tensor = aten::mm(%4, %v)
  return (%5)
"""
BLOCK = """graph(%x : Tensor, %wq : Tensor, %wk : Tensor, %wv : Tensor, %g : Tensor, %b : Tensor, %w1 : Tensor, %b1 : Tensor):
  %1 : int = prim::Constant[value=1]()
  %m1 : int = prim::Constant[value=-1]()
  %m2 : int = prim::Constant[value=-2]()
  %none : None = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %d : int = prim::Constant[value=8]()
  %shape : int[] = prim::ListConstruct(%d)
  %eps : float = prim::Constant[value=1e-05]()
  %scale : float = prim::Constant[value=0.25]()
  %how : str = prim::Constant[value="none"]()
  %y : Tensor = aten::layer_norm(%x, %shape, %g, %b, %eps, %false)
  %q : Tensor = aten::matmul(%y, %wq)
  %k : Tensor = aten::matmul(%y, %wk)
  %v : Tensor = aten::matmul(%y, %wv)
  %kt : Tensor = aten::transpose(%k, %m2, %m1)
  %s : Tensor = aten::matmul(%q, %kt)
  %ss : Tensor = aten::mul(%s, %scale)
  %p : Tensor = aten::softmax(%ss, %m1, %none)
  %a : Tensor = aten::matmul(%p, %v)
  %r : Tensor = aten::add(%x, %a, %1)
  %h : Tensor = aten::linear(%r, %w1, %b1)
  %hg : Tensor = aten::gelu(%h, %how)
  %out : Tensor = aten::add(%r, %hg, %1)
  return (%out)
"""
LSTM = """graph(%xs : Tensor, %h0 : Tensor, %c0 : Tensor, %w : Tensor, %u : Tensor, %b : Tensor):
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %n : int = aten::size(%xs, %0)
  %h : Tensor, %c : Tensor = prim::Loop(%n, %true, %h0, %c0)
    block0(%i : int, %hi : Tensor, %ci : Tensor):
      %x : Tensor = aten::select(%xs, %0, %i)
      %a : Tensor = aten::mm(%x, %w)
      %d : Tensor = aten::mm(%hi, %u)
      %e : Tensor = aten::add(%a, %d, %1)
      %g : Tensor = aten::add(%e, %b, %1)
      %g1 : Tensor, %g2 : Tensor, %g3 : Tensor, %g4 : Tensor = prim::ConstantChunk[chunks=4, dim=1](%g)
      %ii : Tensor = aten::sigmoid(%g1)
      %ff : Tensor = aten::sigmoid(%g2)
      %gg : Tensor = aten::tanh(%g3)
      %oo : Tensor = aten::sigmoid(%g4)
      %k : Tensor = aten::mul(%ff, %ci)
      %l : Tensor = aten::mul(%ii, %gg)
      %cn : Tensor = aten::add(%k, %l, %1)
      %t : Tensor = aten::tanh(%cn)
      %hn : Tensor = aten::mul(%oo, %t)
      -> (%true, %hn, %cn)
  return (%h, %c)
"""
BRANCH = """graph(%x : Tensor, %y : Tensor, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %m : Tensor = aten::mul(%x, %y)
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::tanh(%m)
      -> (%a)
    block1():
      %b : Tensor = aten::exp(%m)
      -> (%b)
  %s : Tensor = aten::add(%r, %x, %1)
  return (%s)
"""
WRITE = """graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %2 : float = prim::Constant[value=2.]()
  %m : Tensor = aten::mul(%x, %y)
  %r : Tensor = aten::select(%m, %0, %0)
  %w : Tensor = aten::mul_(%r, %2)
  %s : Tensor = aten::sin(%m)
  return (%s)
"""


def arrays(*shapes: Sequence[int]) -> list[Any]:
    """Random numbers."""
    draw = np.random.default_rng(0).standard_normal
    return [draw(shape) for shape in shapes]


CASES: dict[str, tuple[str, list[Any], list[tuple[int, ...]]]] = {
    "mlp": (MLP, arrays((4, 5), (5, 6), (6,), (6, 3)), [(4, 3)]),
    "transformer block": (BLOCK, arrays((2, 4, 8), (8, 8), (8, 8), (8, 8), (8,), (8,), (8, 8), (8,)), [(2, 4, 8)]),
    "lstm": (LSTM, arrays((4, 2, 4), (2, 3), (2, 3), (4, 12), (3, 12), (12,)), [(2, 3), (2, 3)]),
    "write": (WRITE, arrays((3, 4), (3, 4)), [(3, 4)]),
    "branch": (BRANCH, [*arrays((3, 4), (3, 4)), True], [(3, 4)]),
}


class Case:
    """A graph with inputs, cotangents, and what gradients are asked for."""

    def __init__(self, name: str) -> None:
        self.text, self.inputs, shapes = CASES[name]
        self.cotangents = [np.ones(shape) for shape in shapes]
        self.wrt = [place for place, value in enumerate(self.inputs) if isinstance(value, np.ndarray)]

    def executor(self, options: Options | None = None) -> Executor:
        """A new one."""
        return Executor(irtool.parse(self.text).graph(), options)

    def recorded(self, options: Options | None = None) -> Callable[[], Any]:
        """Forwards, then backwards on the tape."""
        executor = self.executor(options)
        return lambda: executor.record(self.inputs, self.wrt).backward(self.cotangents)

    def on_tape_twice(self) -> Callable[[], Any]:
        """Gradients that remember how they came about."""
        executor = self.executor()
        return lambda: executor.record(self.inputs, self.wrt).backward_recorded(self.cotangents)

    def hooked(self) -> Callable[[], Any]:
        """With hooks that replace what they see."""
        executor = self.executor()

        def call() -> Any:
            record = executor.record(self.inputs, self.wrt)
            record.hook_output(0, lambda gradient: gradient * 2)
            record.hook_input(0, lambda gradient: gradient + 1)
            record.hook_after(0, lambda handed, came: list(handed))
            return record.backward(self.cotangents)

        return call

    def joint(self) -> Callable[[], Any]:
        """Forwards and backwards in one run."""
        executor = self.executor()
        return lambda: executor.vjp(self.inputs, self.cotangents, self.wrt)

    def forward(self, options: Options | None = None) -> Callable[[], Any]:
        """Forwards only."""
        executor = self.executor(options)
        return lambda: executor(*self.inputs)

    def public(self) -> Callable[[], Any]:
        """`irtool.vjp` and `irtool.run`."""
        graph = irtool.parse(self.text).graph()
        return lambda: (irtool.vjp(graph, self.inputs, self.cotangents, self.wrt), irtool.run(graph, self.inputs))

    def failing(self, options: Options | None = None) -> Callable[[], Any]:
        """A run that raises in the middle: what it had made by then is in its traceback, not elsewhere."""
        executor = self.executor(options)

        def call() -> None:
            for values in ([self.inputs[0], *self.inputs[1:-1], "nothing"], [np.ones((7, 7, 7)), *self.inputs[1:]]):
                try:
                    executor(*values)
                except irtool.Error:
                    pass

        return call


WAYS: dict[str, tuple[int, Callable[[Case], Callable[[], Any]]]] = {
    "forward": (1000, lambda case: case.forward()),
    "vjp": (1000, lambda case: case.joint()),
    "tape": (100, lambda case: case.recorded()),
    "tape of the tape": (100, lambda case: case.on_tape_twice()),
    "hooks": (100, lambda case: case.hooked()),
    "groups": (100, lambda case: case.recorded(Options(whole=False))),
    "unoptimised": (40, lambda case: case.recorded(Options(optimize=False))),
    "unoptimised forward": (100, lambda case: case.forward(Options(optimize=False))),
    "irtool.vjp": (100, lambda case: case.public()),
    "profiling": (100, lambda case: case.recorded(Options(profiling=True))),
    "failing": (100, lambda case: case.failing()),
    "unoptimised failing": (40, lambda case: case.failing(Options(optimize=False))),
}
"""How often, and what. (A thousand times, but where that takes seconds.)"""


@contextmanager
def traced() -> Iterator[None]:
    """Memory is traced, and nothing collected but where a test says so; then only what was made since is looked through."""
    gc.disable()
    gc.freeze()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        gc.enable()


def live() -> int:
    """Bytes of everything made since tracing began; what CPython keeps for later is let go of first."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_live_bytes_stay_constant_without_garbage_collection(name: str, way: str) -> None:
    times, make = WAYS[way]
    times = 1000 if name == "mlp" and way in ("tape", "hooks") else times
    call = make(Case(name))
    for _ in range(4):      # until functions are compiled
        call()
    with traced():
        for _ in range(4):
            call()
        before = live()
        for _ in range(times):
            call()
        unreachable = gc.collect()
        after = live()
    assert unreachable == 0
    assert abs(after - before) <= ROOM


def test_what_grows_is_seen() -> None:
    """The measure itself: an array or a cycle per call is noticed."""
    kept: list[Any] = []
    for made in (np.ones(8).copy, object):
        with traced():
            before = live()
            for _ in range(100):
                kept.append(made())
            assert live() - before > ROOM
