"""Literals of an archive's code that Python source has not: defaults such as `inf` and `CONSTANTS.c0`, and the smallest int."""
from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

X = np.ones(2, np.float32)


def archive(parameters: str, result: str, type: str, constants: tuple[object, ...] = ()) -> bytes:
    """An archive by hand: `forward(self, x, PARAMETERS) -> TYPE` returns an expression."""
    code = ("class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
            f"  def forward(self: __torch__.M,\n    x: Tensor{parameters}) -> {type}:\n    return {result}\n")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as records:
        records.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}X\x08\x00\x00\x00training\x89sb.")
        records.writestr("m/constants.pkl", pickle.dumps(constants, 2))
        records.writestr("m/version", "10")
        records.writestr("m/code/__torch__.py", code)
    return file.getvalue()


DEFAULTS = {
    "float=inf": float("inf"), "float=-inf": float("-inf"), "float=nan": float("nan"), "Optional[float]=inf": float("inf"),
    "Tuple[float, float]=(1.5, inf)": (1.5, float("inf")), "Tuple[float, int]=(-inf, -3)": (float("-inf"), -3),
    "List[float]=[1., inf]": [1.0, float("inf")], 'Device=torch.device("cpu")': "cpu", "str=CONSTANTS.c0": "é[∀]",
    "Tuple[str, int]=CONSTANTS.c1": ("é", 1), "int=-9223372036854775808": -2 ** 63, "complex=0.+1.j": 1j, "float=-1.5": -1.5,
    "Tuple[str, float]=(\"inf\", 1.)": ("inf", 1.0),
}
"""Type and default as torch writes them -> the value."""


@pytest.mark.parametrize("declared", DEFAULTS)
def test_defaults_are_read(declared: str, tmp_path: Path) -> None:
    type, expected = declared.partition("=")[0], DEFAULTS[declared]
    data = archive(f",\n    b: {declared}", "(x, b)", f"Tuple[Tensor, {type}]", ("é[∀]", ("é", 1)))
    module = irtool.load(data)
    assert repr(module(X)[1]) == repr(expected)
    given = module(X, expected)[1]
    assert repr(given) == repr(expected)
    path = tmp_path / "m.pt"
    path.write_bytes(data)
    for words in (("opt", "-q", "--passes=dce"), ("opt", "-q", "--passes=freeze{eval}")):
        again = tmp_path / "again.pt"
        assert main([*words, str(path), "-o", str(again)], io.BytesIO(), io.StringIO(), io.StringIO()) == 0
        if expected == expected:        # a text has no nan
            assert repr(irtool.load(str(again))(X)[1]) == repr(expected)
    assert main(["convert", str(path), str(tmp_path / "m.ir")], io.BytesIO(), io.StringIO(), io.StringIO()) == 0
    if expected == expected:
        assert repr(irtool.run(irtool.load(str(tmp_path / "m.ir")), [X])[0][1]) == repr(expected)


@pytest.mark.parametrize("declared", ["int=torch.seed()", "float=CONSTANTS.c9", "int=[][0]", "float=unknown"])
def test_other_defaults_are_refused(declared: str) -> None:
    module = irtool.load(archive(f",\n    b: {declared}", "(x, b)", f"Tuple[Tensor, {declared.partition('=')[0]}]"))
    with pytest.raises(irtool.Error, match="expected a literal"):
        module(X)


def test_defaults_of_source_are_kept() -> None:
    source = "def f(x, b: Tuple[str, float] = ('inf', float('inf')), d: torch.device = torch.device('cpu')):\n    return x, b, d\n"
    module = irtool.from_script(source, "f")
    for each in (module, irtool.parse(str(module))):
        assert irtool.run(each, [X])[0][1:] == (("inf", float("inf")), "cpu")


def test_the_smallest_int() -> None:
    module = irtool.load(archive("", "(-9223372036854775808, [-9223372036854775808, 3])", "Tuple[int, List[int]]"))
    assert module(X) == (-2 ** 63, [-2 ** 63, 3])


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "--9223372036854775808"])
def test_ints_of_more_bits_are_refused(number: str) -> None:
    with pytest.raises(irtool.Error, match="Integral constant out of range"):
        irtool.load(archive("", number, "int"))(X)


def test_python_source_has_no_smallest_int() -> None:
    with pytest.raises(irtool.ParseError, match="Integral constant out of range"):
        irtool.from_script("def f():\n    return -9223372036854775808\n")
