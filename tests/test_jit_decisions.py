"""What `irtool.jit` does with decisions: variants, their guards, what is an input, what is refused in which words."""
from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import Tensor, torch
from irtool.dispatch.trees import flatten

F32 = np.array([1.0, 2.0], np.float32)
A, B = np.array([1.0, 5.0]), np.array([-7.0, 5.0])


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """The function jitted, and a list that grows when it is traced."""
    traced: list[int] = []

    def f(*args: Any, **named: Any) -> Any:
        traced.append(1)
        return function(*args, **named)
    return irtool.jit(f), traced


def test_a_decision_has_a_variant_for_each_outcome_and_says_why() -> None:
    fast = irtool.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    for sign in (1, -1, 1, -1):
        assert fast(np.array([sign * 3.0])).tolist() == ([6.0] if sign > 0 else [3.0])
    first, second = fast.variants
    assert [each.outcome for each in (*first.guards, *second.guards)] == [True, False] and len(first.graph.outputs) == 2
    assert "test_jit_decisions.py" in repr(fast.variants) and "is False, which no variant has" in second.reason
    assert fast.variants.why == "" and len(fast.graphs()) == 2
    fast.clear()
    assert fast.variants == [] and fast.graphs() == []


@pytest.mark.skipif(os.name == "nt", reason="a link needs rights there")
def test_the_users_line_is_named_where_irtool_is_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "irtool").symlink_to(Path(irtool.__file__).parent, target_is_directory=True)
    (tmp_path / "irtool_of_mine.py").write_text("import irtool\n\n@irtool.jit\ndef f(x):\n    return x * 2 if x.sum() > 0 else -x\n\n"
                                                "f(irtool.Tensor([1.0]))\nprint(irtool.__file__, f.variants)\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "irtool_of_mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.startswith(str(tmp_path)), done.stdout + done.stderr
    assert "irtool_of_mine.py:5" in done.stdout and "callers.py" not in done.stdout


SEVERAL: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]], int]] = {
    "a float is an input": (lambda x, r: x * r, [(F32, r) for r in (0.1, 0.2, 0.3)], 1),
    "arithmetic on numbers": (lambda x, t: x * math.sqrt(1 - 0.9**t) / (t + 1), [(F32, t) for t in (1, 2, 3)], 1),
    "numbers in containers": (lambda x, p: x * p["a"][0], [(F32, {"a": [r]}) for r in (0.1, 0.2, 0.3)], 1),
    "numpy's numbers": (lambda x, r: x * r, [(F32, np.float64(r)) for r in (0.1, 0.2, 0.3)], 1),
    "a comparison": (lambda x, n: x * n if n > 2 else x, [(F32, n) for n in range(6)], 2),
    "a count": (lambda x, n: sum((x for _ in range(n)), x), [(F32, n) for n in (1, 2, 1, 2)], 2),
    "many counts": (lambda x, n: sum((x for _ in range(n)), x), [(F32, n) for n in range(20)], 20),
    "classes": (lambda x, n: x * 2 if isinstance(n, float) else x, [(F32, n) for n in (1, 1.0, 2, 2.0)], 2),
    "words": (lambda x, how: x.sum() if how == "sum" else x, [(F32, how) for how in ("sum", None, "sum")], 2),
    "part of": (lambda x, n: x[n:n + 2].sum(), [(np.arange(9.0), n) for n in (0, 3, 5)], 1),
    "sizes that depend on a number": (lambda x, n: x[:n] * x[:n].shape[0], [(np.arange(9.0), n) for n in (2, 3, 2)], 2),
    "a number of an element": (lambda x: x[int(x.argmax())] * x.sum().item(), [(A,), (B,), (-A,)], 1),
    "the truth of several": (lambda x: x if x[0] > 0 and x[1] > 0 else -x, [(A,), (B,), (-B,)], 3),
    "NaN": (lambda x: x if x.sum().item() == x.sum().item() else -x, [(np.array([v]),) for v in (1.0, math.nan, 2.0, math.nan)], 2),
    "the very number": (lambda x: x * len(str(x[0].item())), [(np.array([v]),) for v in (math.nan, math.nan, 1.0, -0.0, 0.0)], 4),
    "sizes that depend on elements": (lambda x: x[x > 0].sum() / x[x > 0].numel(), [(A,), (B,)], 2),
    "sizes nobody asks for": (lambda x: x[x > 0].sum(), [(A,), (B,)], 1),
    "under a gradient": (lambda x: irtool.grad(lambda y: (y * y).sum() if y.sum() > 0 else y.sum())(x),
                         [(A,), (B,), (A + 1,)], 2),
    "a number under a gradient": (lambda x, r: irtool.grad(lambda y: (y ** 2 * r * y.sum().item()).sum())(x),
                                  [(F32, r) for r in (1.0, 2.0)], 1),
    "a gradient by a number": (lambda x: irtool.grad(lambda y: y * y)(x), [(r,) for r in (1.0, 2.0, 3.0)], 1),
    "elements as a list": (lambda x: x * sorted(x.tolist())[0], [(A,), (A + 1,), (np.array([7.0, 5.0]),)], 2),
    "a tensor for a number": (lambda x, t: torch.arange(t).sum() + x[:t].sum(), [(F32, np.array(n)) for n in (1, 2, 1)], 1),
    "sizes by a tensor": (lambda x, t: x[:t] * x[:t].shape[0], [(F32, np.array(n)) for n in (1, 2, 1)], 2),
    "parts by a tensor": (lambda x, t: x.tensor_split(t)[0], [(np.arange(6.0), np.array(n)) for n in (2, 3, 2)], 2),
    "a step of training": (lambda w, x, r: w - r * irtool.grad(lambda v: ((v * x) ** 2).mean())(w), [(A, B, r) for r in (0.1, 0.2)], 1),
    "an early return": (lambda x: next((x * k for k in range(1, 5) if (x * k).sum() > 9), x), [(A / 2,), (A,), (A / 2,)], 2),
    "torch.cond with a number": (lambda x, n: torch.cond(x.sum() > 0, lambda y: y * n, lambda y: y - n, (x,)),
                                 [(F32, 2), (-F32, 3), (F32, 4)], 1),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_what_is_traced_again(name: str) -> None:
    function, calls, most = SEVERAL[name]
    fast, traced = counted(function)
    for args in calls:
        wanted = function(*[Tensor(each.copy()) if isinstance(each, np.ndarray) else each for each in args])
        found = fast(*args)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype and np.array_equal(np.asarray(found), np.asarray(wanted), equal_nan=True)
    assert len(traced) == most, fast.variants


def test_too_many_ways_are_an_error_that_names_the_line() -> None:
    fast = irtool.jit(lambda x: sum((x for _ in range(int(x[0]))), x))
    with pytest.raises(irtool.Error, match=r"test_jit_decisions.py:\d+: a number made of elements is 16.*torch.where, torch.cond"):
        for count in range(20):
            assert fast(np.array([float(count)])).tolist() == [count * (count + 1.0)]
    assert fast(np.array([3.0])).tolist() == [12.0]


def step(x: Any, y: Any) -> Any:
    x.add_(1)
    if y.sum() > 3:
        y.mul_(2)
    return x.sum() + y.sum(), x


OVERLAPS: dict[str, Callable[[np.ndarray], tuple[Any, Any]]] = {
    "two arrays": lambda a: (Tensor(a[:3].copy()), Tensor(a[3:].copy())), "one tensor": lambda a: (t := Tensor(a), t),
    "one array": lambda a: (Tensor(a), Tensor(a)), "parts that overlap": lambda a: (Tensor(a[:4]), Tensor(a[2:])),
    "every other": lambda a: (Tensor(a[::2]), Tensor(a[1:3])), "backwards": lambda a: (Tensor(a[::-1]), Tensor(np.ones(2))),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_arguments_hold_what_eager_leaves_in_them(name: str) -> None:
    fast = irtool.jit(step)
    for start in (0.0, -4.0, 0.0, 1.0):
        arrays = [np.arange(6.0) + start for _ in range(2)]
        first, second = [OVERLAPS[name](each) for each in arrays]
        for _ in range(2):
            wanted, found = step(*first), fast(*second)
            assert found[0].tolist() == wanted[0].tolist() and found[1] is second[0] and arrays[0].tolist() == arrays[1].tolist()


@pytest.mark.parametrize("writes", [False, True])
def test_views_of_arguments_are_views_of_what_the_caller_has(writes: bool) -> None:
    def f(x: Any) -> Any:
        if writes:
            x.add_(1)
        return x[1:], x.view(2, 2), x + 1
    fast = irtool.jit(f)
    for _ in range(3):
        first, second = Tensor(np.arange(4.0)), Tensor(np.arange(4.0))
        for function, x in ((f, first), (fast, second)):
            for each in function(x):
                each.mul_(2)
        assert second.tolist() == first.tolist()


def test_what_a_failing_guard_ran_has_written_nothing() -> None:
    fast = irtool.jit(step)
    fast(np.zeros(2), np.zeros(2))
    x, y = np.ones(2), np.full(2, 5.0)
    fast(x, y)          # by the graph of the first call, then traced
    assert x.tolist() == [2.0, 2.0] and y.tolist() == [10.0, 10.0]


def test_shapes_and_containers_change_as_in_eager() -> None:
    def f(x: Any, state: Any) -> Any:
        x.t_().add_(1)
        state["w"] = state["w"] - 1
        state["all"].append(x.sum())
        return x * 2
    fast = irtool.jit(f)
    for place in range(3):
        x, state = Tensor(np.arange(6.0).reshape(2, 3) + place), {"w": Tensor(np.ones(2)), "all": [1]}
        fast(x, state)
        assert x.shape == [3, 2] and x.array[0].tolist() == [1.0 + place, 4.0 + place]
        assert state["w"].tolist() == [0.0, 0.0] and [float(each) for each in state["all"]] == [1, 21.0 + 6 * place]     # type: ignore[arg-type]
    assert len(fast.variants) == 1


def test_what_is_raised_is_what_eager_raises_and_leaves_no_variant() -> None:
    def f(x: Any) -> Any:
        x.add_(1)
        if x.sum() > 10:
            raise ValueError("too large")
        return x[int(x[0])]
    fast = irtool.jit(f)
    for value, error in ((20.0, ValueError), (0.0, None), (30.0, ValueError), (3.0, irtool.Error), (0.0, None)):
        x = Tensor(np.array([value, 1.0]))
        if error is None:
            assert float(fast(x)) == 2.0
        else:
            with pytest.raises(error):
                fast(x)
        assert x.tolist() == [value + 1, 2.0]
    assert len(fast.variants) == 1


def test_random_numbers_are_those_of_eager() -> None:
    def f(x: Any) -> Any:
        first = torch.rand(3)
        more = torch.randn(3) if x.sum() > 0 else torch.rand(2, 3).sum(0)
        torch.rand(5)       # drawn, and not read
        return first + more * x + torch.nn.functional.dropout(x, 0.5)
    calls, fast = [np.full(3, sign * 1.5) for sign in (1, -1, 1, 1, -1, -1, 1)], irtool.jit(f)
    torch.manual_seed(3)
    wanted = [f(Tensor(each)).tolist() for each in calls]
    torch.manual_seed(3)
    assert [fast(each).tolist() for each in calls] == wanted and len(fast.variants) == 2


DRAWS: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda x: torch.cond(x.sum() > 0, lambda y: y + torch.rand(3), lambda y: y - torch.rand(4).sum(), (x,)),
    "a branch in a branch": lambda x: torch.cond(x[0] > 0, lambda y: DRAWS["a branch"](y) * torch.rand(()), DRAWS["a branch"], (x,)),
    "a loop": lambda x: torch.while_loop(lambda y: y.sum() < 9, lambda y: (y + torch.rand(3),), (x,))[0],
    "a scan": lambda x: torch.scan(lambda before, each: (before + torch.rand(2), before * each), torch.zeros(2), x),
    "a map": lambda x: torch.map(lambda each: each * torch.rand(2), x),
    "a gradient in a branch":
        lambda x: torch.cond(x.sum() > 0, lambda y: irtool.grad(lambda z: (z * torch.rand(3)).sum())(y), torch.exp, (x,)),
    "the same in chunks":
        lambda x: irtool.vmap(lambda each: torch.nn.functional.dropout(each * torch.ones(4)), randomness="same", chunk_size=2)(x),
    "other ones in chunks": lambda x: irtool.vmap(lambda each: each + torch.rand(4), randomness="different", chunk_size=2)(x),
}


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_traced_beside_the_way_of_a_call_draws_nothing(name: str) -> None:
    fast = irtool.jit(DRAWS[name])
    for seed, sign in enumerate((1, -1, 1, -1)):
        found = []
        for function in (DRAWS[name], fast):
            torch.manual_seed(seed)
            found.append([np.asarray(each) for each in flatten([function(Tensor(np.full(3, sign * 1.5))), torch.rand(2)])[0]])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_gradients_of_branches_and_loops_that_draw_are_refused() -> None:
    """The way back runs them again, with other random numbers."""
    def kept(x: Any, p: float) -> Any:
        return torch.cond(x.sum() > 0, lambda y: torch.nn.functional.dropout(y * 2, p).sum(), torch.sum, (x,))

    def grown(x: Any) -> Any:
        return torch.while_loop(lambda y: y.sum() < 9, lambda y: (y * (1 + torch.zeros(3).uniform_()),), (x,))[0].sum()
    x = np.full((2, 3), 1.5)
    for call in (lambda: irtool.jit(irtool.grad(lambda x: kept(x, 0.5)))(x[0]), lambda: irtool.jit(irtool.grad(grown))(x[0]),
                 lambda: irtool.trace(irtool.grad(lambda x: kept(x, 0.5)), [x[0]]),
                 lambda: irtool.jit(irtool.grad(lambda x: DRAWS["a scan"](x)[1].sum()))(x[0]),
                 lambda: irtool.vmap(irtool.grad(lambda x: kept(x, 0.5)), randomness="different")(x)):
        with pytest.raises(irtool.UnsupportedError, match="whose condition is batched or traced is not supported: draw the random numbers"):
            call()
    assert irtool.jit(irtool.grad(lambda x: kept(x, 0.0)))(x[0]).tolist() == [2, 2, 2]
    assert irtool.grad(grown)(x[0]).shape == [3]


def test_threads_trace_each_variant_once() -> None:
    fast, traced = counted(lambda x: x * 2 if x.sum() > 0 else -x)
    wrong: list[Any] = []

    def work(place: int) -> None:
        for count in range(30):
            x = np.full(3, (-1.0) ** (place + count) * (count + 1))
            if fast(x).tolist() != (x * 2 if x[0] > 0 else -x).tolist():
                wrong.append((place, count))
    threads = [threading.Thread(target=work, args=(place,)) for place in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and len(traced) == 2


def test_tensors_from_outside_are_read_at_each_run() -> None:
    held, array = Tensor(np.ones(2)), np.ones(2)

    def f(x: Any) -> Any:
        return irtool.grad(lambda y: (y * held * array).sum())(x) if held.sum() > 0 else x * (held * 2).sum()
    fast = irtool.jit(f)
    for change in (0.0, 1.0, -9.0, 9.0):
        held.add_(change)
        array += change / 2
        assert fast(A).tolist() == f(Tensor(A)).tolist()
    assert len(fast.variants) == 2


W = Tensor(np.ones(2))
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an array": (lambda x: np.asarray(x), "take functions of irtool.torch"),
    "numpy": (lambda x: x.numpy(), "take functions of irtool.torch"),
    "a write outside": (lambda x: W.add_(x), "writes into a tensor that is no argument"),
    "out=": (lambda x: torch.add(x, 1, out=W), "out= is not supported"),
    "a seed": (lambda x: (torch.manual_seed(1), x)[1], "call it outside"),
    "inside torch.cond": (lambda x: torch.cond(x.sum() > 0, lambda y: y if y[0] > 0 else -y, lambda y: y, (x,)),
                          "take torch.where, torch.cond"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_trace_can_follow_is_refused(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(irtool.Error, match=words):
        irtool.jit(function)(np.ones(2))


def test_traces_warn_at_the_line_of_the_user() -> None:
    with pytest.warns(irtool.dispatch.tracer.TraceWarning) as caught:      # type: ignore[attr-defined]
        irtool.trace(lambda x: x if x.sum() > 0 else -x, [np.ones(2)])
    assert caught[0].filename == __file__


OUTSIDE = Tensor(np.zeros(3))
RESULTS = {
    "nothing": lambda x: None, "a write": lambda x: [x.sub_(1)].clear(), "a text": lambda x: f"{x.sum():.1f}",
    "a new tensor": lambda x: torch.tensor([1.0, 2.0]), "beside another": lambda x: (x * 2, torch.tensor([0.0])),
    "in a dict": lambda x: {"a": [torch.tensor(1.0)], "b": None}, "zeros": lambda x: [torch.zeros(2), torch.zeros(2) + 1],
    "an array": lambda x: (x, np.zeros(2)), "from outside": lambda x: OUTSIDE, "a view of it": lambda x: (OUTSIDE[1:], x * OUTSIDE),
    "an argument": lambda x: x, "a view of an argument": lambda x: x[1:], "twice": lambda x: [x * 2] * 2, "a range": lambda x: range(2)}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_made_anew_in_each_call(name: str) -> None:
    """What the caller writes into a result is not in that of the next call, unless eager gives the same memory."""
    histories = []
    for function in (RESULTS[name], irtool.jit(RESULTS[name])):
        OUTSIDE.zero_()
        history, x = [], Tensor(np.arange(3.0))
        for _ in range(4):
            result = function(x)
            leaves = [each for each in flatten(result)[0] if isinstance(each, Tensor | np.ndarray)]
            history.append((repr(result), repr(x)))
            for each in leaves:
                each += 1      # noqa: PLW2901 - written in place
        histories.append(history)
    assert histories[0] == histories[1]


@pytest.mark.parametrize("make", [lambda x: {1}, lambda x: (x, {x.sum()}), lambda x: (x, lambda: x), lambda x: (each for each in x)])
def test_results_that_no_variant_could_make_anew_are_refused(make: Any) -> None:
    with pytest.raises(irtool.RunError, match="the function must give tensors, numbers, texts, None"):
        irtool.jit(make)(np.ones(2))


def test_an_empty_tensor_has_no_rows() -> None:
    fast = irtool.jit(lambda x: ([row * 2 for row in x], x.tolist(), any(row > 0 for row in x)))
    for rows in ([], [1.0], [], [2.0, 3.0]):
        found = fast(np.array(rows))
        assert [float(each) for each in found[0]] == [2 * each for each in rows] and found[1:] == (rows, bool(rows))
