"""Passes and plans leave random numbers in order: under a seed, a program of several random operators gives what the interpreter gives."""
from __future__ import annotations

import random

import numpy as np

import irtool
from tests.laws import over, seeds, ten

DRAWS = ("torch.dropout({a}, 0.5, True)", "torch.rand_like({a}) * {a}", "torch.bernoulli(torch.sigmoid({a})) + {b}",
         "torch.randn([4]) + {a}",
         "torch.normal({a}, 0.5) * {b}", "F.rrelu({a}, training=True)", "F.gumbel_softmax({a}, 1.0) + {b}", "torch.randperm(4) * {a}",
         "({a} * 1.0).normal_() + {b}")
OTHERS = ("{a} * {b}", "torch.sin({a})", "{a}.view(-1) + {b}", "torch.tanh({a}) - {b}", "{a}.t() * 2.0", "{a}.chunk(2)[0].repeat(2)")
PASSES = ("create-autodiff-subgraphs", "create-autodiff-subgraphs{threshold=1}", "create-autodiff-subgraphs{threshold=3}",
          "create-autodiff-subgraphs,inline-autodiff-subgraphs", "fuse", "cse", "remove-mutation", "batch-mm", "loop-unrolling", "peephole")
"""Passes that delete no random operators that nobody reads."""


def program(seed: int) -> str:
    """A function of x and y with four random operators or more, in branches and loops too."""
    choose = random.Random(seed)
    lines, names = ["def f(x, y, n: int):"], ["x", "y"]
    for place in range(choose.randrange(6, 11)):
        line = choose.choice(DRAWS if place % 2 else OTHERS).format(a=choose.choice(names), b=choose.choice(names))
        how = choose.randrange(8)
        if how == 0:
            lines += [f"    v{place} = {choose.choice(names)}", "    for i in range(n):", f"        v{place} = v{place} + {line}"]
        elif how == 1:
            lines += ["    if n > 1:", f"        v{place} = {line}", "    else:", f"        v{place} = {choose.choice(names)} * 1.5"]
        else:
            lines.append(f"    v{place} = {line}")
        names.append(f"v{place}")
    return "\n".join([*lines, "    return " + ", ".join(names[-3:])]) + "\n"


@over("seed", seeds(60), ten)
def test_all_ways_draw_alike(seed: int) -> None:
    source = program(seed)
    module = irtool.from_script(source)
    inputs = [np.linspace(0.1, 0.7, 4), np.linspace(-1, 1, 4), seed % 4]
    ones = [np.ones(4)] * 3
    wanted = irtool.run(module, inputs, interpret=True)[0]
    slopes = irtool.vjp(module, inputs, ones, [0, 1], interpret=True)
    for options in ({}, {"autodiff_threshold": 1}, {"autodiff_threshold": 3}, {"optimize": False}, {"profiling": True}):
        executor = irtool.compile(irtool.from_script(source), **options)
        for _ in range(2):
            record = executor.record(inputs, [0, 1])
            for got, want in ((executor.run(inputs)[0], wanted), (record.outputs[0], wanted), (record.backward(ones), slopes),
                              (executor.vjp(inputs, ones, [0, 1]), slopes)):
                for one, other in zip(got, want, strict=True):
                    np.testing.assert_allclose(0 if one is None else one, 0 if other is None else other, rtol=1e-9, err_msg=str(options))
    for names in PASSES:
        changed = irtool.from_script(source)
        irtool.PassManager(names).run(changed)
        for one, other in zip(irtool.run(changed, inputs, interpret=True)[0], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=names)
