"""Equal elementwise calls on several slices of one small array become one call on the whole array.

The gates of a recurrent cell are slices of one product, and most are operands of the same sigmoid: if calls cost more than elements, one
chain of calls on the whole array, and slices of its result, are cheaper. The same functions compute each element.
"""
from __future__ import annotations

import operator
from typing import Any

from irtool.execute.plan.program import Branch, Call, Group, Lowered, Program, Repeat, Variable, Visit
from irtool.ir.graph import Node
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of

EXACT = frozenset((np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.negative))
"""Functions whose results have the same bits for all memory layouts of operands and results."""
SMALL = 1 << 16
"""Bytes of an array beyond which elements cost more than calls."""
Chain = list[Call]


def join_siblings(program: Program) -> None:
    """Rewrite every block of a program."""
    uses = Uses(program)
    for lowered in uses.blocks:
        slices: dict[Variable, list[Call]] = {}
        for call in lowered.instructions:
            if isinstance(call, Call) and call.function is operator.getitem and is_slice(call):
                slices.setdefault(call.args[0], []).append(call)
        for whole, parts in slices.items():
            if len(parts) > 1:
                join(program, lowered, whole, parts, uses)


class Uses:
    """The readers of each variable: the calls, and the number of other readers."""

    def __init__(self, program: Program) -> None:
        self.calls: dict[Variable, list[Call]] = {}
        self.others: set[Variable] = set()
        self.written: set[Variable] = set()         # roots of variables that calls write into
        self.blocks: list[Lowered] = []
        self.other(program.body.results)
        self.walk(program.body)

    def other(self, items: Any) -> None:
        """Count one more reader of the items, one that is no call."""
        for item in items:
            if isinstance(item, Variable):
                self.others.add(item)
            elif isinstance(item, Group):
                self.other(item.items)

    def walk(self, lowered: Lowered) -> None:
        """Count the readers in a block and its inner blocks."""
        self.blocks.append(lowered)
        for each in lowered.instructions:
            if isinstance(each, Call):
                if each.way == "into":
                    self.written |= each.out.roots
                for value in (*each.args, *each.named.values()):
                    if isinstance(value, Variable):
                        self.calls.setdefault(value, []).append(each)
                    elif isinstance(value, tuple | Group):
                        self.other(value.items if isinstance(value, Group) else value)
            elif isinstance(each, Visit):
                self.other(each.args)
            elif isinstance(each, Branch):
                self.other(each.condition)
                for block in each.blocks:
                    self.other(block.results)
                    self.walk(block)
            elif isinstance(each, Repeat):
                self.other((each.limit, each.condition, *each.start, *each.body.results))
                self.walk(each.body)


def is_slice(call: Call) -> bool:
    """Is a call a plain slice along one dimension of a contiguous array?"""
    source, index = call.args
    parts = index if isinstance(index, tuple) else (index,)
    meta = source.meta if isinstance(source, Variable) else None
    return (meta is not None and all(type(part) is slice and part.step in (None, 1) for part in parts) and meta.nbytes <= SMALL
            and meta.dtype.kind == "f" and meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize))


def chain_of(part: Call, uses: Uses, members: set[int]) -> Chain:
    """The elementwise calls that follow a slice: each is the only reader of the previous result, and its other operands are constants."""
    chain: Chain = []
    value = part.out
    while True:
        readers = uses.calls.get(value, [])
        if chain and (len(readers) != 1 or value in uses.others):
            return chain
        following = next((call for call in readers if id(call) in members and is_step(call, value)), None)
        if following is None:
            return chain
        chain.append(following)
        value = following.out


def is_step(call: Call, value: Variable) -> bool:
    """Is a call an elementwise function of `value` and constants?"""
    return (call.way == "ufunc" and isinstance(call.function, np.ufunc) and sum(each is value for each in call.args) == 1
            and all(each is value or isinstance(each, np.ndarray) and not each.ndim for each in call.args))


def signature(chain: Chain) -> tuple[Any, ...]:
    """A key that is equal for chains of equal calls."""
    return tuple([(call.function, call.out.meta.dtype if call.out.meta is not None else None,
                   tuple([None if isinstance(each, Variable) else (each.dtype, each.tobytes()) for each in call.args]))
                  for call in chain])


