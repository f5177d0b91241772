"""Sample calls, a module per family of operators: every check of operators runs on these (see `irtool.ops.samples.draw`).

Importing the package loads them all; `Op.samples` does that on first use.
"""
from __future__ import annotations

from importlib import import_module
from pathlib import Path

from irtool.ops.kernels.diagonal import COPIES

MODULES: tuple[str, ...] = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")))
"""The modules of this package: samples of the operators in the family module of that name, and `draw`, the functions with which they are
written."""

for _name in MODULES:
    import_module(f"irtool.ops.samples.{_name}")

for _copy, _view in COPIES.items():
    _copy.inherit(_view, "_samples")
