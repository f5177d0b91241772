"""The walk over f from its results back to its inputs. `irtool.autodiff.reverse` starts it.

A handler takes the gradients (`irtool.autodiff.gradients`) and a node, and hands the gradients of the node's results to its operands. A
handler that replaces the node returns the new nodes, which are visited next. A handler of nodes with blocks takes the sweep instead of
the gradients, and calls `sweep.walk` on the blocks.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Reversible, Sequence

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.refusals import at_node, refuse_untyped
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Block, Node
from irtool.ir.packed import owns_gradient
from irtool.ir.pair import REVERSE

Handler = Callable[[Gradients, Node], Sequence[Node] | None]


class Sweep:
    """The gradients so far, and the handlers."""

    def __init__(self, grads: Gradients, block_handlers: Mapping[str, Callable[[Sweep, Node], None]], handlers: Mapping[str, Handler],
                 formula: Handler, origins: bool) -> None:
        self.grads = grads
        self.block_handlers = block_handlers
        """Kind of a node with blocks -> its handler."""
        self.handlers = handlers
        """Kind of any other node -> its handler; `ReverseSubgraph` -> the handler of nodes that have a gradient of their own."""
        self.formula = formula
        """The handler of all other nodes."""
        self.origins = origins
        """Do comments in df name the nodes of f?"""

    def walk(self, block: Block) -> None:
        """Differentiate the nodes of a block of f, last one first."""
        self.visit_all(block)

    def visit_all(self, nodes: Reversible[Node]) -> None:
        """Differentiate nodes of one block that have gradients, last one first."""
        needs = self.grads.needs
        for node in reversed(nodes):
            if not needs.isdisjoint(node.outputs) or not needs.isdisjoint(self.grads.changes.at.get(node, ())):
                self.visit(node)

    def visit(self, node: Node) -> None:
        """Pass the gradients of a node's results, and of the lists that it changes, on to its operands. Raises errors at the node's line.

        New nodes of df have the node's line, scope and source comment; those for a node that replaces another, the other's.
        """
        grads = self.grads
        if not any(value in grads.current for value in (*node.outputs, *grads.changes.at.get(node, ()))):
            return
        refuse_untyped(grads.f, grads.needs, node.outputs, node)
        grads.resume()
        build = grads.build
        outer = build.tail, build.line
        try:
            if node.line or node.tail:
                build.tail, build.line = origin(node) if self.origins else node.tail, node.line
            block_handler = self.block_handlers.get(node.kind) if node.blocks else None
            if block_handler is not None:
                block_handler(self, node)
                return
            if node.blocks:
                raise UnsupportedError(f"the gradient of {node.kind} is not supported yet", code="E0501")
            handler = self.handlers.get(REVERSE if owns_gradient(node) else node.kind, self.formula)
            self.visit_all(handler(grads, node) or ())
        except Error as error:
            raise at_node(grads.f, error, node) from None
        finally:
            build.tail, build.line = outer


def origin(node: Node) -> str:
    """The scope of a node, and a comment with its name and the place of its source: `, scope: A # from %3, model.py:1:2`. Without its
    line in the text, which every pass changes."""
    scope, _, source = node.tail.partition(" # ")
    name = f"%{node.outputs[0].name}" if node.outputs else node.kind
    return f"{scope} # from {name}{', ' if source else ''}{source}"
