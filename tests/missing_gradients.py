"""Which tensors of the samples of the stanzas have no gradient in torch: not one of zeros, none.

`python tests/missing_gradients.py` (with torch) records them in tests/data/missing_gradients.json: by overload, for each sample a 1 for
each tensor without a gradient, a 0 for others; null where torch raises. They are told apart by what comes in front: a slope that is
infinite makes nan of zeros.
"""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from formula_samples import torch_gradients

from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.edits import clone_graph
from irtool.ir.graph import Graph
from irtool.ops import OPS
from irtool.testing.formulas import Trial

RECORDED = Path(__file__).parent / "data" / "missing_gradients.json"


def behind_roots(trial: Trial) -> Graph:
    """The sample's graph, in which each tensor with a gradient is a sum with the square root of a further input: of zeros, whose slope
    there is infinite."""
    graph = clone_graph(trial.graph)
    build = Builder(graph).at_start(graph.block)
    one = build.constant(1)
    for value in [graph.inputs[place] for place in trial.wrt]:
        zeros = graph.block.add_input(graph.fresh_id(), types.TENSOR)
        root = build.node("aten::sqrt", (zeros,), output_types=(types.TENSOR,)).output
        total = build.node("aten::add", (value, root, one), output_types=(types.TENSOR,))
        value.replace_all_uses_with(total.output)
        total.set_inputs([value, root, one])
    return graph


def is_missing(gradient: Any) -> bool:
    """Is the gradient behind an infinite slope that of a gradient that was not there?"""
    return gradient is None or not np.any(gradient)


def by_torch(trial: Trial) -> list[int] | None:
    """torch's answers for one sample."""
    import torch

    found = torch_gradients(trial, torch.sqrt, at_zero=True)
    return None if found is None else [int(gradient is None or gradient._is_zerotensor() or is_missing(gradient.resolve_conj().numpy()))
                                       for _, gradient in found]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    recorded = {name: [by_torch(Trial(name, sample)) for sample in op.samples.get(name, [])] for name, op in OPS.items()
                if name in op.formulas and name.startswith("aten::")}
    lines = [f"{json.dumps(name)}:{json.dumps(answers, separators=(',', ':'))}" for name, answers in sorted(recorded.items())
             if any(answers)]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
