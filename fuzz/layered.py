"""Laws of transformations inside transformations, of control flow as functions, and of what is written to files."""
from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import irtool
from fuzz.gradients import is_tame, leaves
from fuzz.judge import Skip, outcome, same
from fuzz.values import copied, elements

if TYPE_CHECKING:
    from fuzz.laws import Subject

FEW = 14
"""Elements of all arrays together, where every element is differentiated on its own."""


def tangents(arrays: list[Any]) -> list[Any]:
    """Small numbers in the shapes of arrays."""
    rng = np.random.default_rng(5)
    return [elements(rng, array.shape, array.dtype.name) for array in arrays]


def given(subject: Subject, function: Callable[[], Any]) -> Any:
    """A result that laws start from, as arrays. Skips where there is none, or where it says nothing."""
    from fuzz.laws import plain

    kind, value = outcome(lambda: plain(function()))
    if kind != "value" or not all(map(is_tame, leaves(value))):
        raise Skip("nothing to compare with")
    return value


def few(subject: Subject) -> tuple[int, ...]:
    """The places of all arguments. Skips where there are many elements."""
    if not 0 < sum(each.size for each in subject.arrays) <= FEW:
        raise Skip("too many elements")
    return tuple(range(len(subject.places)))


def jacobians(subject: Subject) -> None:
    """jacrev and jacfwd are one matrix; weighted, its rows are the gradient. Jit of both, too."""
    places = few(subject)
    given(subject, lambda: list(subject.floats(*subject.arrays)))       # the mean of nothing is nan, and so is its tangent
    still = tuple(each * 0 for each in subject.arrays)
    given(subject, lambda: list(irtool.jvp(subject.floats, tuple(subject.arrays), still)[1]))   # 0 times the slope of sqrt at 0 is nan
    want = given(subject, lambda: list(irtool.grad(subject.weighted, argnums=places)(*subject.arrays)))

    def combined(jacobian: Callable[..., Any], *arrays: Any) -> list[Any]:
        rows = jacobian(subject.floats, argnums=places)(*arrays)
        totals: list[Any] = [0.0] * len(arrays)
        for number, row in enumerate(rows):
            for place, each in enumerate(row):
                dims = list(range(each.dim() - arrays[place].ndim))
                totals[place] = totals[place] + (each.sum(dims) if dims else each) * (0.5 + number)
        return totals

    for name in ("jacrev", "jacfwd"):
        call = partial(combined, getattr(irtool, name))
        subject.expect(lambda: call(*subject.arrays), want, name)  # noqa: B023
        subject.expect(lambda: irtool.jit(call)(*subject.arrays), want, f"jit of {name}")  # noqa: B023


def hessians(subject: Subject) -> None:
    """hessian is what jacrev of a gradient is; times a vector it is the tangent of the gradient, and the gradient of a product with it."""
    if "sinc(" in subject.text:
        raise Skip("near 0 torch's formula of sinc is a difference of almost equal numbers, whose slope is chance")
    places = few(subject)
    gradient = irtool.grad(subject.weighted, argnums=places)
    directions = tangents(subject.arrays)

    def product(*arrays: Any) -> Any:
        parts = [(each * along).sum() for each, along in zip(gradient(*arrays), directions)]
        return sum(parts[1:], start=parts[0])

    want = given(subject, lambda: list(irtool.grad(product, argnums=places)(*subject.arrays)))
    subject.expect(lambda: list(irtool.jvp(gradient, tuple(subject.arrays), tuple(directions))[1]), want, "jvp of grad")
    subject.expect(lambda: list(irtool.jit(irtool.grad(product, argnums=places))(*subject.arrays)), want, "jit of grad of grad")

    def contracted(matrix: Callable[..., Any]) -> list[Any]:
        rows = matrix(*subject.arrays)
        return [sum((block * along).sum(list(range(block.dim() - along.ndim, block.dim()))) if along.ndim else block * along
                    for block, along in zip(row, directions)) for row in rows]

    subject.expect(lambda: contracted(irtool.hessian(subject.weighted, argnums=places)), want, "hessian")
    subject.expect(lambda: contracted(irtool.jacrev(gradient, argnums=places)), want, "jacrev of grad")


def vmap_of_jvp(subject: Subject) -> None:
    """Tangents for each row are a loop of tangents; linearize gives the same."""
    from fuzz.laws import batches, row_by_row

    directions = tuple(tangents(subject.arrays))

    def tangent(*arrays: Any) -> Any:
        return irtool.jvp(subject.floats, arrays, directions)[1]

    want = row_by_row(subject, tangent)
    subject.expect(lambda: irtool.vmap(tangent)(*batches(subject)), want, "vmap of jvp")
    first = given(subject, lambda: tangent(*subject.arrays))
    subject.expect(lambda: irtool.linearize(subject.floats, *subject.arrays)[1](*directions), first, "linearize")


