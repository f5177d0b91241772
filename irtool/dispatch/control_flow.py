"""Branches and loops of graphs whose conditions are *undecided*: tensors whose elements a layer hides, batched or traced ones.

A graph under layers decides by concrete values if it can. If the condition is undecided, the layers run the branch or loop
(`Layer.branch`, `Layer.repeat`): a batch runs both branches and selects, a trace records an If or a Loop. A block becomes a function of
the values that it reads, which runs on the layer that is on top then.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import comes_before
from irtool.autodiff.gradient_questions import QUESTIONS
from irtool.dispatch.gradients_off import modes_of, restore
from irtool.dispatch.stack import Boxed, Layer, current, layers_from
from irtool.interpret import Rounds, Step, Walk
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, facts_of, node_may_write
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import PARAM, Block, Node, Value
from irtool.ops.arrays import CODES
from irtool.ops.size_facts import ON_TENSORS
from irtool.ops.tensor import Tensor

Apply = Callable[..., Any]
MOST_ROUNDS = 1 << 16
"""That a trace writes down one by one, in a graph's loops that no tensor decides."""
DECIDES = ("aten::Bool", "aten::is_nonzero")


def is_undecided(value: Any) -> bool:
    """Is a value a tensor in a box of a layer that hides its elements?"""
    while isinstance(value, Boxed):
        if value.layer.hides_elements:
            return True
        value = value.value
    return False


def only_controls(value: Value) -> bool:
    """Is a bool used only as a condition of branches and loops, or in operators on bools of which the same is true?"""
    for user, _ in value.uses:
        is_result = user.kind == "prim::Return" and user.owner_block.owning_node is not None
        if not (user.kind in IF_KINDS or user.kind in LOOP_KINDS or is_result or user.kind in ON_TENSORS and only_controls(user.output)):
            return False
    return True


def as_condition(value: Any, apply: Apply) -> Any:
    """A tensor of one element as a 0-d bool tensor."""
    if value.ndim:
        value = apply("aten::reshape", [value, []])
    return value if value.dtype == 11 else apply("aten::ne.Scalar", [value, 0])


def logic(kind: str, values: Sequence[Any], apply: Apply) -> Any:
    """The result, a 0-d bool tensor, of an operator on bools some of which are undecided."""
    return apply(ON_TENSORS[kind], [truth(value, apply) for value in values])


def truth(value: Any, apply: Apply) -> Any:
    """A bool as a 0-d tensor; a tensor unchanged."""
    return value if isinstance(value, Tensor) else apply("aten::scalar_tensor", [bool(value), 11, None, None, None])


def reads(node: Node) -> list[Value]:
    """The outer values that a node's blocks read, in order."""
    operands: dict[Value, None] = {}
    inside: set[Block] = set()
    stack = list(node.blocks)
    while stack:
        block = stack.pop()
        inside.add(block)
        for inner in [*block, block.return_node]:
            operands.update(dict.fromkeys(inner.inputs))
            stack += inner.blocks
    return [value for value in operands if value.node.owner not in inside]


def refuse_effects(node: Node, layer: Layer) -> None:
    """Raise UnsupportedError if the blocks of a node have side effects, or return values whose memory is written elsewhere, or ask about
    gradients that a layer takes: tapes run blocks below themselves."""
    has_tape = any(each.is_tape for each in layers_from(layer))
    for block in node.blocks:
        for inner in block.walk():
            if node_may_write(inner) or facts_of(inner.kind).is_random or inner.kind in ("prim::RaiseException", "prim::Print") \
                    or has_tape and inner.kind in QUESTIONS:
                raise UnsupportedError(f"{node.kind} whose condition is batched or traced is not supported with {inner.kind} in it",
                                       code="E0504")
    graph = node.graph
    assert graph is not None
    is_outermost = node.owner is graph.block
    writers = [each for each in graph.walk() if node_may_write(each) and each.inputs and not (is_outermost and comes_before(each, node))]
    if not writers:
        return
    aliases = Aliases(graph)
    for value in node.outputs:
        outer = [name for name in aliases.names_of(value) if comes_before(name.node, node) or name.node.kind == PARAM]
        for writer in writers if outer else ():
            if aliases.may_alias(value, writer.inputs[0]):
                raise UnsupportedError(f"{node.kind} whose condition is batched or traced is not supported where %{value.name}, which it "
                                       f"gives, shares memory that {writer.kind} writes into", code="E0504")


