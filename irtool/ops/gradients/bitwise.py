"""Bits have no gradient."""
from irtool.ops.kernels.bitwise import table

table.no_gradient("whole numbers and truth values")
