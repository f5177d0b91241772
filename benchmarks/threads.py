"""What several threads gain: plans with one thread and with more, against torch with one and with more.

    OPENBLAS_NUM_THREADS=1 python benchmarks/threads.py
    python benchmarks/threads.py --blas 2 --threads 2 --only wide

Nothing is pinned, and times are wall-clock times: busy neighbours are seen in the spreads. All candidates share one process, in
interleaved rounds whose order rotates; a ratio is the median of the ratios within each round, in brackets its quartiles. Before each timed
call stand a rest and a call that is not timed: after a rest a thread may be woken on the core of the thread that wakes it, where both take
turns until the system moves one of them, a millisecond or so later (torch's threads too). `busiest` is
the part of all CPU time of a plan that its busiest thread took: without neighbours, no ratio can be less. Results with several threads
are compared with those of one, bit for bit, before anything is timed.

With --blas 1 (the default) BLAS has one thread and plans run products beside each other; with more, products are left to BLAS.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
flags.add_argument("--threads", type=int, default=2, help="threads of plans, and of torch")
flags.add_argument("--blas", type=int, default=1, help="threads of BLAS")
flags.add_argument("--only", default="", help="only cases whose names contain this")
flags.add_argument("--rounds", type=int, default=30)
flags.add_argument("--quick", action="store_true", help="small sizes, few rounds")
flags.add_argument("--json", metavar="FILE", help="write the figures there too")
if __name__ == "__main__":
    given = flags.parse_args()
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(given.blas)))

import execution_cases as cases  # noqa: E402  NumPy reads the number of threads when it is imported
import numpy as np  # noqa: E402

import irtool  # noqa: E402

Run = Callable[[], Any]
REST = 0.02
"""Seconds before each candidate: threads of the candidate before it look for work for a while, and take a core meanwhile."""


def chain(quick: bool) -> tuple[str, list[Any], bool]:
    """12 pointwise operators on 10 million numbers: one group, whose blocks are shared."""
    forms = "add(%{}, %y, %one)", "mul(%{}, %y)", "tanh(%{})"
    lines = "".join(f"  %{i + 1} : Tensor = aten::{forms[i % 3].format(i)}\n" for i in range(12))
    text = "graph(%0 : Tensor, %y : Tensor):\n  %one : int = prim::Constant[value=1]()\n" + lines + "  return (%12)\n"
    size = 10**6 if quick else 10**7
    return text, [cases.normal(size), cases.normal(size, seed=1)], False


def wide(quick: bool) -> tuple[str, list[Any], bool]:
    """8 products of 512 x 512 matrices that do not need each other, and their sum."""
    n = 256 if quick else 512
    names = [f"%w{i}" for i in range(8)]
    lines = [f"  %{i} : Tensor = aten::mm(%x, {name})\n  %r{i} : Tensor = aten::relu(%{i})\n" for i, name in enumerate(names)]
    lines += [f"  %s{i} : Tensor = aten::add({'%r0' if i == 1 else f'%s{i - 1}'}, %r{i}, %one)\n" for i in range(1, 8)]
    text = f"graph(%x : Tensor, {', '.join(f'{name} : Tensor' for name in names)}):\n  %one : int = prim::Constant[value=1]()\n"
    return text + "".join(lines) + "  return (%s7)\n", [cases.normal(n, n, seed=i) for i in range(9)], False


def mlp(quick: bool) -> tuple[str, list[Any], bool]:
    """An MLP of four layers, 512 wide, batch 512: forwards and backwards. The two products of a layer's gradients need not each other."""
    n = 256 if quick else 512
    lines, value = [], "%x"
    for i in range(4):
        lines.append(f"  %m{i} : Tensor = aten::mm({value}, %w{i})\n  %r{i} : Tensor = aten::relu(%m{i})\n")
        value = f"%r{i}"
    text = "graph(%x : Tensor, %w0 : Tensor, %w1 : Tensor, %w2 : Tensor, %w3 : Tensor):\n  %none : NoneType = prim::Constant()\n"
    text += "".join(lines) + f"  %loss : Tensor = aten::sum({value}, %none)\n  return (%loss)\n"
    return text, [cases.normal(n, n, scale=0.05, seed=i) for i in range(5)], True


