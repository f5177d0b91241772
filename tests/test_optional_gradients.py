"""Gradients through tuples and lists of tensors that may not be there: valid graphs in both forms, with torch's numbers."""
from __future__ import annotations

import typing
from functools import partial
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import PassManager
from irtool.autodiff.reverse import differentiate_graph
from irtool.dispatch.transforms import vjp
from irtool.execute.graph_gradients import fitted, run_pair
from irtool.torchscript.front import compile_source

HOLDERS = {
    "Tuple[Tensor, Optional[Tensor]]": "(x * 2, o)",
    "Tuple[Tensor, Tuple[Tensor, Optional[Tensor]]]": "(x * 2, (x * 3, o))",
    "List[Optional[Tensor]]": "[x * 2, o]",
    "List[Tuple[Tensor, Optional[Tensor]]]": "[(x * 2, o), (x, o)]",
    "Tuple[Tensor, List[Optional[Tensor]]]": "(x * 2, [o, x])",
    "Optional[Tuple[Tensor, Optional[Tensor]]]": "(x * 2, o)",
    "Optional[List[Optional[Tensor]]]": "[x * 2, o]",
}
WAYS = {
    "put together": "    t: {type} = {made}\n    return t\n",
    "added up": "    t: {type} = {made}\n    return t, t\n",
    "chosen": "    t: {type} = {made}\n    if n > 1:\n        s: {type} = {made}\n        t = s\n    return t\n",
    "carried": ("    t: {type} = {made}\n    for i in range(n):\n        s: {type} = {made}\n        if i > 0:\n            t = s\n"
                "    return t, t\n"),
}
SOURCES = {
    "made": "def f(x: Tensor, n: int):\n    o: Optional[Tensor] = None\n    if n > 0:\n        o = (x * x).to(x.dtype)\n",
    "given": "def f(x: Tensor, n: int, o: Optional[Tensor]):\n",
}
PROGRAMS = [(source, way, held) for source in SOURCES for way in WAYS for held in HOLDERS]


def program(source: str, way: str, held: str) -> str:
    return SOURCES[source] + WAYS[way].format(type=held, made=HOLDERS[held])


@pytest.mark.parametrize("form", ["", "{form=2018}"])
@pytest.mark.parametrize(("source", "way", "held"), PROGRAMS)
def test_graphs_are_valid(source: str, way: str, held: str, form: str) -> None:
    try:
        PassManager(f"differentiate{form}", verify=True).run(compile_source(program(source, way, held)))
    except irtool.UnsupportedError as error:
        assert "a tuple carried by a loop" in str(error)


def leaves(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list | tuple) else [value]


def by_pair(text: str, args: list[Any], seeds: list[Any], places: list[int], modern: bool) -> list[Any]:
    graph = compile_source(text).graph()
    _, gradients = run_pair(differentiate_graph(graph, [at != 1 for at in range(len(args))], modern), args, seeds)
    return [fitted(gradients[place], args[place]) for place in places]


@pytest.mark.oracle
@pytest.mark.parametrize(("source", "way", "held"), PROGRAMS)
def test_gradients_are_those_of_torch(source: str, way: str, held: str) -> None:
    torch = pytest.importorskip("torch")
    text = program(source, way, held)
    space = {"Tensor": torch.Tensor, **vars(typing)}
    exec(text, space)
    graph = compile_source(text).graph()
    for n in range(3):
        for is_there in (False, True) if source == "given" else (False,):
            args = [torch.linspace(0.3, 1.2, 3, dtype=torch.float64, requires_grad=True), n]
            if source == "given":
                args.append(torch.linspace(0.1, 0.5, 3, dtype=torch.float64, requires_grad=True) if is_there else None)
            places = [0, 2] if is_there else [0]
            outputs = leaves(space["f"](*args))  # type: ignore[operator]
            total = sum((leaf * (1.0 + at)).sum() for at, leaf in enumerate(outputs) if leaf is not None)
            expected = torch.autograd.grad(total, [args[place] for place in places], allow_unused=True, materialize_grads=True)
            arrays = [each.detach().numpy() if isinstance(each, torch.Tensor) else each for each in args]
            seeds = [None if leaf is None else np.full(3, 1.0 + at) for at, leaf in enumerate(outputs)]
            ways = [partial(irtool.vjp, graph, interpret=True), irtool.compile(graph).vjp]
            if not ("Tuple" in held.partition("[")[0] and way == "carried"):    # which is refused
                ways += [partial(by_pair, text, modern=True), partial(by_pair, text, modern=False)]
            for run in ways:
                for got, want in zip(run(arrays, seeds, places), expected, strict=True):
                    np.testing.assert_allclose(0 if got is None else got, want.numpy(), rtol=1e-9)


