"""Checks of the arguments of public functions: the message says what was passed, and what was expected."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import index

from irtool.ir.errors import RunError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.ir.graph import Graph


def misfit(where: str, name: str, value: object, expected: str) -> RunError:
    """The error for a wrong argument: `compile: threads='two'; expected at least 1`."""
    return RunError(f"{where}: {name}={shown(value)}; expected {expected}")


def shown(value: object) -> str:
    """A value for a message: shortened; of an array, only what it is."""
    shape = getattr(value, "shape", None)
    return repr(value)[:40] if shape is None else f"{type(value).__name__} of shape {tuple(shape)}"


def with_article(word: str) -> str:
    """`an int`, `a generator`."""
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def check_function(where: str, function: object) -> None:
    """Raises RunError if the argument cannot be called."""
    if not callable(function):
        raise RunError(f"{where}: expected a function, got {type(function).__name__}")


def called(where: str, function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any] | None = None) -> Any:
    """Call a user's function. Raises RunError if the function does not take these arguments; exceptions raised inside it pass through."""
    try:
        return function(*args, **named or {})
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:      # raised inside the function
            raise
        raise RunError(f"{where}: the function is called with {len(args)} argument{'s' * (len(args) != 1)}: {error}") from None


def check_flag(where: str, name: str, value: object) -> None:
    """Raises RunError if the argument is neither True nor False."""
    if value is not True and value is not False:
        raise misfit(where, name, value, "True or False")


def check_choice(where: str, name: str, value: object, choices: Collection[str]) -> None:
    """Raises RunError if the argument is none of the words."""
    if not isinstance(value, str) or value not in choices:
        *most, last = [f"'{each}'" for each in choices]
        raise misfit(where, name, value, f"{', '.join(most)} or {last}{did_you_mean(str(value), choices)}")


def check_count(where: str, name: str, value: object, least: int = 1) -> None:
    """Raises RunError if the argument is no whole number, or is less than `least`."""
    if not is_whole(value) or index(value) < least:     # type: ignore[arg-type]
        raise misfit(where, name, value, f"at least {least}")


def check_seed(where: str, seed: object) -> None:
    """Raises RunError if the argument is no seed of a random generator. None is allowed."""
    if seed.__class__ is int and seed >= 0:
        return
    if seed is not None and (not is_whole(seed) or index(seed) < 0):        # type: ignore[arg-type]
        raise misfit(where, "seed", seed, "an integer that is not negative")


def is_whole(value: object) -> bool:
    """Is the value an integer, Python's or NumPy's, and no bool?"""
    return not isinstance(value, bool) and hasattr(value, "__index__") and not getattr(value, "shape", ())


def check_list(where: str, what: str, value: object, expected: str) -> None:
    """Raises RunError if the argument is no list. what: the elements, such as `inputs`; expected: their number, such as `one per input
    of the graph`."""
    if not isinstance(value, list | tuple):
        raise RunError(f"{where}: expected a list of {what}, {expected}, got {type(value).__name__}")


def check_graph(where: str, graph: object) -> Graph:
    """The graph, or the only graph of a module. Raises RunError for anything else."""
    from irtool.ir.graph import Graph
    from irtool.ir.module import Module

    single = graph.graph() if isinstance(graph, Module) else graph
    if not isinstance(single, Graph):
        hint = "; its method `graph` returns one" if callable(getattr(type(graph), "graph", None)) else ""
        raise RunError(f"{where}: expected a Module or a Graph, got {type(graph).__name__}{hint}")
    return single


def check_listed(where: str, graph: Graph, inputs: object) -> None:
    """Raises RunError if the inputs are no list."""
    if not isinstance(inputs, list | tuple):
        check_list(where, "inputs", inputs, f"one per input of the graph ({signature(graph)})")


def check_inputs(where: str, graph: Graph, inputs: Sequence[Any]) -> None:
    """Raises RunError if the inputs are no list, or if the graph has more or fewer inputs."""
    check_listed(where, graph, inputs)
    if len(inputs) != len(graph.inputs):
        raise RunError(f"expected {len(graph.inputs)} inputs ({signature(graph)}), got {len(inputs)}", code="E0402")


ONE_PER_OUTPUT = "one per tensor of the outputs, those of tuples, lists and dicts in order, or trees of them"


def positions(where: str, wrt: Any, graph: Graph) -> tuple[int, ...]:
    """The positions of the inputs that `wrt` names. Raises RunError, which lists the graph's inputs, if it names none."""
    count = len(graph.inputs)
    if wrt.__class__ in (list, tuple) and all([each.__class__ is int and 0 <= each < count for each in wrt]):
        return tuple(wrt)       # the usual case
    if isinstance(wrt, str | dict) or not hasattr(wrt, "__iter__"):
        raise RunError(f"{where}: wrt={shown(wrt)}; expected a list of positions of inputs, {listed(graph)}")
    for each in wrt:
        if not is_whole(each):
            raise RunError(f"{where}: wrt names input {shown(each)}; expected positions of inputs, {listed(graph)}")
        if not 0 <= each < count:
            raise RunError(f"{where}: wrt names input {each}, the graph has {count}: {listed(graph)}")
    return tuple([index(each) for each in wrt])


def signature(graph: Graph, most: int = 12) -> str:
    """`%x : Tensor, %n : int`."""
    return ", ".join([*[f"%{value.name} : {value.type}" for value in graph.inputs[:most]], *["..."] * (len(graph.inputs) > most)])


def listed(graph: Graph, most: int = 12) -> str:
    """The inputs of a graph with their positions: `0 (%x : Tensor), 1 (%n : int)`."""
    words = [f"{place} (%{value.name} : {value.type})" for place, value in enumerate(graph.inputs[:most])]
    return ", ".join([*words, "..."] if len(graph.inputs) > most else words) or "of which there are none"
