"""gradcheck finds right gradients right, wrong ones wrong, and says where it cannot tell."""
from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.testing import finite_differences as library
from irtool.testing.derivatives import derivative, widened


def graph_of(header: str, *lines: str, results: str) -> str:
    return f"graph({header}):\n" + "".join(f"  {line}\n" for line in lines) + f"  return ({results})\n"


CONSTANTS = ("%none : NoneType = prim::Constant()", "%zero : int = prim::Constant[value=0]()", "%one : int = prim::Constant[value=1]()",
             "%yes : bool = prim::Constant[value=1]()", "%tenth : float = prim::Constant[value=0.1]()")
GRAPHS = {
    "mul": graph_of("%x : Float(2, 3), %y : Float(3)", "%2 : Tensor = aten::mul(%x, %y)", results="%2"),
    "softmax": graph_of("%x : Float(2, 3)", *CONSTANTS, "%2 : Tensor = aten::softmax(%x, %one, %none)", results="%2"),
    "conv2d": graph_of("%x : Float(2, 2, 4, 4), %w : Float(3, 2, 3, 3), %b : Float(3)", *CONSTANTS,
                       "%ones : int[] = prim::ListConstruct(%one, %one)",
                       "%2 : Tensor = aten::conv2d(%x, %w, %b, %ones, %ones, %ones, %one)", "%3 : Tensor = aten::tanh(%2)", results="%3"),
    "batch_norm": graph_of("%x : Float(4, 2, 3), %g : Float(2), %b : Float(2)", *CONSTANTS,
                           "%2 : Tensor = aten::batch_norm(%x, %g, %b, %none, %none, %yes, %tenth, %tenth, %yes)", results="%2"),
    "two outputs": graph_of("%x : Float(2, 3), %n : int", "%2 : Tensor = aten::exp(%x)", "%3 : Tensor = aten::mul(%2, %n)",
                            results="%2, %n, %3"),
    "branch": graph_of("%x : Float(3), %c : bool", "%2 : Tensor = aten::sin(%x)", "%3 : Tensor = prim::If(%c)", "  block0():",
                       "    %4 : Tensor = aten::mul(%2, %x)", "    -> (%4)", "  block1():",
                       "    %5 : Tensor = aten::exp(%2)", "    -> (%5)", results="%3"),
    "dtype": graph_of("%x : Float(3)", "%six : int = prim::Constant[value=6]()", "%2 : Tensor = aten::sum(%x, %six)",
                      "%3 : Tensor = aten::mul(%2, %2)", results="%3"),
    "2018": "graph(%0 : Float(2, 3)\n      %1 : Float(3)) {\n  %2 : Float(2, 3) = aten::add[alpha={3}](%0, %1)\n"
            "  %3 : Float(2, 3) = aten::mul(%2, %0)\n  return (%3);\n}\n",
}


LIST = graph_of("%l : Tensor[]", *CONSTANTS, "%2 : Tensor = aten::cat(%l, %zero)", "%3 : Tensor = aten::mul(%2, %2)", results="%3")


def values_of(graph: irtool.Graph) -> list[Any]:
    """Random inputs by type."""
    random = np.random.default_rng(3)
    given: dict[str, Any] = {"int": 2, "bool": True, "Tensor[]": [random.standard_normal((2, 2)), random.standard_normal((1, 2))]}
    out: list[Any] = []
    for value in graph.inputs:
        if str(value.type) in given:
            out.append(given[str(value.type)])
        else:
            sizes = str(value.type).partition("(")[2].rstrip(")")
            out.append(random.standard_normal(tuple(int(size) for size in sizes.split(",") if size)).astype(np.float32))
    return out


@pytest.mark.parametrize("name", GRAPHS)
def test_right_gradients_are_right(name: str) -> None:
    graph = irtool.parse(GRAPHS[name]).graph()
    before = str(graph)
    report = irtool.gradcheck(graph, values_of(graph))
    assert report.is_right, str(report)
    assert {row.order for row in report.rows} == {1, 2} and all(row.state == "agrees" for row in report.rows)
    assert str(graph) == before
    assert report.worst in report.rows


