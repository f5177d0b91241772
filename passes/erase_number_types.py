"""Numbers as tensors."""
from __future__ import annotations

from irtool.autodiff.refusals import at_node
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.constants import CONSTANT_KINDS, constant
from irtool.ir.dialect import Dialect
from irtool.ir.edits import replace_node
from irtool.ir.errors import PassError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import TensorType, Type, spell, tensor_type
from irtool.ir.verify_constants import needed_for
from irtool.ops.size_facts import NUMBER_CONVERSIONS

DTYPES: dict[str, str | None] = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128", "Scalar": None}
"""Type of a number -> dtype of the tensor: torch's for Python scalars, in double precision."""


def erase_number_types(graph: Graph) -> bool:
    """Turn every number and bool into a 0-dim tensor, for backends that know only tensors, and drop conversions between the two.

    Numbers in lists and tuples keep their types, and so does a constant that is only a result of blocks, as in torch.

    before:
        graph(%x : Tensor, %n : int):
          %1 : int = prim::Constant[value=2]()
          %2 : int = aten::mul(%n, %1)
          %3 : Tensor = prim::NumToTensor(%2)
          %4 : Tensor = aten::mul(%x, %3)
          return (%4)

    after:
        graph(%x : Tensor, %n : Long(device=cpu)):
          %1 : Long(device=cpu) = prim::Constant[value={2}]()
          %2 : Long(device=cpu) = aten::mul(%n, %1)
          %4 : Tensor = aten::mul(%x, %2)
          return (%4)
    """
    eraser = Eraser(graph)
    for value in graph.inputs:
        eraser.retype(value)
    eraser.block(graph.block)
    return eraser.changed


class Eraser:
    """The walk over the graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.dialect: Dialect = graph.dialect
        self.changed = False
        self.types: dict[Type, Type] = {}

    def as_tensor(self, type: Type) -> Type:
        """The tensor type for a number type; any other type is itself."""
        erased = self.types.get(type)
        if erased is None:
            erased = type
            if type.key in DTYPES:
                erased = spell(tensor_type(DTYPES[type.key], (), None, None, "cpu"), self.dialect)
            self.types[type] = erased
        return erased

    def retype(self, value: Value) -> None:
        new = self.as_tensor(value.type)
        if new is not value.type:
            value.type = new
            self.changed = True

    def block(self, block: Block) -> None:
        for node in block:
            for value in node.inputs:
                self.retype(value)
            for inner in node.blocks:
                self.block(inner)
            if node.kind in CONSTANT_KINDS and len(node.outputs) == 1:
                self.constant(node)
            elif node.kind in NUMBER_CONVERSIONS and len(node.inputs) == 1 and isinstance(node.inputs[0].type, TensorType):
                replace_node(node, node.inputs[:1])
                self.changed = True
            else:
                for value in node.outputs:
                    self.retype(value)

    def constant(self, node: Node) -> None:
        """Turn the constant into a tensor; its type changes when a node that reads it is visited."""
        number = constant(node.output)
        attribute = node.attributes.get("value")
        if attribute is None or attribute.text.startswith("{") or node.output.type.key not in DTYPES:
            return
        if isinstance(number, (bool, int, float, complex)):
            needed = needed_for(number, node.output.type)
            if needed:      # which texts of 2018 can say
                error = PassError(f"a constant of type {node.output.type} needs {needed}, found {attribute.text[:40]}")
                raise at_node(self.graph, error, node)
            attribute = Attribute.of(TensorLiteral.scalar(number), self.dialect)
            node.set_attribute("value", attribute)
            if not node.output.name:        # old texts write numbers, but not tensors, among the operands of their user
                node.output.name = self.graph.fresh_id()
            self.changed = True
