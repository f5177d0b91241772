"""Whatever gradients are there: specialised for it, lowered, and as it stands, a reverse graph gives the same; zeros in place of undefined
gradients change nothing but that. All on graphs without a type.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import PassManager
from irtool.execute.graph_gradients import prepared
from irtool.ir.module import Module
from irtool.ir.pair import pairs
from irtool.torchscript.front import compile_source

PROGRAMS = {
    "products": "def f(x, y):\n    a = x * y\n    return torch.sin(a) + a * x, a\n",
    "three results": "def f(x, y):\n    a = torch.exp(x)\n    b = a * y\n    return a, b, (a + b).sum()\n",
    "branches": """def f(x, y, c: bool):
    if c:
        a = torch.tanh(x * y)
        b = a * x
    else:
        b = torch.sin(y) * 2
        a = b
    return a, b * y
""",
    "a branch that has no gradient": """def f(x, y, c: bool):
    a = torch.sin(x)
    b = a
    if c:
        b = torch.ones_like(y)
    return a * b, b
""",
    "chunks": """def f(x, y):
    a, b, c = torch.chunk(x * y, 3, 1)
    return a * 2, torch.sin(b), b * c
""",
    "chunks in a branch": """def f(x, y, c: bool):
    p, q, r = torch.unbind(x * y, 1)
    a = p
    if c:
        a = torch.sin(q)
    return a * p, r
""",
    "pieces of different sizes": """def f(x, y, c: bool):
    p, q = torch.split(x, [1, 2], 1)
    a = y
    if c:
        a = y * q.sum()
    return a, torch.tanh(p)
""",
    "a piece that nobody reads": "def f(x, y):\n    p, q, r = torch.split(x * y, 1, 1)\n    return q * 2, q * p\n",
    "one element of a list": "def f(x, y):\n    p = torch.chunk(x * y, 3, 1)\n    return p[1] * y, p[0]\n",
    "statistics": "def f(x, y):\n    v, m = torch.var_mean(x * y)\n    return v, m, m * x\n",
    "sorted": "def f(x, y):\n    v, i = torch.sort(x * y, 1)\n    w, j = torch.max(v * x, 1)\n    return v, w\n",
    "normed": "def f(x, y):\n    return torch.nn.functional.layer_norm(x, [3], y[0], y[1]), torch.softmax(x * y, 1)\n",
    "lists": "def f(x, y):\n    l = [x, x * y]\n    c = torch.cat(l, 0)\n    s = torch.stack([y, c[0:2]], 0)\n    return c, s\n",
    "a list of many": """def f(x, y):
    p = torch.unbind(x * y, 1)
    q = [torch.sin(p[0]), p[0] * p[1], p[1], p[2] * p[2], p[1] + p[2]]
    return torch.stack(q, 0), torch.stack([q[1], p[1], p[0] + q[3]], 0)
""",
    "the same gradient for all": """def f(x, y):
    a = x + y
    l = [torch.sin(x), x + a, a, y + a, torch.cos(y)]
    return torch.cat(l, 0), l[1] + l[3]
""",
    "a cell": """def f(x, y):
    i, j, k = torch.chunk(torch.mm(x, y.t()) * x[0][0] + torch.cat([x, x, y], 1).mm(torch.cat([y, x, x], 1).t()), 2, 1) + [x]
    c = torch.sigmoid(i) * torch.tanh(j)
    return c, c * k[0:1, 0:1]
""".replace("i, j, k = torch.chunk(", "i, j = torch.chunk(").replace(", 2, 1) + [x]", ", 2, 1)").replace("k[0:1, 0:1]", "j"),
    "loops": """def f(x, y, c: bool):
    a = x
    for i in range(3):
        a = torch.sin(a * y)
    return a, a * x
