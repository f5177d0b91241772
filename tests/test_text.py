"""Text -> IR -> text: byte for byte, really read, and with errors that say where."""
# ruff: noqa: E501  a text and what is said about it stand side by side
from __future__ import annotations

import gc
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.dialect import DIALECTS
from irtool.ir.errors import Error, ParseError
from irtool.ir.graph import Graph, Node
from irtool.ir.types import parse_type
from irtool.text.cursor import MAX_ERRORS
from irtool.text.parser import parse
from irtool.text.printer import node_text
from tests.corpus import CORPUS, TEXTS, origin
from tests.laws import over


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def problems(text: str) -> list[str]:
    """What `parse` reports: `line:col: message`."""
    with pytest.raises(ParseError) as caught:
        parse(text, "in.ir")
    return [f"{d.line}:{d.col}: {d.message}" for d in caught.value.diagnostics]


HEAD = "graph(%x : Float(2, 3),\n      %y : Tensor):\n"


def body(*lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines)


# -- round trips
@over("path", TEXTS, origin)
def test_corpus_round_trips(path: Path) -> None:
    text = read(path)
    module = parse(text, path.name)
    assert str(module) == text
    assert module.graphs


def test_corpus_shows_every_dialect() -> None:
    seen = {graph.dialect.name for path in CORPUS for graph in parse(read(path)).graphs}
    assert seen >= set(DIALECTS) - {"X2"}       # X2 differs from C2 in names only


@over("path", TEXTS, origin)
def test_corpus_is_linked(path: Path) -> None:
    """Uses and definitions agree, and every node stands where its block says."""
    for top in parse(read(path)).graphs:
        graphs = [top]
        while graphs:
            graph = graphs.pop()
            graph.build_uses()
            expected = Counter((node, slot) for block in graph.walk_blocks() for node in (*block, block.return_node)
                               for slot in range(len(node.inputs)))
            found = Counter((use.user, use.slot) for value in graph.values() for use in value.uses)
            omitted = {(node, slot) for node, slot in expected if node.inputs[slot].node.kind == "prim::Omitted"}
            assert found == Counter({key: n for key, n in expected.items() if key not in omitted})
            for block in graph.walk_blocks():
                assert all(node.owner is block and node.next.prev is node for node in block)
                assert list(reversed(block)) == block.nodes[::-1]
            graphs += [a.value for node in graph.walk() for a in node.attributes.values() if isinstance(a.value, Graph)]


@over("path", TEXTS, origin)
def test_an_edit_leaves_the_other_lines_alone(path: Path) -> None:
    text = read(path)
    before = text.split("\n")
    for which in (0, -1):
        module = parse(text)
        nodes = [node for node in module.graphs[0].walk() if node.inputs and node.outputs and node.outputs[0].name
                 and "Subgraph" not in node.attributes]
        if not nodes:
            continue
        node = nodes[which]
        edited = node_text(node).split("\n")[0]
        node.kind = node.kind + "_edited"
        after = str(module).split("\n")
        changed = [i for i, (a, b) in enumerate(zip(before, after)) if a != b]
        if len(before) == len(after):
            assert len(changed) == 1, (edited, [after[i] for i in changed])
            assert "_edited" in after[changed[0]]
        else:       # a statement of several lines becomes one; lines with a name of two values are made anew, with other spaces
            assert len(after) < len(before) or module.graphs[0].layout.whole is not None
            assert sum("_edited" in line for line in after) == 1


def test_every_edit_of_a_canonical_graph_prints_canonically() -> None:
    text = body("%3 : Tensor = aten::mul(%x, %y), scope: Net # m.py:3:1", "%4 : Tensor = aten::relu(%3)", "return (%4)")
    module = parse(text)
    graph = module.graphs[0]
    relu = graph.nodes[1]
    new = Node("aten::tanh", [graph.inputs[0]])
    new.add_output("5", parse_type("Float(2, 3)"))
    new.insert_before(relu)
    relu.replace_input(0, new.output)
    graph.nodes[0].destroy()
    assert str(module) == body("%5 : Float(2, 3) = aten::tanh(%x)", "%4 : Tensor = aten::relu(%5)", "return (%4)")


