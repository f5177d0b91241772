"""Gradient pairs that one node owns, as `pack-gradient` writes them.

    %0 : Tensor = prim::DifferentiableGraph_0[name="df", f_real_outputs=1, df_input_vjps=[0], df_input_captured_inputs=[], \
df_input_captured_outputs=[0], df_output_vjps=[0], ReverseSubgraph=<Graph>](%x)

`Subgraph` is f, `ReverseSubgraph` df; the index lists are those of `irtool.ir.pair`. df is the gradient of such a node, whatever f
computes. The results of the node are f's real outputs, followed by the temporaries where the node is differentiated.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from irtool.ir.attribute import Attribute
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.pair import DEFINED, LISTS, REAL_OUTPUTS, REVERSE, numbers_in, type_problems
from irtool.ir.verify_types import call_problem


class Packed(NamedTuple):
    """The gradient pair of a node. defined: for each input of df, whether df was specialised for runs in which it is not None."""

    f: Graph
    df: Graph
    real_outputs: int
    input_vjps: Sequence[int]
    captured_inputs: Sequence[int]
    captured_outputs: Sequence[int]
    output_vjps: Sequence[int]
    defined: list[bool] | None

    def problems(self, node: Node) -> list[str]:
        """What does not fit: counts, types, and indices out of range."""
        f, df = self.f, self.df
        problems = []
        if not 0 <= self.real_outputs <= len(f.outputs) or len(node.outputs) not in (self.real_outputs, len(f.outputs)):
            problems.append(f"{REAL_OUTPUTS}={self.real_outputs} does not fit a node with {len(node.outputs)} results")
        if len(node.inputs) != len(f.inputs):
            problems.append(f"it has {len(node.inputs)} operands, its graph {len(f.inputs)} inputs")
        for name, numbers, limit in zip(LISTS, self[3:7], (len(f.outputs), len(f.inputs), len(f.outputs), len(f.inputs)), strict=True):
            if max(numbers, default=0) >= limit:
                problems += [f"{name} names {number}, its graph has only {limit}" for number in numbers if number >= limit]
        taken = len(self.input_vjps) + len(self.captured_inputs) + len(self.captured_outputs)
        if len(df.inputs) != taken:
            problems.append(f"its gradient takes {len(df.inputs)} inputs, its lists name {taken}")
        if len(df.outputs) != len(self.output_vjps):
            problems.append(f"its gradient gives {len(df.outputs)} results, df_output_vjps names {len(self.output_vjps)}")
        if self.defined is not None and len(self.defined) != len(df.inputs):
            problems.append(f"{DEFINED} has {len(self.defined)} flags, its gradient takes {len(df.inputs)} inputs")
        return problems or self.type_problems(node)

    def type_problems(self, node: Node) -> list[str]:
        """Values that f, df and the node pass to each other, and whose types do not fit."""
        problem = call_problem(node, self.f)
        return [problem] * bool(problem) + type_problems(self.f, self.df, self[3:7], "its graph", "its gradient")


def owns_gradient(node: Node) -> bool:
    """Is a node's gradient given by a graph that the node owns (`ReverseSubgraph`)?"""
    return REVERSE in node.attributes and {"Subgraph", REVERSE} <= node.graphs.keys()


def packed_nodes(graph: Graph) -> list[Node]:
    """The nodes that own a gradient pair."""
    return [node for node in graph.walk() if owns_gradient(node)]


def packed_of(node: Node) -> Packed:
    """The pair that a node owns. Raises Error if its attributes do not fit together."""
    real = attribute_of(node, REAL_OUTPUTS).value
    if type(real) is not int:
        raise Error(f"{REAL_OUTPUTS}={node.attributes[REAL_OUTPUTS].text[:60]} is no count", code="E0211")
    vjps, inputs, outputs, gradients = [numbers_of(node, name) for name in LISTS]
    defined = [flag != 0 for flag in numbers_of(node, DEFINED)] if DEFINED in node.attributes else None
    graphs = node.graphs
    packed = Packed(graphs["Subgraph"], graphs[REVERSE], real, vjps, inputs, outputs, gradients, defined)
    problems = packed.problems(node)
    if problems:
        raise Error(f"{node.kind}: " + "; ".join(problems), code="E0211")
    return packed


def results_of_packed(node: Node) -> Sequence[Value]:
    """The results that a gradient can reach. All, if the attributes do not fit together, so that differentiation reports the error."""
    try:
        reached = packed_of(node).input_vjps
    except Error:
        return node.outputs
    return [value for index, value in enumerate(node.outputs) if index in reached]


def operands_of_packed(node: Node) -> Sequence[Value]:
    """The operands for which the node's df computes gradients."""
    try:
        return [node.inputs[index] for index in packed_of(node).output_vjps]
    except Error:
        return node.inputs


def attribute_of(node: Node, name: str) -> Attribute:
    """An attribute of a node. Raises Error if it is missing."""
    attribute = node.attributes.get(name)
    if attribute is None:
        raise Error(f"{node.kind} has no {name}", code="E0211")
    return attribute


def numbers_of(node: Node, name: str) -> Sequence[int]:
    """An attribute that is a list of small natural numbers. Raises Error for anything else."""
    text = attribute_of(node, name).text
    try:
        return numbers_in(text)
    except ValueError:
        raise Error(f"{name}={text[:60]} is no list of numbers", code="E0211") from None
