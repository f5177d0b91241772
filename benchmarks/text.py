"""Parse and print: irtool against torch (C++) and xDSL (Python).

    python benchmarks/text.py [--quick] [--only irtool] [--sizes 10000,1000000]

Per node: CPU time to read the text into a graph, to print it again, and the memory the graph takes at its peak while it is read.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate
import harness

CANDIDATES = {"irtool": 10**9, "torch": 10**9, "xdsl": 10_000}      # largest size each is asked for: xDSL takes 300 us a node
PROGRAMS = ("uniform", "reallike")


def tools(name: str) -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """(read, print) of a candidate."""
    if name == "irtool":
        import irtool

        return irtool.parse, str
    if name == "torch":
        import torch

        return torch._C.parse_ir, str
    from io import StringIO

    from xdsl.context import Context
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    def read(text: str) -> Any:
        context = Context()
        for dialect in (Builtin, Func, Arith):
            context.load_dialect(dialect)
        return Parser(context, text).parse_module()

    def show(module: Any) -> str:
        stream = StringIO()
        Printer(stream=stream, print_generic_format=True).print_op(module)
        return stream.getvalue()

    return read, show


def worker(name: str, program: str, path: str, nodes: str) -> None:
    """Measure one candidate on one file and print the figures."""
    harness.pin()
    read, show = tools(name)
    text = Path(path).read_text()
    repeat = 2 if name == "xdsl" else max(1, min(20, 200_000 // int(nodes)))
    before = harness.resident_bytes()
    module = read(text)
    peak = harness.peak_bytes() - before
    printed = show(module)
    if len(printed) < 0.7 * len(text):      # torch drops the source comments
        raise RuntimeError(f"printed {len(printed)} characters for {len(text)}")
    writing = harness.timed(lambda again: show(module), lambda: None, repeat)
    reading = harness.timed(read, lambda: text, repeat, warm=0 if int(nodes) >= 1_000_000 else 1)
    print(json.dumps({"parse": reading, "print": writing, "memory": peak}))


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
        harness.measure(arguments, CANDIDATES, PROGRAMS, text_of, lambda program: ("parse", "print", "memory"))


if __name__ == "__main__":
    main()
