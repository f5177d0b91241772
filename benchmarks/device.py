"""Plans on a GPU (`backend="cupy"`), against torch on the same GPU and against what its memory could do at best.

    python benchmarks/device.py
    python benchmarks/device.py --only chain --json figures.json
    python benchmarks/device.py --stand-in --quick      # no GPU: CuPy's stand-in of the tests, to see that it runs; no figures

All candidates of a case share one process and one device, in interleaved rounds whose order rotates. Everything lies on the device
before anything is timed, and the device has finished before a time is taken. `started` is the part of a call that passes before Python
goes on: where it comes close to the whole, the device waits for Python. A ratio is the median of the ratios within each round.
Results are compared with torch's before anything is timed: a wrong one is left out.
"""
from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import execution_cases as cases
import numpy as np
from execution import difference, middle

import irtool

Run = Callable[[], Any]
LIMIT = "limit: 4 arrays at the speed of copies"


class Case:
    """A graph in text and its inputs. wrt: the inputs whose gradients are wanted, if any; eager: the function in torch; copies: how
    often the first input must be copied to move as much memory as an ideal kernel."""

    def __init__(self, title: str, text: str, inputs: list[Any], wrt: Sequence[int] = (), eager: Callable[..., Any] | None = None,
                 copies: int = 0) -> None:
        self.title = title
        self.text = text
        self.inputs = inputs
        self.wrt = list(wrt)
        self.eager = eager
        self.copies = copies


def chain(quick: bool) -> Iterator[Case]:
    """12 pointwise operators, three operands, one result: one kernel."""
    n = 10_000 if quick else 10_000_000
    x, y, z = [(np.random.default_rng(i).random(n) * 0.9 + 0.05).astype(np.float32) for i in range(3)]
    for name, program in (("cheap", cases.CHEAP), ("transcendental", cases.TRANSCENDENTAL)):
        steps = [line.split() for line in program.split(";")]
        lines = [f"  %{out} : Tensor = aten::{op}({', '.join('%' + each for each in operands)}{', %one' * (op in ('add', 'sub'))})\n"
                 for out, op, *operands in steps]
        text = "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n  %one : int = prim::Constant[value=1]()\n"
        yield Case(f"12 {name} pointwise operators on {n:,} floats", f"{text}{''.join(lines)}  return (%{steps[-1][0]})\n", [x, y, z],
                   copies=2)


def mlp(quick: bool) -> Iterator[Case]:
    """Three layers, forwards and backwards."""
    rows, a, b, c = (16, 32, 64, 8) if quick else (128, 512, 1024, 512)
    inputs = [cases.normal(rows, a), cases.normal(a, b, scale=a ** -.5), cases.normal(b, scale=.1), cases.normal(b, b, scale=b ** -.5),
              cases.normal(b, scale=.1, seed=1), cases.normal(b, c, scale=b ** -.5), cases.normal(c, scale=.1)]
    text = """graph(%x : Tensor, %w1 : Tensor, %c1 : Tensor, %w2 : Tensor, %c2 : Tensor, %w3 : Tensor, %c3 : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %m1 : Tensor = aten::mm(%x, %w1)
  %s1 : Tensor = aten::add(%m1, %c1, %one)
  %h1 : Tensor = aten::relu(%s1)
  %m2 : Tensor = aten::mm(%h1, %w2)
  %s2 : Tensor = aten::add(%m2, %c2, %one)
  %h2 : Tensor = aten::relu(%s2)
  %m3 : Tensor = aten::mm(%h2, %w3)
  %s3 : Tensor = aten::add(%m3, %c3, %one)
  %p : Tensor = aten::pow(%s3, %two)
  %loss : Tensor = aten::sum(%p, %none)
  return (%loss)
"""
    yield Case(f"MLP {a}-{b}-{b}-{c}, {rows} rows, forward and backward", text, inputs, range(1, 7))


def block(_: bool) -> Iterator[Case]:
    """A transformer block, which torch's compiler puts into a graph."""
    import execution_block as own

    d, f = own.WIDTH, 4 * own.WIDTH
    inputs = [cases.normal(own.ROWS, own.LENGTH, d), cases.normal(d, 3 * d, scale=d ** -.5), cases.normal(3 * d, scale=.1),
              cases.normal(d, d, scale=d ** -.5), cases.normal(d, scale=.1), cases.normal(d, f, scale=d ** -.5), cases.normal(f, scale=.1),
              cases.normal(f, d, scale=f ** -.5), cases.normal(d, scale=.1, seed=1),
              *[np.full(d, value, np.float32) for value in (1, 0, 1, 0)]]
    title = f"transformer block, {own.ROWS} x {own.LENGTH}, d={d}"
    yield Case(f"{title}, forward", str(cases.graph_of(own.block)), inputs, eager=own.block)
    yield Case(f"{title}, forward and backward", str(cases.graph_of(own.loss)), inputs, range(1, 13), own.loss)


CASES: dict[str, Callable[[bool], Iterator[Case]]] = {"chain": chain, "mlp": mlp, "block": block}


