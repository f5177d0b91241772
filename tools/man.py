"""Man pages, made of what click knows of the command line: `irtool(1)`, and `irtool-opt(1)` and so on for the subcommands.

    python tools/man.py [FOLDER]        (build/man)
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import irtool
from irtool.cli.commands import COMMANDS
from irtool.cli.commands.completion import described
from irtool.cli.group import EXAMPLES, cli

EXIT_CODES = (
    ("0", "done, or equal"),
    ("1", "the input is wrong, a pass or a run failed, or a comparison differs"),
    ("2", "wrong command line, bad pipeline, or a file that cannot be opened"),
    ("3", "a bug of irtool; a reproducer is written"),
    ("130", "interrupted"),
)


LETTERS = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})


def escaped(text: str) -> str:
    """Text as troff takes it letter for letter."""
    text = text.translate(LETTERS)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


class Section(NamedTuple):
    """A part of a page: rows of a term and a line about it, or lines as they stand."""

    title: str
    rows: list[tuple[str, str]]
    lines: str = ""


class Page(NamedTuple):
    """What is to be said of a command."""

    summary: str
    usage: str
    sections: list[Section]
    see: list[str]
    """The names of other pages."""


def section(title: str, body: str) -> str:
    """One section of a page."""
    return f".SH {title.upper()}\n{body}\n" if body else ""


def tagged(rows: list[tuple[str, str]]) -> str:
    """Tagged paragraphs: what, and below it a line about it."""
    return "\n".join(f".TP\n.B {escaped(left)}\n{escaped(right)}" for left, right in rows)


def verbatim(text: str) -> str:
    """Lines as they stand."""
    return f".nf\n{escaped(text)}\n.fi" if text else ""


def troff(name: str, page: Page) -> str:
    """A page of section 1."""
    title = name.upper()
    head = f'.TH "{escaped(title)}" 1 "" "irtool {irtool.__version__}" "irtool"\n'
    head += section("Name", f"{escaped(name)} \\- {escaped(page.summary)}")
    body = [section(each.title, tagged(each.rows) or verbatim(each.lines)) for each in page.sections]
    see = section("See also", ",\n".join(f".BR {escaped(each)} (1)" for each in page.see))
    return "".join([head, section("Synopsis", verbatim(page.usage)), *body, see])


def command_page(name: str, info: dict[str, Any]) -> Page:
    """The page of a subcommand."""
    arguments = [param for param in info["params"] if param["param_type_name"] == "argument"]
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in info["params"]:
        if param["param_type_name"] == "option":
            choices = param["type"].get("choices")
            groups.setdefault(param["group"], []).append((param["shown"], param["help"] + (f" ({'|'.join(choices)})" if choices else "")))
    return Page(info["help"], " ".join([f"irtool {name} [options]", *(param["shown"] for param in arguments)]), [
        Section("Arguments", [(param["shown"], param["help"]) for param in arguments if param["help"]]),
        *(Section(group, rows) for group, rows in groups.items()),
        Section("Examples", [], (info["epilog"] or "").strip("\n")),
        Section("Exit status", list(EXIT_CODES)),
    ], ["irtool"])


def overview_page() -> Page:
    """The page of irtool."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, (group, summary) in COMMANDS.items():
        groups.setdefault(group, []).append((f"irtool {name}", summary))
    return Page((cli.help or "").rstrip("."), "irtool COMMAND [options] ...", [
        *(Section(group, rows) for group, rows in groups.items()),
        Section("Examples", [], EXAMPLES.strip("\n")),
        Section("Exit status", list(EXIT_CODES)),
    ], [f"irtool-{name}" for name in COMMANDS])


def contents() -> dict[str, Page]:
    """What there is to say of irtool and of every command, for man pages and for the site."""
    return {"irtool": overview_page(), **{f"irtool-{name}": command_page(name, info) for name, info in described().items()}}


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {f"{name}.1": troff(name, page) for name, page in contents().items()}


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
    print(f"{len(pages())} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
