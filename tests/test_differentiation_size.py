"""What `differentiate` makes is never larger than what torch's `_jit_differentiate` made of the same graphs.

`data/differentiation_size.json` holds the graphs and torch's figures; `benchmarks/differentiation_size.py --record` writes it and prints
the table.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_ways import with_gradients

import irtool
from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.reverse import differentiate_graph
from irtool.ir.types import TensorType, tensor_type
from irtool.testing.pair_size import node_count, pair_size, saved_bytes

RECORDS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data/differentiation_size.json").read_text())


def graph_of(name: str) -> irtool.Graph:
    return irtool.parse(RECORDS[name]["graph"]).graph()


def test_there_are_thirty() -> None:
    assert len(RECORDS) == 30


@pytest.mark.parametrize("name", RECORDS)
def test_complete_types(name: str) -> None:
    """Nodes of either graph, captured tensors, other captures, bytes kept: each at most torch's."""
    graph = graph_of(name)
    rng = np.random.default_rng(7)
    inputs = [(rng.random(value.type.shape) * 0.8 + 0.2).astype(np.float32) for value in graph.inputs
              if isinstance(value.type, TensorType) and value.type.shape is not None]
    pair = differentiate_graph(graph, with_gradients(graph), True, True)
    figures = {**pair_size(pair.f, pair.df, len(pair.input_vjps)), "bytes": saved_bytes(pair, inputs)}
    theirs = RECORDS[name]["typed"]
    assert {key: count for key, count in figures.items() if key != "vjps" and count > theirs[key]} == {}


@pytest.mark.parametrize("name", RECORDS)
def test_no_types(name: str) -> None:
    """Nodes of both graphs together and captures together: sizes are asked for in df, torch computes them in f and captures them."""
    graph = graph_of(name)
    for value in graph.values():
        if isinstance(value.type, TensorType):
            value.type = tensor_type()
    pair = differentiate_graph(graph, with_gradients(graph), True, True)
    figures, theirs = pair_size(pair.f, pair.df, len(pair.input_vjps)), RECORDS[name]["untyped"]
    for some in (("f", "df"), ("tensors", "others"), ("tensors",)):
        assert sum(figures[key] for key in some) <= sum(theirs[key] for key in some), some


@pytest.mark.parametrize("name", RECORDS)
def test_nothing_dead_nothing_twice(name: str) -> None:
    pair = differentiate_graph(graph_of(name), with_gradients(graph_of(name)), True, True)
    assert len(set(pair.f.outputs[pair.real_outputs:])) == len(pair.f.outputs) - pair.real_outputs
    assert set(pair.f.outputs[pair.real_outputs:]).isdisjoint((*pair.f.inputs, *pair.f.outputs[:pair.real_outputs]))
    assert all(value.has_uses for value in pair.df.inputs[len(pair.input_vjps):])
    before = node_count(pair.f), node_count(pair.df)
    for graph in (pair.f, pair.df):
        remove_dead_nodes(graph)
    assert before == (node_count(pair.f), node_count(pair.df))
