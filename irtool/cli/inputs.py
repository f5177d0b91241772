"""The inputs of commands that run graphs: a graph or gradient pair of a file, arrays, literals, cotangents."""
from __future__ import annotations

from irtool.cli.constants_file import Taken, take
from irtool.cli.exit_errors import UsageError
from irtool.cli.opener import ArchiveSource, method_of, python_at
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.interop.cotangents import Cotangents
    from irtool.interop.npz import Archive
    from irtool.ir.graph import Graph, Value
    from irtool.ir.module import Module
    from irtool.ir.pair import GradientPair
    from irtool.ir.source import SourceFile


def inputs_called(words: Sequence[str], graph: Graph, flag: str, takes_positions: bool = False) -> tuple[int, ...]:
    """Positions of inputs by their names. Raises UsageError for an unknown, ambiguous or repeated name.

    takes_positions: a number is a position; with `%` in front it is a name.
    """
    from irtool.ir.errors import did_you_mean
    from irtool.ir.names import Names

    names = Names(graph.inputs)
    chosen: list[int] = []
    for word in words:
        is_position = takes_positions and word.isdecimal()
        places = [int(word)] if is_position and int(word) < len(graph.inputs) else [] if is_position else names.places(word)
        if is_position and not places:
            raise UsageError(f"{flag}: there is no input {word}, the graph has {len(graph.inputs)}", code="E0805")
        if not places:
            listed = ", ".join(value.name for value in graph.inputs)
            raise UsageError(f"{flag}: no input is called '{word}'{did_you_mean(word, names.known())}; the graph has {listed}",
                             code="E0805")
        if len(places) > 1:
            raise UsageError(f"{flag}: {names.choice(word)}", code="E0805")
        if places[0] in chosen:
            raise UsageError(f"{flag}: the same input twice, '{word}'", code="E0805")
        chosen += places
    return tuple(chosen)


NEEDED = "unless the only output is one number, gradients need vjp0, vjp1, ... among the inputs, or --cotangents FILE.npz"
"""The message if there are no cotangents."""


# -- the graph
def read_module(arguments: Arguments, console: Console, is_needed: bool = True) -> Module:
    """The file's graphs, with the constants in the file beside it. For commands that have `input_options`.

    is_needed: refuse a text without the arrays of its constants. Raises VerifyError if the graphs to run (that of `--graph`, or all)
    violate an invariant.
    """
    from irtool.cli.source_places import parse_source

    python = python_at(arguments.file)
    source = console.read(arguments.file if python is None else python[0])
    if python is not None:
        from irtool.torchscript import compile_source

        module = compile_source(source.text, python[1], source.name)
    else:
        module = parse_source(source)
    if arguments.constants:
        from irtool.cli.constants_file import attach_constants

        attach_constants(module, arguments.constants, console)
    else:
        take(module, source, source.name if python else arguments.file, console, is_needed)
    if arguments.load_state:
        module = with_state(module, source, arguments, console)
    verify(module, arguments.graph)
    say_what_is_rounded(module, console)
    for warning in module.warnings:
        console.report(warning)
    return module


def verify(module: Module, graph: str | None = None) -> None:
    """Raises VerifyError with all violations in a module, or only in its graph of this name, without its pair."""
    from irtool.ir.errors import VerifyError
    from irtool.ir.verify import violations
    from irtool.passmanager import violations as with_pairs

    problems = violations(module.graph(graph)) if graph else with_pairs(module)
    if problems:
        raise VerifyError(diagnostics=problems)


def with_state(module: Module, source: SourceFile, arguments: Arguments, console: Console) -> Module:
    """The module with the weights of `--load-state`, in place of an archive's or for graphs that take an instance. Raises Error.

    Removes literals for attributes of the instance (`--input self.scale=2`) from the arguments.
    """
    from irtool.archives.text_state import TextState, takes_instance
    from irtool.ir.module import Module

    path = arguments.load_state
    if isinstance(source, ArchiveSource):
        load_weights(source, path, console)
        return method_of(source.archive, source.name, source.method).module
    if not any(map(takes_instance, module.graphs)):
        raise UsageError(f"--load-state: no graph of {module.filename} takes a module as its first input", code="E0801")
    weights = console.read_archive(path, has_attributes=True)
    items: list[str | Graph] = []
    for item in module.items:
        if not isinstance(item, str) and takes_instance(item):
            state = TextState(item, weights, literals_of(item.inputs[0], arguments, console), path)
            item = state.graph_of_arrays()
            if state.assumed:
                console.err(f"note: {path} does not say '{state.assumed[0]}', so it is false, as after eval()")
        items.append(item)
    return Module(items, module.filename)


