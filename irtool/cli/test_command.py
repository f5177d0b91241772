"""A user's command that decides whether a file is bad: exit status 0 means good, 125 unknown, any other bad."""
from __future__ import annotations

CANNOT_TELL = 125


def verdict(command: str, text: str) -> str:
    """The verdict of a command about a text, which is written to a file whose name is the last argument: "good", "bad" or "cannot tell".
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
            words = shlex.split(command)
            status = subprocess.run([*words, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    check=False).returncode
        except (OSError, ValueError) as error:
            raise UsageError(f"--test: '{command}' cannot be run: {getattr(error, 'strerror', None) or error}", code="E0805") from None
    return "good" if status == 0 else "cannot tell" if status == CANNOT_TELL else "bad"
