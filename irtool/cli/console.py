"""What a command talks to: input bytes, the result stream, the message stream; colours and JSON of diagnostics are decided here once."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from irtool.cli.command import UsageError
from irtool.ir.errors import Error, ParseError
from irtool.ir.source import Diagnostic, SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from irtool.cli.command import Arguments


class InternalError(Error):
    """A bug of irtool, with the file that shows it again: exit code 3."""

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = (), reproducer: str = "") -> None:
        super().__init__(message, diagnostics or [Diagnostic("error", message)])
        if reproducer:
            note = f"to see it again: irtool opt --run-reproducer {reproducer}"
            self.diagnostics[-1].notes.append(Diagnostic("note", note))

    @classmethod
    def of(cls, error: BaseException, where: str = "", reproducer: str = "") -> InternalError:
        """An unexpected exception as one line."""
        text = str(error).partition("\n")[0]
        what = f"internal error{' ' + where if where else ''}: {type(error).__name__}{': ' + text if text else ''}"
        return cls(f"{what} (a bug of irtool; --debug shows where)", (), reproducer)


class OutputError(OSError):
    """The result stream takes no more (a full disk): exit code 2."""


COLORS = {"error": "31", "warning": "35", "remark": "34", "note": "36", "+": "32", "-": "31", "@": "36"}


class Console:
    """The three streams of one call of `main`, and how messages are shown on them.

    `stdin_name` and `stdin_line` say what standard input is a piece of (a case of an expect file): messages then show that file's
    name and lines.
    """

    def __init__(self, stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None,
                 stdin_name: str = "<stdin>", stdin_line: int = 1) -> None:
        self._stdin = stdin
        self.stdout = stdout or sys.stdout or open(os.devnull)      # started with it closed (`>&-`): writing fails
        self.stderr = stderr or sys.stderr or open(os.devnull)
        self.stdin_name = stdin_name
        self.stdin_line = stdin_line
        self.color = False
        self.json = False
        self.max_errors = 20
        self.errors = 0
        """Errors reported so far."""
        self.owns_process = False
        """Is the process there for this one command?"""
        self.pass_name = ""
        """The pass that is running, for messages."""

    def configure(self, arguments: Arguments) -> None:
        """Take the flags that every command has."""
        self.color = wants_color(arguments.color, self.stderr)
        self.json = arguments.diagnostics_format == "json"
        self.max_errors = arguments.max_errors

    # -- input
    def read_bytes(self, path: str) -> bytes:
        """Content of a file (`-`: standard input). Raises UsageError when it cannot be opened or read."""
        if path == "-":
            stream = self._stdin if self._stdin is not None else getattr(sys.stdin, "buffer", None)
            return stream.read() if stream is not None else b""
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise UsageError(f"{path}: {reason(error)}") from None
        except ValueError as error:         # a NUL byte in the name
            raise UsageError(f"{path!r}: {error}") from None

    def read(self, path: str) -> SourceFile:
        """A file as text. Raises UsageError when it cannot be read, ParseError where it is not UTF-8 or holds a NUL byte."""
        name = self.stdin_name if path == "-" else path
        first = self.stdin_line if path == "-" else 1
        return decode(self.read_bytes(path), name, first)

    # -- output
    def out(self, text: str) -> None:
        """Write to the result stream: UTF-8 and LF whatever the platform says. Raises BrokenPipeError or OutputError."""
        try:
            write_text(self.stdout, text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(reason(error) if error.strerror else "it is closed") from error

    def err(self, text: str) -> None:
        """Write a line, or several, to the message stream."""
        try:
            write_text(self.stderr, text if text.endswith("\n") else text + "\n")
        except OSError:     # nobody can be told; result and exit code still say what happened
            pass

    def is_terminal(self) -> bool:
        """Does the result go to a person?"""
        return hasattr(self.stdout, "isatty") and self.stdout.isatty()

    def save(self, path: str, text: str) -> None:
        """Write the result to a file (`-`: the result stream), whole or not at all. Raises UsageError when it cannot be written."""
        if path == "-":
            self.out(text)
        else:
            write_whole(path, text.encode())

    # -- messages
    def report(self, problem: Error | Diagnostic) -> None:
        """Show an error (all its diagnostics) or one diagnostic."""
        if isinstance(problem, Error):
            diagnostics = problem.diagnostics or [Diagnostic("error", problem.message)]
        else:
            diagnostics = [problem]
        for diagnostic in diagnostics:
            self._show(diagnostic)

    def _show(self, diagnostic: Diagnostic) -> None:
        if diagnostic.severity == "error":
            self.errors += 1
            if self.errors > self.max_errors:
                if self.errors == self.max_errors + 1:
                    self.err(f"... more errors are not shown (--max-errors={self.max_errors})")
                return
        if self.json:
            import json

            self.err(json.dumps({**diagnostic.as_dict(), "pass": self.pass_name or None}, ensure_ascii=False))
        else:
            self.err(self.painted(diagnostic.render()))

    def painted(self, text: str) -> str:
        """A rendered diagnostic in colours, where colours are wanted."""
        if not self.color:
            return text
        lines = []
        for line in text.split("\n"):
            for severity in ("error", "warning", "remark", "note"):
                before, mark, after = line.partition(f"{severity}: ")
                if mark and (not before or before.endswith(": ")):
                    line = f"\x1b[1m{before}\x1b[{COLORS[severity]}m{mark}\x1b[0m{after}"
                    break
            lines.append(line)
        return "\n".join(lines)

    def painted_diff(self, lines: Iterable[str]) -> str:
        """A unified diff in colours, where colours are wanted."""
        if not self.color:
            return "\n".join(lines)
        return "\n".join(f"\x1b[{COLORS[line[0]]}m{line}\x1b[0m" if line[:1] in ("+", "-", "@") else line for line in lines)


def wants_color(flag: str, stream: TextIO) -> bool:
    """flag > NO_COLOR > FORCE_COLOR > a terminal that is not dumb."""
    if flag != "auto":
        return flag == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return hasattr(stream, "isatty") and stream.isatty() and os.environ.get("TERM") != "dumb"


def decode(data: bytes, name: str, first_line: int = 1) -> SourceFile:
    """Bytes as a text file. Raises ParseError at the first byte that is not UTF-8, or is NUL."""
    problem, at = "", len(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        problem, at = f"invalid UTF-8 (byte 0x{data[error.start]:02x})", error.start
        text = data.decode(errors="replace")
    nul = data.find(b"\0", 0, at)
    if nul >= 0:
        problem, at = "NUL byte: is this a text file?", nul
    source = SourceFile(name, text, first_line)
    if problem:
        before = data[:at].decode(errors="replace")
        column = len(before) - before.rfind("\n")
        raise ParseError(diagnostics=[Diagnostic("error", problem, source, first_line + before.count("\n"), column, column + 1)])
    return source


def write_whole(path: str, data: bytes) -> None:
    """Write a file by way of a temporary sibling, so that it is there whole or not at all. Raises UsageError."""
    target = os.path.realpath(path)         # through a link to a file: the file changes, the link stays
    if os.path.exists(target) and not os.path.isfile(target):
        write_special(path, data)           # /dev/null and pipes cannot be replaced by a rename
        return
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise UsageError(f"cannot write {path}: {reason(error)}") from None


def write_special(path: str, data: bytes) -> None:
    """Write to a device or a pipe."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """What went wrong, as the system says it, in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def write_text(stream: TextIO, text: str) -> None:
    """Write text as UTF-8 with LF where the stream has a byte layer, else as it is (a StringIO)."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text)
        return
    stream.flush()
    buffer.write(text.encode("utf-8", "surrogateescape"))
    buffer.flush()
