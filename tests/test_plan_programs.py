"""Whatever way a program runs, it gives what the reference gives: lists that change, shapes that change in place, what loops carry."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_programs import plan_program

import irtool

WAYS: tuple[dict[str, Any], ...] = ({}, {"native": True}, {"native": False}, {"optimize": False}, {"profiling": True})
SHAPES = ((3,), (1,), (0,), (2, 3), (1, 3), (1, 1), (4, 1), (90_000,))


def inputs_of(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    tensors = [(rng.integers(-8, 8, each) * 0.25).astype("f4") for each in (shape, shape, ())]
    return [*tensors[:2], np.array(tensors[2]), int(rng.integers(4)), bool(rng.integers(2))]


def others(given: list[Any]) -> list[Any]:
    """Inputs of the same kind that go other ways."""
    return [-given[0], given[1], given[2], (given[3] + 1) % 4, not given[4]]


def same(found: Any, wanted: Any) -> bool:
    """Is it the same, structure by structure?"""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and list(found) == list(wanted) and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return type(found) is type(wanted) and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, np.ndarray):
        return isinstance(found, np.ndarray) and (found.dtype, found.shape) == (wanted.dtype, wanted.shape) and np.allclose(
            found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)
    return type(found) is type(wanted) and bool(found == wanted)


def every_way(source: str, given: list[Any], ways: tuple[dict[str, Any], ...] = WAYS) -> list[Any] | None:
    """What the reference gives, and each other way too, again and again; None where it raises. Dead code that raises may be left out."""
    module = irtool.from_script(source)
    wanted: list[Any] = []
    for values in (given, others(given) if len(given) == 5 else given):
        try:
            wanted.append(irtool.run(module, values, interpret=True))
        except irtool.RunError:
            wanted.append(None)
    for way in (None, *ways):
        run = (lambda *values: irtool.run(module, values)) if way is None else irtool.compile(irtool.from_script(source), **way)
        for turn in (0, 0, 1, 0, 1):
            values = given if not turn or len(given) != 5 else others(given)
            try:
                found = run(*values)
            except irtool.RunError:
                assert wanted[turn] is None, f"{way}: refused\n{source}"
                continue
            assert wanted[turn] is None or same(found, wanted[turn]), f"{way}, turn {turn}: {found}, wanted {wanted[turn]}\n{source}"
    return wanted[0]


@pytest.mark.parametrize("seed", range(20))
def test_programs_of_lists_shapes_and_loops(seed: int) -> None:
    every_way(plan_program(seed), inputs_of(seed), (WAYS[seed % 5], WAYS[(seed + 2) % 5]))


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(100, 124))
def test_programs_as_torch_runs_them(seed: int) -> None:
    """Eagerly: its own compiler drops writes into what lists hold."""
    torch = pytest.importorskip("torch")
    source, given = plan_program(seed), inputs_of(seed)
    names = {"torch": torch}
    exec(source, names)
    try:
        wanted = plain(names["f"](*[torch.from_numpy(each.copy()) if isinstance(each, np.ndarray) else each for each in given]))
    except Exception:
        return
    found = irtool.run(irtool.from_script(source), given, interpret=True)[0]
    assert same(found, wanted), source


def plain(value: Any) -> Any:
    """torch's tensors as arrays."""
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value.numpy() if hasattr(value, "numpy") \
        else value


RESHAPES = ("x.t_()", "x.transpose_(0, 1)", "x.squeeze_()", "x.squeeze_(0)", "x.unsqueeze_(0)", "x.unsqueeze_(-1)", "x.swapaxes_(0, 1)",
            "x.swapdims_(0, -1)", "x.resize_([x.numel()])")


@pytest.mark.oracle
@pytest.mark.parametrize("before", ["", "x = x.clone()", "x = x + 1", "x = x[0:]"])
@pytest.mark.parametrize("change", RESHAPES)
def test_shapes_that_change_in_place(change: str, before: str) -> None:
    torch = pytest.importorskip("torch")
    lines = ("def f(x):", before or "pass", "z = x", change, "w = x.unsqueeze(0)", "w.mul_(2)", "return x, z, w")
    source = "\n    ".join(lines) + "\n"
    for shape in ((2, 3), (1, 3), (3, 1), (0, 3), (1, 1)):
        values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        for given in (values, np.ascontiguousarray(values.T).T):
            if "resize_" in change and not given.flags.c_contiguous:
                continue        # torch gives it other strides
            names: dict[str, Any] = {"torch": torch}
            exec(source, names)
            found = every_way(source, [given], WAYS[:3])
            assert found is not None and same(found[0], plain(names["f"](torch.from_numpy(given.copy()))))


