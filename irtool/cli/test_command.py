"""A command of the user's that says whether a file is bad: 0 is good, 125 cannot tell, any other status is bad."""
from __future__ import annotations

CANNOT_TELL = 125


def verdict(command: str, text: str) -> str:
    """What a command says of a text, whose file's name is put behind it: "good", "bad" or "cannot tell". Raises UsageError where there is
    no such command."""
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
