"""Operators take the dtypes that torch takes; where they do not, the difference is recorded, and changes on purpose only."""
from __future__ import annotations

import json
import warnings

import pytest
from op_dtypes import RECORDED, here, overloads, taken, theirs

TABLES = json.loads(RECORDED.read_text())


def test_dtypes_are_torchs_or_recorded_as_others():
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text, calls in overloads():
            if name in TABLES["torch"]:
                expected = TABLES["irtool"].get(name, TABLES["torch"][name])
                if (found := taken(here, name, text, calls)) != expected:
                    wrong.append(f"{name}: takes {found}, expected {expected}")
    assert not wrong, "\n".join(wrong)


def test_what_is_otherwise_is_an_exception():
    assert all(letters != TABLES["torch"][name] for name, letters in TABLES["irtool"].items())
    assert len(TABLES["irtool"]) < len(TABLES["torch"]) / 12


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_what_is_recorded_is_what_torch_takes():
    assert {name: taken(theirs, name, text, calls) for name, text, calls in overloads() if name in TABLES["torch"]} == TABLES["torch"]
