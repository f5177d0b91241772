"""Gradient formulas, a module per family of operators: TorchScript source that also runs as it is (see `irtool.ops.op`).

Importing the package loads them all; `Op.formulas` does that on first use, so that running a graph costs nothing for them.
"""
from __future__ import annotations

from importlib import import_module

MODULES: tuple[str, ...] = (
    "pointwise", "pointwise_binary", "cast", "reduction", "statistics", "softmax",
    "shape", "joining", "activation", "matmul", "indexing", "scatter",
    "diagonal", "padding", "scan", "sort",
)
"""One module of this package each: formulas of the operators in the family module of that name."""

for _name in MODULES:
    import_module(f"irtool.ops.gradients.{_name}")
