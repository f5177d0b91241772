"""Passes: irtool against torch (C++) and xDSL (Python), CPU time per node of the input, reading not counted.

    python benchmarks/passes.py [--quick] [--only dce]

Half of each program can be removed by the pass it is named for. xDSL has canonicalize in the place of constant propagation and peephole.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate
import harness

CANDIDATES = {"irtool": 10**9, "torch": 10**9, "xdsl": 10_000}
PASSES = ("dce", "cse", "constant-propagation", "peephole")


def tools(name: str, program: str, text: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """(make a fresh graph, run the pass on it) of a candidate."""
    if name == "irtool":
        import irtool

        chosen = next(each for each in irtool.PASSES if each.name == program).function
        return lambda: irtool.parse(text).graph(), chosen
    if name == "torch":
        import torch

        graph = torch._C.parse_ir(text)
        return graph.copy, getattr(torch._C, f"_jit_pass_{program.replace('-', '_')}")
    from xdsl.context import Context
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.parser import Parser
    from xdsl.transforms.canonicalize import CanonicalizePass
    from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
    from xdsl.transforms.dead_code_elimination import DeadCodeElimination

    context = Context()
    for dialect in (Builtin, Func, Arith):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    transform = {"dce": DeadCodeElimination, "cse": CommonSubexpressionElimination}.get(program, CanonicalizePass)()
    return module.clone, lambda subject: transform.apply(context, subject)


def worker(name: str, program: str, path: str, nodes: str) -> None:
    """Measure one candidate on one program."""
    harness.pin()
    prepare, run = tools(name, program, Path(path).read_text())
    repeat = 2 if name == "xdsl" else max(1, min(15, 200_000 // int(nodes)))
    print(json.dumps({program: harness.timed(run, prepare, repeat, warm=0 if int(nodes) >= 1_000_000 else 1)}))


def text_of(name: str, program: str, n: int) -> str:
    """The program in the candidate's language."""
    if name == "xdsl":
        return generate.mlir_text(program, n) if program in generate.PROGRAMS else ""
    return generate.torch_text(program, n)


def main() -> None:
    arguments = harness.parser(__doc__).parse_args()
    if arguments.worker:
        worker(*arguments.worker)
    else:
        harness.measure(arguments, CANDIDATES, PASSES, text_of, lambda program: (program,))


if __name__ == "__main__":
    main()
