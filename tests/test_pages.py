"""What tests/expect has to show is all there: a page for each family of operators, a case for each pass."""
from __future__ import annotations

import re
from pathlib import Path

from irtool.ops import OPS
from irtool.passes import PASSES

EXPECT = Path(__file__).parent / "expect"


def test_each_family_of_operators_has_a_page() -> None:
    assert {path.stem for path in (EXPECT / "cli" / "operators").glob("*.ir")} == {op.family for op in OPS.values()}


def test_each_pass_has_a_case() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in EXPECT.rglob("*.ir"))
    commands = "\n".join(re.findall(r"^# RUN:.*", pages, re.MULTILINE))
    assert not [each.name for each in PASSES if not re.search(rf"[=,' ]{each.name}(?![\w-])", commands)]