def main() -> int:
    """Run what is asked for; prints a table per case."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", default="", help="only cases whose names contain this")
    flags.add_argument("--rounds", type=int, default=15)
    flags.add_argument("--quick", action="store_true", help="few rounds, small sizes")
    flags.add_argument("--stand-in", action="store_true", help="without a GPU: only whether it runs, on the tests' stand-in for CuPy")
    flags.add_argument("--json", metavar="FILE", help="write the figures there too")
    given = flags.parse_args()
    records = []
    with contextlib.ExitStack() as stack:
        if given.stand_in:
            sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
            stack.enter_context(import_module("fake_cupy").installed())
        try:
            irtool.run(irtool.parse("graph():\n  return ()\n"), [], backend="cupy")
        except irtool.RunError as error:
            print(f"no figures: {error}")
            return 0
        print("CuPy's stand-in: the times say nothing" if given.stand_in else device_name(), flush=True)
        for name, make in CASES.items():
            if given.only not in name:
                continue
            try:
                for case in make(given.quick):
                    records += measure(case, 3 if given.quick else given.rounds, given.stand_in)
            except ImportError as error:
                print(f"\n{name}: left out, {error}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "argv": sys.argv[1:], "records": records}, file, indent=1)
    return 0


def device_name() -> str:
    """What the figures are of."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{name}, CUDA {cupy.cuda.runtime.runtimeGetVersion()}, CuPy {cupy.__version__}"


def measure(case: Case, rounds: int, stand_in: bool) -> list[dict[str, Any]]:
    """Time one case and print it."""
    import cupy

    print(f"\n{case.title}", flush=True)
    arrays = [cupy.asarray(each) for each in case.inputs]
    runs: dict[str, Run] = {}
    expected = None
    for name in ("torch", "irtool"):
        try:
            start = time.perf_counter()
            run = of_torch(case, stand_in) if name == "torch" else of_irtool(case, arrays)
            found = [np.asarray(each.get() if hasattr(each, "get") else each.detach().cpu(), np.float64) for each in run()]
        except ImportError as error:
            print(f"  {name:40} {error}")
            continue
        print(f"  {name:40} first call {(time.perf_counter() - start) * 1e3:9.2f} ms", flush=True)
        wrong = difference(found, expected) if expected is not None else 0.0
        if wrong > 1e-3:
            print(f"  {name:40} wrong by {wrong:.1e}")
            continue
        expected, runs[name] = found, run
    if case.copies:
        target = cupy.empty_like(arrays[0])

        def copy() -> None:
            for _ in range(case.copies):
                target[...] = arrays[0]
        runs[LIMIT] = copy
    return table(case, interleaved(runs, rounds, waiting(stand_in, "torch" in runs)))


def waiting(stand_in: bool, has_torch: bool) -> Run:
    """What returns when all that was started has finished."""
    import cupy

    if stand_in:
        return lambda: None
    device: Any = cupy.cuda.Device()

    def wait() -> None:
        device.synchronize()
        if has_torch:
            import torch

            torch.cuda.synchronize()
    return wait


def of_irtool(case: Case, arrays: list[Any]) -> Run:
    """The executor on the device."""
    import cupy

    run = irtool.compile(irtool.parse(case.text), backend="cupy")
    if not case.wrt:
        return lambda: run(*arrays)
    one = cupy.asarray(np.ones((), np.float32))
    return lambda: run.vjp(arrays, [one], case.wrt)


def of_torch(case: Case, stand_in: bool) -> Run:
    """torch on the device, and without one on the processor."""
    import torch

    if not stand_in and not torch.cuda.is_available():
        raise ImportError("torch has no CUDA here")
    function = case.eager or torch._C._create_function_from_graph("f", torch._C.parse_ir(case.text))
    given = [torch.from_numpy(each).to("cpu" if stand_in else "cuda") for each in case.inputs]
    wanted = [given[place].requires_grad_() for place in case.wrt]

    def run() -> Any:
        if wanted:
            return torch.autograd.grad(function(*given), wanted)
        with torch.no_grad():
            return [function(*given)]
    return run


def interleaved(runs: dict[str, Run], rounds: int, wait: Run) -> dict[str, list[tuple[float, float]]]:
    """Seconds per call, and those until Python goes on; one entry per round."""
    names = list(runs)
    counts = {}
    for name in names:
        for _ in range(3):      # what the first calls set up is not counted
            runs[name]()
        wait()
        start = time.perf_counter()
        runs[name]()
        wait()
        counts[name] = min(1000, max(1, int(0.05 / max(time.perf_counter() - start, 1e-9))))
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            run, count = runs[name], counts[name]
            wait()
            start = time.perf_counter()
            for _ in range(count):
                run()
            started = time.perf_counter() - start
            wait()
            samples[name].append(((time.perf_counter() - start) / count, started / count))
    gc.enable()
    return samples


def table(case: Case, samples: dict[str, list[tuple[float, float]]]) -> list[dict[str, Any]]:
    """Print the figures, and irtool's ratios to the others."""
    records: list[dict[str, Any]] = []
    for name, pairs in samples.items():
        median, spread = middle([whole for whole, _ in pairs])
        started, _ = middle([first for _, first in pairs])
        record = {"case": case.title, "candidate": name, "ms": median * 1e3, "spread": spread, "started_ms": started * 1e3}
        line = f"  {name:40} {median * 1e3:9.4f} ms ±{spread:4.0%}   started {started * 1e3:9.4f} ms"
        if name != "irtool" and "irtool" in samples:
            ratio, width = middle([own[0] / other[0] for own, other in zip(samples["irtool"], pairs, strict=True)])
            record.update(irtool_ratio=ratio, ratio_spread=width)
            line += f"   irtool takes {ratio:.3f} of it ±{width:.0%}"
        records.append(record)
        print(line, flush=True)
    return records


if __name__ == "__main__":
    sys.exit(main())
