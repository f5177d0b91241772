"""Defaults of a compiled function's parameters: they stay with its graph, in text too, and every way to run uses them."""
from __future__ import annotations

import io

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.defaults import defaults_of

SOURCE = '''
def f(x, n: int = 3, scale: float = 2, word: str = "a]b c", dtype: int = torch.float64, pair: Tuple[int, float] = (1, 2),
      sizes: Optional[List[int]] = None, most: float = float("inf")):
    return (x * n * scale * pair[1] + len(word)).clamp(max=most).to(dtype)
'''


def test_defaults_stay_in_the_text() -> None:
    module = irtool.from_script(SOURCE)
    again = irtool.parse(str(module))
    assert str(again) == str(module)
    assert defaults_of(again.graph()) == {"n.1": 3, "scale.1": 2, "word.1": "a]b c", "dtype.1": 7, "pair.1": (1, 2), "sizes.1": None,
                                          "most.1": np.inf}


def test_every_way_to_run_uses_them() -> None:
    module, x = irtool.parse(str(irtool.from_script(SOURCE))), np.float32([1, 2])
    for given, wanted in (([x], [17.0, 29.0]), ([x, 1], [9.0, 13.0]), ([x, 1, 0.5], [6.0, 7.0])):
        for _ in range(3):
            assert irtool.run(module, given)[0].tolist() == wanted
        assert irtool.run(module, given, interpret=True)[0].tolist() == wanted
        assert irtool.compile(module)(*given)[0].tolist() == wanted
    assert irtool.vjp(module, [x], [np.ones(2)], [0])[0].tolist() == [12.0, 12.0]
    assert irtool.compile(module).vjp([x], [np.ones(2)], [0])[0].tolist() == [12.0, 12.0]
    assert irtool.grad(irtool.from_script("def f(x, n: int = 3):\n    return (x * n).sum()\n"))(np.ones(2)).tolist() == [3.0, 3.0]


def test_input_without_one_is_still_due() -> None:
    module = irtool.from_script("def f(n: int, m: int = 1):\n    return n + m\n")
    with pytest.raises(irtool.RunError, match="expected 2 inputs"):
        irtool.run(module, [])


def test_line_that_is_none_is_an_error() -> None:
    module = irtool.parse('# graph f: defaults=[3]\ngraph(%n.1 : int):\n  return (%n.1)\n')
    with pytest.raises(irtool.Error, match="expected defaults="):
        irtool.run(module, [])


@pytest.mark.parametrize("parameter, part", [
    ("x: int = 1.5", 'Expected a default value of type int on parameter "x"'), ("x: int = None", "Expected a default value of type int"),
    ("x: str = 1", "Expected a default value of type str"), ("x: List[int] = [1]", "Mutable default parameters are not supported"),
    ("x = 1", "Because \"x\" was not annotated with an explicit type it is assumed to be type 'Tensor'"),
    ("x: Tuple[int, int] = (1, 'a')", "Expected a default value of type Tuple[int, int]"),
])
def test_default_that_does_not_fit_is_refused(parameter: str, part: str) -> None:
    with pytest.raises(irtool.ParseError) as caught:
        irtool.from_script(f"def f({parameter}):\n    return x\n")
    assert part in caught.value.diagnostics[0].message


@pytest.mark.parametrize("words", (["opt", "--passes=canonicalize"], ["fmt", "--renumber"]), ids=str)
def test_defaults_follow_the_names_of_inputs(words: list[str]) -> None:
    text = '# graph f: defaults=["7", 3, "n", 2]\ngraph(%x : Tensor, %7 : int, %n : int):\n  %9 : Tensor = aten::mul(%x, %7)\n' \
           "  %10 : Tensor = aten::mul(%9, %n)\n  return (%10)\n"
    out = io.StringIO()
    assert main([*words, "-"], io.BytesIO(text.encode()), out, io.StringIO()) == 0
    module = irtool.parse(out.getvalue())
    assert module.graph().inputs[1].name != "7" and irtool.run(module, [np.float32([1, 5])])[0].tolist() == [6, 30]


def test_what_is_transformed_has_its_defaults() -> None:
    text = '# graph f: defaults=["n", 3]\ngraph(%x : Tensor, %n : int):\n  %1 : Tensor = aten::mul(%x, %n)\n  return (%1)\n'
    for words in (["transform", "-", "vmap(in_dims=(0, None))", "-i", "x=2xf64=1"], ["vmap", "-", "-i", "x=2xf64=1"]):
        out, err = io.StringIO(), io.StringIO()
        main(words, io.BytesIO(text.encode()), out, err)
        assert "value=3" in out.getvalue(), err.getvalue()


@pytest.mark.parametrize("parameter, wanted", [
    ("a: float = -1", -1.0), ("a: float = 3", 3.0), ("a: float = True", 1.0), ("a: float = -2 * 3", -6.0),
    ("a: Optional[float] = -3", -3.0), ("a: Optional[float] = None", None), ("a: complex = -2", -2 + 0j), ("a: complex = 1.5", 1.5 + 0j),
    ("a: bool = 0.5", True), ("a: int = True", 1),
    ("a: Tuple[float, int] = (-1, 2)", (-1.0, 2)), ("a: Optional[Tuple[float, float]] = (1, 2.5)", (1.0, 2.5)),
    ("a: Union[int, str] = -1", -1), ("a: Any = -1", -1),
])
def test_numbers_have_the_type_of_the_parameter(parameter: str, wanted: object) -> None:
    module = irtool.from_script(f"def g(x: int, {parameter}):\n    return a\n\ndef f(x: int):\n    return g(x)\n", "f")
    for interpret in (True, False):
        (found,) = irtool.run(module, [1], interpret=interpret)
        assert repr(found) == repr(wanted)


@pytest.mark.parametrize("type, default", [("Union[float, str]", "-1"), ("Union[int, str]", "True"), ("Union[bool, str]", "1")])
def test_unions_convert_no_numbers(type: str, default: str) -> None:
    with pytest.raises(irtool.ParseError, match="Expected a default value of type Union"):
        irtool.from_script(f"def f(x: int, a: {type} = {default}):\n    return a\n")


@pytest.mark.parametrize("type, default", [("float", "3"), ("float", "-3"), ("Optional[float]", "2")])
def test_fields_of_named_tuples_convert_no_numbers(type: str, default: str) -> None:
    source = f"class P(NamedTuple):\n    x: {type} = {default}\n\ndef f(n: {type}):\n    return P(GIVEN)\n"
    with pytest.raises(irtool.ParseError, match="Expected a value of type"):
        irtool.from_script(source.replace("GIVEN", ""))
    assert irtool.run(irtool.from_script(source.replace("GIVEN", "n")), [1])[0] == (1,)
