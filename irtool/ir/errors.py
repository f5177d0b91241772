"""One root of all errors, and what it carries: where, what, what was expected."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irtool.ir.source import Diagnostic, clean


class Error(Exception):
    """Root of every error irtool raises on purpose; `diagnostics` say where.

    `str(error)` is the rendered text: `file:line:col: error: what` with source line and caret,
    one paragraph per diagnostic; control characters in it are written out. `code` names the kind of error, `irtool explain CODE`
    says more; a diagnostic may have a code of its own.
    """

    code = "E0001"

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = (), code: str = "") -> None:
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        if code:
            self.code = code
        self.message = message or (self.diagnostics[0].message if self.diagnostics else "")
        super().__init__(message or self.message)

    def __str__(self) -> str:
        return clean("\n".join(d.render() for d in self.coded()) if self.diagnostics else self.message)

    def coded(self) -> list[Diagnostic]:
        """The diagnostics, each with a code; the message as one, where there is none."""
        diagnostics = self.diagnostics or [Diagnostic("error", self.message)]
        for each in diagnostics:
            each.code = each.code or self.code
        return diagnostics

    def at(self, diagnostics: Sequence[Diagnostic]) -> Error:
        """The same error, at a place."""
        error: Error = type(self).__new__(type(self), *self.args)
        error.__dict__.update(self.__dict__)
        error.diagnostics = list(diagnostics)
        return error


class ParseError(Error):
    """The text is not IR; every problem found is in `diagnostics`."""

    code = "E0101"


class VerifyError(Error):
    """A graph breaks an invariant; every violation is in `diagnostics`."""

    code = "E0201"


class RunError(Error, RuntimeError):
    """Running a graph failed: an operator refused its operands, or the graph raised; where torch raises a RuntimeError, too."""

    code = "E0401"


class PlaceMissing(RunError, IndexError):
    """A subscript names a place that a tensor does not have, or is no subscript."""

    code = "E0408"


class PassError(Error):
    """A pass cannot do what was asked on this graph (the input's fault, not a bug)."""

    code = "E0301"


class UnsupportedError(Error, NotImplementedError):
    """Not supported: the text names the operator, pass or form."""

    code = "E0404"


class OutputError(OSError):
    """Standard output cannot be written: its reader is gone, or a disk is full. The command line exits with 0 for a reader that is gone,
    else with 2."""


class NameMissing(Error, AttributeError):
    """An attribute that does not exist; the text names the nearest name.

    known: returns the existing names. They are compared only when the text is read, so that `hasattr` costs little.
    """

    code = "E0002"

    def __init__(self, message: str = "", word: str = "", known: Callable[[], Iterable[str]] = tuple) -> None:
        self.text = message
        self.word = word
        self.known = known
        super().__init__(message)

    @property
    def message(self) -> str:
        """The text, with the nearest name."""
        if self.word:
            self.text, self.word = self.text + did_you_mean(self.word, self.known()), ""
        return self.text

    @message.setter
    def message(self, text: str) -> None:
        self.text = text


class PipelineError(UnsupportedError):
    """A pipeline string is wrong: unknown pass or option, bad value, syntax. The command line exits with 2."""

    code = "E0302"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` most likely misspells, or None.

    A name that differs only in upper and lower case; else, of the names that difflib calls similar, the one with the fewest edits (a letter
    more, less, other, or two swapped), then one of the same letters, then one with the same beginning.
    """
    from difflib import get_close_matches

    names = [name for name in known if len(name) <= 100]
    for name in names:
        if name.lower() == word.lower() and name != word:
            return name
    similar = get_close_matches(word[:100], names, n=6, cutoff=0.6)
    if not similar:
        return None
    best = min(similar, key=lambda name: (edit_distance(word, name), sorted(name) != sorted(word), name[:1] != word[:1]))
    return best if edit_distance(word, best) <= (len(word) + 1) // 2 else None


def edit_distance(a: str, b: str) -> int:
    """Edits from `a` to `b`: letters inserted, deleted, replaced, or two neighbours swapped (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'X'?)` for the nearest known name; empty if none is near."""
    suggestion = nearest(word, known)
    return f" (did you mean '{suggestion}'?)" if suggestion else ""
