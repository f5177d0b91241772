"""Time to the first result of a graph of 1000 operators, in processes of their own: with an empty cache of plans, and with a filled one;
to its first gradients, and to those of the second and third call, which make the plan of forwards and backwards as one.

    python benchmarks/first_result.py --rounds 7

Counted is the CPU time from the text to the result (parse, compile, run), after imports: a graph of four operators has run before.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def worker(n: int, what: str) -> None:
    """One measurement; prints milliseconds, of one call or of several."""
    import execution_cases as cases
    import numpy as np

    import irtool

    x, y = [np.random.default_rng(i).random((2, 3, 4)).astype(np.float32) for i in range(2)]

    def calls(n: int) -> list[float]:
        text = cases.chain_text(cases.chain(n))
        start = time.process_time()
        run = irtool.compile(irtool.parse(text))
        found = []
        for _ in range(3):
            run.vjp([x, y], [np.ones_like(x)], [0, 1]) if what == "gradients" else run(x, y)
            found.append((time.process_time() - start) * 1e3)
            start = time.process_time()
        return found

    calls(4)
    print(json.dumps(calls(n)))


def main() -> int:
    """Rounds of both."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=7)
    flags.add_argument("--operators", type=int, default=1000)
    flags.add_argument("--quick", action="store_true")
    flags.add_argument("--worker", help=argparse.SUPPRESS)
    given = flags.parse_args()
    if given.worker:
        worker(given.operators, given.worker)
        return 0
    found: dict[str, list[list[float]]] = {"result, uncached": [], "result, from disk": [], "gradients": []}
    for _ in range(3 if given.quick else given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in found:
                root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
                environment = {**os.environ, "IRTOOL_CACHE_DIR": os.path.join(folder, "cache"), "PYTHONPATH": root}
                command = [sys.executable, os.path.abspath(__file__), "--worker", name, "--operators", str(given.operators)]
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
                found[name].append(json.loads(done.stdout))
    for (name, rounds), limit in zip(found.items(), (60, 15), strict=False):
        times = [calls[0] for calls in rounds]
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        median = statistics.median(times)
        verdict = "reached" if median <= limit else "MISSED "
        print(f"{verdict} first {name}: {median:6.1f} ms ±{(high - low) / median:.0%} (at most {limit})")
    each = [f"{statistics.median(times):.1f}" for times in zip(*found["gradients"], strict=True)]
    print(f"        gradients, three calls one by one: {', '.join(each)} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