def join(program: Program, lowered: Lowered, whole: Variable, parts: list[Call], uses: Uses) -> None:
    """Join equal chains on slices of `whole`, if those slices are at least half of it."""
    members = {id(each) for each in lowered.instructions}
    groups: dict[tuple[Any, ...], list[tuple[Call, Chain]]] = {}
    for part in parts:
        chain = chain_of(part, uses, members)
        while chain and not may_be_a_view(chain[-1].out, uses):
            chain.pop()
        if chain:
            groups.setdefault(signature(chain), []).append((part, chain))
    for alike in groups.values():
        size = sum(part.out.meta.nbytes for part, _ in alike if part.out.meta is not None)
        if len(alike) < 2 or whole.meta is None or 2 * size < whole.meta.nbytes or not whole.roots.isdisjoint(uses.written):
            continue
        replace(program, lowered, whole, alike, uses)


def may_be_a_view(value: Variable, uses: Uses) -> bool:
    """May the value be a view of a larger array? Not if it leaves the plan, or if there are views of it."""
    return value not in uses.others and all(call.way in ("ufunc", "out", "fresh") for call in uses.calls.get(value, []))


def dtype_of(call: Call) -> np.dtype[Any]:
    """The dtype of the result of a call."""
    assert call.out.meta is not None
    return call.out.meta.dtype


def equal_pieces(whole: Variable, parts: list[Call]) -> int | None:
    """The width of the parts, if all are pieces of one width, into which the last dimension is cut; else None."""
    assert whole.meta is not None
    rank, width = len(whole.meta.shape), whole.meta.shape[-1]
    widths = set()
    for part in parts:
        index, meta = part.args[1], part.out.meta
        if type(index) is not tuple or len(index) != rank or meta is None or type(index[-1].start) is not int:
            return None
        if meta.shape[:-1] != whole.meta.shape[:-1] or not meta.shape[-1] or index[-1].start < 0 or index[-1].start % meta.shape[-1]:
            return None
        widths.add(meta.shape[-1])
    pieces = widths.pop()
    return pieces if not widths and rank > 1 and width % pieces == 0 else None


def replace(program: Program, lowered: Lowered, whole: Variable, alike: list[tuple[Call, Chain]], uses: Uses) -> None:
    """Make the calls of one chain on `whole`, in the place of the first call; the results of all chains become slices of its result."""
    gone = {id(call) for _, chain in alike for call in chain}
    place = next(at for at, each in enumerate(lowered.instructions) if id(each) in gone)
    calls: list[Call] = []
    pieces = equal_pieces(whole, [part for part, _ in alike])

    def step(call: Call, value: Variable, meta: Meta) -> Variable:
        args = tuple([value if isinstance(each, Variable) else each for each in call.args])
        out = program.variable(meta)
        calls.append(Call(call.function, args, call.named, out, "ufunc", call.node))
        return out

    def view(function: Any, value: Variable, argument: Any, out: Variable, node: Node) -> Variable:
        out.roots = value.roots
        assert value.meta is not None
        out.meta = meta_of(function(dummy(value.meta), argument))
        calls.append(Call(function, (value, argument), {}, out, "view", node))
        return out

    assert whole.meta is not None
    *first, last = alike[0][1]
    value = whole
    for call in first:
        value = step(call, value, fresh_meta(dtype_of(call), whole.meta.shape))
    gone |= {id(part) for part, _ in alike
             if part.out not in uses.others and all(id(each) in gone for each in uses.calls.get(part.out, []))}
    if pieces is None or last.function not in EXACT:
        value = step(last, value, fresh_meta(dtype_of(last), whole.meta.shape))
        for part, chain in alike:
            view(operator.getitem, value, part.args[1], chain[-1].out, chain[-1].node)
    else:       # the last step writes each piece into separate, contiguous memory
        *lead, width = whole.meta.shape
        count = width // pieces
        value = view(np.ndarray.reshape, value, (*lead, count, pieces), program.variable(whole.meta), last.node)
        apart = fresh_meta(dtype_of(last), (count, *lead, pieces))
        value = step(last, value, Meta(apart.dtype, (*lead, count, pieces), (*apart.strides[1:-1], apart.strides[0], apart.strides[-1])))
        for part, chain in alike:
            number = part.args[1][-1].start // pieces
            view(operator.getitem, value, (*[slice(None)] * len(lead), number), chain[-1].out, chain[-1].node)
    before = [each for each in lowered.instructions[:place] if id(each) not in gone]
    after = [each for each in lowered.instructions[place:] if id(each) not in gone]
    lowered.instructions = [*before, *calls, *after]
