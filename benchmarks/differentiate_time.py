"""Differentiation: CPU time per node of the graph, `differentiate` against torch's `_jit_differentiate`; reading is not counted.

    python benchmarks/differentiate_time.py [--quick] [--only irtool]

The program is a chain of elementwise operators, with complete types or with none. The collector is on, as it is in whoever calls the
library; torch stops at 1,000 nodes unless `--sizes` names larger ones alone.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness

CANDIDATES = {"irtool": 10**9, "torch": 1000}
PROGRAMS = ("typed", "untyped")
OPERATORS = ("aten::mul(%{last}, %y)", "aten::tanh(%{last})", "aten::add(%{last}, %y, %one)", "aten::sigmoid(%{last})",
             "aten::mul(%{last}, %{last})", "aten::sin(%{last})")
TYPES = {"typed": "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)", "untyped": "Tensor"}


def text_of(name: str, program: str, n: int) -> str:
    """A chain of `n` operators."""
    type = TYPES[program]
    lines = [f"graph(%v0 : {type}, %y : {type}):", "  %one : int = prim::Constant[value=1]()"]
    lines += [f"  %v{i + 1} : {type} = {OPERATORS[i % len(OPERATORS)].format(last=f'v{i}')}" for i in range(n)]
    return "\n".join([*lines, f"  return (%v{n})", ""])


def tools(name: str, text: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """(make a fresh graph, differentiate it) of a candidate."""
    if name == "torch":
        import torch

        return torch._C.parse_ir(text).copy, torch._C._jit_differentiate
    import irtool
    from irtool.autodiff.reverse import differentiate_graph

    return lambda: irtool.parse(text).graph(), lambda graph: differentiate_graph(graph, [True] * len(graph.inputs), True, True)


def worker(name: str, program: str, path: str, nodes: str) -> None:
    """Measure one candidate on one program."""
    harness.pin()
    prepare, run = tools(name, Path(path).read_text())
    print(json.dumps({"differentiate": harness.timed(run, prepare, max(1, min(7, 20_000 // int(nodes))))}))


def main() -> None:
    flags = harness.parser(__doc__)
    flags.set_defaults(sizes="1000,10000,100000")
    arguments = flags.parse_args()
    if arguments.worker:
        worker(*arguments.worker)
    else:
        harness.measure(arguments, CANDIDATES, PROGRAMS, text_of, lambda program: ("differentiate",))


if __name__ == "__main__":
    main()
