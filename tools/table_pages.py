"""Pages of the site that are made of tables and docstrings: passes, families of operators, commands, public names (`make docs`)."""
from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from importlib import import_module
from itertools import groupby

import man

import irtool
from irtool.cli.commands.passes import example, shown_default
from irtool.dispatch.batch_rules import rule_of, why_no_rule
from irtool.ops import FAMILIES
from irtool.ops.op import Op
from irtool.passes import AREAS, BY_NAME, Pass
from irtool.pipelines import PRESETS

CODE = re.compile(r"(`[^`]*`)")
LETTERS = str.maketrans({"<": "&lt;", ">": "&gt;", "*": "\\*", "_": "\\_", "|": "\\|", "[": "\\[", "]": "\\]", "#": "\\#", "\\": "\\\\"})
MEMBERS = {name: "false" for name in ("Tensor", "torch", "PASSES", "OPS")} | {"Executor": "[run, vjp, record, plan_for, stats]"}
"""The members that are shown, where that is not all: those of others are torch's, or have pages of their own."""

Pages = dict[str, str]
"""Address -> Markdown."""


# -- Markdown
def prose(text: str) -> str:
    """Plain text, in which backticks quote code, as Markdown."""
    return "".join([part if i % 2 else part.translate(LETTERS) for i, part in enumerate(CODE.split(text))])


