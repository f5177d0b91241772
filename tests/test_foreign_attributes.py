"""Attributes that are arguments of no overload change nothing, whatever is asked of a node: `aten::size[mode=constant](%x)` is
`aten::size(%x)`."""
from __future__ import annotations

import pytest

import irtool
from irtool.ir.attribute import Attribute
from irtool.ir.schema import parse_schema
from irtool.ir.type_answers import ANSWERS
from irtool.ops import OPS
from irtool.passmanager import PassManager
from irtool.testing.formulas import call_graph, with_types
from tests.laws import over

FOREIGN = {"foreign": Attribute("[1, 1]"), "mode": Attribute("constant"), "0": Attribute("2")}
PIPELINES = ("O2", "propagate-shapes,peephole,fuse", "constant-propagation,canonicalize-ops,decompose-ops")


def first_samples():
    """Of each kind the first overload that has samples, and a graph that is its first sample."""
    found = {}
    for name, op in OPS.items():
        kind = name.partition(".")[0]
        if name.startswith("aten::") and kind not in found and not kind.endswith("_") and op.samples.get(name):
            text = next(text for text, candidate in zip(op.schemas, op.names, strict=True) if candidate == name)
            found[kind] = parse_schema(text), op.samples[name][0].arguments(text)
    return found


SAMPLES = first_samples()


CASES = [pytest.param(kind, id=kind) for kind, (schema, _) in sorted(SAMPLES.items()) if "mode" not in schema.positions]


@over("kind", CASES, group=lambda kind: kind.removeprefix("aten::").lstrip("_")[0])
def test_attributes_of_no_overload_change_nothing(kind):
    graph, inputs, _ = call_graph(*SAMPLES[kind])
    typed = with_types(graph, inputs, irtool.run(graph, inputs, seed=0))
    for pipeline in PIPELINES:
        plain, changed = (with_types(typed, inputs, [None] * len(typed.outputs)) for _ in range(2))
        changed.outputs[0].node.attributes = FOREIGN
        if pipeline == "O2":
            irtool.run(changed, inputs, seed=0, interpret=True)
        texts = []
        for each in (plain, changed):
            PassManager(pipeline).run(each)
            for node in each.walk():
                node.attributes = {name: value for name, value in node.attributes.items() if name not in FOREIGN}
            texts.append(str(each))
        assert texts[0] == texts[1], (kind, pipeline)


@pytest.mark.parametrize("kind", ANSWERS)
def test_of_what_types_answer_too(kind):
    words = [f"graph(%x : Float(2, 3, device=cpu)):\n  %r = {kind}{attributes}(%x)\n  return (%r)\n"
             for attributes in ("", "[pad=[1, 1], mode=constant]")]
    plain, changed = (str(PassManager("peephole").run(irtool.parse(text))) for text in words)
    assert plain == changed
