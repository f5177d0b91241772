"""The texts of tests/data/corpus, of every year: what torch and others have printed."""
from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = sorted((Path(__file__).parent / "data" / "corpus").glob("*.txt"))
TEXTS = [pytest.param(path, id=path.stem) for path in CORPUS]
"""Them as cases of `tests.laws.over`."""


def origin(path: Path) -> str:
    """Group by the year, the release or the kind of program that a text comes from."""
    name = path.stem
    return name.partition("-")[0] if name.startswith("20") else name.partition("_")[0]
