"""Questions about a tensor that its type can answer: its dtype, device, number of dimensions and sizes."""
from __future__ import annotations

from collections.abc import Callable

from irtool.ir.constants import NOT_CONSTANT, argument_value, constant
from irtool.ir.dtypes import dtype_code, is_complex_dtype, is_float_dtype
from irtool.ir.graph import Node, Value
from irtool.ir.schema import node_arguments
from irtool.ir.types import TensorType


def answer(node: Node, type: TensorType, known: Callable[[Value], object] = constant) -> object:
    """The result of a node of ANSWERS whose tensor is of a type; NOT_CONSTANT if the type does not determine it, or no overload fits.

    known: what is known of another operand, NOT_CONSTANT if nothing is. Old texts write them as attributes, `size[dim=0](%x)`; attributes
    that are arguments of no overload are ignored, as wherever a node runs.
    """
    try:
        others = node_arguments(node)[1:]
    except ValueError:
        return NOT_CONSTANT
    values = [known(each) if isinstance(each, Value) else argument_value(each) for each in others]
    result = ANSWERS[node.kind](type, *values)
    return NOT_CONSTANT if result is None else result


def _size(type: TensorType, dim: object = None) -> object:
    sizes = type.sizes
    if dim is None or sizes is None:
        return None if type.shape is None else list(type.shape)
    return sizes[dim] if isinstance(dim, int) and not isinstance(dim, bool) and -len(sizes) <= dim < len(sizes) else None


ANSWERS: dict[str, Callable[..., object]] = {
    "aten::dim": lambda type: type.rank,
    "aten::size": _size,
    "prim::dtype": lambda type: dtype_code(type.dtype),
    "aten::is_floating_point": lambda type: type.dtype and is_float_dtype(type.dtype),
    "aten::is_complex": lambda type: type.dtype and is_complex_dtype(type.dtype),
    "prim::device": lambda type: type.device,
    "prim::is_cuda": lambda type: type.device and type.device.startswith("cuda"),
    "prim::is_cpu": lambda type: type.device and type.device.startswith("cpu"),
}
"""Kind -> what a type says, of a tensor and of other operands; None: nothing."""
