"""Reading is linear in the text, whatever the text is: long runs of any mark anywhere, thousands of mistakes, many values, deep nesting.

Python's own steps are counted (lines of irtool that run). What a regular expression does in one step cannot be counted so: runs of
20,000 marks get a second of the processor each, which a quadratic search exceeds many times and a linear one never comes near.
"""
from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.ir.errors import Error
from irtool.ir.verify import verify
from irtool.text.dialect_conversion import convert
from irtool.text.parser import parse

TEXTS = {       # `@` marks a place
    "today": 'graph(@%x : Tensor@,\n      %s : str[]@):\n  %1 : int@ = prim::Constant@[@value=1@]@()@\n'
             '  %2@ : Tensor = aten::add@(@%x@, %x, %1)@, scope: A@ # f.py:1:2\n  return (@%2)@\n@',
    "strings": 'graph():\n  %1 : str = prim::Constant[value="@"@, b=[@"@", "x"@]]()\n  return (%1)\n',
    "tensors": 'graph():\n  %1 : Float(2) = prim::Constant[value= 1 @ 2 @ [ CPUFloatType{2@} ]]()\n  return (%1)\n',
    "Python operators": "graph(%x : Tensor):\n  %1 : Tensor = ^Foo@(@1, @hi)@(%x)@\n  return (%1)\n",
    "2017": "graph(%1@) {\n  %3 = Dropout@ 0.2 @True(%1)@, uses = [@%0.i0@]@;\n  return (%3)@;\n}\n",
    "2018": "graph(%x : Dynamic) {\n  %3 : int = aten::add(@7, '@'@)\n  return (%3@);\n}\n",
    "blocks": "graph(%c : bool):\n  %1 : bool = prim::If(%c)\n    block0(@):\n      ->@ (%c@)@\n    block1():\n      -> (%c)\n"
              "  return (%1)\n",
    "subgraphs": "graph(%x : Tensor):\n  %1 : Tensor = prim::FusionGroup_0(%x)\n  return (%1)\n@with @prim::FusionGroup_0@ ="
                 " graph(%x : Tensor):\n  return (%x)\n",
    "names": '# graph f: @a=b@ c=[@] e="@"\ngraph(%x : Tensor):\n  return (%x)\n',
    "listing": "%20, %22 = Conv@ 1 1@ %0, %1@\n@Ret %20@\n",
    "free text": "@abc: @\n@",
}
MARKS = ["#", "# ", "# -", "%", "%a", "%a,", "\\", "\\\"", "\"", "\",", "'", "[", "]", "[]", "(", ")", "{", "}", "<", ",", ", ", ":", "::",
         ";", "=", "a=", "-", "^", "!", "?", ".", "*", " ", "\t", "\r", "\n", "\n#", "0", "9", "a", "_", "1,", "1 ", "->"]
RUN = 20_000


class TooLongError(Exception):
    """The processor's time is over."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """What runs inside may take so much time of the processor; how busy the machine is does not matter."""
    def end(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def read(text: str) -> None:
    """Parse, look into attributes, verify, print, convert; a mistake is as good as a graph."""
    try:
        module = parse(text)
        for graph in module.graphs:
            for node in graph.walk():
                assert all(attribute.value is not attribute for attribute in node.attributes.values())
        verify(module)
        convert(module, "G")
        assert isinstance(str(module), str)
    except Error as error:
        assert str(error)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the processor's time")
@pytest.mark.parametrize("name", TEXTS)
def test_runs_of_marks(name: str) -> None:
    parts = TEXTS[name].split("@")
    for place in range(1, len(parts)):
        for mark in MARKS:
            text = "".join(parts[:place]) + mark * (RUN // len(mark)) + "".join(parts[place:])
            try:
                with processor_time(2.0):
                    read(text)
            except TooLongError:
                pytest.fail(f"a run of {mark!r} at place {place} of {name!r}")


def steps(run: Callable[[], object]) -> int:
    """How many lines of irtool run."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line(frame, event, argument) if "irtool" in frame.f_code.co_filename or "difflib" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def opt(text: str) -> Callable[[], object]:
    """`irtool opt --passes=dce` on a text."""
    return lambda: main(["opt", "-q", "--passes=dce", "-"], io.BytesIO(text.encode()), io.StringIO(), io.StringIO())


NUMBERED: dict[str, Callable[[int], str]] = {
    "unknown operators": lambda i: f"  %{i} : Tensor = aten::ml(%x)\n",
    "different unknown operators": lambda i: f"  %{i} : Tensor = aten::ml{i}(%x)\n",
    "missing operands": lambda i: f"  %{i} : Tensor = aten::mul(%x)\n",
    "undefined values": lambda i: f"  %{i} : Tensor = aten::neg(%y{i})\n",
    "open brackets": lambda i: f"  %{i} : Tensor = aten::neg(%x\n",
    "second definitions": lambda i: "  %1 : Tensor = aten::neg(%x)\n",
    "missing blocks": lambda i: f"  %{i} : Tensor = prim::If(%x)\n",
    "values out of sight": lambda i: f"  %{i} : Tensor = prim::If(%x)\n    block0():\n      %a{i} : Tensor = aten::neg(%x)\n      -> (%x)\n"
                                     f"    block1():\n      -> (%x)\n  %b{i} : Tensor = aten::neg(%a{i})\n",
    "second definitions without types": lambda i: "  %a = aten::neg(%x)\n",
    "wrong uses": lambda i: f"  %{i} = tanh(%x), uses = [%9.i9];\n",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_thousands_of_lines(name: str) -> None:
    def text(n: int) -> str:
        return "graph(%x : Tensor):\n" + "".join(NUMBERED[name](i) for i in range(n)) + "  return (%x)\n"

    opt(text(5))()          # tables are read, suggestions remembered
    few, many = steps(opt(text(1500))), steps(opt(text(3000)))
    assert many < 2.3 * few + 1_500, f"{few} steps for 1,500 lines, {many} for 3,000"
