"""A law of the verifier and the passes: where a value goes on as another one, its types agree or the text is refused.

Types that differ meet at every such place: branches, loops, graphs of nodes, calls, containers, results of operators. The verifier
refuses the text, or every pass leaves a graph that the verifier accepts, or refuses it at its line. No pass makes
nodes that no operator takes.
"""
from __future__ import annotations

import contextlib
import random

import pytest

import irtool
from irtool.autodiff.list_gradients import READ, UNDO
from irtool.passmanager import violations

USES = {
    "Tensor": "%r : Tensor = aten::mul({0}, {0})",
    "Float(2, 3)": "%r : Tensor = aten::mul({0}, {0})",
    "int": "%r : int = aten::add({0}, {0})",
    "float": "%r : float = aten::add({0}, {0})",
    "bool": "%r : bool = aten::__not__({0})",
    "Scalar": "%r : Scalar = aten::add({0}, {0})",
    "Tensor?": "%r : Tensor = aten::_unwrap_optional({0})",
    "int?": "%r : int = aten::_unwrap_optional({0})",
    "Any": "%r : Any = prim::unchecked_cast({0})",
    "NoneType": "%r : bool = aten::__is__({0}, {0})",
    "(int)": "%r : int = prim::TupleUnpack({0})",
    "(Tensor, int)": "%r : Tensor, %r2 : int = prim::TupleUnpack({0})",
    "int[]": "%r : int = aten::len({0})",
    "Tensor[]": "%r : Tensor = aten::stack({0}, %0)",
    "str": "%r : int = aten::len({0})",
    "Dict(str, Tensor)": "%r : int = aten::len({0})",
}
"""By type, an operator that takes a value of it and nothing else."""
CONSTANTS = """  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
"""
LISTS = "df_input_vjps=[0], df_input_captured_inputs=[0], df_input_captured_outputs=[0], df_output_vjps=[0]"
LINES = {
    "branch": "%v : W = prim::If(%t)\n    block0():\n      -> (%x)\n    block1():\n      -> (%y)",
    "loop": "%v : W = prim::Loop(%1, %t, %y)\n    block0(%i : int, %c : W):\n      -> (%t, %x)",
    "loop that takes": "%v : W = prim::Loop(%0, %t, %x)\n    block0(%i : int, %c : W):\n      -> (%t, %c)",
    "tuple": "%p : (W, int) = prim::TupleConstruct(%x, %0)\n  %v : W, %n : int = prim::TupleUnpack(%p)",
    "tuple in a loop": "%p : (W, int) = prim::TupleConstruct(%y, %0)\n  %q : (W, int) = prim::Loop(%1, %t, %p)\n"
                       "    block0(%i : int, %c : (W, int)):\n      %d : (W, int) = prim::TupleConstruct(%x, %i)\n      -> (%t, %d)\n"
                       "  %v : W, %n : int = prim::TupleUnpack(%q)",
    "unpacked": "%p : (G, int) = prim::TupleConstruct(%x, %0)\n  %v : W, %n : int = prim::TupleUnpack(%p)",
    "indexed": "%p : (G, int) = prim::TupleConstruct(%x, %0)\n  %v : W = prim::TupleIndex(%p, %0)",
    "slice": "%p : (G, int) = prim::TupleConstruct(%x, %0)\n"
             "  %q : (W) = prim::TupleSlice[beg=0, end=1](%p)\n  %v : W = prim::TupleUnpack(%q)",
    "list": "%p : W[] = prim::ListConstruct(%x, %x)\n  %v : W, %n : W = prim::ListUnpack(%p)",
    "list unpacked": "%p : G[] = prim::ListConstruct(%x, %x)\n  %v : W, %n : W = prim::ListUnpack(%p)",
    "element": "%p : G[] = prim::ListConstruct(%x, %x)\n  %v : W = aten::__getitem__(%p, %0)",
    "unwrapped": "%v : W = aten::_unwrap_optional(%x)",
    "unchecked": "%v : W = prim::unchecked_unwrap_optional(%x)",
    "cast": "%v : W = prim::unchecked_cast(%x)",
    "cast of a constant": "%v : W = prim::unchecked_cast(%0)",
    "cast of None": "%n : NoneType = prim::Constant()\n  %v : W = prim::unchecked_cast(%n)",
    "first of two results": "%v : W, %n : Tensor = aten::sort(%x, %0, %t)",
    "undefined": "%v : W = prim::ReplaceIfUndef(%x, %y)",
    "sum": "%v : W = prim::AutogradAdd(%x, %y)",
    "guard": "%v : W = prim::Guard(%x)",
    "chunk": "%v : W, %n : W = prim::ConstantChunk[chunks=2, dim=0](%x)",
    "result": "%v : W = aten::exp(%x)",
    "results": "%v : W, %n : W = aten::linalg_qr(%x)",
    "number": "%v : W = aten::dim(%x)",
}
"""A value %v of a wanted type W that comes of %x of a type G, and of %y of W."""
TEXTS = {name: f"graph(%x : G, %y : W):\n{CONSTANTS}  {line}\n  USE\n  return (%r)\n" for name, line in LINES.items()}
for kind in ("prim::FusionGroup", "prim::DifferentiableGraph", "prim::fork", "prim::GraphExecutor"):
    TEXTS[f"{kind} takes"] = (f"graph(%x : G):\n  %o = {kind}_0(%x)\n  return (%o)\nwith {kind}_0 = graph(%v : W):\n{CONSTANTS}  USE\n"
                              "  return (%r)\n")
    TEXTS[f"{kind} gives"] = (f"graph(%x : G):\n{CONSTANTS}  %v : W = {kind}_0(%x)\n  USE\n  return (%r)\n"
                              f"with {kind}_0 = graph(%v : G):\n  return (%v)\n")
