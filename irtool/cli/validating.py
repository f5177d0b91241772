"""`--validate` and related options of `opt`, `bisect` and `reduce`: the inputs on which graphs run, and the final messages."""
from __future__ import annotations

from irtool.cli import converters
from irtool.cli.command import Converted, option, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from irtool.checking.validation import Validation
    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.ir.graph import Graph
    from irtool.ir.module import Module
    from irtool.ir.source import SourceFile

VALIDATION = "Validation"
MADE = "made"
"""The value of `--validate` alone: inputs are made from the types."""

tolerance_options = together(
    option("--rtol", metavar="X", type=Converted(converters.tolerance), group=VALIDATION, help="relative tolerance (default: by dtype)"),
    option("--atol", metavar="X", type=Converted(converters.tolerance), group=VALIDATION, help="absolute tolerance"),
    option("--seed", metavar="N", type=Converted(converters.seed), default=0, group=VALIDATION,
           help="seed of inputs that are made, and of random operators (0)"),
)
gradients_option = option("--validate-gradients", is_flag=True, group=VALIDATION, help="also compare the gradients of gradient pairs")


def validation(arguments: Arguments, console: Console, inputs: str | None, state: Mapping[str, Sequence[Any]] | None = None,
               method: str = "") -> Validation:
    """The Validation for the options. inputs: an .npz; None: inputs made from the types. state: as in Validation. method: the only graph
    for which the arrays are; empty: they are for all."""
    from irtool.checking.validation import Validation

    values: Callable[[Graph], Sequence[Any] | None] | None = None if inputs is None else bound(inputs, console)
    if values is not None and method:
        values = only_of(method, values)
    return Validation(values, rtol=arguments.rtol, atol=arguments.atol, seed=arguments.seed, gradients=arguments.validate_gradients,
                      state=state)


def only_of(name: str, values: Callable[[Graph], Sequence[Any] | None]) -> Callable[[Graph], Sequence[Any] | None]:
    """The same function, which knows values for the graph of this name alone."""
    return lambda graph: values(graph) if graph.name == name else None


def bound(path: str, console: Console) -> Callable[[Graph], Sequence[Any]]:
    """A function that binds the arrays of a file to the inputs of a graph."""
    from irtool.interop.binding import bind

    archive = console.read_archive(path)
    return lambda graph: bind(graph, archive, {})


def say_what_was_not_run(checked: Validation, console: Console, way: str) -> None:
    """A warning per graph that was compared with nothing. way: how inputs are given, for those who gave none."""
    advice = f"; give {way}" if checked.inputs is None else ""
    for name, reason in checked.not_run.items():
        console.warn(f"what '{name}' computes was not compared: no inputs on which it runs ({reason}){advice}", "W0109")


def read_verified(path: str, console: Console) -> tuple[SourceFile, Module]:
    """A file's graphs, with the constants beside it. Raises Error if they are invalid."""
    from irtool.cli.constants_file import take
    from irtool.cli.inputs import verify
    from irtool.cli.source_places import parse_source
    from irtool.ir.errors import Error

    source = console.read(path)
    module = parse_source(source)
    take(module, source, path, console, is_needed=False)
    if not module.graphs:
        raise Error(f"{source.name}: no graph in this file", code="E0102")
    verify(module)
    return source, module