UNIONS = {
    "a variable": "u: Union[Tensor, int] = x * w\n    if isinstance(u, Tensor):\n        return u * x\n    return w",
    "an int beside it": "u: Union[Tensor, int] = x * w\n    if bool(x.sum() > 100):\n        u = 3\n"
                        "    return u * x if isinstance(u, Tensor) else w * u",
    "a list of them": "held: List[Union[Tensor, int]] = [x * w, 1]\n    u = held[0]\n    assert isinstance(u, Tensor)\n    return u * x",
    "a dict with lists": "held: Dict[str, Union[Tensor, List[Tensor]]] = {\"a\": x * w, \"b\": [w]}\n    u = held[\"a\"]\n"
                         "    return u * x if isinstance(u, Tensor) else u[0]",
    "a list as the other": "u: Union[Tensor, List[Tensor]] = [x * w, w]\n    return u if isinstance(u, Tensor) else u[0] * x",
    "of three": "u: Union[Tensor, int, None] = x * w\n    assert u is not None\n    return u * x if isinstance(u, Tensor) else w",
}


@pytest.mark.parametrize("body", UNIONS.values(), ids=UNIONS)
def test_gradients_go_through_unions(body: str) -> None:
    """All of these compute x * x * w, by a value that may also be something else."""
    module = irtool.from_script(f"def f(x: Tensor, w: Tensor):\n    {body}\n")
    x, w, seed = np.float32([0.5, -1, 2]), np.float32([1.5, 3, -2]), np.float32([1, 10, 100])
    for gradients in (irtool.vjp(module, [x, w], [seed], [0, 1]), irtool.vjp(module, [x, w], [seed], [0, 1]),
                      irtool.vjp(module, [x, w], [seed], [0, 1], interpret=True),
                      irtool.compile(module).record([x, w], [0, 1]).backward([seed])):
        np.testing.assert_allclose(gradients[0], 2 * x * w * seed, rtol=1e-6)
        np.testing.assert_allclose(gradients[1], x * x * seed, rtol=1e-6)


def test_an_argument_that_is_a_union_has_a_gradient() -> None:
    module = irtool.from_script("def f(x: Union[Tensor, List[Tensor]], w: Tensor):\n"
                                "    return x * w if isinstance(x, Tensor) else x[0] * x[1] * w\n")
    x, w, seed = np.float32([0.5, -1]), np.float32([1.5, 3]), np.float32([1, 10])
    np.testing.assert_allclose(irtool.vjp(module, [x, w], [seed], [0])[0], w * seed)
    np.testing.assert_allclose(irtool.vjp(module, [[x, w], w], [seed], [0])[0], [w * w * seed, x * w * seed])


@pytest.mark.parametrize("call", ["torch.broadcast_tensors(a, b)", "torch.meshgrid(a, b)", "torch.meshgrid([a, b], indexing='xy')",
                                  "torch.ops.aten.atleast_1d([a, b])", "torch.ops.aten.atleast_2d([a, b])"])
@pytest.mark.parametrize("read", ["c = l[0]", "c, d = l[0], l[1]", "c = l[0]\n    if n > 1:\n        c = l[0] + l[1]"])
def test_of_tensors_one_by_one_only_those_have_gradients_whose_results_have(call: str, read: str) -> None:
    """Zeros would be: here they would become nan, as 0 * inf, where torch has no gradient."""
    source = f"def f(x, y, n: int):\n    a = y * 2\n    b = x.sqrt() * 0.5\n    l = {call}\n    {read}\n    return (c * 1.5).sum()\n"
    values = [np.zeros(3), np.ones(3), 1]
    module = compile_source(source)
    for interpret in (True, False, False):
        first, second = irtool.vjp(module, values, [np.ones(())], [0, 1], interpret=interpret)
        assert (first is None or not first.any()) and second.all()
    ours: dict[str, Any] = {"torch": irtool.torch}
    exec(source, ours)
    _, back = vjp(lambda x, y: ours["f"](x, y, 1), *map(irtool.torch.tensor, values[:2]))
    first, second = (np.asarray(each) for each in back(irtool.torch.ones((), dtype=irtool.torch.float64)))
    assert not first.any() and second.all()
