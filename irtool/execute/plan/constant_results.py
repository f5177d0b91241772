"""Constant folding and dead code elimination in a program: calls whose result is the same in every run, or has no reader.

The seed of a gradient is `ones_like(loss)`: its elements do not depend on the loss, so the seed and views of it are computed once, and
the loss may then have no reader left. In graphs that write in place, no result becomes a constant.
"""
from __future__ import annotations

from typing import Any

from irtool.execute.plan.memory import Lives, every, overwrites
from irtool.execute.plan.program import Call, Program, Variable
from irtool.execute.plan.python_source import all_reads, reads_of
from irtool.ops.array_library import np
from irtool.ops.powers import at_run
from irtool.ops.symbols.array_layout import dummy

LARGE = 1 << 16
"""Bytes beyond which an array is recomputed in each run instead of stored."""
LIKE = frozenset((np.full_like, np.zeros_like, np.ones_like))
"""Functions that read only dtype and shape of their first operand."""
HARMLESS = frozenset((np.ndarray.sum, np.ndarray.mean, np.ndarray.max, np.ndarray.min, np.ndarray.astype, np.ndarray.copy,
                      np.ndarray.reshape, *LIKE))
"""Functions that cannot fail, besides views, products and most elementwise functions."""


def drop_needless(program: Program) -> None:
    """Fold constant calls and remove unread calls of a program."""
    if not overwrites(program):
        make_constants(program)
    later: set[Variable] = set()
    for item in program.body.results:
        reads_of(item, later)
    instructions = program.body.instructions
    fresh = {each.out for each in instructions if isinstance(each, Call) and each.way == "out"}
    looked_at = {root for variable in later for root in variable.roots}     # memory that is read later, under whatever name
    for place in reversed(range(len(instructions))):
        each = instructions[place]
        if isinstance(each, Call) and is_harmless(each) and is_unread(each, later, looked_at, fresh):
            del instructions[place]
            continue
        read: set[Variable] = set()
        all_reads(each, read)
        later |= read
        looked_at.update(*[variable.roots for variable in read])


def is_unread(call: Call, later: set[Variable], looked_at: set[Variable], fresh: set[Variable]) -> bool:
    """Does nobody read what a call gives, or what it writes into memory that the plan made, such as a sum in the place of a product?"""
    if call.way == "into":
        return call.out.roots <= fresh and call.out.roots.isdisjoint(looked_at)
    return call.out not in later


def make_constants(program: Program) -> None:
    """Make results that are the same in every run constants, except results that leave the plan or that a call writes into."""
    like = [each for each in program.body.instructions if isinstance(each, Call) and each.function in LIKE]
    if not like:
        return
    written = [each.out.roots for each in every(program.body) if isinstance(each, Call) and each.way == "into"]
    taken = Lives(program).escaping.union(*written)
    rest = []
    for each in program.body.instructions:
        value = constant_result(each) if isinstance(each, Call) and each.out.roots.isdisjoint(taken) else None
        if value is None:
            rest.append(each)
        else:
            each.out.constant = value       # type: ignore[union-attr]
    program.body.instructions[:] = rest


def constant_result(call: Call) -> Any:
    """The result of a call, if every run computes the same; None if runs differ, or if the result is large."""
    meta = call.out.meta
    if meta is None or meta.nbytes > LARGE or call.way == "into":
        return None
    args = [each.constant if isinstance(each, Variable) else each for each in call.args]
    if call.function in LIKE and isinstance(call.args[0], Variable) and call.args[0].meta is not None:
        args[0] = dummy(call.args[0].meta)
    elif call.way not in ("ufunc", "view") or not any(isinstance(each, Variable) for each in call.args):
        return None
    if not all(isinstance(each, np.ndarray | int | float | tuple) and is_plain(each) for each in args):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(at_run(call.function)(*args, **call.named))


def is_plain(value: Any) -> bool:
    """Is a value free of variables, so that it is the same in every run?"""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return isinstance(value, np.ndarray | int | float | slice | type(Ellipsis) | None)


def is_harmless(call: Call) -> bool:
    """May a call be removed if nobody reads its result? Not a call that can fail."""
    is_ufunc = call.way == "ufunc" or call.way == "into" and isinstance(call.function, np.ufunc)
    return call.way in ("view", "out") or is_ufunc and call.function is not np.power or call.function in HARMLESS
