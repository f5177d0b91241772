"""Lists and tables on a terminal, drawn by rich: text wraps inside its column; output longer than the screen goes to a pager."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irtool.ir.source import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from irtool.cli.console import Console

    Table: TypeAlias = Any          # rich's, imported where it is used
    Text: TypeAlias = Any

MARKS = {"x": "green", "-": "dim", "!": "yellow", ".": "red"}
"""Sign in a cell of `irtool ops` -> its colour."""


def columns(rows: Iterable[Sequence[str]]) -> Table:
    """A list of two columns, indented; the second wraps under itself."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=0)
    grid.add_column(style="bold", overflow="fold")
    grid.add_column()
    for left, right in rows:
        grid.add_row("", Text(clean(left)), Text(clean(right)))
    return grid


def marks(signs: Sequence[str], heads: Sequence[str]) -> Text:
    """Signs in colours, aligned under headings, as one cell (for a table of many cells rich takes seconds)."""
    from rich.text import Text

    return Text.assemble(*((f"{sign:^{len(head)}}  ", MARKS.get(sign, "")) for sign, head in zip(signs, heads)))


def table(rows: Iterable[Sequence[str | Text]], heads: Sequence[str], foot: Sequence[str | Text] = ()) -> Table:
    """A table with headings and optional sums; columns of `marks` do not wrap."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=bool(foot))
    for i, word in enumerate(heads):
        least = len(word) if foot and not isinstance(foot[i], str) else None
        style = "bold" if not i else None
        grid.add_column(word, foot[i] if foot else "", style=style, overflow="fold", min_width=least, no_wrap=bool(least))
    for row in rows:
        grid.add_row(*(Text(clean(cell)) if isinstance(cell, str) else cell for cell in row))
    return grid


def draw(console: Console, *parts: Table | Text | str) -> None:
    """Draw on the terminal of the result stream."""
    from rich.console import Console as Screen

    colors: Any = "auto" if console.paints else None
    screen = Screen(file=console.stdout, width=console.width(), force_terminal=True, color_system=colors, markup=False, emoji=False,
                    highlight=False)
    with screen.capture() as capture:
        screen.print(*parts, sep="\n")
    text = capture.get()
    if console.owns_process and text.count("\n") >= screen.height:
        import click

        click.echo_via_pager(text, color=console.paints)
    else:
        console.write(text)
