"""Gradients through loops and through lists that change: against torch, against differences, and whatever gradients are there."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from list_programs import LISTS
from loop_programs import LOOPS
from random_programs import program

import irtool
from irtool import PassManager
from irtool.autodiff.reverse import differentiate_graph
from irtool.execute.graph_gradients import prepared
from irtool.interpret import run
from irtool.ir.edits import clone_graph
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.pair import pairs
from irtool.ir.verify import verify
from irtool.passes.lower_grad_of import lower_grad_of
from irtool.passes.specialize_undef import Specializer
from irtool.testing.derivatives import derivative
from irtool.testing.finite_differences import gradcheck
from irtool.torchscript.front import compile_source

PROGRAMS = {**LOOPS, **LISTS}


def graph_of(source: str) -> Graph:
    """The compiled function."""
    found = compile_source(source)
    return found.graph() if isinstance(found, Module) else found


def values_of(words: str) -> list[Any]:
    """The inputs a program is run on."""
    rng = np.random.default_rng(1)

    def tensor(word: str) -> Any:
        shape = [int(size) for size in word[1:].split(",")]
        return abs(rng.standard_normal(shape)) if word[0] == "+" else rng.standard_normal(shape)

    def value(word: str) -> Any:
        if word[0] == "[":
            inner, _, count = word[1:].partition("]*")
            return [tensor(inner) for _ in range(int(count))]
        return tensor(word) if word[0] in "x+" else int(word)

    return [value(word) for word in words.split()]


def leaves(value: Any) -> list[Any]:
    """Tensors in lists and tuples."""
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list | tuple) else [value]


def same(found: Any, expected: Any) -> bool:
    """Are two gradients the same? None is zero."""
    if found is None or expected is None:
        return all(each is None or not np.any(each) for each in (found, expected))
    return bool(np.shape(found) == np.shape(expected) and np.allclose(found, expected, rtol=1e-9, atol=1e-11))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_differences(name: str) -> None:
    source, words = PROGRAMS[name]
    report = gradcheck(graph_of(source), values_of(words))
    assert report.is_right, str(report)
    assert report.compared(1) and report.compared(2)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_torch(name: str) -> None:
    source, words = PROGRAMS[name]
    compare_with_torch(source, name, values_of(words))


def compare_with_torch(source: str, name: str, values: list[Any]) -> None:
    """The gradients of a function, against those of the same source in torch."""
    torch = pytest.importorskip("torch")
    wrt = [index for index, value in enumerate(values) if not isinstance(value, int)]

    def tensors(value: Any) -> Any:
        if isinstance(value, list):
            return [tensors(each) for each in value]
        return value if isinstance(value, int) else torch.from_numpy(value.copy()).requires_grad_()

    given = [tensors(value) for value in values]
    outputs = leaves(getattr(torch.jit.CompilationUnit(source), name)(*given))
    rng = np.random.default_rng(2)
    cotangents = [rng.standard_normal(tuple(output.shape)) for output in outputs]
    expected = torch.autograd.grad(outputs, leaves([given[index] for index in wrt]), [torch.from_numpy(np.asarray(c)) for c in cotangents],
                                   allow_unused=True)
    found = leaves(irtool.vjp(graph_of(source), values, cotangents, wrt))
    for mine, its in zip(found, expected, strict=True):
        assert same(mine, None if its is None else its.numpy())


@pytest.mark.parametrize("name", PROGRAMS)
def test_specialised_is_lowered(name: str) -> None:
    """For every subset of gradients that are there, those of lists of saved values among them."""
    source, words = PROGRAMS[name]
    values = values_of(words)
    f = prepared(graph_of(source))
    pair = differentiate_graph(f, [not isinstance(value, int) for value in values], True)
    verify(pair.f)
    verify(pair.df)
    outputs = run(pair.f, values)
    lowered = clone_graph(pair.df)
    lower_grad_of(lowered)
    rng = np.random.default_rng(3)
    seeds = [like(outputs[index], rng) for index in pair.input_vjps]
    captured = [*[values[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    subsets = list(itertools.product((True, False), repeat=len(seeds))) if len(seeds) < 4 else [
        (True,) * len(seeds), *[tuple(bool(flag) for flag in rng.integers(0, 2, len(seeds))) for _ in range(12)]]
    for flags in subsets:
        given = [seed if flag else None for seed, flag in zip(seeds, flags, strict=True)]
        special = clone_graph(pair.df)
        Specializer(special, [*flags, *[True] * len(captured)]).run()
        lower_grad_of(special)
        verify(special)
        for mine, its in zip(run(special, [*given, *captured]), run(lowered, [*given, *captured]), strict=True):
            assert all(map(same, leaves(mine), leaves(its)))


@pytest.mark.parametrize("name", ["lstm", "nest", "insp", "cond", "moved", "optional"])
def test_third_order(name: str) -> None:
    """The graph of gradients is a graph like any other."""
    source, words = PROGRAMS[name]
    values, graph = values_of(words), graph_of(source)
    whole, positions = derivative(graph, [index for index, value in enumerate(values) if not isinstance(value, int)])
    outputs = run(prepared(graph), values)
    rng = np.random.default_rng(4)
    report = gradcheck(whole, [*values, *[like(outputs[position], rng) for position in positions]], directions=1)
    assert report.is_right, str(report)


@pytest.mark.parametrize("name", ["lstm", "nest3", "app", "seti", "iff", "ll"])
def test_gradients_of_lists_of_saved_values(name: str) -> None:
    """df is differentiated for all that it takes: gradients, values, lists of values and lists of their gradients."""
    source, words = PROGRAMS[name]
    values = values_of(words)
    pair = differentiate_graph(prepared(graph_of(source)), [not isinstance(value, int) for value in values], True)
    outputs = run(pair.f, values)
    rng = np.random.default_rng(5)
    given = [*[like(outputs[index], rng) for index in pair.input_vjps], *[values[i] for i in pair.captured_inputs],
             *[outputs[i] for i in pair.captured_outputs]]
    wrt = [index for index, value in enumerate(given)
           if all(isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f" for leaf in leaves(value))]
    report = gradcheck(pair.df, given, wrt, order=1)
    assert report.is_right, str(report)


@pytest.mark.parametrize("seed", [*range(30), 440])
def test_random_programs(seed: int) -> None:
    """Nested control flow and lists that change, in any order."""
    rng = np.random.default_rng(seed)
    report = gradcheck(graph_of(program(seed)), [0.7 * rng.standard_normal(3), 0.7 * rng.standard_normal(3), 3], directions=1,
                       order=2 if seed < 5 else 1)
    assert report.is_right, program(seed) + str(report)


@pytest.mark.parametrize("seed", [*range(40), 52, 69, 85, 94, 129, 167])
def test_random_programs_that_write(seed: int) -> None:
    """Tensors written into, through views too: every write as a version of its own gives the same values, and the right gradients.

    Where a list holds what is written into, the gradient is refused.
    """
    rng = np.random.default_rng(seed)
    values = [0.7 * rng.standard_normal(3), 0.7 * rng.standard_normal(3), 3]
    graph = graph_of(program(seed, True))
    for mine, its in zip(leaves(run(prepared(graph), values)), leaves(run(graph, values)), strict=True):
        assert same(mine, its), program(seed, True)
    report = gradcheck(graph, values, directions=1, order=1)
    assert report.is_right or "is not supported" in report.unsupported.get(1, ""), program(seed, True) + str(report)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(30, 60))
def test_random_programs_are_those_of_torch(seed: int) -> None:
    compare_with_torch(program(seed), "f", [0.7 * each for each in np.random.default_rng(seed).standard_normal((2, 3))] + [3])


REFUSED = {
    "another list": ("a = [x]", "b = [a]", "a.append(w)", "y = torch.stack(b[0])"),
    "a second name": ("a = [x]", "if bool(x.sum() > 0):", "    b = a", "else:", "    b = [w]", "b.append(w)", "y = torch.stack(a)"),
    "a dict": ('d = {"a": x}', 'y = d["a"] * w'),
    "an element of a list": ("a = [[x]]", "a[0].append(w)", "y = torch.stack(a[0])"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_its_line(name: str) -> None:
    """What cannot be differentiated is never a wrong gradient."""
    lines = "\n    ".join(REFUSED[name])
    graph = irtool.parse(str(graph_of(f"def f(x, w):\n    {lines}\n    return y\n"))).graph()
    with pytest.raises(irtool.UnsupportedError, match="is not supported") as caught:
        differentiate_graph(graph, [True, True], True)
    assert caught.value.diagnostics and caught.value.diagnostics[0].line > 1


def like(value: Any, rng: np.random.Generator) -> Any:
    """A gradient for an output: for a list, of every element; none where the value is not there."""
    if isinstance(value, list):
        return [like(each, rng) for each in value]
    return None if value is None else rng.standard_normal(np.shape(value))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pair_is_text(name: str) -> None:
    """What differentiate prints is read back as it was; passes in one go or one by one give the same text."""
    source, words = PROGRAMS[name]
    f = prepared(graph_of(source))
    module = irtool.parse(str(f))
    text = str(PassManager("differentiate{requires-grad=all}", verify=True).run(module))
    assert str(irtool.parse(text)) == text
    found = list(pairs(irtool.parse(text)))
    assert len(found) == 1 and not found[0].problems()
    for passes in ("specialize-undef,lower-grad-of", "specialize-undef,dce,cse,lower-grad-of,constant-propagation,peephole"):
        once = str(PassManager(passes, verify=True).run(irtool.parse(text)))
        twice = text
        for each in passes.split(","):
            twice = str(PassManager(each).run(irtool.parse(twice)))
        assert once == twice
