"""Runs of many cases, on processes of this machine or on a Dask cluster, with a row per case; a file records finished cases, which a
resumed run skips."""
from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from queue import Empty, SimpleQueue
from typing import IO, Any

from irtool.corpora.children import Answer, Request, end_all, isolated
from irtool.corpora.selection import Case
from irtool.ir.errors import Error

AHEAD = 1000
"""The number of cases that are submitted before others have ended."""
WORDS = {"ok": "ok", "failed": "failed", "crashed": "crashed", "timeout": "took too long", "lost": "lost"}
"""Status -> its word in the summary."""

Submit = Callable[[Callable[[Request], Answer], Request], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a case."""

    name: str
    status: str
    code: int | None
    seconds: float
    messages: str
    command: str


@contextmanager
def on_this_machine(jobs: int) -> Iterator[Submit]:
    """Runs cases in as many processes as jobs."""
    pool = ThreadPoolExecutor(jobs)
    running = set()

    def submit(function: Callable[[Request], Answer], request: Request) -> Future[Answer]:
        future = pool.submit(function, request)
        running.add(future)
        future.add_done_callback(running.discard)
        return future
    try:
        yield submit
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()
        while wait(list(running), 0.1).not_done:        # a thread may just have started a process
            end_all()


@contextmanager
def on_cluster(address: str) -> Iterator[Submit]:
    """Runs cases on the workers of a Dask scheduler. A case whose worker dies is run by another. Raises Error if the scheduler does not
    answer."""
    try:
        from distributed import Client
    except ImportError:
        raise Error("--scheduler needs Dask: pip install 'irtool[cluster]'", code="E0801") from None
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise Error(f"--scheduler {address}: {error or 'no scheduler answers'}".split("\n")[0], code="E0707") from None
    futures = []

    def submit(function: Callable[[Request], Answer], request: Request) -> Any:
        futures.append(client.submit(function, request, pure=False))
        return futures[-1]
    try:
        yield submit
    finally:
        client.cancel([each for each in futures if not each.done()])
        client.close()


def outcomes(cases: Sequence[Case], request: Callable[[Case], Request], submit: Submit) -> Iterator[tuple[Case, Answer]]:
    """Each case with its answer, once, in the order in which they end."""
    ended: SimpleQueue[tuple[Case, Any]] = SimpleQueue()
    waiting = iter(cases)
    running = 0
    while True:
        for case in islice(waiting, AHEAD - running):
            submit(isolated, request(case)).add_done_callback(lambda future, case=case: ended.put((case, future)))
            running += 1
        if not running:
            return
        try:
            case, future = ended.get(timeout=0.5)
        except Empty:           # a Ctrl-C that arrived just before the wait is seen after it
            continue
        running -= 1
        try:
            yield case, future.result()
        except Exception as error:      # a worker without irtool, a scheduler that ended, a case that killed several workers
            yield case, Answer("lost", None, 0.0, f"{type(error).__name__}: {error}")


class Journal:
    """The file of `--resume`: a line per finished case.

    A line is valid as long as the command line of the case and the files that it reads are unchanged, and its output exists.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        self.file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        try:
            self.file = open(self.path, "a+b")
        except OSError as error:
            raise Error(f"{self.path}: {error.strerror}", code="E0708") from None
        self.file.seek(0)
        lines = self.file.read().split(b"\n")
        for line in lines:
            try:
                data = json.loads(line)
                hashed = data.pop("key")
                self.rows[hashed] = Row(**data)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if line and line is not lines[-1]:      # the last line may be incomplete, if the run was interrupted there
                    self.file.close()
                    raise Error(f"{self.path}: no file of --resume: {line[:40]!r}", code="E0707") from error
        if lines[-1]:
            self.file.write(b"\n")
        return self

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()

    def row(self, case: Case) -> Row | None:
        """The row of a finished case."""
        row = self.rows.get(key(case))
        is_gone = row is not None and row.status == "ok" and case.output is not None and not os.path.exists(case.output)
        return None if is_gone else row

    def add(self, case: Case, row: Row) -> None:
        """Record that a case has ended."""
        assert self.file is not None
        self.file.write(json.dumps({"key": key(case), **asdict(row)}).encode() + b"\n")
        self.file.flush()


def key(case: Case) -> str:
    """A hash of the command line of a case, and of sizes and times of the files that it reads."""
    def stamp(path: str) -> object:
        try:
            status = os.stat(path)
            return path, status.st_size, status.st_mtime_ns
        except OSError:
            return path
    return sha256(repr((case, [stamp(path) for path in case.files])).encode()).hexdigest()[:32]


def summary(rows: Sequence[Row], seconds: float) -> str:
    """All rows in one line."""
    counts = Counter(row.status for row in rows)
    parts = [f"{counts[status]} {text}" for status, text in WORDS.items() if counts[status]]
    silent = sum(1 for row in rows if row.status == "ok" and row.messages)
    notes = f" ({silent} of the ok ones with messages: --json)" if silent else ""
    return f"{len(rows)} {'case' if len(rows) == 1 else 'cases'}: {', '.join(parts)}{notes} in {seconds:.1f} s"


def as_json(command: str, rows: Sequence[Row], seconds: float) -> dict[str, Any]:
    """The rows as JSON data."""
    counts = Counter(row.status for row in rows)
    return {"schema": 1, "command": command, "seconds": seconds, "counts": {status: counts[status] for status in WORDS},
            "cases": [asdict(row) for row in rows]}


def junit(command: str, rows: Sequence[Row], seconds: float) -> str:
    """The rows as JUnit's XML: `failed` is a failure; `crashed`, `timeout` and `lost` are errors."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    wrong = [row for row in rows if row.status != "ok"]
    failures = sum(row.status == "failed" for row in wrong)
    totals = {"tests": str(len(rows)), "failures": str(failures), "errors": str(len(wrong) - failures), "time": f"{seconds:.3f}"}
    root = Element("testsuites", totals)
    suite = SubElement(root, "testsuite", {"name": f"irtool {command}", "skipped": "0", **totals})
    for row in rows:
        case = SubElement(suite, "testcase", {"classname": command, "name": xml_text(row.name), "time": f"{row.seconds:.3f}"})
        text = xml_text(row.messages)
        if row.status != "ok":
            kind = "failure" if row.status == "failed" else "error"
            SubElement(case, kind, {"type": row.status, "message": text.partition("\n")[0]}).text = f"{text}\n{xml_text(row.command)}\n"
        elif text:
            SubElement(case, "system-err").text = text
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n'


def xml_text(text: str) -> str:
    """Text with `?` for characters that XML cannot contain."""
    return "".join(each if each in "\t\n" or " " <= each <= "\ud7ff" or "\ue000" <= each <= "\ufffd" or each > "\uffff" else "?"
                   for each in text)
