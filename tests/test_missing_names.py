"""A name that is not there costs a look; what is near to it is said when somebody reads the message."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir import errors

PLACES: list[tuple[Any, str, str]] = [
    (irtool.Tensor(np.ones(2)), "sigmod", "sigmoid"), (irtool, "pars", "parse"), (irtool.torch, "sofmax", "softmax"),
    (irtool.torch.linalg, "sove", "solve"), (irtool.torch.func, "gradd", "grad"),
    (irtool.torch.nn.functional, "cross_entrpy", "cross_entropy")]


@pytest.mark.parametrize(("where", "name", "near"), PLACES, ids=lambda each: each if isinstance(each, str) else "")
def test_suggestions_are_made_when_the_message_is_read(where: Any, name: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(errors, "nearest", lambda word, known: asked.append(word) or near)
    assert not hasattr(where, name) and getattr(where, name, None) is None
    assert not asked
    with pytest.raises(AttributeError) as caught:
        getattr(where, name)
    assert not asked
    assert f"(did you mean '{near}'?)" in str(caught.value) and caught.value.message == str(caught.value)
    assert asked == [name]
