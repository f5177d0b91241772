"""Every pass on graphs of several shapes: CPU time per node of a small and of a large graph, and how much it grew.

    PYTHONPATH=. python benchmarks/growth.py [--sizes 10000,1000000] [--only fuse] [--shapes chain,layers] [--most 1.6]

A graph is parsed once for each size; each pass runs in a process forked from there, which ends when the pass took too long. The small
graph is measured several times, the median counts. Exit 1 if time per node grows more than `--most`.
"""
from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import generate

import irtool
from irtool.passes import PASSES
from tests import growing_graphs

BEFORE = {"specialize-undef": "differentiate", "lower-grad-of": "differentiate", "pack-gradient": "differentiate",
          "unpack-gradient": "differentiate,pack-gradient", "inline-autodiff-subgraphs": "create-autodiff-subgraphs"}
"""What a pass reads is made by other passes, whose time does not count."""
OPTIONS = {"vmap": "{in-dims=0}"}
LEFT_OUT = ("freeze", "rewrite")
"""For archives; with a file of rules."""
LIMIT = 400.0
"""Seconds for one pass on one graph."""
FLOAT = "Float(8, 8, strides=[8, 1], requires_grad=1, device=cpu)"
IMAGE = "Float(1, 8, 6, 6, strides=[288, 36, 6, 1], requires_grad=1, device=cpu)"


