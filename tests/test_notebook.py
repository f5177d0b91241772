"""The golden table of simple_functorch: numbers and what the layers print, with the notebook's own primitives."""
from __future__ import annotations

import re

import numpy as np
import pytest
from notebook import Notebook

from irtool.dispatch import Autograd, Backend, Batched, Logger
from irtool.ops.tensor import Tensor

A = np.array([0.496256590, 0.768221796, 0.0884774327, 0.132030487])
B = np.array([0.307422817, 0.634078681, 0.490093410, 0.896444738])
VA = np.array([[0.455627978, 0.632306278, 0.348893464, 0.401717305], [0.0223257542, 0.168858945, 0.293888450, 0.518521786]])
VB = np.array([[0.697667599, 0.800011396, 0.161029458, 0.282268584], [0.681608558, 0.915193975, 0.397099912, 0.874155879]])


def torch():
    return Backend("Torch", Notebook())


def do(layer, kind, *args):
    return layer.call(kind, args, {})


def total(layer, x):
    return do(layer, "sum", x, tuple(range(x.ndim)))


def simple(layer, a, b):
    return do(layer, "mul", do(layer, "add", a, b), b)


def squares(layer, a, b):
    return total(layer, do(layer, "add", do(layer, "mul", a, a), do(layer, "mul", b, b)))


def gradients(layer, loss, wanted):
    """By a seed of ones in the view of the layer below."""
    seed = do(layer.below, "ones", tuple(layer.opened(loss).shape))
    return layer.gradients([loss], [seed], wanted)


def bottom(value):
    while not isinstance(value, Tensor) or hasattr(value, "value"):
        value = value.value
    return value.array


def normalised(lines):
    """Names by first appearance."""
    names: dict[str, str] = {}
    return [re.sub(r"(?<![A-Za-ce-z])v\d+\b", lambda m: names.setdefault(m.group(), f"x{len(names)}"), line) for line in lines]


def close(value, wanted):
    np.testing.assert_allclose(bottom(value), wanted, atol=6e-5)


def test_logger(expect):
    lines = []
    layer = Logger(torch(), "Torch", lines.append)
    close(do(layer, "add", do(layer, "ones", (2,)), do(layer, "ones", (2,))), [2, 2])
    expect("\n".join(normalised(lines)) + "\n")


def test_first_order(expect):
    lines = []
    layer = Autograd(torch(), write=lines.append)
    a, b = layer.variable(Tensor(A)), layer.variable(Tensor(B))
    da, db = gradients(layer, simple(layer, a, b), [a, b])
    close(da, B)
    close(db, [1.1111, 2.0364, 1.0687, 1.9249])
    expect("\n".join(normalised(lines)) + "\n")


def test_create_graph(expect):
    lines = []
    layer = Autograd(torch(), create_graph=True, write=lines.append)
    a, b = layer.variable(Tensor(A)), layer.variable(Tensor(B))
    da, db = gradients(layer, total(layer, simple(layer, a, b)), [a, b])
    dda, ddb = gradients(layer, squares(layer, da, db), [a, b])
    close(dda, [2.2222, 4.0728, 2.1373, 3.8498])
    close(ddb, [5.0593, 9.4137, 5.2548, 9.4926])
    kinds = [[line.split(" = ")[1] for line in part.splitlines() if " = " in line] for part in re.split(r"-- .*|-{24}", "\n".join(lines))]
    assert [len(part) for part in kinds] == [3, 5, 4, 18, 0]
    expect("\n".join(normalised(lines)) + "\n")


def test_two_tapes(expect):
    lines = []
    one = Autograd(Logger(torch(), "Torch", lines.append), "Autograd1", write=lines.append)
    two = Autograd(one, "Autograd2", write=lines.append)
    a, b = one.variable(Tensor(A)), one.variable(Tensor(B))
    a2, b2 = two.variable(a), two.variable(b)
    da, db = gradients(two, total(two, simple(two, a2, b2)), [a2, b2])
    dda, ddb = gradients(one, squares(one, da, db), [a, b])
    close(dda, [2.2222, 4.0728, 2.1373, 3.8498])
    close(ddb, [5.0593, 9.4137, 5.2548, 9.4926])
    second = lines[max(i for i, line in enumerate(lines) if line.startswith("--") and "Autograd1" in line):]
    assert sum(line.startswith("  Torch") for line in second) == 24 and any("* 1.0" in line for line in second)
    expect("\n".join(normalised(lines)) + "\n")


DVA = [[3.7019, 4.4647, 1.3419, 1.9325], [2.7711, 3.9985, 2.1762, 4.5337]]
DVB = [[8.7992, 10.5293, 3.0059, 4.4296], [6.9054, 9.8274, 5.1466, 10.8156]]