def load_weights(source: ArchiveSource, path: str, console: Console) -> None:
    """Replace the weights of an archive by those of a file. Raises Error if names or shapes differ."""
    source.archive.load_state_dict(console.read_archive(path).arrays)


def state_loaded(module: Module, source: SourceFile, arguments: Arguments, console: Console) -> tuple[Module, Taken]:
    """The same for a command that prints the graphs, with a `Taken` for `keep`, which stores the weights."""
    return with_state(module, source, arguments, console), Taken("", {})


def literals_of(instance: Value, arguments: Arguments, console: Console) -> dict[str, Any]:
    """Dotted name of an instance's attribute -> its literal, removed from the arguments. Raises Error."""
    from irtool.ir.names import stems

    names = (instance.name, *stems(instance.name))
    literals: dict[str, Any] = {}
    others = []
    for text in getattr(arguments, "input", ()):
        name, equals, _ = text.removeprefix("%").partition("=")
        owner = next((each for each in names if name.startswith(f"{each}.")), None)
        if owner is None or not equals:
            others.append(text)
        else:
            literals[name[len(owner) + 1:]] = literal_of(text, console)
    vars(arguments)["input"] = tuple(others)
    return literals


def say_what_is_rounded(module: Module, console: Console) -> None:
    """Warn, once per file, of constants that the text has with few digits."""
    from irtool.ir.rounded import remark

    note = remark(module.graphs)
    if note is not None:
        console.report(note)


def chosen(module: Module, graph: str | None, pair: str | None) -> Graph | GradientPair:
    """The graph called `graph`, the pair whose forward graph is called `pair`, or without both the only graph or pair of the file.

    Raises UsageError if both are set, Error if a name is missing or unknown.
    """
    from irtool.ir.pair import pairs

    if graph and pair:
        raise UsageError("--graph names one graph, --pair a pair of graphs: use one of the two")
    if graph:
        return module.graph(graph)
    candidates = list(pairs(module))
    if pair:
        for each in candidates:
            if each.f.name == pair:
                each.check()
                return each
        names = ", ".join(each.f.name or "" for each in candidates)
        raise Error(f"{module.filename}: no gradient pair '{pair}'" + (f", expected one of: {names}" if candidates else "; it has none"),
                    code="E0115")
    graphs = module.graphs
    if not graphs:
        raise Error(f"{module.filename}: no graph in this file", code="E0102")
    if len(graphs) == 1:
        return graphs[0]
    if len(candidates) == 1 and len(graphs) == 2:
        candidates[0].check()
        return candidates[0]
    ways = [f"--pair {each.f.name}" for each in candidates] + [f"--graph {name}" for name in module.names()]
    raise Error(f"{module.filename}: several {'gradient pairs' if len(candidates) > 1 else 'graphs'}; choose one: {', '.join(ways)}",
                code="E0115")


# -- values
def read_values(arguments: Arguments, console: Console) -> tuple[Archive, dict[str, Any]]:
    """The arrays of the file, and the literals. Raises Error."""
    from irtool.interop.npz import Archive

    archive = console.read_archive(arguments.inputs) if arguments.inputs else Archive()
    literals: dict[str, Any] = {}
    for text in arguments.input:
        name = text.partition("=")[0]
        if name in literals:
            raise UsageError(f"--input {name}=...: given twice")
        literals[name] = literal_of(text, console)
    return archive, literals


def literal_of(text: str, console: Console) -> Any:
    """The value of NAME=VALUE. Raises UsageError; DamagedError for a file that it names."""
    from irtool.interop.literal import parse_literal
    from irtool.interop.npy import MAGIC, DamagedError
    from irtool.interop.npz import decode_npy

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--input: expected NAME=VALUE, not '{text}'", code="E0807")
    try:
        return parse_literal(value, lambda path: decode_npy(console.read_bytes(path, lambda first: first[:6] != MAGIC), path))
    except (UsageError, DamagedError):
        raise
    except Error as error:
        raise UsageError(f"--input {name}: {error.message}", code="E0807") from None


def read_with_cotangents(graph: Graph, arguments: Arguments, console: Console, outputs: int) -> tuple[list[Any], Cotangents]:
    """One value per input of a graph, and the cotangents of its first `outputs` outputs. Raises Error."""
    from irtool.interop.binding import bind
    from irtool.interop.cotangents import Cotangents

    archive, literals = read_values(arguments, console)
    cotangents = Cotangents(outputs, arguments.cast)
    cotangents.take(graph, archive, literals)
    if arguments.cotangents:
        cotangents.read(console.read_archive(arguments.cotangents), arguments.cotangents)
    return bind(graph, archive, literals, arguments.cast), cotangents
