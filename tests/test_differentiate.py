"""Laws of the passes around differentiation: text between passes changes nothing, specialised is lowered, pairs fit."""
from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool import PassManager
from irtool.autodiff.formula_graphs import closure_pairs
from irtool.ir.edits import clone_graph
from irtool.ir.module import Module
from irtool.ir.pair import CHUNK, GradientPair, numbers_in, pair_violations, pairs, spelled
from irtool.passes import BY_NAME, PASSES
from irtool.torchscript import compile_source

OLD = """graph(%0 : Float(2, 3, 4)
      %1 : Float(2, 3, 4)) {
  %2 : Float(2, 3, 4) = aten::mul(%0, %1)
  %3 : Float(2, 3, 4) = aten::mul(%2, %0)
  %4 : Float(2, 3, 4) = aten::add[alpha={1}](%3, %1)
  return (%4);
}
"""
UNTYPED = """graph(%0 : Tensor, %1 : Tensor):
  %2 : Tensor = aten::mul(%0, %1)
  %3 : Tensor = aten::mul(%2, %0)
  %5 : int = prim::Constant[value=2]()
  %4 : Tensor = aten::add(%3, %1, %5)
  return (%4)
"""
BRANCH = """graph(%0 : Tensor, %1 : Tensor, %c : bool):
  %2 : Tensor = aten::mul(%0, %1)
  %3 : Tensor = prim::If(%c)
    block0():
      %5 : Tensor = aten::tanh(%2)
      %6 : Tensor = aten::mul(%5, %0)
      -> (%6)
    block1():
      %7 : Tensor = aten::sin(%1)
      -> (%7)
  %8 : Tensor = aten::mul(%3, %2)
  return (%8)
"""
BLOCKS = """graph(%a : Dynamic
      %b : Dynamic
      %c : Dynamic) {
  %2 : Dynamic = aten::add[alpha={1}](%a, %b)
  %4 : Dynamic = prim::If(%c)
    block0() {
      %5 : Dynamic = aten::add[alpha={1}](%2, %2)
      -> (%5)
    }
    block1() {
      %6 : Dynamic = aten::add[alpha={1}](%b, %2)
      %7 : Dynamic = aten::add[alpha={1}](%6, %2)
      -> (%7)
    }
  %8 : Dynamic = aten::add[alpha={1}](%4, %2)
  return (%8);
}
"""


def outcome(passes: str, text: str) -> tuple[bool, str]:
    """What a pipeline prints, or that it fails."""
    try:
        return True, str(PassManager(passes, verify=True).run(irtool.parse(text)))
    except irtool.Error as error:
        return False, error.message


@pytest.mark.parametrize("text", [OLD, UNTYPED, BRANCH], ids=["2018", "untyped", "branch"])
def test_two_passes_are_two_processes(text: str) -> None:
    names = [entry.name for entry in PASSES if not any(option.is_required for option in entry.options)]
    first = {name: outcome(name, text) for name in names}
    for a, b in itertools.product(names, names):
        if first[a][0]:
            assert outcome(f"{a},{b}", text) == outcome(b, first[a][1]), f"{a},{b}"


PAIRS = sorted({part[part.index("# graph "):]
                for path in Path(__file__).parent.glob("expect/**/*.ir")
                for part in re.split(r"^# (?:=====*|----)[^\n]*\n", path.read_text("utf-8"), flags=re.MULTILINE)
                if re.search(r"^# graph .* of=", part, re.MULTILINE) and "DifferentiableGraph" not in part
                and "expected-error" not in part})


@pytest.mark.parametrize("text", PAIRS, ids=range(len(PAIRS)))
def test_packed_pairs_come_back_byte_for_byte(text: str) -> None:
    module = irtool.parse(text)
    if pair_violations(module):
        pytest.skip("a case about a pair that does not fit")
    text = str(module)
    packed = str(PassManager("pack-gradient", verify=True).run(module))
    assert "of=" not in packed and "ReverseSubgraph=<Graph>](" in packed
    again = irtool.parse(packed)
    assert str(again) == packed
    assert str(PassManager("unpack-gradient", verify=True).run(again)) == text
    assert str(PassManager("unpack-gradient", verify=True).run(module)) == text


