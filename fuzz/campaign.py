"""Worker processes that run cases, and the watch over them: a worker that says nothing for too long is ended, and its case is a hang.

Case number i of a kind has the seed `seed * 1_000_000 + i`, whatever the number of workers: a finding is told apart by `KIND:SEED`.
"""
from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from fuzz.case import Case, spell
from fuzz.judge import HANG, INTERNAL, Finding
from fuzz.kinds import BY_NAME, Kind, warm

SPAN = 1_000_000
ROUNDS = 40
"""After so many rounds a worker ends and another begins, so that memory does not add up."""
MEMORY = 8 << 30
GRACE = 20.0
"""So many seconds after its limit a case that does not listen is ended."""
REDUCTION = 25.0


@dataclass(frozen=True)
class Plan:
    """What a campaign runs. out: the folder of reduced cases; rounds: stop after so many, None where only time counts; first: the number of
    rounds that an earlier campaign of this seed ran."""

    seed: int
    seconds: float
    kinds: Sequence[Kind]
    jobs: int = 1
    rounds: int | None = None
    out: Path | None = None
    first: int = 0


@dataclass
class Report:
    """Counts by kind, and what was wrong: by symptom, the first case of each with its number."""

    counts: dict[str, Counter[str]]
    findings: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    is_interrupted: bool = False
    """Did someone end the campaign before its time?"""

    def add(self, kind: str, item: dict[str, Any]) -> None:
        """One more finding; the first of a symptom stands for all."""
        self.counts[kind][item["sort"]] += 1
        entry = self.findings.setdefault((kind, item["symptom"]), {**item, "times": 0})
        entry["times"] += 1


@dataclass
class Worker:
    """A process at work on rounds, and what it said last. `current`: the case it is at."""

    process: int
    pipe: int
    rounds: Iterator[int]
    current: dict[str, Any] = field(default_factory=dict)
    heard: float = field(default_factory=time.monotonic)
    rest: bytes = b""

    def is_silent(self) -> bool:
        """Did its case take longer than it may, with no word?"""
        limit = float(self.current.get("limit", 60.0)) + (REDUCTION if "reduces" in self.current else 0)
        return time.monotonic() - self.heard > limit + GRACE


def run(plan: Plan, progress: Callable[[Report], None]) -> Report:
    """Run the campaign. The report is given to `progress` about once a second."""
    report = Report({kind.name: Counter() for kind in plan.kinds})
    start = time.monotonic()
    order = iter(range(plan.first, SPAN if plan.rounds is None else plan.first + plan.rounds))
    workers: dict[int, Worker] = {}
    warm()
    gc.freeze()
    try:
        while True:
            is_over = time.monotonic() - start > plan.seconds
            while len(workers) < plan.jobs and not is_over:
                batch = list(islice(order, ROUNDS))
                if not batch:
                    break
                begin(plan, batch, {}, start, report, workers)
            if not workers:
                break
            watch(plan, start, report, workers)
            report.seconds = time.monotonic() - start
            progress(report)
    except KeyboardInterrupt:
        report.is_interrupted = True
    finally:
        gc.unfreeze()
        for worker in workers.values():
            with contextlib.suppress(OSError):
                os.kill(worker.process, signal.SIGKILL)
    return report


def begin(plan: Plan, batch: list[int], after: dict[str, Any], start: float, report: Report, workers: dict[int, Worker]) -> None:
    """Start a worker on rounds; `after`: behind this case of the first of them."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process:
        os.close(writing)
        workers[reading] = Worker(process, reading, iter(batch))
        return
    os.close(reading)
    try:
        work(plan, batch, after, start, os.fdopen(writing, "w"), {symptom for _, symptom in report.findings})
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(9)
    os._exit(0)


def work(plan: Plan, batch: list[int], after: dict[str, Any], start: float, pipe: Any, symptoms: set[str]) -> None:
    """In a worker: the cases of its rounds, one by one. What is said goes through the pipe, a line each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    quiet()

    def say(**item: Any) -> None:
        pipe.write(json.dumps(item) + "\n")
        pipe.flush()

    for number in batch:
        for kind in plan.kinds:
            tally: Counter[str] = Counter()
            for index in range(number * kind.share, (number + 1) * kind.share):
                if time.monotonic() - start > plan.seconds:
                    break
                if after and (number, kind.name, index) <= (after["round"], after["kind"], after["index"]):
                    continue
                say(round=number, kind=kind.name, index=index, limit=kind.limit)
                tally["cases"] += 1
                run_case(plan, kind, index, tally, symptoms, say)
            say(kind=kind.name, tally=tally)


