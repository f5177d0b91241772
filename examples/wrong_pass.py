"""A pass that is wrong, for docs/checking.md."""
from irtool import Graph


def drop_negations(graph: Graph) -> bool:
    """Make `-x` just `x`."""
    changed = False
    for node in graph.walk():
        if node.kind == "aten::neg":
            node.output.replace_all_uses_with(node.inputs[0])
            changed = True
    return changed