def other_dims(subject: Subject) -> None:
    """vmap over the last dimension, with results in the last, is vmap over the first; of two dimensions, it is vmap of vmap."""
    from fuzz.laws import batches, plain, row_by_row, stacked

    want = row_by_row(subject, subject.pure)
    moved = [np.moveaxis(each, 0, -1) for each in batches(subject)]

    def at_the_end(*arrays: Any) -> Any:
        return irtool.vmap(subject.pure, in_dims=-1, out_dims=-1)(*arrays)

    subject.expect(lambda: to_front(plain(at_the_end(*moved))), want, "vmap over the last dimension")
    double = [np.stack([each, each[::-1]]) for each in batches(subject)]
    nested = outcome(lambda: plain(irtool.vmap(irtool.vmap(subject.pure))(*double)))
    if nested[0] == "value":
        same(nested[1], stacked([want, reversed_rows(want)]), "vmap of vmap")


def to_front(value: Any) -> Any:
    """The last dimension of each array first."""
    if isinstance(value, list | tuple):
        return [to_front(each) for each in value]
    return {key: to_front(each) for key, each in value.items()} if isinstance(value, dict) else np.moveaxis(value, -1, 0)


def reversed_rows(value: Any) -> Any:
    """The rows of each array, the last first."""
    if isinstance(value, list | tuple):
        return [reversed_rows(each) for each in value]
    return {key: reversed_rows(each) for key, each in value.items()} if isinstance(value, dict) else value[::-1]


def control_flow(subject: Subject) -> None:
    """map and scan are loops over rows, while_loop a loop, cond a choice: eagerly, compiled, and under grad."""
    from fuzz.laws import batches, row_by_row

    torch = irtool.torch
    rows = row_by_row(subject, lambda *arrays: list(subject.floats(*arrays)))
    batch = tuple(batches(subject))

    def mapped(*xs: Any) -> Any:
        return torch.map(lambda x: subject.floats(*x), xs)

    both_ways(subject, mapped, batch, rows, "map")
    totals = given(subject, lambda: [subject.weighted(*[each[row] for each in batch]) for row in range(len(batch[0]))])
    sums = [np.asarray(sum(totals[:row + 1], np.zeros_like(totals[0]))) for row in range(len(totals))]

    def scanned(*xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            total = carry + subject.weighted(*x)
            return total, total.clone()

        return torch.scan(step, torch.tensor(np.zeros_like(totals[0])), xs)

    both_ways(subject, scanned, batch, [sums[-1], np.stack(sums)], "scan")

    def looped(*xs: Any) -> Any:
        start = (torch.tensor(0), torch.tensor(np.zeros_like(totals[0])))
        return torch.while_loop(lambda i, total: i < 3, lambda i, total: (i + 1, total + subject.weighted(*[x[i] for x in xs])), start)[1]

    both_ways(subject, looped, batch, sums[-1], "while_loop")
    for taken in (True, False):
        def chosen(*xs: Any) -> Any:
            return torch.cond(torch.tensor(taken), lambda *a: subject.weighted(*a), lambda *a: subject.weighted(*a) * 0.5, xs)  # noqa: B023

        both_ways(subject, chosen, tuple(subject.arrays), np.asarray(totals[0] * (1.0 if taken else 0.5)), "cond")
    if subject.is_smooth:
        places = tuple(range(len(batch)))
        gradient = irtool.grad(subject.weighted, argnums=places)
        each_row = row_by_row(subject, lambda *arrays: list(gradient(*arrays)))

        def total_of_map(*xs: Any) -> Any:
            parts = [each.sum() * (0.5 + number) for number, each in enumerate(mapped(*xs))]
            return sum(parts[1:], start=parts[0])

        def total_of_scan(*xs: Any) -> Any:
            return scanned(*xs)[0]

        for function in (total_of_map, total_of_scan):
            through = irtool.grad(function, argnums=places)
            both_ways(subject, lambda *xs: list(through(*xs)), batch, each_row, f"grad of {function.__name__}")  # noqa: B023


def both_ways(subject: Subject, function: Callable[..., Any], args: tuple[Any, ...], want: Any, way: str) -> None:
    """Compare a function with what it must give: run eagerly, and compiled, twice."""
    def arrays() -> list[Any]:
        return [irtool.torch.tensor(copied(each)) for each in args]

    subject.expect(lambda: function(*arrays()), want, way)
    fast = irtool.jit(function)
    subject.expect(lambda: fast(*arrays()), want, f"jit of {way}")
    subject.expect(lambda: fast(*arrays()), want, f"jit of {way}, again")


def archive(subject: Subject) -> None:
    """A module that is saved and loaded, and one that is printed and read, give what it gave."""
    module = subject.module()
    want = outcome(lambda: irtool.run(module, subject.values, interpret=True))
    if want[0] != "value":
        raise Skip("the reference raises")
    again = irtool.parse(str(module))
    subject.expect(lambda: irtool.run(again, subject.values), list(want[1]), "printed and read")
    file = io.BytesIO()
    saved = outcome(lambda: irtool.save(module, file))
    if saved[0] != "value":
        subject.tally[f"refused: save: {saved[1]}"] += 1
        return
    loaded = irtool.load(file.getvalue())
    result = list(want[1]) if len(want[1]) > 1 else want[1][0]
    subject.expect(lambda: loaded(*[copied(each) for each in subject.values]), result, "saved and loaded")


GENERAL: dict[str, Callable[[Subject], None]] = {"other_dims": other_dims, "archive": archive}
SMOOTH: dict[str, Callable[[Subject], None]] = {"jacobians": jacobians, "hessians": hessians, "vmap_of_jvp": vmap_of_jvp,
                                                "other_dims": other_dims, "control_flow": control_flow, "archive": archive}