def nested(n: int) -> str:
    """Loops in branches in loops, with writes through views, again and again."""
    lines = [f"graph(%x : {FLOAT}, %c : bool, %k : int):", "  %one : int = prim::Constant[value=1]()",
             "  %zero : int = prim::Constant[value=0]()", "  %two : int = prim::Constant[value=2]()",
             "  %true : bool = prim::Constant[value=1]()"]
    last = "x"
    for i in range(n // 14):
        lines += [f"  %o{i} : Tensor = prim::Loop(%k, %true, %{last})", f"    block0(%i{i} : int, %p{i} : Tensor):",
                  f"      %a{i} : Tensor = aten::mul(%p{i}, %x)", f"      %e{i} : bool = aten::eq(%i{i}, %zero)",
                  f"      %b{i} : Tensor = prim::If(%e{i})", "        block0():", f"          %m{i} : Tensor = aten::mul(%a{i}, %{last})",
                  f"          %l{i} : Tensor = prim::Loop(%two, %true, %m{i})", f"            block0(%j{i} : int, %q{i} : Tensor):",
                  f"              %s{i} : Tensor = aten::tanh(%q{i})", f"              -> (%true, %s{i})", f"          -> (%l{i})",
                  "        block1():", f"          %n{i} : Tensor = aten::neg(%a{i})",
                  f"          %v{i} : Tensor = aten::select(%n{i}, %zero, %one)", f"          %w{i} : Tensor = aten::mul_(%v{i}, %two)",
                  f"          -> (%n{i})", f"      %t{i} : Tensor = aten::add(%b{i}, %a{i}, %one)", f"      -> (%true, %t{i})",
                  f"  %r{i} : Tensor = prim::If(%c)", "    block0():", f"      %f{i} : Tensor = aten::exp(%o{i})", f"      -> (%f{i})",
                  "    block1():", f"      -> (%o{i})"]
        last = f"r{i}"
    return "\n".join([*lines, f"  return (%{last})", ""])


def layers(n: int) -> str:
    """Linear layers of several spellings, convolutions, batch norm, dropout, tuples, expands and questions about shapes."""
    lines = [f"graph(%x : {FLOAT}, %w : {FLOAT}, %b : Float(8, strides=[1], requires_grad=1, device=cpu), %image : {IMAGE}):"]
    constants = "one:int=1 zero:int=0 eight:int=8 half:float=0.5 no:bool=0 yes:bool=1 ones:int[]=[1,1] zeros:int[]=[0,0] sizes:int[]=[8,8]"
    lines += [f"  %{name} : {type} = prim::Constant[value={value}]()" for name, type, value in
              (re.split("[:=]", each) for each in constants.split())]
    lines += ["  %none : NoneType = prim::Constant()", "  %ks : int[] = prim::Constant[value=[8, 1, 3, 3]]()",
              "  %kbs : int[] = prim::Constant[value=[8]]()", "  %k : Float(8, 1, 3, 3) = aten::ones(%ks, %none, %none, %none, %none)",
              "  %kb : Float(8) = aten::ones(%kbs, %none, %none, %none, %none)"]
    last, image = "x", "image"
    for i in range(n // 20):
        lines += [f"  %t{i} : Tensor = aten::t(%w)", f"  %m{i} : {FLOAT} = aten::mm(%{last}, %t{i})",
                  f"  %a{i} : {FLOAT} = aten::add(%m{i}, %b, %one)", f"  %u{i} : {FLOAT} = aten::addmm(%b, %a{i}, %w, %one, %one)",
                  f"  %d{i} : {FLOAT} = aten::dropout(%u{i}, %half, %no)",
                  f"  %p{i} : (Tensor, Tensor) = prim::TupleConstruct(%d{i}, %a{i})",
                  f"  %q{i} : Tensor, %r{i} : Tensor = prim::TupleUnpack(%p{i})", f"  %n{i} : int = aten::dim(%q{i})",
                  f"  %s{i} : int[] = aten::size(%q{i})", f"  %l{i} : int = aten::len(%s{i})", f"  %y{i} : int = aten::add(%n{i}, %l{i})",
                  f"  %e{i} : Tensor = aten::expand(%r{i}, %sizes, %yes)", f"  %f{i} : Tensor = aten::add(%q{i}, %e{i}, %y{i})",
                  f"  %g{i} : Tensor = aten::relu_(%f{i})",
                  f"  %h{i} : Tensor = aten::conv2d(%{image}, %k, %kb, %ones, %ones, %ones, %eight)",
                  f"  %j{i} : Tensor = aten::batch_norm(%h{i}, %kb, %kb, %kb, %kb, %no, %half, %half, %no)",
                  f"  %z{i} : Tensor = aten::relu_(%j{i})", f"  %o{i} : Tensor = aten::sigmoid(%g{i})",
                  f"  %v{i} : Tensor = aten::mul(%o{i}, %g{i})", f"  %c{i} : Tensor = aten::tanh(%v{i})"]
        last, image = f"c{i}", f"z{i}"
    return "\n".join([*lines, f"  return (%{last}, %{image})", ""])


def calls(n: int) -> str:
    """Calls of three small graphs."""
    lines = [f"graph(%x : {FLOAT}):"]
    lines += [f"  %c{i} : Tensor = irtool::call[graph=@part{i % 3}](%{f'c{i - 1}' if i else 'x'})" for i in range(n)]
    parts = [f"graph @part{k}(%x : Tensor):\n  %a : Tensor = aten::{op}(%x)\n  %b : Tensor = aten::mul(%a, %x)\n  return (%b)\n"
             for k, op in enumerate(("tanh", "neg", "exp"))]
    return "\n".join([*lines, f"  return (%c{n - 1})", "", *parts])


SHAPES: dict[str, Callable[[int], str]] = {
    "chain": growing_graphs.chain, "mixed": generate.reallike, "nested": nested, "layers": layers, "writes": growing_graphs.many_writes,
    "views": growing_graphs.views_of_one, "lists": growing_graphs.many_lists, "tuples": growing_graphs.tuples,
    "products": growing_graphs.products}


def seconds(module: irtool.Module, name: str) -> float | str:
    """CPU time of a pass, in a process of its own that works on the module of this one; or why it was refused."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        signal.alarm(int(2 * LIMIT))
        os.write(writing, timed(module, name).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(process, 0)
    try:
        return float(text)
    except ValueError:
        return text or f"not in {LIMIT:.0f} s"


def timed(module: irtool.Module, name: str) -> str:
    """The time of a pass, or its error, as text."""
    try:
        if name in BEFORE:
            module = irtool.PassManager(BEFORE[name], verify=False).run(module)
        manager = irtool.PassManager(name + OPTIONS.get(name, ""), verify=False)
        gc.collect()
        start = time.process_time()
        manager.run(module)
        return str(time.process_time() - start)
    except irtool.Error as error:
        return str(error).strip().splitlines()[0][:100]


def measure(shape: str, names: Iterable[str], sizes: list[int]) -> Iterator[tuple[str, list[float | str]]]:
    """(pass, nanoseconds per node at each size, up to the first that was refused) of all passes on a shape."""
    modules = [irtool.parse(SHAPES[shape](size)) for size in sizes]
    nodes = [sum(1 for graph in module.graphs for _ in graph.walk()) for module in modules]
    gc.collect()
    gc.freeze()
    for name in names:
        timed(irtool.parse(SHAPES[shape](100)), name)       # what is read and compiled on first use
        row: list[float | str] = []
        for module, count in zip(modules, nodes, strict=True):
            times = [seconds(module, name) for _ in range(3 if count < 50_000 else 1)]
            refused = [each for each in times if isinstance(each, str)]
            row.append(refused[0] if refused else statistics.median([each for each in times if isinstance(each, float)]) / count * 1e9)
            if refused:
                break
        yield name, row
    gc.unfreeze()


def main() -> int:
    """Measure, print a line for each pass and shape."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--sizes", default="10000,1000000", help="nodes, separated by commas")
    flags.add_argument("--only", default="", help="only passes whose names contain this")
    flags.add_argument("--shapes", default=",".join(SHAPES), help="which shapes, separated by commas")
    flags.add_argument("--most", type=float, default=1.6, help="how often the time per node may be that of the small graph")
    chosen = flags.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    names = [each.name for each in PASSES if chosen.only in each.name and each.name not in LEFT_OUT]
    grew = 0
    for shape in chosen.shapes.split(","):
        print(f"{shape}, {' and '.join(map(str, sizes))} nodes")
        for name, row in measure(shape, names, sizes):
            if isinstance(row[-1], str):
                print(f"  {name:28}{row[-1]}", flush=True)
                continue
            growth = float(row[-1]) / max(float(row[0]), 1.0)
            grew += growth > chosen.most
            print(f"  {name:28}" + "".join(f"{figure:10.0f}" for figure in row) + f" ns/node  {growth:5.2f} times"
                  + " grows" * (growth > chosen.most), flush=True)
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
