"""What objects say of themselves: `repr` everywhere, and HTML in notebooks, in which texts of files are only texts."""
from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import irtool
from irtool.drawing.notebook import SHOWN, html
from irtool.ir.module import Module
from irtool.text.parser import parse
from tests.test_show import HOSTILE, Parts

EXAMPLES = Path(__file__).parent.parent / "examples"
SQUARE = "graph(%x : Double(*)):\n  %1 : Double(*) = aten::mul(%x, %x)\n  return (%1)\n"


def objects() -> dict[str, Any]:
    """One of each kind that a user may hold."""
    module = parse(SQUARE)
    graph = module.graph()
    executor = irtool.compile(graph)
    x = np.array([1.0, 2.0])
    report = irtool.gradcheck(graph, [x])
    executor(x)
    inner = []
    irtool.vmap(lambda t: (inner.append(t), t * 2)[1])(x)
    jitted = irtool.jit(lambda t: t * 2)
    jitted(x)
    pair = irtool.PassManager("differentiate").run(parse(SQUARE.replace("*", "2")))
    return {
        "module": module, "pair": pair, "graph": graph, "block": graph.block, "node": graph.nodes[0], "value": graph.inputs[0],
        "use": next(iter(graph.inputs[0].uses)), "type": graph.inputs[0].type, "builder": irtool.Builder(graph), "executor": executor,
        "plan": executor.plan_for(x), "fallback": irtool.compile(graph, optimize=False).plan_for(x), "recorded": executor.record([x], [0]),
        "report": report, "row": report.rows[0], "tensor": irtool.Tensor(x), "box": inner[0], "jitted": jitted,
        "variant": jitted.variants[0], "variants": jitted.variants,
        "pipeline": irtool.PassManager("dce,cse"), "step": irtool.PassManager("dce").steps[0],
        "pass": irtool.PASSES[0], "option": next(option for each in irtool.PASSES for option in each.options), "operators": irtool.OPS,
        "operator": irtool.OPS["aten::neg"], "torch": irtool.torch, "linalg": irtool.torch.linalg, "functional": irtool.torch.nn.functional,
        "archive": irtool.load(EXAMPLES / "model.pt"),
    }


OBJECTS = objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_no_object_shows_its_address_alone(name: str) -> None:
    text = repr(OBJECTS[name])
    assert not re.search(r"object at 0x|^$", text) and len(text) < 400


def test_what_objects_say() -> None:
    module = parse((EXAMPLES / "mlp.ir").read_text())
    graph = module.graph()
    node = graph.nodes[-1]
    assert repr(module) == "<Module <string>: 1 graph>"
    assert repr(graph) == "<Graph (%x, %w1, %b1, %w2, %b2), 6 nodes>"
    assert repr(node) == "<Node %9 : Float(4, 3) = aten::softmax(%8, %one, %none) # mlp.py:6:11>"
    assert repr(node.output) == "<Value %9 : Float(4, 3)>"
    assert repr(graph.block) == "<Block of a graph, 6 nodes>"
    assert repr(irtool.Node("aten::neg")) == "<Node = aten::neg()>"
    assert repr(parse(HOSTILE["long"]).graph().nodes[0]).endswith("...>")
    assert repr(irtool.compile(graph)) == "<Executor of graph, 6 nodes, 0 plans>"
    for jitted in (irtool.jit(graph), irtool.jit(module), irtool.jit(irtool.compile(graph))):
        assert repr(jitted) == "<jitted graph, 6 nodes, 0 plans>"
    archived = irtool.load(Path(__file__).parent / "data/archives/net_train.pt")
    assert repr(archived.method("__call__")) == "<method __call__(Tensor x) of __torch__.Net>"
    assert repr(irtool.jit(archived.forward)) == "<jitted <method forward(Tensor x) of __torch__.Net>, 0 signatures>"
    assert repr(irtool.PassManager("dce,cse")) == "<PassManager dce,cse>"
    assert repr(irtool.jit(len)) == "<jitted len, 0 signatures>"
    assert repr(OBJECTS["plan"]) == "<ExecutionPlan for Double(*, requires_grad=0, device=cpu), 1 node>"
    assert repr(OBJECTS["recorded"]) == "<Recorded run of 1 input for gradients of [0]>"
    assert repr(OBJECTS["report"]) == "<Report: 6 of 6 derivatives agree>"


