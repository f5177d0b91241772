"""Running what passes make of graphs: gradients."""
from __future__ import annotations

from irtool.execute.gradients import run_pair, vjp

__all__ = ["run_pair", "vjp"]
