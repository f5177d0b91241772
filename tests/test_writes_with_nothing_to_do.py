"""In-place operators that may have nothing to do (dropout that does not train, the conjugate of real numbers): the tensor stays the view,
and the viewed tensor, that it was. They give what the copy of the result into the operand gives."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import vjp, vmap
from irtool.ir.effects import UNDECLARED
from irtool.ir.schema import schemas
from irtool.torchscript.front import compile_source

IN_PLACE = {kind for each in UNDECLARED if schemas(kind := f"{each}_")}
ARGUMENTS = {"dropout": "0.5, False", "alpha_dropout": "0.5, False", "feature_dropout": "0.5, False", "feature_alpha_dropout": "0.5, False",
             "conj_physical": ""}
VIEWS = ("y.mT", "y[0]", "y.detach()")
MORE = ("y.mul_({n})", "w = y.t()[1]\n    v.add_(y[0, 0] * 1)\n    v.mul_(w[0] * {n})")
REAL = np.array([[.8, 1.], [3., 2.]])
COMPLEX = REAL + 1j * REAL[::-1]


def programs(n: object) -> list[str]:
    """Sources with a place for the write."""
    return [f"def f(y):\n    y = y * 1\n    v = {view}\n    {{}}\n    {more.format(n=n)}\n"
            "    return torch.cat([v.reshape(-1) * 3, y.reshape(-1)])\n" for view in VIEWS for more in MORE]


@cache
def ways(source: str, is_complex: bool) -> list[list[Any]]:
    """The result, and the gradient of its sum, in different ways."""
    y = COMPLEX if is_complex else REAL
    made: dict[str, Any] = {"torch": torch}
    exec(source, made)
    function, graph = made["f"], compile_source(source)
    result, back = vjp(function, y)
    ones = np.ones(result.shape, y.dtype)
    return [[*irtool.run(graph, [y]), *irtool.vjp(graph, [y], [ones], [0])],
            [*irtool.run(graph, [y], interpret=True), *irtool.vjp(graph, [y], [ones], [0], interpret=True)],
            [np.asarray(result), np.asarray(back(torch.tensor(ones))[0])],
            [np.asarray(vmap(function)(np.stack([y, y * 2])))[0]]]


def test_each_such_operator_is_here() -> None:
    assert {f"aten::{name}_" for name in ARGUMENTS} == IN_PLACE


@pytest.mark.parametrize("written", ["v", "y"])
@pytest.mark.parametrize(("name", "is_complex"), [*[(name, False) for name in ARGUMENTS], ("conj_physical", True)])
def test_it_is_a_copy_of_the_result_into_the_operand(name: str, is_complex: bool, written: str) -> None:
    result = f"torch.conj_physical({written})" if is_complex else written
    for program in programs("(2.0 + 1j)" if is_complex else 2.0):
        expected = ways(program.format(f"{written}.copy_({result}.clone())"), is_complex)
        in_place = f"torch.{name}_({', '.join(filter(None, (written, ARGUMENTS[name])))})"
        for way in (*ways(program.format(in_place), is_complex), *expected[1:]):
            for one, other in zip(way, expected[0], strict=False):
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=program)
