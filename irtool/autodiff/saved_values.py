"""Values that f computes for df: those that formulas save. Or f replaces an operator by the operators of which its formula is composed."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.autodiff.formula_graphs import Formula
from irtool.autodiff.gradients import Gradients
from irtool.autodiff.reach import reach
from irtool.ir import types
from irtool.ir.errors import PassError
from irtool.ir.graph import Node, Value
from irtool.ir.schema import Schema, schema_of, schemas
from irtool.ir.types import ListType, TensorType
from irtool.partial.items import Item, Items


def take_apart(grads: Gradients, node: Node, formula: Formula, arguments: Sequence[Item]) -> list[Node]:
    """Replace an operator of f by the operators of which its formula is composed. Returns them, to be differentiated one by one."""
    env: dict[Value, Item] = dict(zip(formula.graph.inputs, arguments, strict=True))
    before, behind = node.prev, node.next
    grads.into_f.build.before(node)
    grads.into_f.new_block()
    grads.into_f.run(formula.graph.block, env, formula.needed(formula.results))
    for old, result in zip(results_of(node, schema_for(node)), formula.results, strict=True):
        assert isinstance(old, Value)
        replace(grads, old, grads.into_f.value(env[result], old.type))
    node.remove()
    nodes = []
    while before.next is not behind:
        before = before.next
        nodes.append(before)
    reach(nodes, grads.needs, False)
    return nodes


def context_of(grads: Gradients, node: Node, formula: Formula, arguments: Sequence[Item], outputs: Sequence[Item]) -> Item:
    """The values that a formula saves, as items of f. f computes those that are neither arguments nor results after the node.

    outputs: the node's results, one per result of its schema.
    """
    env: dict[Value, Item] = dict(zip(formula.graph.inputs, arguments, strict=True))
    saved = formula.context.node.inputs
    replaces, wanted = formula.forward()
    into_f = grads.into_f
    if replaces:
        into_f.build.before(node)
        into_f.new_block()
        into_f.run(formula.graph.block, env, wanted)
        for old, result in zip(outputs, formula.results, strict=True):
            assert isinstance(old, Value)
            new = into_f.value(env[result], old.type)
            if new.node.graph is grads.f and not new.is_block_input and new.node is not node:
                new.type = old.type
            replace(grads, old, new)
        node.remove()
    else:
        env.update(zip(formula.results, outputs, strict=True))
        into_f.build.after(node)
        into_f.new_block()
        results = frozenset(formula.results)
        into_f.run(formula.graph.block, env, wanted, lambda at, env: bool(at.outputs) and results.issuperset(at.outputs))
    return Items([env[value] for value in saved], True, formula.context.type)


def replace(grads: Gradients, old: Value, new: Value) -> None:
    """Replace a value of f, in f and in the state of the differentiation."""
    old.replace_all_uses_with(new)
    if old in grads.current:
        grads.current[new] = grads.current[old]
    grads.needs.add(new)
    captured = grads.captures.at_top
    if old in captured:
        captured[new] = captured.pop(old)


def results_of(node: Node, schema: Schema) -> list[Item]:
    """The results of a node, one per result of the schema: text of 2018 writes a list as several results."""
    if len(schema.returns) == 1 and isinstance(schema.returns[0].type, ListType) and (
            len(node.outputs) != 1 or isinstance(node.outputs[0].type, TensorType)):
        return [Items(list(node.outputs), False, types.list_of(types.TENSOR))]
    return list(node.outputs)


def schema_for(node: Node) -> Schema:
    """The schema of a node's operator. Raises PassError if none fits."""
    schema = schemas("aten::chunk")[0] if node.kind == "prim::ConstantChunk" else schema_of(node)
    if schema is None:
        raise PassError(f"{node.kind} fits no declaration")
    return schema
