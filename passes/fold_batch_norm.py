"""Batch norm in evaluation, folded into the layer in front of it."""
from __future__ import annotations

import re
from typing import Any

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_constant, is_none, known_argument
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_argument, schema_of
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import TensorType
from irtool.ops.folding import array_of, tensor_constant

CONVOLUTION = re.compile(r"aten::(conv(_transpose)?[123]d|_convolution)")
"""Kinds of convolutions."""


ABOUT = frozenset(("aten::dim", "aten::size", "aten::len", "aten::numel", "prim::dtype", "prim::device", "aten::is_floating_point"))
"""Kinds that read only facts about a tensor that folding does not change."""


def fold_batch_norm(graph: Graph) -> bool:
    """Fold batch norm that does not train into the weights of the convolution or linear layer in front of it.

    Both layers' weights must be constants, as after `freeze`, and nothing else may read the result of the first layer. Results change in
    the last bits, since products are rounded in another order. Inputs of convolutions are assumed to have a batch dimension. The formulas
    are those of torch.nn.utils.fusion.

    before:
        graph(%x : Tensor, %no : int[], %one : int[]):
          %w : Float(1, 1, 1) = prim::Constant[value={2}]()
          %b : Float(1) = prim::Constant[value={1}]()
          %scale : Float(1) = prim::Constant[value={4}]()
          %zero : Float(1) = prim::Constant[value={0}]()
          %var : Float(1) = prim::Constant[value={3}]()
          %n : int = prim::Constant[value=1]()
          %eps : float = prim::Constant[value=1.]()
          %false : bool = prim::Constant[value=0]()
          %y : Tensor = aten::conv1d(%x, %w, %b, %one, %no, %one, %n)
          %z : Tensor = aten::batch_norm(%y, %scale, %zero, %zero, %var, %false, %eps, %eps, %false)
          return (%z)

    after:
        graph(%x : Tensor, %no : int[], %one : int[]):
          %n : int = prim::Constant[value=1]()
          %0 : Float(1, 1, 1, strides=[1, 1, 1], requires_grad=0, device=cpu) = prim::Constant[value={4}]()
          %1 : Float(1, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value={2}]()
          %y : Tensor = aten::conv1d(%x, %0, %1, %one, %no, %one, %n)
          return (%y)
    """
    build = Builder(graph)
    changed = False
    for node in list(graph.walk()):
        if node.kind == "aten::batch_norm" and fold(build, node):
            changed = True
    return remove_dead_nodes(graph) or changed if changed else False


def fold(build: Builder, norm: Node) -> bool:
    """Fold one batch norm, if possible; returns whether it was folded."""
    before = operand(norm, "input")
    if before is None or number(norm, "training") is not False:
        return False
    if any(use.user is not norm and use.user.kind not in ABOUT for use in before.uses):
        return False
    layer = before.node
    if layer.owner is not norm.owner or not CONVOLUTION.fullmatch(layer.kind) and layer.kind != "aten::linear":
        return False
    if layer.attributes or operand(layer, "bias") is None:
        return False
    eps = number(norm, "eps")
    weight = array(layer, "weight")
    mean, variance = array(norm, "running_mean"), array(norm, "running_var")
    if weight is None or mean is None or variance is None or eps is None or weight.dtype.kind != "f" or mean.dtype != weight.dtype:
        return False
    if weight.ndim < 2 or mean.ndim != 1 or variance.shape != mean.shape:
        return False
    if layer.kind == "aten::linear" and not (isinstance(before.type, TensorType) and before.type.shape is not None
                                             and len(before.type.shape) == 2):
        return False        # with more dimensions, the channels of batch norm are not the features of the layer
    from irtool.ops.array_library import np

    has_all, scale, shift, bias = True, np.ones_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    parts = []
    for node, name, otherwise in ((norm, "weight", scale), (norm, "bias", shift), (layer, "bias", bias)):
        value = operand(node, name)
        part = otherwise if value is None or is_none(value) else array(node, name)
        has_all = has_all and part is not None and part.shape == mean.shape
        parts.append(part)
    channels = int("transpose" in layer.kind or layer.kind == "aten::_convolution" and number(layer, "transposed") is True)
    groups = 1 if layer.kind == "aten::linear" else number(layer, "groups")
    if not has_all or channels and groups != 1 or weight.shape[channels] != mean.shape[0] or groups is None:
        return False
    gamma, beta, offset = parts
    factor = gamma / np.sqrt(variance + variance.dtype.type(eps))
    sizes = [-1 if axis == channels else 1 for axis in range(weight.ndim)]
    build.before(layer)
    scaled = tensor_constant(build, np.ascontiguousarray(weight * factor.reshape(sizes), weight.dtype))
    shifted = tensor_constant(build, ((offset - mean) * factor + beta).astype(weight.dtype))
    replace_operand(layer, "weight", scaled)
    replace_operand(layer, "bias", shifted)
    norm.output.replace_all_uses_with(before)
    norm.destroy()
    return True


def operand(node: Node, name: str) -> Value | None:
    """The value that a node reads as an argument; None: no value."""
    value = node_argument(node, name)
    return value if isinstance(value, Value) else None


def array(node: Node, name: str) -> Any:
    """A constant tensor that a node reads, as an array; None for any other value, and if the text does not have all its digits."""
    value = operand(node, name)
    literal = constant(value) if value is not None and is_constant(value) else None
    result = array_of(literal) if isinstance(literal, TensorLiteral) else None
    return result if hasattr(result, "strides") else None


def number(node: Node, name: str) -> Any:
    """A constant number that a node reads; None for any other value."""
    result = known_argument(node, name)
    return result if isinstance(result, bool | int | float) else None


def replace_operand(node: Node, name: str, value: Value) -> None:
    """Let a node read another value as an argument."""
    schema = schema_of(node)
    assert schema is not None
    node.replace_input(schema.positions[name], value)
