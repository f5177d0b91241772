"""Rewrite rules of users."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from irtool.analysis.alias import Aliases
from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.edits import clone_node
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.replacing_walk import Sweep
from irtool.ir.types import TensorType
from irtool.passes import Values
from irtool.torchscript.rewrite_rules import STANDARD, RewriteRule, read_rules

MOST = 100
"""Sweeps over a graph whose rules never come to an end."""


def rewrite(graph: Graph, rules: str = "", unchecked: bool = False) -> bool:
    """Apply rewrite rules, functions in TorchScript that return what is looked for and what takes its place; then run `dce`.

    `rules` is a file of them; without it `irtool/torchscript/standard_rules.py` is. Each rule of a file is first tried on inputs made from
    its types; one that changes results, dtypes, shapes or signs of zeros is refused, unless `unchecked`. Values that are written into are
    left alone. `irtool.torchscript.rewrite_rules` says what rules may say.

    before:
        graph(%x : Float(2, 3)):
          %1 : float = prim::Constant[value=1.]()
          %2 : Tensor = aten::mul(%x, %1)
          %3 : Tensor = aten::neg(%2)
          return (%3)

    after:
        graph(%x : Float(2, 3)):
          %3 : Tensor = aten::neg(%x)
          return (%3)
    """
    if not rules:
        return apply_rules(graph, read_rules(Path(STANDARD).read_text(encoding="utf-8"), STANDARD, False))
    try:
        with open(rules, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise Error(f"the rules {rules} cannot be read: {getattr(error, 'strerror', None) or error}", code="E0310") from None
    return apply_rules(graph, read_rules(text, rules, not unchecked))


rewrite.values = {"rules": Values("a file of rules", "rules.py", lambda path: True)}     # type: ignore[attr-defined]


def apply_rules(graph: Graph, rules: tuple[RewriteRule, ...]) -> bool:
    """Apply rules wherever they fit, until none does. Raises Error where that takes more than MOST sweeps."""
    by_kind: dict[str, list[RewriteRule]] = {}
    for rule in rules:
        by_kind.setdefault(rule.root.node.kind, []).append(rule)
    for count in range(MOST):
        if not one_sweep(graph, by_kind):
            return count > 0
        remove_dead_nodes(graph)
    raise Error(f"the rules {', '.join(rule.name for rule in rules)} come to no end: after {MOST} sweeps they still apply", code="E0310")


def one_sweep(graph: Graph, by_kind: Mapping[str, list[RewriteRule]]) -> bool:
    """Apply rules once over the graph."""
    sweep, aliases, changed = Sweep(graph), Aliases(graph), False
    graph.build_uses()
    for node in sweep:
        for rule in by_kind.get(node.kind, ()):
            if rule.root.index >= len(node.outputs):
                continue
            value = node.outputs[rule.root.index]
            bindings = rule.matched(value)
            if bindings is None or any(aliases.has_writers(bindings[each.outputs[0]].node) for each in rule.operators
                                       if each.outputs[0] in bindings):
                continue
            sweep.replace(value, built(graph, rule, bindings, node))
            changed = True
            break
    return changed


def built(graph: Graph, rule: RewriteRule, bindings: dict[Value, Value], before: Node) -> Value:
    """The replacement, computed in front of a node from what the parameters stand for."""
    mapping = dict(bindings)
    for step in rule.steps():
        if any(value not in mapping for value in step.outputs):
            copy = clone_node(step, mapping, None, graph)
            copy.tail = before.tail
            copy.insert_before(before)
    result, root = mapping[rule.replacement], bindings[rule.root]
    is_new = result.node.next is before and rule.replacement not in bindings
    if is_new and isinstance(result.type, TensorType) and isinstance(root.type, TensorType):
        result.type = root.type
    return result
