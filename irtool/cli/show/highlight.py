"""Syntax highlighting on a terminal: IR by one regular expression, since rich is too slow for large texts; Python by rich."""
from __future__ import annotations

import re

IR = re.compile(r"""
    (?P<comment> \#[^\n]* )
  | (?P<string>  "(?:[^"\\\n]|\\.)*" )
  | (?P<value>   %[\w.]+ )
  | (?P<kind>    \b[a-zA-Z_]\w*::\w+ | (?<==[ ])(?!graph\()\w+(?=\() )
  | (?P<word>    \b(?:graph|return|block\d+)(?=[ ]?\() | ^[ \t]*-> )
  | (?P<type>    (?<=:[ ])[A-Z]\w* | (?<=:[ ])(?:int|float|bool|str|complex|number|None)\b )
""", re.VERBOSE | re.MULTILINE)
COLORS = {"comment": "2", "string": "32", "value": "36", "kind": "33", "word": "35", "type": "34"}


def painted(text: str, language: str) -> str:
    """A text with terminal colours. language: ir or python."""
    if language == "python":
        return painted_python(text)
    return IR.sub(lambda match: f"\x1b[{COLORS[match.lastgroup or '']}m{match[0]}\x1b[0m", text)


def painted_python(text: str) -> str:
    """TorchScript source, highlighted by rich as Python."""
    from rich.console import Console
    from rich.syntax import Syntax

    lines = text.split("\n")
    screen = Console(force_terminal=True, color_system="standard", width=max(map(len, lines)) + 1)
    with screen.capture() as capture:
        screen.print(Syntax(text, "python", theme="ansi_dark", background_color="default"), end="")
    shown = [line.rstrip(" ") for line in capture.get().rstrip("\n").split("\n")]
    return "\n".join(shown) + "\n" * (len(text) - len(text.rstrip("\n")))
