"""Comparisons are step functions."""
from __future__ import annotations

from irtool.ops.kernels.comparison import table

table.no_gradient("truth values")
