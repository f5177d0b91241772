"""torch.cond, while_loop, scan and map under every layer: dicts by key, the dimension of a scan, writes, dtypes and shapes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

Function = Callable[[Any], Any]
ONES = np.ones(2)


def of_sum(f: Function) -> Function:
    """The sum of a function's results."""
    return lambda x: f(x).sum()


def for_one_place(f: Function) -> Function:
    """The function run by vmap, for one place."""
    return lambda x: irtool.vmap(f)(x[None])[0]


WAYS: dict[str, Function] = {
    "plain": lambda f: lambda x: f(irtool.Tensor(x)),
    "jit": irtool.jit,
    "trace": lambda f: lambda x: irtool.Tensor(irtool.run(irtool.trace(f, [x]), [x])[0]),
    "vmap": for_one_place,
    "jit of vmap": lambda f: irtool.jit(for_one_place(f)),
    "value of grad": lambda f: lambda x: irtool.grad(lambda y: (of_sum(f)(y), f(y)), has_aux=True)(x)[1],
    "value of jvp": lambda f: lambda x: irtool.jvp(f, (x,), (x,))[0],
}


# -- dicts are matched by key
def loop_of_dicts(x: Any) -> Any:
    return torch.while_loop(lambda d: d["a"].sum() < 10, lambda d: ({"b": d["b"] + 1, "a": d["a"] * 2},), ({"a": x, "b": x},))[0]["a"]


def branch_of_dicts(x: Any) -> Any:
    return torch.cond(x.sum() < 0, lambda x: {"a": x * 2, "b": [x, {"c": x * 3, "d": x}]},
                      lambda x: {"b": [x, {"d": x * 5, "c": x * 7}], "a": x * 11}, (x,))["b"][1]["c"]


def carry_of_dicts(x: Any) -> Any:
    start = {"a": x[0] * 0, "b": x[0] * 0 + 1}
    return torch.scan(lambda c, v: ({"b": c["b"] + 1, "a": c["a"] * 2 + v}, v * 1), start, x)[0]["a"]


def steps_in_turn() -> Function:
    """A step whose dicts have another order each time."""
    turns = iter(range(100))

    def step(x: Any) -> dict[str, Any]:
        return {"p": x * 2, "q": x * 3} if next(turns) % 2 else {"q": x * 3, "p": x * 2}
    return step


def results_of_dicts(x: Any) -> Any:
    step = steps_in_turn()
    return torch.scan(lambda c, v: (c + v, step(v)), x[0] * 0, x)[1]["p"]


def slices_of_dicts(x: Any) -> Any:
    return torch.map(steps_in_turn(), x)["p"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("program", "expected"), [
    (loop_of_dicts, [8.0, 8.0]), (branch_of_dicts, [7.0, 7.0]), (carry_of_dicts, 3.0), (results_of_dicts, [2.0, 2.0]),
    (slices_of_dicts, [2.0, 2.0])], ids=lambda each: getattr(each, "__name__", ""))
def test_dicts_are_matched_by_key(program: Function, expected: Any, way: str) -> None:
    np.testing.assert_array_equal(np.asarray(WAYS[way](program)(ONES)), expected)


@pytest.mark.parametrize(("program", "expected"), [
    (loop_of_dicts, [8.0, 8.0]), (branch_of_dicts, [7.0, 7.0]), (carry_of_dicts, [2.0, 1.0])])
def test_gradients_of_dicts_by_key(program: Function, expected: Any) -> None:
    for gradient in (irtool.grad(of_sum(program)), irtool.jit(irtool.grad(of_sum(program))), for_one_place(irtool.grad(of_sum(program)))):
        np.testing.assert_array_equal(np.asarray(gradient(ONES)), expected)


