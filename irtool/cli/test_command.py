"""A user's command that decides whether a file is bad: exit status 0 means good, 125 unknown, any other bad."""
from __future__ import annotations

from irtool.cli import converters
from irtool.cli.command import Converted, option, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

CANNOT_TELL = 125
GOOD, BAD = "good", "bad"

command_options = together(
    option("--test", metavar="CMD", help="a command that says whether a file is bad"),
    option("--timeout", metavar="SECONDS", type=Converted(converters.tolerance), default=300.0,
           help="end a CMD that takes longer: its verdict is unknown (300)"),
)


def verdict(command: str, text: str, timeout: float) -> str:
    """The verdict of a command about a text, which is written to a file whose name is the last argument: GOOD, BAD, or why it is neither.
    Raises UsageError if the command does not exist."""
    import os
    import shlex
    import subprocess
    import tempfile

    from irtool.cli.exit_errors import UsageError

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "candidate.ir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            process = subprocess.Popen([*shlex.split(command), path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        except (OSError, ValueError) as error:
            raise UsageError(f"--test: '{command}' cannot be run: {getattr(error, 'strerror', None) or error}", code="E0805") from None
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return f"it takes longer than {timeout:g} s (--timeout)"
        finally:
            if process.poll() is None:      # also after Ctrl-C, which its own session does not get
                end(process)
    return GOOD if status == 0 else f"its exit status is {CANNOT_TELL}" if status == CANNOT_TELL else BAD


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started."""
    import os
    import signal

    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
