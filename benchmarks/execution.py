"""How fast graphs run: the executor's plans against torch, jax, onnxruntime and NumPy written by hand.

    python benchmarks/execution.py --only overhead,grad
    python benchmarks/execution.py --only pointwise --peers torch

All candidates of a case run in this one process, pinned to one core, with one thread each, in interleaved rounds whose order rotates;
times are CPU times. A figure is the median over the rounds, a ratio the median of the ratios within each round, its spread the distance
of the quartiles over the median. Results are compared with the reference's before anything is timed: a wrong one is left out.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
if __name__ == "__main__":
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import execution_cases as cases  # noqa: E402  NumPy reads the number of threads when it is imported
import numpy as np  # noqa: E402

Run = Callable[[], Any]
Target = tuple[str, str, float]
"""A candidate, what it is compared with, and the ratio it should not exceed."""


def main() -> int:
    """Run what is asked for; prints a table per case."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", default="", help="only cases whose names contain one of these, separated by commas")
    flags.add_argument("--peers", default="", help="only candidates whose names contain one of these (irtool's are always there)")
    flags.add_argument("--rounds", type=int, default=9)
    flags.add_argument("--quick", action="store_true", help="few rounds, small sizes")
    flags.add_argument("--json", metavar="FILE", help="write the figures there too")
    given = flags.parse_args()
    records = []
    for name, make in cases.CASES.items():
        if given.only and not any(part in name for part in given.only.split(",")):
            continue
        for case in make(given.quick):
            records += measure(case, 3 if given.quick else given.rounds, [part for part in given.peers.split(",") if part])
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "argv": sys.argv[1:], "records": records}, file, indent=1)
    return 0


def measure(case: cases.Case, rounds: int, peers: list[str]) -> list[dict[str, Any]]:
    """Time one case and print it."""
    print(f"\n{case.title}", flush=True)
    needed = {name for target in case.targets for name in target[:2]} if not peers else set()
    runs: dict[str, Run] = {}
    expected = None
    for name, make in case.candidates.items():
        if peers and not any(part in name for part in (*peers, "irtool", case.reference)) and name not in needed:
            continue
        try:
            run = make()
            start = time.process_time()
            found = values_of(run())
            first = time.process_time() - start
            for _ in range(3):
                run()
        except Exception as error:      # a candidate that is not installed, or cannot do it, is named and left out
            print(f"  {name:44} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:150])
            continue
        if name == case.reference:
            expected = found
        elif expected is not None:
            wrong = difference(found, expected)
            if wrong > case.tolerance:
                print(f"  {name:44} wrong by {wrong:.1e}")
                continue
        runs[name] = run
        print(f"  {name:44} first call {first * 1e3:9.2f} ms", flush=True) if case.tells_first else None
    samples = interleaved(runs, rounds)
    records = []
    for name, times in samples.items():
        median, spread = middle(times)
        record = {"case": case.title, "candidate": name, "ms": median * 1e3, "spread": spread}
        text = f"  {name:44} {median * 1e3:10.4f} ms ±{spread:4.0%}"
        if case.reference in samples and name != case.reference:
            ratio, width = middle([a / b for a, b in zip(times, samples[case.reference], strict=True)])
            record.update(ratio=ratio, ratio_spread=width, reference=case.reference)
            text += f"   {ratio:7.3f} x {case.reference} ±{width:4.0%}"
        records.append(record)
        print(text)
    for name, other, limit in case.targets:
        if name in samples and other in samples:
            ratio, width = middle([a / b for a, b in zip(samples[name], samples[other], strict=True)])
            verdict = "reached" if ratio <= limit else "MISSED "
            print(f"  {verdict} {name} / {other} = {ratio:.3f} ±{width:.0%} (at most {limit:.3g})", flush=True)
            records.append({"case": case.title, "candidate": name, "reference": other, "ratio": ratio, "ratio_spread": width,
                            "limit": limit})
    return records


def interleaved(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds per call, one entry per round."""
    names = list(runs)
    counts = {}
    for name in names:
        start = time.perf_counter()
        runs[name]()
        counts[name] = max(1, int(0.02 / max(time.perf_counter() - start, 1e-9)))
    samples: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    for turn in range(rounds):
        shift = turn % max(len(names), 1)
        for name in names[shift:] + names[:shift]:
            run, count = runs[name], counts[name]
            start = time.process_time()
            for _ in range(count):
                run()
            samples[name].append((time.process_time() - start) / count)
    gc.enable()
    return samples


def middle(values: list[float]) -> tuple[float, float]:
    """(median, spread)."""
    median = statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else (median, 0.0, median)
    return median, (high - low) / median if median else 0.0


def values_of(found: Any) -> list[Any]:
    """Results as arrays of 64 bits."""
    if found is None:
        return []
    items = found if isinstance(found, list | tuple) else [found]
    return [np.asarray(each.detach().numpy() if hasattr(each, "detach") else each, np.float64).copy() for each in items]


def difference(found: list[Any], expected: list[Any]) -> float:
    """The largest relative difference; infinite for other shapes."""
    if len(found) != len(expected):
        return 0.0 if not found else float("inf")
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape:
            return float("inf")
        worst = max(worst, float(np.abs(one - other).max(initial=0) / (np.abs(other).max(initial=0) + 1e-30)))
    return worst


if __name__ == "__main__":
    sys.exit(main())
