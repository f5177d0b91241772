"""How much memory plans take: their peak, the largest set of bytes alive at one time, and the peak of torch eager.

    python benchmarks/memory.py
    python benchmarks/memory.py --only block,random
    python benchmarks/memory.py --corpus FOLDER
    python benchmarks/memory.py --networks FILE.py --only resnet,lstm

The cases are those of `execution.py`, and random graphs (`tests/random_graphs.py`) on larger arrays. A peak is what arrays take at most
during a run, with what is kept from run to run, and without inputs: by `tracemalloc` for irtool, by the profiler for torch, in the
same process. tracemalloc counts Python's objects and NumPy's own buffers, too, which are most of what small cases take; the profiler
counts elements alone. What is planned and what is alive is computed, as `irtool plan --memory` does. A corpus is a folder with a
`load_case.py`. A file of networks is a script that has `NETWORKS` (title -> functions that make a torch module and its input), and
`traced` and `FROZEN`, which make graphs of one: inference with frozen weights, which count on both sides, and a step of training, against
torch eager.
"""
from __future__ import annotations

import argparse
import ast
import csv
import inspect
import json
import os
import statistics
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
if __name__ == "__main__":
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["IRTOOL_CACHE_DIR"] = os.path.join(tempfile.gettempdir(), "irtool-nothing-kept", "here")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import execution_cases as cases  # noqa: E402  NumPy reads the number of threads when it is imported
import numpy as np  # noqa: E402

import irtool  # noqa: E402
from irtool.execute.plan.memory import MemoryReport  # noqa: E402
from tests.peaks import peak_of, plans_of  # noqa: E402
from tests.random_graphs import Writer  # noqa: E402

LIMIT = 1.1
"""Times the bytes alive that a plan may take."""
LARGE = 1 << 17
"""Bytes alive from which Python's own objects and NumPy's buffers of a few KiB do not count."""
OBJECTS = 1 << 14
"""Bytes of Python's own objects that come on top of the arrays of a network, and that torch's profiler would not count."""
SIDE = 512
"""Extent of the matrices in random graphs."""