@pytest.mark.parametrize("count", [0, 1, 2, CHUNK // 3, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_index_lists_are_read_as_they_are_spelled(count: int) -> None:
    numbers = [i * 7919 % 100_003 for i in range(count)]
    text = spelled(numbers)
    assert text == f"[{', '.join(map(str, numbers))}]"
    assert list(numbers_in(text)) == list(numbers_in(text.replace(" ", ""))) == numbers


@pytest.mark.parametrize("wrong", ["", " ", "-1", "+1", "1_0", "1 0", "1.0", "[1]", "x", "\u0663", "9" * 10, "9" * 5000])
@pytest.mark.parametrize("place", [0, 1, *range(CHUNK // 3 - 3, CHUNK // 3 + 3), CHUNK - 1])
def test_other_text_is_no_index_list(wrong: str, place: int) -> None:
    """Wherever it is, also where one chunk ends and the next begins."""
    parts = ["1"] * CHUNK
    parts[place] = wrong
    for text in (f"[{', '.join(parts)}]", f"[{','.join(parts)}]", f"{', '.join(parts[:place])}]"):
        with pytest.raises(ValueError):
            numbers_in(text)


def test_a_packed_graph_runs_as_the_graph_before() -> None:
    inputs = [np.arange(6.0).reshape(2, 3), np.ones(3)]
    module = PassManager("differentiate,pack-gradient").run(irtool.parse(UNTYPED))
    for text in (UNTYPED, str(module), str(PassManager("inline-autodiff-subgraphs{threshold=100}").run(irtool.parse(str(module))))):
        (found,) = irtool.run(irtool.parse(text), inputs)
        np.testing.assert_array_equal(found, inputs[0] * inputs[0] + 2)


MUL_FORWARD = """
def mul_forward(self, other{annotation}):
    def backward(grad_output):
        grad_self = (grad_output * other).sum_to_size(self.size())
        grad_other = {other}
        return grad_self, grad_other

    return self * other, backward
"""


@pytest.mark.parametrize(("annotation", "gradient", "other"), [
    ("", "(grad_output * self).sum_to_size(other.size())", np.array([2.0, 3.0, 4.0])), (": number", "None", 2.5)], ids=["tensor", "number"])
def test_the_formula_of_pr_15411_runs_as_two_graphs(annotation: str, gradient: str, other: object) -> None:
    """The context is what `backward` names, in order of first use: (other, self)."""
    pair = closure_pairs(compile_source(MUL_FORWARD.format(annotation=annotation, other=gradient)))
    x = np.arange(6.0).reshape(2, 3)
    ((result, context),) = irtool.run(pair.graph("forward"), [x, other])
    np.testing.assert_array_equal(result, x * other)
    np.testing.assert_array_equal(context[0], other)
    np.testing.assert_array_equal(context[1], x)
    ((grad_self, grad_other),) = irtool.run(pair.graph("backward"), [context, np.ones((2, 3))])
    np.testing.assert_array_equal(grad_self, np.ones((2, 3)) * other)
    assert grad_other is None if annotation else grad_other.tolist() == x.sum(0).tolist()


def test_blocks_of_june_2018() -> None:
    graph = irtool.parse(BLOCKS).graph()
    choice = next(node for node in graph.block if node.kind == "prim::If")
    first, second = choice.blocks
    first.set_outputs(())
    for node in reversed(first):
        node.destroy()
    choice.blocks = (second,)
    assert str(graph) == BLOCKS.replace("""    block0() {
      %5 : Dynamic = aten::add[alpha={1}](%2, %2)
      -> (%5)
    }
    block1""", "    block0")
    copy = clone_graph(graph)
    copy.renumber()
    assert str(copy) == """graph(%a : Dynamic
      %b : Dynamic
      %c : Dynamic) {
  %0 : Dynamic = aten::add[alpha={1}](%a, %b)
  %1 : Dynamic = prim::If(%c)
    block0() {
      %2 : Dynamic = aten::add[alpha={1}](%b, %0)
      %3 : Dynamic = aten::add[alpha={1}](%2, %0)
      -> (%3)
    }
  %4 : Dynamic = aten::add[alpha={1}](%1, %0)
  return (%4);
}
"""


@pytest.mark.parametrize("text", [OLD, UNTYPED], ids=["2018", "untyped"])
def test_specialised_is_lowered(text: str) -> None:
    """For every subset of gradients that are there."""
    rng = np.random.default_rng(1)
    reverse = PassManager("differentiate").run(irtool.parse(text)).graph("df")
    reverse.metadata = {}
    plain = str(Module([reverse]))
    captured = [rng.standard_normal((2, 3, 4), np.float32) for _ in range(3)]
    sizes = [[2, 3, 4]] * (len(reverse.inputs) - 5)
    for there in itertools.product((0, 1), repeat=2):
        values = [rng.standard_normal((2, 3, 4), np.float32) if flag else None for flag in there] + captured + sizes
        flags = ",".join(map(str, [*there, *[1] * (len(values) - 2)]))
        special = irtool.run(PassManager(f"specialize-undef{{defined={flags}}}").run(irtool.parse(plain)), values)
        lowered = irtool.run(PassManager("lower-grad-of").run(irtool.parse(plain)), values)
        for one, other in zip(special, lowered, strict=True):
            assert (one is None) == (other is None) == (not any(there))
            if one is not None:
                np.testing.assert_array_equal(one, other)


def differences(module: Module, inputs: list[object], k: int) -> np.ndarray:
    """Central differences of the sum of the output for input k."""
    found = np.zeros_like(inputs[k])
    for place in np.ndindex(found.shape):
        sides = []
        for step in (1e-6, -1e-6):
            moved = [value.copy() if isinstance(value, np.ndarray) else value for value in inputs]
            moved[k][place] += step
            sides.append(irtool.run(module, moved)[0].sum())
        found[place] = (sides[0] - sides[1]) / 2e-6
    return found


@pytest.mark.parametrize(("text", "more"), [(UNTYPED, []), (BRANCH, [True]), (BRANCH, [False])], ids=["straight", "then", "else"])
def test_gradients_are_differences(text: str, more: list[object]) -> None:
    rng = np.random.default_rng(0)
    module = irtool.parse(text)
    inputs = [rng.standard_normal((2, 3)), rng.standard_normal(3), *more]
    found = irtool.vjp(module, inputs, [np.ones((2, 3))], [1, 0])
    np.testing.assert_allclose(found[0], differences(module, inputs, 1), rtol=1e-6)
    np.testing.assert_allclose(found[1], differences(module, inputs, 0), rtol=1e-6)


def test_a_gradient_is_none_where_none_can_reach_and_zeros_where_it_did_not() -> None:
    module = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::sin(%x)\n  %2 : Tensor = aten::cos(%x)\n"
                          "  return (%1, %2, %y)\n")
    found = irtool.vjp(module, [np.ones(2), np.ones(2)], [None, None, None], [0, 1])
    np.testing.assert_array_equal(found[0], np.zeros(2))
    unreached = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::sin(%x)\n  return (%1)\n")
    assert irtool.vjp(unreached, [np.ones(2), np.ones(2)], [np.ones(2)], [1]) == [None]


def test_the_gradient_of_a_gradient() -> None:
    """sin'' through the reverse graph of the reverse graph; it holds branches where gradients may be missing."""
    first = PassManager("differentiate").run(irtool.parse("graph(%x : Tensor):\n  %1 : Tensor = aten::sin(%x)\n  return (%1)\n"))
    alone = Module([first.graph("df")])
    alone.graph().metadata = {}
    text = str(PassManager("lower-grad-of").run(alone))
    assert PassManager("differentiate", verify=True).run(alone).names() == ["df", "ddf"]
    x, g = np.linspace(-1, 1, 5), np.full(5, 2.0)
    found = irtool.vjp(irtool.parse(text), [g, x], [np.ones(5)], [0, 1])
    np.testing.assert_allclose(found[0], np.cos(x))
    np.testing.assert_allclose(found[1], -2 * np.sin(x))


def test_a_pair_knows_what_does_not_fit() -> None:
    module = PassManager("differentiate").run(irtool.parse(OLD))
    (pair,) = pairs(module)
    assert (pair.real_outputs, pair.input_vjps, pair.output_vjps) == (1, [0, 1], [0, 1])
    assert (pair.captured_inputs, pair.captured_outputs) == ([0, 1], [1])
    assert pair.defined is None
    assert pair.assumed == [True, False, True, True, True]
    pair.df.metadata = {**pair.df.metadata, "df_output_vjps": "[0]"}
    assert "df_output_vjps names 1" in pair_violations(module)[0].message
    pair.df.metadata = {**pair.df.metadata, "of": "g"}
    assert "which is not in" in pair_violations(module)[0].message


def test_a_pair_is_edited_in_one_place() -> None:
    module = PassManager("differentiate").run(irtool.parse(OLD))
    (pair,) = pairs(module)
    pair.rename("g", "dg")
    assert irtool.parse(str(module)).names() == ["g", "dg"]
    pair.unlink()
    assert not list(pairs(irtool.parse(str(module))))
    assert isinstance(pair, GradientPair)


@pytest.mark.parametrize(("options", "message"), [
    ("{form=2017}", "expected 2018 or modern, not '2017'"),
    ("{wrt=2}", "wrt=2, graph 'graph' has 2 inputs"),
    ("{requires-grad=1}", "requires-grad has 1 flags, graph 'graph' has 2 inputs"),
    ("{requires-grad=some}", "expected all, types, or 0 and 1 for each input, not 'some'"),
    ("{wrt=-1}", "expected positions of inputs from 0 on, not '-1'"),
    ("{save=leats}", r"expected least, not 'leats' \(did you mean 'least'\?\)"),
])
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(irtool.PipelineError if "not '" in message else irtool.PassError, match=message):
        PassManager(f"differentiate{options}").run(irtool.parse(UNTYPED))


def test_wrong_options_of_a_call() -> None:
    for options, message in (({"form": "2017"}, "option 'form': expected 2018 or modern, not '2017'"),
                             ({"requires_grad": ("1", "x")}, "option 'requires-grad': expected all, types, or 0 and 1")):
        with pytest.raises(irtool.PassError, match=message):
            BY_NAME["differentiate"](irtool.parse(UNTYPED), **options)


def test_a_warning_when_nothing_counts() -> None:
    module = irtool.parse("graph(%x : Float(2, requires_grad=0, device=cpu)):\n  %1 : Tensor = aten::sin(%x)\n  return (%1)\n")
    PassManager("differentiate").run(module)
    assert "differentiate{requires-grad=all}" in module.warnings[0].message
    assert "return ()" in str(module.graph("df"))


def test_an_operator_without_a_gradient_is_an_error_at_its_line() -> None:
    with pytest.raises(irtool.UnsupportedError) as caught:
        PassManager("differentiate").run(irtool.parse("graph(%x : Tensor):\n  %1 : Tensor = my::op(%x)\n  return (%1)\n", "f.ir"))
    assert caught.value.diagnostics[0].line == 2


def test_a_graph_that_returns_a_tuple_has_a_gradient() -> None:
    module = irtool.parse("""graph(%x : Tensor, %y : Tensor):
  %2 : Tensor = aten::mul(%x, %y)
  %3 : (Tensor, Tensor) = prim::TupleConstruct(%2, %y)
  return (%3)
""")
    pair = irtool.PassManager("differentiate", verify=True).run(module)
    assert "prim::TupleUnpack(%0)" in str(pair)


@pytest.mark.parametrize(("text", "said"), [
    ("graph(%x : Dynamic\n      %y : Dynamic) {\n  %2 : Dynamic, %3 : Dynamic = add[alpha={2}](%x, %y)\n  return (%3);\n}\n",
     "add gives 1 result, found 2"),
    ("graph(%x : Tensor, %h : Tensor, %w : Tensor, %v : Tensor):\n  %1 : Tensor[] = prim::ListConstruct(%w, %v)\n"
     "  %2 : bool = my::flag()\n  %3 : int = prim::Constant[value=0]()\n  %4 : float = prim::Constant[value=0.]()\n"
     "  %5 : Tensor, %6 : Tensor = aten::gru(%x, %h, %1, %2, %3, %4, %2, %2, %2)\n  return (%5)\n", "gradients for a list of 2 tensors"),
])
def test_results_and_lists_that_do_not_fit_are_errors_of_the_text(text: str, said: str) -> None:
    with pytest.raises(irtool.Error, match=said):
        irtool.PassManager("differentiate").run(irtool.parse(text))


SEEN_SIZES = """graph(%x : Double(4, 6, strides=[6, 1], requires_grad=0, device=cpu),
      %y : Double(6, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=1]()
  %2 : int[] = prim::ListConstruct(%1)
  %3 : bool = prim::Constant[value=0]()
  %4 : NoneType = prim::Constant()
{body}
  return (%9)
"""
SEEN = {
    "sum": "  %9 : Double(4, strides=[1], requires_grad=0, device=cpu) = aten::sum(%x, %2, %3, %4)",
    "mean": "  %9 : Double(4, strides=[1], requires_grad=0, device=cpu) = aten::mean(%x, %2, %3, %4)",
    "select": "  %9 : Double(4, strides=[6], requires_grad=0, device=cpu) = aten::select(%x, %1, %1)",
    "matmul": "  %9 : Double(4, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::matmul(%x, %y)",
    "cumsum": "  %9 : Double(4, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::cumsum(%x, %1, %4)",
    "what is inside": """  %5 : Bool(4, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::gt(%x, %1)
  %6 : Tensor?[] = prim::ListConstruct(%5)
  %7 : Double(11, strides=[1], requires_grad=0, device=cpu) = aten::index(%x, %6)
  %8 : int = prim::Constant[value=0]()
  %9 : Double(11, strides=[1], requires_grad=0, device=cpu) = aten::cumsum(%7, %8, %4)""",
}


@pytest.mark.parametrize("body", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("rows", [4, 6, 1])
def test_gradients_do_not_believe_the_sizes_that_a_trace_saw(body: str, rows: int) -> None:
    """With interpret=True a gradient had the sizes of the trace, not of the input."""
    graph = irtool.parse(SEEN_SIZES.format(body=body)).graph()
    rng = np.random.default_rng(rows)
    x, y = rng.normal(size=(rows, 6)) + 1, rng.normal(size=(6, 3))
    result = irtool.run(graph, [x, y])[0]
    seed = rng.normal(size=result.shape)
    mine = [irtool.vjp(graph, [x, y], [seed], [0, 1], interpret=interpret) for interpret in (True, False)]
    assert mine[0][0].shape == x.shape
    for one, other in zip(*mine, strict=True):
        assert (one is None) == (other is None)
        np.testing.assert_allclose(one, other) if one is not None else None
    step = 1e-6 * rng.normal(size=x.shape)
    along = ((irtool.run(graph, [x + step, y])[0] - irtool.run(graph, [x - step, y])[0]) * seed).sum() / 2
    np.testing.assert_allclose((mine[0][0] * step).sum(), along, rtol=1e-4, atol=1e-12)
    assert irtool.gradcheck(graph, [x, y], order=1).is_right