def run_case(plan: Plan, kind: Kind, index: int, tally: Counter[str], symptoms: set[str], say: Callable[..., None]) -> None:
    """One case; what is wrong is reduced where its symptom is new, and said."""
    seed = plan.seed * SPAN + index
    case = kind.draw(seed)
    finding = kind.attempt(case, tally)
    if finding is None:
        return
    item = described(case, finding, seed, is_reduced=False)
    if finding.symptom not in symptoms and finding.sort != HANG:
        symptoms.add(finding.symptom)
        say(reduces=item)
        item = described(*kind.reduced(case, finding, REDUCTION), seed, is_reduced=True)
    say(kind=kind.name, finding=item)


def described(case: Case, finding: Finding, seed: int, is_reduced: bool) -> dict[str, Any]:
    """A finding as plain data, with the file of its case."""
    text = spell(Case(case.kind, case.text, case.inputs, case.options, title_of(finding)))
    return {"sort": finding.sort, "symptom": finding.symptom, "message": finding.message[-2000:], "case": text, "seed": seed,
            "is_reduced": is_reduced}


def title_of(finding: Finding) -> str:
    """The first line of a message, for the head of a case."""
    lines = finding.message.strip().split("\n")
    return (lines[-1] if finding.sort == INTERNAL else lines[0])[:160]


def quiet() -> None:
    """A worker writes nothing to the terminal; what programs print is no one's business."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def watch(plan: Plan, start: float, report: Report, workers: dict[int, Worker]) -> None:
    """Listen to the workers for a second; end those that are silent, and go on behind the case that they were at."""
    ready, _, _ = select.select(list(workers), [], [], 1.0)
    for pipe in ready:
        worker = workers[pipe]
        data = os.read(pipe, 1 << 16)
        *lines, worker.rest = (worker.rest + data).split(b"\n")
        for line in lines:
            hear(plan, worker, json.loads(line), report)
        if not data:
            ended(plan, start, report, workers, worker, is_silent=False)
    for worker in [each for each in workers.values() if each.is_silent()]:
        os.kill(worker.process, signal.SIGKILL)
        ended(plan, start, report, workers, worker, is_silent=True)


def hear(plan: Plan, worker: Worker, item: dict[str, Any], report: Report) -> None:
    """One line of a worker: where it is, counts, or a finding."""
    worker.heard = time.monotonic()
    if "tally" in item:
        report.counts[item["kind"]].update(item["tally"])
    elif "finding" in item:
        report.add(item["kind"], item["finding"])
        keep(plan, item["kind"], item["finding"], report)
    elif "round" in item:
        worker.current = item
    else:
        worker.current = {**worker.current, **item}


def ended(plan: Plan, start: float, report: Report, workers: dict[int, Worker], worker: Worker, is_silent: bool) -> None:
    """A worker is gone. One that was ended or that fell over leaves a case that is a finding; another goes on behind it."""
    os.close(worker.pipe)
    del workers[worker.pipe]
    _, status = os.waitpid(worker.process, 0)
    if not status:
        return
    at = worker.current
    kind = BY_NAME[at["kind"]]
    seed = plan.seed * SPAN + at["index"]
    sort, what = (HANG, "no end, and deaf to signals") if is_silent else (INTERNAL, f"the process ended with status {status}")
    item = at["reduces"] if "reduces" in at else described(kind.draw(seed), Finding(sort, what, what), seed, is_reduced=False)
    report.counts[kind.name]["cases"] += 1
    report.add(kind.name, item)
    keep(plan, kind.name, item, report)
    first = at["round"]
    batch = list(range(first, plan.first + ((first - plan.first) // ROUNDS + 1) * ROUNDS))
    begin(plan, batch, at, start, report, workers)


def keep(plan: Plan, kind: str, item: dict[str, Any], report: Report) -> None:
    """Write the first case of a symptom into the folder of cases."""
    entry = report.findings[(kind, item["symptom"])]
    if plan.out is None or "file" in entry:
        return
    plan.out.mkdir(parents=True, exist_ok=True)
    path = plan.out / f"{kind}_{item['seed']}.case"
    path.write_text(item["case"], encoding="utf-8")
    entry["file"] = str(path)
