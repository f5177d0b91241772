"""What the preset `inference` does to the graphs of a corpus with their weights as constants: nodes, outputs and time, before and after.

    python benchmarks/inference.py FOLDER [--groups models_tv,modules] [--sample 5] [--rounds 9]

FOLDER has a CASES.tsv and a `load_case.py`. Weights are the inputs whose names begin with `p_`. Outputs must be those recorded, or where
the graph as it was gives others (batch norms that train on next to equal numbers), those. The time of a graph is the smallest of several
runs of CPU time, taken in turn with that of the graph with weights as inputs.
"""
from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402  it reads the number of threads when it is imported

import irtool  # noqa: E402
from irtool.ir.rounded import RoundedWarning  # noqa: E402

NOISE = 1.1
"""Times the time before, up to which a graph is not slower."""
LEAST = 5e-6
"""Seconds a run may take longer, whatever its time."""


def leaves(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in lists, tuples and dicts."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)


def is_near(result: Any, wanted: Any) -> bool:
    """Are these the recorded outputs, within what torch's own ways of running differ?"""
    pairs = list(zip(leaves(result), leaves(wanted), strict=True))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0))),
                                                  equal_nan=True) for a, b in pairs if b.dtype.kind in "fc")


def seconds(runs: list[Any], rounds: int) -> list[float]:
    """The smallest CPU time of each function, called in turn."""
    best = [math.inf] * len(runs)
    for _ in range(rounds):
        for place, run in enumerate(runs):
            start = time.process_time()
            run()
            best[place] = min(best[place], time.process_time() - start)
    return best


def measured(text: str, inputs: list[Any], outputs: list[Any], rounds: int) -> tuple[int, int, bool, float, float] | None:
    """Nodes before and after, whether outputs are as recorded, and seconds before and after; None without weights."""
    graph = irtool.parse(text).graph()
    weights = {place: value for place, (each, value) in enumerate(zip(graph.inputs, inputs, strict=True))
               if each.name.startswith("p_") and isinstance(value, np.ndarray)}
    if not weights:
        return None
    before = sum(1 for _ in graph.walk())
    frozen = irtool.PassManager("inference").run(irtool.freeze(graph, weights)).graph()
    after = sum(1 for _ in frozen.walk())
    rest = [value for place, value in enumerate(inputs) if place not in weights]
    whole, small = irtool.compile(graph), irtool.compile(frozen)
    pairs = [(small(*rest), whole(*inputs)) for _ in range(3)]
    same = all(is_near(found, outputs) or is_near(found, unfrozen) for found, unfrozen in pairs)
    return before, after, same, *seconds([lambda: whole(*inputs), lambda: small(*rest)], rounds)


def main() -> int:
    """Measure what is asked for; prints a line per group, and one per graph that differs or is slower."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("folder", type=Path)
    flags.add_argument("--groups", default="", help="only these, separated by commas")
    flags.add_argument("--sample", type=int, default=1, help="every so manieth graph")
    flags.add_argument("--rounds", type=int, default=9)
    given = flags.parse_args()
    warnings.simplefilter("ignore", RoundedWarning)
    spec = importlib.util.spec_from_file_location("load_case", given.folder / "load_case.py")
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    with open(given.folder / "CASES.tsv") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if not row["raises"] and row["deterministic"] == "True"]
    wanted = [name for name in given.groups.split(",") if name]
    found: dict[str, list[tuple[int, int, float]]] = {}
    wrong = 0
    for row in [row for row in rows if not wanted or row["group"] in wanted][::given.sample]:
        text, inputs, outputs, _ = cases.load(str(given.folder if row["where"] == "loose" else given.folder / row["where"]), row["case"])
        try:
            figures = measured(text, inputs, outputs, given.rounds)
        except irtool.UnsupportedError as error:
            print(f"  {row['case']}: {error}"[:150], file=sys.stderr)
            continue
        if figures is None:
            continue
        before, after, same, old, new = figures
        found.setdefault(row["group"], []).append((before, after, new / old))
        wrong += not same
        if not same or new > max(NOISE * old, old + LEAST):
            print(f"  {row['case']}: {'' if same else 'OTHER OUTPUTS, '}{old * 1e3:.3f} ms before, {new * 1e3:.3f} ms after", flush=True)
    for group, each in found.items():
        ratio = math.exp(sum(math.log(new) for *_, new in each) / len(each))
        print(f"{group:14} {len(each):4} graphs  {sum(a for a, *_ in each):6} nodes before  {sum(b for _, b, _ in each):6} after  "
              f"{ratio:.2f} of the time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