def main() -> int:
    """Measure what is asked for; prints a table."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", default="", help="only these: mlp, lstm, block, grad, random; separated by commas")
    flags.add_argument("--quick", action="store_true", help="small sizes, few graphs")
    flags.add_argument("--graphs", type=int, default=60, help="random graphs")
    flags.add_argument("--corpus", metavar="FOLDER", help="measure these graphs instead")
    flags.add_argument("--networks", metavar="FILE.py", help="measure the networks of this script instead")
    flags.add_argument("--sample", type=int, default=1, help="every so manieth graph of the corpus")
    flags.add_argument("--json", metavar="FILE", help="write the figures there too")
    given = flags.parse_args()
    records: list[dict[str, Any]] = []
    if given.corpus:
        records += table(f"graphs of {os.path.basename(given.corpus.rstrip('/'))}", corpus(Path(given.corpus), given.sample))
    elif given.networks:
        records += networks(Path(given.networks), given.only.split(","))
    else:
        wanted = [name for name in given.only.split(",") if name] or ["mlp", "lstm", "block", "grad", "random"]
        records += [record for name in wanted if name in cases.CASES for case in cases.CASES[name](given.quick) for record in beside(case)]
        if "random" in wanted:
            records += table(f"random graphs, {SIDE} x {SIDE}", random_graphs(10 if given.quick else given.graphs))
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "argv": sys.argv[1:], "records": records}, file, indent=1)
    return 0


# -- beside torch
def beside(case: cases.Case) -> Iterator[dict[str, Any]]:
    """A case of `execution.py` on irtool and on torch eager."""
    print(f"\n{case.title}", flush=True)
    peak, run = peak_of(case.candidates["irtool"])
    report = plans_of(inspect.getclosurevars(run).nonlocals["executor"])[-1].memory
    other = torch_peak(case.candidates["torch eager"]())
    assert report is not None
    print(f"  irtool {peak / 1e6:9.3f} MB, planned {report.peak / 1e6:9.3f} MB, alive {report.live / 1e6:9.3f} MB, "
          f"torch eager {other / 1e6:9.3f} MB")
    for what, bytes_ in (("planned", report.peak), ("measured", peak)):
        print(f"  {verdict(bytes_, report.live, LIMIT)} {what} / alive = {bytes_ / report.live:.3f} (at most {LIMIT})")
        print(f"  {verdict(bytes_, other, 1.0)} {what} / torch eager = {bytes_ / other:.3f} (at most 1)", flush=True)
    yield {"case": case.title, "peak": peak, "plan": report.as_dict(), "torch": other}


def verdict(value: float, other: float, limit: float) -> str:
    """In a word."""
    return "reached" if value <= limit * other else "MISSED "


def torch_peak(run: Callable[[], Any]) -> int:
    """The most bytes that torch's allocator has given out during a run."""
    from torch.profiler import profile

    for _ in range(2):
        run()
    with profile(profile_memory=True) as found:
        run()
    assert found.profiler is not None and found.profiler.kineto_results is not None
    events = [event for event in found.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def imported(path: Path) -> Any:
    """A file as a module, for which the command line is empty, without its own call of `main()` at the top level: that measures times."""
    tree = ast.parse(path.read_text(), str(path))
    tree.body = [each for each in tree.body if not (isinstance(each, ast.Expr) and ast.unparse(each.value) == "main()")]
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    words, sys.argv[1:] = sys.argv[1:], []
    sys.path.insert(0, str(path.parent))        # what stands beside it
    sys.modules[path.stem] = module             # torch looks there for sources
    try:
        exec(compile(tree, str(path), "exec"), module.__dict__)
    finally:
        sys.argv[1:] = words
        sys.path.pop(0)
    return module


def networks(path: Path, only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Whole networks: inference with frozen weights, and forward and backward with weights as inputs."""
    import torch

    script = imported(path)
    for title, (make, make_input) in script.NETWORKS.items():
        if not any(word in title for word in only):
            continue
        torch.manual_seed(0)
        model, x = make().eval(), make_input()
        names, tensors = zip(*[*model.named_parameters(), *[each for each in model.named_buffers() if each[1].is_floating_point()]])
        tensors = [tensor.detach() for tensor in tensors]
        graph = irtool.parse(str(script.traced(make, model, names, tensors, x))).graph()
        array, weights, parameters = x.numpy(), [tensor.numpy() for tensor in tensors], list(model.parameters())
        seed = np.ones(tuple(model(x).shape), np.float32)

        def infer(graph: Any = graph, weights: Any = weights, array: Any = array) -> Callable[[], Any]:
            run = script.FROZEN(graph, weights, 1)
            return lambda: run(array)

        def eager(model: Any = model, x: Any = x) -> Any:
            with torch.no_grad():
                return model(x)

        places = tuple(range(1, 1 + len(parameters)))

        def train(graph: Any = graph, inputs: Any = (array, *weights), seed: Any = seed, wrt: Any = places) -> Callable[[], Any]:
            run = irtool.compile(graph)
            return lambda: run.vjp(inputs, [seed], wrt)

        def eager_step(model: Any = model, x: Any = x, parameters: Any = parameters, seed: Any = seed) -> Any:
            return torch.autograd.grad(model(x), parameters, torch.from_numpy(seed))

        own = sum([array.nbytes for array in weights])      # frozen graphs hold weights of their own, so those of torch count there, too
        for what, ours, theirs, held in (("inference", infer, eager, own), ("forward and backward", train, eager_step, 0)):
            peak, other = peak_of(ours)[0], torch_peak(theirs) + held
            print(f"{title + ', ' + what:50} irtool {peak / 1e6:8.1f} MB, torch eager {other / 1e6:8.1f} MB, "
                  f"{verdict(peak - OBJECTS, other, 1.0)} {peak / other:.3f} (at most 1)", flush=True)
            yield {"case": f"{title}, {what}", "peak": peak, "torch": other}


# -- many graphs
def table(title: str, rows: Iterator[tuple[str, int, MemoryReport | None]]) -> list[dict[str, Any]]:
    """Ratios of what plans take by themselves, and of what runs take, to what is alive; for plans that are large enough."""
    records = [{"case": name, "peak": peak, "plan": report.as_dict()} for name, peak, report in rows if report is not None]
    known = [each for each in records if not each["plan"]["unknown"]]
    large = [each for each in known if each["plan"]["live"] >= LARGE]
    print(f"\n{title}: {len(records)} run, {len(known)} of them with results of known sizes,"
          f" {len(large)} of those with {LARGE >> 10} KiB or more alive")
    for what, ratios in (("planned / alive", [each["plan"]["peak"] / each["plan"]["live"] for each in large]),
                         ("measured / alive", [each["peak"] / each["plan"]["live"] for each in large])):
        if len(ratios) > 1:
            deciles = statistics.quantiles(ratios, n=10, method="inclusive")
            below = sum(ratio <= LIMIT for ratio in ratios)
            print(f"  {what:17} median {statistics.median(ratios):.3f}, 9th decile {deciles[-1]:.3f}, largest {max(ratios):.3f}; "
                  f"{below} of {len(ratios)} at most {LIMIT}")
    for each in sorted(large, key=lambda each: -each["peak"] / each["plan"]["live"])[:5]:
        print(f"    {each['case']:50} {each['peak'] / each['plan']['live']:.3f}")
    return records


def measured(name: str, text: str, inputs: Sequence[Any]) -> tuple[str, int, MemoryReport | None]:
    """One graph: its name, the peak, and the plan's report (None where there is none)."""
    made = []

    def make() -> Callable[[], Any]:
        made.append(irtool.compile(irtool.parse(text)))
        return lambda: made[0](*inputs)

    peak, _ = peak_of(make)
    plans = plans_of(made[0])
    return name, peak, plans[-1].memory if plans else None


def random_graphs(count: int) -> Iterator[tuple[str, int, MemoryReport | None]]:
    """Views, writes, lists, branches and loops."""
    generator = np.random.default_rng(0)
    x, y, c = [generator.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(3)]
    for seed in range(count):
        yield measured(f"seed {seed}", Writer(seed).graph(SIDE), [x, y, bool(seed & 1), 3, c])


def corpus(folder: Path, step: int) -> Iterator[tuple[str, int, MemoryReport | None]]:
    """The graphs that run."""
    module = imported(folder / "load_case.py")
    with open(folder / "CASES.tsv") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if not row["raises"]]
    for row in rows[::step]:
        text, inputs, *_ = module.load(str(folder if row["where"] == "loose" else folder / row["where"]), row["case"])
        try:
            yield measured(row["case"], text, inputs)
        except irtool.Error as error:
            print(f"  {row['case']}: {error}"[:150], file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
