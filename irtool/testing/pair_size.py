"""The size of a gradient pair: nodes of its two graphs, captures, and the memory that they keep."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irtool.ir.graph import Graph
from irtool.ir.structure_kinds import NOT_COUNTED
from irtool.ir.types import TensorType
from irtool.ops.array_library import np

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Reverse


Figures = dict[str, int]


def pair_size(f: Graph, df: Graph, vjps: int) -> Figures:
    """Nodes of `f` and `df`, those in blocks included; of the inputs of `df`, of which the first `vjps` are gradients: `tensors` and
    `others`."""
    captured = df.inputs[vjps:]
    tensors = sum(isinstance(value.type, TensorType) for value in captured)
    return {"f": node_count(f), "df": node_count(df), "tensors": tensors, "others": len(captured) - tensors, "vjps": vjps}


def node_count(graph: Graph) -> int:
    """The number of nodes that compute something."""
    return sum(node.kind not in NOT_COUNTED for node in graph.walk())


def saved_bytes(pair: Reverse, inputs: Sequence[Any]) -> int:
    """The bytes kept between f and df in one run: each buffer once, however many views of it are captured."""
    from irtool.interpret import run

    results = run(pair.f, [each.copy() if isinstance(each, np.ndarray) else each for each in inputs])
    saved = [inputs[i] for i in pair.captured_inputs] + [results[i] for i in pair.captured_outputs]
    return sum({id(each): each.nbytes for each in map(_buffer, saved) if each is not None}.values())


def _buffer(value: Any) -> np.ndarray[Any, Any] | None:
    buffer: np.ndarray[Any, Any] | None = None
    while isinstance(value, np.ndarray):
        buffer, value = value, value.base
    return buffer
