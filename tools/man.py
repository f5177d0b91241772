"""Man pages, made of what click knows of the command line: `irtool(1)`, and `irtool-opt(1)` and so on for the subcommands.

    python tools/man.py [FOLDER]        (build/man)
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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


def section(title: str, body: str) -> str:
    """One section of a page."""
    return f".SH {title.upper()}\n{body}\n" if body else ""


def tagged(rows: list[tuple[str, str]]) -> str:
    """Tagged paragraphs: what, and below it a line about it."""
    return "\n".join(f".TP\n.B {escaped(left)}\n{escaped(right)}" for left, right in rows)


def verbatim(text: str) -> str:
    """Lines as they stand."""
    return f".nf\n{escaped(text)}\n.fi" if text else ""


def page(name: str, summary: str, usage: str, sections: list[str]) -> str:
    """A page of section 1."""
    title = name.upper()
    head = f'.TH "{escaped(title)}" 1 "" "irtool {irtool.__version__}" "irtool"\n'
    return head + section("Name", f"{escaped(name)} \\- {escaped(summary)}") + section("Synopsis", verbatim(usage)) + "".join(sections)


def command_page(name: str, info: dict[str, Any]) -> str:
    """The page of a subcommand."""
    arguments = [param for param in info["params"] if param["param_type_name"] == "argument"]
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in info["params"]:
        if param["param_type_name"] == "option":
            choices = param["type"].get("choices")
            groups.setdefault(param["group"], []).append((param["shown"], param["help"] + (f" ({'|'.join(choices)})" if choices else "")))
    usage = " ".join([f"irtool {name} [options]", *(param["shown"] for param in arguments)])
    return page(f"irtool-{name}", info["help"], usage, [
        section("Arguments", tagged([(param["shown"], param["help"]) for param in arguments if param["help"]])),
        *(section(group, tagged(rows)) for group, rows in groups.items()),
        section("Examples", verbatim((info["epilog"] or "").strip("\n"))),
        section("Exit status", tagged(list(EXIT_CODES))),
        section("See also", ".BR irtool (1)"),
    ])


def overview_page() -> str:
    """The page of irtool."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, (group, summary) in COMMANDS.items():
        groups.setdefault(group, []).append((f"irtool {name}", summary))
    return page("irtool", (cli.help or "").rstrip("."), "irtool COMMAND [options] ...", [
        *(section(group, tagged(rows)) for group, rows in groups.items()),
        section("Examples", verbatim(EXAMPLES.strip("\n"))),
        section("Exit status", tagged(list(EXIT_CODES))),
        section("See also", ",\n".join(f".BR irtool\\-{name} (1)" for name in COMMANDS)),
    ])


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {"irtool.1": overview_page(), **{f"irtool-{name}.1": command_page(name, info) for name, info in described().items()}}


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
    print(f"{len(pages())} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
