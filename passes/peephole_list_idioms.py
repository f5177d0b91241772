"""Local simplifications of lists."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.analysis.refinements import Refinements
from irtool.ir.attribute import Attribute
from irtool.ir.edits import become_constant
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import INT, ListType
from irtool.passes.peephole import LIST_RULES, simplify


def peephole_list_idioms(graph: Graph, refine_list_len: bool = False) -> bool:
    """Read lengths and elements from where a list is made, and join and slice such lists: those rules of `peephole` alone; then dead code.

    `refine-list-len` takes the length of a list as what a condition has compared it with.

    before:
        graph(%a : int, %b : int):
          %1 : int = prim::Constant[value=1]()
          %2 : int[] = prim::ListConstruct(%a, %b)
          %3 : int = aten::__getitem__(%2, %1)
          %4 : int = aten::len(%2)
          %5 : int = aten::mul(%3, %4)
          return (%5)

    after:
        graph(%a : int, %b : int):
          %4 : int = prim::Constant[value=2]()
          %5 : int = aten::mul(%b, %4)
          return (%5)
    """
    changed = simplify(graph, [LIST_RULES])
    return refine_list_lengths(graph) or changed if refine_list_len else changed


def is_length(node: Node) -> bool:
    """Is a node the length of a list?"""
    return node.kind == "aten::len" and len(node.inputs) == 1 and isinstance(node.inputs[0].type, ListType)


def refine_list_lengths(graph: Graph) -> bool:
    """Make `len(x)` a constant where it was compared with one, unless the list may change. Returns whether the graph changed."""
    lengths = [node for node in graph.walk() if is_length(node)]
    if len({node.inputs[0] for node in lengths}) == len(lengths):
        return False        # no list is asked twice
    aliases = Aliases(graph)
    changed = False

    def subject(value: Value) -> Value | None:
        source = value.node
        return source.inputs[0] if is_length(source) and not aliases.is_written_itself(source.inputs[0]) else None

    def visit(node: Node) -> None:
        nonlocal changed
        number = refinements.known.get(node.inputs[0]) if is_length(node) else None
        if number is not None:
            become_constant(node, Attribute.of(number, graph.dialect, INT), INT)
            changed = True

    refinements = Refinements(graph, subject, visit)
    refinements.run()
    return changed
