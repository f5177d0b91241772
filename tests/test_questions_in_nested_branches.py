"""Gradients of branches within branches: df asks for the dtype and size of a value only where f computed the value."""
from __future__ import annotations

import itertools
import textwrap

import numpy as np
import pytest

import irtool

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)

# the statements of the innermost branch, whose gradient is that of exp
BODIES = {
    "a conversion": "y = x.exp().to(x.dtype)",
    "two conversions": "y = x.to(torch.float64).exp().to(x.dtype)",
    "a conversion of a view": "y = x.exp().reshape([-1]).to(x.dtype).reshape(x.size())",
    "a tensor of another shape": "h = x.exp()\ny = h.unsqueeze(0).expand([4, 2, 3]).mean(0).to(h.dtype)",
    "a loop": "y = x\nfor i in range(1):\n    y = y.exp().to(x.dtype)",
    "a branch in a loop": "y = x\nfor i in range(2):\n    if i == 1:\n        y = y.exp().to(x.dtype)",
}
# around it, branches that are taken or not
NESTS = {
    "one": "if a:\n    BODY\nelse:\n    y = x * 3",
    "two": "if a:\n    if b:\n        BODY\n    else:\n        y = x * 3\nelse:\n    y = x * 3",
    "two, the other way": "if a:\n    y = x * 3\nelse:\n    if b:\n        y = x * 3\n    else:\n        BODY",
    "three": ("if a:\n    if b:\n        if c:\n            BODY\n        else:\n            y = x * 3\n    else:\n        y = x * 3\n"
              "else:\n    y = x * 3"),
    "both ways": ("if a:\n    if b:\n        BODY\n    else:\n        y = x * 3\n"
                  "else:\n    if b:\n        y = x * 3\n    else:\n        BODY"),
    "in a loop": ("y = x\nfor k in range(1):\n    if a:\n        if b:\n            BODY\n        else:\n            y = x * 3\n"
                  "    else:\n        y = x * 3"),
    "an early return": "if a:\n    if b:\n        return x * 3\n    BODY\n    return y\ny = x * 3",
}
TAKEN = {"one": lambda a, b, c: a, "two": lambda a, b, c: a and b, "two, the other way": lambda a, b, c: not a and not b,
         "three": lambda a, b, c: a and b and c, "both ways": lambda a, b, c: a == b, "in a loop": lambda a, b, c: a and b,
         "an early return": lambda a, b, c: a and not b}


def program(nest: str, body: str) -> irtool.Graph:
    """A function of x and three conditions."""
    lines = []
    for line in NESTS[nest].split("\n"):
        indent = line[:len(line) - len(line.lstrip())]
        lines.append(textwrap.indent(BODIES[body], indent) if line.strip() == "BODY" else line)
    text = textwrap.indent("\n".join(lines), "    ")
    return irtool.from_script(f"def f(x, a: bool, b: bool, c: bool):\n{text}\n    return y\n").graph()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("nest", NESTS)
def test_gradients_whichever_branch_is_taken(nest: str, body: str) -> None:
    graph = program(nest, body)
    executor = irtool.compile(graph)
    for a, b, c in itertools.product((True, False), repeat=3):
        wanted = np.exp(X) if TAKEN[nest](a, b, c) else np.full_like(X, 3)
        ones = [np.ones_like(X)]
        found = [irtool.vjp(graph, [X, a, b, c], ones, [0], interpret=True)[0], irtool.vjp(graph, [X, a, b, c], ones, [0])[0],
                 executor.record([X, a, b, c], [0]).backward(ones)[0]]
        for each in found:
            np.testing.assert_allclose(each, wanted, rtol=1e-5, err_msg=f"{a}, {b}, {c}")
