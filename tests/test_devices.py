"""A device that is not there is refused, by each operator and function that takes one: nothing is computed on another without a word."""
from __future__ import annotations

import inspect
from typing import Any

import pytest

import irtool
from irtool.ir.schema import parse_schema
from irtool.ops import OPS
from irtool.ops.call import call_op

MADE: dict[str, Any] = {"tensor": [1.0], "as_tensor": [1.0], "asarray": [1.0]}
DEVICES = ("cuda", "cuda:1", "mps", "nonsense")


def test_operators() -> None:
    taken = 0
    for name, op in OPS.items():
        text = next((each for each, own in zip(op.schemas, op.names, strict=True) if own == name), None)
        if text is None or not op.samples.get(name):
            continue
        places = [place for place, each in enumerate(parse_schema(text).arguments) if each.type.text in ("Device", "Device?")]
        for place in places:
            args = list(op.samples[name][0].arguments(text))
            args[place:place + 1] = ["cuda"]
            with pytest.raises(irtool.Error, match="cuda"):
                call_op(name, args)
                pytest.fail(f"{name} takes device='cuda'")
            taken += 1
    assert taken >= 5


@pytest.mark.parametrize("device", DEVICES)
def test_functions(device: str) -> None:
    torch = irtool.torch
    for name in MADE:
        assert "device" in inspect.signature(getattr(torch, name)).parameters
        with pytest.raises(irtool.UnsupportedError, match=f"device {device} is not supported"):
            getattr(torch, name)(MADE[name], device=device)
        assert getattr(torch, name)(MADE[name], device="cpu").device == "cpu"
    two = torch.ones(2)
    for call in (lambda: torch.zeros(2, device=device), lambda: two.to(device), lambda: two.new_tensor([1.0], device=device),
                 lambda: torch.arange(3, device=device), lambda: torch.Generator(device), lambda: torch.as_tensor([1.0], device=device),
                 lambda: torch.as_tensor(two, device=device), lambda: torch.zeros_like(two, device=device)):
        with pytest.raises(irtool.UnsupportedError, match=f"device {device} is not supported"):
            call()