# -- the dimension of a scan
ROWS = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("way", ["plain", "trace", "vmap"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_a_scan_stacks_along_its_dimension(dim: int, reverse: bool, way: str) -> None:
    slices = [np.take(ROWS, place, dim) for place in range(ROWS.shape[dim])]
    before, sums = np.zeros(slices[0].shape), []
    for each in slices[::-1] if reverse else slices:
        sums.append(before + each)
        before = sums[-1]
    sums = sums[::-1] if reverse else sums

    def program(x: Any) -> Any:
        start = torch.zeros(list(slices[0].shape), dtype=torch.float64)
        return torch.scan(lambda c, v: (c + v, c + v), start, x, dim=dim, reverse=reverse)[1]
    np.testing.assert_array_equal(np.asarray(WAYS[way](program)(ROWS)), np.stack(sums, dim))


def test_results_of_too_few_dimensions_are_stacked_along_the_first() -> None:
    x = irtool.Tensor(ROWS)
    carry, (sums, whole) = torch.scan(lambda c, v: (c + v.sum(), (v.sum(), v * 1)), x[0, 0, 0] * 0, x, dim=1)
    assert sums.shape == [3] and whole.shape == [2, 3, 4]
    assert torch.scan(lambda c, v: (c + v.sum(), v[0] * 1), x[0, 0, 0] * 0, x, dim=2)[1].shape == [4, 3]


@pytest.mark.parametrize(("dim", "words"), [(3, "expected to be in range of [-3, 2], but got 3"), (-4, "but got -4"),
                                            (2, "must at least have 'dim' number of dimensions")])
def test_dimensions_that_a_scan_has_not(dim: int, words: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        torch.scan(lambda c, v: (c, c * 1), torch.zeros([]), (irtool.Tensor(ROWS), irtool.Tensor(ROWS[0])), dim=dim)
    assert words in str(error.value)


# -- writes
OUTSIDE = irtool.Tensor(np.ones(2))


def branch(function: Function) -> Function:
    """A branch that is taken."""
    return lambda x: torch.cond(x.sum() > 0, function, lambda x: -x, (x,))


def and_then(write: Function) -> Function:
    """A function that writes, and returns another tensor."""
    def function(x: Any) -> Any:
        write(x)
        return x * 2
    return function


WRITERS: dict[str, Function] = {
    "operand": branch(and_then(lambda x: x.add_(1))),
    "item": branch(and_then(lambda x: x.__setitem__(0, 5.0))),
    "view": branch(and_then(lambda x: x[0].add_(1))),
    "view of a view": branch(and_then(lambda x: x.reshape(2, 1)[0].mul_(3))),
    "shape": branch(and_then(lambda x: x.unsqueeze_(0))),
    "out": branch(and_then(lambda x: torch.add(x, x, out=x))),
    "captured": lambda x: (lambda k: branch(and_then(lambda y: k.add_(y)))(x))(x * 1),
    "captured from outside": branch(and_then(lambda x: OUTSIDE.add_(1))),
    "statistics": branch(and_then(lambda x: torch.batch_norm(x.reshape(1, 1, 2), None, None, OUTSIDE[:1], OUTSIDE[1:], True, 0.1, 1e-5,
                                                             False))),
    "part of a split": branch(and_then(lambda x: torch.split(x, 1)[0].add_(1))),
    "detached": branch(and_then(lambda x: x.detach().add_(1))),
    "the operand itself": branch(and_then(lambda x: torch.atleast_1d(x.contiguous().to(x.dtype)).add_(1))),
    "an item of a list": branch(and_then(lambda x: torch.broadcast_tensors(x, x)[0].add_(1))),
    "a view of a list's only tensor": branch(and_then(lambda x: torch.einsum("i->i", x).add_(1))),
    "by a mask": branch(and_then(lambda x: x.__setitem__(x > 0, 3.0))),
    "by nn.functional": branch(and_then(lambda x: torch.nn.functional.relu(x, inplace=True))),
    "inner batch": branch(and_then(lambda x: irtool.vmap(lambda v: v.add_(1))(x))),
    "inner gradient": branch(and_then(lambda x: irtool.grad(lambda v, w: (v * w.mul_(2)).sum())(x * 1, x))),
    "inner branch": branch(and_then(lambda x: torch.cond(x.sum() > 0, lambda y: y.mul_(2) * 1, lambda y: y * 1, (x,)))),
    "body": lambda x: torch.while_loop(lambda y: y.sum() < 5, lambda y: (y.mul_(2) * 1,), (x * 1,))[0],
    "condition": lambda x: torch.while_loop(lambda y: y.add_(1).sum() < 5, lambda y: (y * 2,), (x * 1,))[0],
    "carry": lambda x: torch.scan(lambda c, v: (c.add_(v) * 1, v * 1), x[0] * 0, x)[0],
    "slice": lambda x: torch.scan(lambda c, v: (c + v.add_(1), v * 1), x[0] * 0, x)[0],
    "slice of map": lambda x: torch.map(lambda v: v.add_(1) * 1, x),
    "argument of map": lambda x: torch.map(lambda v, k: k.add_(1) * v, x, x * 1),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("writer", WRITERS)
def test_writes_into_tensors_from_outside_are_refused(writer: str, way: str) -> None:
    x = ONES.copy()
    with pytest.raises(irtool.RunError) as error:
        WAYS[way](WRITERS[writer])(x)
    assert "do not support input mutation" in str(error.value)
    np.testing.assert_array_equal(x, ONES)
    np.testing.assert_array_equal(np.asarray(OUTSIDE), ONES)


@pytest.mark.parametrize("way", ["jit", "trace", "vmap", "jit of vmap"])
def test_writes_of_the_branch_that_is_not_taken(way: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        WAYS[way](lambda x: torch.cond(x.sum() < 0, lambda x: x.add_(1) * 1, lambda x: -x, (x,)))(ONES.copy())
    assert "cond: true_fn writes" in str(error.value)


def filled(x: Any) -> Any:
    made = torch.zeros(2, dtype=torch.float64)
    made[0] = x[0]
    made.view(2, 1)[1].add_(x[1:] * 3)
    return made.mul_(2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("program", "expected"), [
    (branch(filled), [2.0, 6.0]), (branch(lambda x: x.new_tensor([1.0, 2.0]).add_(1)), [2.0, 3.0]),
    (branch(lambda x: torch.DoubleTensor([1.0, 2.0]).add_(1)), [2.0, 3.0]), (branch(lambda x: torch.stack([x, x])[0].add_(1)), [2.0, 2.0]),
    (branch(lambda x: torch.split(x * 1, 1)[1].add_(1) + torch.zeros(2)), [2.0, 2.0]),
    (branch(lambda x: (x * 1).add_(1)), [2.0, 2.0]),
    (branch(lambda x: irtool.grad(lambda v: v.mul_(2).sum())(x)), [2.0, 2.0]),
    (branch(lambda x: torch.cond(x.sum() > 1, lambda y: y * 2, lambda y: y * 1, (x,)).add_(1)), [3.0, 3.0]),
    (lambda x: torch.while_loop(lambda y: y.sum() < 5, lambda y: ((y * 1).mul_(2),), (x * 1,))[0], [4.0, 4.0]),
    (lambda x: torch.map(lambda v: (v * 1).add_(1), x), [2.0, 2.0])])
def test_tensors_made_inside_may_be_written(program: Function, expected: Any, way: str) -> None:
    np.testing.assert_array_equal(np.asarray(WAYS[way](program)(ONES)), expected)


def test_a_number_as_condition_only_calls_the_branch() -> None:
    x = irtool.Tensor(np.ones(2))
    assert torch.cond(True, lambda x: x.add_(1), lambda x: -x, (x,)) is x
    assert torch.cond(3, lambda x, n: n, lambda x, n: -n, (x, 4)) == 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", [
    lambda x: torch.cond(x.sum() > 0, lambda a: a, lambda a: a * 1, (x,)),
    lambda x: torch.cond(x.sum() > 0, lambda a: a.reshape(1, 2)[0], lambda a: a * 1, (x,)),
    lambda x: torch.cond(x.sum() > 0, lambda a: x, lambda a: a * 1, (x * 2,)),
    lambda x: torch.while_loop(lambda a: a.sum() < 0, lambda a: (a * 1,), (x,))[0],
    lambda x: torch.while_loop(lambda a, b: a.sum() < 5, lambda a, b: (a * 2, b), (x, x))[1],
    lambda x: torch.scan(lambda c, v: (c, v * 1), x, x)[0]])
def test_results_share_no_memory_with_operands(program: Function, way: str) -> None:
    def function(x: Any) -> Any:
        y = x * 1
        return program(y).add_(1) + 10 * y
    np.testing.assert_array_equal(np.asarray(WAYS[way](function)(ONES)), [12.0, 12.0])


# -- dtypes, shapes, operands
@pytest.mark.parametrize("way", ["plain", "jit", "trace", "vmap", "value of grad"])
@pytest.mark.parametrize(("program", "words"), [
    (lambda x: torch.while_loop(lambda y: y.sum() < 5, lambda y: (y.float() * 2,), (x,))[0], "while_loop: Expected body_fn_output and"),
    (lambda x: torch.while_loop(lambda y: y.sum() < 5, lambda y: (torch.cat([y, y]),), (x,))[0], "same shape but got [4] and [2]"),
    (lambda x: torch.scan(lambda c, v: ((c + v).float(), v * 1), x[0], x)[0], "same dtype but got torch.float64 and torch.float32"),
    (lambda x: torch.scan(lambda c, v: (torch.cat([c, v[None]]), v * 1), x[:1], x)[0], "same shape but got [1] and [2]"),
    (lambda x: torch.cond(x.sum() > 0, lambda x, n: x * n, lambda x, n: -x, (x, 3)), "only consist of tensors, got an int"),
    (lambda x: torch.while_loop(lambda n, y: n < 3, lambda n, y: (n + 1.5, y), (0, x))[1], "while_loop: "),
    (lambda x: torch.while_loop(lambda y, n: y.sum() < 5, lambda y, n: (y * 2, n), (x, 1.5))[0], "tensors and ints, got a float"),
    (lambda x: torch.cond(x.sum() > 0, lambda x, y: x, lambda x: x * 1, (x,)), "cond: true_fn: the function is called with 1 argument:"),
    (lambda x: torch.cond(x.sum() < 0, lambda x: x, lambda: OUTSIDE, (x,)), "cond: false_fn: the function is called with 1 argument:"),
    (lambda x: torch.while_loop(lambda y: y.sum() < 5, lambda: (OUTSIDE,), (x,)), "while_loop: body_fn: the function is called with 1"),
])
def test_refused_as_torch_does(program: Function, words: str, way: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        WAYS[way](program)(ONES)
    assert words in str(error.value)


def test_numbers_among_the_arguments_of_jit() -> None:
    looped = irtool.jit(lambda x, n: torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (n, x)))
    for start, factor in ((0, 8), (1, 4), (5, 1)):
        count, result = looped(ONES, start)
        assert count == max(start, 3)
        np.testing.assert_array_equal(np.asarray(result), ONES * factor)
    with pytest.raises(irtool.RunError, match="tensors and ints, got a float"):
        looped(ONES, 0.5)
    with pytest.raises(irtool.RunError, match="consist of tensors, got an int"):
        irtool.jit(lambda x, n: torch.cond(x.sum() > 0, lambda x, n: x * n, lambda x, n: -x, (x, n)))(ONES, 2)
    captured = irtool.jit(lambda x, n: torch.cond(x.sum() > 0, lambda x: x * n, lambda x: -x, (x,)))
    np.testing.assert_array_equal(np.asarray(captured(ONES, 2)), ONES * 2)


@pytest.mark.parametrize("way", ["jit", "trace", "vmap", "jit of vmap"])
@pytest.mark.parametrize(("other", "words"), [(lambda x: x.float(), "dtype but got torch.float64 and torch.float32"),
                                              (lambda x: x.sum(), "shape but got [2] and []")])
def test_branches_that_differ(other: Function, words: str, way: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        WAYS[way](lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, other, (x,)))(ONES)
    assert f"When merging two branches' output in torch.cond, expected same {words}" in str(error.value)
