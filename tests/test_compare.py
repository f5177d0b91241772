"""Comparing arrays: what differs, where most, and which tolerance would pass."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.testing.closeness import compare, compare_members, round_up

FLOATS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8)


@given(FLOATS, FLOATS)
@settings(max_examples=200, deadline=None)
def test_the_tolerance_it_names_does_pass(actual: list[float], expected: list[float]) -> None:
    size = min(len(actual), len(expected))
    got, want = np.array(actual[:size], "f"), np.array(expected[:size], "f")
    found = compare(got, want)
    if found.is_equal:
        return
    assert found.atol_needed is not None and compare(got, want, atol=found.atol_needed).is_equal
    assert not compare(got, want, atol=found.atol_needed * 0.98).is_equal
    if found.rtol_needed is not None:
        assert compare(got, want, rtol=found.rtol_needed).is_equal
        assert not compare(got, want, rtol=found.rtol_needed * 0.98).is_equal


def test_the_worst_element_is_named() -> None:
    found = compare(np.array([[1, 2], [3, 4.5]], "f"), np.array([[1, 2.001], [3, 4]], "f"))
    assert found.worst == (1, 1) and found.reason == "4.5 at [1, 1], expected 4.0 (off by 0.5, 0.125 relative); 2 of 4 elements differ"


def test_nan_equals_nan_and_nothing_else() -> None:
    nan = np.array([np.nan, 1.0])
    assert compare(nan, nan.copy()).is_equal
    found = compare(nan, np.array([0.0, 1.0]))
    assert not found.is_equal and found.worst == (0,) and found.atol_needed is None and found.rtol_needed is None


def test_infinities_count_with_their_sign() -> None:
    assert compare(np.array([np.inf]), np.array([np.inf])).is_equal
    assert not compare(np.array([np.inf]), np.array([-np.inf]), rtol=1.0, atol=1.0).is_equal
    assert not compare(np.array([1.0]), np.array([np.inf]), rtol=1.0).is_equal


@pytest.mark.parametrize("actual, expected, reason", [
    (np.zeros(2, "f"), np.zeros(2), "dtype float32, expected float64"),
    (np.zeros(2), np.zeros(3), "shape (2,), expected (3,)"),
    (np.array([1, 5]), np.array([1, 4]), "5 at [1], expected 4; 1 of 2 elements differ"),
    (np.array([True, False]), np.array([True, True]), "False at [1], expected True; 1 of 2 elements differ"),
    (np.array("a"), np.array("bc"), "'a', expected 'bc'"),
    (np.array(2**63, np.uint64), np.array(2**63 + 1, np.uint64), "9223372036854775808, expected 9223372036854775809"),
])
def test_what_differs(actual: np.ndarray, expected: np.ndarray, reason: str) -> None:
    assert compare(actual, expected).reason == reason


def test_integers_are_exact_unless_a_tolerance_is_given() -> None:
    assert not compare(np.array([1000000]), np.array([1000001])).is_equal
    assert compare(np.array([1000000]), np.array([1000001]), atol=1).is_equal


def test_the_tolerance_depends_on_the_dtype() -> None:
    assert compare(np.float16([1.0]), np.float16([1.0009765625])).is_equal
    assert not compare(np.float32([1.0]), np.float32([1.0009766])).is_equal
    assert compare(np.float32([1.0]), np.float32([1.0078125]), dtype="bfloat16").is_equal
    assert compare(np.complex64([1 + 1j]), np.complex64([1 + 1.0000001j])).is_equal


def test_empty_arrays_agree() -> None:
    assert compare(np.empty((0, 3)), np.empty((0, 3))).is_equal


def test_members() -> None:
    one = {"a": np.ones(2), "b": np.zeros(1), "c": np.zeros(1)}
    other = {"a": np.ones(2), "b": np.zeros(1), "d": np.zeros(1)}
    found = compare_members(one, other, actual_none={"b"})
    assert [(key, each.is_equal, each.reason) for key, each in found.items()] == [
        ("a", True, ""), ("b", False, "None, expected a value"), ("d", False, "missing"), ("c", False, "not expected")]


@given(st.floats(1e-30, 1e30))
def test_rounding_up(number: float) -> None:
    assert number <= round_up(number) <= number * 1.02