""",
}


def reverse_graphs(name: str, order: int) -> Module:
    """The pair of a program; of its reverse graph, of `GradOf` regions, for order 2."""
    module = PassManager("differentiate", verify=True).run(Module([prepared(compile_source(PROGRAMS[name]).graph())]))
    for _ in range(order - 1):
        alone = Module([next(iter(pairs(module))).df])
        alone.graph().metadata = {}
        module = PassManager("differentiate", verify=True).run(irtool.parse(str(alone)))
    return module


def values_for(name: str, flag: bool, order: int) -> list[Any]:
    """Inputs of f; for order 2 those are gradients of everything that the first f gives, and what its reverse graph takes besides."""
    random = np.random.default_rng(5)
    inputs: list[Any] = [*random.standard_normal((2, 2, 3))]
    if "c: bool" in PROGRAMS[name]:
        inputs.append(flag)
    if order == 2:
        (pair,) = pairs(reverse_graphs(name, 1))
        outputs = irtool.run(pair.f, inputs)
        gradients = [normal(random, outputs[i]) if i < pair.real_outputs else None for i in pair.input_vjps]
        inputs = [*gradients, *[inputs[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    return inputs


def normal(random: np.random.Generator, like: Any) -> Any:
    """A random gradient for a value, a list of them for a list."""
    if isinstance(like, list):
        return [normal(random, each) for each in like]
    return None if like is None else random.standard_normal(np.shape(like))


def zeros_of(value: Any) -> Any:
    """Zeros in place of tensors."""
    if isinstance(value, list):
        return [zeros_of(each) for each in value]
    return None if value is None else np.zeros_like(value)


def flat(values: Sequence[Any]) -> list[Any]:
    """Tensors, those in lists one by one."""
    return [each for value in values for each in (flat(value) if isinstance(value, list) else [value])]


def same(one: Sequence[Any], other: Sequence[Any]) -> None:
    """The same results, undefined ones too."""
    for a, b in zip(flat(one), flat(other), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


CASES = [(name, flag) for name, text in PROGRAMS.items() for flag in ([True, False] if "c: bool" in text else [True])]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("name", "flag"), CASES)
def test_every_subset_of_gradients(name: str, flag: bool, order: int) -> None:
    module = reverse_graphs(name, order)
    (pair,) = pairs(module)
    given = values_for(name, flag, order)
    outputs = irtool.run(pair.f, given)
    random = np.random.default_rng(6)
    taken = [*[given[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    gradients = [normal(random, outputs[i]) for i in pair.input_vjps]
    pair.df.metadata = {}
    plain = str(Module([pair.df]))
    count = len(gradients)
    for number in range(2**count) if count <= 2 else random.choice(2**count, 5, replace=False):
        there = [int(number) >> place & 1 for place in reversed(range(count))]
        values = [*[gradient if flag else None for gradient, flag in zip(gradients, there, strict=True)], *taken]
        flags = ",".join("0" if value is None else "1" for value in values)
        raw = irtool.run(irtool.parse(plain), values)
        same(raw, irtool.run(PassManager("lower-grad-of", verify=True).run(irtool.parse(plain)), values))
        special = PassManager(f"specialize-undef{{defined={flags}}},dce", verify=True).run(irtool.parse(plain))
        same(raw, irtool.run(special, values))
        zeros = [zeros_of(gradient) if gradient is not None and not flag else value
                 for gradient, flag, value in zip(gradients, there, values, strict=False)]
        whole = irtool.run(irtool.parse(plain), [*zeros, *taken])
        for a, b in zip(raw, whole, strict=True):
            for one, other in zip(flat([b if a is None else a]), flat([b]), strict=True):
                if one is not None and other is not None:
                    np.testing.assert_allclose(one if a is not None else 0 * other, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known_to_be_there_is_not_asked_for(name: str) -> None:
    """Without control flow of its own, a reverse graph specialised for all gradients has none of these questions left."""
    if "bool" in PROGRAMS[name] or "p[1]" in PROGRAMS[name]:     # a list of unknown length is gone through in a loop
        return
    module = reverse_graphs(name, 1)
    (pair,) = pairs(module)
    text = str(PassManager(f"specialize-undef{{defined={','.join('1' for _ in pair.df.inputs)}}},dce").run(module).graph("df"))
    assert "NonZero" not in text and "prim::GradOf" not in text and "aten::__is" not in text


WRITES = ("a.le_(0.5)", "a.floor_()", "a.logical_not_()", "a.zero_()", "a[0] = 2.0", "a = a.detach()", "a.bernoulli_()")
READS = ("a * 2.0", "a.sum()", "torch.linalg.vector_norm(a, 2, [0])", "a[0]", "a.view(3)")
RESULTS = ("b", "(b, a)", "(a, a)", "(a, (b, a))", "((a, b), [a, b])", "((b, (b, a)), a)")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_where_no_gradient_reaches_each_call_says_the_same(write: str, read: str) -> None:
    """None, or zeros: the first call, which profiles, later ones, and the interpreter; whatever tuples the results stand in."""
    x = np.full(3, -0.5)
    for results in RESULTS:
        module = compile_source(f"def f(x, c: bool):\n    a = x * 1.25\n    {write}\n    b = {read}\n    if not c:\n        b = b.exp()\n"
                                f"    return {results}\n")
        ones = [np.ones(each.shape) for each in tensors_of(irtool.run(module, [x, False], seed=0))]
        found = [irtool.vjp(module, [x, False], ones, [0])[0] is None for _ in range(3)]
        assert len({*found, irtool.vjp(module, [x, False], ones, [0], interpret=True)[0] is None}) == 1, results


def tensors_of(value: Any) -> list[Any]:
    """The tensors in lists and tuples, in order."""
    return [each for part in value for each in tensors_of(part)] if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("call", ["a.expand_as(y)", "a.view_as(y[:1])", "a.reshape_as(y[:1])", "a.type_as(y)", "a.to(y)"])
@pytest.mark.parametrize("then", ["", "b.index_fill_(0, torch.tensor([0]), 0.5)", "b.masked_fill_(y > 0, 2.0)"])
def test_no_gradient_reaches_a_tensor_of_which_sizes_and_dtype_are_read(call: str, then: str) -> None:
    """Not even if what has its sizes shares memory with itself, which torch lets few operators write into where gradients are taken."""
    module = compile_source(f"def f(x, y):\n    a = x * 1.25\n    b = {call}\n    {then or 'pass'}\n    return b\n")
    values = [np.full((1, 3), -2.0), np.ones((3 if "masked" not in then or "expand" in call else 1, 3))]
    ones = [np.ones(irtool.run(module, values)[0].shape)]
    for interpret in (False, False, True):
        assert irtool.vjp(module, values, ones, [1], interpret=interpret) == [None]


NONE_IN_SOME_RUNS = ["torch.vander(a)", "torch.vander(a[:1])", "torch.linalg.norm(a, r)", "torch.linalg.vector_norm(a, r)",
                     "torch.norm(a, r)", "F.pairwise_distance(a, a * 2, r)", "torch.dist(a, a * 2, r)", "a.renorm(r + 1, 0, 1.5)",
                     "torch.linalg.norm(a.outer(a), r)"]


@pytest.mark.parametrize("call", NONE_IN_SOME_RUNS)
@pytest.mark.parametrize("write", ["pass", "for i in range(1):\n        a.fill_(r)\n        torch.ops.aten.not_equal_(a, 0.5)",
                                   "if r < 0:\n        a = (a * 2j).real", "a = a * torch.ones(1, dtype=torch.float32)",
                                   "if r < 5:\n        a = a.to(torch.float32)"])
def test_formulas_may_give_no_gradient(call: str, write: str) -> None:
    """Whatever is to be made of the gradient: the conjugate, the real part, another dtype."""
    module = compile_source(f"def f(x, r: float):\n    a = x * 1.25\n    {write}\n    b = {call}\n    return (b * 0.5).sum()\n")
    for values in ([np.zeros(0), 0.0], [np.full(1, 0.75), 0.0], [np.full(1, 0.75) + 0.5j, 0.0], [np.array([0.5, 2.0]), 1.0]):
        try:
            (cotangent,) = [np.ones_like(each) for each in irtool.run(module, values, interpret=True)]
            wanted, *found = [irtool.vjp(module, values, [cotangent], [0], interpret=each)[0] for each in (True, False, False)]
        except irtool.Error as error:
            assert "NoneType" not in str(error)
            continue
        for each in found:
            np.testing.assert_allclose(np.zeros(1) if each is None else each, np.zeros(1) if wanted is None else wanted)
