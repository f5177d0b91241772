"""One root of all errors, and what it carries: where, what, what was expected."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irtool.ir.source import Diagnostic


class Error(Exception):
    """Root of every error irtool raises on purpose; `diagnostics` say where.

    `str(error)` is the rendered text: `file:line:col: error: what` with source line and caret,
    one paragraph per diagnostic.
    """

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = ()) -> None:
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        self.message = message or (self.diagnostics[0].message if self.diagnostics else "")
        super().__init__(self.message)

    def __str__(self) -> str:
        if self.diagnostics:
            return "\n".join(d.render() for d in self.diagnostics)
        return self.message


class ParseError(Error):
    """The text is not IR; every problem found is in `diagnostics`."""


class VerifyError(Error):
    """A graph breaks an invariant; every violation is in `diagnostics`."""


class RunError(Error):
    """Running a graph failed: an operator refused its operands, or the graph raised."""


class PassError(Error):
    """A pass cannot do what was asked on this graph (the input's fault, not a bug)."""


class UnsupportedError(Error, NotImplementedError):
    """Not there yet: the text names the operator, pass or form."""


class PipelineError(UnsupportedError):
    """A pipeline string is wrong: unknown pass or option, bad value, syntax. The command line exits with 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'X'?)` for the nearest known name, or nothing when none is near."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{found[0]}'?)" if found else ""
