"""`c[k] op= v`: what a list holds is written into, what a dict holds is not, as in torch."""
from __future__ import annotations

import numpy as np
import pytest

import irtool

KINDS = {
    "d = {'a': x}; d['a'] *= z": ["__getitem__", "mul", "_set_item"],
    "d = {'a': x}; d['a'] -= 2": ["__getitem__", "sub", "_set_item"],
    "d = {'a': x}; d['a'] %= 2": ["__getitem__", "fmod", "_set_item"],
    "d = {'a': x}; d['a'] **= 2": ["__getitem__", "pow", "_set_item"],
    "d = {'a': x}; d['a'] |= 2": ["__getitem__", "__or__", "_set_item"],
    "d = {1: [x]}; d[1] += [z]": ["__getitem__", "add", "_set_item"],
    "d = {1: [x]}; d[1] *= 2": ["__getitem__", "mul", "_set_item"],
    "d = {1: 'a'}; d[1] += 'b'": ["__getitem__", "add", "_set_item"],
    "d = [[x]]; d[0] += [z]": ["__getitem__", "add_", "_set_item"],
    "d = [x]; d[0] **= 2": ["__getitem__", "pow", "_set_item"],
}
"""Program -> the operators that torch 2.13 makes of it."""


@pytest.mark.parametrize("program", KINDS)
def test_operators_are_torchs(program: str) -> None:
    graph = irtool.from_script(f"def f(x: Tensor, z: Tensor):\n    {program}\n    return d\n").graph()
    assert [node.kind.removeprefix("aten::") for node in graph.walk() if node.kind.startswith("aten::")] == KINDS[program]


def test_the_tensor_that_was_put_in_stays_as_it_was() -> None:
    module = irtool.from_script("def f(x: Tensor, z: Tensor):\n    d = {'a': x}\n    d['a'] *= z\n    return d['a'] + x\n")
    x, z = np.ones(2), np.array([2.0, 3.0])
    for _ in range(3):
        assert irtool.run(module, [x, z])[0].tolist() == [3, 4]
        of_x, of_z = irtool.vjp(module, [x, z], [np.ones(2)], [0, 1])
        assert of_x.tolist() == [3, 4] and of_z.tolist() == [1, 1]
