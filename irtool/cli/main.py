"""The entry point of `irtool`: runs one command line on its streams; exceptions become exit codes.

0 done; 1 the input is wrong, a pass or a run failed, or a comparison differs; 2 wrong command line, bad pipeline or unreadable file;
3 a bug of irtool; 130 interrupted.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import EPIPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, TextIO

    from irtool.cli.console import Console
    from irtool.ir.errors import Error

ENVIRONMENT = ("IRTOOL_ACCEPT", "IRTOOL_PLUGINS", "IRTOOL_CACHE_DIR")


def main(argv: Sequence[str] | None = None, stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None, *,
         stdin_name: str = "<stdin>", stdin_line: int = 1) -> int:
    """Run a command line; returns the exit code. Called with words and streams, it has no effect on the process.

    stdin: a stream of bytes; stdin_name, stdin_line: the file that standard input is a part of, and its first line there.
    """
    own_process = argv is None
    words = list(sys.argv[1:] if argv is None else argv)
    if not own_process:
        from irtool.ir.extensions import taken_away

        with taken_away():
            return guarded(lambda: in_streams(words, stdin, stdout, stderr, stdin_name, stdin_line), False, stderr)
    import gc

    from irtool.cli.interrupt import listen, stop_listening, was_interrupted

    try:
        listen()
        gc.disable()        # a short command has hardly any garbage
        code = guarded(lambda: in_streams(words, stdin, stdout, stderr, stdin_name, stdin_line, own_process), True, stderr)
        stop_listening()
        gc.freeze()         # saves the interpreter a last collection
    except KeyboardInterrupt:
        return 130
    return 130 if was_interrupted() else code


def guarded(run: Callable[[], int], own_process: bool, stderr: TextIO | None) -> int:
    """The exit code of `run`, also if standard output is closed or full."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        code = 2
        if error.errno == EPIPE:    # `irtool opt ... | head`: the reader has ended
            code = 0
        else:
            print(f"error: cannot write to standard output: {(error.strerror or str(error)).lower()} [E0709]", file=stderr or sys.stderr)
    if own_process and sys.stdout:      # the interpreter must not report the error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def in_streams(words: list[str], stdin: BinaryIO | None, stdout: TextIO | None, stderr: TextIO | None, stdin_name: str, stdin_line: int,
               own_process: bool = False) -> int:
    """Run one command line on these streams."""
    from irtool.cli.console import Console

    console = Console(stdin, stdout, stderr, stdin_name, stdin_line)
    console.owns_process = own_process
    if own_process:
        import warnings

        warnings.showwarning = console.show_warning
    code = dispatch(words, console)
    console.stdout.flush()
    return code


def dispatch(words: list[str], console: Console) -> int:
    """Run the subcommand, and report its errors."""
    from click.exceptions import Exit

    from irtool.cli.commands import COMMANDS
    from irtool.cli.exit_errors import InternalError, UsageError
    from irtool.cli.group import cli
    from irtool.cli.interrupt import raise_interrupt
    from irtool.ir.errors import Error, OutputError, PipelineError

    warn_of_environment(console)
    debug = "--debug" in words
    try:
        with cli.make_context("irtool", list(words), obj=console) as context:
            code: int = cli.invoke(context)
            return code
    except Exit as done:        # of `--help`
        return done.exit_code
    except (BrokenPipeError, OutputError):
        raise
    except Error as error:
        raise_interrupt()
        if debug:
            show_traceback(console)
        console.report(error)
        if isinstance(error, InternalError):
            return 3
        if not isinstance(error, UsageError | PipelineError):
            return 1
        if isinstance(error, UsageError) and not error.diagnostics and not console.json:
            console.err(f"try: irtool {words[0] + ' ' if words[0] in COMMANDS else ''}--help")
        return 2
    except MemoryError as error:
        console.report(Error(f"not enough memory{': ' if str(error) else ''}{error}", code="E0406"))
        return 1
    except Exception as error:
        raise_interrupt()
        if debug:
            show_traceback(console)
        wrong = wrong_inputs(console)
        console.report(wrong or InternalError.of(error))
        return 1 if wrong else 3


def wrong_inputs(console: Console) -> Error | None:
    """The verifier's errors in the texts that were read, for commands that do not verify; None if there are none."""
    from irtool.cli.source_places import parse_source
    from irtool.ir.errors import Error, VerifyError
    from irtool.passmanager import violations

    for source in console.sources:
        try:
            problems = violations(parse_source(source))
        except Error:       # not IR: a pipeline or a Python file
            continue
        if problems:
            return VerifyError(diagnostics=problems)
    return None


def show_traceback(console: Console) -> None:
    """Print Python's traceback of the current exception."""
    import traceback

    console.err(traceback.format_exc())


def warn_of_environment(console: Console) -> None:
    """Warn of environment variables `IRTOOL_...` that have no effect, perhaps misspelt."""
    from irtool.ir.errors import did_you_mean

    for name in os.environ:
        if name.startswith("IRTOOL_") and name not in ENVIRONMENT:
            console.warn(f"environment variable {name} is not known to irtool{did_you_mean(name, ENVIRONMENT)}", "W0104")


def __getattr__(name: str) -> object:
    """`irtool.cli.main.cli`, the click group, imported when first used, after Ctrl-C is handled."""
    if name == "cli":
        from irtool.cli import group

        return group.cli
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


if __name__ == "__main__":
    sys.exit(main())
