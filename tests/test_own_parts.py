"""Writes into what `unsafe_chunk` and `split` give: the parts lie in the memory of the whole. They become new values where nothing else
reads the memory later. For gradients what an `unsafe_` operator gives is no part of anything."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_ways import differences

import irtool

REPLACED = {
    "gates": "a = x * 2\np, q = torch.unsafe_chunk(a, 2)\np.sigmoid_()\nq.tanh_()\nreturn p * q + p",
    "written before": "a = x * 2\na.add_(x)\np, q = torch.unsafe_split(a, 2, 1)\np.mul_(q)\nreturn p, q",
    "read before": "a = x * 2\nb = a + x\np, q = torch.unsafe_split_with_sizes(a, [1, 3], 1)\nq.mul_(p)\nreturn q * q, b",
    "through a view of a part": "p, q = torch.unsafe_chunk(x + x, 2)\np[0].mul_(q[1])\nreturn p, p[:, 1] * 2",
    "parts of a part": "p, q = torch.unsafe_chunk(x + x, 2)\nr, s = torch.unsafe_chunk(p, 2)\nr.sigmoid_()\nq.mul_(s)\nreturn r, q",
    "one part": "a = torch._unsafe_view(x + x, [2, 8])\na[0].mul_(3)\nreturn a * a",
    "in a loop": "h = x\nfor i in range(3):\n    p, q = torch.unsafe_chunk(torch.cat([h, h + x]), 2)\n    p.sigmoid_()\n    q.tanh_()\n"
                 "    h = p * q\nreturn h",
    "parts from before a loop": "p, q = torch.unsafe_chunk(x + x, 2)\nfor i in range(3):\n    p.add_(q)\n    q[0].mul_(2)\nreturn p, q",
    "in a branch": "p, q = torch.unsafe_chunk(x + x, 2)\nif bool(x[0, 0] < 9):\n    p.sigmoid_()\nelse:\n    q.tanh_()\nreturn p * q",
    "chunk": "p, q = (x + x).chunk(2)\np.sigmoid_()\nreturn p * q + p",
    "split": "p, q = (x + x).split([3, 1], 1)\np[:, :1].mul_(q)\nq.add_(x[:, :1])\nreturn p, q",
    "unbind": "p, q, r, s = (x + x).unbind(1)\np.tanh_()\nr.mul_(p)\nreturn p + r",
    "tensor_split": "p, q = torch.tensor_split(x + x, [3])\np.tanh_()\nq.mul_(p[0])\nreturn p, q",
    "in a list": "p, q = torch.unsafe_chunk(x + x, 2)\np.sigmoid_()\nreturn torch.stack([p, q, p])",
}
"""Bodies of a function of a matrix of 4 by 4. None overwrites what torch saved for gradients, which in such parts it would not notice."""
LEFT = {
    "the whole is read later": "a = x * 2\np, q = torch.unsafe_chunk(a, 2)\np.sigmoid_()\nreturn p * q, a * x",
    "the whole is written later": "a = x * 2\np, q = torch.unsafe_chunk(a, 2)\na.add_(x)\np.mul_(2)\nreturn p * q",
    "a view of the whole is read later": "a = x * 2\nb = a.t()\np, q = torch.unsafe_chunk(a, 2)\np.sigmoid_()\nreturn p * q, b * x",
    "the whole is of an earlier round": "a = x * 2\ns = x[:2]\nfor i in range(3):\n    p, q = torch.unsafe_chunk(a, 2)\n    p.mul_(2)\n"
                                        "    s = s + p + q * 3\nreturn s",
    "the whole goes round": "h = x * 2\ns = x[:2]\nfor i in range(3):\n    p, q = torch.unsafe_chunk(h, 2)\n    p.mul_(2)\n"
                            "    s = s + p + q * 3\n    h = h.view(4, 4)\nreturn s",
    "the whole is in a list": "a = x * 2\nl = [a, x]\np, q = torch.unsafe_chunk(a, 2)\np.sigmoid_()\nreturn p * q, torch.stack(l)",
    "the whole of a chunk is read later": "a = x * 2\np, q = a.chunk(2)\np.sigmoid_()\nreturn p * q, a * x",
    "the whole is the input": "p, q = torch.unsafe_chunk(x, 2)\np.sigmoid_()\nreturn p * q",
    "the whole is part of the input": "p, q = torch.unsafe_chunk(x[:2], 2)\np.sigmoid_()\nreturn p * q * x[0]",
    "taken apart twice":
        "a = x * 2\np, q = torch.unsafe_chunk(a, 2)\nr, s = torch.unsafe_chunk(a, 2, 1)\np.sigmoid_()\nreturn p * q, r * s",
    "a part of which is returned as well": "a = x * 2\nl = torch.unsafe_chunk(a, 2)\np, q = l\np.sigmoid_()\nreturn p * q, l[0] * 2",
    "a part's whole is read later":
        "p, q = torch.unsafe_chunk(x + x, 2)\nr, s = torch.unsafe_chunk(p, 2)\nr.sigmoid_()\nreturn r * s, p + q",
}


def source_of(body: str) -> str:
    """The function `f` of a body."""
    return "def f(x: Tensor):\n    " + body.replace("\n", "\n    ") + "\n"


def leaves(value: Any) -> list[Any]:
    """The arrays in results."""
    return [each for item in value for each in leaves(item)] if isinstance(value, list | tuple) else [np.asarray(value)]


@pytest.mark.parametrize("name", [*REPLACED, *LEFT])
def test_every_way_gives_what_the_interpreter_gives(name: str) -> None:
    module = irtool.from_script(source_of({**REPLACED, **LEFT}[name]), "f")
    x = np.random.default_rng(0).standard_normal((4, 4))
    expected, after = irtool.run(module, [given := x.copy()], interpret=True), given
    graph = irtool.PassManager("functionalize", verify=True).run(irtool.parse(str(module))).graph()
    kinds = [node.kind for node in graph.walk()]
    assert any(kind.endswith("_") for kind in kinds) == (name in LEFT), graph
    without = irtool.PassManager("remove-inplace", verify=True).run(irtool.parse(str(module)))
    compiled = irtool.compile(module)
    for way in (lambda value: irtool.run(graph, [value], interpret=True), lambda value: irtool.run(without, [value], interpret=True),
                compiled, compiled):
        found = way(given := x.copy())
        assert all(map(np.array_equal, [*leaves(found), given], [*leaves(expected), after]))
    cotangents = [np.cos(np.arange(each.size)).reshape(each.shape) for each in leaves(expected)]
    assert not differences(module, [x], cotangents, [0])


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name, body in {**REPLACED, **LEFT}.items() if "unsafe" in body])
def test_gradients_are_torchs(name: str) -> None:
    """Where torch takes them: it refuses writes into what `chunk` gives."""
    torch = pytest.importorskip("torch")
    source = source_of({**REPLACED, **LEFT}[name])
    x = np.random.default_rng(0).standard_normal((4, 4))
    leaf = torch.tensor(x, requires_grad=True)
    names: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor}
    exec(source.replace("torch._unsafe", "torch.ops.aten._unsafe"), names)      # torch.jit drops a write into the whole
    results = names["f"](leaf * 1 if "input" in name else leaf)
    results = list(results) if isinstance(results, tuple) else [results]
    cotangents = [np.cos(np.arange(each.numel())).reshape(each.shape) for each in results]
    (wanted,) = torch.autograd.grad(results, leaf, [torch.tensor(each) for each in cotangents])
    assert not differences(irtool.from_script(source, "f"), [x], cotangents, [0], [wanted.numpy()])


@pytest.mark.oracle
@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell"])
def test_a_traced_loop_of_cells_is_differentiated_as_a_whole(cell: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    parameters = list(getattr(torch.nn, cell)(3, 4).double().parameters())

    def f(x: Any, *given: Any) -> Any:
        state = torch.zeros(2, 4).double()
        states, out = (state, state), []
        for time in range(3):
            if cell == "LSTMCell":
                states = torch.lstm_cell(x[time], states, *given)
            else:
                states = (torch.gru_cell(x[time], states[0], *given),)
            out.append(states[0])
        return torch.stack(out)

    x = torch.randn(3, 2, 3, dtype=torch.float64)
    graph = irtool.parse(str(torch.jit.trace(f, (x, *[each.detach() for each in parameters])).inlined_graph)).graph()
    result = f(x, *parameters)
    cotangent = torch.cos(torch.arange(result.numel()).reshape(result.shape)).double()
    wanted = [each.numpy() for each in torch.autograd.grad(result, parameters, cotangent)]
    inputs = [x.numpy(), *[each.detach().numpy() for each in parameters]]
    assert not differences(graph, inputs, [cotangent.numpy()], list(range(1, len(inputs))), wanted)
    pair = irtool.PassManager("differentiate{requires-grad=all}").run(irtool.parse(str(graph)))
    assert not any(node.kind.endswith("_") for node in pair.graphs[0].walk())