for callee, call in (("CallFunction", "%f : Function = prim::Constant[name=\"g\"]()\n  %q : W = prim::CallFunction(%f, %x)"),
                     ("name", "%q : W = ^g()(%x)")):
    TEXTS[f"{callee} takes"] = (f"# graph f:\ngraph(%x : G):\n  {call}\n  return (%q)\n"
                                f"# graph g:\ngraph(%v : W):\n{CONSTANTS}  USE\n  return (%v)\n")
    TEXTS[f"{callee} gives"] = (f"# graph f:\ngraph(%x : G):\n{CONSTANTS}  {call.replace('%q', '%v')}\n  USE\n  return (%r)\n"
                                "# graph g:\ngraph(%v : G):\n  return (%v)\n")
HEAD = f"graph(%x : G):\n{CONSTANTS}  "
PACKED = f'prim::DifferentiableGraph_0[name="df", f_real_outputs=1, {LISTS}, ReverseSubgraph=<Graph>](%x)'
TEXTS["gradient captures"] = (f"{HEAD}%q : G = {PACKED}\n  return (%q)\nwith prim::DifferentiableGraph_0 = graph(%a : G):\n  return (%a)\n"
                              "with prim::DifferentiableGraph_0.ReverseSubgraph = graph(%g : G,\n      %v : W,\n      %b : W):\n"
                              f"{CONSTANTS}  USE\n  return (%g)\n")
TEXTS["gradient takes"] = (f"{HEAD}%q : G = {PACKED}\n  return (%q)\nwith prim::DifferentiableGraph_0 = graph(%a : G):\n  return (%a)\n"
                           "with prim::DifferentiableGraph_0.ReverseSubgraph = graph(%v : W,\n      %c : G,\n      %b : G):\n"
                           f"{CONSTANTS}  USE\n  return (%r)\n")
CUSTOM = "irtool::custom_vjp_0[outputs=1, backward=<Graph>](%x)"
TEXTS["custom gradient gives"] = (f"{HEAD}%v : W, %s : W = {CUSTOM}\n  USE\n  return (%r)\nwith irtool::custom_vjp_0 = graph(%x : G):\n"
                                  "  return (%x, %x)\nwith irtool::custom_vjp_0.backward = graph(%g : G, %x : G):\n  return (%g)\n")
TEXTS["custom gradient takes"] = (f"{HEAD}%q : G, %s : W = {CUSTOM}\n  return (%q)\nwith irtool::custom_vjp_0 = graph(%v : W):\n{CONSTANTS}"
                                  "  USE\n  return (%v, %v)\nwith irtool::custom_vjp_0.backward = graph(%g : G, %v : W):\n  return (%g)\n")
TEXTS["pair captures"] = ("# graph f: f_real_outputs=1\ngraph(%x : G):\n  return (%x)\n# graph df: of=f df_input_vjps=[0] "
                          "df_input_captured_inputs=[0] df_input_captured_outputs=[] df_output_vjps=[0]\n"
                          f"graph(%g : G, %v : W):\n{CONSTANTS}  USE\n  return (%g)\n")
PASSES = [entry.name for entry in irtool.PASSES] + [
    "differentiate{requires-grad=all}", "lower-tuples{all}", "inline{groups}", "inline-autodiff-subgraphs{threshold=100}",
    "create-autodiff-subgraphs{threshold=1}", "O1", "propagate-shapes,peephole", "differentiate{requires-grad=all},specialize-undef"]
SAMPLE = 40
"""So many pairs of types are tried at each place, with a few passes each, drawn by the name of the place."""


