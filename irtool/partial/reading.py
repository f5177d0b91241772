"""What evaluation asks about a node of the evaluated graph, found once: a formula's graph is evaluated for thousands of nodes."""
from __future__ import annotations

from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.dialect import Dialect
from irtool.ir.effects import MUTATORS
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import TensorType, spell
from irtool.ops.facts import facts_of_node
from irtool.partial.fold_rules import RULES
from irtool.partial.items import Known, holds_tensor, item_of


class Reading:
    """Facts about one node of a graph that is not edited while it is evaluated."""

    __slots__ = ("is_constant", "known", "has_blocks", "changes_list", "rule", "may_fold", "facts", "only_reads", "types", "gives_tensor")

    def __init__(self, node: Node, dialect: Dialect) -> None:
        self.is_constant = len(node.outputs) > 0 and node.kind in CONSTANT_KINDS
        item = item_of(node.outputs[0]) if self.is_constant else None
        self.known = item if isinstance(item, Known) and not isinstance(item.value, list) else None
        """The item of a constant; None also for a list, of which each evaluation makes its own item, since nodes may change it."""
        self.has_blocks = bool(node.blocks)
        self.changes_list = node.kind in MUTATORS
        self.rule = RULES.get(node.kind)
        """The rule that computes the results from items; None: there is none."""
        self.may_fold = bool(node.inputs) and not any(holds_tensor(value.type) for value in node.outputs)
        """May the results be computed ahead if all operands are known?"""
        self.facts = facts_of_node(node)
        self.only_reads = node.kind.startswith("aten::") and not self.changes_list
        """Are operands that are lists only read?"""
        self.types = tuple([spell(value.type, dialect) for value in node.outputs])
        """The results' types in the target's dialect."""
        self.gives_tensor = any(isinstance(value.type, TensorType) for value in node.outputs)


Constants = dict[Value, Known]
"""The constants of a block, as items."""
Nodes = list[tuple[Node, Reading]]
"""The other nodes of a block, in order."""


def read_block(block: Block, dialect: Dialect) -> tuple[Constants, Nodes]:
    """The constants and the other nodes of a block of a graph that is not edited any more; dialect: of the target."""
    constants: Constants = {}
    nodes: Nodes = []
    for node in block:
        reading = Reading(node, dialect)
        if reading.known is not None:
            constants[node.outputs[0]] = reading.known
        else:
            nodes.append((node, reading))
    return constants, nodes
