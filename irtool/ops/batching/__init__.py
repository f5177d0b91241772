"""Batching rules, a module per family of operators: how `vmap` runs an operator (see `irtool.ops.op` and `irtool.ops.batch`).

Importing the package loads them all; `Op.batch_rules` does that on first use. Families whose overloads are all pointwise need no module.
"""
from __future__ import annotations

from importlib import import_module
from pathlib import Path

from irtool.ops.kernels.diagonal import COPIES

MODULES: tuple[str, ...] = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")))
"""The modules of this package: rules of the operators in the family module of that name, and `batch_dim`, functions that rules share."""

for _name in MODULES:
    import_module(f"irtool.ops.batching.{_name}")

for _copy, _view in COPIES.items():
    _copy.inherit(_view, "_batch_rules")
