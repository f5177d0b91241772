"""Texts of 2017 and 2018 that print otherwise than any since: groups of results, lists of uses, Python operators, constants in place."""
from __future__ import annotations

import io

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.ops.python_op import scalars_of

GROUPS = """graph(%1, %2, %41) {
  %18 = ^Chunk(4, 1)(%41), uses = [%18.0.i0, %18.1.i0, %18.3.i0];
  %30 = fusion_group_0(%18.0, %18.1, %18.3), uses = [%30.0.i0];
  return (%30.0);
}
with fusion_group_0 = graph(%5, %8, %9) {
  %6 = Add(%5, %8), uses = [%4.i0];
  %4 = Mul(%6, %9), uses = [%0.i0];
  return (%4);
}
"""


def command(words: list[str], text: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(words, io.BytesIO(text.encode()), out, err), out.getvalue(), err.getvalue()


def test_a_group_has_as_many_results_as_are_read() -> None:
    module = irtool.parse(GROUPS)
    assert str(module) == GROUPS
    assert not module.warnings
    chunk = module.graph().nodes[0]
    assert [value.name for value in chunk.outputs] == ["18.0", "18.1", "18.2", "18.3"]


def test_a_group_runs_and_converts() -> None:
    irtool.register_python_op("Chunk", lambda pieces, dim, x: tuple(np.split(x, pieces, dim)))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    expected = (x[:, :1] + x[:, 1:2]) * x[:, 3:]
    assert np.array_equal(irtool.run(irtool.parse(GROUPS), [x, x, x])[0], expected)
    code, out, _ = command(["fmt", "--syntax=2.13", "-"], GROUPS)
    assert code == 0
    assert "%18.0 : Tensor, %18.1 : Tensor, %18.2 : Tensor, %18.3 : Tensor = ^Chunk(4, 1)(%41)\n" in out
    assert "= prim::FusionGroup_0(%18.0, %18.1, %18.3)" in out


def test_what_a_pass_writes_keeps_the_brackets_of_the_file() -> None:
    text = GROUPS.replace("  return (%30.0)", "  %7 = tanh(%30.0), uses = [];\n  return (%30.0)")
    code, out, _ = command(["opt", "-q", "--passes=dce", "-"], text)
    assert code == 0
    assert out == GROUPS
    typed = ("graph(%1 : Double(2)) {\n  %2 : Double(2) = tanh(%1), uses = [%3.i0];\n  %3 : Double(2) = tanh(%2), uses = [%0.i0];\n"
             "  %4 : Double(2) = tanh(%3), uses = [];\n  return (%3);\n}\n")
    code, out, _ = command(["opt", "-q", "--passes=dce", "-"], typed)
    assert (code, out) == (0, typed.replace("  %4 : Double(2) = tanh(%3), uses = [];\n", ""))


@pytest.mark.parametrize(("uses", "expected"), [
    ("%9.i7", "the list of uses is not so: expected %3.i0"),
    ("%3.i1", "the list of uses is not so: expected %3.i0"),
    ("%2.i0", "the list of uses is not so: expected %3.i0"),
    ("", "the list of uses is not so: expected %3.i0"),
    ("%3.i0, %3.i0", "the list of uses is not so: expected %3.i0"),
    ("%0.i0", "the list of uses is not so: expected %3.i0"),        # that is the use of %3
    ("%3.i0", ""),
    ("%8.i0", ""),          # a node has a number of its own
])
def test_lists_of_uses_are_checked(uses: str, expected: str) -> None:
    text = f"graph(%1) {{\n  %2 = tanh(%1), uses = [{uses}];\n  %3 = tanh(%2), uses = [%0.i0];\n  return (%3);\n}}\n"
    assert [(each.line, each.message) for each in irtool.parse(text).warnings] == [(2, expected)] * bool(expected)
    assert (f"2: warning: {expected} [W0101]" in command(["opt", "-q", "-"], text)[2]) == bool(expected) or not expected


def test_an_operand_is_the_use_of_one_value() -> None:
    text = ("graph(%1) {\n  %2 = tanh(%1), uses = [%9.i0];\n  %3 = tanh(%2), uses = [%9.i0];\n  %4 = tanh(%3), uses = [%0.i0];\n"
            "  return (%4);\n}\n")
    said = [(each.line, each.message.partition(": ")[2]) for each in irtool.parse(text).warnings]
    assert said == [(2, "expected %3.i0"), (3, "expected %4.i0")]
    assert not irtool.parse(text.replace("%9.i0];\n  %4", "%8.i0];\n  %4")).warnings


@pytest.mark.parametrize("scalars", ["0.2, True, False", "0.2,True", "0.2,", "(1, 2), True", "'a', 2"])
def test_scalars_between_commas_are_refused(scalars: str) -> None:
    """They were read as the words `0.2,` and `True,`."""
    with pytest.raises(irtool.ParseError, match="separated by blanks"):
        irtool.parse(f"graph(%1) {{\n  %2 = Dropout {scalars}(%1), uses = [%0.i0];\n  return (%2);\n}}\n")


@pytest.mark.parametrize("scalars", ["0.2 True False", "(1, 2) True", "[1, 2]", "'a, b' 2", ""])
def test_scalars_between_blanks_are_read(scalars: str) -> None:
    text = f"graph(%1) {{\n  %2 = Dropout {scalars}(%1), uses = [%0.i0];\n  return (%2);\n}}\n".replace("Dropout (%1)", "Dropout(%1)")
    assert str(irtool.parse(text)) == text


@pytest.mark.parametrize(("text", "expected"), [
    ("3, hi", [3, "hi"]),
    ("3, its, (1, hi)", [3, "its", (1, "hi")]),
    ("'a, b', 2", ["a, b", 2]),
    ("inf, -inf, None, True", [float("inf"), float("-inf"), None, True]),
    ("((10, 9216))", [(10, 9216)]),
    ("torch.float32, 1_0, 007", ["torch.float32", "1_0", "007"]),
    ("a b, [x, 2]", ["a b", ["x", 2]]),
    ("(1,)", [(1,)]),
    ("", []),
])
def test_scalars_of_python_operators(text: str, expected: list[object]) -> None:
    assert scalars_of(text) == expected


@pytest.mark.parametrize("text", ["<object at 0x1>", "it's", "((((", "1, (2", ")", "a, <function f>"])
def test_scalars_that_no_text_holds(text: str) -> None:
    with pytest.raises(irtool.Error, match="Python op"):
        scalars_of(text)


def test_python_operators_of_2017() -> None:
    irtool.register_python_op("Scaled", lambda factor, is_on, dims, x: x * factor if is_on and dims == (1, 2) else x)
    text = "graph(%1) {\n  %3 = Scaled 0.2 True (1, 2)(%1);\n  return (%3);\n}\n"
    assert str(irtool.parse(text)) == text
    x = np.float32([2])
    assert irtool.run(irtool.parse(text), [x])[0] == np.float32(0.4)
    code, out, _ = command(["fmt", "--syntax=2.13", "-"], text)
    assert code == 0
    assert "^Scaled(0.2, True, (1, 2))(%1)" in out
    assert irtool.run(irtool.parse(out), [x])[0] == np.float32(0.4)


def test_dimensions_of_transpose_are_not_ignored() -> None:
    text = "graph(%1) {\n  %3 = Transpose 0 1(%1), uses = [%0.i0];\n  return (%3);\n}\n"
    assert irtool.run(irtool.parse(text), [np.ones((2, 3, 4), np.float32)])[0].shape == (3, 2, 4)


def test_an_operator_of_2017_that_nobody_registered() -> None:
    text = "graph(%1) {\n  %3 = Unheard 0 1(%1), uses = [%0.i0];\n  return (%3);\n}\n"
    with pytest.raises(irtool.Error, match="no Python op registered as 'Unheard'"):
        irtool.run(irtool.parse(text), [np.ones(2, np.float32)])


def test_let_and_in() -> None:
    text = "graph %0 %1\n  let\n    %14 = Embedding %11, %0, -1, None\n  in %14\n"
    code, _, err = command(["fmt", "-"], text)
    assert code == 1
    assert "<stdin>:2:3: error: a listing with 'let' and 'in'" in err


def test_a_listing_converts() -> None:
    text = "%20 = Conv 1 1 %0, %1\n%21 = Relu %20\nRet %21\n"
    code, out, _ = command(["fmt", "--syntax=2.13", "-"], text)
    assert code == 0
    assert "  %20 : Tensor = ^Conv(1, 1)(%0, %1)\n" in out


@pytest.mark.parametrize(("first", "second"), [("'a\n\tb\n'", "'aa'"), ("a\n\tb\n", "aa")])
def test_prints_with_strings_in_place(first: str, second: str) -> None:
    text = (f"graph(%a : Dynamic) {{\n   = prim::Print(%a, {first}, 2, {second})\n  %3 : int = aten::add(7, 8)\n  return (%3);\n}}\n")
    module = irtool.parse(text)
    assert str(module) == text
    strings = [node.attributes["value"].value for node in module.graph().nodes if node.kind == "prim::Constant"]
    assert strings == ["a\n\tb\n", 2, "aa", 7, 8]
    code, out, _ = command(["fmt", "--syntax=2.13", "-"], text)
    assert code == 0
    assert 'prim::Constant[value="a\\n\\tb\\n"]()' in out
    assert 'prim::Constant[value="aa"]()' in out
    named = command(["opt", "-q", "--passes=canonicalize", "-"], text)[1]
    again = [node.attributes["value"].value for node in irtool.parse(named).graph().nodes if node.kind == "prim::Constant"]
    assert again == strings


@pytest.mark.parametrize("dialect", ["A0", "A1", "A2", "B1", "C1"])
def test_comments_behind_lists_of_uses_are_read_again(dialect: str) -> None:
    source = "def f(x: Tensor):\n    y = x + 1\n    z = y.t() * x\n    y = z - y.t()\n    return y * z\n"
    code, text, _ = command(["fmt", "--syntax", dialect], str(irtool.from_script(source)))
    assert code == 0 and text.count(" # ") > 5
    assert command(["fmt"], text) == (0, text, "")
    x = np.arange(4.0).reshape(2, 2)
    assert irtool.run(irtool.parse(text), [x])[0].tolist() == irtool.run(irtool.from_script(source), [x])[0].tolist()
