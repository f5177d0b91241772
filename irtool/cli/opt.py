"""The form of reproducers: the first line is HEADER and the words of an `irtool opt`, the rest is the input. Scripts may import this."""
from __future__ import annotations

HEADER = "# irtool: "
