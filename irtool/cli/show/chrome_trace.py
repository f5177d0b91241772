"""Times in the form of Chrome's traces, for chrome://tracing and Perfetto."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from irtool.execute.plan.slots import Interval
    from irtool.passmanager import PassRecord


def passes_trace(records: Iterable[PassRecord]) -> str:
    """The trace of a pipeline: an event per pass, with verification and reports."""
    return trace([event(record.step.name, "pass", record.start_ns, record.total_ns, 0, {"pipeline": str(record.step), **record.as_dict()})
                  for record in records])


def plan_trace(intervals: Iterable[Interval]) -> str:
    """The trace of one run of a plan: an event per instruction, on the thread that ran it; the caller's thread is 0."""
    intervals = sorted(intervals, key=lambda row: (row[1], -row[2]))
    threads: dict[int, int] = {}
    return trace([event(instruction.node.kind, "node", start, end - start, threads.setdefault(thread, len(threads)),
                        {"node": str(instruction.node).strip().partition("\n")[0], "line": instruction.node.line or None})
                  for instruction, start, end, thread in intervals])


def event(name: str, category: str, start_ns: int, duration_ns: int, thread: int, details: dict[str, object]) -> dict[str, object]:
    """A complete event. Chrome counts in microseconds."""
    return {"name": name, "cat": category, "ph": "X", "ts": start_ns / 1e3, "dur": duration_ns / 1e3, "pid": 0, "tid": thread,
            "args": details}


def trace(events: list[dict[str, object]]) -> str:
    """The file."""
    import json

    return json.dumps({"schema": 1, "displayTimeUnit": "ns", "traceEvents": events})
