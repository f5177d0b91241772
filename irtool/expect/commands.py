"""The commands of RUN lines: irtool's, joined by pipes. They run in this process; no shell is involved."""
from __future__ import annotations

import io
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

OPERATORS = "|<>;&"
"""Characters that a shell would read as operators, unless they are quoted."""


def split_command(text: str) -> list[list[str]]:
    """The words of each command of `irtool opt --passes=dce | irtool fmt -`, without `irtool`, which may be left out. Raises ValueError."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    stages: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            stages.append([])
        elif word and set(word) <= set(OPERATORS):
            raise ValueError(f"'{word}' is for a shell, and none runs here: commands are joined by '|'; quote the character if it is part "
                             "of a word")
        else:
            stages[-1].append(word)
    stages = [words[1:] if words[:1] == ["irtool"] else words for words in stages]
    if not all(stages):
        raise ValueError("a command is missing; expected one such as 'irtool opt --passes=dce'")
    return stages


def run_pipeline(stages: Sequence[list[str]], text: str, filename: str, line: int, folder: str) -> tuple[int, str, str]:
    """Run commands, each on the output of the one before, until one fails: (exit code, output, messages).

    filename, line: of the text that the first command reads. folder: the current folder while they run.
    """
    messages = ""
    for words in stages:
        code, text, err = run_command(words, text, filename, line, folder)
        messages += err
        filename, line = "<stdin>", 1
        if code:
            break
    return code, text, messages


def run_command(words: list[str], text: str, filename: str, line: int, folder: str) -> tuple[int, str, str]:
    """Run one command on a text: (exit code, output, messages)."""
    from irtool.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    home, environment = Path.cwd(), dict(os.environ)
    for name in environment:
        if name.startswith("IRTOOL_") or name == "FORCE_COLOR":
            del os.environ[name]
    os.chdir(folder)
    try:
        code = main(words, stdin=io.BytesIO(text.encode()), stdout=out, stderr=err, stdin_name=filename, stdin_line=line)
    finally:
        os.chdir(home)
        os.environ.update(environment)
    return code, out.getvalue(), err.getvalue()
