"""Passes that replace operators keep how results lie in memory: what reshapes a result and writes into that writes into the result, or into
a copy. Tried on the samples of the operators, with each operand alone in another memory order, and on what passes fuse."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.interpret import run as interpret
from irtool.ir.schema import parse_schema
from irtool.ir.types import tensor_type
from irtool.ops import OPS
from irtool.passes import AREAS
from irtool.testing.formulas import call_graph
from tests.test_pass_laws import OTHERWISE
from tests.test_result_layouts import SAMPLED, laid, reordered

TRIED = [name for area in ("redundancy", "operators", "gradients", "execution") for name in AREAS[area]
         if name not in OTHERWISE and name != "relayout-weights"]
"""relayout-weights is to change memory orders, of constants."""


def layouts(module: Any, inputs: list[Any]) -> Any:
    """Strides of the results, by the interpreter; or the kind of error."""
    try:
        with np.errstate(all="ignore"):
            return laid([result for result in interpret(module, inputs, seed=0) if isinstance(result, np.ndarray | list | tuple)])
    except irtool.Error as error:
        return type(error).__name__


def typed(text: str, inputs: list[Any]) -> str:
    """A graph whose inputs have complete types."""
    module = irtool.parse(text)
    for value, array in zip(module.graph().inputs, inputs, strict=True):
        if isinstance(array, np.ndarray):
            value.type = tensor_type(array.dtype.name, array.shape, [step // array.itemsize for step in array.strides], False, "cpu")
    return str(module)


def orders(inputs: list[Any]) -> Iterator[list[Any]]:
    """The inputs, and with one of them in another memory order."""
    yield inputs
    for (place, array), axes in product(enumerate(inputs), ((-1, -2), (0, 1))):
        if isinstance(array, np.ndarray) and array.ndim > 1:
            yield [*inputs[:place], reordered(array, axes), *inputs[place + 1:]]


def rewritten(name: str, text: str) -> Any:
    """What a pass makes of a text; None if that is the same text."""
    try:
        after = irtool.PassManager(name).run(irtool.parse(text))
    except irtool.PassError:
        return None
    return after if str(after) != text else None


def changed(names: list[str], text: str, inputs: list[Any]) -> list[str]:
    """Passes after which results lie otherwise."""
    wanted, found = layouts(irtool.parse(text), inputs), []
    for name in names if not isinstance(wanted, str) else []:
        after = rewritten(name, text)
        if after is not None and (result := layouts(after, inputs)) != wanted:
            found.append(f"{name}: {result} after, {wanted} before:\n{text}")
    return found


@pytest.mark.parametrize("letter", sorted({name.removeprefix("aten::")[0] for name in SAMPLED}))
def test_operators(letter: str) -> None:
    for name in SAMPLED:
        if name.removeprefix("aten::")[0] != letter:
            continue
        schema = dict(zip(OPS[name].names, OPS[name].schemas))[name]
        sample = OPS[name].samples[name][-1]
        graph, inputs, _ = call_graph(parse_schema(schema), sample.arguments(schema))
        names = [each for each in TRIED if rewritten(each, typed(str(graph), inputs)) is not None]
        for moved in orders(inputs) if names else []:
            assert not changed(names, typed(str(graph), moved), moved)


FUSED = {
    "addmm": ("torch.addmm(c, a, b)", "torch.addmm(c, a, b, beta=1.0)", "torch.addmm(c[0], a, b)", "torch.addmm(c[:, :1], a, b)"),
    "sum": ("a.mm(b) + c", "c + a.mm(b)", "c[0] + a.mm(b)", "c[:, :1] + a.mm(b)", "c.t() + a.mm(b).t()", "a.mm(b) + b.mm(a)"),
    "linear": ("a.matmul(b.t()) + c", "c + a.matmul(b.t())", "a.matmul(b.t()).add_(c)", "F.linear(a, b, c[0])", "F.linear(a, b) + c",
               "torch.addmm(c, a, b.t())"),
    "batches": ("torch.baddbmm(c[None], a[None], b[None])", "torch.bmm(a[None], b[None]) + c", "c + torch.bmm(a[None], b[None])",
                "a.mm(c) + b.mm(c)", "a.mm(b) + a.mm(c)", "torch.addr(c, a[0], b[0])", "torch.addmv(c[0], a, b[0])"),
    "pointwise": ("(a + b) * c", "torch.addcmul(a, b, c)", "torch.where(a > 0, b, c)", "(a * 1 + b).relu_().add_(c)", "a.mul_(b).add(c)",
                  "c.expand(3, 3) * a", "-(-a) + b", "a - (-b)"),
}


@pytest.mark.parametrize("name", FUSED)
def test_what_passes_fuse_and_decompose(name: str) -> None:
    numbers = np.arange(9.0).reshape(3, 3) / 8 + 0.25
    for expression in FUSED[name]:
        module = irtool.from_script(f"def f(a: Tensor, b: Tensor, c: Tensor):\n    v = {expression}\n    return v, v.reshape(-1)\n")
        for axes in product(((0, 0), (0, 1)), repeat=3):
            inputs = [reordered(numbers + place, each) for place, each in enumerate(axes)]
            for text in (str(module), typed(str(module), inputs)):
                assert not changed(TRIED, text, inputs)
            wanted = layouts(module, inputs)
            for executor in (irtool.compile(module), irtool.compile(module, native=False)):
                for _ in range(2):
                    assert laid(executor.run(inputs)) == wanted, expression
