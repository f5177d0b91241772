"""Texts of files in SVG, HTML and JSON. Every text that is drawn or embedded goes through one of these functions, and nothing else does.

Control characters, and marks that turn the direction of a line, are shown as `\\u202e`; so is whatever XML cannot contain.
"""
from __future__ import annotations

import json
from typing import Any

from irtool.ir.source import clean, quoted

MARKUP = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;",
          0xfffe: "\\ufffe", 0xffff: "\\uffff"}
IN_SCRIPT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def markup(text: str) -> str:
    """A text between tags, or between the quotes of an attribute, of HTML, XML and SVG."""
    return quoted(text).translate(MARKUP)


def lines_markup(text: str) -> str:
    """The same for a text of several lines, in a `<pre>`."""
    return "\n".join(map(markup, text.split("\n")))


def cut(text: str, most: int) -> str:
    """A text of at most about `most` characters, which says how long it was if it was much longer."""
    return text if len(text) <= most else text[:most] + "\u2026" + (f" ({len(text):,} characters)" if len(text) > 10 * most else "")


def script_data(data: Any) -> str:
    """JSON for a `<script type="application/json">`, in which no text can end the element."""
    text = json.dumps(cleaned(data), ensure_ascii=False, separators=(",", ":"))
    return text.translate(IN_SCRIPT)


def cleaned(data: Any) -> Any:
    """The same data with the texts in it made visible."""
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, list | tuple):
        return [cleaned(each) for each in data]
    if isinstance(data, dict):
        return {clean(key): cleaned(each) for key, each in data.items()}
    return data


def dot_text(text: str) -> str:
    """A text between the quotes of a DOT string."""
    return quoted(text).replace("\\", "\\\\").replace('"', '\\"')