def convolutions(quick: bool) -> tuple[str, list[Any], bool]:
    """Four convolutions with kernels of 3 x 3 and 64 channels: forwards and backwards. Each is shared."""
    n = 28 if quick else 56
    lines, value = [], "%x"
    for i in range(4):
        lines.append(f"  %c{i} : Tensor = aten::convolution({value}, %w{i}, %none, %ones, %ones, %ones, %no, %zeros, %one)\n"
                     f"  %r{i} : Tensor = aten::relu(%c{i})\n")
        value = f"%r{i}"
    text = "graph(%x : Tensor, %w0 : Tensor, %w1 : Tensor, %w2 : Tensor, %w3 : Tensor):\n  %none : NoneType = prim::Constant()\n" \
           "  %one : int = prim::Constant[value=1]()\n  %no : bool = prim::Constant[value=0]()\n" \
           "  %ones : int[] = prim::Constant[value=[1, 1]]()\n  %zeros : int[] = prim::Constant[value=[0, 0]]()\n"
    text += "".join(lines) + f"  %loss : Tensor = aten::sum({value}, %none)\n  return (%loss)\n"
    return text, [cases.normal(2, 64, n, n), *[cases.normal(64, 64, 3, 3, scale=0.05, seed=i) for i in range(4)]], True


CASES = {"chain": chain, "wide": wide, "mlp": mlp, "convolutions": convolutions}


def main(given: argparse.Namespace) -> int:
    """All cases; prints a table each."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; BLAS: {given.blas}", flush=True)
    records = []
    for name, make in CASES.items():
        if given.only in name:
            records += measure(name, make, given)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "argv": sys.argv[1:], "records": records}, file, indent=1)
    return 0


def measure(name: str, make: Callable[[bool], tuple[str, list[Any], bool]], given: argparse.Namespace) -> list[dict[str, Any]]:
    """One case."""
    text, values, has_gradient = make(given.quick)
    print(f"\n{name}: {make.__doc__}", flush=True)
    runs = {f"irtool, {count}": plan(text, values, has_gradient, count) for count in (1, given.threads)}
    one, several = list(runs.values())
    for _ in range(3):
        for a, b in zip(one(), several(), strict=True):
            assert a.tobytes() == b.tobytes(), f"{name}: other bits with {given.threads} threads"
    busiest = busiest_part(several)
    try:
        for count in (1, given.threads):
            runs[f"torch, {count}"] = of_torch(text, values, has_gradient, count)
    except ImportError:
        print("  torch is not installed")
    samples = interleaved(runs, 5 if given.quick else given.rounds)
    records = []
    for candidate, times in samples.items():
        median, spread = middle(times)
        record = {"case": name, "candidate": candidate, "ms": median * 1e3, "spread": spread}
        line = f"  {candidate:12} {median * 1e3:9.3f} ms ±{spread:4.0%}"
        peer = f"{candidate.split(',')[0]}, 1"
        if candidate != peer:
            ratios = [a / b for a, b in zip(times, samples[peer], strict=True)]
            low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
            record.update(ratio=ratio, low=low, high=high, reference=peer)
            line += f"   {ratio:.3f} x {peer} ({low:.2f} to {high:.2f})"
            if candidate.startswith("irtool"):
                record["busiest"] = busiest
                line += f"   busiest {busiest:.2f}"
        records.append(record)
        print(line, flush=True)
    return records


def plan(text: str, values: list[Any], has_gradient: bool, threads: int) -> Run:
    """irtool's executor."""
    run = irtool.compile(irtool.parse(text), threads=threads)
    if not has_gradient:
        return lambda: run(*values)
    wrt, seed = list(range(len(values))), np.ones((), np.float32)
    return lambda: run.vjp(values, [seed], wrt)


def of_torch(text: str, values: list[Any], has_gradient: bool, threads: int) -> Run:
    """The same graph in torch, eagerly; gradients through its own engine."""
    import torch

    function = torch._C._create_function_from_graph("f", torch._C.parse_ir(text))
    given = [torch.from_numpy(each).requires_grad_(has_gradient) for each in values]

    def run() -> Any:
        torch.set_num_threads(threads)
        if has_gradient:
            return torch.autograd.grad(function(*given), given)
        with torch.no_grad():
            return function(*given)
    for _ in range(3):
        run()
    return run


def interleaved(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds per call, one entry per round."""
    names = list(runs)
    samples: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            time.sleep(REST)
            runs[name]()
            start = time.perf_counter()
            runs[name]()
            samples[name].append(time.perf_counter() - start)
    gc.enable()
    return samples


def busiest_part(run: Run, calls: int = 10) -> float:
    """The CPU time of the busiest thread, divided by that of all."""
    def cpu() -> dict[int, float]:
        return {each.ident or 0: time.clock_gettime(time.pthread_getcpuclockid(each.ident or 0)) for each in threading.enumerate()}

    before = cpu()
    for _ in range(calls):
        run()
    spent = [now - before.get(ident, 0.0) for ident, now in cpu().items()]
    return max(spent) / max(sum(spent), 1e-9)


def middle(values: list[float]) -> tuple[float, float]:
    """(median, distance of the quartiles over the median)."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / median


if __name__ == "__main__":
    raise SystemExit(main(given))
