"""torch.nn.functional: its functions as TorchScript source of our own, and those that are operators."""
from __future__ import annotations

from irtool.script.values import Sugared


def function(name: str) -> Sugared | None:
    """What `F.name` means, where it is no plain operator."""
    return None
