"""Pygments and editors colour IR alike: the lexer, and the TextMate grammar beside it."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from irtool.cli.show import pygments_lexer
from irtool.cli.show.highlight import COLORS
from irtool.cli.show.pygments_lexer import TOKENS, IRLexer
from tests.test_show import EXAMPLES, HOSTILE

GRAMMAR = json.loads(Path(pygments_lexer.__file__).with_name("irtool.tmLanguage.json").read_text(encoding="utf-8"))
SCOPES = {"comment": "comment.line.number-sign", "string": "string.quoted.double", "value": "variable.other",
          "kind": "entity.name.function",
          "word": "keyword.control", "type": "support.type"}
"""By colour, the scope that themes of editors know for it."""
CASES = sorted((EXAMPLES.parent / "tests" / "expect").rglob("*.ir"))


def scoped(text: str) -> Iterator[tuple[int, str, str]]:
    """Place, scope and letters of each piece, as an editor finds them: line by line, of all patterns the first that matches, the first in
    the grammar where several match at one place.
    """
    patterns = [(re.compile(each["match"]), each["name"].removesuffix(".irtool")) for each in GRAMMAR["patterns"]]
    start = 0
    for line in text.split("\n"):
        here = 0
        nexts = [regex.search(line) for regex, _ in patterns]
        while here < len(line):
            nexts = [regex.search(line, here) if match is not None and match.start() < here else match
                     for match, (regex, _) in zip(nexts, patterns, strict=True)]
            matches = [(match.start(), rank, match) for rank, match in enumerate(nexts) if match is not None]
            if not matches:
                break
            _, rank, match = min(matches)
            yield start + match.start(), patterns[rank][1], match[0]
            here = match.end()
        start += len(line) + 1


def lexed(text: str) -> list[tuple[int, str, str]]:
    """The same by the lexer of Pygments."""
    names = {token: SCOPES[name] for name, token in TOKENS.items()}
    return [(place, names[token], piece) for place, token, piece in IRLexer().get_tokens_unprocessed(text) if token in names]


def test_the_lexer_changes_no_letter() -> None:
    from pygments.token import Keyword, Name, String

    text = HOSTILE["string"] + (EXAMPLES / "lstm_cell.ir").read_text()
    tokens = list(IRLexer().get_tokens_unprocessed(text))
    assert "".join([piece for _, _, piece in tokens]) == text
    pieces = [(kind, piece) for _, kind, piece in tokens]
    assert (Name.Function, "aten::mm") in pieces and {(Keyword, "graph"), (Keyword, "return")} <= set(pieces)
    assert [kind for _, kind, piece in IRLexer().get_tokens_unprocessed('%s = f["a # b"]') if piece.startswith('"')] == [String]


def test_editors_have_a_scope_for_each_colour() -> None:
    assert GRAMMAR["scopeName"] == "source.irtool" and GRAMMAR["fileTypes"] == [pattern.removeprefix("*.") for pattern in IRLexer.filenames]
    assert list(SCOPES) == list(COLORS) == list(TOKENS)
    assert [each["name"] for each in GRAMMAR["patterns"]] == [f"{scope}.irtool" for scope in SCOPES.values()]


@pytest.mark.parametrize("text", [
    *HOSTILE.values(),
    '%s : str = prim::Constant[value="a \\" # : Tensor %b"]() # aten::mul(%x)',
    'an open " and a # b" behind',
    "graph(%self.1 : Float(*, 2, device=cuda:0), %n : int?):\n  block0(%i : int):\n    -> (%i)\n  return (%n)",
    "%x : (Tensor, int[]) = prim::If(%c)\n\n   -> ()\n%naïve.é : ärger = über::größe()",
])
def test_a_text_is_coloured_alike(text: str) -> None:
    assert list(scoped(text)) == lexed(text)


def test_all_cases_and_examples_are_coloured_alike() -> None:
    for path in [*CASES, *sorted(EXAMPLES.glob("*.ir"))]:
        text = path.read_text(encoding="utf-8")
        assert list(scoped(text)) == lexed(text), path
