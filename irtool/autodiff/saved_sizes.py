"""Sizes and dtypes that df reads: df computes those of tensors that it captures anyway; f computes the others, and df captures them."""
from __future__ import annotations

from irtool.autodiff.captures import Captures
from irtool.ir.builder import Builder
from irtool.ir.edits import replace_node
from irtool.ir.graph import NO_ATTRIBUTES, Block, Node, Value
from irtool.ir.structure_kinds import SIZE_QUESTIONS


def ask_in_df(captures: Captures) -> None:
    """If a tensor is captured anyway, let df compute its size and dtype instead of capturing those too."""
    ask_in_rounds(captures)
    outputs = set(captures.f.outputs)
    read = captures.values_read()
    for value, size in list(captures.at_top.items()):
        node = captures.exports.get(value, value).node
        if is_question(node) and size in read:
            whole = captures.stand_in(node.inputs[0])
            if whole is not None and whole in read and value not in outputs:
                del captures.at_top[value]
                if value in captures.exports:
                    ask_in_branches(captures, node.kind, size, whole)
                else:
                    captures.become(size, node.kind, NO_ATTRIBUTES, (whole,)).move_after(whole.node)


def is_question(node: Node) -> bool:
    """Does a node compute the size or dtype of its operand?"""
    return node.kind in ("aten::size", "prim::dtype") and len(node.inputs) == 1 and not node.attributes


def ask_in_rounds(captures: Captures) -> None:
    """If a tensor is saved in each round of a loop anyway, let df compute its size and dtype instead of saving those too."""
    for value, round in captures.saved_lists.values():
        size, node = captures.in_blocks[value], value.node
        if not is_question(node):
            continue
        whole = captures.in_blocks.get(node.inputs[0])
        if whole is not None and whole.has_uses and whole.node.owner is round.block and size.has_uses:
            question = Builder(captures.df).after(whole.node).node(node.kind, (whole,), output_types=(size.type,))
            size.replace_all_uses_with(question.output)
            round.last = question if round.last is whole.node else round.last
            size.node.remove()


def ask_in_branches(captures: Captures, kind: str, size: Value, whole: Value) -> None:
    """For a value exported from a branch: compute its size in those branches of df that read the size, where the value is defined.

    That is the innermost branch around the user: the branches around it are also taken where f did not compute the value.
    """
    answers: dict[Block, Value] = {}
    for user, slot in size.uses:
        block = user.owner_block
        while (owner := block.owning_node) is not None and owner.kind != "prim::If" and owner.owner is not captures.df.block:
            block = owner.owner_block
        if block not in answers:
            answers[block] = captures.build.at_start(block).node(kind, (whole,), output_types=(size.type,)).output
        user.replace_input(slot, answers[block])


def ask_in_f(captures: Captures) -> None:
    """If df reads only the size of a captured tensor, let f compute the size, after the tensor, and capture that instead."""
    read = captures.values_read(SIZE_QUESTIONS)
    for value, stand_in in list(captures.at_top.items()):
        if stand_in in read:
            continue
        inner = captures.exports.get(value, value)
        users = list(dict.fromkeys(user for user, _ in stand_in.uses))
        if value in captures.saved_lists or inner.is_block_input or inner.node.blocks or inner.node.kind == "prim::AutogradAdd":
            continue        # a sum of gradients may be undefined, and then has no size
        if any(user.kind not in SIZE_QUESTIONS or len(user.inputs) != 1 for user in users):
            continue
        answers: dict[str, Value] = {}
        for user in users:
            if user.kind not in answers:
                question = Builder(captures.f).after(inner.node).node(user.kind, (inner,), output_types=(user.output.type,))
                answers[user.kind] = captures.take(question.output)
            replace_node(user, (answers[user.kind],))
