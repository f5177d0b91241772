"""Write `irtool/ops/facts.txt`: the pointwise overloads, and the dtype of their results, as their kernels on symbols say.

    python tools/facts.py          rewrite the file (a test asks that it is current)
"""
from __future__ import annotations

from pathlib import Path

from irtool.ops import OPS
from irtool.ops.symbols.overload_facts import pointwise_result

FILE = Path(__file__).parent.parent / "irtool" / "ops" / "facts.txt"


def text() -> str:
    """The file as it should be: `aten::mul.Tensor keeps`, a line per pointwise overload, sorted."""
    rows = ((name, pointwise_result(name)) for name in sorted(OPS) if name.startswith("aten::"))
    return "".join(f"{name} {result}\n" for name, result in rows if result is not None)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
