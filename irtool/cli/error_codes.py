"""The table of error codes, `error_codes.txt`, from which `irtool explain` and docs/errors.md are made. Messages contain only the code.

    E0103 unknown operator              code and title
    No operator has this name ...       the meaning
    > Take the name that ...            what to do
    $ irtool opt graph.ir               the smallest example of the error: a command,
    --- graph.ir                        and the files that it reads
    graph(%x : Tensor): ...
"""
from __future__ import annotations

import re
from pathlib import Path

GROUPS = {
    "E00": "General",
    "E01": "Text and parsing",
    "E02": "Verification",
    "E03": "Passes and pipelines",
    "E04": "Running",
    "E05": "Gradients, vmap and traces",
    "E06": "Python source",
    "E07": "Files and archives",
    "E08": "Command line",
    "E09": "Bugs of irtool",
    "W01": "Warnings",
}
CODE = re.compile(r"(?m)^(?=[EW]\d{4} )")


class Entry:
    """One code: its title, its meaning, what to do, and an example: a command and the files that it reads."""

    def __init__(self, text: str) -> None:
        """text: the entry in the table."""
        text, *files = re.split(r"(?m)^--- ", text)
        head, *lines = text.rstrip().split("\n")
        self.code = head[:5]
        self.title = head[6:]
        self.meaning = "\n".join(line for line in lines if line[:2] not in ("> ", "$ "))
        self.remedy = "\n".join(line[2:] for line in lines if line[:2] == "> ")
        self.command = "".join(line[2:] for line in lines if line[:2] == "$ ")
        self.files = {name: text.rstrip("\n") + "\n" for name, _, text in (file.partition("\n") for file in files)}

    def as_dict(self) -> dict[str, object]:
        """The entry as JSON data."""
        return {"code": self.code, "group": GROUPS[self.code[:3]], "title": self.title, "meaning": self.meaning, "remedy": self.remedy,
                "command": self.command, "files": self.files}


def read_entries() -> dict[str, Entry]:
    """Code -> entry, in order."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    return {entry.code: entry for entry in map(Entry, CODE.split(text)[1:])}