def test_lists_of_tensors() -> None:
    graph = irtool.parse(LIST).graph()
    assert irtool.gradcheck(graph, values_of(graph), order=1).is_right
    again = irtool.gradcheck(graph, values_of(graph))
    assert again.is_right or 2 in again.unsupported


def test_lists_that_grow_in_a_loop_are_right_or_refused() -> None:
    text = graph_of("%x : Float(2)", *CONSTANTS, "%l : Tensor[] = prim::ListConstruct()", " = prim::Loop(%one, %yes)",
                    "  block0(%i : int):", "    %2 : Tensor = aten::exp(%x)", "    %3 : Tensor[] = aten::append(%l, %2)", "    -> (%yes)",
                    "%4 : Tensor = aten::cat(%l, %zero)", results="%4")
    report = irtool.gradcheck(irtool.parse(text), [np.float64([1, 2])], order=1)
    assert report.is_right or "a list that changes" in report.unsupported[1]


def test_orders_beyond_the_second() -> None:
    graph = irtool.parse(GRAPHS["softmax"])
    report = irtool.gradcheck(graph, [np.float64([[1, 2, 3], [0, -1, 1]])], order=3, directions=1)
    assert report.is_right and {row.order for row in report.rows} == {1, 2, 3}


def test_single_operators_are_compared_with_their_formula() -> None:
    graph = irtool.parse(GRAPHS["softmax"]).graph()
    assert irtool.gradcheck(graph, values_of(graph), order=1).eager == {"aten::softmax.int": ""}
    graph = irtool.parse(GRAPHS["branch"]).graph()
    assert irtool.gradcheck(graph, values_of(graph), order=1).eager == {}


@pytest.mark.parametrize("kind", ["mul_", "div_", "pow_", "atan2_", "hypot_", "xlogy_", "copysign_", "ldexp_", "logical_and_"])
def test_the_formula_of_a_write_sees_what_was_there(kind: str) -> None:
    """The node has written into its operand by the time the formula is asked."""
    graph = irtool.parse(graph_of("%x : Double(2), %y : Double(2)", f"%1 : Tensor = aten::{kind}(%x, %y)", results="%1"))
    report = irtool.gradcheck(graph, [np.array([0.5, 1.5]), np.array([1.25, 0.75])], order=1)
    assert report.is_right and not any(report.eager.values())


def test_a_wrong_compiled_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradients are doubled where the check takes them: the differences and the formula as Python both tell."""
    class Doubled(library.Differentiated):
        def gradients(self, *args: Any) -> list[Any]:
            return [2 * gradient for gradient in super().gradients(*args)]

    monkeypatch.setattr(library, "Differentiated", Doubled)
    graph = irtool.parse(GRAPHS["mul"]).graph()
    report = irtool.gradcheck(graph, values_of(graph), order=1)
    assert not report.is_right and all(row.state == "differs" for row in report.rows)
    assert "differs from the compiled one" in report.eager["aten::mul.Tensor"]
    assert "order 1: 0 of 4 derivatives agree" in str(report) and report.worst is not None and str(report.worst) in str(report)


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("factor", [10.0, 1e3, 1e4, 1e5])
def test_functions_that_oscillate_within_a_step(factor: float, is_right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller steps tell; a wrong gradient stays wrong."""
    class Off(library.Differentiated):
        def gradients(self, *args: Any) -> list[Any]:
            return [gradient if is_right else 1.01 * gradient for gradient in super().gradients(*args)]

    monkeypatch.setattr(library, "Differentiated", Off)
    monkeypatch.setattr(library.Check, "compare_tape", lambda self: "")
    text = graph_of("%x : Double(3)", f"%k : float = prim::Constant[value={factor}]()", "%1 : Tensor = aten::mul(%x, %k)",
                    "%2 : Tensor = aten::sin(%1)", results="%2")
    for seed in range(8):
        report = irtool.gradcheck(irtool.parse(text), [np.random.default_rng(seed).standard_normal(3)], order=1, seed=seed)
        assert report.is_right == is_right, str(report)


def test_a_wrong_formula_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "run_formula", lambda name, args: ([], lambda grad: [grad, grad]))
    graph = irtool.parse(GRAPHS["mul"]).graph()
    report = irtool.gradcheck(graph, values_of(graph), order=1)
    assert not report.is_right and report.worst is not None and report.worst.state == "agrees"


