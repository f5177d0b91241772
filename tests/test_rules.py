"""Type promotion: torch's rules (`torch.result_type`), by example and against torch itself."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from irtool.ops.arrays import CODES, astype, code_of, dtype_of, to_bfloat16
from irtool.ops.call import call_op
from irtool.ops.promotion import can_cast, promote_types, result_type

NAMES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool")


@pytest.mark.parametrize(("operands", "expected"), [
    ((("float32", 1), ("int64", 1)), "float32"),            # a float beside an integer keeps its width
    ((("float16", 1), ("int64", 1)), "float16"),
    ((("complex64", 1), ("int64", 1)), "complex64"),
    ((("float32", 1), ("float64", 0)), "float32"),          # a 0-d array counts only by category
    ((("int32", 1), ("int64", 0)), "int32"),
    ((("int64", 1), ("float64", 0)), "float64"),
    ((("int64", 1), 2.5), "float32"),                       # a number brings the default dtype of its category
    ((("float16", 1), 2.5), "float16"),
    ((("uint8", 1), 300), "uint8"),
    ((("bool", 1), 3), "int64"),
    ((("uint8", 1), ("int8", 1)), "int16"),
    ((True, 2), "int64"),
    ((1, 2.5), "float32"),
    ((("float64", 1), 2j), "complex128"),
])
def test_the_table_of_cases_numpy_does_differently(operands: tuple[object, ...], expected: str) -> None:
    values = [np.ones((2,) * o[1], o[0]) if isinstance(o, tuple) else o for o in operands]
    assert result_type(values).name == expected
    assert result_type(values[::-1]).name == expected


def test_nothing_has_no_dtype() -> None:
    with pytest.raises(ValueError, match="no operand"):
        result_type([None])


def test_numbers_wrap_into_an_integer_dtype() -> None:
    assert call_op("aten::add.Tensor", [np.array([1], np.uint8), 300]).tolist() == [45]


@pytest.mark.parametrize(("source", "target", "may"), [
    ("float32", "int64", False), ("int64", "float16", True), ("float64", "float16", True), ("complex64", "float64", False),
    ("int32", "bool", False), ("bool", "uint8", True), ("int64", "uint8", True),
])
def test_what_may_be_written_into_what(source: str, target: str, may: bool) -> None:
    assert can_cast(np.dtype(source), np.dtype(target)) is may


def test_conversions_follow_c_not_numpy() -> None:
    assert astype(np.array([300.0, -1.5], np.float32), np.uint8).tolist() == [44, 255]
    assert astype(np.array([1 + 2j]), np.float32).tolist() == [1.0]


def test_bfloat16_rounds_to_even() -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, np.inf, np.nan, 3.4e38], np.float32)
    assert to_bfloat16(x)[:4].tolist() == [1.0, 1.0, 1.015625, np.inf]
    assert np.isnan(to_bfloat16(x)[4]) and np.isinf(to_bfloat16(x)[5])


def test_codes_are_torchs_numbers() -> None:
    assert (code_of(np.float32), code_of(np.int64), code_of(np.bool_)) == (6, 4, 11)
    assert all(dtype_of(code).name == name for code, name in CODES.items() if name not in ("bfloat16", "complex32"))


@pytest.mark.oracle
def test_every_pair_of_dtypes_and_ranks_promotes_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(NAMES, NAMES):
        assert promote_types(np.dtype(a), np.dtype(b)).name == str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:]
        for rank_a, rank_b in itertools.product((0, 1), (0, 1)):
            x, y = np.ones((1,) * rank_a, a), np.ones((1,) * rank_b, b)
            expected = str(torch.result_type(torch.from_numpy(x), torch.from_numpy(y)))[6:]
            assert result_type([x, y]).name == expected.replace("complex32", "complex64"), (a, rank_a, b, rank_b)
        for number in (True, 3, 2.5, 2j):
            expected = str(torch.result_type(torch.ones(1, dtype=getattr(torch, a)), number))[6:]
            assert result_type([np.ones(1, a), number]).name == expected.replace("complex32", "complex64")
