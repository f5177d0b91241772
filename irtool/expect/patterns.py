"""`# CHECK:` lines: patterns that parts of the output must match, as in LLVM's tests. The package filecheck matches them."""
from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Sequence
from difflib import SequenceMatcher

from irtool.ir.errors import Error

CHECK = re.compile(r"# CHECK(-NEXT|-SAME|-NOT|-DAG|-LABEL|-EMPTY|-COUNT-\d+)?(?:\{LITERAL\})?:(.*)")
TRIED = 20
"""The number of similar lines of the output that are tried, in the place of a pattern that fails."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def failure(lines: Sequence[str], output: str, name: str = "", first_line: int = 1) -> str:
    """Why the output does not match the CHECK lines, in filecheck's words; empty if it does. Raises Error if filecheck is not installed.

    lines: CHECK lines among others. name, first_line: their place, for the message.
    """
    try:
        from filecheck.matcher import Matcher
        from filecheck.options import Options
    except ImportError:
        raise Error("'# CHECK:' lines need the package filecheck: pip install 'irtool[expect]'") from None
    with tempfile.TemporaryDirectory(prefix="irtool-check-") as folder:
        checks, text = (os.path.join(folder, each) for each in ("checks", "output"))
        for path, content in ((checks, "\n" * (first_line - 1) + "\n".join(lines) + "\n"), (text, output)):
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(content)
        try:
            matcher = Matcher.from_opts(Options(checks, text))
            matcher.stderr = io.StringIO()
            if not matcher.run():
                return ""
            message = matcher.stderr.getvalue()
        except (re.error, RuntimeError, KeyError, ValueError) as error:
            message = f"{name}:{first_line}: error: filecheck cannot read the patterns: {error}"
    return _COLOUR.sub("", message).replace(checks, name).replace(text, "output").rstrip() or "the patterns do not match"


def updated(lines: Sequence[str], output: str) -> list[str] | None:
    """CHECK lines that match the output; None if that needs more than other texts behind the colons.

    Each line that does not match is replaced by the most similar line of the output that matches in its place. A sole `# CHECK:` without
    a pattern is replaced by a line for every line of the output.
    """
    if [line.strip() for line in lines] == ["# CHECK:"]:
        return whole(output)
    new: list[str] = []
    texts = [text for text in output.split("\n") if text.strip()]
    for line in lines:
        match = CHECK.fullmatch(line)
        assert match is not None
        new.append(line)
        if match[1] == "-NOT" or not failure(new, output):      # the range of a CHECK-NOT ends at the next line
            continue
        similar = sorted(texts, key=lambda text: -SequenceMatcher(None, match[2].strip(), text.strip(), autojunk=False).ratio())
        for text in similar[:TRIED]:
            new[-1] = pattern(match[1] or "", text)
            if not failure(new, output):
                break
        else:
            return None
    return None if failure(new, output) else new


def whole(output: str) -> list[str]:
    """A CHECK line for every line of the output."""
    texts = output.rstrip("\n").split("\n")
    return [pattern("-NEXT" if number else "", text) if text.strip() else "# CHECK-EMPTY:" for number, text in enumerate(texts)]


def pattern(kind: str, text: str) -> str:
    """The CHECK line for exactly this text."""
    is_special = "[[" in text or "{{" in text
    return f"# CHECK{kind}{'{LITERAL}' if is_special else ''}: {text.strip()}"
