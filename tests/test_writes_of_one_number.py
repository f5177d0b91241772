"""Operators that write one number into what they change take targets whose elements share memory: expanded tensors and windows."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

WRITES = {"triu_": "v.triu_(n)", "tril_": "v.tril_(n)", "masked_fill_": "v.masked_fill_(v > n, 7.0)",
          "index_fill_": "v.index_fill_(-1, torch.tensor([-1]), 7.0)"}
VIEWS = ("expand(2, 5)", "unsqueeze(1).expand(5, 3)", "unsqueeze(-1).expand(2, 5, 4)", "unfold(0, 3, 1)", "unsqueeze(0)")
X = np.arange(1.0, 6)


def source(write: str, view: str) -> str:
    """A function that writes into a view of its argument, and returns both."""
    return f"def f(x: Tensor, n: int):\n    v = x.{view}\n    {WRITES[write]}\n    return x, v\n"


def expected(write: str, view: str, n: int) -> list[Any]:
    """Element by element: each element that the write changes in a copy gets the number that it has there."""
    names: dict[str, Any] = {"torch": irtool.torch, "Tensor": object}
    exec(f"def view(x):\n    return x.{view}\ndef write(v, n):\n    {WRITES[write]}\n    return v\n", names)
    places = np.asarray(names["view"](irtool.torch.tensor(np.arange(5))).array)
    before = X[places]
    after = np.asarray(names["write"](irtool.torch.tensor(before.copy()), n).array)
    changed = X.copy()
    for place in zip(*np.nonzero(before != after), strict=True):
        changed[places[place]] = after[place]
    return [changed, changed[places]]


@pytest.mark.parametrize("n", [-1, 0, 1, 2])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_every_way_changes_the_same_elements(write: str, view: str, n: int) -> None:
    module, names = irtool.from_script(source(write, view)), {"torch": irtool.torch, "Tensor": object}
    exec(source(write, view), names)
    function: Any = names["f"]
    executors = [irtool.compile(module, **options) for options in ({}, {"native": True}, {"optimize": False}, {"profiling": True})]
    ways = {"interpreted": lambda: irtool.run(module, [X, n], interpret=True)[0], "eager": lambda: function(irtool.torch.tensor(X), n),
            "jit": lambda: irtool.jit(function)(irtool.torch.tensor(X), n)}
    ways |= {f"executor {place}": lambda each=each: [each.run([X, n]) for _ in range(3)][-1][0] for place, each in enumerate(executors)}
    for name in ("functionalize", "remove-mutation"):
        changed = irtool.PassManager(name).run(irtool.parse(str(module)))
        ways[name] = lambda changed=changed: irtool.run(changed, [X, n], interpret=True)[0]
    for way, run in ways.items():
        for got, want in zip(run(), expected(write, view, n), strict=True):
            np.testing.assert_array_equal(np.asarray(getattr(got, "array", got)), want, err_msg=way)


@pytest.mark.oracle
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_torch_changes_the_same_elements(write: str, view: str) -> None:
    torch = pytest.importorskip("torch")
    function = torch.jit.CompilationUnit(source(write, view)).f
    for n in (-1, 0, 1, 2):
        for got, want in zip(function(torch.tensor(X), n), expected(write, view, n), strict=True):
            np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", ["functionalize", "remove-mutation"])
@pytest.mark.parametrize("number", ["2", "2.5", "300"])
def test_a_copied_number_becomes_a_tensor(number: str, name: str) -> None:
    """torch's `copy_` takes a number, its `copy` takes none; its `fill` refuses numbers that do not fit."""
    module = irtool.from_script(f"def f(x):\n    y = x.neg()\n    y.copy_({number})\n    return y\n")
    graph = irtool.PassManager(name).run(module).graph()
    kinds = [node.kind for node in graph.nodes]
    assert "prim::NumToTensor" in kinds and "aten::copy" in kinds and "aten::copy_" not in kinds
    assert irtool.run(graph, [np.arange(2, dtype=np.uint8)])[0].tolist() == [int(float(number)) % 256] * 2


def test_a_copied_number_is_converted_under_every_transformation() -> None:
    """A number to fill with must fit; one to be copied is converted as a tensor is."""
    x = np.array([1.0, 2.0])
    for number, dtype, wanted in ((2.5, torch.float64, 2.5), (300, torch.uint8, 44), (2.7, torch.int64, 2), (1j, torch.float64, 0)):
        def function(x: Any, number: Any = number, dtype: Any = dtype) -> Any:
            return x.to(dtype).clone().copy_(number).to(torch.float64) * x
        assert np.asarray(irtool.grad(lambda x: function(x).sum())(x)).tolist() == [wanted] * 2      # noqa: B023
        assert np.asarray(irtool.vmap(function)(x)).tolist() == (wanted * x).tolist()
        assert np.asarray(irtool.jvp(function, (x,), (x,))[1]).tolist() == (wanted * x).tolist()
