"""Rules by kind, `RULES`, that compute the results of a node from items without adding a node."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irtool.ir import types
from irtool.ir.dtypes import dtype_code
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.handlers import Handlers
from irtool.ir.shapes import shape_of
from irtool.ir.types import OptionalType, TensorType, same
from irtool.partial.items import NONE, Item, Items, Known, elements, int_list, place_of
from irtool.partial.target import Target

Rule = Callable[[Target, Node, list[Item]], list[Item] | None]


RULES: Handlers[Rule] = Handlers()
"""Kind -> a function (target, node, operands) that returns the results as items; None: not known."""


@RULES.of("prim::ListConstruct", "prim::TupleConstruct")
def _construct(target: Target, node: Node, operands: list[Item]) -> list[Item]:
    return [Items(operands, node.kind == "prim::TupleConstruct", node.output.type)]


@RULES.of("prim::TupleUnpack", "prim::ListUnpack")
def _unpack(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    items = elements(operands[0])
    return items if items is not None and len(items) == len(node.outputs) else None


@RULES.of("prim::TupleIndex", "aten::__getitem__")
def _pick(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    items = elements(operands[0])
    place = None if items is None or len(operands) < 2 else place_of(operands[1], len(items))
    return None if items is None or place is None else [items[place]]


@RULES.of("aten::len")
def _length(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    if isinstance(operands[0], Value):
        shape = shape_of(target.type_of(operands[0]))
        return [Known(shape[0])] if shape else None
    items = elements(operands[0])
    return None if items is None else [Known(len(items))]


@RULES.of("aten::size")
def _size(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    if not isinstance(operands[0], Value):
        return None
    shape = shape_of(target.type_of(operands[0]))
    if shape is None:
        return [target.size_of(operands[0])] if len(operands) == 1 and target.sizes is not None else None
    if len(operands) == 1:
        return [Known(list(shape))]
    place = operands[1]
    if isinstance(place, Known) and isinstance(place.value, int) and -len(shape) <= place.value < len(shape):
        return [Known(shape[place.value])]
    return None


@RULES.of("aten::dim")
def _rank(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    type = target.type_of(operands[0]) if isinstance(operands[0], Value) else types.TENSOR
    rank = type.rank if isinstance(type, TensorType) else None
    return None if rank is None else [Known(rank)]


@RULES.of("aten::sum_to_size", "aten::_grad_sum_to_size")
def _sum_to_size(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    if operands[1] == NONE:
        return [operands[0]]
    shape = shape_of(target.type_of(operands[0])) if isinstance(operands[0], Value) else None
    sizes = int_list(operands[1])
    return [operands[0]] if shape is not None and sizes is not None and list(shape) == sizes else None


@RULES.of("aten::reshape")
def _reshape(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    """A reshape to the shape that the operand has."""
    shape = shape_of(target.type_of(operands[0])) if isinstance(operands[0], Value) else None
    sizes = int_list(operands[1])
    if shape is None or sizes is None or len(sizes) != len(shape):
        return None
    fits = all(size in (-1, extent) for size, extent in zip(sizes, shape, strict=True)) and sizes.count(-1) <= (0 if 0 in shape else 1)
    return [operands[0]] if fits else None


@RULES.of("aten::_size_if_not_equal")
def _size_if_not_equal(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    first, second = int_list(operands[0]), int_list(operands[1])
    if operands[0] == operands[1] and isinstance(operands[0], Value):
        return [NONE]
    if first is None or second is None:
        return None
    return [NONE if first == second else operands[0]]


@RULES.of("aten::__is__", "aten::__isnot__")
def _same_object(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    wanted = node.kind == "aten::__is__"
    known = [operand.value for operand in operands if isinstance(operand, Known)]
    if len(known) == 2 and all(value is None or isinstance(value, bool | int | float) for value in known):
        same = type(known[0]) is type(known[1]) and known[0] == known[1]
    elif NONE in operands:
        other = next(operand for operand in operands if operand != NONE)
        if isinstance(other, Value) and (other in target.unsure or other not in target.facts and not _is_certain(other, target.certain)):
            return None
        same = False
    else:
        return None
    return [Known(same is wanted)]


def _is_certain(value: Value, graph: Graph | None) -> bool:
    """Is a tensor certainly not None? A gradient may be undefined; a value of `graph` may not."""
    if isinstance(value.type, TensorType):
        return graph is not None and value.node.graph is graph and not value.type.undefined
    return not isinstance(value.type, OptionalType) and value.type.key not in ("Any", "None")


@RULES.of("aten::mul", "aten::div")
def _times(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    """`x * 1` is x, if 1 is a number and x keeps its dtype."""
    if len(operands) == 2 and isinstance(operands[0], Value) and isinstance(operands[1], Known) and _is_one(operands[1].value):
        return [operands[0]]
    if node.kind == "aten::mul" and len(operands) == 2 and isinstance(operands[1], Value) and isinstance(operands[0], Known) \
            and _is_one(operands[0].value):
        return [operands[1]]
    return None


def _is_one(value: object) -> bool:
    return type(value) is int and value == 1 or type(value) is float and value == 1.0


def _dtype_of(target: Target, item: Item) -> str | None:
    """The dtype of a tensor; None: unknown."""
    type = target.type_of(item) if isinstance(item, Value) else None
    if isinstance(type, TensorType) and type.dtype is None and isinstance(item, Value):
        type = item.type        # a fact may be of the shape only
    return type.dtype if isinstance(type, TensorType) else None


@RULES.of("aten::is_complex")
def _is_complex(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    dtype = _dtype_of(target, operands[0])
    return None if dtype is None else [Known(dtype.startswith("complex"))]


@RULES.of("aten::conj", "aten::real", "aten::resolve_conj")
def _real_already(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    dtype = _dtype_of(target, operands[0])
    return None if dtype is None or dtype.startswith("complex") else [operands[0]]


@RULES.of("prim::unchecked_cast", "prim::unchecked_unwrap_optional")
def _cast_unless_known(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    """A cast of a known value, or of a tensor that is certainly not None, is the operand."""
    operand = operands[0]
    if isinstance(operand, Value):
        fits = isinstance(node.output.type, TensorType) if isinstance(operand.type, TensorType) else same(operand.type, node.output.type)
        if not fits or not _is_certain(operand, target.certain):
            return None
    return [operand]


@RULES.of("aten::numel")
def _numel(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    shape = shape_of(target.type_of(operands[0])) if isinstance(operands[0], Value) else None
    return None if shape is None else [Known(prod(shape))]


@RULES.of("prim::dtype")
def _dtype(target: Target, node: Node, operands: list[Item]) -> list[Item] | None:
    dtype = _dtype_of(target, operands[0])
    return None if dtype is None else [Known(dtype_code(dtype))]
