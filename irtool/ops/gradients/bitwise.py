"""Bits have no gradient."""
from __future__ import annotations

from irtool.ops.bitwise import table

table.no_gradient("whole numbers and truth values")
