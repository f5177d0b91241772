"""Comparisons are step functions."""
from irtool.ops.kernels.comparison import table

table.no_gradient("truth values")
