"""f and df joined into one graph.

If a run and its gradients are wanted together (`Executor.vjp`), f followed by df is one graph, which a separate executor runs. So captures
are not saved between two runs, and pointwise operators of f are fused with those of df.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irtool.autodiff.reverse import Reverse
from irtool.execute.compilation import ExecutionPlan, outline
from irtool.execute.plan.compiled import HARMLESS
from irtool.interpret import all_nodes
from irtool.ir.builder import Builder
from irtool.ir.collector import Paused
from irtool.ir.edits import clone_node, inline_graph, replace_node
from irtool.ir.effects import changes_list, facts_of, node_may_write, updates_statistics
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TENSOR, TensorType, Type, spell
from irtool.ops.array_library import np
from irtool.ops.arrays import code_of

if TYPE_CHECKING:
    from irtool.execute.executor import Executor


class Together:
    """f and df of a plan that is one node with a gradient. `run` returns gradients, or None where the tape must compute them."""

    __slots__ = ("executor", "operands", "slots", "gradient_of", "count")

    def __init__(self, executor: Executor, operands: list[int], slots: list[int | None], gradient_of: dict[int, int], count: int) -> None:
        self.executor = executor
        self.operands = operands            # per operand of the node: its index among the inputs of the graph
        self.slots = slots                  # per output of the graph: the position of its cotangent among the operands of df
        self.gradient_of = gradient_of      # input of the graph -> position of its gradient among the results of df
        self.count = count                  # of cotangents of df; results are gradients, then `sizes_and_dtype` of the outputs

    def run(self, values: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], seed: int) -> list[Any] | None:
        """Gradients by position in `wrt`, as `Recorded.backward` returns them; seed: for random operators."""
        if len(cotangents) != len(self.slots) or all(each is None for each in cotangents):
            return None
        seeds: list[Any] = [None] * self.count
        for cotangent, slot in zip(cotangents, self.slots, strict=True):
            if cotangent is None or slot is None:
                continue
            if type(cotangent) is not np.ndarray or cotangent.dtype.kind != "f":
                return None
            seeds[slot] = cotangent
        if all(seed is None for seed in seeds):
            return None
        results = self.executor.execute([*[values[index] for index in self.operands], *seeds], seed)
        for seed, output in zip(seeds, results[len(results) - len(seeds):], strict=True):
            if seed is not None and not (fits(output, seed) if type(output) is tuple else is_alike(output, seed)):
                return None
        gradients: list[Any] = []
        for index in wrt:
            place = self.gradient_of.get(index)
            gradient = None if place is None else results[place]
            value = values[index]
            if place is not None and gradient is None:
                gradient = np.zeros(value.shape, value.dtype)
            if gradient is not None and not is_alike(gradient, value):
                return None
            gradients.append(gradient)
        return gradients


def fits(facts: tuple[list[int], int], seed: Any) -> bool:
    """Has a cotangent the sizes and the dtype of its output?"""
    return facts == ([*seed.shape], code_of(seed.dtype))


def is_alike(array: Any, other: Any) -> bool:
    """Is `array` an array of the shape and dtype of `other`?"""
    return type(array) is np.ndarray and array.shape == other.shape and array.dtype == other.dtype


def is_simple(values: Sequence[Any], wrt: Sequence[int]) -> bool:
    """Are all inputs that need gradients arrays of real numbers?"""
    return all(0 <= index < len(values) and type(values[index]) is np.ndarray and values[index].dtype.kind == "f" for index in wrt)


def together_of(owner: Executor, plan: ExecutionPlan) -> Together | None:
    """f and df of a plan as one graph. None if the plan is more than one node with a gradient, has lists among its inputs or outputs, or
    has side effects, which would happen twice for inputs that do not fit: those run again, on the tape.
    """
    if any(is_impure(node) for node in all_nodes(plan.graph)):
        return None
    outputs = outline(plan.graph, plan.differentiables)
    if not outputs or len(set(map(id, outputs))) != len(outputs):
        return None
    ((node, piece),) = plan.differentiables.items()
    places = {value: place for place, value in enumerate(plan.graph.inputs)}
    if not all(isinstance(value, Value) and value in node.outputs for value in outputs):
        return None
    pair = piece.pair
    if not all(isinstance(node.inputs[index].type, TensorType) for index in pair.output_vjps):
        return None
    if len({node.inputs[index] for index in pair.output_vjps}) != len(pair.output_vjps):
        return None
    if not all(isinstance(value.type, TensorType) for value, index in zip(pair.df.inputs, pair.input_vjps, strict=False)
               if index < pair.real_outputs):
        return None
    from irtool.execute.executor import Executor  # which imports this

    seeded = [index for index in pair.input_vjps if index < pair.real_outputs]
    slots = {node.outputs[index]: slot for slot, index in enumerate(seeded)}
    with Paused():
        executor = Executor(joined(pair), owner.options)
    piece.forget()       # the separate functions of f and df are not needed any more
    return Together(executor, [places[value] for value in node.inputs],
                    [slots.get(value) if isinstance(value, Value) else None for value in outputs],
                    {places[node.inputs[index]]: place for place, index in enumerate(pair.output_vjps)}, len(seeded))


def is_impure(node: Node) -> bool:
    """Does a node write into tensors, call an unknown operator, or have another side effect?"""
    return node.kind[:1] == "^" or node_may_write(node) and not (changes_list(node) or updates_statistics(node)) \
        or facts_of(node.kind).side_effects and node.kind not in HARMLESS


def joined(pair: Reverse) -> Graph:
    """A graph that takes the operands of f and the cotangents of its real outputs, and returns gradients and `sizes_and_dtype` of those
    outputs."""
    f, df = pair.f, pair.df
    graph = Graph(f.dialect)
    graph.source = f.source
    mapping: dict[Value, Value] = {}
    for value in f.inputs:
        mapping[value] = graph.block.add_input(graph.fresh_id(), value.type)
    operands = list(graph.inputs)
    vjps = df.inputs[:len(pair.input_vjps)]
    for value, index in zip(vjps, pair.input_vjps, strict=True):
        if index < pair.real_outputs:
            mapping[value] = graph.block.add_input(graph.fresh_id(), value.type)
    for node in f.block:
        clone_node(node, mapping, graph.block, graph)
    results = [mapping[value] for value in f.outputs]
    undefined: dict[Type, Value] = {}       # cotangents of temporaries; of lists, too
    for value in vjps:
        if value not in mapping:
            type = spell(TENSOR, f.dialect) if isinstance(value.type, TensorType) else value.type
            if type not in undefined:
                node = graph.block.append(Node(f.dialect.undefined_kind, (), {}))
                undefined[type] = node.add_output(graph.fresh_id(), type)
            mapping[value] = undefined[type]
    captures = [*[operands[index] for index in pair.captured_inputs], *[results[index] for index in pair.captured_outputs]]
    mapping.update(zip(df.inputs[len(vjps):], captures, strict=True))
    for node in df.block:
        clone_node(node, mapping, graph.block, graph)
    real_results = [results[index] for index in pair.input_vjps if index < pair.real_outputs]
    graph.block.set_outputs([*[mapping[value] for value in df.outputs], *[sizes_and_dtype(graph, each) for each in real_results]])
    opened(graph)
    return graph


def sizes_and_dtype(graph: Graph, output: Value) -> Value:
    """Sizes and dtype of an output, which its cotangent must have: a plan knows them without computing elements that nobody reads. The
    output itself if it may be undefined."""
    if not output.node.kind.startswith("aten::") or len(output.node.outputs) > 1 or output.node.kind == "aten::_grad_sum_to_size":
        return output
    build = Builder(graph)
    return build.construct_tuple([build.call("aten::size", output), build.call("prim::dtype", output)])


def opened(graph: Graph) -> None:
    """Replace fused groups by their nodes, so that new groups are made of nodes of f and df."""
    for node in list(graph.walk()):
        if node.kind == "prim::FusionGroup" and node.subgraph is not None:
            replace_node(node, inline_graph(node.subgraph, node, node.inputs))
