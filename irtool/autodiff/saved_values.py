"""What f computes for df: what a formula saves, behind its operator, or the operator made anew of what the formula is made of."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irtool.autodiff.formula_graphs import Formula
from irtool.autodiff.reach import reach
from irtool.ir.errors import PassError
from irtool.ir.graph import Node, Value
from irtool.ir.schema import Schema, schema_of, schemas
from irtool.partial.items import Item, Items

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def take_apart(d: Differentiator, node: Node, formula: Formula, arguments: Sequence[Item]) -> None:
    """An operator of f becomes those that its formula makes it of, and these are differentiated."""
    env: dict[Value, Item] = dict(zip(formula.graph.inputs, arguments, strict=True))
    before, behind = node.prev, node.next
    d.forward.build.before(node)
    d.forward.new_block()
    d.forward.run(formula.graph.block, env, formula.needed(formula.results))
    for old, result in zip(d.results_of(node, schema_for(node)), formula.results, strict=True):
        assert isinstance(old, Value)
        replace(d, old, d.forward.value(env[result], old.type))
    node.remove()
    made = []
    while before.next is not behind:
        before = before.next
        made.append(before)
    reach(made, d.needs, False)
    for each in reversed(made):
        if any(value in d.needs for value in each.outputs):
            d.visit(each)


def context_of(d: Differentiator, node: Node, formula: Formula, arguments: Sequence[Item]) -> Item:
    """What the formula saves, as items of f; what is neither an argument nor a result is computed in f, behind the node."""
    env: dict[Value, Item] = dict(zip(formula.graph.inputs, arguments, strict=True))
    own = d.results_of(node, schema_for(node))
    saved = formula.context.node.inputs
    replaces, wanted = formula.forward()
    if replaces:
        d.forward.build.before(node)
        d.forward.new_block()
        d.forward.run(formula.graph.block, env, wanted)
        for old, result in zip(own, formula.results, strict=True):
            assert isinstance(old, Value)
            new = d.forward.value(env[result], old.type)
            if new.node.graph is d.f and not new.is_block_input and new.node is not node:
                new.type = old.type
            replace(d, old, new)
        node.remove()
    else:
        env.update(zip(formula.results, own, strict=True))
        d.forward.build.after(node)
        d.forward.new_block()
        results = frozenset(formula.results)
        d.forward.run(formula.graph.block, env, wanted,
                         lambda at, env: bool(at.outputs) and results.issuperset(at.outputs))
    return Items([env[value] for value in saved], True, formula.context.type)


def replace(d: Differentiator, old: Value, new: Value) -> None:
    """A value of f is computed otherwise from now on."""
    old.replace_all_uses_with(new)
    if old in d.gradients:
        d.gradients[new] = d.gradients[old]
    d.needs.add(new)
    if old in d.captures:
        d.captures[new] = d.captures.pop(old)


def schema_for(node: Node) -> Schema:
    """The declaration of a node's operator. Raises PassError where none fits."""
    found = schemas("aten::chunk")[0] if node.kind == "prim::ConstantChunk" else schema_of(node)
    if found is None:
        raise PassError(f"{node.kind} fits no declaration")
    return found
