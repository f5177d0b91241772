"""What a campaign says: a line while it runs, and a table of counts, refusals and findings at its end."""
from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table

from fuzz.campaign import Report
from fuzz.judge import HANG, INTERNAL, SCRIPT_ALONE, WRONG

SORTS = (WRONG, INTERNAL, HANG)
MOST = 8
"""So many words of refusals are named for each kind."""


def line(report: Report) -> str:
    """Counts on one line."""
    parts = [f"{counts['cases']} {kind}" for kind, counts in report.counts.items()]
    return f"{report.seconds:.0f} s: {', '.join(parts)}; {problems(report)} findings of {len(report.findings)} symptoms"


def problems(report: Report) -> int:
    """How many cases were wrong."""
    return sum(counts[sort] for counts in report.counts.values() for sort in SORTS)


def per_thousand(counts: Counter[str], prefix: str) -> dict[str, float]:
    """Counts with a prefix, without it, per thousand cases, most frequent first."""
    cases = max(1, counts["cases"])
    chosen = Counter({what.removeprefix(prefix): count for what, count in counts.items() if what.startswith(prefix)})
    return {what: round(1000 * count / cases, 2) for what, count in chosen.most_common()}


def as_data(report: Report) -> dict[str, Any]:
    """The report as plain data, for --json."""
    kinds = {}
    for kind, counts in report.counts.items():
        plain = {what: count for what, count in counts.items() if ": " not in what}
        kinds[kind] = {**plain, **{sort: counts[sort] for sort in SORTS}, "refusals per thousand": per_thousand(counts, "refused: "),
                       "skipped per thousand": per_thousand(counts, "skipped: ")}
    return {"seconds": round(report.seconds, 1), "kinds": kinds, "findings": list(report.findings.values())}


def show(report: Report, console: Console) -> None:
    """The table, the refusals by words, and the findings."""
    table = Table(box=None, header_style="bold")
    table.add_column("kind")
    for name in ("cases", "ways", *SORTS, "refused/1000", "with torch", "without"):
        table.add_column(name, justify="right")
    for kind, counts in report.counts.items():
        refused = sum(per_thousand(counts, "refused: ").values())
        table.add_row(kind, str(counts["cases"]), str(counts["ways"]), *(str(counts[sort]) for sort in SORTS), f"{refused:.1f}",
                      str(counts["compared with torch"]), str(counts["not compared with torch"]))
    console.print(table)
    for kind, counts in report.counts.items():
        for prefix, head in (("refused: ", "refused"), ("skipped: ", "skipped")):
            for what, rate in list(per_thousand(counts, prefix).items())[:MOST]:
                console.print(f"  {kind}: {head} {rate}/1000: {what}", markup=False, highlight=False, soft_wrap=True)
    for kind, counts in report.counts.items():
        if counts[SCRIPT_ALONE]:
            console.print(f"  {kind}: {counts[SCRIPT_ALONE]} comparisons {SCRIPT_ALONE}", markup=False, highlight=False, soft_wrap=True)
    for (kind, _), entry in report.findings.items():
        place = f", written to {entry['file']}" if "file" in entry else ""
        console.print(f"{entry['sort']}, {entry['times']} times: {kind}:{entry['seed']}{place}", style="bold red", markup=False,
                      soft_wrap=True)
        console.print("  " + entry["message"].strip()[-400:].replace("\n", "\n  "), markup=False, highlight=False, soft_wrap=True)
    console.print(line(report), markup=False, soft_wrap=True)
