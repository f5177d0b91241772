"""The shape of a result, told from the shapes of the operands: the kinds that gradient formulas use between reshapes and sums."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irtool.ir.graph import Value
from irtool.partial.items import Item, Known, int_list, place_of

Shape = tuple[int, ...]
Teller = Callable[[Sequence[Shape | None], Sequence[Item]], Shape | None]

SIZED = frozenset(("aten::sum_to_size", "aten::_grad_sum_to_size", "aten::expand", "aten::reshape", "aten::view", "aten::zeros"))
"""Kinds whose result has the shape that an operand names."""
LIKE_FIRST = frozenset(f"aten::{name}" for name in """
conj resolve_conj contiguous clone detach zeros_like ones_like type_as threshold_backward sigmoid_backward tanh_backward gelu_backward
silu_backward hardswish_backward hardsigmoid_backward hardtanh_backward leaky_relu_backward elu_backward softplus_backward
_softmax_backward_data _log_softmax_backward_data native_dropout_backward cumsum flip
""".split())
"""Kinds whose result has the shape of the first operand."""


def _mm(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    a, b = shapes
    return (a[0], b[1]) if a and b and len(a) == len(b) == 2 else None


def _bmm(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    a, b = shapes
    return (a[0], a[1], b[2]) if a and b and len(a) == len(b) == 3 else None


def _t(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    return shapes[0][::-1] if shapes[0] is not None and len(shapes[0]) <= 2 else None


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


def _unsqueeze(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    shape = shapes[0]
    place = None if shape is None else place_of(operands[1], len(shape) + 1)
    if shape is None or place is None:
        return None
    place %= len(shape) + 1
    return (*shape[:place], 1, *shape[place:])


def _sized(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    sizes = next((int_list(operand) for operand in operands if not isinstance(operand, Value)), None)
    return tuple(sizes) if sizes is not None and all(size >= 0 for size in sizes) else None


def _like_first(shapes: Sequence[Shape | None], operands: Sequence[Item]) -> Shape | None:
    return shapes[0] if shapes and not (isinstance(operands[0], Known)) else None


TELLERS: dict[str, Teller] = {"aten::mm": _mm, "aten::bmm": _bmm, "aten::t": _t, "aten::transpose": _transpose,
                              "aten::unsqueeze": _unsqueeze, **dict.fromkeys(SIZED, _sized), **dict.fromkeys(LIKE_FIRST, _like_first)}
"""By kind; elementwise kinds broadcast (`irtool.partial.evaluate`)."""