def test_comments_and_odd_lines_survive_edits_elsewhere() -> None:
    text = ("# a title\n\ngraph(%x,\n   # the other one\n   %y:int):   # go\n\t%a : Tensor=aten::relu( %x )  # why\n\n"
            "  # a comment\n  %b = aten::add(%a,\n      %x, %y)\n  return (%b)   \n# the end")
    module = parse(text)
    assert str(module) == text
    graph = module.graphs[0]
    assert [v.type.text for v in graph.inputs] == ["Tensor", "int"]
    graph.nodes[0].kind = "aten::tanh"
    assert str(module) == text.replace("\t%a : Tensor=aten::relu( %x )  # why", "  %a : Tensor = aten::tanh(%x)  # why")
    graph.nodes[1].kind = "aten::sub"
    assert "  # a comment\n  %b : Tensor = aten::sub(%a, %x, %y)\n  return (%b)   \n# the end" in str(module)


@pytest.mark.parametrize("text", [
    "graph():\n  return ()\n", "graph() {\n  return ();\n}\n", HEAD + "  return (%x)", "\n\n" + HEAD + "  return (%x)\n\n\n",
    (HEAD + "  return (%x)\n").replace("\n", "\r\n"), "title\n" + HEAD + "  return (%x)\nmore\n" + HEAD + "  return (%y)\n",
    "Exported graph: " + HEAD + "  return (%x)\n\n", HEAD + "  %3 : Tensor = aten::relu(%x) # \udc80\udcff.py:1:1\n  return (%3)\n",
    body("%3 : str = prim::Constant[value=\"100% %x # ) ]\"]()", "return (%3)"),
    body(" = prim::Print(%x)", "return ()"), body("%3 : int, %4 : int = foo::bar[a=[1, 2], b=(1,), c={\"k\": 2}](%x)", "return (%4)"),
    "", "\n", "  \n",
], ids=range(14))
def test_small_texts_round_trip(text: str) -> None:
    assert str(parse(text)) == text


# -- what is read
def test_with_sections_are_resolved_by_place() -> None:
    inner = "with prim::FusionGroup_0 = graph(%0 : Tensor):\n  %1 : Tensor = aten::{}(%0)\n  return (%1)\n"
    group = "  %{} : Tensor = prim::{}(%{})\n"
    text = ("graph(%x : Tensor):\n" + group.format(1, "DifferentiableGraph_0", "x") + group.format(2, "FusionGroup_1", 1)
            + "  return (%2)\nwith prim::DifferentiableGraph_0 = graph(%0 : Tensor):\n" + group.format(1, "FusionGroup_0", 0)
            + "  return (%1)\n" + inner.format("relu") + inner.format("tanh").replace("_0", "_1"))
    module = parse(text)
    assert str(module) == text
    assert len(module.items) == 1
    first, second = module.graphs[0].nodes
    assert (first.kind, second.kind) == ("prim::DifferentiableGraph", "prim::FusionGroup")
    nested = first.attributes["Subgraph"].value
    assert isinstance(nested, Graph)
    deepest = nested.nodes[0].attributes["Subgraph"].value
    assert isinstance(deepest, Graph) and deepest.nodes[0].kind == "aten::relu"
    last = second.attributes["Subgraph"].value
    assert isinstance(last, Graph) and last.nodes[0].kind == "aten::tanh"
    first.remove()      # numbers follow the place
    second.replace_input(0, module.graphs[0].inputs[0])
    assert "prim::FusionGroup_0(%x)" in str(module) and "with prim::FusionGroup_0 = " in str(module)
    assert node_text(second) == "%2 : Tensor = prim::FusionGroup[Subgraph=<Graph>](%x)"


def test_python_ops_keep_their_scalars() -> None:
    text = body("%3 : Tensor = ^Dropout(0.5, True, (1, 2))(%x)", "%4 : Tensor = ^F[inplace=0](3, hi)(%3)", "%5 : Tensor = ^<python_value>()(%x)",
                "return (%5)")
    dropout, function, value = parse(text).graphs[0].nodes
    assert (dropout.kind, dropout.attributes["scalars"].text) == ("^Dropout", "0.5, True, (1, 2)")
    assert list(function.attributes) == ["inplace", "scalars"]
    assert value.kind == "^<python_value>"
    assert str(parse(text)) == text


