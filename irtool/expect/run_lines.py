"""`# run: f(2xf32=[1, 2], 3) ~= 2xf32=[3, 6] rtol=1e-4`: a graph of a case, run on literals and compared with literals."""
from __future__ import annotations

import re
from typing import Any

from irtool.execute.run import run
from irtool.expect.cases import Case
from irtool.interop.binding import bind
from irtool.interop.literal import Reader, literal_text
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.verify import verify
from irtool.ops.arrays import seeded
from irtool.testing.closeness import compare_members
from irtool.text.parser import parse

_NAME = re.compile(r"([\w.]+)\(")
_TOLERANCE = re.compile(r"(rtol|atol)=(\S+)(?:\s|$)")


class RunLine:
    """One line: the name of a graph, inputs, expected outputs, tolerances (None: by dtype, as for `irtool run --expect`).

    `==` expects equal values (nan equals nan), `~=` values within the tolerances; both expect equal dtypes and shapes.
    """

    def __init__(self, text: str) -> None:
        """text: the text after `# run:`. Raises Error."""
        head = _NAME.match(text)
        if head is None:
            raise Error(f"'# run: {text}': expected a graph and its inputs, such as '# run: graph(2xf32=[1, 2]) == 2xf32=[2, 4]'")
        self.name = head[1]
        reader = Reader(text)
        reader.at = head.end()
        with seeded(0):
            self.inputs = reader.items(")", 0)
        self.relation = next((each for each in ("==", "~=") if reader.take(each)), "")
        if not self.relation:
            raise reader.error("expected '==' or '~=' and the outputs")
        self.front = text[:reader.at]
        self.outputs = [reader.value(1)]
        while reader.take(","):
            self.outputs.append(reader.value(1))
        reader.skip_blanks()
        self.options = text[reader.at:]
        self.rtol: float | None = 0.0 if self.relation == "==" else None
        self.atol = self.rtol
        while reader.at < len(text):
            match = reader.match(_TOLERANCE)
            if match is None or self.relation == "==":
                raise reader.error("expected the end" if self.relation == "==" else "expected rtol=NUMBER, atol=NUMBER or the end")
            try:
                setattr(self, match[1], float(match[2]))
            except ValueError:
                raise reader.error(f"'{match[2]}' is no number") from None

    def results(self, graph: Graph) -> list[Any]:
        """The outputs of the graph on the inputs. Raises Error."""
        if len(self.inputs) != len(graph.inputs):
            raise Error(f"{self.name} takes {len(graph.inputs)} inputs, {len(self.inputs)} are given")
        literals = {value.name: given for value, given in zip(graph.inputs, self.inputs, strict=True)}
        return run(graph, bind(graph, Archive(), literals))

    def difference(self, results: list[Any]) -> str:
        """How results differ from the expected outputs, a line per output; empty if they do not."""
        archives = []
        for values in (results, self.outputs):
            archives.append(Archive())
            for number, value in enumerate(values):
                archives[-1].put(f"output{number}", value)
        actual, expected = archives
        rows = compare_members(actual.arrays, expected.arrays, self.rtol, self.atol, actual.none, expected.none,
                               actual.bfloat16 | expected.bfloat16)
        return "\n".join([f"{key}: {row.reason}" for key, row in rows.items() if not row.is_equal])

    def text(self, results: list[Any]) -> str:
        """The line with these outputs instead."""
        outputs = ", ".join(map(literal_text, results))
        return f"# run: {self.front} {outputs}{' ' if self.options else ''}{self.options}"


def checked_line(text: str, case: Case, out: str) -> tuple[str, str]:
    """A line with the graph's outputs, and what is wrong with the line's own (empty: nothing).

    If the command of the case prints graphs (`opt`, `fmt`), the graph of this name in its output must compute the same.
    """
    try:
        line = RunLine(text)
        results = line.results(graph_called(case.input, line.name))
        fault = line.difference(results)
        if fault:
            return line.text(results), f"{line.name} gives other values\n{fault}\nit gives {', '.join(map(literal_text, results))}"
        if case.commands and case.commands[-1][0] in ("opt", "fmt"):
            fault = line.difference(line.results(graph_called(out, line.name)))
    except Error as error:
        return f"# run: {text}", str(error)
    return f"# run: {text}", f"{line.name} gives other values after the command\n{fault}" if fault else ""


def graph_called(text: str, name: str) -> Graph:
    """The graph of a text by name, verified. Raises Error."""
    graph = parse(text).graph(name)
    verify(graph)
    return graph
