"""Which results of operators share memory with operands, as in torch, and that every way to run a graph sees the writes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.interpret import run as interpret
from irtool.ops.call import call_op
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.tensor import calling_kind
from tests.laws import over
from tests.shared_memory import RECORDED, arrays_in, calls, copied, overloads, program, schema_of, shared_here, written_here


def each_overload(names: Any) -> list[Any]:
    """Overloads as cases."""
    return [pytest.param(name, id=name.removeprefix("aten::")) for name in names]


def initial(name: str) -> str:
    """Groups of overloads by their first letter."""
    return name.removeprefix("aten::").lstrip("_")[:1]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@over("name", each_overload(overloads()), initial)
def test_results_share_memory_as_in_torch(name: str) -> None:
    known = RECORDED.get(name)
    if known is None and any(result.alias is not None for result in schema_of(name).returns):
        return      # only torch's interpreter has it
    for call, args in calls(name):
        if known is not None and call not in known:
            continue
        try:
            shared = shared_here(name, args)
        except irtool.Error:
            continue
        assert shared == (known[call] if known is not None else []), call


def written_alone(name: str, args: list[Any]) -> set[int]:
    """The places of arguments that an operator writes into although its schema does not say so, such as running statistics."""
    after = copied(args)
    try:
        call_op(name, after)
    except irtool.Error:
        return set()
    return {place for place, (a, b) in enumerate(zip(args, after, strict=True)) if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes()}


def operands(name: str, args: list[Any]) -> list[int]:
    """The places of the tensors that an operator only reads."""
    alone = written_alone(name, args)
    return [place for place, value in enumerate(args) if isinstance(value, np.ndarray) and place not in alone]


def new_results(name: str, args: list[Any], places: list[int], tensors: Sequence[Any]) -> list[Any]:
    """The results of a call in which tensors stand at some places."""
    own = list(args)
    for place, each in zip(places, tensors, strict=True):
        own[place] = each
    arguments = schema_of(name).arguments
    count = sum(not each.keyword_only for each in arguments)
    named = {each.name: value for each, value in zip(arguments[count:], own[count:], strict=True) if value != each.default}
    return list(tensors_in([calling_kind(schema_of(name).kind)(*own[:count], **named)]))


MAKES_NEW = [name for name in overloads() if all(result.alias is None for result in schema_of(name).returns)]
"""Overloads whose results share no memory with operands."""


@pytest.mark.filterwarnings("ignore")
@over("name", each_overload(MAKES_NEW), initial)
def test_writes_into_new_results_under_vmap_leave_operands_alone(name: str) -> None:
    """A batching rule may compute what is new alone by a view of the batch."""
    if RECORDED.get(name):
        return
    for call, args in calls(name):
        places = operands(name, args)
        batches = [np.stack([args[place], args[place]]) for place in places]

        def written(*slices: Any, args: Any = args, places: Any = places) -> Any:
            for each in (results := new_results(name, args, places, slices)):
                each.fill_(True)
            return results[0]
        kept = copied(batches)
        try:
            irtool.vmap(written)(*map(irtool.Tensor, batches)) if places else None
        except Exception:       # what it refuses, and how, other laws ask
            continue
        assert all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(batches, kept, strict=True)), call


@pytest.mark.filterwarnings("ignore")
@over("name", each_overload(MAKES_NEW), initial)
def test_writes_into_views_of_new_results_under_vmap_reach_them(name: str) -> None:
    """A batching rule may lay a result out in an order of which `view` is a copy."""
    for _, args in list(calls(name))[:1]:
        places = operands(name, args)

        def filled(*slices: Any, args: Any = args, places: Any = places) -> Any:
            for each in (results := new_results(name, args, places, slices)):
                each.view(-1).fill_(True)
            return tuple(results)
        try:
            wanted = filled(*[irtool.Tensor(args[place].copy()) for place in places])
            found = irtool.vmap(filled)(*[irtool.Tensor(np.stack([args[place]] * 2)) for place in places]) if places else ()
        except Exception:       # what it refuses, and how, other laws ask
            continue
        for one, other in zip(wanted, found, strict=False):
            np.testing.assert_array_equal(np.asarray(other), np.stack([np.asarray(one)] * 2))


@pytest.mark.oracle
@over("name", each_overload(RECORDED), initial)
def test_torch_shares_memory_as_recorded(name: str) -> None:
    pytest.importorskip("torch")
    from tests.record_shared_memory import recorded

    assert recorded(name) == RECORDED[name]


WAYS: dict[str, Callable[[str, list[Any]], Any]] = {
    "interpreted": lambda text, inputs: interpret(irtool.parse(text), inputs),
    "functionalized": lambda text, inputs: interpret(irtool.PassManager("functionalize").run(irtool.parse(text)), inputs),
    "planned": lambda text, inputs: [run.run(copied(inputs)) for run in [irtool.compile(irtool.parse(text))] for _ in range(2)][-1],
    "native": lambda text, inputs: irtool.compile(irtool.parse(text), native=True).run(inputs),
    "not optimized": lambda text, inputs: irtool.compile(irtool.parse(text), optimize=False).run(inputs),
    "vmap": lambda text, inputs: batched(irtool.parse(text).graph(), inputs),
}


def batched(graph: irtool.Graph, inputs: list[Any]) -> list[Any]:
    """The results of a graph in the second place of a batch."""
    results = irtool.vmap(graph)(*[np.stack([np.flip(each), each]) for each in inputs])
    return [np.asarray(each)[1] for each in (results if isinstance(results, tuple | list) else [results])]


def calls_that_share(name: str) -> dict[tuple[str, ...], list[Any]]:
    """What shares memory -> the arguments of a call in which it does."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for call, args in calls(name):
        if RECORDED[name].get(call):
            found.setdefault((*RECORDED[name][call], *["complex"] * ("complex" in call)), args)
    return found


