"""docs/errors.md, made of the table of error codes (irtool/cli/error_codes.txt).

    python tools/errors.py
"""
from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from irtool.cli.error_codes import GROUPS, Entry, read_entries

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"
HEAD = """# Error codes

Each message ends with a code, `[E0103]`, which JSON diagnostics have as `code` and exceptions as `error.code`. `irtool explain E0103`
prints what is here. A code never changes its meaning; one that is no longer given is not used again. A message may get a more precise code
in a later version.

This page is made by `make errors` from `irtool/cli/error_codes.txt`. Each example gives exactly its code: the tests run it.
"""


def section(entry: Entry) -> str:
    """One code."""
    files = "".join(f"\n`{name}`\n```{'python' if name.endswith('.py') else 'text'}\n{text}```\n" for name, text in entry.files.items())
    words = f"{entry.meaning}\n\nWhat to do: {entry.remedy}"
    return f"### {entry.code}: {entry.title}\n\n{words}\n\n```console\n$ {entry.command}\n```\n{files}"


def page() -> str:
    """The whole page."""
    out = [HEAD]
    for group, entries in groupby(read_entries().values(), lambda entry: GROUPS[entry.code[:3]]):
        out += [f"## {group}\n", *map(section, entries)]
    return "\n".join(out)


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
