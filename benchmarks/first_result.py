"""Time to the first result of a graph of 1000 operators, in processes of their own: with an empty cache of plans, and with a filled one.

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


def worker(n: int) -> None:
    """One measurement; prints milliseconds."""
    import execution_cases as cases
    import numpy as np

    import irtool

    x, y = [np.random.default_rng(i).random((2, 3, 4)).astype(np.float32) for i in range(2)]
    irtool.compile(irtool.parse(cases.chain_text(cases.chain(4))))(x, y)
    text = cases.chain_text(cases.chain(n))
    start = time.process_time()
    run = irtool.compile(irtool.parse(text))
    run(x, y)
    first = time.process_time() - start
    run(x, y)
    print(json.dumps(first * 1e3))


def main() -> int:
    """Rounds of both."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=7)
    flags.add_argument("--operators", type=int, default=1000)
    flags.add_argument("--quick", action="store_true")
    flags.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = flags.parse_args()
    if given.worker:
        worker(given.operators)
        return 0
    found: dict[str, list[float]] = {"uncached": [], "from disk": []}
    for _ in range(3 if given.quick else given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in found:
                root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
                environment = {**os.environ, "IRTOOL_CACHE_DIR": os.path.join(folder, "cache"), "PYTHONPATH": root}
                command = [sys.executable, os.path.abspath(__file__), "--worker", "--operators", str(given.operators)]
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
                found[name].append(json.loads(done.stdout))
    for (name, times), limit in zip(found.items(), (60, 15), strict=True):
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        median = statistics.median(times)
        verdict = "reached" if median <= limit else "MISSED "
        print(f"{verdict} first result, {name}: {median:6.1f} ms ±{(high - low) / median:.0%} (at most {limit})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
