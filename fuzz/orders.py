"""Programs about memory: tensors of two dimensions in several memory orders, parts of them, new shapes that share memory or do not, and
writes into all of these. They give the same by the reference, by executors, after passes, under transformations, and in torch; their
gradients, too.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import irtool
from fuzz import gradients, passes, programs
from fuzz.case import Case
from fuzz.judge import Skip, agree, outcome
from fuzz.laws import executed, plain
from fuzz.pipelines import apply
from fuzz.values import copied, value_of
from irtool.dispatch.transforms import vjp

VIEWS = ("{a}.t()", "{a}[:, :2]", "{a}[1:]", "{a}[::2]", "{a}[:, 0]", "{a}[0]", "{a}.unsqueeze(0)", "{a}.squeeze(0)",
         "{a}.transpose(0, -1)", "{a}.diagonal()", "{a}[None]", "{a}.movedim(0, -1)", "{a}.narrow(0, 0, 1)", "{a}.unbind(0)[0]",
         "{a}.chunk(2, -1)[0]", "{a}.swapaxes(0, -1)", "{a}.view_as({a})", "{a}.select(-1, 0)", "{a}.expand_as({b})")
SHARING = ("{a}.reshape(-1)", "{a}.flatten()", "{a}.contiguous()", "{a}.reshape([-1, 1])", "{a}.ravel()", "{a}.view(-1)",
           "{a}.flatten(0, 1)", "{a}.reshape({a}.size())", "{a}.to(torch.float64)", "{a}.reshape([1, -1])", "{a}.reshape_as({a}.t())",
           "{a}.unflatten(0, [1, -1])")
"""Results that share memory with their operand, or are copies: its memory order says which."""
NEW = ("{a} * 2", "{a} + 1", "{a} + {b}", "{b} * {a}", "torch.where({a} > 1, {a}, {b})", "{a}.clone()", "{a}.tril()", "{a}.cumsum(0)",
       "{a}.sin()", "{a} @ {b}.t()", "torch.cat([{a}, {b}])", "torch.stack([{a}, {b}])", "{a}.masked_fill({a} > 1, 0.5)", "{a}.flip(0)",
       "torch.zeros_like({a})", "torch.empty_like({a}).fill_(1)", "{a}.softmax(0)", "{a}.sum(0)", "{a}.repeat(2, 1)", "{a}.roll(1, 0)",
       "torch.addmm({a}, {a}, {b})", "{a}.index_select(0, torch.tensor([0]))", "{a}[torch.tensor([0, 0])]", "{a}.relu()",
       "{a}.scatter(0, torch.zeros([1, 1], dtype=torch.int64), 1.0)", "torch.ones_like({a}) * {b}", "torch.lerp({a}, {b}, 0.5)",
       "{a}.clamp(0.1, 2.0)", "F.pad({a}, [1, 1])", "F.linear({a}, {b})", "torch.einsum('ij,kj->ik', {a}, {b})",
       "torch.outer({a}[0], {a}[0])")
WRITES = ("{a}.mul_(2)", "{a}.add_({b})", "{a}.zero_()", "{a}.tril_()", "{a}.cumsum_(0)", "{a}[0] = 1.5", "{a}[:, 0] = 2.5",
          "{a}[..., -1] = {a}.mean()", "{a}.fill_(0.5)", "{a}.masked_fill_({a} > 1, 0.25)", "{a}.copy_({b})", "{a}.clamp_(0.2, 1.5)",
          "{a} *= 3", "{a} += {a}.mean()", "{a}.t_()", "{a}.squeeze_(0)", "{a}.unsqueeze_(0)", "{a}.sin_()", "{a}[{a} > 1] = 0.5",
          "{a}.index_fill_(0, torch.tensor([0]), 2.0)", "{a}.transpose_(0, -1)", "{a}.relu_()", "{a}.sub_({b} * 0.5)",
          "{a}.put_(torch.tensor([0]), torch.ones([1], dtype=torch.float64))",
          "{a}.scatter_(0, torch.zeros([1, 1], dtype=torch.int64), 1.0)")
ASKING = ("{a} * (1.0 if {a}.is_contiguous() else 2.0)",)
TABLES = ((VIEWS, 5), (SHARING, 5), (NEW, 5), (WRITES, 6), (ASKING, 1))
HEAD = "def f(x0: Tensor, x1: Tensor):\n    v0 = x0 * 1.25\n    v1 = x1.t() * 1.5\n"
PASSES = ("O2", "functionalize", "remove-mutation", "remove-inplace")
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "a tape": lambda f: lambda *x: vjp(f, *x)[0], "jit": irtool.jit,
    "a batch": lambda f: lambda *x: first(irtool.vmap(f)(*[each[None] for each in x])),
    "a tape in a batch": lambda f: lambda *x: first(irtool.vmap(lambda *y: vjp(f, *y)[0])(*[each[None] for each in x])),
    "tangents": lambda f: lambda *x: irtool.jvp(f, x, tuple(irtool.torch.ones_like(each) for each in x))[0],
}


def first(results: Any) -> Any:
    """The first place of a batch of one."""
    return tuple(each[0] for each in results) if isinstance(results, tuple) else results[0]


def draw(seed: int) -> Case:
    """Three to nine statements; those that fail on their own operands are left out."""
    rng = random.Random(seed)
    inputs = {"x0": f"3x4xf64~{seed % 10**6}", "x1": f"4x3xf64~{seed % 10**6 + 1}"}
    values = [irtool.torch.tensor(value_of(literal)) for literal in inputs.values()]
    names, body = ["v0", "v1"], ""
    for number in range(2, 2 + rng.randint(3, 9)):
        (table,) = rng.choices([each for each, _ in TABLES], [weight for _, weight in TABLES])
        statement = rng.choice(table).format(a=rng.choice(names), b=rng.choice(names))
        line = f"    {statement}\n" if table is WRITES else f"    v{number} = {statement}\n"
        if outcome(partial(executed(f"{HEAD}{body}{line}    return v0\n"), *values))[0] == "value":
            body += line
            names += [f"v{number}"] if table is not WRITES else []
    results = rng.sample(names, min(3, len(names)))
    ways = " ".join(rng.sample(("default", "plain", "native", "profiling", "decompiled", "text"), 2))
    return Case("orders", f"{HEAD}{body}    return {', '.join(results)},\n", inputs, {"ways": ways})


def check(case: Case, tally: Counter[str]) -> None:
    """All ways to run, passes, transformations, then gradients. Raises Wrong, Skip."""
    programs.check(case, tally)
    values = [value_of(literal) for literal in case.inputs.values()]
    module = programs.compile_source(case.text, tally)
    want = copied(outcome(partial(irtool.run, module, copied(values), interpret=True)))
    if want[0] != "value":
        raise Skip("no result")
    for step in PASSES:
        kind, changed = apply(step, str(module))
        if kind == "value":
            passes.check_results(step, changed, [values], [want])
    function, results = executed(case.text), want[1][0]
    for name, transform in TRANSFORMS.items():
        got = outcome(lambda: plain(transform(function)(*map(irtool.torch.tensor, copied(values)))))       # noqa: B023
        tally["ways"] += 1
        if got[0] == "refused":
            tally[f"refused: {name}: {got[1]}"] += 1
        else:
            agree(got, ("value", results), name)
    if all(map(gradients.is_tame, gradients.leaves(results))):
        gradients.check(replace(case, options={"ways": "vjp default"}), tally)


smaller = programs.smaller
