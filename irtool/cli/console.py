"""The streams of a command: input, results and messages. Only this module decides on colours and on JSON diagnostics."""
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
"""The number of bytes at the start of a file by which its kind is recognised."""
COLORS = {"error": "31", "warning": "35", "remark": "34", "note": "36", "+": "32", "-": "31", "@": "36"}


def are_weights(first: bytes) -> bool:
    """Are these the first bytes of a file of weights other than `.npz`, or of an archive?"""
    if first[:4] != b"PK\x03\x04":
        return first[7:9] == b"\0{" or first[:4] == b"\x80\x02\x8a\x0a"
    return b"/" in first[30:30 + int.from_bytes(first[26:28], "little")] and b".npy" not in first[30:300]


def arrays_of(memory: Any, path: str, has_attributes: bool) -> Archive:
    """The weights in such a file. Raises Error."""
    from irtool.archives.file_kinds import weights_in

    return weights_in(memory, path, has_attributes)


class Console:
    """The three streams of one call of `main`, and the form of messages.

    stdin_name, stdin_line: the file that standard input is a part of (an expect file), and its first line there, for messages.
    """

    def __init__(self, stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None,
                 stdin_name: str = "<stdin>", stdin_line: int = 1) -> None:
        self._stdin = stdin
        self._is_stdin_read = False
        self.stdout = stdout or sys.stdout or open(os.devnull)      # None if the process started with it closed (`>&-`)
        self.stderr = stderr or sys.stderr or open(os.devnull)
        self.stdin_name = stdin_name
        self.stdin_line = stdin_line
        self.color = False
        """Are messages in colours?"""
        self.paints = False
        """Is the result coloured? Never if it goes to a file or a pipe."""
        self.json = False
        self.max_errors = 20
        self.types = "full"
        """The form of types in printed IR (`irtool.text.shown_types`)."""
        self.errors = 0
        """Errors reported so far."""
        self.owns_process = False
        """Does the process run only this command?"""
        self.progress: Progress | None = None
        """The progress line, while one is shown."""
        self.pass_name = ""
        """The pass that is running, for messages."""
        self.sources: list[SourceFile] = []
        """The texts read so far."""

    def configure(self, arguments: Arguments) -> None:
        """Set the options that every command has."""
        self.color = wants_color(arguments.color, self.stderr)
        self.paints = self.is_terminal() and wants_color(arguments.color, self.stdout)
        self.json = arguments.diagnostics_format == "json"
        self.max_errors = arguments.max_errors
        self.types = getattr(arguments, "types", "full")

    # -- input
    def read_bytes(self, path: str, is_wrong: Callable[[bytes], bool] = lambda first: False) -> bytes:
        """The content of a file (`-`: standard input). Raises UsageError if it cannot be read.

        is_wrong: a function of the first bytes; if it returns True, only these are read and returned.
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
            raise Error(f"{path}: not enough memory for its content", code="E0406") from None

    def read(self, path: str) -> SourceFile:
        """A file as text; for an archive, a method of it (`irtool.cli.opener`).

        Raises UsageError if it cannot be read, ParseError if it is not UTF-8 or contains a NUL byte, Error for a damaged archive.
        """
        from irtool.cli.opener import archive_at, is_archive, read_archive

        archive = archive_at(path)
        if archive is not None:
            return read_archive(*archive)
        data = self.read_bytes(path, lambda first: b"\0" in first and not is_archive(first))
        return read_archive(self.stdin_name if path == "-" else path, "", data) if is_archive(data) else self.text_of(data, path)

    def text_of(self, data: bytes, path: str) -> SourceFile:
        """The text of a file that was read as bytes. Raises ParseError."""
        name = self.stdin_name if path == "-" else path
        source = decode(data, name, self.stdin_line if path == "-" else 1)
        self.sources.append(source)
        return source

    def read_archive(self, path: str, has_attributes: bool = False) -> Archive:
        """The arrays of an `.npz`, a `.safetensors`, or a file of torch.save. Raises UsageError if it cannot be read, DamagedError if it is
        none of these. has_attributes: include attributes of a module that are no parameters or buffers."""
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
        """Write to the result stream, as UTF-8 with LF on every platform; on a terminal, control characters are escaped.

        language: `ir`, whose types have the form of `--types`, or `python`; both are highlighted on a terminal. Raises BrokenPipeError or
        OutputError.
        """
        if language == "ir":
            text = self.with_types(text)
        if self.is_terminal():
            text = clean(text)
            if language and self.paints:
                from irtool.cli.show.highlight import painted

                text = painted(text, language)
        self.write(text)

    def write(self, text: str) -> None:
        """Write a text without control characters to the result stream. Raises BrokenPipeError or OutputError."""
        try:
            write_text(self.stdout, text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(reason(error) if error.strerror else "it is closed") from error

    def tell(self, text: str) -> None:
        """Write a text for people (names and values) to the result stream, with control characters escaped."""
        self.out(clean(text))

    def err(self, text: str) -> None:
        """Write one or several lines to the message stream, with control characters escaped."""
        self._err(clean(text))

    def _err(self, text: str) -> None:
        """The same for text that is clean, or highlighted."""
        if self.progress is not None:
            self.progress.hide()
        try:
            write_text(self.stderr, text if text.endswith("\n") else text + "\n")
        except OSError:     # the message is lost; the exit code is not
            pass

    def is_terminal(self) -> bool:
        """Is the result stream a terminal?"""
        return is_terminal(self.stdout)

    def is_watched(self) -> bool:
        """Is the message stream the terminal of this process?"""
        return self.owns_process and not self.json and is_terminal(self.stderr) and os.environ.get("TERM") != "dumb"

    def width(self) -> int:
        """The number of columns of the terminal, for the result."""
        if not self.is_terminal():
            return 140
        from shutil import get_terminal_size

        return get_terminal_size().columns

    def save(self, path: str, text: str, language: str = "") -> None:
        """Write the result to a file (`-`: the result stream), completely or not at all. Raises UsageError if it cannot be written."""
        if path == "-":
            self.out(text, language)
        elif language == "ir" and self.types != "full":
            raise UsageError(f"--types={self.types} is for readers: irtool could not read {path} again", code="E0801")
        else:
            write_whole(path, encoded(text))

    # -- messages
    def show_warning(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
                     line: str | None = None) -> None:
        """Show a Python warning (`warnings.showwarning`), with its place if it has no code and the place is not in irtool."""
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
        """A rendered diagnostic, in colours if colours are on."""
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
        """Write IR to the message stream, highlighted if it is a terminal."""
        text = clean(self.with_types(text))
        if self.color and is_terminal(self.stderr):
            from irtool.cli.show.highlight import painted

            text = painted(text, "ir")
        self._err(text)

    def show_diff(self, lines: Iterable[str]) -> None:
        """Write a unified diff to the message stream, in colours if colours are on."""
        self._err("\n".join(self.coloured(lines, self.color)))

    def out_diff(self, lines: Iterable[str]) -> None:
        """Write a unified diff to standard output, in colours on a terminal."""
        self.out("".join([f"{line}\n" for line in self.coloured(lines, self.color and self.is_terminal())]))

    def with_types(self, text: str) -> str:
        """IR with the types that `--types` asks for."""
        if self.types == "full":
            return text
        from irtool.text.shown_types import with_types

        return with_types(text, self.types)

    def coloured(self, lines: Iterable[str], is_wanted: bool) -> list[str]:
        """Lines of a unified diff of IR."""
        if self.types != "full":
            from irtool.text.shown_types import diff_with_types

            lines = diff_with_types(lines, self.types)
        lines = map(clean, lines)
        return [f"\x1b[{COLORS[line[0]]}m{line}\x1b[0m" if is_wanted and line[:1] in ("+", "-", "@") else line for line in lines]


def wants_color(flag: str, stream: TextIO) -> bool:
    """Are messages in colours? Decided by the option, NO_COLOR, FORCE_COLOR, or whether the stream is a terminal, in this order."""
    if flag != "auto":
        return flag == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Is a stream a terminal?"""
    return hasattr(stream, "isatty") and stream.isatty()


