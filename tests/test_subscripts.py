"""Subscripts drawn at random: `x[key]`, writes into the part, and assignments, by torch, eagerly, and in every transformation."""
from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import Tensor, torch

SHAPE = (3, 4, 2)
FORMS = ("part = y[{}]", "part = y[{}]; part.mul_(2)", "y[{}] = 0", "y[{}] = v", "y[{}] += 1; part = y[{}]", "y[{}][..., 0] = 7",
         "y[{}] = torch.tensor(3)")


def key_of(draw: random.Random, dims: list[int]) -> str:
    """A key of one or more dimensions."""
    if draw.random() < 0.2:     # a list, which may stand for a tuple
        return draw.choice(("[[0, 1], [1, 0]]", "[[0], [1]]", "[0, 2]", "[True, False, True]", "[[[0, 1]]]", "[slice(1, 3), [0, 1]]",
                            "[i, 1]", "[None, 1]", "[...]", "[i, [0, 1]]", "range(2)", "[]", "[[0, 1]]", "[[True, False, True], [1, 0]]"))
    parts, dim = [], 0
    while dim < len(dims) and draw.random() < 0.75:
        size = dims[dim]
        kind = draw.choice(("int", "place", "place", "slice", "tensor", "list", "mask", "None", "bound", "x mask"))
        place = draw.randrange(-size, size)
        if kind == "x mask":
            parts, dim = [*parts, ":", "y[0] > 0"] if dim == 0 else [*parts, f"y[(0,) * {dim}] > 0"], len(dims)
            break
        parts.append({"int": f"{place}", "place": f"(i * 0 + {place})", "slice": f"{draw.choice(('', '0', '1'))}:{draw.choice(('', '-1'))}",
                      "tensor": f"torch.tensor([{place}, 0])", "list": f"[0, {place}]", "None": "None", "bound": "i:",
                      "mask": f"torch.tensor({[draw.random() < 0.6 for _ in range(size)]})"}[kind])
        dim += kind != "None"
    if draw.random() < 0.2:
        parts.append("...")
    return ", ".join(parts) or "..."


def function_of(seed: int) -> str:
    """The source of a function f(x, v, i): what it leaves of a copy of x, and the part."""
    draw = random.Random(seed)
    text = draw.choice(FORMS).replace("{}", key_of(draw, list(SHAPE)))
    return f"def f(x, v, i):\n    y = x.clone()\n    part = y\n    {text}\n    return y * 1, part * 1"


def compiled(source: str, library: Any) -> Callable[..., Any]:
    space: dict[str, Any] = {"torch": library}
    exec(source, space)
    return space["f"]      # type: ignore[no-any-return]


def arguments(seed: int) -> tuple[Any, ...]:
    numbers = np.random.default_rng(seed)
    return numbers.standard_normal(SHAPE), numbers.standard_normal(()), np.array(int(numbers.integers(0, 2)))


def outcome(call: Callable[[], Any]) -> Any:
    """Arrays, or None for an error."""
    try:
        return [np.asarray(each.array if isinstance(each, Tensor) else each) for each in call()]
    except irtool.UnsupportedError:
        raise
    except irtool.Error:
        return None


def agree(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return all(a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def ways(source: str, args: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    """Results of the function, got in several ways. Under vmap x and i are batched."""
    function = compiled(source, torch)
    fast, graph = irtool.jit(function), []

    def traced() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph[:] = graph or [irtool.trace(function, args)]
        return irtool.run(graph[0], list(args))

    def batched(place: int) -> Any:
        x, v, i = args
        results = irtool.vmap(function, (0, None, 0))(np.stack([x, -x]), v, np.stack([i, 1 - i]))
        return [each[place] for each in results]
    return {"jit": lambda: [fast(*args), fast(*args)][-1], "trace": traced, "vmap": lambda: batched(0),
            "grad": lambda: irtool.grad(lambda *each: ((found := function(*each))[0].sum(), found), has_aux=True)(*args)[1]}


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_transformations_take_subscripts_as_plain_calls_do(start: int) -> None:
    for seed in range(start, start + 50):
        source, args = function_of(seed), arguments(seed)
        wanted = outcome(lambda: compiled(source, torch)(*[Tensor(each) for each in args]))       # noqa: B023 - called at once
        for way, call in ways(source, args).items():
            try:
                assert agree(outcome(call), wanted), f"seed {seed}, {way}\n{source}"
            except irtool.UnsupportedError as error:        # what depends on elements has no batch
                assert way == "vmap" and ("> 0" in source or "i:" in source), f"seed {seed}, {way}: {error}\n{source}"


@pytest.mark.oracle
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_subscripts_are_torch_s(start: int) -> None:
    oracle = pytest.importorskip("torch")
    for seed in range(start, start + 100):
        source, args = function_of(seed), arguments(seed)
        try:
            wanted = [each.numpy() for each in compiled(source, oracle)(*[oracle.tensor(each) for each in args])]
        except (RuntimeError, IndexError, TypeError, ValueError):
            wanted = None
        found = outcome(lambda: compiled(source, torch)(*[Tensor(each) for each in args]))        # noqa: B023 - called at once
        assert agree(found, wanted), f"seed {seed}\n{source}\n{found}\n{wanted}"


@pytest.mark.parametrize(("key", "message"), [
    (3, "index 3 is out of bounds for dimension 0 with size 3"), ((0, 0, -3), "index -3 is out of bounds for dimension 0 with size 2"),
    ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
    ((slice(None), ..., 0, 0, 0), "too many indices for tensor of dimension 3"),
    (1.5, "only integers, slices"), ("a", "only integers, slices"), (Tensor(np.array(3)), "index 3 is out of bounds for dimension 0")])
def test_places_that_are_missing_are_index_errors(key: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message) as error:
        Tensor(np.zeros(SHAPE))[key]
    assert isinstance(error.value, irtool.RunError)


def test_each_of_several_ellipses_stands_for_the_dimensions_without_keys() -> None:
    x = np.arange(12.0).reshape(2, 2, 3)
    place = np.array([0, 1, 0])
    for key, wanted in [((..., place, place, ...), x[:, place, place]), ((0, ..., 1, 0, ..., None), x[0, 1, 0][None]),
                        ((0, 0, ..., place, ...), x[0, 0, place]), ((None, ..., 0, 0, 0, ..., None), x[0, 0, 0][None, None])]:
        found = np.asarray(Tensor(x)[key])
        assert found.shape == wanted.shape and np.array_equal(found, wanted), key
