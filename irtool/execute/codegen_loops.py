"""Products in a loop that depend on the round only by which row block they read are made at once, before the loop.

`x[t] @ w` for every `t` is `x @ w`, of which each round reads its part: one large product instead of many small ones. Sums are those of
the small products up to rounding.
"""
from __future__ import annotations

import operator

import numpy as np

from irtool.execute.codegen_layout import Meta, contiguous_strides, fresh_meta
from irtool.execute.codegen_program import Branch, Call, Known, Lowered, Program, Repeat, Variable, Visit
from irtool.execute.codegen_siblings import Uses

MOST = 1 << 25
"""Bytes of the large product; beyond that memory is worth more."""
FEWEST = 4
"""Rounds from which it pays."""


def hoist_products(program: Program) -> None:
    """Rewrite the loops of a program whose number of rounds is known."""
    if not any(isinstance(each, Repeat) for each in program.body.instructions):
        return
    uses = Uses(program)
    for block in list(uses.blocks):
        found: list[Repeat] = [each for each in block.instructions if isinstance(each, Repeat)]
        for loop in found:
            if isinstance(loop.limit, Known) and type(loop.limit.value) is int and loop.limit.value >= FEWEST and always(loop):
                at = block.instructions.index(loop)
                block.instructions[at:at] = products_of(program, loop, loop.limit.value, uses)


def always(loop: Repeat) -> bool:
    """Does only the count end it?"""
    return all(isinstance(each, Known) and each.value is True for each in (loop.condition, loop.body.results[0]))


def products_of(program: Program, loop: Repeat, rounds: int, uses: Uses) -> list[Call]:
    """What goes in front of a loop; in the loop, views take the places of products."""
    inside = made_in(loop.body) | {loop.counter, *loop.carried}
    body = loop.body.instructions
    views = {each.out: each for each in body if isinstance(each, Call) and each.function is operator.getitem and each.way == "view"}
    before: list[Call] = []
    dead: list[Call] = []
    for place, call in enumerate(body):
        if not isinstance(call, Call) or call.function is not np.dot or call.way != "out" or len(call.args) != 2 or call.named:
            continue
        part, weight = call.args
        view = views.get(part) if isinstance(part, Variable) else None
        if view is None or not isinstance(weight, Variable) or weight in inside or call.out.meta is None or part.meta is None:
            continue
        x, index = view.args[0], view.args[1] if isinstance(view.args[1], tuple) else (view.args[1],)
        if not isinstance(x, Variable) or x in inside or x.meta is None or index[:1] != (loop.counter,):
            continue
        shape = x.meta.shape
        if len(shape) != 3 or any(each is not Ellipsis for each in index[1:]) or shape[0] != rounds or part.meta.shape != shape[1:] \
                or x.meta.strides != contiguous_strides(shape, x.meta.dtype.itemsize):
            continue
        if not uses.written.isdisjoint(x.roots | weight.roots) or call.out.meta.nbytes * rounds > MOST or is_looked_into(call.out, loop):
            continue
        rows, columns = call.out.meta.shape
        flat = new(program, fresh_meta(x.meta.dtype, (rounds * rows, shape[2])), x)
        product = new(program, fresh_meta(x.meta.dtype, (rounds * rows, columns)))
        parts = new(program, fresh_meta(x.meta.dtype, (rounds, rows, columns)), product)
        before += [Call(np.ndarray.reshape, (x, flat.meta.shape if flat.meta else ()), {}, flat, "view", call.node),
                   Call(np.dot, (flat, weight), {}, product, "out", call.node),
                   Call(np.ndarray.reshape, (product, (rounds, rows, columns)), {}, parts, "view", call.node)]
        call.out.roots = product.roots
        if uses.calls.get(view.out) == [call] and view.out not in uses.others:
            dead.append(view)
        body[place] = Call(operator.getitem, (parts, loop.counter), {}, call.out, "view", call.node)
    loop.body.instructions = [each for each in body if each not in dead]
    return before


def new(program: Program, meta: Meta, looks_into: Variable | None = None) -> Variable:
    """A variable more."""
    program.variables += 1
    return Variable(program.variables - 1, meta, None if looks_into is None else looks_into.roots)


def made_in(lowered: Lowered) -> set[Variable]:
    """All that a block makes."""
    found: set[Variable] = set()
    for each in lowered.instructions:
        if isinstance(each, Call):
            if each.way != "into":
                found.add(each.out)
        elif isinstance(each, Branch):
            found.update(each.outs, *[made_in(block) for block in each.blocks])
        elif isinstance(each, Repeat):
            found.update(each.carried, made_in(each.body))
        elif isinstance(each, Visit):
            found.update(each.outs)
    return found


def is_looked_into(variable: Variable, loop: Repeat) -> bool:
    """Does anything else see the memory of a product: a view, or what goes around the loop?"""
    if any(variable in each.roots for each in made_in(loop.body) | set(loop.carried) if each is not variable):
        return True
    return any(isinstance(each, Call) and each.way == "into" and variable in each.out.roots for each in loop.body.instructions)


__all__ = ["hoist_products"]
