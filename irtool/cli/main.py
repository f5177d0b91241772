"""`irtool`: dispatch to a subcommand by a static table, and turn what it raises into an exit code.

0 done; 1 the input is wrong, a pass or a run failed, or a comparison differs; 2 wrong command line, bad pipeline or unreadable file;
3 a bug of ours; 130 interrupted.
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

    from irtool.cli.command import Command
    from irtool.cli.console import Console
    from irtool.ir.errors import Error

COMMANDS = {    # name: (group of the help text, module, one line)
    "opt": ("Work on a graph", "irtool.cli.opt", "run passes on IR text"),
    "run": ("Work on a graph", "irtool.cli.run", "run a graph on arrays"),
    "plan": ("Work on a graph", "irtool.cli.plan", "show the plan that running a graph makes of it"),
    "grad": ("Work on a graph", "irtool.cli.grad", "gradients of a graph's inputs"),
    "vmap": ("Work on a graph", "irtool.cli.vmap", "batch a graph over a dimension of its inputs"),
    "transform": ("Work on a graph", "irtool.cli.transform", "transform a graph: vmap(grad(0))"),
    "gradcheck": ("Work on a graph", "irtool.cli.gradcheck", "compare gradients with differences of the outputs"),
    "fmt": ("Work on a graph", "irtool.cli.fmt", "print IR text canonically, or in another dialect"),
    "decompile": ("Work on a graph", "irtool.cli.decompile", "print a graph as TorchScript source"),
    "compile": ("To and from Python", "irtool.cli.compile", "compile TorchScript source to IR, without executing it"),
    "trace": ("To and from Python", "irtool.cli.trace", "trace a Python function over tensors to a graph"),
    "passes": ("Find out", "irtool.cli.passes", "list the passes and their options"),
    "ops": ("Find out", "irtool.cli.ops", "list the operators and what is known of each"),
    "completion": ("Find out", "irtool.cli.completion", "print a completion script for a shell"),
}
ENVIRONMENT = ("IRTOOL_ACCEPT", "IRTOOL_PLUGINS", "IRTOOL_CACHE_DIR")


def main(argv: Sequence[str] | None = None, stdin: BinaryIO | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None, *,
         stdin_name: str = "<stdin>", stdin_line: int = 1) -> int:
    """The entry point; gives the exit code. In-process use passes the words and streams, and nothing outlives the call.

    stdin gives bytes; stdin_name and stdin_line say which file, from which line on, standard input is a piece of.
    """
    own_process = argv is None
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        return guarded(lambda: print_version(stdout), own_process, stderr)
    if not own_process:
        return guarded(lambda: in_streams(words, stdin, stdout, stderr, stdin_name, stdin_line), False, stderr)
    import gc

    from irtool.cli.interrupt import listen, stop_listening, was_interrupted

    try:
        listen()
        gc.disable()        # one short command: what it makes lives until it ends
        code = guarded(lambda: in_streams(words, stdin, stdout, stderr, stdin_name, stdin_line, own_process), True, stderr)
        stop_listening()
        gc.freeze()         # or the interpreter's last act would be to walk all of it
    except KeyboardInterrupt:
        return 130
    return 130 if was_interrupted() else code


def guarded(run: Callable[[], int], own_process: bool, stderr: TextIO | None) -> int:
    """The exit code of what writes to standard output, which may be closed or full by then."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        code = 2
        if error.errno == EPIPE:    # `irtool opt ... | head`: nobody reads on
            code = 0
        else:
            print(f"error: cannot write to standard output: {(error.strerror or str(error)).lower()}", file=stderr or sys.stderr)
    if own_process and sys.stdout:      # the interpreter must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def print_version(stdout: TextIO | None) -> int:
    """`irtool --version`, which loads nothing else."""
    from irtool import __version__

    stream = stdout or sys.stdout or open(os.devnull)
    stream.write(f"irtool {__version__}\n")
    stream.flush()
    return 0


