"""The results of a run for people and programs: lines, a table, JSON, an npz, a comparison with another npz."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.interop.npz import Archive
    from irtool.ir.graph import Graph, Value
    from irtool.testing.closeness import Comparison

class Result:
    """One result of a run: `output0`, an output, or `grad0`, the gradient of an input."""

    __slots__ = ("key", "value", "content", "given")

    def __init__(self, key: str, value: Value, content: Any, given: Any = None) -> None:
        self.key = key
        self.value = value      # of the graph: its name and type are shown
        self.content = content
        self.given = given      # of a gradient: its input, which says the shape of one that is None

    @property
    def label(self) -> str:
        """The name of the result: `output0 %y`."""
        return f"{self.key} %{self.value.name}"


def outputs_of(graph: Graph, outputs: Sequence[Any]) -> list[Result]:
    """The outputs of a graph, or the real outputs of a forward graph."""
    return [Result(f"output{i}", value, output) for i, (value, output) in enumerate(zip(graph.outputs, outputs))]


def gradients_of(graph: Graph, gradients: dict[int, Any], inputs: Sequence[Any]) -> list[Result]:
    """The gradients of a graph; gradients: input index -> gradient."""
    return [Result(f"grad{i}", graph.inputs[i], gradient, inputs[i]) for i, gradient in gradients.items()]


def deliver(outputs: Sequence[Result], gradients: Sequence[Result] | None, arguments: Arguments, console: Console) -> int:
    """Show, store or compare results as the options say; returns the exit code. gradients: None leaves the field out of the JSON."""
    both = [*outputs, *(gradients or ())]
    code = compare(both, arguments, console) if arguments.expect else 0
    if arguments.output != "-":
        save(archive_of(both), arguments.output)
    elif not arguments.expect:
        show(outputs, gradients, arguments, console)
    return code


def archive_of(results: Iterable[Result]) -> Archive:
    """The results as arrays of an npz; None becomes zeros of the declared shape, or that of the input."""
    import numpy as np

    from irtool.interop.npz import Archive
    from irtool.ir.types import TensorType
    from irtool.ops.arrays import dtype_named

    archive = Archive()
    for result in results:
        type = result.value.type if isinstance(result.value.type, TensorType) else TensorType()
        shape, dtype = type.shape or (), dtype_named(type.dtype or "float32")
        if isinstance(result.given, np.ndarray):
            shape, dtype = result.given.shape, result.given.dtype
        archive.put(result.key, result.content, is_bfloat16=type.dtype == "bfloat16", shape=shape, dtype=dtype)
    return archive


def save(archive: Archive, path: str) -> None:
    """Write an npz, completely or not at all. Raises UsageError."""
    from irtool.cli.console import write_whole
    from irtool.interop.array_files import encode

    write_whole(path, encode(archive, path))


def show(outputs: Sequence[Result], gradients: Sequence[Result] | None, arguments: Arguments, console: Console) -> None:
    """A table on a terminal, lines otherwise, or JSON."""
    from irtool.cli.show import values

    if arguments.json:
        import json

        record: dict[str, Any] = {"schema": 1}
        if outputs or gradients is None:
            record["outputs"] = [as_record(result) for result in outputs]
        if gradients is not None:
            record["gradients"] = [as_record(result) for result in gradients]
        console.out(json.dumps(record) + "\n")
        return
    results = [*outputs, *(gradients or ())]
    if console.is_terminal():
        from irtool.cli.show.tables import draw, table

        rows = [(result.label, *values.cells(result.content)) for result in results]
        draw(console, table(rows, ("output" if outputs else "gradient", "type", "value")))
    else:
        for result in results:
            console.tell("\n".join(values.lines(result.label, result.content)) + "\n")


def as_record(result: Result) -> dict[str, Any]:
    """A result as JSON data."""
    from irtool.cli.show import values

    return {"key": result.key, "name": result.value.name, "type": str(result.value.type), "value": values.as_json(result.content)}


def compare(results: Iterable[Result], arguments: Arguments, console: Console) -> int:
    """Compare with the npz of `--expect`; returns 1 if something differs."""
    from irtool.testing.closeness import compare_members

    expected = console.read_archive(arguments.expect)
    actual = archive_of(results)
    comparisons = compare_members(actual.arrays, expected.arrays, arguments.rtol, arguments.atol, actual.none, expected.none,
                                  actual.bfloat16 | expected.bfloat16)
    wrong = [key for key, each in comparisons.items() if not each.is_equal]
    if arguments.json:
        import json

        records = [{"key": key, "is_equal": each.is_equal, "reason": each.reason or None, "worst": each.worst,
                    "wrong": each.wrong, "rtol_needed": each.rtol_needed, "atol_needed": each.atol_needed}
                   for key, each in comparisons.items()]
        console.out(json.dumps({"schema": 1, "is_equal": not wrong, "members": records}) + "\n")
        return 1 if wrong else 0
    for key, each in comparisons.items():
        console.tell(f"{key}: {'agrees' if each.is_equal else each.reason}\n")
        console.tell("".join(f"  {line}\n" for line in remedies(each, arguments)))
    console.tell(f"{len(comparisons) - len(wrong)} of {len(comparisons)} agree with {arguments.expect}\n")
    return 1 if wrong else 0


def remedies(comparison: Comparison, arguments: Arguments) -> list[str]:
    """Advice on the smallest tolerances that would pass."""
    if comparison.is_equal or comparison.worst is None:
        return []
    ways = []
    if comparison.atol_needed is not None:
        ways.append(f"--atol={comparison.atol_needed:g}" + (f" --rtol={arguments.rtol:g}" if arguments.rtol is not None else ""))
    if comparison.rtol_needed is not None:
        ways.append(f"--rtol={comparison.rtol_needed:g}" + (f" --atol={arguments.atol:g}" if arguments.atol is not None else ""))
    return [f"would pass with {' or '.join(ways)}"] if ways else ["no tolerance would pass"]