def test_batched_between_tapes(expect):
    lines = []
    one = Autograd(torch(), "Autograd1", write=lines.append)
    two = Batched(one, 2, "Batched2")
    three = Autograd(two, "Autograd3", write=lines.append)
    va, vb = one.variable(Tensor(VA)), one.variable(Tensor(VB))
    a, b = three.variable(two.box(va)), three.variable(two.box(vb))
    da, db = gradients(three, total(three, simple(three, a, b)), [a, b])
    da, db = two.whole(da), two.whole(db)
    dva, dvb = gradients(one, squares(one, da, db), [va, vb])
    close(dva, DVA)
    close(dvb, DVB)
    expect("\n".join(normalised(lines)) + "\n")


def test_one_tape_below_the_batch():
    """The notebook's exercise: one Autograd below Batched, with create_graph."""
    one = Autograd(torch(), create_graph=True)
    two = Batched(one, 2)
    va, vb = one.variable(Tensor(VA)), one.variable(Tensor(VB))
    losses = total(two, simple(two, two.box(va), two.box(vb)))
    da, db = gradients(one, total(one, two.whole(losses)), [va, vb])
    dva, dvb = gradients(one, squares(one, da, db), [va, vb])
    close(dva, DVA)
    close(dvb, DVB)


def test_two_batches():
    x = Tensor(np.zeros((3, 4, 5)))
    one = Batched(torch(), 3)
    two = Batched(one, 4)
    found = one.whole(two.whole(do(two, "unsqueeze", two.box(one.box(x)), 0)))
    assert found.shape == [3, 4, 1, 5]


def test_operands_without_the_dimension_are_lifted():
    rng = np.random.default_rng(0)
    w, b, x = rng.random((2, 3)), rng.random(3), rng.random(3)
    layer = Batched(torch(), 2)
    found = layer.whole(do(layer, "add", do(layer, "mul", layer.box(Tensor(w)), Tensor(x)), Tensor(b)))
    np.testing.assert_allclose(bottom(found), w * x[None] + b[None])


def f_fwd(layer, x):
    return do(layer, "mul", x, x), x


def f_bwd(layer, g, x):
    return [do(layer, "mul", do(layer, "mul", g, x), 32.0)]


def wrong(layer, *args):
    """x * x with a backward that is 16 times too large."""
    from irtool.dispatch import current

    def f_fwd(x):
        return do(current(), "mul", x, x), x

    def f_bwd(g, x):
        return [do(current(), "mul", do(current(), "mul", g, x), 32.0)]
    return layer.custom_vjp(f_fwd, f_bwd, args)[0]


def test_custom_vjp(expect):
    lines = []
    layer = Autograd(torch(), write=lines.append)
    a = layer.variable(Tensor(A))
    with layer:
        (da,) = gradients(layer, total(layer, wrong(layer, a)), [a])
    close(da, 32 * A)
    expect("\n".join(normalised(lines)) + "\n")


def test_custom_vjp_under_two_tapes(expect):
    lines = []
    one = Autograd(Logger(torch(), "Torch", lines.append), "Autograd1", write=lines.append)
    two = Autograd(one, "Autograd2", write=lines.append)
    a = one.variable(Tensor(A))
    a2 = two.variable(a)
    with two:
        (da,) = gradients(two, total(two, wrong(two, a2)), [a2])
    close(da, 32 * A)
    with one:
        (dda,) = gradients(one, total(one, da), [a])
    close(dda, np.full(4, 32.0))
    expect("\n".join(normalised(lines)) + "\n")


def test_custom_vjp_under_a_batch(expect):
    lines = []
    one = Autograd(torch(), "Autograd1", write=lines.append)
    two = Batched(one, 2)
    va = one.variable(Tensor(VA))
    with two:
        losses = total(two, wrong(two, two.box(va)))
    with one:
        (dva,) = gradients(one, total(one, two.whole(losses)), [va])
    close(dva, 32 * VA)
    assert any("custom_vjp(new_fn, new_fn, " in line for line in lines)
    expect("\n".join(normalised(lines)) + "\n")


def test_mixing_trees_is_an_error():
    import irtool

    base = torch()
    one, two = Batched(base, 2), Batched(base, 2)
    with pytest.raises(irtool.Error, match="incompatible dispatcher trees"):
        do(one, "add", one.box(Tensor(np.ones((2, 3)))), two.box(Tensor(np.ones((2, 3)))))


# -- the same numbers with the library's own stanzas
def simple_of(a, b):
    return (a + b) * b


def test_the_numbers_with_the_library():
    import irtool

    def loss(a, b):
        return simple_of(a, b).sum()

    def second(a, b):
        da, db = irtool.grad(loss, (0, 1))(a, b)
        return (da * da + db * db).sum()

    def batched(a, b):
        da, db = irtool.vmap(irtool.grad(loss, (0, 1)))(a, b)
        return (da * da + db * db).sum()

    da, db = irtool.grad(loss, (0, 1))(A, B)
    close(da, B)
    close(db, [1.1111, 2.0364, 1.0687, 1.9249])
    dda, ddb = irtool.grad(second, (0, 1))(A, B)
    close(dda, [2.2222, 4.0728, 2.1373, 3.8498])
    close(ddb, [5.0593, 9.4137, 5.2548, 9.4926])
    dva, dvb = irtool.grad(batched, (0, 1))(VA, VB)
    close(dva, DVA)
    close(dvb, DVB)
