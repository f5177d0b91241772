"""Operators take the dtypes that torch takes; where they do not, the difference is recorded, and changes on purpose only."""
from __future__ import annotations

import json
import warnings

import pytest
from op_dtypes import ASKED, RECORDED, here, overloads, theirs

TABLES = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("ending", ASKED)
def test_dtypes_are_torchs_or_recorded_as_others(ending):
    wrong = []
    whole, others = TABLES["torch" + ending], TABLES["irtool" + ending]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text, calls in overloads():
            if name in whole:
                expected = others.get(name, whole[name])
                if (found := ASKED[ending](here, name, text, calls)) != expected:
                    wrong.append(f"{name}: takes {found}, expected {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("ending", ASKED)
def test_what_is_otherwise_is_an_exception(ending):
    whole, others = TABLES["torch" + ending], TABLES["irtool" + ending]
    assert all(letters != whole[name] for name, letters in others.items())
    assert len(others) < len(whole) / 12


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ASKED)
def test_what_is_recorded_is_what_torch_takes(ending):
    whole = TABLES["torch" + ending]
    assert {name: ASKED[ending](theirs, name, text, calls) for name, text, calls in overloads() if name in whole} == whole
