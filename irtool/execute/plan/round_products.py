"""Matrix products in a loop that differ between rounds only in the row block that they read are computed for several rounds at once.

For consecutive `t`, the products `x[t] @ w` are row blocks of one product `x[t:t + n] @ w`, of which each of those rounds reads its
block: a few larger products instead of many small ones, and hardly more memory. Results are those of the small products up to rounding.
"""
from __future__ import annotations

import operator

from irtool.execute.plan.batch_slices import Uses
from irtool.execute.plan.program import Branch, Call, Item, Known, Lowered, Program, Repeat, Variable, Visit, leaves
from irtool.execute.plan.python_source import all_reads
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, fresh_meta

ROWS = 8
"""Rows of a product from which a second one costs as much again."""
MORE_ROWS = 16
"""The same where the right factor is larger than `NEAR`, since that is read again for each product."""
NEAR = 1 << 17
"""Bytes that stay near the processor."""


def hoist_products(program: Program) -> None:
    """Rewrite the loops of a program whose number of rounds is known."""
    if not any(isinstance(each, Repeat) for each in program.body.instructions):
        return
    uses = Uses(program)
    for block in list(uses.blocks):
        for loop in [each for each in block.instructions if isinstance(each, Repeat)]:
            rounds = loop.rounds
            if rounds is not None:
                rounds_of = {call: rounds_at_once(call, part, rounds) for call, part in products_of(loop, rounds, uses)}
                at_once = min([each for each in rounds_of.values() if each > 1], default=1)
                if at_once > 1:
                    calls = [call for call, each in rounds_of.items() if each > 1]
                    block.instructions[block.instructions.index(loop)] = in_chunks(program, loop, calls, at_once, uses)


def products_of(loop: Repeat, rounds: int, uses: Uses) -> list[tuple[Call, Meta]]:
    """The products of a loop that are rows of one product, each with the facts of its left factor."""
    inside = defined_in(loop.body) | {loop.counter, *loop.carried}
    body = loop.body.instructions
    views = {each.out: each for each in body if isinstance(each, Call) and each.function is operator.getitem and each.way == "view"}
    products: list[tuple[Call, Meta]] = []
    for call in body:
        if not isinstance(call, Call) or call.function not in (np.dot, np.matmul) or call.way != "out" or len(call.args) != 2 or call.named:
            continue
        part, weight = call.args
        view = views.get(part) if isinstance(part, Variable) else None
        if view is None or not isinstance(weight, Variable) or weight in inside or weight.meta is None or len(weight.meta.shape) != 2 \
                or call.out.meta is None or part.meta is None:
            continue
        x, index = view.args[0], view.args[1] if isinstance(view.args[1], tuple) else (view.args[1],)
        if not isinstance(x, Variable) or x in inside or x.meta is None or index[:1] != (loop.counter,):
            continue
        shape = x.meta.shape
        if len(shape) != 3 or any(each is not Ellipsis for each in index[1:]) or shape[0] != rounds or part.meta.shape != shape[1:] \
                or x.meta.strides != contiguous_strides(shape, x.meta.dtype.itemsize):
            continue
        if uses.written.isdisjoint(x.roots | weight.roots) and not is_looked_into(call.out, loop):
            products.append((call, weight.meta))
    return products


def rounds_at_once(call: Call, weight: Meta, rounds: int) -> int:
    """For how many rounds a product is computed at once: a divisor of the number of rounds."""
    assert call.out.meta is not None
    most = (ROWS if weight.nbytes <= NEAR else MORE_ROWS) // max(call.out.meta.shape[0], 1)
    return max([each for each in range(1, most + 1) if rounds % each == 0], default=1)


def in_chunks(program: Program, loop: Repeat, calls: list[Call], at_once: int, uses: Uses) -> Repeat:
    """The loop as two nested loops: the outer one computes the products, the inner one reads blocks of them."""
    assert isinstance(loop.limit, Known)
    chunks = loop.limit.value // at_once
    outer, chunk, place = Lowered(), new(program), new(program)
    body = loop.body.instructions
    dead: list[Call] = []
    for call in calls:
        view = next(each for each in body if isinstance(each, Call) and each.out is call.args[0])
        x, weight = view.args[0], call.args[1]
        assert x.meta is not None and call.out.meta is not None
        rows, columns = call.out.meta.shape
        all_rows = new(program, fresh_meta(x.meta.dtype, (chunks, at_once * rows, x.meta.shape[2])), x)
        some = new(program, fresh_meta(x.meta.dtype, (at_once * rows, x.meta.shape[2])), x)
        product = new(program, fresh_meta(x.meta.dtype, (at_once * rows, columns)))
        parts = new(program, fresh_meta(x.meta.dtype, (at_once, rows, columns)), product)
        assert all_rows.meta is not None and parts.meta is not None
        outer.instructions += [Call(np.ndarray.reshape, (x, all_rows.meta.shape), {}, all_rows, "view", call.node),
                               Call(operator.getitem, (all_rows, chunk), {}, some, "view", call.node),
                               Call(np.dot, (some, weight), {}, product, "out", call.node),
                               Call(np.ndarray.reshape, (product, parts.meta.shape), {}, parts, "view", call.node)]
        call.out.roots = product.roots
        if uses.calls.get(view.out) == [call] and view.out not in uses.others:
            dead.append(view)
        body[body.index(call)] = Call(operator.getitem, (parts, place), {}, call.out, "view", call.node)
    inner = Lowered()
    inner.instructions = [each for each in body if each not in dead]
    inner.results = loop.body.results
    read: set[Variable] = set(leaves(inner.results))
    for each in inner.instructions:
        all_reads(each, read)
    if loop.counter in read:
        before = new(program)
        outer.instructions.append(Call(operator.mul, (chunk, Known(at_once)), {}, before, "number", loop.node))
        inner.instructions.insert(0, Call(operator.add, (before, place), {}, loop.counter, "number", loop.node))
    around: list[Item] = list(loop.carried)
    outer.instructions.append(Repeat(Known(at_once), Known(True), around, place, loop.carried, inner, loop.node))
    outer.results = [Known(True), *around]
    return Repeat(Known(chunks), Known(True), loop.start, chunk, loop.carried, outer, loop.node)


def new(program: Program, meta: Meta | None = None, looks_into: Variable | None = None) -> Variable:
    """A new variable; a view of `looks_into`, if that is not None."""
    return program.variable(meta, None if looks_into is None else looks_into.roots)


def defined_in(lowered: Lowered) -> set[Variable]:
    """All variables that a block defines."""
    variables: set[Variable] = set()
    for each in lowered.instructions:
        if isinstance(each, Call):
            if each.way != "into":
                variables.add(each.out)
        elif isinstance(each, Branch):
            variables.update(each.outs, *[defined_in(block) for block in each.blocks])
        elif isinstance(each, Repeat):
            variables.update(each.carried, defined_in(each.body))
        elif isinstance(each, Visit):
            variables.update(each.outs)
    return variables


def look_into(lowered: Lowered, old: set[Variable], roots: frozenset[Variable]) -> None:
    """Redirect views: variables that aliased `old` now alias `roots`."""
    for variable in defined_in(lowered):
        if not variable.roots.isdisjoint(old):
            variable.roots = variable.roots - old | roots


def is_looked_into(variable: Variable, loop: Repeat) -> bool:
    """Does another variable see the memory of a product: a view, or a loop-carried value?"""
    if any(variable in each.roots for each in defined_in(loop.body) | set(loop.carried) if each is not variable):
        return True
    return any(isinstance(each, Call) and each.way == "into" and variable in each.out.roots for each in loop.body.instructions)
