"""Errors with an exit code: a wrong command line (2), a bug of irtool (3)."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic


class UsageError(Error):
    """The command line is wrong, or names a file that cannot be opened: exit code 2."""

    code = "E0801"


class InternalError(Error):
    """A bug of irtool, with a file that reproduces it: exit code 3."""

    code = "E0901"

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = (), reproducer: str = "") -> None:
        super().__init__(message, diagnostics or [Diagnostic("error", message)])
        if reproducer:
            note = f"to see it again: irtool opt --run-reproducer {reproducer}"
            self.diagnostics[-1].notes.append(Diagnostic("note", note))

    @classmethod
    def of(cls, error: BaseException, where: str = "", reproducer: str = "") -> InternalError:
        """An error for an unexpected exception, whose message is one line."""
        text = str(error).partition("\n")[0]
        what = f"internal error{' ' + where if where else ''}: {type(error).__name__}{': ' + text if text else ''}"
        return cls(f"{what} (a bug of irtool; --debug shows where)", (), reproducer)
