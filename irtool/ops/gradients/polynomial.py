"""Orthogonal polynomials."""
from irtool.ops.kernels.polynomial import table

table.no_gradient("torch has no derivative of it either")
