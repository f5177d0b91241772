"""The table of `irtool plan --time`."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from irtool.cli.console import Console
    from irtool.execute.plan.timing import Timed

HEADS = ("ms", "share", "GFLOP/s", "GB/s", "times", "instruction", "of")


def show_times(instructions: Sequence[Timed], form: str, console: Console) -> None:
    """Print the instructions, the slowest first; as JSON in the order in which they ran."""
    total = sum(each.ns for each in instructions)
    if form == "json":
        import json

        fields = [{"node": text_of(each), "line": each.node.line or None, "function": each.word, "times": each.times, "ns": each.ns,
                   "flops": each.flops, "bytes": each.bytes} for each in instructions]
        console.out(json.dumps({"schema": 1, "ns": total, "instructions": fields}, indent=1) + "\n")
        return
    from irtool.ir.graph import counted

    ordered = sorted(instructions, key=lambda each: -each.ns)
    rows = [cells(each, total) for each in ordered]
    foot = (f"{total / 1e6:.3f}", "", "", "", "", counted(len(rows), "instruction"), "")
    if console.paints:
        from irtool.cli.show.tables import draw, table

        draw(console, table(rows, HEADS, foot))
        return
    lines = [HEADS, *rows, foot]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    for line in lines:
        aligned = [cell.rjust(width) if i < 5 else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths))]
        console.out("  ".join(aligned).rstrip() + "\n")


def cells(each: Timed, total: float) -> tuple[str, ...]:
    """The cells of an instruction."""
    rates = ["" if rate is None else f"{rate:.3g}" for rate in (each.gigaflops, each.gigabytes)]
    return (f"{each.ns / 1e6:.3f}", f"{each.ns / total if total else 0:.1%}", *rates, str(each.times), each.word, text_of(each))


def text_of(each: Timed) -> str:
    """A node in short: results, kind and line."""
    node = each.node
    names = ", ".join(f"%{value.name}" for value in node.outputs[:3]) + ", ..." * (len(node.outputs) > 3)
    return f"{names} = {node.kind}" if names else node.kind
