"""The line `# tensors:` above a graph: what torch's text of constants rounds or leaves out is read back, bit for bit."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.checking.graph_diff import compare_graphs
from irtool.ir.errors import Error

TEXT = """\
# {name}
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %three : int = prim::Constant[value=3]()
  %one : int = prim::Constant[value=1]()
  %sizes : int[] = prim::ListConstruct({sizes})
  %ones : Tensor = aten::ones(%sizes, %none, %none, %none, %none)
  %thirds : Tensor = aten::div(%ones, %three)
  %ranges : Tensor = aten::arange({sizes}, %none, %none, %none, %none)
  %roots : Tensor = aten::sqrt(%thirds)
  %y : Tensor = aten::add(%x, %roots, %one)
  return (%y, %thirds)
""".replace("  %ranges : Tensor = aten::arange({sizes}, %none, %none, %none, %none)\n", "")


def folded(sizes: str) -> tuple[irtool.Module, irtool.Module]:
    """A graph, and the same with its constants computed."""
    text = TEXT.replace("{sizes}", sizes).replace("{name}", "a comment")
    return irtool.parse(text), irtool.PassManager("constant-propagation").run(irtool.parse(text))


@pytest.mark.parametrize("sizes", ["", "%one", "%three", "%three, %three", "%three, %one, %three", "%three, %three, %three"])
def test_a_text_is_complete(sizes: str) -> None:
    before, after = folded(sizes)
    text = str(after)
    again = irtool.parse(text)
    assert text.startswith("# a comment\n# tensors: ") and str(again) == text
    assert [node.kind for node in again.graphs[0].walk()] == ["prim::Constant"] * 3 + ["aten::add"]
    x = [np.float32([1, 2, 3])]
    want = irtool.run(before, x, interpret=True)
    for module in (after, again):
        for interpret in (True, False, False):
            for mine, other in zip(irtool.run(module, x, interpret=interpret), want, strict=True):
                np.testing.assert_array_equal(mine, other, strict=True)


def test_results_of_a_run_are_not_the_constants() -> None:
    module = folded("%three")[1]
    for _ in range(4):
        result = irtool.run(module, [np.float32([1])])[1]
        assert result[0] == np.float32(1) / np.float32(3)
        result[:] = 7


def test_a_large_tensor_is_not_computed_ahead() -> None:
    after = folded(", ".join(["%three"] * 5))[1]
    assert "aten::ones" in str(after) and "# tensors" not in str(after)


@pytest.mark.parametrize("old, new", [("thirds=", "others="), ("float32[3]", "float32[4]"), ("float32[3]", "floaty[3]"),
                                      ("float32[3]", "float64[3]"), (" thirds", " roots=int64[]:AAAAAAAAAAA= thirds")])
def test_a_line_that_is_wrong_is_an_error(old: str, new: str) -> None:
    text = str(folded("%three")[1])
    assert old in text
    with pytest.raises(Error) as raised:
        irtool.parse(text.replace(old, new, 1))
    assert "<string>:2:" in str(raised.value) and "E0706" in str(raised.value)


def test_a_diff_sees_bits_that_a_text_rounds() -> None:
    one = str(folded("%three")[1])
    other = one.replace("thirds=float32[3]:q6qq", "thirds=float32[3]:rKqq")
    graphs = [irtool.parse(text).graph() for text in (one, one, other)]
    assert one != other and compare_graphs(graphs[0], graphs[1]).is_equal
    assert "0.33333337" in "".join(compare_graphs(graphs[0], graphs[2]).lines)
