"""Plans on CuPy arrays: fused groups run as one kernel each, all other nodes run as in the interpreter, on CuPy.

Calls only enqueue kernels, so the number of kernels matters, and Python's overhead does not. CuPy's pool manages memory: it reuses the
memory of values after their last use.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from irtool.accepted_values import accept, copied, delivered
from irtool.execute.device.cupy_kernels import KernelGroup
from irtool.execute.plan.memory import inputs_written
from irtool.interpret import Plan as BlockPlan
from irtool.interpret import Walk, all_nodes, plan_block
from irtool.ir.edits import clone_graph
from irtool.ir.effects import may_write_or_is_python
from irtool.ir.errors import RunError
from irtool.ir.graph import Block, Graph, Node
from irtool.ops.array_library import np
from irtool.ops.arrays import seeded, using
from irtool.ops.device import backend as backend_called
from irtool.ops.node_calls import call_node
from irtool.passes import BY_NAME
from irtool.shared_inputs import accept_all

FUSION_GROUP = "prim::FusionGroup"


class DevicePlan:
    """A graph compiled for CuPy arrays. May be called from several threads at once."""

    def __init__(self, graph: Graph) -> None:
        self.namespace = backend_called("cupy")
        graph = self.graph = clone_graph(graph)
        with using(np):
            BY_NAME["fuse"].function(graph)
        nodes = all_nodes(graph)
        self.writes = any(map(may_write_or_is_python, nodes))
        self.kernels = {node: KernelGroup(node.graphs["Subgraph"], self.namespace.cupy) for node in nodes if node.kind == FUSION_GROUP}
        self.blocks: dict[Block, BlockPlan] = {}
        plan_block(graph.block, self.blocks, self.kernels)

    @property
    def groups(self) -> list[tuple[Node, KernelGroup]]:
        """The fused groups; `chosen` of each says how it ran."""
        return list(self.kernels.items())

    @property
    def loops(self) -> list[tuple[Node, str]]:
        """Empty: all loops run in Python."""
        return []

    @property
    def beside(self) -> list[str]:
        """Which nodes run at the same time, in words."""
        return ["the device has an order of its own: --threads is for plans on NumPy"]

    @property
    def source(self) -> str:
        """The bodies of the kernels made so far."""
        return "\n".join(text for group in self.kernels.values() for text in group.sources)

    @property
    def memory(self) -> str:
        """A report on memory."""
        return "in CuPy's pool"

    def programs(self, inputs: Sequence[Any]) -> list[tuple[str, str]]:
        """Empty: kernels are made as they are needed."""
        return []

    def forget(self) -> None:
        """Nothing: kernels belong to their groups."""

    def compile(self, inputs: Sequence[Any]) -> None:
        """Run once, to make the kernels for these inputs."""
        self(inputs)

    def __call__(self, inputs: Sequence[Any], *, seed: int | None = 0, accepted: bool = False) -> list[Any]:
        """Run on arrays, which are copied to the device, and Python values; as `irtool.interpret.run`. Outputs stay on the device.

        accepted: `irtool.accepted_values.accept` has already converted the inputs in this namespace.
        """
        graph = self.graph
        if len(inputs) != len(graph.inputs):
            raise RunError(f"expected {len(graph.inputs)} inputs, got {len(inputs)}", code="E0402")
        with using(self.namespace), seeded(seed) if seed is not None else nullcontext():
            if not self.writes:
                values = list(inputs) if accepted else [accept(value, one) for value, one in zip(inputs, graph.inputs, strict=True)]
            else:
                values = copied(inputs if accepted else accept_all(inputs, graph.inputs, partial(inputs_written, graph)))
            walk = Walk(self.call, None, self.kernels)
            walk.plans = self.blocks
            results = walk.run(graph, values)
            return [delivered(result, declared.type) for result, declared in zip(results, graph.outputs, strict=True)]

    def call(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """Run one node."""
        group = self.kernels.get(node)
        return call_node(node, values) if group is None else group(values)
