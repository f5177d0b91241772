"""Tensors as text (`str`, `format` and `print` in graphs) are what torch's C++ prints."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import irtool

TEXT = irtool.from_script("def text(x):\n    return str(x)\n").graph()
RECORDED = [
    (np.arange(6, dtype=np.float32).reshape(2, 3), " 0  1  2\n 3  4  5\n[ CPUFloatType{2,3} ]"),
    (np.float32(1e-5), "9.999999747378752e-06\n[ CPUFloatType{} ]"),
    (np.array(-3), "-3\n[ CPULongType{} ]"),
    (np.array([1, -20, 300]), "   1\n -20\n 300\n[ CPULongType{3} ]"),
    (np.float32([np.inf, np.nan, -1.5]), "    inf\n    nan\n-1.5000\n[ CPUFloatType{3} ]"),
    (np.array([1e150, 2.5]), " 1.0000e+150\n  2.5000e+00\n[ CPUDoubleType{2} ]"),
    (np.float32([[0.05]]), "0.01 *\n 5.0000\n[ CPUFloatType{1,1} ]"),
    (np.array([[[4962600, 768220.5]], [[1, 2]]]), "(1,.,.) = \n1000000 *\n  4.9626  0.7682\n\n(2,.,.) = \n 1  2\n[ CPUDoubleType{2,1,2} ]"),
    (np.empty((0, 2, 3), np.float16), "[ CPUHalfType{0,2,3} ]"),
    (np.array([True, False]), " 1\n 0\n[ CPUBoolType{2} ]"),
    (np.complex64([1 + 2j]), " 1\n[ CPUComplexFloatType{1} ]"),
    (np.arange(30).reshape(1, 30), "Columns 1 to 20  0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19\n\n"
                                   "Columns 21 to 30 20  21  22  23  24  25  26  27  28  29\n[ CPULongType{1,30} ]"),
]


def text_of(array: Any, **ways: bool) -> Any:
    """The text that a graph makes of an array."""
    return irtool.run(TEXT, [np.asarray(array)], **ways)[0]


@pytest.mark.parametrize("array, text", RECORDED)
def test_text_of_a_tensor_is_what_torch_recorded(array: Any, text: str) -> None:
    for ways in ({"interpret": True}, {}, {}, {}):
        assert text_of(array, **ways) == text


def test_tensors_are_shown_alike_wherever_they_become_text(capsys: pytest.CaptureFixture[str]) -> None:
    graph = irtool.from_script("def shown(x):\n    print('x', [x])\n    return 'x={}'.format(x), f'{x}', '%s' % x, str((x, 1))\n").graph()
    text = " 1\n[ CPUFloatType{1} ]"
    assert irtool.run(graph, [np.ones(1, np.float32)]) == [(f"x={text}", text, text, f"({text}, 1)")]
    assert capsys.readouterr().out == f"x [{text}]\n"


@pytest.mark.oracle
def test_texts_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.jit.CompilationUnit("def text(x):\n    return str(x)\n").text
    rng = random.Random(7)
    for _ in range(600):
        shape = [rng.randint(0, 4) for _ in range(rng.randint(0, 4))]
        if shape and rng.random() < 0.2:
            shape[-1] = rng.randint(5, 40)
        array = np.random.default_rng(rng.randrange(1 << 30)).normal(size=shape) * 10.0 ** rng.randint(-9, 9)
        array = np.asarray(array if rng.random() < 0.6 else np.round(array))
        array = array.astype(rng.choice(["float32", "float64", "int64", "complex64", "bool"]))
        assert text_of(array) == theirs(torch.from_numpy(array)), repr(array)