@pytest.mark.filterwarnings("ignore::irtool.execute.fallbacks.FallbackWarning")
@over("name", each_overload(RECORDED), initial)
def test_every_way_to_run_sees_writes_through_shared_memory(name: str) -> None:
    for shared, args in calls_that_share(name).items():
        count = len(arrays_in(args))
        operand, result = next((pair.split() for pair in shared if len(pair.split()) == 2), (0, 0))
        for place in {int(operand), count + int(result)}:
            try:
                wants, (graph, inputs) = written_here(name, args, place), program(name, args, place)
            except irtool.Error:        # elements that share memory among themselves are not written into
                continue
            text = str(graph)
            for way, run in WAYS.items():
                try:
                    results = run(text, copied(inputs))
                except irtool.Error as error:
                    assert way == "vmap", (way, text, error)
                    continue
                for result, want in zip(results, wants, strict=True):
                    np.testing.assert_allclose(result, want, err_msg=f"{way}\n{text}")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::irtool.execute.fallbacks.FallbackWarning")
@over("name", each_overload(RECORDED), initial)
def test_gradients_of_writes_through_shared_memory_are_torchs(name: str) -> None:
    pytest.importorskip("torch")
    from tests.record_shared_memory import function_of, gradients_in_torch

    for shared, args in calls_that_share(name).items():
        count = len(arrays_in(args))
        operand, result = next((pair.split() for pair in shared if len(pair.split()) == 2), (0, 0))
        for place in {int(operand), count + int(result)}:
            try:
                cotangents, wrt, wants = gradients_in_torch(function_of(name), args, place)
                graph, inputs = program(name, args, place)
            except (irtool.Error, RuntimeError, NotImplementedError):
                continue
            for way, run in GRADIENTS.items():
                try:
                    results = run(str(graph), inputs, cotangents, wrt)
                except irtool.Error:
                    continue
                for found, want, at in zip(results, wants, wrt, strict=True):
                    zeros = np.zeros_like(inputs[at])
                    np.testing.assert_allclose(zeros if found is None else found, zeros if want is None else want, rtol=1e-5, atol=1e-7,
                                               err_msg=f"{way}\n{graph}")


GRADIENTS: dict[str, Callable[..., list[Any]]] = {
    "interpreted": lambda text, *rest: irtool.vjp(irtool.parse(text), *rest, interpret=True),
    "planned": lambda text, *rest: [irtool.vjp(module, *rest) for module in [irtool.parse(text)] for _ in range(2)][-1],
    "layers": lambda text, *rest: on_layers(irtool.parse(text).graph(), *rest),
}


def on_layers(graph: irtool.Graph, inputs: list[Any], cotangents: list[Any], wrt: list[int]) -> list[Any]:
    """Gradients by the function that a graph is, on a tape."""
    _, pull = irtool.torch.func.vjp(graph, *[irtool.torch.tensor(each) for each in inputs])
    return [np.asarray(pull(tuple(cotangents))[at]) for at in wrt]


LISTS = """
graph(%x : Tensor, %y : Tensor):
  %list : Tensor[] = prim::ListConstruct(%y)
  %0 : Tensor[] = aten::append(%list, %x)
  %one : int = prim::Constant[value=1]()
  %item : Tensor = aten::__getitem__(%list, %one)
  %product : Tensor = aten::mul(%item, %y)
  return (%item, %product, %list)
"""


@pytest.mark.parametrize("way", [irtool.run, lambda graph, inputs: irtool.compile(graph)(*inputs),
                                 lambda graph, inputs: irtool.compile(graph, optimize=False)(*inputs)])
def test_tensors_are_not_copied_where_only_lists_are_written(way: Callable[..., Any]) -> None:
    """As in torch, and as in graphs that write nothing: a result may be an input."""
    x, y = np.ones(4, np.float32), np.full(4, 2, np.float32)
    item, product, (first, second) = way(irtool.parse(LISTS).graph(), [x, y])
    assert np.shares_memory(item, x) and np.shares_memory(first, y) and np.shares_memory(second, x)
    assert not np.shares_memory(product, x) and list(product) == [2] * 4
