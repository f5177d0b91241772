"""A cotangent for one tensor of a list: the others take no part in the gradients, even where their slopes are infinite or nan.

So the gradients of the list for a cotangent of one tensor are those of the function that returns this tensor alone.
"""
from __future__ import annotations

import random

import numpy as np
import pytest

import irtool

BEGIN = """def f(x, n: int):
    a = x * 2.0
    v = torch.erfinv(x * 1.25)
    w = torch.sqrt(x) + a
    l = [a, v]
"""
STEPS = ("l = l + [w, a]", "l = [w] + l", "l = l[1:]", "l = l[:n]", "l = l[::2]", "l = l[::-1]", "l = l[-1:0:-n + 1]",
         "l = l[n - 3::n - 1]", "l = l.copy()", "l = list(l)", "l = l * 2", "l = n * l", "l.append(w)", "l.insert(1, w)", "l.reverse()",
         "l.extend([v, w])", "l[0] = w", "p = l.pop()", "l = [e * e for e in l]", "if n > 2:\n        l = l + [v]",
         "for i in range(n):\n        l.append(l[i % len(l)])")
X, COTANGENT = np.array([0.1, 0.5, 2.0, 0.0, -3.0]), np.array([1.0, 2.0, 0.5, 1.5, 1.0])


def program(seed: int) -> str:
    """A function that makes a list, by steps that are drawn, from tensors whose gradients are infinite or nan at some of `X`."""
    draw = random.Random(seed)
    return BEGIN + "".join(f"    {step}\n" for step in draw.choices(STEPS, k=draw.randint(1, 4)))


@pytest.mark.parametrize("seed", range(16))
def test_other_tensors_of_a_list_take_no_part(seed: int) -> None:
    source = program(seed)
    whole = irtool.from_script(source + "    return l\n")
    results = irtool.run(whole, [X, 3])[0]
    for place in range(len(results)):
        alone = irtool.from_script(source + f"    return l[{place}]\n")
        cotangents = [COTANGENT if each == place else None for each in range(len(results))]
        expected = irtool.vjp(alone, [X, 3], [COTANGENT], [0], interpret=True)[0]
        for interpret in (True, False, False, False):     # a plan is made, then used, then joined with that of df
            found = irtool.vjp(whole, [X, 3], cotangents, [0], interpret=interpret)[0]
            np.testing.assert_allclose(found, expected, err_msg=f"{source}, tensor {place}")


@pytest.mark.parametrize("taken", ["torch.ops.aten.std_mean(v)[0]", "torch.ops.aten.std_mean(v)[1]", "torch.ops.aten.var_mean(v)[1]",
                                   "torch.frexp(v)[0].sum()", "torch.linalg.slogdet(v.outer(v) + torch.eye(3))[1]", "v.max(0)[0]",
                                   "torch.linalg.qr(v.outer(v) + torch.eye(3))[1].sum()", "v.sort()[0][1]", "torch.lgamma(v).sum()"])
def test_a_result_that_no_round_reads(taken: str) -> None:
    """Its cotangents are a list of undefined tensors, about which a formula asks in each round."""
    module = irtool.from_script(f"def f(x: Tensor, y: Tensor):\n    z = x * 1.25\n    for v in y.unbind(0):\n        w = {taken}\n"
                                "        z = z - w\n    return (z * 0.5).sum()\n")
    values = [np.full((1, 3), -0.5), np.array([[0.25, 1.5, -2.0], [1.0, 0.5, 3.0]])]
    wanted = irtool.vjp(module, values, [np.ones(())], [0, 1], interpret=True)
    executor = irtool.compile(module)
    for _ in range(3):
        for found, expected in zip(executor.record(values, [0, 1]).backward([np.ones(())]), wanted, strict=True):
            np.testing.assert_allclose(found, expected, 1e-12)
