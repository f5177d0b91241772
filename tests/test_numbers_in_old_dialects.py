"""A graph computes the same in every dialect, also where operators have attributes for arguments, and by every way to run: numbers keep
their types, signs and digits."""
from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.attribute import TensorLiteral

DIALECTS = ["G", "F1", "D", "C2", "C1", "2020-04", "2018-06"]
SOURCES = {
    "a tuple of constants": "def f(x: Tensor):\n    return ((0, -0.0, 'z', None, True, 1.0), x.size(0) * 2)\n",
    "sizes": "def f(x: Tensor):\n    return x.size(0) * 2 + x.size(-1), len(x.size()), x.dim()\n",
    "a write into an element": "def f(x: Tensor):\n    y = x.clone()\n    y[1] = 0.5\n    return y\n",
    "a write into a slice": "def f(x: Tensor):\n    y = x.clone()\n    y[:, 1:3:2] = 0.5\n    return y\n",
    "a write into a view":
        "def f(x: Tensor):\n    y = x.clone()\n    y.transpose(0, 1)[2].mul_(3)\n    return y\n",
    "a write into a diagonal": "def f(x: Tensor):\n    y = x.clone()\n    torch.diagonal(y, 1).mul_(7)\n    return y\n",
    "a fill":
        "def f(x: Tensor):\n    y = x.clone()\n    torch.diagonal(y, 1).fill_(7)\n    y[0].fill_(0.5)\n    y[1].zero_()\n    return y\n",
    "a fill of a copy":
        "def f(x: Tensor):\n    y = x.clone()\n    y.copy_(x[0])\n    y[1].fill_(2.5)\n    y[2].fill_(True)\n    return y\n",
    "a counter": "def f(x: Tensor):\n    for i in range(3):\n        x = x * (i + 2)\n    return x\n",
    "a counter of many rounds":
        "def f(x: Tensor):\n    for i in range(x.size(0) + 9):\n        x = x * (i + 2) - 1\n    return x\n",
    "places of a list":
        "def f(x: Tensor):\n    l = [x, x * 2]\n    for e in l:\n        x = x + e\n    return x, len(l)\n",
    "a write into a column": "def f(x: Tensor):\n    y = x.clone()\n    y.t().unsqueeze(0)[0, 1] = 2.5\n    return y\n",
}


def shown(value: Any) -> str:
    """A value as text that tells 1, 1.0 and True apart, and -0.0 from 0.0."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(shown, value))})"
    return f"{value.dtype} {value.tolist()}" if isinstance(value, np.ndarray) else repr(value)


def parsed(text: str) -> irtool.Graph:
    graph, = irtool.parse(text).graphs
    return graph


def in_dialect(source: str, dialect: str) -> irtool.Graph:
    out = io.StringIO()
    assert main(["fmt", "--syntax", dialect], io.BytesIO(str(irtool.from_script(source)).encode()), out, sys.stderr) == 0
    return parsed(out.getvalue())


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_graph_computes_the_same_in_every_dialect(source: str, dialect: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    expected = shown(irtool.run(irtool.from_script(source), [x], interpret=True))
    graph = in_dialect(source, dialect)
    assert shown(irtool.run(graph, [x], interpret=True)) == expected
    for options in ({}, {"native": True}, {"profiling": True}):
        executor = irtool.compile(graph, **options)
        assert {shown(executor(x)) for _ in range(4)} == {expected}
    for passes in ("lower-tuples", "functionalize", "remove-inplace", "lower-tuples,constant-propagation,cse,peephole"):
        again = irtool.PassManager(passes).run(parsed(str(graph)))
        assert shown(irtool.run(again, [x], interpret=True)) == expected
    if "clone" in source:
        results = irtool.vjp(graph, [x], [np.ones((3, 4))], wrt=[0])
        assert shown(results) == shown(irtool.vjp(irtool.from_script(source), [x], [np.ones((3, 4))], wrt=[0]))


@pytest.mark.parametrize("number", [123456.0, -0.0, 0.1, 0.25, 1e-310, 5e300, float("inf"), complex(-0.0, 0.25),
                                    complex(1, -0.0),
                                    2 ** 53 + 1, True])
def test_a_number_of_six_digits_as_a_tensor_constant_keeps_sign_and_digits(number: Any) -> None:
    graph = irtool.from_script(f"def f():\n    return {spelled(number)}\n")
    erased = irtool.PassManager("erase-number-types").run(graph)
    result, = irtool.run(parsed(str(erased)), [], interpret=True)
    assert repr(np.asarray(result).item()) == repr(number)


def spelled(number: Any) -> str:
    if isinstance(number, complex):
        return f"complex({number.real}, {number.imag})"
    return 'float("inf")' if number == float("inf") else repr(number)


def test_a_negative_zero_is_read_as_one() -> None:
    assert repr(TensorLiteral("{-0}", "float64", ()).item()) == "-0.0" and TensorLiteral("{-0}", "int64", ()).item() == 0


@pytest.mark.parametrize("number", ["{2}", "{2.5}"])
@pytest.mark.parametrize("node", """add[alpha={1}](%c, %c); eq[other={2}](%c); pow[exponent={2}](%c); mul[other={1.5}](%c); exp(%c);
    neg(%c); div[other={2}](%c); lt(%c, %c); max(%c, %c); sum(%c); type_as(%c, %x); expand[size=[3], implicit=0](%c); unsqueeze[dim=0](%c);
    view[size=[1, 1]](%c)""".replace("\n   ", "").split("; "))
def test_layers_compute_with_constant_tensors_what_a_run_computes(node: str, number: str) -> None:
    """A traced node of numbers alone would be another overload."""
    graph = parsed(f"graph(%x : Double(3)) {{\n  %c : Dynamic = prim::Constant[value={number}]()\n  %r : Dynamic = aten::{node}\n"
                   "  %y : Double(3) = aten::mul(%x, %r)\n  return (%y, %r);\n}\n")
    x = np.array([1.0, -2.0, 3.0])
    expected = shown(irtool.run(graph, [x], interpret=True))
    assert shown(irtool.run(irtool.trace(graph, [x]), [x])) == expected
    assert shown([np.asarray(np.asarray(each)[0]) for each in irtool.vmap(graph)(x[None])]) == expected
