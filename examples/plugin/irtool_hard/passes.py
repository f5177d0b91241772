"""A pass."""
from irtool import Graph


def double_negations(graph: Graph, most: int = 1000) -> bool:
    """Make `-(-x)` just `x`, at most `most` times; what then is dead stays, for `dce`."""
    changed = 0
    for node in graph.walk():
        if node.kind != "aten::neg" or node.inputs[0].node.kind != "aten::neg" or changed == most:
            continue
        node.output.replace_all_uses_with(node.inputs[0].node.inputs[0])
        changed += 1
    return changed > 0