def test_uses_lists_follow_edits() -> None:
    text = ("graph(%1 : Double(2)\n      %2 : Double(2)) {\n  %3 : Double(2) = mul(%1, %2), uses = [[%4.i0, %0.i0]];\n"
            "  %4 : Double(2) = tanh(%3), uses = [[%0.i1]];\n  return (%3, %4);\n}\n")
    module = parse(text)
    assert str(module) == text
    graph = module.graphs[0]
    assert graph.dialect.name == "A2"
    graph.nodes[1].replace_input(0, graph.inputs[1])
    assert "mul(%1, %2), uses = [[%0.i0]];" in str(module)


def test_stage_markers_stand_before_the_first_node_of_their_stage() -> None:
    text = ("graph(%0 : Double(2)\n      -------- stage 1 --------\n      %3 : Double(2)) {\n  %1 : Double(2) = neg(%0)\n"
            "  ---------------- stage 1 ----------------\n  %4 : Double(2) = neg(%3)\n  %5 : Double(2) = neg(%3)\n  return (%1, %5);\n}\n")
    module = parse(text)
    assert str(module) == text
    module.graphs[0].nodes[1].destroy()
    assert str(module) == text.replace("  %4 : Double(2) = neg(%3)\n", "")


def test_constants_among_operands_are_nodes() -> None:
    text = "graph(%x : Dynamic) {\n  %3 : Dynamic = aten::add(%x, 7, 0.5, True, [0, -1], 'a b')\n  return (%3, 2);\n}\n"
    module = parse(text)
    assert str(module) == text
    constants = [node for node in module.graphs[0].nodes if node.kind == "prim::Constant"]
    assert [node.output.type.text for node in constants] == ["int", "float", "bool", "int[]", "string", "int"]
    module.graphs[0].nodes[5].replace_input(1, module.graphs[0].inputs[0])
    assert "aten::add(%x, %x, 0.5, True, [0, -1], 'a b')" in str(module)


def test_listing_of_2017() -> None:
    text = "%20, %22 = Conv 1 1 %0, %1\n# then\n%21 = Linear %20, %1, %3\n\nRet %21\n"
    module = parse(text)
    assert str(module) == text
    graph = module.graphs[0]
    assert [value.name for value in graph.inputs] == ["0", "1", "3"]
    assert graph.nodes[0].attributes["scalars"].text == "1 1"
    graph.nodes[1].kind = "Affine"
    assert str(module) == text.replace("Linear", "Affine")


def test_names_and_metadata() -> None:
    text = ("free\n# graph f: f_real_outputs=1\n" + HEAD + "  return (%x)\n# graph df: of=f df_input_vjps=[0, 1] a=\"b c\" n=[[1], [2, 3]]\n"
            + HEAD + "  return (%x)\n# graph g\n" + HEAD + "  return (%x)\n# graph theory: is fun\n" + HEAD + "  return (%x)\n")
    module = parse(text)
    assert str(module) == text
    assert module.names() == ["f", "df", "g", "graph3"]
    assert module.graphs[1].metadata == {"of": "f", "df_input_vjps": "[0, 1]", "a": '"b c"', "n": "[[1], [2, 3]]"}
    module.graphs[1].metadata["defined"] = "[1]"
    module.graphs[2].name = "h"
    assert "n=[[1], [2, 3]] defined=[1]\n" in str(module)
    assert "\n# graph h:\ngraph(" in str(module)


def test_scopes_and_sources() -> None:
    node = parse(body("%3 : Tensor = aten::relu(%x), scope: Net/Linear[fc] # model.py:12:16", "return (%3)")).graphs[0].nodes[0]
    assert (node.scope, node.source, node.line) == ("Net/Linear[fc]", "model.py:12:16", 3)


def test_values_without_a_type() -> None:
    graph = parse("graph(%x):\n  %c = prim::Constant[value=1]()\n  %n = prim::Constant()\n  %r = aten::f(%x, %c, %n)\n  return (%r)\n").graphs[0]
    assert [value.type.text for value in graph.values()] == ["Tensor", "int", "None", "Tensor"]


def test_untyped_names_may_be_defined_again() -> None:
    graph = parse("graph(%x):\n  %r = aten::relu(%x)\n  %r = aten::tanh(%r)\n  return (%r)\n").graphs[0]
    first, second = graph.nodes
    assert second.inputs[0] is first.output and graph.outputs[0] is second.output
    assert first.output.name != second.output.name


