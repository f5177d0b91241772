"""IR for Pygments, so that Sphinx, rich and notebooks colour it: the language `irtool`, files `*.ir`.

`irtool.tmLanguage.json` beside this file is the same for editors (TextMate, VS Code): a test compares the two.
"""
from __future__ import annotations

from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, String, Text, _TokenType

from irtool.cli.show.highlight import IR

TOKENS = {"comment": Comment, "string": String, "value": Name.Variable, "kind": Name.Function, "word": Keyword, "type": Keyword.Type}


class IRLexer(Lexer):  # type: ignore[misc]
    """The lexer of IR text, by the same expression as colours on a terminal."""

    name = "TorchScript IR"
    aliases = ["irtool", "torchscript-ir"]
    filenames = ["*.ir"]
    url = "https://pytorch.org/docs/stable/jit.html"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """Position, kind and text of each piece."""
        end = 0
        for match in IR.finditer(text):
            if match.start() > end:
                yield end, Text, text[end:match.start()]
            yield match.start(), TOKENS[match.lastgroup or ""], match[0]
            end = match.end()
        if end < len(text):
            yield end, Text, text[end:]
