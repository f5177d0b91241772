"""Constants whose value is none of their type are refused by the verifier; what verifies still does after every pass."""
from __future__ import annotations

import itertools

import pytest

import irtool
from irtool.ir.verify import verify

TYPES = ("int", "float", "bool", "complex", "Scalar", "Tensor", "Float(2)", "str", "int[]", "float[]", "bool[]", "Tensor[]", "int?",
         "Tensor?", "Device", "(int, int)", "Dict(str, int)", "None", "(int, float, str, None)", "str[]", "Union(int, str)", "int[][]")
VALUES = ("1", "2.5", "1j", "true", '"x"', "None", "(1, 2)", "(1.5, 2)", "(1,)", '(1, 2.5, "x", None)', "[1, 2]", "[1., 2.]", '[1, "x"]',
          "[None]", "[1j]", "[inf]", '["a"]', "[]", "()", "{}", "[[1]]", "{1}", "{1, 2}", '{"a": 1}', "[{1}, {2}]", "[<Tensors>]", "inf",
          "1e30", "<Tensor>", "torch.float32", "Foo()", "0x10", "{1+2j}", "annotate(List[int], [])")
READERS = ("", "  %2 : Tensor = aten::mul(%x, %1)\n", "  %2 : (Tensor, TYPE) = prim::TupleConstruct(%x, %1)\n",
           "  %2 : TYPE[] = prim::ListConstruct(%1)\n")
PASSES = ("erase-number-types", "differentiate", "lower-tuples", "vmap", "constant-propagation", "canonicalize", "specialize-undef", "dce")
REFUSED = {
    ("int", "(1, 2)"): "a number", ("int", "None"): "a number", ("int", "1j"): "a whole number", ("int", "1e30"): "a whole number",
    ("Scalar", '"x"'): "a number", ("Scalar", "{1, 2}"): "a number", ("bool", "{}"): "a number", ("float", '{"a": 1}'): "a number",
    ("float", "1j"): "a number", ("Tensor", "None"): "a tensor", ("int[]", "[1., inf]"): "whole numbers", ("int[]", '[1, "x"]'): "numbers",
    ("Tensor[]", '["a"]'): "tensors", ("int[][]", "[1]"): "lists", ("str[]", "2"): "a list", ("(int, int)", "(1,)"): "a tuple of 2",
    ("(int, int)", "3"): "a tuple", ("(int, int)", "(1.5, 2)"): "a whole number", ("Dict(str, int)", "1"): "a dict",
    ("Dict(str, int)", '{"a": 1.5}'): "a whole number",
}


def text_of(type: str, value: str, reader: str) -> str:
    return (f"graph(%x : Float(2)):\n  %1 : {type} = prim::Constant{value and f'[value={value}]'}()\n{reader.replace('TYPE', type)}"
            f"  return (%{2 if reader else 1})\n")


@pytest.mark.parametrize("type, value", REFUSED)
def test_a_value_of_another_type_is_refused(type: str, value: str) -> None:
    with pytest.raises(irtool.VerifyError) as error:
        verify(irtool.parse(text_of(type, value, "")))
    assert f"a constant of type {type} needs {REFUSED[type, value]}, found '{value}'" in str(error.value).replace("NoneType", "None")


@pytest.mark.parametrize("type", TYPES)
def test_what_verifies_still_does_after_every_pass(type: str) -> None:
    count = 0
    for value, reader in itertools.product((*VALUES, ""), READERS):
        text = text_of(type, value, reader)
        try:
            verify(irtool.parse(text))
        except irtool.Error:
            continue
        for name in PASSES:
            count += 1
            try:
                irtool.PassManager(name, verify=True).run(irtool.parse(text))
            except irtool.UnsupportedError:
                pass
            except irtool.Error as error:
                assert "after pass" not in str(error) and not isinstance(error, irtool.VerifyError), text
    assert count
