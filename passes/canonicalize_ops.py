"""Operators in the form that later passes expect."""
from __future__ import annotations

from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder
from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_argument, schema_of
from irtool.ir.types import TensorType
from irtool.ops.torch_lists import ARITHMETIC


def canonicalize_ops(graph: Graph) -> bool:
    """Replace operands that are constant tensors without dimensions by numbers, and `chunk` with constant arguments by
    `prim::ConstantChunk`.

    before:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : int = prim::Constant[value=0]()
          %3 : Tensor[] = aten::chunk(%x, %1, %2)
          %4 : Tensor, %5 : Tensor = prim::ListUnpack(%3)
          %6 : Tensor = prim::Constant[value={2.5}]()
          %7 : Tensor = aten::mul(%4, %6)
          return (%7, %5)

    after:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=2]()
          %2 : int = prim::Constant[value=0]()
          %8 : Tensor, %9 : Tensor = prim::ConstantChunk[chunks=2, dim=0](%x)
          %6 : Tensor = prim::Constant[value={2.5}]()
          %10 : float = prim::Constant[value=2.5]()
          %7 : Tensor = aten::mul(%8, %10)
          return (%7, %9)
    """
    if graph.dialect.attribute_arguments:
        return False
    changed = False
    for node in list(graph.walk()):
        if node.owner is None:
            continue
        if node.kind == "aten::chunk":
            changed = _open_chunk(graph, node) or changed
        elif node.kind in ("aten::add", "aten::sub", "aten::mul", "aten::div"):
            changed = _number_operand(graph, node) or changed
    return changed


def _number_operand(graph: Graph, node: Node) -> bool:
    schema = schema_of(node)
    if schema is None or schema.name not in ARITHMETIC or len(node.inputs) < 2:
        return False
    literal = constant(node.inputs[1])
    if not isinstance(literal, TensorLiteral):
        return False
    declared = node.inputs[1].type
    if isinstance(declared, TensorType):
        literal = literal.with_type(declared.dtype, declared.shape)
    if not literal.is_number:
        return False
    node.replace_input(1, Builder(graph).before(node).constant(literal.item()))
    return True


def _open_chunk(graph: Graph, node: Node) -> bool:
    chunks, dim = (_number(node, name) for name in ("chunks", "dim"))
    if len(node.outputs) != 1 or chunks is None or dim is None or not 0 < chunks <= 10_000:
        return False
    pieces: list[tuple[int, Value]] = []
    for user, _ in node.output.uses:
        if user.kind == "prim::ListUnpack" and len(user.outputs) == chunks:
            pieces += enumerate(user.outputs)
        elif user.kind == "aten::__getitem__" and isinstance(index := _number(user, "idx"), int) and 0 <= index < chunks:
            pieces.append((index, user.output))
        else:
            return False
    if not any(user.kind == "prim::ListUnpack" for user, _ in node.output.uses):
        return False        # chunk may return fewer pieces than asked for; only an unpacking checks the number
    attributes = {"chunks": Attribute.of(chunks, graph.dialect), "dim": Attribute.of(dim, graph.dialect)}
    types = {index: value.type for index, value in pieces}
    plain = pieces[0][1].type
    results = [types.get(index, plain) for index in range(chunks)]
    constant_chunk = Builder(graph).before(node).node("prim::ConstantChunk", node.inputs[:1], attributes, results)
    constant_chunk.tail = node.tail
    for index, value in pieces:
        value.replace_all_uses_with(constant_chunk.outputs[index])
    for user in dict.fromkeys(user for user, _ in node.output.uses):
        user.destroy()
    node.destroy()
    return True


def _number(node: Node, name: str) -> int | None:
    argument = node_argument(node, name)
    value = constant(argument) if isinstance(argument, Value) else getattr(argument, "value", NOT_CONSTANT)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
