"""Tensor constants beside the text: what the text rounds or leaves out comes back from the npz."""
from __future__ import annotations

import numpy as np
import pytest

from irtool.interop.constant_archives import attach, collect, missing
from irtool.interop.npz import Archive, decode, encode
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.errors import Error
from irtool.ir.module import Module
from irtool.ir.tensor_dump import literal_of
from irtool.text.dialect_conversion import convert
from irtool.text.parser import parse
from irtool.text.tidy import renumber

TEXT = """\
graph(%x : Tensor):
  %w : Float(3, 4) = prim::Constant[value=<Tensor>]()
  %5 : Double(2) = prim::Constant[value= 0.2598  0.3666 [ CPUDoubleType{2} ]]()
  %1 : Double() = prim::Constant[value={0.333333}]()
  %2 : Tensor = prim::FusionGroup_0[device=0](%x)
  return (%w, %5, %1, %2)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %w : Long(11) = prim::Constant[value=<Tensor>]()
  return (%w)
"""

ARRAYS = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "5": np.array([0.25981234567, 0.36661234567]),
    "1": np.array(1 / 3),
    "2/w": np.arange(11),
}


def test_print_and_parse_lose_nothing() -> None:
    module = parse(TEXT)
    assert missing(module) == ["w", "2/w"]
    assert attach(module, Archive(ARRAYS)) == [] and missing(module) == []
    for graph in module.graphs:
        renumber(graph)
    convert(module, "D")
    again = parse(str(module))
    assert attach(again, decode(encode(collect(module)), "constants.npz")) == []
    arrays = collect(again).arrays
    for key, name in {"w": "w", "5": "0", "1": "1", "2/w": "2/w"}.items():
        np.testing.assert_array_equal(arrays[name], ARRAYS[key])


def test_an_array_is_used_in_place_of_the_text() -> None:
    module = parse(TEXT)
    attach(module, Archive(ARRAYS))
    literal = module.graphs[0].nodes[2].attributes["value"].value
    assert isinstance(literal, TensorLiteral) and literal.item() == 1 / 3


def test_a_computed_constant_carries_its_array() -> None:
    array = np.array([[1 / 3, 2.0]])
    literal = literal_of(array.ravel().tolist(), array.shape, "float64", array)
    module = parse("graph():\n  %0 : Double(1, 2) = prim::Constant[value={1}]()\n  return (%0)\n")
    module.graphs[0].nodes[0].set_attribute("value", Attribute(literal.text, literal))
    assert "value= 0.3333  2.0000 [ CPUDoubleType{1,2} ]" in str(module)
    np.testing.assert_array_equal(collect(module).arrays["0"], array)


@pytest.mark.parametrize("array", [np.zeros((3, 4)), np.zeros((4, 3), np.float32), np.zeros(12, np.float32)])
def test_an_array_that_is_not_what_the_text_declares_is_an_error_at_its_line(array: np.ndarray) -> None:
    with pytest.raises(Error, match="<string>:2.*constant 'w': expected Float"):
        attach(parse(TEXT), Archive({"w": array}))


def test_keys_that_nothing_asks_for_are_told() -> None:
    assert attach(Module(), Archive({"v": np.zeros(1)})) == ["v"]
