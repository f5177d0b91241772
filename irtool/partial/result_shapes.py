"""The shape of a result from the shapes of the operands: the kinds that gradient formulas use between reshapes and sums."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irtool.ir.graph import Value
from irtool.ir.handlers import Handlers
from irtool.ops.size_facts import SIZED_BY_OPERAND
from irtool.partial.items import Item, int_list, place_of

Shape = tuple[int, ...]
Rule = Callable[[Sequence[Shape | None], Sequence[Item]], Shape | None]


SHAPES: Handlers[Rule] = Handlers()
"""Kind -> the shape of its result; None: unknown. Pointwise kinds are not here: their operands are broadcast (`irtool.ops.facts`)."""


@SHAPES.of("aten::mm")
def _mm(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    a, b = shapes
    return (a[0], b[1]) if a and b and len(a) == len(b) == 2 else None


@SHAPES.of("aten::bmm")
def _bmm(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    a, b = shapes
    return (a[0], a[1], b[2]) if a and b and len(a) == len(b) == 3 else None


@SHAPES.of("aten::t")
def _t(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    return shapes[0][::-1] if shapes[0] is not None and len(shapes[0]) <= 2 else None


@SHAPES.of("aten::transpose")
def _transpose(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    shape = shapes[0]
    if not shape:
        return None
    first, second = place_of(operands[1], len(shape)), place_of(operands[2], len(shape))
    if first is None or second is None:
        return None
    sizes = list(shape)
    sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


@SHAPES.of("aten::unsqueeze")
def _unsqueeze(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    shape = shapes[0]
    place = None if shape is None else place_of(operands[1], len(shape) + 1)
    if shape is None or place is None:
        return None
    place %= len(shape) + 1
    return (*shape[:place], 1, *shape[place:])


@SHAPES.of(*SIZED_BY_OPERAND)
def _sized(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    sizes = next((int_list(operand) for operand in operands if not isinstance(operand, Value)), None)
    return tuple(sizes) if sizes is not None and all(size >= 0 for size in sizes) else None
