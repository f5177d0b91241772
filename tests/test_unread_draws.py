"""Laws: what a run draws after a random operator whose result nobody reads is what the function, or the interpreter, draws there.

Of all random operators that write into an operand, in all ways to run them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch.stack import current
from irtool.ir.effects import RANDOM
from irtool.ir.schema import Schema, schemas

Function = Callable[[Any], Any]
WRITERS = {schema.name: schema for kind in sorted(RANDOM) for schema in schemas(kind)
           if schema.is_mutable and not any(each.keyword_only and each.alias is not None for each in schema.arguments)}
OPERANDS: dict[str, Any] = {"p": 0.5, "train": True, "training": True, "from": 1, "to": 9}
"""Arguments by name; all others have defaults or are tensors."""
FORMS: dict[str, Function] = {
    "copy": lambda x: x.clone(), "view": lambda x: x.clone()[1:], "made": lambda x: torch.ones(3, 4),
    "constant": lambda x: torch.tensor([[0.5, 0.25], [0.75, 0.5]])}
LAYERS: dict[str, Callable[[Function], Function]] = {
    "plain": lambda f: f, "grad": irtool.grad, "jvp": lambda f: lambda x: irtool.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: irtool.vmap(f, randomness="same")(torch.stack([x, x]))}
X = np.linspace(0.1, 0.9, 12).reshape(3, 4)


def writer(schema: Schema) -> Function:
    """The operator as a function of the tensor that it writes into, or that gives the size of what it writes into."""
    def operand(argument: Any, x: Any) -> Any:
        if argument.name == "p" and schema.name.endswith(".Tensor"):
            return torch.full_like(x, 0.5)
        if argument.name in ("self", "noise"):
            return x if argument.name == "self" else torch.zeros_like(x)
        return OPERANDS[argument.name] if argument.name in OPERANDS and argument.type.text != "float" or not argument.has_default \
            else argument.default
    return lambda x: current().apply(schema.name, [operand(each, x) for each in schema.arguments])


def outcome(function: Function, x: Any) -> Any:
    """What a function gives under a seed, and what is drawn after it; of an error, its class."""
    torch.manual_seed(5)
    try:
        results = function(x)
    except irtool.Error as error:
        return type(error)
    results = results if isinstance(results, tuple) else (results,)
    return [np.asarray(each, np.float64).round(5).tolist() for each in results], torch.rand(2).tolist()


def test_there_are_writers() -> None:
    assert len(WRITERS) > 15 and {"aten::normal_", "aten::dropout_", "aten::random_.to", "aten::bernoulli_.Tensor"} <= set(WRITERS)


@pytest.mark.parametrize("name", [name for name, schema in WRITERS.items() if schema.written_places == [0]])     # jit refuses the others
@pytest.mark.parametrize("layer", LAYERS)
def test_jit_draws_what_the_function_draws(name: str, layer: str) -> None:
    write = writer(WRITERS[name])
    ran = 0
    for form in FORMS.values():
        for program in (lambda x, form=form: (write(form(x)), (x * x * x).sum())[1],
                        lambda x, form=form: (write(form(x)), (x * torch.rand(3, 4)).sum())[1],
                        lambda x, form=form: (x * x).sum() + (write(form(x)) * 2).sum() * 3):
            function = LAYERS[layer](program)
            expected = outcome(function, torch.tensor(X))
            jitted = irtool.jit(function)
            assert [outcome(jitted, torch.tensor(X)) for _ in range(3)] == [expected] * 3
            ran += isinstance(expected, tuple)
    assert ran > 2


def noisy(x: Any) -> Any:
    """x, after a draw that nobody reads."""
    x.clone().normal_()
    return x * 2


STRUCTURES: dict[str, Function] = {
    "cond": lambda x: torch.cond(x.sum() > 0, noisy, lambda x: x, (x,)),
    "while_loop": lambda x: torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, noisy(x)), (torch.tensor(0), x))[1],
    "scan": lambda x: torch.scan(lambda c, y: (c, noisy(y)), x, torch.stack([x, x]))[1],
    "map": lambda x: torch.map(noisy, torch.stack([x, x])),
    "forward": irtool.custom_vjp(lambda x: (noisy(x), x), lambda g, x: [noisy(g)]),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("layer", LAYERS)
def test_jit_draws_in_structures_what_the_function_draws(structure: str, layer: str) -> None:
    function = LAYERS[layer](lambda x: (STRUCTURES[structure](x) * torch.rand(3, 4)).sum())
    expected = outcome(function, torch.tensor(X))
    jitted = irtool.jit(function)
    for _ in range(3):
        assert outcome(jitted, torch.tensor(X)) in (expected, irtool.UnsupportedError)      # gradients of draws in loops are refused
    assert layer not in ("plain", "vmap") or isinstance(outcome(jitted, torch.tensor(X)), tuple)


@pytest.mark.parametrize("name", WRITERS)
def test_traces_draw_what_the_function_draws(name: str) -> None:
    write = writer(WRITERS[name])
    for form in FORMS.values():
        def program(x: Any, form: Function = form) -> Any:
            write(form(x))
            return torch.rand(2), x * 2
        torch.manual_seed(5)
        expected = program(torch.tensor(X))[0].tolist()
        assert all(each == expected for each in drawn(irtool.trace(program, [X]), X)), form


def drawn(graph: Any, x: np.ndarray) -> list[Any]:
    """What a graph gives first, in all ways to run it, under one seed."""
    found = [irtool.run(graph, [x], seed=5) for _ in range(4)] + [irtool.run(graph, [x], seed=5, interpret=True)]
    for options in ({}, {"optimize": False}, {"native": True}, {"profiling": True}, {"threads": 2}):
        executor = irtool.compile(graph, **options)
        found += [executor.run([x], 5) for _ in range(3)]
    return [each[0].tolist() for each in found]


HEAD = """graph(%x : Tensor):
  %n : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %p : float = prim::Constant[value=0.5]()
  %k : float = prim::Constant[value=1.]()
  %two : int = prim::Constant[value=2]()
  %size : int[] = prim::Constant[value=[3, 4]]()
  %c : Tensor = aten::clone(%x, %n)
