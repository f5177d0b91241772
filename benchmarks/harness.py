"""Measuring: each candidate in a process of its own, in interleaved rounds, pinned to one core.

The figure is the median over rounds of CPU time per node; the spread is the distance of the quartiles over the median. A ratio is
the median of the ratios within each round, never a quotient of numbers from different rounds: what a noisy neighbour does to one
candidate it does to all.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, float]


def parser(description: str | None) -> argparse.ArgumentParser:
    """The flags every benchmark has."""
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    flags.add_argument("--sizes", default="1000,10000,100000,1000000", help="nodes, separated by commas")
    flags.add_argument("--rounds", type=int, default=0, help="rounds (default: fewer for larger sizes)")
    flags.add_argument("--only", default="", help="only candidates and programs whose names contain this")
    flags.add_argument("--json", metavar="FILE", help="write the figures there too")
    flags.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    return flags


def sizes(arguments: argparse.Namespace) -> list[int]:
    """Sizes to measure."""
    return [1000, 10000] if arguments.quick else [int(size) for size in arguments.sizes.split(",")]


def rounds(arguments: argparse.Namespace, n: int) -> int:
    """Rounds for a size."""
    return arguments.rounds or (3 if arguments.quick or n > 100_000 else 5 if n > 10_000 else 7)


def pin() -> None:
    """Stay on the last core this process may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def timed(action: Callable[[Any], Any], prepare: Callable[[], Any], repeat: int, warm: int = 1) -> float:
    """Median CPU seconds of `action(prepare())`, preparation not counted."""
    samples = []
    for i in range(warm + repeat):
        subject = prepare()
        gc.collect()
        start = time.process_time()
        result = action(subject)
        elapsed = time.process_time() - start
        if i >= warm:
            samples.append(elapsed)
        del subject, result
    return statistics.median(samples)


def peak_bytes() -> int:
    """The most memory this process has had (getrusage would answer for the process it was forked from, too)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def resident_bytes() -> int:
    """Memory this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def work(words: Sequence[str], limit: float = 900) -> Row:
    """One measurement in a process of its own: what this script with `--worker words` prints as JSON. Raises RuntimeError."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, sys.argv[0], "--worker", *words], capture_output=True, text=True, timeout=limit, env=environment)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def measure(arguments: argparse.Namespace, candidates: dict[str, int], programs: Sequence[str], text_of: Callable[[str, str, int], str],
            fields: Callable[[str], Sequence[str]]) -> None:
    """The main loop: for each program and size, rounds of every candidate whose largest size allows it; prints and saves.

    `text_of(candidate, program, n)` writes the program (empty: not for this candidate). A worker is called with candidate, program,
    the text's file and n. A candidate that fails is named and left out.
    """
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            for n in sizes(arguments):
                names, paths = [], {}
                for name, most in candidates.items():
                    text = text_of(name, program, n) if n <= most and arguments.only in f"{name} {program}" else ""
                    if text:
                        names.append(name)
                        paths[name] = os.path.join(folder, name)
                        with open(paths[name], "w") as file:
                            file.write(text)
                print(f"{program}, {n} nodes", flush=True)
                found: dict[str, list[Row]] = {}
                for turn in range(rounds(arguments, n)):
                    for name in names[turn % max(len(names), 1):] + names[:turn % max(len(names), 1)]:
                        try:
                            found.setdefault(name, []).append(work([name, program, paths[name], str(n)]))
                        except (RuntimeError, subprocess.TimeoutExpired) as error:
                            print(f"  {name}: {error}", file=sys.stderr)
                            names.remove(name)
                            found.pop(name, None)
                records += [{"program": program, **record} for record in report(found, fields(program), n, "torch")]
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "argv": sys.argv[1:], "records": records}, file, indent=1)


def middle(values: Sequence[float]) -> tuple[float, float]:
    """(median, spread)."""
    median = statistics.median(values)
    if len(values) < 2 or not median:
        return median, 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / median


def report(found: dict[str, list[Row]], fields: Sequence[str], n: int, reference: str) -> list[dict[str, Any]]:
    """Print one line per candidate and field: time (or memory) per node with its spread, and the ratio to the reference's."""
    records: list[dict[str, Any]] = []
    for field in fields:
        for name, rows in found.items():
            if field not in rows[0]:
                continue
            unit, scale = ("bytes", 1.0) if field == "memory" else ("ns", 1e9)
            median, spread = middle([row[field] / n * scale for row in rows])
            record: dict[str, Any] = {"candidate": name, "field": field, "n": n, f"{unit}_per_node": round(median, 1),
                                      "spread": round(spread, 3)}
            text = f"  {field:22}{name:8}{median:10.0f} {unit}/node ±{spread:4.0%}"
            if name != reference and reference in found and field in found[reference][0]:
                pairs = [row[field] / other[field] for row, other in zip(rows, found[reference])]
                ratio, ratio_spread = middle(pairs)
                record.update(ratio=round(ratio, 4), ratio_spread=round(ratio_spread, 3), reference=reference)
                text += f"   {ratio:7.3f} x {reference} ±{ratio_spread:4.0%}"
            print(text, flush=True)
            records.append(record)
    return records
