"""In-place operators that change the shape of a tensor others can see, and other writes that shape propagation must know."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.ir.effects import node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.types import TensorType
from irtool.ops.size_facts import RESHAPING


def changes_shapes(node: Node) -> bool:
    """Does a node change the shape of an existing tensor?"""
    return node.kind in RESHAPING


def loose_tensors(graph: Graph) -> set[Value]:
    """The values that may share memory with a tensor whose shape a node of the graph changes, and such tensors."""
    return Changes(graph).loose if any(map(changes_shapes, graph.walk())) else set()


class Changes:
    """The tensors of a graph whose shape or elements change after they were computed."""

    def __init__(self, graph: Graph) -> None:
        writers = [node for node in graph.walk() if changes_shapes(node) or node_may_write(node)]
        self._aliases = Aliases(graph) if writers else None
        reshaped = [node.inputs[0] for node in writers if changes_shapes(node) and node.inputs]
        shares = self._aliases.sharing(reshaped) if self._aliases is not None and reshaped else None
        self.loose = {value for value in graph.values() if isinstance(value.type, TensorType) and shares(value)} if shares else set()
        """Tensors whose shape changes, and values that may share memory with them."""
        copied = reshaped + [value for node in writers for value in _filled(node)]
        self._stirs = self._aliases.sharing(copied) if self._aliases is not None and copied else None
        self._is_late: dict[Node, bool] = {}

    def is_fixed(self, value: Value) -> bool:
        """Does a list never change after its construction?"""
        return self._aliases is None or not self._aliases.is_written_itself(value)

    def stirred(self, node: Node) -> list[Value]:
        """The operands that may share memory with a tensor that is reshaped or the target of a copy: torch infers no shapes for them."""
        return [value for value in node.inputs if self._stirs(value)] if self._stirs is not None else []

    def is_late(self, node: Node) -> bool:
        """Does a node depend on a value that is written into? torch does not run such nodes to learn shapes."""
        if self._aliases is None or not self._aliases.has_writes:
            return False
        late, stack = self._is_late, [node]
        while stack:
            at = stack[-1]
            if at not in late and self._aliases.has_writers(at):
                late[at] = True
            makers = () if at in late else [value.node for value in at.inputs]
            unknown = [maker for maker in makers if maker not in late]
            if unknown:
                stack += unknown
                continue
            late.setdefault(at, any(late[maker] for maker in makers))
            stack.pop()
        return late[node]


def _filled(node: Node) -> list[Value]:
    """The operand that a node overwrites as a whole: the target of `copy_`, or `out`."""
    if node.kind == "aten::copy_":
        return list(node.inputs[:1])
    schema = schema_of(node)
    place = schema.positions.get("out") if schema is not None and not schema.is_vararg else None
    return [node.inputs[place]] if place is not None and place < len(node.inputs) else []