class Control:
    """The control flow of a walk over a graph (`irtool.interpret.walk`): lets the layers run branches and loops that are undecided."""

    def __init__(self, apply: Apply, caller: Callable[[Apply], Any]) -> None:
        self.layer: Layer = apply.__self__       # type: ignore[attr-defined]
        self.caller = caller
        self.rounds = 0

    def branch(self, walk: Walk, step: Step, condition: Any) -> list[Any] | None:
        """The results of an If, if its condition is undecided; else None."""
        if not is_undecided(condition):
            return None
        refuse_effects(step.node, self.layer)
        read = reads(step.node)
        bools = [value.index for value in step.node.outputs if value.type.text == "bool" and only_controls(value)]
        then, otherwise = (self.function(walk, block, read, bools=bools) for block in step.node.blocks)
        return self.layer.branch(condition, then, otherwise, [walk.env[value] for value in read])

    def repeat(self, walk: Walk, step: Step, rounds: Rounds, condition: Any, carried: list[Any]) -> list[Any] | None:
        """The final carried values of a Loop, if its condition is undecided; else None."""
        if not is_undecided(condition):
            self.rounds += 1
            if self.rounds > MOST_ROUNDS and self.layer.unrolls:
                raise UnsupportedError(f"{step.node.kind} of more than {MOST_ROUNDS} rounds is not supported in a trace, which has "
                                       "the nodes of each", code="E0504")
            return None
        refuse_effects(step.node, self.layer)
        (block,) = step.node.blocks
        if block.inputs[0].has_uses:
            raise UnsupportedError(f"{step.node.kind} whose condition is batched or traced is not supported where its counter is used",
                                   code="E0504")
        read = reads(step.node)
        count = len(carried)
        body = self.function(walk, block, read, count)
        args = [*carried, *[walk.env[value] for value in read]]
        limit = None if rounds.limit is None or rounds.limit >= 2**63 - 1 else rounds.limit - rounds.done
        return self.layer.repeat(limit, condition, body, args, count)

    def function(self, walk: Walk, block: Block, read: list[Value], count: int = 0, bools: Sequence[int] = ()) -> Callable[..., list[Any]]:
        """A block as a function of its inputs and of the outer values that it reads. bools: positions of results to convert to tensors."""
        def run(*args: Any) -> list[Any]:
            apply = current().apply
            inner = Walk(self.caller(apply), None, walk.closed, Control(apply, self.caller))
            inner.plans = walk.plans
            inner.env.update(zip(read, args[count:], strict=True))
            modes = modes_of(current())
            results: list[Any] = inner.run_block(block, [0, *args[:count]] if block.inputs else [])
            if any(layer.mode != mode for layer, mode in modes):
                restore(modes)
                raise UnsupportedError("a branch or loop whose condition is batched or traced is not supported where it leaves gradients "
                                       "switched on or off", code="E0504")
            return [truth(result, apply) if place in bools else result for place, result in enumerate(results)]
        return run


def merged(a: Any, b: Any, tensors: Callable[[Any, Any], Any], what: str) -> Any:
    """Merge two results: tensors by a function; anything else must be equal. Raises UnsupportedError if it is not."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return tensors(a, b)
    if isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
        return type(a)([merged(one, other, tensors, what) for one, other in zip(a, b, strict=True)])
    if type(a) is type(b) and not isinstance(a, Tensor) and a == b:
        return a
    raise UnsupportedError(f"{what} whose condition is batched or traced gives {described(a)} one way and {described(b)} the other",
                           code="E0504")


def either(layer: Layer, condition: Any, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """The results of one function or the other, chosen for each place by the condition. Raises UnsupportedError if tensors differ in dtype
    or sizes: a batch has one."""
    def taken(a: Any, b: Any) -> Any:
        if a.dtype != b.dtype or list(a.shape) != list(b.shape):
            raise UnsupportedError(f"a branch whose condition is batched or traced gives {facts_of_tensor(a)} one way and "
                                   f"{facts_of_tensor(b)} the other", code="E0504")
        return layer.call("aten::where", (condition, a, b), {})

    results = []
    for a, b in zip(first, second, strict=True):
        if isinstance(a, Tensor) is not isinstance(b, Tensor) and bool in (type(a), type(b)):
            a, b = truth(a, layer.apply), truth(b, layer.apply)
        results.append(merged(a, b, taken, "a branch"))
    return results


def holds_anywhere(layer: Layer, condition: Any) -> bool | None:
    """Does a condition hold at any place of a batch? None: no layer can decide."""
    return layer.anywhere(condition) if isinstance(condition, Tensor) else bool(condition)


def facts_of_tensor(tensor: Any) -> str:
    """Dtype and sizes in a message."""
    return f"a tensor of {CODES[tensor.dtype]}{list(tensor.shape)}"


def described(value: Any) -> str:
    """A value in a message."""
    return "a tensor" if isinstance(value, Tensor) else repr(value)[:40]