@pytest.mark.parametrize("seed", range(30))
def test_what_passes_make_of_names_defined_again_reads_as_they_meant(seed: int) -> None:
    """Lines that did not change must not stand beside changed ones: `%a` would mean another value."""
    rng = random.Random(seed)
    names = ["x", "y"]
    lines = []
    for _ in range(8):
        kind, operands = rng.choice((("neg", 1), ("sigmoid", 1), ("mul", 2)))
        line = f"aten::{kind}({', '.join('%' + rng.choice(names) for _ in range(operands))})"
        names.append(rng.choice("abcx"))
        lines.append(f"%{names[-1]} = {line}{rng.choice(('', ' # note'))}")
    text = "graph(%x, %y : Tensor):\n" + "".join(f"  {line}\n" for line in (*lines, f"return (%{names[-1]})"))
    module = parse(text)
    assert str(module) == text
    x, y = np.random.default_rng(seed).standard_normal((2, 3))
    want = irtool.run(module, [x, y], interpret=True)
    for name in ("cse", "dce", "canonicalize", "erase-number-types", "cse,dce,differentiate"):
        changed = irtool.PassManager(name, verify=True).run(parse(text))
        again = parse(str(changed))
        assert str(again) == str(changed)
        np.testing.assert_array_equal(irtool.run(again.graphs[0], [x, y], interpret=True)[0], want[0])


def test_omitted_lines_may_define_what_is_used() -> None:
    text = "graph(%x : Tensor):\n  # ...\n  %3 : Tensor = aten::relu(%2)\n  return (%3)\n"
    assert str(parse(text)) == text
    assert problems(text.replace("...", "no")) == ["3:28: %2 is not defined before this use"]


def test_fast_and_general_reader_agree() -> None:
    """Each line of a graph, made not quite canonical, reads the same."""
    plain = body("%3 : Tensor = aten::mul(%x, %y), scope: N # a.py:1:1", "%4 : int = prim::Constant[value=1]()", "%5 : Tensor = prim::If(%3)",
                 "  block0():", "    %6 : Tensor = aten::add(%3, %y, %4)", "    -> (%6)", "  block1():", "    -> (%x)", "return (%5)")
    for old, new in ((" = ", "  = "), ("(%", "( %"), (") #", ")  #")):
        fast, general = parse(plain).graphs[0], parse(plain.replace(old, new)).graphs[0]
        assert [(n.kind, [v.name for v in n.inputs], [(v.name, v.type) for v in n.outputs], len(n.blocks), n.line) for n in fast.walk()] == \
            [(n.kind, [v.name for v in n.inputs], [(v.name, v.type) for v in n.outputs], len(n.blocks), n.line) for n in general.walk()]


def test_the_collector_is_left_as_it_was() -> None:
    text = body("return (%x)")
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            str(parse(text))
            with pytest.raises(ParseError):
                parse("graph(")
            assert gc.isenabled() is enabled
            assert gc.get_freeze_count() == 0
        finally:
            gc.enable()


def test_objects_that_the_host_froze_are_not_counted_at_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(0) or 5_000_000)       # type: ignore[func-returns-value]
    monkeypatch.setattr("irtool.ir.collector.Counters.left_alone", 0)
    for _ in range(100):
        parse(body("return (%x)"))
    assert len(asked) == 1