def cell(text: str) -> str:
    """The same in a row of a table, where `|` ends a cell."""
    words = " ".join(text.split())
    return "".join([part.replace("|", "\\|") if i % 2 else part.translate(LETTERS) for i, part in enumerate(CODE.split(words))])


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table, if there are any rows; head: the titles of its columns, with `|` between them."""
    lines = [" | ".join(row) for row in rows]
    return "\n".join([head, "|".join("---" for _ in head.split("|")), *lines, ""]) if lines else ""


def fenced(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def described(docstring: str) -> str:
    """A docstring as Markdown: paragraphs, and blocks of code where it indents."""
    out: list[str] = []
    lines = inspect.cleandoc(docstring).split("\n")
    for is_code, part in groupby(lines, key=lambda line: line.startswith(" ")):
        text = "\n".join(part)
        if is_code:
            code = textwrap.dedent(text).strip("\n")
            out.append(fenced(code, language(code)))
        else:
            out.append(prose(text) + "\n")
    return "\n".join(out)


def language(code: str) -> str:
    """What colours a block of code."""
    if re.match(r"(# )?graph\b|%", code):
        return "irtool"
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    return "python"


# -- passes
def pass_pages() -> Pages:
    """A page per pass, and one of all passes by area."""
    pages = {f"passes/{name}.md": pass_page(BY_NAME[name]) for names in AREAS.values() for name in names}
    areas = [f"## {area.capitalize()}\n\n" + table("pass | what", (
        (f"[`{name}`]({name}.md)", cell(BY_NAME[name].summary)) for name in names)) for area, names in AREAS.items()]
    presets = [f"### {name}\n\n" + table("pass | why", ((linked(line), cell(why)) for line, why in lines))
               for name, lines in PRESETS.items()]
    return {"passes/index.md": "\n".join(["# All passes\n", *areas, "## Presets\n", *presets]), **pages}


def linked(step: str) -> str:
    """A step of a preset, with a link to its pass; another preset as it is."""
    name = step.partition("{")[0]
    return f"[`{step}`]({name}.md)" if name in BY_NAME else f"`{step}`"


def pass_page(entry: Pass) -> str:
    """What `irtool passes NAME` says, and where the file is."""
    rows = ([f"`{text}`" for text in (option.name, option.type.replace("|", "\\|"), shown_default(option), example(entry, option))]
            for option in entry.options)
    file = f"passes/{entry.name.replace('-', '_')}.py"
    return "\n".join([
        f"# {entry.name}\n", described(entry.function.__doc__ or ""),
        "## Options\n", table("option | type | default | example", rows) or f"None: `--passes={entry.name}`\n",
        "Works on the whole module.\n" if entry.takes_module else "",
        f"A second run may change the graph again: {prose(entry.repeats)}\n" if entry.repeats else "",
        f"[The file of the pass](../source/{file}.md)\n",
    ])


# -- operators
def operator_pages() -> Pages:
    """A page per family of operators, and one of all families."""
    pages, rows = {}, []
    for family in FAMILIES:
        module = import_module(f"irtool.ops.kernels.{family}")
        ops: list[Op] = list(module.table)
        about = inspect.getdoc(module) or ""
        stanzas = [(", ".join(f"`{name}`" for name in op.names), cell(op.doc), cell(gradient(op)), cell(batching(op))) for op in ops]
        pages[f"operators/{family}.md"] = "\n".join([
            f"# {family}\n", described(about), table("operators | what | gradient | vmap", stanzas),
            "The schemas:\n", fenced("\n".join(schema for op in ops for schema in op.schemas)),
        ])
        count = sum(len(op.names) for op in ops)
        rows.append((f"[{family}]({family}.md)", str(count), cell(about.partition("\n\n")[0])))
    total = sum(int(row[1]) for row in rows)
    text = f"{total:,} overloads have a kernel; in-place forms (`add_`) and `out=` overloads are derived. `irtool ops` prints this table.\n"
    return {"operators/index.md": f"# Operators\n\n{text}\n" + table("family | overloads | what", rows), **pages}


def gradient(op: Op) -> str:
    """Do overloads of a stanza have a gradient? If not, why."""
    missing = {name: op.no_gradient.get(name) or op.unsupported.get(name) or "not stated" for name in op.names if name not in op.formulas}
    return answer(op, missing)


def batching(op: Op) -> str:
    """Does vmap run the overloads of a stanza? If not, why."""
    return answer(op, {name: why_no_rule(name) or "not stated" for name in op.names if rule_of(name) is None})


def answer(op: Op, missing: dict[str, str]) -> str:
    """Yes, or the reasons; names only where overloads differ."""
    if not missing:
        return "yes"
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    if len(missing) == len(op.names) and len(reasons) == 1:
        return f"no: {next(iter(reasons))}"
    return "yes; not " + "; ".join(f"{', '.join(f'`{name}`' for name in names)}: {reason}" for reason, names in reasons.items())


# -- commands
def command_pages() -> Pages:
    """A page per command: the text of its man page."""
    return {f"commands/{'index' if name == 'irtool' else name.removeprefix('irtool-')}.md": command_page(name, page)
            for name, page in man.contents().items()}


def command_page(name: str, page: man.Page) -> str:
    """One command."""
    out = [f"# {name.replace('-', ' ', 1)}\n", prose(page.summary) + "\n", fenced(page.usage)]
    for section in page.sections:
        if section.rows or section.lines:
            rows = "\n".join(f"{command_link(left)}\n:   {prose(right)}\n" for left, right in section.rows)
            out.append(f"## {section.title}\n\n{rows or fenced(section.lines)}")
    return "\n".join(out)


def command_link(words: str) -> str:
    """What is to be typed; of a command with a link."""
    return f"[`{words}`]({words.removeprefix('irtool ')}.md)" if words.startswith("irtool ") else f"`{words}`"


# -- public names
def name_pages() -> Pages:
    """A page per package: the modules that define public names, with their docstrings, and the names with theirs."""
    packages: dict[str, dict[str, list[str]]] = {}
    for name in sorted(irtool.__all__, key=lambda name: (not name[0].isupper(), name.lower())):
        home = irtool._HOMES.get(name)
        if home is not None:
            packages.setdefault(".".join(home.split(".")[:2]), {}).setdefault(home, []).append(name)
    pages, rows = {}, []
    for package, modules in sorted(packages.items()):
        short = package.removeprefix("irtool.")
        pages[f"names/{short}.md"] = "\n".join([f"# {package}\n", *(module_part(home, names) for home, names in sorted(modules.items()))])
        rows.append((f"[`{package}`]({short}.md)", ", ".join(f"`{name}`" for names in modules.values() for name in names)))
    text = "The public names by the package in which they are defined; all are imported from `irtool`. [Public interface](../api.md) " \
           "shows the most important ones at work.\n"
    return {"names/index.md": f"# Names\n\n{text}\n" + table("package | names", rows), **pages}


def module_part(home: str, names: list[str]) -> str:
    """A module, and its public names."""
    blocks = [f"::: irtool.{name}\n" + (f"    options:\n      members: {MEMBERS[name]}\n" if name in MEMBERS else "") for name in names]
    return "\n".join([f"## {home}\n", described(inspect.getdoc(import_module(home)) or ""), *blocks])


SECTIONS = {"All passes": pass_pages, "Operators": operator_pages, "Commands": command_pages, "Names": name_pages}
"""Parts of the navigation that are made."""
