"""Norms, distances and reductions of rows with nan, infinities, zeros and ties, and their gradients, are torch's: recorded."""
from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from extreme_rows import PAIRS, RECORDED, expressions, function, rows

import irtool
from irtool.ir.errors import Error
from tests.laws import over


@cache
def recorded() -> Any:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


@over("expression", [pytest.param(text, id=text) for text in expressions()], lambda text: text.partition("(")[0])
def test_rows_where_numbers_end(expression: str) -> None:
    graph = irtool.from_script(function(expression)).graph()
    for pair, wanted in zip(PAIRS, recorded()[expression], strict=True):
        values = rows(pair)
        if wanted is None:
            continue
        with np.errstate(all="ignore"):
            try:
                (result,) = irtool.run(graph, values)
                gradients = irtool.vjp(graph, values, [np.ones_like(result)], [0, 1], interpret=True)
            except Error as error:
                raise AssertionError(f"{pair}: {error}") from error
        found = [np.zeros_like(values[0]) if each is None else each for each in (result, *gradients)]
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(ours).reshape(-1), theirs, 1e-6, 1e-12, err_msg=str(pair))