@pytest.mark.parametrize("place", TEXTS)
def test_types_that_meet_agree_or_are_refused(place: str) -> None:
    rng = random.Random(place)
    for _ in range(SAMPLE):
        given, wanted = rng.choice(list(USES)), rng.choice(list(USES))
        text = TEXTS[place].replace("USE", USES[wanted].format("%v")).replace(": G", f": {given}").replace(": (G", f": ({given}") \
            .replace(": W", f": {wanted}").replace(": (W", f": ({wanted}")
        if violations(irtool.parse(text)):
            continue
        for pipeline in rng.sample(PASSES, 6):
            try:
                module = irtool.PassManager(pipeline, verify=True).run(irtool.parse(text))
            except irtool.VerifyError as error:
                pytest.fail(f"{pipeline}: {error}\n{text}")
            except irtool.Error:
                continue
            assert str(irtool.parse(str(module))) == str(module)


@pytest.mark.parametrize(("line", "message"), [
    ("%v : Any, %w : Any = aten::linalg_qr(%x)", "aten::linalg_qr gives Tensor, found %v : Any"),
    ("%v : Tensor? = aten::exp(%x)", "aten::exp gives Tensor, found %v : Tensor?"),
    ("%v : int[] = prim::unchecked_cast(%x)", "prim::unchecked_cast gives Tensor, found %v : int[]"),
    ("%v : str = aten::dim(%x)", "aten::dim gives int, found %v : str"),
    ("%v : str, %w : int = prim::TupleUnpack(%p)", "prim::TupleUnpack gives Tensor, found %v : str"),
    ("%v : Tensor[] = prim::AutogradAdd(%x, %x)", "prim::AutogradAdd gives Tensor, found %v : Tensor[]"),
])
def test_what_a_node_gives_is_what_it_says(line: str, message: str) -> None:
    module = irtool.parse(f"graph(%x : Tensor, %p : (Tensor, int)):\n  {line}\n  return (%x)\n")
    assert [each.message for each in violations(module)] == [message]


DRAWN = ("%l", "%x", "%n", "%s", "%o")


@pytest.mark.parametrize("kind", sorted({*READ, *UNDO}))
def test_lists_of_old_dialects_have_gradients_or_are_refused(kind: str) -> None:
    """Texts of 2018 declare few types, so that the verifier lets operands pass that no overload takes."""
    rng = random.Random(kind)
    for _ in range(60):
        operands = ", ".join(["%l", *rng.choices(DRAWN, k=rng.randrange(4))])
        result = rng.choice(("Dynamic", "Dynamic[]", "int"))
        text = (f"graph(%x : Dynamic) {{\n  %n : int = prim::Constant[value=1]()\n  %s : string = prim::Constant[value=\"a\"]()\n"
                f"  %o : None = prim::None()\n  %l : Dynamic[] = prim::ListConstruct(%x, %x)\n  %r : {result} = {kind}({operands})\n"
                f"  %y : Dynamic = aten::stack(%l, %n)\n  return (%y, {rng.choice(('%r', '%y'))});\n}}\n")
        for pipeline in ("differentiate", "differentiate{save=least},specialize-undef"):
            with contextlib.suppress(irtool.Error):
                irtool.PassManager(pipeline).run(irtool.parse(text))


def test_what_another_overload_gives_may_be_declared() -> None:
    text = "graph(%x : int):\n  %a : int = aten::pow(%x, %x)\n  %b : float = aten::pow(%x, %x)\n  return (%a, %b)\n"
    irtool.verify(irtool.parse(text))


def test_texts_that_are_read_and_dropped_are_collected() -> None:
    from irtool.ir.collector import FEWEST, Counters

    lines = "".join(f"  %{i} : Tensor = aten::exp(%{i - 1 if i else 'x'})\n" for i in range(300))
    text = f"graph(%x : Tensor):\n{lines}  return (%299)\n"
    for _ in range(400):
        irtool.parse(text)
        assert Counters.waiting <= 2 * max(FEWEST, Counters.most)


def test_a_branch_that_is_not_taken_may_cast_to_anything() -> None:
    """As in graphs of torch with inlined calls whose arguments have several types."""
    text = """graph(%x : Tensor):
  %c : bool = prim::isinstance[types=[int[]]](%x)
  %y : Tensor = prim::If(%c)
    block0():
      %l : int[] = prim::unchecked_cast(%x)
      %r : Tensor = aten::reshape(%x, %l)
      -> (%r)
    block1():
      -> (%x)
  return (%y)
"""
    for passes in ("dce", "lower-tuples{all}", "O1"):
        irtool.PassManager(passes, verify=True).run(irtool.parse(text))
