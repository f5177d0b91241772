"""What a command talks to: input bytes, the result stream, the message stream; colours and JSON of diagnostics are decided here once."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import Error, OutputError, ParseError
from irtool.ir.source import Diagnostic, SourceFile, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, TextIO

    from irtool.cli.command import Arguments
    from irtool.cli.show.progress import Progress
    from irtool.interop.npz import Archive


FIRST = 1 << 16
"""Bytes of a file by which to see that it is of another kind."""
COLORS = {"error": "31", "warning": "35", "remark": "34", "note": "36", "+": "32", "-": "31", "@": "36"}


def are_weights(first: bytes) -> bool:
    """Do the first bytes of a file say that it holds arrays, and is no `.npz`? It may be an archive."""
    if first[:4] != b"PK\x03\x04":
        return first[7:9] == b"\0{" or first[:4] == b"\x80\x02\x8a\x0a"
    return b"/" in first[30:30 + int.from_bytes(first[26:28], "little")] and b".npy" not in first[30:300]


def arrays_of(memory: Any, path: str, has_attributes: bool) -> Archive:
    """The weights of such a file. Raises Error."""
    from irtool.archives.file_kinds import weights_in

    return weights_in(memory, path, has_attributes)


class Console:
    """The three streams of one call of `main`, and how messages are shown on them.

    `stdin_name` and `stdin_line` say what standard input is a piece of (a case of an expect file): messages then show that file's
    name and lines.
    """

    def __init__(self, stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None,
                 stdin_name: str = "<stdin>", stdin_line: int = 1) -> None:
        self._stdin = stdin
        self._is_stdin_read = False
        self.stdout = stdout or sys.stdout or open(os.devnull)      # started with it closed (`>&-`): writing fails
        self.stderr = stderr or sys.stderr or open(os.devnull)
        self.stdin_name = stdin_name
        self.stdin_line = stdin_line
        self.color = False
        """Are messages in colours?"""
        self.paints = False
        """Is the result in colours? Never where it goes to a file or a pipe."""
        self.json = False
        self.max_errors = 20
        self.errors = 0
        """Errors reported so far."""
        self.owns_process = False
        """Is the process there for this one command?"""
        self.progress: Progress | None = None
        """The line that says what is being done, while there is one."""
        self.pass_name = ""
        """The pass that is running, for messages."""
        self.sources: list[SourceFile] = []
        """Texts that were read."""

    def configure(self, arguments: Arguments) -> None:
        """Take the flags that every command has."""
        self.color = wants_color(arguments.color, self.stderr)
        self.paints = self.is_terminal() and wants_color(arguments.color, self.stdout)
        self.json = arguments.diagnostics_format == "json"
        self.max_errors = arguments.max_errors

    # -- input
    def read_bytes(self, path: str, is_wrong: Callable[[bytes], bool] = lambda first: False) -> bytes:
        """Content of a file (`-`: standard input). Raises UsageError when it cannot be opened or read.

        is_wrong: says of the first bytes whether to read no further; then these are the content.
        """
        try:
            if path == "-":
                if self._is_stdin_read:
                    raise UsageError("standard input is named twice, and can be read once")
                self._is_stdin_read = True
                stream = self._stdin if self._stdin is not None else getattr(sys.stdin, "buffer", None)
                return all_of(stream, is_wrong) if stream is not None else b""
            with open(path, "rb") as file:
                return all_of(file, is_wrong)
        except OSError as error:
            raise UsageError(f"{path}: {reason(error)}", code="E0707") from None
        except ValueError as error:         # a NUL byte in the name
            raise UsageError(f"{path!r}: {error}", code="E0707") from None
        except MemoryError:
            raise Error(f"{path}: not enough memory for what it holds", code="E0406") from None

    def read(self, path: str) -> SourceFile:
        """A file as text; for an archive, a method of it (`irtool.cli.opener`).

        Raises UsageError when it cannot be read, ParseError where it is not UTF-8 or holds a NUL byte, Error for a damaged archive.
        """
        from irtool.cli.opener import archive_at, read_archive

        archive = archive_at(path)
        if archive is not None:
            return read_archive(*archive)
        name = self.stdin_name if path == "-" else path
        first = self.stdin_line if path == "-" else 1
        source = decode(self.read_bytes(path, lambda first: b"\0" in first), name, first)
        self.sources.append(source)
        return source

    def read_archive(self, path: str, has_attributes: bool = False) -> Archive:
        """The arrays of a `.npz`, a `.safetensors`, or what torch.save wrote. Raises UsageError when it cannot be read, DamagedError where
        it is none. has_attributes: of a module not only parameters and buffers."""
        from irtool.interop.npz import decode, decode_stream

        if path == "-" or not os.path.isfile(path):
            data = self.read_bytes(path, lambda first: first[:2] != b"PK" and not are_weights(first))
            return arrays_of(data, path, has_attributes) if are_weights(data) else decode(data, path)
        try:
            with open(path, "rb") as file:
                if are_weights(file.read(FIRST)):
                    from irtool.archives.container import in_memory

                    return arrays_of(*in_memory(path), has_attributes)
                file.seek(0)
                return decode_stream(file, os.fstat(file.fileno()).st_size, path)
        except OSError as error:
            raise UsageError(f"{path}: {reason(error)}", code="E0707") from None

    # -- output
    def out(self, text: str, language: str = "") -> None:
        """Write to the result stream: UTF-8 and LF whatever the platform says; what commands a terminal does not reach one.

        language: `ir` or `python`, which have colours on a terminal. Raises BrokenPipeError or OutputError.
        """
        if self.is_terminal():
            text = clean(text)
            if language and self.paints:
                from irtool.cli.show.highlight import painted

                text = painted(text, language)
        self.write(text)

    def write(self, text: str) -> None:
        """Write to the result stream what may go to a terminal as it is. Raises BrokenPipeError or OutputError."""
        try:
            write_text(self.stdout, text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(reason(error) if error.strerror else "it is closed") from error

    def tell(self, text: str) -> None:
        """Write to the result stream what is for people to read: names and values, without what commands a terminal."""
        self.out(clean(text))

    def err(self, text: str) -> None:
        """Write a line, or several, to the message stream, without what commands a terminal."""
        self._err(clean(text))

    def _err(self, text: str) -> None:
        """The same of text that is clean, or painted."""
        if self.progress is not None:
            self.progress.hide()
        try:
            write_text(self.stderr, text if text.endswith("\n") else text + "\n")
        except OSError:     # nobody can be told; result and exit code still say what happened
            pass

    def is_terminal(self) -> bool:
        """Does the result go to a person?"""
        return is_terminal(self.stdout)

    def is_watched(self) -> bool:
        """Does a person read the messages of this process, line by line?"""
        return self.owns_process and not self.json and is_terminal(self.stderr) and os.environ.get("TERM") != "dumb"

    def width(self) -> int:
        """Columns for the result: those of the terminal."""
        if not self.is_terminal():
            return 140
        from shutil import get_terminal_size

        return get_terminal_size().columns

    def save(self, path: str, text: str, language: str = "") -> None:
        """Write the result to a file (`-`: the result stream), whole or not at all. Raises UsageError when it cannot be written."""
        if path == "-":
            self.out(text, language)
        else:
            write_whole(path, encoded(text))

    # -- messages
    def show_warning(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
                     line: str | None = None) -> None:
        """Show a Python warning (`warnings.showwarning`); with its place where that is not irtool's and it has no code."""
        code = getattr(category, "code", "")
        source = None if code or f"{os.sep}irtool{os.sep}" in filename else SourceFile(filename, "")
        self.report(Diagnostic("warning", str(message), source, lineno if source is not None else 0, code=code or "W0106"))

    def warn(self, message: str, code: str) -> None:
        """Show a warning without a place."""
        self.report(Diagnostic("warning", message, code=code))

    def report(self, problem: Error | Diagnostic) -> None:
        """Show an error (all its diagnostics) or one diagnostic."""
        for diagnostic in problem.coded() if isinstance(problem, Error) else [problem]:
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

            text = json.dumps({**diagnostic.as_dict(), "pass": self.pass_name or None}, ensure_ascii=False)
            self._err(clean(text, "\\u{:04x}"))
        else:
            self._err(self.painted(clean(diagnostic.render())))

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

    def show_ir(self, text: str) -> None:
        """Write IR to the message stream, in colours where a person reads them."""
        text = clean(text)
        if self.color and is_terminal(self.stderr):
            from irtool.cli.show.highlight import painted

            text = painted(text, "ir")
        self._err(text)

    def show_diff(self, lines: Iterable[str]) -> None:
        """Write a unified diff to the message stream, in colours where colours are wanted."""
        lines = map(clean, lines)
        if self.color:
            lines = (f"\x1b[{COLORS[line[0]]}m{line}\x1b[0m" if line[:1] in ("+", "-", "@") else line for line in lines)
        self._err("\n".join(lines))


