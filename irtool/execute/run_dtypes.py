"""The dtypes of the tensors of a graph in a run, which differentiation needs where several floating dtypes meet."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtool.interpret import Observer, run
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType
from irtool.ops.arrays import is_array

CASTS = frozenset(f"aten::{name}" for name in """
to type_as _to_copy float double half bfloat16 real imag complex view_as_complex view_as_real polar abs angle
_autocast_to_reduced_precision _autocast_to_full_precision stft istft fft_rfft fft_irfft softmax log_softmax sum mean prod cumsum
cumprod var std norm
""".split())
"""Kinds whose results may have another floating dtype than their operands."""


def may_mix(graph: Graph, inputs: Sequence[Any]) -> bool:
    """May tensors of several floating dtypes meet in a run?"""
    kinds = {each.dtype.name for value in inputs for each in (value if isinstance(value, list | tuple) else [value])
             if (isinstance(each, np.generic) or is_array(each)) and each.dtype.kind in "fcV"}
    return len(kinds) > 1 or any(kind.startswith("complex") for kind in kinds) or any(node.kind in CASTS for node in graph.walk())


def mixed_dtypes(graph: Graph) -> dict[Value, str]:
    """The dtype of each tensor, as its type says; none where gradients of one dtype only can meet."""
    dtypes = {value: value.type.dtype for value in graph.values() if isinstance(value.type, TensorType) and value.type.dtype is not None}
    floating = {dtype for dtype in dtypes.values() if dtype.startswith(("float", "bfloat", "complex"))}
    return dtypes if len(floating) > 1 else {}


def observed_dtypes(graph: Graph, inputs: Sequence[Any]) -> dict[Value, str]:
    """The dtype of each tensor of a run, by value."""
    watcher = DtypeWatcher()
    for value, argument in zip(graph.inputs, inputs, strict=True):
        if is_array(argument):
            watcher.dtypes[value] = argument.dtype.name
    run(graph, inputs, observer=watcher)
    return watcher.dtypes


class DtypeWatcher(Observer):
    """Notes the dtype of every tensor that comes out of a node."""

    def __init__(self) -> None:
        self.dtypes: dict[Value, str] = {}

    def after(self, node: Node, results: Sequence[Any]) -> None:
        """Note them."""
        for value, result in zip(node.outputs, results, strict=True):
            if is_array(result):
                self.dtypes[value] = result.dtype.name
