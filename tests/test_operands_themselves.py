"""Operators that return their first operand itself, and not a view or a copy of it: those of torch, whatever the operand's shape.

It shows: a new shape of the result (`t_`, `unsqueeze_`) is one of the operand, and where gradients are off, the result has the operand's.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.schema import parse_schema
from irtool.ops import OPS

pytestmark = pytest.mark.oracle

OTHER = {"aten::diff": "of nothing: a new shape of what has no elements", "aten::requires_grad_": "a tensor here says nothing of gradients"}
"""Kinds that return another tensor than torch's, and what shows of it."""
NOT_RUN = ("_linalg", "linalg_", "svd", "qr", "fft", "_backward", "rnn", "lstm", "gru", "resize", "set_", "empty")
"""Parts of names of operators that are new each time; some of torch's end the process for shapes that are not theirs."""


def shapes_of(x: np.ndarray) -> list[np.ndarray]:
    """The array, and its elements in fewer and more dimensions, and none of them."""
    return [x, x.ravel()[:1].reshape(()), x.ravel(), x[None], x[..., :0]] if x.ndim and x.size else [x]


def is_first(function: Any, args: list[Any]) -> bool | None:
    """Does a call return its first operand itself? None if it is refused."""
    try:
        return function(*args) is args[0]
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, irtool.Error):
        return None


def test_what_returns_its_first_operand_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    wrong, compared = [], 0
    for name, op in OPS.items():
        kind, _, variant = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::") or not op.samples.get(name) or any(part in kind for part in NOT_RUN) or f"aten::{kind}" in OTHER:
            continue
        text = next(each for each, own in zip(op.schemas, op.names, strict=True) if own == name)
        schema, theirs = parse_schema(text), getattr(getattr(torch.ops.aten, kind, None), variant or "default", None)
        if theirs is None or schema.arguments[0].type.text != "Tensor" or any(each.kwarg_only for each in theirs._schema.arguments):
            continue
        sample = op.samples[name][0].arguments(text)
        if not isinstance(sample[0], np.ndarray) or any("Tensor" in each.type.text for each in schema.arguments[1:]):
            continue
        for first in shapes_of(sample[0]):
            args = [first, *sample[1:]]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = is_first(theirs, [torch.tensor(each) if isinstance(each, np.ndarray) else each for each in args])
                got = is_first(getattr(irtool.torch.ops.aten, kind),
                               [irtool.torch.tensor(each) if isinstance(each, np.ndarray) else each for each in args])
            if want is not None and got is not None:
                compared += 1
                if want != got:
                    wrong.append((name, first.shape, want))
    assert not wrong
    assert compared > 500