"""
END = """  %r : Tensor = aten::rand(%size, %n, %n, %n, %n)
  %y : Tensor = aten::mul(%x, %r)
  return (%y)
"""
BODIES = {
    "no write": "  %a : Tensor = aten::rand(%size, %n, %n, %n, %n)\n",
    "a write": "  %a : Tensor = aten::normal_(%c, %p, %k, %n)\n",
    "a write into a view": "  %v : Tensor = aten::t(%c)\n  %a : Tensor = aten::normal_(%v, %p, %k, %n)\n",
    "a write after another": "  %b : Tensor = aten::mul_(%c, %x)\n  %a : Tensor = aten::bernoulli_(%c, %p, %n)\n",
    "in a branch": """  %u : Tensor = prim::If(%yes)
    block0():
      %a : Tensor = aten::normal_(%c, %p, %k, %n)
      -> (%c)
    block1():
      -> (%c)
""",
    "in a branch that depends": """  %s : Tensor = aten::sum(%x, %n)
  %d : bool = aten::Bool(%s)
  %u : Tensor = prim::If(%d)
    block0():
      %a : Tensor = aten::dropout(%c, %p, %yes)
      -> (%a)
    block1():
      -> (%c)
""",
    "in a loop": """  %u : Tensor = prim::Loop(%two, %yes, %c)
    block0(%i : int, %v : Tensor):
      %a : Tensor = aten::uniform_(%c, %p, %k, %n)
      -> (%yes, %v)
""",
}


@pytest.mark.parametrize("body", BODIES)
def test_all_ways_draw_what_the_interpreter_draws(body: str) -> None:
    graph = irtool.parse(HEAD + BODIES[body] + END).graph()
    first, *others = drawn(graph, X)
    assert all(each == first for each in others)
    plain = irtool.run(irtool.parse(HEAD + END), [X], seed=5)[0].tolist()
    assert first != plain       # the unread draw is one


@pytest.mark.parametrize("body", BODIES)
def test_gradients_are_of_the_numbers_drawn(body: str) -> None:
    graph = irtool.parse(HEAD + BODIES[body] + END).graph()
    ones = np.ones((3, 4))
    expected = irtool.run(graph, [ones], seed=0)[0].tolist()
    found = [irtool.vjp(graph, [ones], [ones], [0]) for _ in range(3)] + [irtool.vjp(graph, [ones], [ones], [0], interpret=True)]
    for options in ({}, {"optimize": False}, {"profiling": True}, {"autodiff_threshold": 1, "inline_threshold": 1}):
        executor = irtool.compile(graph, **options)
        found += [executor.vjp([ones], [ones], [0]) for _ in range(2)] + [executor.record([ones], [0]).backward([ones])]
    assert [each[0].tolist() for each in found] == [expected] * len(found)


def test_the_passes_delete_unread_draws_as_torch_does() -> None:
    for body in BODIES.values():
        module = irtool.PassManager("dce").run(irtool.parse(HEAD + body + END))
        assert str(module).count("aten::") == 2
        kept = irtool.PassManager("constant-propagation{keep-draws},dce{keep-draws}").run(irtool.parse(HEAD + body + END))
        assert drawn(kept.graph(), X)[0] == drawn(irtool.parse(HEAD + body + END).graph(), X)[0]


@pytest.mark.parametrize("make", [
    torch.rand_like, torch.bernoulli, torch.nn.functional.dropout, lambda c: torch.normal(c, 0.5), lambda c: torch.poisson(c * 9),
    lambda c: torch.multinomial(c, 1), lambda c: torch.nn.functional.rrelu(-c, training=True)])
@pytest.mark.parametrize("is_outer", [False, True])
def test_what_is_drawn_from_constants_is_no_constant(make: Function, is_outer: bool) -> None:
    held = torch.tensor([[0.5, 0.25], [0.75, 0.5]])

    def function(x: Any) -> Any:
        return make(held if is_outer else torch.tensor([[0.5, 0.25], [0.75, 0.5]])) * 2
    expected = outcome(function, X)
    jitted = irtool.jit(function)
    assert [outcome(jitted, X) for _ in range(3)] == [expected] * 3
    graph = irtool.trace(function, [X])
    assert [outcome(lambda x: tuple(irtool.run(graph, [x], seed=None)), X) for _ in range(3)] == [expected] * 3
