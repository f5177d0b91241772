"""`torch.no_grad()` in graphs: operators that run where gradients are off get detached operands, and the switches are removed.

Gradients are off from `prim::Enter` to `prim::Exit` of a `no_grad`, or from one `aten::set_grad_enabled` to the next. The results of an
operator there need no gradient. A tensor that it writes into keeps its gradient, as in torch: only the elements change.
"""
from __future__ import annotations

from collections.abc import Iterator

from irtool.analysis.alias import Aliases
from irtool.analysis.gradients_off import Modes, Unsettled, modes_in
from irtool.analysis.shape_changes import changes_shapes
from irtool.autodiff.hidden_writes import read_after
from irtool.autodiff.reach import holds_tensors
from irtool.autodiff.refusals import at_node
from irtool.ir.builder import Builder
from irtool.ir.constants import is_constant, known_argument
from irtool.ir.dtypes import dtype_code
from irtool.ir.effects import OPERAND_ITSELF
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import schema_of
from irtool.ir.structure_kinds import kinds
from irtool.ir.types import TensorType, Type, TypeVar

ON_VALUES = kinds("""
prim::Constant prim::ListConstruct prim::TupleConstruct prim::DictConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex
prim::TupleSlice prim::GetAttr prim::SetAttr prim::CreateObject prim::Enter prim::Exit prim::unchecked_cast
prim::unchecked_unwrap_optional prim::Uninitialized prim::Print prim::RaiseException prim::AutogradZero prim::shape prim::dtype
prim::device prim::layout prim::data prim::requires_grad prim::is_cuda prim::NumToTensor prim::min prim::max prim::isinstance
prim::type aten::is_leaf
""")
"""Kinds to leave alone: they only forward tensors, or their results never have a gradient."""


def settle_grad_mode(graph: Graph) -> bool:
    """Replace the switches of a graph by `detach` nodes. Returns False, and leaves the graph as it is, if a mode is unknown."""
    if next(modes_in(graph), None) is None:
        return True
    try:
        walk = Settling(graph)
    except Unsettled:
        return False
    walk.write()
    return True


def refuse_grad_mode(graph: Graph) -> None:
    """As `settle_grad_mode`, but raises UnsupportedError, at the node's line, if a mode is unknown."""
    if settle_grad_mode(graph):
        return
    try:
        Settling(graph)
    except Unsettled as error:
        message = f"gradients through {error.node.kind} are not supported here: {error}"
        raise at_node(graph, UnsupportedError(message, code="E0501"), error.node) from None


class Settling(Modes):
    """Tells also which operators where gradients are off need detached operands. Raises Unsettled where that cannot be told."""

    def __init__(self, graph: Graph) -> None:
        self.quiet: list[Node] = []
        super().__init__(graph)

    def operator(self, node: Node) -> None:
        """Note an operator that runs where gradients are off."""
        operands = [value for value in node.inputs if isinstance(value.type, TensorType)]
        lists = [value for value in node.inputs if is_holder(value)]
        if node.kind in ON_VALUES or not operands and not lists:
            return
        schema = schema_of(node)
        if schema is None:
            raise Unsettled(node, "it runs where gradients are off")
        if node.kind in OPERAND_ITSELF and operands and not is_constant(operands[0]):
            does_nothing = nothing_to_do(node)
            if does_nothing is None:
                raise Unsettled(node, "where it has nothing to do it gives its operand itself, with its gradient, which shows when it runs")
            if does_nothing:
                return
        if any(isinstance(inner, TypeVar) for argument in schema.arguments for inner in parts(argument.type)):
            return      # operators on lists and dicts of anything only move elements
        if changes_shapes(node) and self.is_read_later(node) or lists and (schema.is_mutable or not all(isinstance(each.type, TensorType)
                                                                           for each in node.outputs)):
            raise Unsettled(node, "it runs where gradients are off")
        self.quiet.append(node)

    def is_read_later(self, node: Node) -> bool:
        """May a later node read the memory that a node writes into?"""
        aliases = Aliases(self.graph)
        return aliases.is_wild(node.inputs[0]) or any(read_after(value, node) for value in aliases.names_of(node.inputs[0]))

    def write(self) -> None:
        """Rewrite the graph: detach the operands of the operators noted, put answers for questions, and remove the switches."""
        for node in self.quiet:
            schema = schema_of(node)
            assert schema is not None
            writes = schema.is_mutable
            originals = list(node.inputs)
            for place, value in enumerate(originals):
                if isinstance(value.type, TensorType) and not is_constant(value):
                    node.replace_input(place, Builder(self.graph).before(node).call("aten::detach", value, type=value.type))
            if writes:
                for argument, value in zip(schema.arguments, originals, strict=False):
                    if argument.alias is not None and argument.alias.is_write and len(node.outputs) == 1:
                        node.output.replace_all_uses_with(value)
            elif any(map(is_holder, originals)):
                for output in node.outputs:
                    detached = Builder(self.graph).after(node).call("aten::detach", output, type=output.type)
                    output.replace_all_uses_with(detached)
                    detached.node.replace_input(0, output)
        for node, mode in self.asked:
            if mode is not None:
                node.output.replace_all_uses_with(Builder(self.graph).before(node).constant(mode))
        for node in self.switches:
            if not any(value.uses for value in node.outputs):
                node.destroy()


TURNED = ("aten::mT", "aten::mH", "aten::adjoint", "aten::matrix_H")
"""Kinds that return the operand itself if it has no dimensions, and is not to be conjugated."""


def nothing_to_do(node: Node) -> bool | None:
    """Does a node of OPERAND_ITSELF return its operand itself, and not a new tensor? None: unknown before the run."""
    if node.kind == "aten::positive":
        return True
    if node.kind.endswith("dropout"):
        train, p = (known_argument(node, name) for name in ("train", "p"))
        return True if train is False or p == 0 else False if train is True and p is not None else None
    type = node.inputs[0].type
    if not isinstance(type, TensorType) or type.dtype is None:
        return None
    if node.kind in TURNED and type.sizes != ():
        return None if type.sizes is None else False
    if node.kind == "aten::mT":
        return True
    if node.kind in ("aten::real", "aten::conj", "aten::conj_physical", *TURNED):
        return not type.dtype.startswith("complex")
    if node.kind == "aten::to":
        dtype, copies = known_argument(node, "dtype"), known_argument(node, "copy")
        return None if dtype is None or copies is None else not copies and dtype == dtype_code(type.dtype)
    if node.kind == "aten::type_as" and isinstance(node.inputs[1].type, TensorType) and node.inputs[1].type.dtype is not None:
        return type.dtype == node.inputs[1].type.dtype
    return None


def parts(type: Type) -> Iterator[Type]:
    """A type, and recursively its element types."""
    yield type
    for each in type.elements:
        yield from parts(each)


def is_holder(value: Value) -> bool:
    """Is a value a list, tuple, dict or optional of tensors, and not a constant?"""
    return not isinstance(value.type, TensorType) and holds_tensors(value.type) and not is_constant(value)
