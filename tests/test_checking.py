"""Wrong passes, planted: each is caught by validation, named by `bisect`, and shown by a graph of few nodes that `reduce` leaves."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from test_cli import irtool_

import irtool
from irtool.analysis.liveness import remove_dead_nodes
from irtool.checking.changes import Changes, Snapshot
from irtool.checking.computed import unlike
from irtool.checking.graph_diff import compare_graphs
from irtool.checking.reducing import reduced
from irtool.checking.validation import FAILS, Validation, ValidationError
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.edits import clone_graph, inline_block
from irtool.ir.graph import Graph, Node
from irtool.ir.module import Module
from irtool.ir.types import parse_type
from irtool.ops.made_inputs import input_sets
from tests.interrupts import INTERRUPTIBLE
from tests.random_graphs import Writer

TEXT = """graph(%x : Float(3, 4), %y : Float(3, 4), %n : int, %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %k : int = prim::Constant[value=3]()
  %2 : float = prim::Constant[value=0.5]()
  %t : bool = prim::Constant[value=1]()
  %3 : Float(3, 4) = aten::mul(%x, %y)
  %4 : Float(3, 4) = aten::sub(%3, %y, %1)
  %5 : Float(3, 4) = aten::relu(%4)
  %6 : Float(3, 4) = aten::clone(%5, %nothing)
  %7 : Float(3, 4) = aten::add_(%6, %x, %1)
  %8 : Float(4) = aten::select(%7, %0, %1)
  %9 : Float(4) = aten::mul_(%8, %2)
  %10 : Float(3, 4) = prim::If(%c)
    block0():
      %11 : Float(3, 4) = aten::neg(%7)
      -> (%11)
    block1():
      %12 : Float(3, 4) = aten::exp(%y)
      -> (%12)
  %13 : Float(3, 4) = prim::Loop(%k, %t, %10)
    block0(%i : int, %14 : Float(3, 4)):
      %15 : Float(3, 4) = aten::add(%14, %x, %1)
      -> (%t, %15)
  %16 : Float(3, 4) = aten::div(%13, %2)
  %17 : Float(3) = aten::sum(%16, %dims, %f, %nothing)
  %18 : int = aten::add(%n, %1)
  %19 : int = aten::floordiv(%18, %k)
  return (%17, %7, %19, %x, %5)
""".replace("  %3 : Float(3, 4) = aten::mul", "  %nothing : NoneType = prim::Constant()\n  %f : bool = prim::Constant[value=0]()\n"
            "  %dims : int[] = prim::Constant[value=[1]]()\n  %3 : Float(3, 4) = aten::mul")


def of_kind(graph: Graph, kind: str) -> Iterator[Node]:
    """The nodes of a kind."""
    return iter([node for node in graph.walk() if node.kind == kind])


def renamed(old: str, new: str) -> Callable[[Graph], bool]:
    """One operator for another."""
    def wrong(graph: Graph) -> bool:
        nodes = list(of_kind(graph, old))
        for node in nodes:
            node.kind = new
        return bool(nodes)
    return wrong


def dropped(kind: str) -> Callable[[Graph], bool]:
    """An operand in place of the result."""
    def wrong(graph: Graph) -> bool:
        nodes = list(of_kind(graph, kind))
        for node in nodes:
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
        return bool(nodes)
    return wrong


def off_by_one(graph: Graph) -> bool:
    """A trip count of one less."""
    for node in of_kind(graph, "prim::Loop"):
        count = node.inputs[0].node
        if count.kind == "prim::Constant" and int(str(count.attributes["value"].value)) > 0:
            node.replace_input(0, Builder(graph).before(node).constant(int(str(count.attributes["value"].value)) - 1))
            return True
    return False


def swapped(graph: Graph) -> bool:
    """a - b as b - a."""
    nodes = list(of_kind(graph, "aten::sub"))
    for node in nodes:
        first, second = node.inputs[:2]
        node.replace_input(0, second)
        node.replace_input(1, first)
    return bool(nodes)


def copied_away(graph: Graph) -> bool:
    """A write through a view into a copy: what it wrote is lost."""
    for node in of_kind(graph, "aten::select"):
        nothing = Builder(graph).before(node).constant(None)
        copy = Builder(graph).before(node).node("aten::clone", (node.inputs[0], nothing), output_types=[node.inputs[0].type]).output
        node.replace_input(0, copy)
        return True
    return False


def lost_dtype(graph: Graph) -> bool:
    """A result in double precision."""
    for node in of_kind(graph, "aten::relu"):
        build = Builder(graph).before(node.next)
        code, no, none = build.constant(7), build.constant(False), build.constant(None)
        wide = build.node("aten::to", (node.output, code, no, no, none), output_types=[parse_type("Tensor")])
        node.output.replace_all_uses_with(wide.output)
        wide.replace_input(0, node.output)
        return True
    return False


def wrong_branch(graph: Graph) -> bool:
    """The second branch, whatever the condition."""
    for node in of_kind(graph, "prim::If"):
        for value, result in zip(node.outputs, inline_block(node.blocks[1], node), strict=True):
            value.replace_all_uses_with(result)
        node.destroy()
        return True
    return False


def merged_writes(graph: Graph) -> bool:
    """A copy and what it is of as one value, though the copy is written into: an input changes, or another value."""
    return dropped("aten::clone")(graph)


def constant_changed(graph: Graph) -> bool:
    """0.5 as 0.25."""
    for node in of_kind(graph, "prim::Constant"):
        if node.attributes.get("value") is not None and node.attributes["value"].value == 0.5:
            node.set_attribute("value", Attribute("0.25", 0.25))
            return True
    return False


WRONG: dict[str, Callable[[Graph], bool]] = {
    "off by one": off_by_one, "dropped write": dropped("aten::mul_"), "wrong alias": merged_writes, "copied away": copied_away,
    "lost dtype": lost_dtype, "swapped operands": swapped, "wrong branch": wrong_branch, "wrong constant": constant_changed,
    "relu as abs": renamed("aten::relu", "aten::abs"), "floor as truncation": renamed("aten::floordiv", "aten::mul"),
    "neg dropped": dropped("aten::neg"), "relu dropped, of nan too": dropped("aten::relu"),
}


def as_pass(change: Callable[[Graph], bool]) -> Callable[[Graph], bool]:
    """A pass that does it."""
    def planted(graph: Graph) -> bool:
        """Wrong on purpose."""
        return change(graph)
    return planted


def is_bad(graph: Graph, change: Callable[[Graph], bool]) -> bool:
    """Does the pass change what the graph computes?"""
    try:
        irtool.PassManager([as_pass(change)], verify=True).run(Module([graph]), Validation())
    except ValidationError:
        return True
    except irtool.Error:
        return False
    return False


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_pass_is_caught_and_reduced(name: str) -> None:
    module = irtool.parse(TEXT)
    with pytest.raises(ValidationError, match="pass 'planted' changes what 'graph' computes: (output|input|length)"):
        irtool.PassManager(["cse", as_pass(WRONG[name]), "dce"], verify=True).run(module, Validation())
    smallest = reduced(irtool.parse(TEXT).graph(), lambda graph: is_bad(graph, WRONG[name]))
    assert is_bad(clone_graph(smallest), WRONG[name])
    assert sum(1 for _ in smallest.walk()) <= 6, str(smallest)


@pytest.mark.parametrize("name", WRONG)
def test_bisect_names_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irtool.passes import BY_NAME, pass_of

    monkeypatch.setitem(BY_NAME, "planted", pass_of(as_pass(WRONG[name])))
    path = tmp_path / "in.ir"
    path.write_text(str(irtool.parse(TEXT)))
    code, out, _ = irtool_("bisect", "--json", "--passes=cse,constant-pooling,planted,dce", str(path))
    report = json.loads(out)
    assert code == 0 and (report["pass"], report["index"]) == ("planted", 3)
    assert any(line[:1] in "+-" for line in report["diff"])
    assert json.loads(irtool_("bisect", "--json", "--passes=cse,constant-pooling,dce", str(path))[1])["pass"] is None


@pytest.mark.parametrize("seed", range(12))
def test_right_passes_are_validated(seed: int) -> None:
    checked = Validation(gradients=True)
    irtool.PassManager("O1,peephole,canonicalize").run(irtool.parse(Writer(seed).graph()), checked)
    assert checked.comparisons or checked.not_run


def test_writes_into_inputs_and_random_numbers_are_compared() -> None:
    text = "graph(%x : Float(3)):\n  %1 : float = prim::Constant[value=2.]()\n  %2 : Float(3) = aten::mul_(%x, %1)\n" \
           "  %3 : int[] = prim::Constant[value=[3]]()\n  %4 : NoneType = prim::Constant()\n" \
           "  %5 : Tensor = aten::rand(%3, %4, %4, %4, %4)\n  return (%5)\n"
    checked = Validation()
    irtool.PassManager("dce,cse").run(irtool.parse(text), checked)      # the same random numbers each time
    assert checked.comparisons == 6
    with pytest.raises(ValidationError, match="input after the run 0"):
        irtool.PassManager([as_pass(dropped("aten::mul_"))]).run(irtool.parse(text), Validation())


def test_gradients_are_compared() -> None:
    text = "graph(%x : Float(3)):\n  %1 : Float(3) = aten::exp(%x)\n  %2 : Float(3) = aten::mul(%1, %x)\n  return (%2)\n"

    def halved(module: Module) -> bool:
        """The reverse graph gives zeros."""
        df = module.graphs[-1]
        value = df.outputs[0]
        zero = Builder(df).node("aten::sub", (value, value, Builder(df).constant(1)), output_types=[value.type]).output
        df.block.set_outputs([zero])
        return True

    halved.__annotations__["module"] = "Module"
    steps = ["differentiate{requires-grad=all}", "specialize-undef", "lower-grad-of", "dce"]
    irtool.PassManager(steps).run(irtool.parse(text), Validation(gradients=True))
    with pytest.raises(ValidationError, match="pass 'halved' changes what 'f, a gradient pair' computes: gradient of input 0"):
        irtool.PassManager([*steps, halved]).run(irtool.parse(text), Validation(gradients=True))


def test_inputs_have_corner_values() -> None:
    graph = irtool.parse("graph(%x : Float(4, 5), %i : Long(4), %n : int, %l : Tensor[], %o : Tensor?):\n  return (%x)\n").graph()
    sets = list(input_sets(graph))
    numbers = np.concatenate([each[0].ravel() for each in sets])
    assert np.isnan(numbers).any() and np.isinf(numbers).any() and (np.signbit(numbers) & (numbers == 0)).any()
    assert {each[2] for each in sets} >= {0, 1} and sets[0][1].dtype == np.int64
    again = [each[0] for each in input_sets(graph)]
    for one, other in zip(again, sets, strict=True):
        np.testing.assert_array_equal(one, other[0])


@pytest.mark.parametrize("type", ["Float(100000, 100000)", "Float(8193, 8193)[]", "(Float(2), Byte(1, 67108865))", "Float(67108865)?"])
def test_inputs_are_not_made_of_types_of_too_many_elements(type: str) -> None:
    """They took 75 GiB."""
    module = irtool.parse(f"graph(%w : Float(2), %big : {type}):\n  return (%w)\n")
    with pytest.raises(irtool.Error, match="%big : .* has too many elements to be made for a trial: 67108864 is the most"):
        irtool.PassManager(["dce"]).run(module, Validation())


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_is_itself_under_other_names(seed: int) -> None:
    graph = irtool.parse(Writer(seed).graph()).graph()
    other = clone_graph(graph)
    other.renumber()
    assert compare_graphs(graph, other).is_equal
    nodes = [node for node in other.walk() if node.outputs and node.kind.startswith("aten::")]
    if nodes:
        nodes[len(nodes) // 2].kind = "aten::other"
        difference = compare_graphs(graph, other)
        assert not difference.is_equal and difference.removed == difference.added == 1


def test_diff_and_compare_on_the_command_line(tmp_path: Path) -> None:
    text = "graph(%x : Float(2), %y : Float(2)):\n  %1 : Float(2) = aten::mul(%x, %y)\n  %2 : Float(2) = aten::tanh(%1)\n  return (%2)\n"
    for name, each in (("a", text), ("b", text.replace("tanh", "sigmoid")), ("c", text.replace("%1", "%product"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "g.ir").write_text(each)
    a, b, c = (str(tmp_path / name / "g.ir") for name in "abc")
    assert irtool_("diff", a, c) == (0, "", "")
    code, out, _ = irtool_("diff", a, b)
    assert code == 1 and "-  %2 : Float(2) = aten::tanh(%1)\n+  %2 : Float(2) = aten::sigmoid(%1)\n" in out
    assert irtool_("diff", "-q", str(tmp_path / "a"), str(tmp_path / "b")) == (1, "", "")
    assert irtool_("diff", "-q", str(tmp_path / "a"), str(tmp_path / "c")) == (0, "", "")
    (tmp_path / "c" / "more.ir").write_text(text)
    code, out, _ = irtool_("diff", str(tmp_path / "a"), str(tmp_path / "c"))
    assert code == 1 and "only in one folder:" in out and "more.ir" in out
    assert irtool_("diff", a, str(tmp_path / "b"))[0] == 2
    assert irtool_("compare", a, c)[0] == 0
    code, out, _ = irtool_("compare", a, b)
    assert code == 1 and "aten::sigmoid(%1)" in out and "aten::mul(%x, %y)" in out
    one = tmp_path / "one.ir"
    one.write_text("graph(%x : Tensor):\n  return (%x)\n")
    code, _, err = irtool_("compare", str(one), b)
    assert code == 1 and f"error: {one} takes 1 input (%x : Tensor), {b} 2 (" in err


def test_a_wrong_transformation_is_reported_before_missing_inputs() -> None:
    code, _, err = irtool_("transform", "-", "grd(0)", text="graph(%x : Tensor):\n  return (%x)\n")
    assert code == 2 and "there is no transformation 'grd' (did you mean 'grad'?)" in err


CHAIN = "graph(%x : Float(3)):\n" + "".join(
    f"  %{i + 1} : Float(3) = aten::{name}(%{i or 'x'})\n" for i, name in enumerate("exp sin cos tan tanh abs".split())) + "  return (%6)\n"
"""Six nodes in a row."""


def test_a_transformation_in_the_place_of_the_graph_is_said(tmp_path: Path) -> None:
    code, _, err = irtool_("transform", "vmap(grad(0))", str(tmp_path / "g.ir"))
    assert code == 2 and f"irtool transform {tmp_path / 'g.ir'} 'vmap(grad(0))'" in err
    code, _, err = irtool_("transform", str(tmp_path / "g.ir"), "vmap(grad(0))")
    assert code == 2 and "no such file" in err


def test_reduce_by_a_command(tmp_path: Path) -> None:
    graph, test, small = tmp_path / "in.ir", tmp_path / "test.sh", tmp_path / "small.ir"
    graph.write_text(str(irtool.parse(TEXT)))
    test.write_text("#!/bin/sh\n! grep -q 'aten::exp' $1\n")
    test.chmod(0o755)
    code, out, err = irtool_("reduce", "--test", str(test), str(graph), "-o", str(small))
    assert code == 0 and "nodes, now 1, by" in err
    assert [node.kind for node in irtool.parse(small.read_text()).graph().walk()] == ["aten::exp"]
    test.write_text("#!/bin/sh\nexit 0\n")
    assert irtool_("reduce", "--test", str(test), str(graph))[0] == 1
    test.write_text("#!/bin/sh\nexit 125\n")
    assert irtool_("reduce", "--test", str(test), str(graph))[0] == 1
    assert irtool_("reduce", "--test", str(tmp_path / "missing"), str(graph))[0] == 2
    assert irtool_("reduce", str(graph))[0] == 2


def test_a_command_that_hangs_says_nothing(tmp_path: Path) -> None:
    """A hanging test costs its time; what it started ends with it."""
    graph, test, small, mark = tmp_path / "in.ir", tmp_path / "test.sh", tmp_path / "small.ir", tmp_path / "mark"
    graph.write_text(CHAIN)
    test.write_text(f"#!/bin/sh\nif [ $(grep -c aten:: $1) -lt 4 ]; then (sleep 3; touch {mark}); fi\nexit 1\n")
    test.chmod(0o755)
    code, _, err = irtool_("reduce", "--test", str(test), "--timeout", "0.3", str(graph), "-o", str(small))
    assert code == 0 and "6 nodes, now 4, by" in err and sum(1 for _ in irtool.parse(small.read_text()).graph().walk()) == 4
    test.write_text("#!/bin/sh\nsleep 1000\n")
    for words in (("reduce",), ("bisect", "--passes=dce")):
        code, _, err = irtool_(*words, "--test", str(test), "--timeout", "0.3", str(graph))
        assert code == 1 and "it takes longer than 0.3 s (--timeout)" in err
    assert not mark.exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("to_file", [False, True])
def test_ctrl_c_ends_with_the_smallest_graph_so_far(to_file: bool, tmp_path: Path) -> None:
    graph, test, small, waits = tmp_path / "in.ir", tmp_path / "test.sh", tmp_path / "small.ir", tmp_path / "waits"
    graph.write_text(CHAIN)
    test.write_text(f"#!/bin/sh\nif [ $(grep -c aten:: $1) -lt 4 ]; then touch {waits}; sleep 1000; fi\nexit 1\n")
    test.chmod(0o755)
    words = [*INTERRUPTIBLE, "reduce", "--test", str(test), str(graph), *(["-o", str(small)] if to_file else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not waits.exists():
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130 and "interrupted: 6 nodes, now " in err
    assert 4 <= sum(1 for _ in irtool.parse(small.read_text() if to_file else out).graph().walk()) <= 6


def test_bisect_without_inputs_says_that_nothing_was_compared(tmp_path: Path) -> None:
    graph, inputs = tmp_path / "in.ir", tmp_path / "in.npz"
    runs = "graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  return (%1)\n"
    graph.write_text("graph(%x : Tensor, %i : int):\n  %1 : Tensor = aten::select(%x, %i, %i)\n  %2 : Tensor = aten::mm(%1, %1)\n"
                     "  %3 : Tensor = aten::view_as_real(%2)\n  return (%3)\n")
    code, out, err = irtool_("bisect", "--passes=dce,cse", str(graph))
    assert (code, out) == (1, "nothing was compared: no pass of 2 is known to be right\n")
    assert f"irtool bisect {graph} INPUTS.npz" in err and "--validate" not in err
    assert irtool_("bisect", "--json", "--passes=dce,cse", str(graph))[0] == 1
    np.savez(inputs, x=np.ones((2, 2, 2), np.complex64), i=0)
    assert irtool_("bisect", "--passes=dce,cse", str(graph), str(inputs)) == (0, "no pass of 2 changes what is computed\n", "")
    np.savez(inputs, x=np.ones((2, 2, 2), np.float32), i=0)
    code, out, err = irtool_("bisect", "--passes=dce,cse", str(graph), str(inputs))
    assert code == 1 and "was not compared" in err and "INPUTS.npz" not in err
    graph.write_text(runs + graph.read_text())
    code, out, _ = irtool_("bisect", "--passes=dce,cse", str(graph))
    assert (code, out) == (0, "no pass of 2 changes what is computed, as far as it was compared\n")


def test_bisect_by_a_command(tmp_path: Path) -> None:
    graph, test = tmp_path / "in.ir", tmp_path / "test.sh"
    graph.write_text(str(irtool.parse(TEXT)))
    test.write_text("#!/bin/sh\ngrep -q 'prim::Loop' $1\n")       # bad: a file without loops
    test.chmod(0o755)
    code, out, _ = irtool_("bisect", "--test", str(test), "--passes=cse,constant-loop-unrolling,dce", str(graph))
    assert code == 0 and "2 of 3: after pass 'constant-loop-unrolling' the command calls the file bad" in out
    test.write_text("#!/bin/sh\nexit 1\n")
    code, _, err = irtool_("bisect", "--test", str(test), "--passes=cse", str(graph))
    assert code == 1 and "before any pass" in err


def test_dead_code_alone_is_no_change() -> None:
    graph = irtool.parse(TEXT).graph()
    remove_dead_nodes(graph)
    assert not is_bad(graph, lambda graph: remove_dead_nodes(graph))


@pytest.mark.parametrize("name", WRONG)
def test_of_many_changes_the_fewest_wrong_ones_are_left(name: str) -> None:
    """A pass that makes many right changes, and one wrong one."""
    module = irtool.parse(TEXT)
    validation = Validation()
    validation.start(module)
    before = Snapshot(module)
    pipeline = ["constant-pooling,cse,canonicalize-ops,decompose-ops", as_pass(WRONG[name]), "constant-loop-unrolling,dce"]
    irtool.PassManager(pipeline).run(module)
    changes = Changes(before, Snapshot(module), lambda some: FAILS not in (validation.difference(some) or FAILS))
    chosen = changes.smallest()
    assert changes.shows_fault(chosen) and len(chosen) < len(changes.all)
    assert not any(changes.shows_fault([each for each in chosen if each != one]) for one in chosen)


def test_bisect_shows_one_change_of_many(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "from irtool import Graph\n\n\ndef swap(graph: Graph) -> bool:\n"
        "    for node in graph.walk():\n        if node.kind == 'aten::add':\n"
        "            node.set_inputs((node.inputs[1], node.inputs[0], *node.inputs[2:]))\n"
        "        if node.kind == 'aten::sub':\n            node.set_inputs((node.inputs[1], node.inputs[0], *node.inputs[2:]))\n"
        "    return True\n\n\nswap.repeats = 'swaps again'\n")
    lines = "".join([f"  %{i + 1} : Float(2) = aten::{'sub' if i == 7 else 'add'}(%{i or 'x'}, %x, %one)\n" for i in range(20)])
    (tmp_path / "in.ir").write_text(f"graph(%x : Float(2)):\n  %one : int = prim::Constant[value=1]()\n{lines}  return (%20)\n")
    code, out, _ = irtool_("bisect", "--load", str(tmp_path / "wrong.py"), "--passes=swap", str(tmp_path / "in.ir"))
    assert code == 0 and "1 of its 19 changes does that:" in out
    assert [line for line in out.split("\n") if line[:2] in ("- ", "+ ")] == ["-  %8 : Float(2) = aten::sub(%7, %x, %one)",
                                                                            "+  %8 : Float(2) = aten::sub(%x, %7, %one)"]


@pytest.mark.parametrize("one, other", [
    (1.0, 2.0), (0.0, float("nan")), (1j, 2j), (1, 2), (True, False), ("a", "b"), (None, 1), (1, 1.0),
    (np.float32([1.0]), np.float32([2.0])), (np.array(1.0), np.array(2.0)), (np.array(1.0), 1.0)])
def test_values_of_each_kind_are_like_themselves_and_unlike_others(one: object, other: object) -> None:
    assert not unlike(one, one) and not unlike(other, other)
    assert unlike(one, other) and unlike(other, one)


def test_a_validation_that_compared_nothing_says_so(tmp_path: Path) -> None:
    graph = tmp_path / "in.ir"
    graph.write_text("graph(%x : Tensor):\n  %1 : Tensor = aten::view_as_real(%x)\n  %2 : Tensor = aten::neg(%1)\n  return (%2)\n")
    code, _, err = irtool_("opt", "--validate", "--passes=dce", str(graph))
    assert code == 0 and "not validated: nothing was compared" in err and "was not compared: no inputs" in err
    graph.write_text("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  return (%1)\n")
    code, _, err = irtool_("opt", "--validate", "--passes=dce", str(graph))
    assert code == 0 and "validated: " in err and "all equal" in err and "nothing" not in err