def in_streams(words: list[str], stdin: BinaryIO | None, stdout: TextIO | None, stderr: TextIO | None, stdin_name: str, stdin_line: int,
               own_process: bool = False) -> int:
    """One command line, on these streams."""
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
    """Find the subcommand, run it, report what it raises."""
    from irtool.cli.command import UsageError
    from irtool.cli.console import InternalError
    from irtool.cli.interrupt import raise_interrupt
    from irtool.ir.errors import Error, OutputError, PipelineError, did_you_mean

    warn_of_environment(console)
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        console.out(overview())
        return 0 if words else 2
    name, rest = words[0], words[1:]
    if name == "--version":
        return version(rest, console)
    debug = "--debug" in rest
    try:
        if name not in COMMANDS:
            raise UsageError(f"no such {'option' if name.startswith('-') else 'command'}: {name}{did_you_mean(name, COMMANDS)}")
        command = load(name)
        if "-h" in rest or "--help" in rest:
            console.out(command.help(name, COMMANDS[name][2]))
            return 0
        arguments = command.parse(rest)
        console.configure(arguments)
        return command.run(arguments, console)
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
            console.err(f"try: irtool {name + ' ' if name in COMMANDS else ''}--help")
        return 2
    except MemoryError as error:
        console.report(Error(f"not enough memory{': ' if str(error) else ''}{error}"))
        return 1
    except Exception as error:
        raise_interrupt()
        if debug:
            show_traceback(console)
        wrong = wrong_inputs(console)
        console.report(wrong or InternalError.of(error))
        return 1 if wrong else 3


def wrong_inputs(console: Console) -> Error | None:
    """What the verifier says of the texts that were read, for commands that do not ask it before; None where nothing is wrong."""
    from irtool.cli.pieces import parse_source
    from irtool.ir.errors import Error, VerifyError
    from irtool.passmanager import violations

    for source in console.sources:
        try:
            found = violations(parse_source(source))
        except Error:       # no IR: a pipeline, a Python file
            continue
        if found:
            return VerifyError(diagnostics=found)
    return None


def load(name: str) -> Command:
    """The `COMMAND` of a subcommand's module."""
    from importlib import import_module

    command: Command = import_module(COMMANDS[name][1]).COMMAND
    return command


def show_traceback(console: Console) -> None:
    """What Python shows for an exception that nobody catches."""
    import traceback

    console.err(traceback.format_exc())


def warn_of_environment(console: Console) -> None:
    """A misspelt variable that does nothing must say so."""
    from irtool.ir.errors import did_you_mean

    for name in os.environ:
        if name.startswith("IRTOOL_") and name not in ENVIRONMENT:
            console.err(f"warning: environment variable {name} is not known to irtool{did_you_mean(name, ENVIRONMENT)}")


def overview() -> str:
    """`irtool --help`."""
    from irtool.cli.command import two_columns

    out = ["usage: irtool COMMAND [options] ...", "", "Read, rewrite and run PyTorch-JIT IR text.", ""]
    groups: dict[str, list[str]] = {}
    for name, (group, _, summary) in COMMANDS.items():
        groups.setdefault(group, []).append(two_columns(name, summary, 14))
    for group, lines in groups.items():
        out += [f"{group}:", *lines, ""]
    out += ["Options:", two_columns("--version", "print the version (--version --json: of everything it uses)", 14),
            two_columns("-h, --help", "this text", 14), "",
            "  irtool opt --passes=dce,cse graph.ir", "  irtool run graph.ir inputs.npz", "  irtool COMMAND --help", ""]
    return "\n".join(out)


def version(words: list[str], console: Console) -> int:
    """`irtool --version [--json]`."""
    from irtool import __version__
    from irtool.cli.command import UsageError

    if words == ["--json"]:
        import json
        from importlib import metadata

        versions: dict[str, str | None] = {}
        for name in ("numpy", "scipy", "rich"):
            try:
                versions[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                versions[name] = None
        plugins = sorted(point.name for point in metadata.entry_points(group="irtool.passes"))
        console.out(json.dumps({"schema": 1, "irtool": __version__, "python": sys.version.split()[0], **versions, "plugins": plugins}))
        console.out("\n")
        return 0
    if words:
        console.report(UsageError(f"unexpected argument '{words[0]}'"))
        return 2
    console.out(f"irtool {__version__}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