def test_kinks_are_told_apart() -> None:
    graph = irtool.parse(graph_of("%x : Float(2)", "%1 : Tensor = aten::abs(%x)", results="%1"))
    report = irtool.gradcheck(graph, [np.zeros(2)], order=1)
    assert report.is_right and {row.state for row in report.rows} == {"kink"} and report.worst is None
    report = irtool.gradcheck(graph, [np.ones(2)], order=1)
    assert {row.state for row in report.rows} == {"agrees"}


def test_numbers_that_are_not_finite() -> None:
    graph = irtool.parse(graph_of("%x : Float(2)", "%1 : Tensor = aten::log(%x)", results="%1"))
    report = irtool.gradcheck(graph, [np.zeros(2)], order=1)
    assert {row.state for row in report.rows} == {"not finite"} and "2 not finite" in str(report) and not report.is_right


def test_what_cannot_be_checked() -> None:
    graph = irtool.parse(graph_of("%x : Float(2)", "%1 : Tensor = ^Nothing()(%x)", results="%1"))
    irtool.register_python_op("Nothing", lambda x: x)
    report = irtool.gradcheck(graph, [np.zeros(2)])
    assert not report.is_right and "Nothing" in report.unsupported[1] and str(report).startswith("order 1: ")
    with pytest.raises(irtool.RunError, match=r"expected 1 inputs \(%x : Float\(2\)\), got 0"):
        irtool.gradcheck(graph, [])
    with pytest.raises(irtool.RunError, match="nothing to differentiate"):
        irtool.gradcheck(irtool.parse("graph(%n : int):\n  return (%n)\n"), [1])
    with pytest.raises(irtool.RunError, match="no output is"):
        irtool.gradcheck(irtool.parse("graph(%x : Float(), %n : int):\n  return (%n)\n"), [np.float32(1), 1])


def test_the_graph_of_gradients_is_a_graph() -> None:
    graph = irtool.parse(GRAPHS["two outputs"]).graph()
    made, taken = derivative(graph, [0])
    irtool.verify(made)
    assert taken == [0, 2] and len(made.inputs) == 4
    x, a, b = np.float32([[1, 2, 3]]), np.float32([[1, 1, 1]]), np.float32([[0, 1, 0]])
    expected = irtool.vjp(graph, [x, 2], [a, None, b], [0])
    assert np.array_equal(irtool.run(made, [x, 2, a, b])[0], expected[0])


def test_everything_is_of_double_precision() -> None:
    made = widened(irtool.parse(GRAPHS["dtype"]).graph())
    irtool.verify(made)
    assert irtool.run(made, [np.float64([1, 2, 3])])[0].dtype == np.float64
    assert "Float" not in str(made)


def command(*words: str, text: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["gradcheck", "-", *words], stdin=io.BytesIO(text.encode()), stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


def test_the_command() -> None:
    words = ["--input", "x=2x3xf32=randn", "--input", "y=3xf32=randn", "--seed=4"]
    code, out, err = command(*words, text=GRAPHS["mul"])
    lines = out.split("\n")
    assert (code, err) == (0, "") and lines[0] == "order 1: 4 of 4 derivatives agree" and lines[1].startswith("  worst: %")
    assert lines[2] == lines[5] == "  a tape gives the same gradients"
    assert lines[3].startswith("order 2: ") and lines[6:] == ["aten::mul.Tensor: the formula as Python gives the same bits", ""]
    assert command(*words, text=GRAPHS["mul"])[1] == out
    code, out, err = command(*words, "--wrt=1", "--order=1", "--directions=3", "--json", text=GRAPHS["mul"])
    found = json.loads(out)
    assert found["is_right"] and [row["name"] for row in found["rows"]] == ["y"] * 3 and 0 <= found["worst"] < 3
    assert found["eager"] == [{"op": "aten::mul.Tensor", "is_equal": True, "reason": None}]
    assert command(*words, "--wrt=2", text=GRAPHS["mul"])[0] == 2
    assert command(*words, "--order=0", text=GRAPHS["mul"])[0] == 2
