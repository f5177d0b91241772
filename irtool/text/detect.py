"""Which dialect a graph is written in."""
from __future__ import annotations


def detect(text: str, start: int) -> str:
    """The name of the dialect of the graph whose text begins at `start`."""
    end = text.find(")", start)
    while end >= 0 and text[end + 1:end + 3] != " {" and text[end + 1:end + 2] != ":":
        end = text.find(")", end + 1)
    return "C2" if text[end + 1:end + 3] == " {" else "G"
