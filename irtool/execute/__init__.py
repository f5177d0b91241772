"""Running what passes make of graphs: gradients."""
from __future__ import annotations

from irtool.execute.gradients import Differentiated, run_pair, vjp
from irtool.execute.pairs import Forward

__all__ = ["Differentiated", "Forward", "run_pair", "vjp"]
