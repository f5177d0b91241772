"""Bits have no gradient."""
from __future__ import annotations

from irtool.ops.kernels.bitwise import table

table.no_gradient("whole numbers and truth values")