# -- mistakes
@pytest.mark.parametrize(("text", "expected"), [
    (body("%3 : Tensor = aten::mul(%x, %z)", "return (%3)"), ["3:31: %z is not defined before this use"]),
    (body("%3 : Tensor = aten::mul(%xx, %y)", "return (%4)"),
     ["3:27: %xx is not defined before this use; did you mean '%x'?", "4:11: %4 is not defined before this use"]),
    (body("%3 : Tensor = aten::relu(%4)", "%4 : Tensor = aten::relu(%x)", "return (%3)"), ["3:28: %4 is not defined before this use"]),
    (body("%3 : Tensor = aten::mul(%x, %y)", "%3 : int = aten::dim(%x)", "return (%3)"), ["4:3: %3 is defined a second time"]),
    ("graph(%x : Tensor,\n      %x : Tensor):\n  return (%x)\n", ["2:7: %x is defined a second time"]),
    (body("%3 : Tensor, %3 : int = a::b(%x)", "return (%x)"), ["3:16: %3 is defined a second time"]),
    (body("%3 : Float(2, q) = aten::mul(%x, %y)", "return (%3)"), None),
    (body("%3 : int[ = aten::dim(%x)", "return (%3)"), None),
    (body("%3 : = aten::relu(%x)", "return (%3)"), ["3:8: expected a type, found '='"]),
    (body("%3 : Tensor = aten::mul(%x, %y", "return (%3)"), ["3:33: expected ',' or ')', found the end of the line"]),
    (body("%3 : Tensor = aten::mul(%x; %y)", "return (%3)"), ["3:29: expected ',' or ')', found ';'"]),
    (body("%3 : Tensor = (%x, %y)", "return (%3)"), ["3:17: expected an operator such as aten::add, found '('"]),
    (body("%3 : Tensor = aten::(%x)", "return (%3)"), ["3:17: expected an operator's name after 'aten::'"]),
    (body("%3 : Tensor", "return (%x)"), ["3:14: expected ',' or '=', found the end of the line"]),
    (body("%3 : Tensor = aten::add(%x, 1)", "return (%3)"), ["3:31: expected a value such as %x, found '1'"]),
    (body("%3 : int = prim::Constant[value=1()", "return (%3)"), None),
    (body("%3 : int = prim::Constant[1]()", "return (%3)"), ["3:29: expected 'name=' in attributes"]),
    (body("%3 : int = a::b[k=1, k=2]()", "return (%3)"), ["3:24: attribute 'k' is given twice"]),
    (body("%3 : Tensor = aten::relu(%x) foo", "return (%3)"), ["3:32: expected the end of the line after the operands, found 'foo'"]),
    (body("%3 : Tensor = ^Foo(%x)", "return (%3)"), ["3:21: a Python op needs two lists: ^Name(scalars)(operands)"]),
    (body("%3 : Tensor = aten::m\0l(%x)", "return (%3)"), ["3:24: expected '(' and the operands, or '[' and attributes, found a NUL byte"]),
    (body("%3 : Tensor = aten::relu(%x)"), ["3:31: the text ends inside a graph: expected 'return (...)'"]),
    (body("%3 : Tensor = aten::mul(%x, ").rstrip("\n"), ["3:31: expected ')' after the operands, found the end of the text"]),
    (HEAD.rstrip(":\n"), ["2:19: expected ':' or '{' after the graph's inputs, found the end of the text"]),
    ("graph(x : Tensor):\n  return (%x)\n", ["1:7: expected a value such as %x, found 'x'"]),
    ("graph(%x : Tensor %y : Tensor):\n  return (%x)\n", ["1:19: expected ',' or ')', found '%y'"]),
    ("graph(%x : Tensor) {\n  return (%x);\n", ["2:15: expected '}' after 'return (...)', found the end of the text"]),
    ("grph(%x : Tensor):\n  return (%x)\n", ["1:1: no graph found: expected 'graph(', found 'grph'; did you mean 'graph'?"]),
    ("# only\nhello\n", ["2:1: no graph found: expected 'graph(', found 'hello'"]),
    ("# f\ndef f(x):\n    return x\n",
     ["2:1: no graph found: expected 'graph(', found 'def'; 'irtool compile' makes graphs of Python source"]),
    ("import torch\n", ["1:1: no graph found: expected 'graph(', found 'import'; 'irtool compile' makes graphs of Python source"]),
    ("import what you like\n", ["1:1: no graph found: expected 'graph(', found 'import'"]),
    (HEAD + "  return (%x)\ngrph(%x : Tensor):\n  return (%x)\n", ["5:3: 'return' outside a graph: expected 'graph(' before it"]),
    (HEAD + "  %3 : Tensor = aten::relu(%x)\n" + HEAD + "  return (%x)\n", ["4:1: expected 'return (...)' before the next graph, found 'graph'"]),
    (HEAD + "    block0():\n      -> ()\n  return (%x)\n", ["3:5: a block without a node before it"]),
    (body("%3 : Tensor = prim::If(%x)", "  block1():", "    -> (%x)", "return (%x)"), ["4:5: expected 'block0', found 'block1'"]),
    (body("%3 : Tensor = prim::If(%x)", "  block0():", "    return (%x)", "return (%x)"), ["5:7: 'return' inside a block: expected '-> (...)'"]),
    (body("%3 : Tensor = prim::If(%x)", "  block0():", "return (%x)"), ["5:3: 'return' inside a block: expected '-> (...)'"]),
    (body("%3 : Tensor = prim::If(%x)", "  block0():"), ["4:14: the text ends inside block0, whose end '-> (...)' is missing"]),
    (body("-> (%x)", "return (%x)"), ["3:3: '->' outside a block; a graph ends with 'return (...)'"]),
    (body("}", "return (%x)"), ["3:3: '}' without a block or graph to close"]),
    (HEAD + "  return (%x)\nwith prim::F_0 = graph(%x : Tensor):\n  return (%x)\n", ["4:6: no node 'prim::F_0' owns this graph"]),
    ("%1 = Foo %2\n%1 = Bar %9\nRet %3\n", ["2:1: %1 is defined a second time", "3:5: %3 is not defined before this use"]),
], ids=range(43))
def test_mistakes(text: str, expected: list[str] | None) -> None:
    found = problems(text)
    if expected is None:        # the wording is that of types and attributes
        assert len(found) == 1 and found[0].startswith("3:")
    else:
        assert found == expected


