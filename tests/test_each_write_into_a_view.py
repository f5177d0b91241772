"""Every operator that writes into its first operand, called on a view: the pass functionalize keeps what the program computes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.autodiff.in_place import kind_without_write
from irtool.ir.builder import Builder
from irtool.ir.graph import Graph
from irtool.ir.schema import parse_schema, schemas
from irtool.ir.types import TENSOR
from irtool.ops import OPS
from irtool.testing.formulas import call_graph
from tests.laws import over

KINDS = sorted({kind for name in OPS if schemas(kind := f"{name.partition('.')[0]}_")})


def calls(kind: str) -> Iterator[tuple[Graph, list[Any]]]:
    """Graphs in which a write of this kind goes into a view of all of an input, and their inputs: arguments by name, from the samples of
    the operator that does not write."""
    for plain in schemas(kind_without_write(kind)):
        op = OPS.get(plain.name)
        for sample in op.samples.get(plain.name, ())[:3] if op is not None and op.samples else ():
            given = {argument.name: value for argument, value in zip(plain.arguments, sample.arguments(plain.text), strict=True)}
            for writing in schemas(kind):
                if [argument.name for argument in writing.arguments if argument.name not in given]:
                    continue
                graph, inputs, _ = call_graph(parse_schema(writing.text), [given[argument.name] for argument in writing.arguments])
                node = next(each for each in graph.block if each.kind == kind)
                target = node.inputs[0]
                if target not in graph.inputs:
                    continue
                build = Builder(graph).before(node)
                copy = build.node("aten::clone", (target, build.constant(None)), output_types=(TENSOR,)).output
                view = build.node("aten::transpose", (copy, build.constant(0), build.constant(0)), output_types=(TENSOR,)).output
                node.replace_input(0, view)
                graph.block.set_outputs([copy])
                yield graph, inputs


@pytest.mark.filterwarnings("ignore")
@over("kind", [pytest.param(kind, id=kind) for kind in KINDS], lambda kind: kind.removeprefix("aten::").lstrip("_")[0])
def test_functionalize_keeps_the_result(kind: str) -> None:
    for graph, inputs in calls(kind):
        try:
            (want,) = irtool.run(graph, inputs, interpret=True, seed=3)
        except irtool.Error:
            continue        # the sample's dtypes do not fit the operand
        module = irtool.PassManager("functionalize").run(irtool.Module([graph]))
        (got,) = irtool.run(module, inputs, interpret=True, seed=3)
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=got.dtype.kind in "fc"), module
