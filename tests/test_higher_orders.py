"""Gradients of gradients: of reverse graphs as they come, through every vjp of a pair, against torch's autograd."""
from __future__ import annotations

import numpy as np
import pytest
from tape import orders

import irtool
from irtool import PassManager
from irtool.ir.module import Module
from irtool.torchscript.front import compile_source

PROGRAMS = {
    "straight": """def f(x, y, c: bool):
    a = torch.sin(x * y)
    return a * torch.tanh(a * x)
""",
    "branch": """def f(x, y, c: bool):
    if c:
        a = torch.tanh(x * y)
        b = a * x
    else:
        b = torch.sin(y) * x
    return b * y
""",
    "nested": """def f(x, y, c: bool):
    z = x * y
    if c:
        a = torch.exp(z)
        if bool(z.sum() > 0):
            b = a * torch.sin(a) * x
        else:
            b = torch.cos(z * a)
        r = b * a
    else:
        r = torch.sigmoid(z)
    return r * r
""",
    "one value twice": """def f(x, y, c: bool):
    if c:
        a = torch.exp(x)
        r = a
        s = a
    else:
        r = x
        s = torch.sin(x) * y
    return r * s * y
""",
    "more saved in one branch": """def f(x, y, c: bool):
    r = x
    if c:
        a = torch.sin(x * y)
        b = torch.cos(a * x)
        d = torch.tanh(a * b)
        r = a * b * d
    elif bool(x.sum() > 100):
        r = y
    return (r * x).sum() * r
""",
}


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["modern", "2018"])
@pytest.mark.parametrize("taken", [True, False], ids=["then", "else"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_orders_are_those_of_autograd(name: str, taken: bool, form: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    x, y, *seeds = rng.standard_normal((6, 2, 3))
    seeds = seeds[:3 if name == "nested" else 4]
    space = {"torch": torch}
    exec(PROGRAMS[name], space)
    wrt = [torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)]
    values = [space["f"](*wrt, taken)]
    found = orders(compile_source(PROGRAMS[name]).graph(), [x, y, taken], seeds, form == "modern")
    for seed, got in zip(seeds, found, strict=True):
        total = sum((value * torch.tensor(seed)).sum() for value in values)
        values = torch.autograd.grad(total, wrt, create_graph=True, allow_unused=True) if total.requires_grad else [None, None]
        values = [torch.zeros_like(of) if value is None else value for value, of in zip(values, wrt, strict=True)]
        for one, other in zip(got, values, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-9, atol=1e-9)


def test_reverse_graphs_differentiate_as_they_come() -> None:
    """`GradOf` regions and all, three times over; what a region saved is there only where it ran."""
    module = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::mul(%x, %y)\n  %2 : Tensor = aten::sin(%1)\n"
                          "  return (%2)\n")
    names = ["f", "df", "ddf", "dddf"]
    for order in range(3):
        module = PassManager("differentiate", verify=True).run(module)
        assert module.names() == names[order:order + 2]
        alone = Module([module.graph(names[order + 1])])
        alone.graph().metadata = {}
        module = irtool.parse(str(alone))
    x, y, g = np.array([1.0, 2.0]), np.array([3, 0.5]), np.array([1.0, -1.0])
    pair = PassManager("differentiate").run(irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::mul(%x, %y)\n"
                                                         "  %2 : Tensor = aten::sin(%1)\n  return (%2)\n"))
    df = pair.graph("df")
    df.metadata = {}
    found = irtool.vjp(df, [g, None, x, y, x * y], [np.ones(2), None], [0, 3, 4])
    np.testing.assert_allclose(found[0], np.cos(x * y) * y)
    np.testing.assert_allclose(found[1], g * np.cos(x * y))
    np.testing.assert_allclose(found[2], -g * y * np.sin(x * y))
    assert irtool.vjp(df, [None, None, x, y, x * y], [None, None], [3])[0].tolist() == [0, 0]


OPERATORS = ["torch.softmax(x, 1)", "torch.nn.functional.layer_norm(x, [3], y[0], y[1])", "torch.var(x, 1) * torch.std(y, 1)",
             "torch.nn.functional.scaled_dot_product_attention(x[None], y[None], x[None])", "torch.linalg.eigvalsh(torch.mm(x, x.t()))",
             "torch.linalg.solve(torch.mm(x, y.t()), x)",
             "torch.nn.functional.batch_norm(torch.cat([x, y], 0), None, None, y[0], None, True, 0.1, 1e-5)",
             "torch.nn.functional.conv1d(x[None], y[None, :, 0:2])", "torch.nn.functional.group_norm(x, 3, y[0], y[1])"]


@pytest.mark.oracle
@pytest.mark.parametrize("expression", OPERATORS)
def test_orders_of_operators(expression: str) -> None:
    """What a formula saves has gradients too, where it depends on the arguments in other ways than the results do."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((2, 2, 3))
    seeds = rng.standard_normal(3)
    space = {"torch": torch}
    source = f"def f(x, y):\n    return {expression} * 1.5\n"
    exec(source, space)
    wrt = [torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)]
    values = [space["f"](*wrt)]
    for seed, got in zip(seeds, orders(compile_source(source).graph(), [x, y], list(seeds)), strict=True):
        total = sum((value * seed).sum() for value in values)
        values = torch.autograd.grad(total, wrt, create_graph=True, allow_unused=True) if total.requires_grad else [None, None]
        values = [torch.zeros_like(of) if value is None else value for value, of in zip(values, wrt, strict=True)]
        for one, other in zip(got, values, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-7, atol=1e-8)
