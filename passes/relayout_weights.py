"""Memory layouts of constant weights."""
from __future__ import annotations

from typing import Any

from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_argument
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ops.folding import array_of, tensor_constant

FACTORS = {"aten::mm": "mat2", "aten::matmul": "other", "aten::addmm": "mat2"}
"""Products -> the name of their right factor."""


def relayout_weights(graph: Graph, columns: int = 64) -> bool:
    """Store constant weights of products row by row, as the product reads them; `linear`, which reads its transpose, column by column.

    Values and sizes stay, strides change, and results may change in the last bits. OpenBLAS multiplies a transposed right factor
    10 to 15 % slower, if it has many columns: `columns` is the least number. Only products read the weights: `mm`, `matmul`, `addmm`,
    `linear`, and those of recurrent operators with their input.

    before, with columns=3:
        graph(%x : Float(8, 4)):
          %w : Float(3, 4) = prim::Constant[value= 1  2  3  4
         5  6  7  8
         9 10 11 12
        [ CPUFloatType{3,4} ]]()
          %none : NoneType = prim::Constant()
          %1 : Tensor = aten::linear(%x, %w, %none)
          return (%1)

    after:
        # tensors: 2=float32[3,4;1,3]:AACAPwAAoEAAABBBAAAAQAAAwEAAACBBAABAQAAA4EAAADBBAACAQAAAAEEAAEBB
        graph(%x : Float(8, 4)):
          %2 : Float(3, 4, strides=[1, 3], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
          %none : NoneType = prim::Constant()
          %1 : Tensor = aten::linear(%x, %2, %none)
          return (%1)
    """
    build = Builder(graph)
    changed = False
    for node in [each for each in graph.walk() if each.kind == "prim::Constant"]:
        transposed = {is_transposed(use.user, node.output) for use in node.output.uses}
        array = weight_of(node) if len(transposed) == 1 and None not in transposed else None
        if array is None:
            continue
        (by_column,) = transposed
        if array.shape[0 if by_column else 1] >= columns and not (array.flags.f_contiguous if by_column else array.flags.c_contiguous):
            build.before(node)
            node.output.replace_all_uses_with(tensor_constant(build, array.copy("F" if by_column else "C")))
            node.destroy()
            changed = True
    return changed


def weight_of(node: Node) -> Any:
    """The array of a constant if it is a matrix of float32 or float64; else None."""
    literal = constant(node.output)
    array: Any = array_of(literal) if isinstance(literal, TensorLiteral) else None
    return array if getattr(array, "ndim", 0) == 2 and array.dtype.name in ("float32", "float64") else None


def is_transposed(user: Node, value: Value) -> bool | None:
    """Is the transpose of a value the right factor of a product (or of products with its input)? None: the user is something else."""
    if user.kind == "aten::linear":
        return True if value is node_argument(user, "weight") and value is not node_argument(user, "input") else None
    if user.kind in FACTORS:
        others = [each for each in user.inputs if each is value]
        return False if len(others) == 1 and value is node_argument(user, FACTORS[user.kind]) else None
    if user.kind == "prim::ListConstruct" and all(multiplies_input(use.user, user, value) for use in user.output.uses):
        return True
    return None


def multiplies_input(node: Node, weights: Node, value: Value) -> bool:
    """Is a node a recurrent operator with these weights, and a value only one that multiplies its input? Each layer's first one is."""
    layers, both = (constant(each) if isinstance(each, Value) else None
                    for each in (node_argument(node, "num_layers"), node_argument(node, "bidirectional")))
    if weights.output is not node_argument(node, "params") or not isinstance(layers, int) or both is None or layers < 1:
        return False
    each = len(weights.inputs) // (layers * (2 if both else 1))
    return each > 0 and all(place % each == 0 for place, one in enumerate(weights.inputs) if one is value)
