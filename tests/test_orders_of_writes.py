"""A write leaves a tensor in its memory order: what reshapes it later shares its memory, or does not, whatever took the place of the write
on tapes, in batches and after passes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.transforms import vjp
from irtool.ir.schema import schemas
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.facts import facts_of_overload, lies_as_first
from tests.test_result_layouts import SAMPLED, reordered

torch = irtool.torch
X = np.arange(12.0).reshape(2, 2, 3) / 8 + 0.1
ONE = "torch.ones({}, dtype=torch.float64)"
PLACE, ZERO = "torch.tensor([0])", "torch.zeros([1, 1], dtype=torch.int64)"
WRITES = (
    "tril_()", "triu_(1)", "cumsum_(0)", "cumprod_(1)", "renorm_(2, 0, 1.0)", "mvlgamma_(1)", "mul_(2)", "sigmoid_()", "fill_(2)",
    "zero_()", "pow_(2)", "clamp_(0, 1)", f"scatter_(0, {ZERO}, 1.0)", f"scatter_add_(0, {ZERO}, {ONE.format([1, 1])})",
    f"index_fill_(0, {PLACE}, 1.0)", f"put_({PLACE}, {ONE.format([1])})", "polygamma_(1)",
    "nan_to_num_()", f"atan2_({ONE.format([1])})", f"lerp_({ONE.format([1])}, 0.5)",
    "sgn_()", "masked_fill_(v{part} > 0.3, 1.0)", f"masked_scatter_(v{{part}} > 0.3, {ONE.format([6])})", "copy_(v{part} * 1 + 1)",
    "addcmul_(v{part} + 1, v{part} + 1)", f"index_add_(0, {PLACE}, v{{part}}[:1] + 1)", f"index_copy_(0, {PLACE}, v{{part}}[:1] + 1)",
    f"index_put_([{PLACE}], {ONE.format([1])})", "logical_not_()", "bernoulli_(0.0)",
)
PARTS = ("", "[1:]", "[:, :1]")
TAILS = {"itself": "w = v.reshape(-1)\n    w.mul_(3)\n    return v",
         "computed": "u = v + 1\n    w = u.reshape(-1)\n    w.mul_(3)\n    return u",
         "the result of the write": "w = r.reshape(-1)\n    w.mul_(3)\n    return r"}
HEADS = {"by columns": "v = x.t() * 2", "a view of what lies by rows": "v = (x * 2).t()",
         "by columns, written before": "v = x.t() * 2\n    v.triu_(-1)"}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "a tape": lambda f: lambda x: vjp(f, x)[0], "a batch": lambda f: lambda x: irtool.vmap(f, randomness="same")(x[None])[0],
    "jit": irtool.jit,
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[0],
    "a tape in a batch": lambda f: lambda x: irtool.vmap(lambda each: vjp(f, each)[0], randomness="same")(x[None])[0],
    "a batch on a tape": lambda f: lambda x: vjp(irtool.vmap(f, randomness="same"), x[None])[0][0],
}


def source(head: str, write: str, part: str, tail: str) -> str:
    return f"def f(x):\n    {HEADS[head]}\n    r = v{part}.{write.format(part=part)}\n    {TAILS[tail]}\n"


@pytest.mark.parametrize("write", WRITES)
def test_of_functions(write: str) -> None:
    x = torch.tensor(X[0])
    for head in HEADS:
        for part in PARTS:
            text, space = source(head, write, part, "itself"), {"torch": torch}
            exec(text, space)
            try:
                want = np.asarray(space["f"](x))
            except irtool.Error:
                continue
            for name, transform in TRANSFORMS.items():
                try:
                    got = np.asarray(transform(space["f"])(x))
                except irtool.UnsupportedError:
                    continue
                np.testing.assert_allclose(got, want, err_msg=f"{name}\n{text}")


WAYS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "plans": lambda module, inputs: [irtool.run(module, inputs)[0] for _ in range(3)][-1],
    **{name: lambda module, inputs, name=name: irtool.run(irtool.PassManager(name).run(module), inputs, interpret=True)[0]
       for name in ("remove-mutation", "remove-inplace", "functionalize", "O2")},
}


@pytest.mark.parametrize("write", WRITES)
def test_of_graphs(write: str) -> None:
    """Also their gradients: of `w.mul_(3)`, which tells."""
    inputs = [X[0]]
    for part, tail, head in (("", "itself", "by columns"), ("", "computed", "by columns"), ("[1:]", "itself", "by columns"),
                             ("", "itself", "by columns, written before"), ("", "the result of the write", "by columns")):
        text = source(head, write, part, tail)
        try:
            want = irtool.run(irtool.from_script(text), inputs, interpret=True)[0]
        except irtool.Error:
            continue
        for name, way in WAYS.items():
            np.testing.assert_allclose(way(irtool.from_script(text), inputs), want, err_msg=f"{name}\n{text}")
        try:
            space: dict[str, Any] = {"torch": torch}
            exec(text, space)
            _, back = vjp(space["f"], torch.tensor(X[0]))
            slope, ones = np.asarray(back(torch.ones(3, 2, dtype=torch.float64))[0]), [np.ones((3, 2))]
            found = [irtool.vjp(irtool.from_script(text), inputs, ones, [0], interpret=each)[0] for each in (True, False)]
        except irtool.UnsupportedError:
            continue
        for each in found:
            np.testing.assert_allclose(np.zeros((2, 3)) if each is None else each, slope, err_msg=text)


@pytest.mark.parametrize("asked", ["p.is_contiguous()", "p.stride()[0] > 1", "torch.ops.aten.is_non_overlapping_and_dense(p)"])
@pytest.mark.parametrize("part", ["v[:, :2]", "v[::2]", "v.t()", "v.diagonal()", "v[0]", "v[:, 1]", "v"])
def test_of_graphs_that_ask(part: str, asked: str) -> None:
    inputs = [np.arange(12.0).reshape(3, 4)]
    for head in HEADS.values():
        text = f"def f(x):\n    {head}\n    p = {part}\n    p.mul_(2)\n    return p + (1 if {asked} else 2)\n"
        want = irtool.run(irtool.from_script(text), inputs, interpret=True)[0]
        for name, way in WAYS.items():
            np.testing.assert_array_equal(way(irtool.from_script(text), inputs), want, name)


@pytest.mark.parametrize("told,lines", [
    (False, "u = x.reshape(-1)\n    return v, u"),
    (False, "u = v.max(0)[0].reshape(-1)\n    return v, u"),
    (False, "u = torch.tril(v).reshape(-1)\n    return v, u"),
    (True, "u = v.reshape(-1)\n    return v, u"),
    (True, "u = (v + 1).reshape(-1)\n    return v, u"),
    (True, "u = x.max(0)[0].reshape(-1)\n    return v.t().reshape(-1), u"),
    (True, "u = r.reshape(-1)\n    return v, u"),
    (True, "u = [v]\n    return u[0].reshape(-1), u"),
    (True, "u = [x]\n    u.append(v)\n    return u[1].reshape(-1), u"),
    (True, "u = {0: x}\n    u[0] = v\n    return u[0].reshape(-1), u"),
    (True, "u = v\n    for i in range(3):\n        u = u + 1\n    return u.reshape(-1), v"),
    (True, "u = x\n    for i in range(3):\n        if i == 1:\n            u = v\n    return u.reshape(-1), v"),
    (True, "u, s = x, x\n    for i in range(3):\n        s = u.reshape(-1)\n        u = v\n    return s, v"),
])
def test_a_copy_keeps_the_order_where_a_reader_of_the_tensor_can_tell(told: bool, lines: str) -> None:
    text = f"def f(x):\n    v = x.t() * 2\n    r = v.tril_()\n    {lines}\n"
    module = irtool.PassManager("remove-mutation").run(irtool.from_script(text))
    assert "aten::tril(" in str(module)
    assert ("aten::copy(" in str(module)) == told, module


def alike(result: Any, operand: Any) -> bool:
    """Do two arrays lie alike, but for dimensions of one element?"""
    return all(one // result.itemsize == other // operand.itemsize
               for size, one, other in zip(operand.shape, result.strides, operand.strides) if size > 1)


@pytest.mark.parametrize("letter", sorted({name.removeprefix("aten::")[0] for name in SAMPLED}))
def test_what_is_said_to_lie_as_its_first_operand_does(letter: str) -> None:
    for name in SAMPLED:
        kind = name.partition(".")[0]
        if name.removeprefix("aten::")[0] != letter or not schemas(f"{kind}_") or not lies_as_first(kind, facts_of_overload(name)):
            continue
        text = dict(zip(OPS[name].names, OPS[name].schemas))[name]
        for sample in OPS[name].samples[name]:
            args = sample.arguments(text)
            place = next((place for place, each in enumerate(args) if isinstance(each, np.ndarray)), None)
            for axes in ((-1, -2), (0, 1), (0, -1)) if place is not None else ():
                moved = [reordered(each, axes) if at == place else each for at, each in enumerate(args)]
                try:
                    result = call_op(name, moved)
                except irtool.Error:
                    continue
                assert result.shape != moved[place].shape or alike(result, moved[place]), (name, axes)
