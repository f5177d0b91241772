"""Gradient formulas, a module per family of operators, or per theme: TorchScript source that also runs as it is (see `irtool.ops.op`).

Importing the package loads them all; `Op.formulas` does that on first use, so that running a graph costs nothing for them.
"""
from __future__ import annotations

from importlib import import_module
from pathlib import Path

from irtool.ops.kernels.diagonal import COPIES

MODULES: tuple[str, ...] = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")))
"""The modules of this package: formulas of the operators in the family module of that name, or of a theme if a family has many
(`recurrent_nets`, `ctc`, `products`, ...), and `parts`, functions that formulas share."""

for _name in MODULES:
    import_module(f"irtool.ops.gradients.{_name}")

for _copy, _view in COPIES.items():
    _copy.inherit(_view, "_formulas", "_no_gradient")
