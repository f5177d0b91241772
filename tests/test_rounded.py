"""Constants that torch printed with a few digits: known from those that are exact, and named before they are computed with."""
from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.interop.constant_archives import attach
from irtool.interop.npz import Archive
from irtool.interop.spelling import exact_text
from irtool.ir.rounded import RoundedWarning
from irtool.ir.tensor_literal import TensorLiteral

X = np.ones(2, np.float32)


def text(constant: str) -> str:
    return (f"graph(%x : Float(2)):\n  %w : Float(2) = prim::Constant[value={constant}]()\n  %y : Float(2) = aten::mul(%x, %w)\n"
            "  return (%y)\n")


ROUNDED = text("-0.1374 -0.2820 [ CPUFloatType{2} ]")
REAL_PARTS = text(" 1  2 [ CPUComplexFloatType{2} ]").replace("%w : ", "%w : Complex").replace("%y : ", "%y : Complex")


@pytest.mark.parametrize(("literal", "expected"), [
    ("-0.1374 -0.2820 [ CPUFloatType{2} ]", True),
    (" 0.5000  0.2500 [ CPUFloatType{2} ]", True),
    ("0.001 *  1.0000  2.0000 [ CPUFloatType{2} ]", True),
    ("0.001 *  1  2 [ CPUFloatType{2} ]", False),
    (" 1.0000e+10  2.0000e+00 [ CPUFloatType{2} ]", True),
    ("(1,.,.) =   0.1000  0   0  0 [ CPUFloatType{1,2,2} ]", True),
    ("nan inf 0.2500 [ CPUDoubleType{3} ]", True),
    ("nan inf 1 [ CPUFloatType{3} ]", False),
    ("(1,.,.) =   1  2   0  0 [ CPUFloatType{1,2,2} ]", False),
    (" 1  2 [ CPUFloatType{2} ]", False),
    ("-1  2 [ CPULongType{2} ]", False),
    (" 0.1374 0.282 [ CPUFloatType{2} ]", False),
    ("{0.333333}", True),
    ("{3.14159}", True),
    ("{0.5}", False),
    ("{100000}", False),
    ("{1e-05}", False),
    ("<Tensor>", False),
])
def test_what_is_rounded(literal: str, expected: bool) -> None:
    assert TensorLiteral(literal).is_rounded == expected


def test_what_irtool_writes_with_all_digits_is_not_rounded() -> None:
    for array in (np.float32([0.1374, -0.2821]), np.float64([1.2345e-20, 1.2345e20]), np.float64([[0.1, 1 / 3]]), np.float32([1, 2]),
                  np.float64([np.inf, 0.1374])):
        written = exact_text(array)
        assert written is not None
        assert not TensorLiteral(written).is_rounded
        assert np.array_equal(np.array(TensorLiteral(written).numbers(), array.dtype), array.ravel())


RUNS: dict[str, Callable[[Any], object]] = {
    "run": lambda module: irtool.run(module, [X]),
    "run, interpreted": lambda module: irtool.run(module, [X], interpret=True),
    "vjp": lambda module: irtool.vjp(module, [X], [X], [0]),
    "compile": lambda module: irtool.compile(module)(X),
    "vmap": lambda module: irtool.vmap(module)(np.ones((3, 2), np.float32)),
}


@pytest.mark.parametrize("way", RUNS)
def test_python_warns_once_at_the_users_line(way: str) -> None:
    module = irtool.parse(ROUNDED, filename="f.ir")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        RUNS[way](module)
        RUNS[way](module)
    ours = [each for each in said if each.category is RoundedWarning]
    assert len(ours) == 1
    assert str(ours[0].message).startswith("f.ir:2:19: of constant %w the text has rounded numbers")
    assert ours[0].filename == __file__


@pytest.mark.parametrize("way", RUNS)
def test_real_parts_alone_are_refused(way: str) -> None:
    """torch prints ` 1  2` for [1+5j, 2+3j]."""
    module = irtool.parse(REAL_PARTS)
    for _ in range(2):
        with pytest.raises(irtool.UnsupportedError, match="only the real parts .*--constants"):
            RUNS[way](module)


def test_the_array_gives_the_imaginary_parts() -> None:
    module = irtool.parse(REAL_PARTS)
    archive = Archive()
    archive.put("w", np.complex64([1 + 5j, 2 + 3j]))
    attach(module, archive)
    assert irtool.run(module, [X])[0].tolist() == [1 + 5j, 2 + 3j]


def command(*words: str, text: str) -> str:
    err = io.StringIO()
    assert main([*words], io.BytesIO(text.encode()), io.StringIO(), err) == 0, err.getvalue()
    return err.getvalue()


@pytest.mark.parametrize("words", [("run", "-", "-i", "x=2xf32=1"), ("run", "-", "-i", "x=2xf32=1", "--repeat", "3"),
                                   ("opt", "-q", "--passes=constant-propagation", "-"), ("vmap", "-")])
def test_commands_that_compute_say_so_once(words: tuple[str, ...]) -> None:
    said = command(*words, text=ROUNDED)
    assert said.count("rounded") == 1
    assert "<stdin>:2:19: warning: of constant %w" in said
    assert "--constants" in said


def test_commands_are_silent_about_exact_constants() -> None:
    assert "rounded" not in command("run", "-", "-i", "x=2xf32=1", text=text(" 1  2 [ CPUFloatType{2} ]"))
    assert "rounded" not in command("opt", "-q", "--passes=dce", "-", text=ROUNDED)