def decode(data: bytes, name: str, first_line: int = 1) -> SourceFile:
    """Bytes as a text file. Raises ParseError at the first byte that is not UTF-8, or that is NUL."""
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
    """Write a file completely or not at all, by a temporary file beside it. Raises UsageError."""
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
    """The same for a path that is a regular file or does not exist. Raises OSError."""
    from irtool.interop.whole_file import whole_file

    with whole_file(target) as file:
        file.write(data)



def write_special(path: str, data: bytes) -> None:
    """Write to a device or a pipe. Raises OSError."""
    with open(path, "wb") as file:
        file.write(data)


def all_of(stream: BinaryIO, is_wrong: Callable[[bytes], bool]) -> bytes:
    """The bytes of a stream; only the first ones if `is_wrong` of them, since a device may have no end. Raises OSError."""
    first = stream.read(FIRST)
    if len(first) < FIRST or is_wrong(first):
        return first
    if stream.seekable():           # else the memory would double
        stream.seek(-len(first), os.SEEK_CUR)
        return stream.read()
    return first + stream.read()


def reason(error: OSError) -> str:
    """The system's message for an error, in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def write_text(stream: TextIO, text: str) -> None:
    """Write text as UTF-8 with LF if the stream has a byte layer, else unchanged (a StringIO)."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text)
        return
    stream.flush()
    buffer.write(encoded(text))
    buffer.flush()


def encoded(text: str) -> bytes:
    """Text as UTF-8; bytes of the input that were no UTF-8 are restored, lone surrogates are escaped."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
