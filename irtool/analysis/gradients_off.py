"""Where a graph switches gradients off and on (`torch.no_grad()`), and what runs where they are off.

Gradients are off from `prim::Enter` to `prim::Exit` of a `no_grad`, or from one `aten::set_grad_enabled` to the next.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from irtool.ir.constants import constant, is_constant
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import TensorType, Type

CONTEXTS = {"no_grad": False, "inference_mode": False, "enable_grad": True, "set_grad_enabled": None}
"""Class of `torch.autograd.grad_mode` -> the mode that entering it sets (True: gradients are on); None: that of its attribute `mode`."""


class Unsettled(Exception):
    """The mode at `node`, or the effect of the mode on `node`, is unknown before the run."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node


def modes_in(graph: Graph) -> Iterator[Node]:
    """The nodes that switch gradients on and off."""
    for node in graph.walk():
        if node.kind == "aten::set_grad_enabled" or node.kind == "prim::Enter" and context_of(node) in CONTEXTS:
            yield node


def context_of(node: Node) -> str:
    """The class of the object that `prim::Enter` enters, without its module."""
    return node.inputs[0].type.text.rpartition(".")[2] if node.inputs else ""


def is_off(graph: Graph) -> Callable[[Node], bool | None]:
    """A function that says of a node of the graph, one without blocks, whether it runs where gradients are off; None: unknown."""
    if next(modes_in(graph), None) is None:
        return lambda node: False
    try:
        off = Modes(graph).off
    except Unsettled:
        return lambda node: None
    return off.__contains__


def has_tensors(type: Type) -> bool:
    """Is a type that of tensors, or of containers of tensors, or Any?"""
    return isinstance(type, TensorType) or type.key == "Any" or any(map(has_tensors, type.elements))


class Modes:
    """Walks a graph in the order of execution and tracks whether gradients are on. Raises Unsettled where that is unknown."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.mode: bool | None = True
        self.of_value: dict[Value, bool | None] = {}                    # bool -> the mode that it means
        self.of_attribute: dict[tuple[Value, str], bool | None] = {}
        self.entered: dict[Value, bool | None] = {}                     # context object -> the mode before it was entered
        self.off: set[Node] = set()                                     # what runs where gradients are off
        self.switches: list[Node] = []
        self.asked: list[tuple[Node, bool | None]] = []                 # `aten::is_grad_enabled`, and what it gives
        self.block(graph.block)

    def block(self, block: Block) -> None:
        """The nodes of a block."""
        for node in block:
            if node.blocks:
                self.inner_blocks(node)
            elif node.kind.startswith("aten::") and node.kind.endswith("grad_enabled"):
                self.function(node)
            elif node.kind in ("prim::Enter", "prim::Exit") and context_of(node) in CONTEXTS:
                self.context(node)
            elif node.kind == "prim::SetAttr":
                self.of_attribute[node.inputs[0], str(node.attributes["name"].value)] = self.held(node.inputs[1])
            elif node.kind == "prim::GetAttr":
                self.of_value[node.output] = self.of_attribute.get((node.inputs[0], str(node.attributes["name"].value)))
            elif self.mode is not True:
                self.off.add(node)
                self.operator(node)

    def inner_blocks(self, node: Node) -> None:
        """Walk the blocks of a branch or loop. Each begins in the current mode; all must end in the same mode."""
        before, after = self.mode, set()
        for inner in node.blocks:
            self.mode = before
            self.block(inner)
            after.add(self.mode)
        if node.kind in LOOP_KINDS:
            after.add(before)
        elif node.kind not in IF_KINDS and before is not True:
            raise Unsettled(node, "its block runs without gradients")
        if len(after) > 1:
            raise Unsettled(node, "gradients are on or off behind it as is decided when it runs")
        self.mode = after.pop()

    def held(self, value: Value) -> bool | None:
        """The mode that a bool means; None: unknown."""
        if is_constant(value):
            said = constant(value)
            return said if isinstance(said, bool) else None
        return self.of_value.get(value)

    def function(self, node: Node) -> None:
        """`aten::is_grad_enabled`, `aten::set_grad_enabled`."""
        if node.kind == "aten::is_grad_enabled":
            self.of_value[node.output] = self.mode
            self.asked.append((node, self.mode))
        else:
            self.mode = self.held(node.inputs[0])
            self.switches.append(node)
            if self.mode is None:
                raise Unsettled(node, "the mode is decided when it runs")

    def context(self, node: Node) -> None:
        """`prim::Enter` and `prim::Exit`."""
        held = node.inputs[0]
        self.switches.append(node)
        if node.kind == "prim::Enter":
            self.entered[held] = self.mode
            entered = CONTEXTS[context_of(node)]
            self.mode = self.of_attribute.get((held, "mode")) if entered is None else entered
            if self.mode is None:
                raise Unsettled(node, "the mode is decided when it runs")
        else:
            self.mode = self.entered.get(held)
            if self.mode is None:
                raise Unsettled(node, "it leaves a context that was not entered")

    def operator(self, node: Node) -> None:
        """Called for each node without blocks that runs where gradients are off."""