# -- notebooks
def test_each_kind_of_the_table_is_shown() -> None:
    kinds = {each.__name__ for thing in OBJECTS.values() if hasattr(thing, "_repr_html_") for each in type(thing).__mro__}
    assert set(SHOWN) <= kinds
    for thing in OBJECTS.values():
        if hasattr(thing, "_repr_html_"):
            parts = Parts(thing._repr_html_())
            assert set(parts.tags) <= {"img", "code", "pre", "table", "tr", "th", "td", "details", "summary"} and parts.tags


def pictures(parts: Parts) -> list[ElementTree.Element]:
    """The images of an HTML text, read."""
    sources = [value for name, value in parts.attributes if name == "src"]
    return [ElementTree.fromstring(base64.b64decode(source.removeprefix("data:image/svg+xml;base64,"))) for source in sources]


def test_graphs_are_drawn_with_their_text() -> None:
    parts = Parts(html(OBJECTS["graph"]))
    (svg,) = pictures(parts)
    assert svg.tag.endswith("svg") and parts.tags == ["img", "details", "summary", "pre"]
    assert "aten::mul(%x, %x)" in html(OBJECTS["graph"]) and "<summary>text, 3 lines</summary>" in html(OBJECTS["graph"])
    assert Parts(html(Module([]))).tags == ["code"]
    assert re.findall('alt="(.*?)"', html(OBJECTS["pair"])) == ["graph f | df"]


def test_runs_are_shown_as_tables() -> None:
    executor = html(OBJECTS["executor"])
    assert "<td>Double(*, requires_grad=0, device=cpu)</td><td>1</td>" in executor and "<td>execution_plan_cache_miss</td>" in executor
    report = html(OBJECTS["report"])
    assert report.startswith("<pre>order 1: 2 of 2 derivatives agree\n") and "<td>%x</td>" in report and "<td>agrees</td>" in report
    assert html(OBJECTS["node"]) == "<code>Node %1 : Double(*) = aten::mul(%x, %x)</code>"
    plan = irtool.compile(OBJECTS["graph"]).plan_for(np.ones(2))
    assert "source, " not in html(plan)
    plan.code([np.ones(2)]), plan.code([np.ones(2)])
    assert "multiply" in html(plan)


def test_tensors_are_tables_of_their_corners() -> None:
    row = "<table><tr><td>1.5</td><td>0.33333</td></tr></table>"
    assert html(irtool.Tensor(np.array([1.5, 1 / 3]))) == f"<code>Tensor float64 (2,)</code>{row}"
    large = html(irtool.Tensor(np.arange(10_000).reshape(100, 100)))
    assert large.count("<tr>") == 11 and large.count("<td>") == 11 * 13 and "<td>9999</td>" in large
    assert html(irtool.Tensor(np.array(2.0))) == "<code>Tensor float64 ()</code><pre>2.0</pre>"
    assert Parts(html(irtool.Tensor(np.zeros((0, 3))))).tags == ["code"]
    assert len(html(irtool.Tensor(np.zeros((50, 50, 50))))) < 5000
    assert html(OBJECTS["box"]).startswith("<code>Tensor([], ")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_only_texts(name: str) -> None:
    module = parse(HOSTILE[name])
    for thing in (module, module.graph(), module.graph().nodes[0] if module.graph().nodes else module, module.graph().inputs[0]):
        text = thing._repr_html_()
        assert set(Parts(text).tags) <= {"img", "details", "summary", "pre", "code"} and len(text) < 300_000
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
        pictures(Parts(text))