def wants_color(flag: str, stream: TextIO) -> bool:
    """flag > NO_COLOR > FORCE_COLOR > a terminal that is not dumb."""
    if flag != "auto":
        return flag == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Is somebody at the end of a stream?"""
    return hasattr(stream, "isatty") and stream.isatty()


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
        raise ParseError(diagnostics=[Diagnostic("error", problem, source, first_line + before.count("\n"), column, column + 1)],
                         code="E0110")
    return source


def write_whole(path: str, data: bytes) -> None:
    """Write a file by way of a temporary sibling, so that it is there whole or not at all. Raises UsageError."""
    try:
        target = os.path.realpath(path)         # through a link to a file: the file changes, the link stays
        if os.path.exists(target) and not os.path.isfile(target):
            write_special(path, data)           # /dev/null and pipes cannot be replaced by a rename
        else:
            replace_whole(target, data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason(error)}", code="E0708") from None
    except ValueError as error:                 # a NUL byte in the name
        raise UsageError(f"cannot write {path!r}: {error}", code="E0708") from None


def replace_whole(target: str, data: bytes) -> None:
    """The same, of what is a file or nothing yet. Raises OSError."""
    from irtool.interop.whole_file import whole_file

    with whole_file(target) as file:
        file.write(data)



def write_special(path: str, data: bytes) -> None:
    """Write to a device or a pipe. Raises OSError."""
    with open(path, "wb") as file:
        file.write(data)


def all_of(stream: BinaryIO, is_wrong: Callable[[bytes], bool]) -> bytes:
    """The bytes of a stream; where its first ones are wrong, these alone: a device may have no end. Raises OSError."""
    first = stream.read(FIRST)
    if len(first) < FIRST or is_wrong(first):
        return first
    if stream.seekable():           # or twice the memory would be needed
        stream.seek(-len(first), os.SEEK_CUR)
        return stream.read()
    return first + stream.read()


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
    buffer.write(encoded(text))
    buffer.flush()


def encoded(text: str) -> bytes:
    """Text as UTF-8; bytes that are no UTF-8 come out as they went in, a half of a character as its number."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