@pytest.mark.parametrize("body", [
    "w -= 0.1 * v", "w.sub_(v)", "w[0:1] = 2.0", "w.view(-1).mul_(2)", "t = w\n        w = w * 2\n        t.add_(1)",
    "w = w + v\n        v.add_(w)", "for j in range(2):\n            w.add_(v)\n        v = v * 2", "w = v\n        w.add_(1)",
    "u = w\n        w = v\n        v = u",
    "w = torch.log_softmax(w, 0)",
    "w = torch.softmax(w, 0)\n        for j in range(3):\n            w = torch.log_softmax(w, 0)", "w = y.view_as(w)",
])
@pytest.mark.parametrize("after", ["pass", "w.add_(1)", "y.mul_(3)", "z.add_(1)"])
def test_loops_over_what_is_written(body: str, after: str) -> None:
    source = ("def f(x, n: int):\n    y = x + 1\n    w = y\n    z = w\n    v = x * 2\n    for i in range(n):\n"
              f"        {body}\n    {after}\n    return w, v, y, z\n")
    for size, rounds in ((3, 0), (3, 4), (0, 3), (70_000, 3)):
        every_way(source, [np.linspace(-1, 1, size, dtype="f4"), rounds], WAYS[:2])


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "float32", "int32"])
def test_tensors_without_dimensions_keep_their_dtype_through_passes_and_text(dtype: str) -> None:
    source = (f"def f(x):\n    a = torch.tensor(1, dtype=torch.{dtype})\n    return x + a, [a], {{'k': a}}, a + 1, x[0].int() + a\n")
    module = irtool.from_script(source)
    for values in (np.arange(3), np.ones(3, "f4"), np.array([True, False])):
        wanted = irtool.run(module, [values], interpret=True)
        for passes in ("constant-propagation", "O1", "constant-propagation,constant-pooling,cse,propagate-shapes,canonicalize-ops"):
            changed = irtool.PassManager(passes).run(irtool.parse(str(module)))
            again = irtool.parse(str(changed))
            for each in (changed, again):
                assert same(irtool.run(each, [values], interpret=True), wanted)
            run = irtool.compile(again)
            assert all(same(run(values), wanted) for _ in range(3))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Use of")
@pytest.mark.parametrize("write", [
    "x.copy_(y)", "x.fill_(2)", "x.fill_(y[0])", "x.masked_fill_(y > 0, 1.0)", "x.index_fill_(0, i, 2)", "x.add_(1)", "x.mul_(y)",
    "x.cumsum_(0)", "x[torch.tensor(True)] = 2.0", "x[torch.tensor(False)] = 2.0", "x[y > 0] = 2.0", "x.index_add_(0, i, y[:1])",
    "x[0:1] = y[:1]", "x.clamp_(y)",
    "x[0] = y[:1]", "x.copy_(y[None])",
])
@pytest.mark.parametrize("make", ["x0.expand(3)", "x0[None].expand(2, 3)[0]", "x0[0] * y", "x0.expand(3).clone()"])
def test_writes_through_expanded_tensors_are_refused_or_done_as_torch_does(make: str, write: str) -> None:
    torch = pytest.importorskip("torch")
    source = f"def f(x0, y, i):\n    x = {make}\n    {write}\n    return x, x0\n"
    given = [np.array([5.0], "f4"), np.array([-1.0, 2.0, 3.0], "f4"), np.array([0])]
    torch_given = [torch.from_numpy(each.copy()) for each in given]
    module = irtool.from_script(source)
    try:
        wanted = plain(torch.jit.CompilationUnit(source).f(*torch_given))
    except RuntimeError as error:
        with pytest.raises(irtool.RunError) as refused:
            irtool.run(module, given, interpret=True)
        assert refused.value.message.split(". Please")[0] in str(error)
        return
    found = every_way(source, given, WAYS[:2])
    assert found is not None and same(found[0], wanted)
