"""`python -m fuzz`: run a campaign, or one case. Exit 0: nothing was wrong; 1: something was; 2: wrong command line."""
from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console

from fuzz import oracle, report
from fuzz.campaign import Plan, Report, run
from fuzz.case import read, spell
from fuzz.kinds import BY_NAME, KINDS, Kind

CASES = Path(__file__).parent.parent / "tests" / "fuzz_cases"


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Random programs, gradients, laws, pipelines, texts and archives.")
    parser.add_argument("--seconds", type=float, help="how long (60; with --rounds: until they are over)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same cases (0)")
    parser.add_argument("--kinds", default=",".join(BY_NAME), help=f"which of {', '.join(BY_NAME)} (all)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (1)")
    parser.add_argument("--rounds", type=int, help=f"stop after so many rounds, each of {', '.join(f'{k.share} {k.name}' for k in KINDS)}")
    parser.add_argument("--first", type=int, default=0, help="go on behind so many rounds of this seed (0)")
    parser.add_argument("--out", type=Path, default=CASES, help="where reduced findings are written (tests/fuzz_cases)")
    parser.add_argument("--json", action="store_true", help="the report as JSON on standard output")
    parser.add_argument("--case", metavar="KIND:SEED", help="one case, or the file of one, with details")
    return parser


def main(words: list[str] | None = None) -> int:
    """Run what the command line says."""
    options = parser()
    chosen = options.parse_args(words)
    names = chosen.kinds.split(",")
    if unknown := [name for name in names if name not in BY_NAME]:
        options.error(f"no such kind: {unknown[0]} (one of {', '.join(BY_NAME)})")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["IRTOOL_CACHE_DIR"] = cache
        oracle.library()
        if chosen.case:
            return one(chosen.case, options)
        kinds = [BY_NAME[name] for name in names]
        seconds = chosen.seconds if chosen.seconds is not None else 60 if chosen.rounds is None else math.inf
        return campaign(Plan(chosen.seed, seconds, kinds, max(1, chosen.jobs), chosen.rounds, chosen.out, chosen.first), chosen.json)


def campaign(plan: Plan, as_json: bool) -> int:
    """Run a campaign; the report goes to standard output, progress to a terminal's standard error."""
    errors, console = Console(stderr=True), Console()
    with errors.status("") as status:
        def progress(now: Report) -> None:
            status.update(report.line(now))

        result = run(plan, progress)
    if as_json:
        print(json.dumps(report.as_data(result), indent=1))
    else:
        report.show(result, console)
    return 130 if result.is_interrupted else 1 if result.findings else 0


def one(word: str, options: argparse.ArgumentParser) -> int:
    """One case with details."""
    if Path(word).is_file():
        case = read(Path(word).read_text(encoding="utf-8"))
        kind = BY_NAME[case.kind]
    else:
        kind, seed = kind_and_seed(word, options)
        case = kind.draw(seed)
    print(spell(case))
    tally: Counter[str] = Counter()
    finding = kind.attempt(case, tally)
    for what, count in tally.most_common():
        print(f"{count:6} {what}")
    if finding is None:
        print("nothing is wrong")
        return 0
    print(f"{finding.sort}: {finding.message}\nsymptom: {finding.symptom}\nreducing ...", flush=True)
    case, finding = kind.reduced(case, finding, 60)
    print(spell(case) + finding.message)
    return 1


def kind_and_seed(word: str, options: argparse.ArgumentParser) -> tuple[Kind, int]:
    """KIND:SEED, read."""
    name, _, seed = word.partition(":")
    if name not in BY_NAME or not seed.isdigit():
        options.error(f"--case: expected KIND:SEED or a file, got {word}")
    return BY_NAME[name], int(seed)


if __name__ == "__main__":
    sys.exit(main())
