"""Arguments of the Python interface that do not fit are refused where they are given."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

GRAPH = irtool.parse("graph(%x : Tensor):\n  %2 : Tensor = aten::mul(%x, %x)\n  return (%2)\n")


@pytest.mark.parametrize("options, message", [
    ({"native": "all"}, "native='all'; expected True, False or None"), ({"threads": 0}, "threads=0; expected at least 1"),
    ({"threads": "two"}, "threads='two'; expected at least 1")])
def test_options_of_compile(options: dict[str, Any], message: str) -> None:
    with pytest.raises(irtool.RunError, match=message):
        irtool.compile(GRAPH, **options)


def test_names_of_a_trace_differ() -> None:
    with pytest.raises(irtool.RunError, match="expected different ones"):
        irtool.trace(lambda x, y: x + y, [np.ones(2), np.ones(2)], ["a", "a"])


def test_a_traced_function_that_exits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit code is not irtool's: 0 would say that there is a graph."""
    path = tmp_path / "model.py"
    path.write_text("def f(x):\n    raise SystemExit(0)\n")
    assert main(["trace", f"{path}:f", "-i", "x=2xf32=1"]) == 1
    assert "SystemExit" in capsys.readouterr().err
