"""Lines of code and tokens per line, by package: `make lines`. Cramming is not shortening, so tokens are counted too.

    python tools/lines.py [--check]      (--check: exit 1 when a file is over the limit without a reason in OVER)

A line of code is a line that holds a token other than a comment or a docstring.
"""
from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMIT = 450
DENSE = 18.0
"""More tokens per line than this, over a whole file of the package, is cramming; tests may hold dense tables."""
FOLDERS = ("irtool", "passes", "fuzz", "tests", "benchmarks", "tools", "examples")

OVER: dict[str, str] = {    # file: why it is over LIMIT lines
}

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


def docstring_lines(tree: ast.Module) -> set[int]:
    """Lines of strings that stand as statements: docstrings and notes under fields."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count(path: Path) -> tuple[int, int]:
    """(lines of code, tokens) of a file."""
    text = path.read_text(encoding="utf-8")
    skipped = docstring_lines(ast.parse(text))
    lines: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _NO_CODE or token.start[0] in skipped:
            continue
        tokens += 1
        lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines), tokens


def files(folder: str) -> Iterator[Path]:
    """Python files below a folder; irtool/passes is a link to passes/ and counted there, tests/data holds sources that tests compile."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.relative_to(ROOT).parts[:2] not in (("irtool", "passes"), ("tests", "data")):
            yield path


def main(words: list[str]) -> int:
    problems: list[str] = []
    over: list[str] = []
    totals = [0, 0, 0]
    print(f"{'':34}{'files':>6}{'lines':>8}{'tokens/line':>13}")
    groups: dict[str, list[tuple[str, int, int]]] = {}
    for folder in FOLDERS:
        for path in files(folder):
            name = path.relative_to(ROOT).as_posix()
            lines, tokens = count(path)
            parts = name.split("/")
            groups.setdefault("/".join(parts[:2]) if len(parts) > 2 and folder == "irtool" else folder, []).append((name, lines, tokens))
    for group, found in groups.items():
        lines, tokens = sum(row[1] for row in found), sum(row[2] for row in found)
        totals = [totals[0] + len(found), totals[1] + lines, totals[2] + tokens]
        print(f"{group:34}{len(found):6}{lines:8}{tokens / max(lines, 1):13.1f}")
        for name, lines, tokens in found:
            if lines > LIMIT:
                over.append(f"{name}: {lines} lines: {OVER.get(name, 'NO REASON GIVEN in tools/lines.py')}")
                problems += [name] * (name not in OVER)
            elif name in OVER:
                problems.append(f"{name}: {lines} lines: take it out of OVER")
            if lines > 50 and tokens / lines > DENSE and name.startswith(("irtool/", "passes/")):
                problems.append(f"{name}: {tokens / lines:.1f} tokens per line")
    print(f"{'all':34}{totals[0]:6}{totals[1]:8}{totals[2] / max(totals[1], 1):13.1f}")
    print(f"\nfiles over {LIMIT} lines of code:", *(over or ["none"]), sep="\n  ")
    if problems:
        print("\nto mend:", *problems, sep="\n  ")
    return 1 if problems and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
