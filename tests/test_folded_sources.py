"""The front end folds what torch.jit.script folds: numbers, and what they decide. What only a dead branch reads is not run."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

PROGRAMS = {
    "a known condition": ("y = x * 2\n    if 2 == 2:\n        y = y + (2 + 3)\n    else:\n        y = x.relu()", "prim::If aten::eq"),
    "a write that nothing reads": ("z = x * 2\n    if 3 > 2:\n        z[0] = x\n    y = x + 1", "prim::If aten::copy_ aten::mul"),
    "text": ("y = x * len('ab' + 'c')", "aten::len"),
    "a tuple": ("a = (1, 2)\n    y = x * (a[1] * 3)", "prim::TupleConstruct prim::TupleIndex"),
    "a loop of no rounds": ("y = x.relu()\n    for i in range(2 - 2):\n        y = y * i", "prim::Loop aten::sub"),
    "a while loop that never starts": ("y = x.relu()\n    while 2 > 3:\n        y = y * 2", "prim::Loop aten::gt"),
    "is_scripting": ("y = x * 2\n    if not torch.jit.is_scripting():\n        y = y.nope()", "prim::If nope"),
}
"""Statements -> kinds that the graph does not contain."""
KEPT = {
    "a list": ("a = [1, 2]\n    a.append(3)\n    y = x * a[1]", "aten::append aten::__getitem__"),
    "a division by zero": ("y = x * (1 // 0)", "aten::floordiv"),
    "a tensor": ("y = x * torch.ones([2]) * torch.tensor(2.0)", "aten::ones aten::tensor"),
}
"""Statements -> kinds that stay: lists and tensors may be written into, and what raises does so when it is run."""


def source(body: str) -> str:
    """A function of statements that define y."""
    return f"def f(x: Tensor):\n    {body}\n    return y\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_constants_decide_is_not_in_the_graph(name: str) -> None:
    body, gone = PROGRAMS[name]
    text = str(irtool.from_script(source(body)))
    assert not [kind for kind in gone.split() if kind in text], text


@pytest.mark.parametrize("name", KEPT)
def test_what_may_change_or_raise_stays(name: str) -> None:
    body, kept = KEPT[name]
    text = str(irtool.from_script(source(body)))
    assert all(kind in text for kind in kept.split()), text


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*PROGRAMS, *KEPT])
def test_torch_gives_the_same_and_folds_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    body, kinds = (PROGRAMS | KEPT)[name]
    function = torch.jit.CompilationUnit(source(body)).f
    x = np.array([[1.5], [-2.0]])
    assert all((kind in str(function.graph)) == (name in KEPT) for kind in kinds.split()), function.graph
    try:
        want: Any = function(torch.tensor(x)).numpy()
    except RuntimeError:
        with pytest.raises(irtool.Error):
            irtool.run(irtool.from_script(source(body)), [x])
        return
    np.testing.assert_array_equal(irtool.run(irtool.from_script(source(body)), [x])[0], want)
