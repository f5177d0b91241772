"""A loop in a loop is swept again only for other types: types are those of sweeping it each time, and depth does not double the work."""
from __future__ import annotations

import random

import pytest

import irtool
from irtool.passes import propagate_shapes

STEPS = ("aten::matmul({0}, %w)", "aten::unsqueeze({0}, %zero)", "aten::eq({0}, %x)", "aten::sum({0})", "aten::mul({0}, %y)",
         "aten::tanh({0})", "aten::unsqueeze_(%u, %zero)", "aten::mul(%u, {0})", "aten::t({0})")


def nest(seed: int, depth: int) -> str:
    """Loops in loops that carry two tensors, whose dtypes and ranks change on the way."""
    choose = random.Random(seed)
    lines, closing, names = [], [], ["%x", "%y", "%u"]
    for i in range(depth):
        pad = "    " * i
        lines += [f"{pad}%r{i} : Tensor, %s{i} : Tensor = prim::Loop(%k, %true, {choose.choice(names)}, {choose.choice(names)})",
                  f"{pad}  block0(%i{i} : int, %c{i} : Tensor, %d{i} : Tensor):"]
        names += [f"%c{i}", f"%d{i}"]
        for j in range(3):
            lines.append(f"{pad}    %a{i}_{j} : Tensor = " + choose.choice(STEPS).format(choose.choice(names)))
            names.append(f"%a{i}_{j}")
        inner = [f"%r{i + 1}", f"%s{i + 1}"] if i + 1 < depth else []
        closing = [f"{pad}    -> (%true, {choose.choice(names + 3 * inner)}, {choose.choice(names + 3 * inner)})", *closing]
    types = [f"Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::{kind}(%x0)" for kind in ("tanh", "relu", "neg")]
    return "\n".join(["graph(%x0 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %k : int):",
                      "  %zero : int = prim::Constant[value=0]()", "  %true : bool = prim::Constant[value=1]()", f"  %x : {types[0]}",
                      f"  %y : {types[1]}", f"  %u : {types[2]}", "  %w : Double(2, 3) = prim::Constant[value=<Tensor>]()",
                      *(f"  {line}" for line in (*lines, *closing)), "  return (%r0, %s0)", ""])


@pytest.mark.parametrize("seed", range(60))
def test_same_types_as_sweeping_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [irtool.parse(nest(seed, 4)), irtool.parse(nest(seed, 4))]
    irtool.PassManager("propagate-shapes").run(texts[0])
    monkeypatch.setattr(propagate_shapes.Sweep, "types_read", lambda sweep, loop: [object()])
    irtool.PassManager("propagate-shapes").run(texts[1])
    assert str(texts[0]) == str(texts[1])


def test_depth_does_not_double_the_work() -> None:
    visits = []
    for depth in (8, 16):
        sweep = propagate_shapes.Sweep(irtool.parse(nest(1, depth)).graph())
        count = 0
        visit = sweep.visit

        def counted(node: irtool.Node, may_expand: bool, visit: object = visit) -> None:
            nonlocal count
            count += 1
            assert callable(visit)
            visit(node, may_expand)
        sweep.visit = counted       # type: ignore[method-assign]
        sweep.block(sweep.graph.block, True)
        visits.append(count)
    assert visits[1] < 20 * visits[0]