def test_a_mistake_is_shown_in_its_line() -> None:
    with pytest.raises(ParseError) as caught:
        parse(body("%3 : Tensor = aten::mul(%x, %y)", "%3 : Tensor = aten::mul(%x, %z)", "return (%3)"), "in.ir")
    assert str(caught.value) == """\
in.ir:4:3: error: %3 is defined a second time [E0105]
  %3 : Tensor = aten::mul(%x, %z)
  ^~
in.ir:3:3: note: %3 is first defined here
  %3 : Tensor = aten::mul(%x, %y)
  ^~
in.ir:4:31: error: %z is not defined before this use [E0104]
  %3 : Tensor = aten::mul(%x, %z)
                              ^~"""


def test_reading_goes_on_after_a_mistake() -> None:
    lines = [f"%{i} : Tensor = aten::mul(%x, %oops{i})" if i % 2 else f"%{i} : Tensor = aten::relu(%{i - 1})" for i in range(11, 80)]
    found = problems(body(*lines, "return (%70)"))
    assert len(found) == MAX_ERRORS
    assert [int(line.partition(":")[0]) for line in found] == list(range(3, 43, 2))


@pytest.mark.parametrize("text", [
    body("%3 : " + "(" * 100_000 + " = aten::relu(%x)", "return (%x)"),
    body("%3 : " + "List[" * 100_000 + "int" + "]" * 100_000 + " = aten::relu(%x)", "return (%x)"),
    body("%3 : int = prim::Constant[value=1](" + "(" * 100_000, "return (%x)"),
    HEAD + "".join("  " * (2 * i + 1) + f"%b{i} : Tensor = prim::If(%x)\n" + "  " * (2 * i + 2) + "block0():\n" for i in range(1000)),
    HEAD + "".join(f"%b{i} : Tensor = prim::If(%x)\nblock0():\n" for i in range(100_000)),
    "graph(" * 100_000, "with a_0 = graph(" * 100_000, "graph(" + "%a : (" * 100_000, "->" * 100_000, "{" * 100_000, "\0" * 100_000,
], ids=range(11))
def test_deep_nesting_is_a_diagnostic(text: str) -> None:
    assert problems(text)


def test_gigantic_numbers() -> None:
    digits = "9" * 100_000
    text = body(f"%{digits} : int = prim::Constant[value={digits}]()", f"return (%{digits})")
    module = parse(text)
    assert str(module) == text
    assert module.graphs[0].fresh_id() == "0"
    assert problems(body(f"%3 : Float({digits}) = aten::relu(%x)", "return (%x)"))
    assert problems(HEAD.replace("%y", f"-------- stage {digits} --------\n      %y") + "  return (%x)\n")


@pytest.mark.parametrize("text", [None, 3, b"graph():\n  return ()\n"])
def test_only_text_is_parsed(text: Any) -> None:
    with pytest.raises(Error, match="expected text"):
        parse(text)


def test_a_filename_may_be_a_path() -> None:
    assert parse("", Path("a.ir")).filename == "a.ir"
