"""Gradient pairs: a forward graph, its reverse graph, and the index lists that tie them together.

    # graph f: f_real_outputs=1
    graph(...): ...                     inputs as before; outputs = [real outputs][temporaries]
    # graph df: of=f df_input_vjps=[0, 1] df_input_captured_inputs=[0] df_input_captured_outputs=[1] df_output_vjps=[0]
    graph(...): ...                     inputs = [vjps][captured inputs][captured outputs], one output per df_output_vjps

The lists are stored only where text has them, in the metadata of the two graphs, so that no copy can disagree. Only `GradientPair`
writes them.
"""
from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice

from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Value
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic
from irtool.ir.types import Type
from irtool.ir.verify_types import flows, may_be_gradient

LISTS = ("df_input_vjps", "df_input_captured_inputs", "df_input_captured_outputs", "df_output_vjps")
"""The index lists of a reverse graph, in the order in which they are written."""
OF, REAL_OUTPUTS, DEFINED = "of", "f_real_outputs", "defined"
REVERSE, PACKED_PREFIX = "ReverseSubgraph", "reverse-"
"""Of a node that owns a pair: the attribute that is df, and the prefix with which the surrounding graph's metadata has further metadata
of df."""
CHUNK = 10_000
"""How much of a list is read or spelled at once."""
MEMBERS = frozenset((OF, REAL_OUTPUTS, DEFINED, *LISTS))
"""Metadata that belongs to pairs."""


def is_input_of_reverse(value: Value) -> bool:
    """Is a value an input of a df? Cotangents and captures of branches that were not taken may be undefined, also in lists."""
    graph = value.node.graph
    return graph is not None and (graph.is_reverse or OF in graph.metadata)


class GradientPair:
    """f and df, with the lists that say which input of df is what. Editing it edits the metadata of the graphs."""

    __slots__ = ("f", "df")

    def __init__(self, f: Graph, df: Graph) -> None:
        self.f = f
        self.df = df

    @staticmethod
    def link(f: Graph, df: Graph, real_outputs: int, lists: Sequence[Sequence[int]], flags: Sequence[int] | None = None) -> GradientPair:
        """Make two named graphs a pair; `lists` are in the order of `LISTS`, `flags` say which inputs df was specialised for. Raises Error
        if their counts do not fit."""
        f.metadata = {**_others(f), REAL_OUTPUTS: str(real_outputs)}
        df.metadata = {**_others(df), OF: f.name}
        for name, numbers in zip(LISTS, lists, strict=True):
            df.metadata[name] = spelled(numbers)
        if flags is not None:
            set_defined(df, [flag != 0 for flag in flags])
        pair = GradientPair(f, df)
        pair.check(lists)
        return pair

    def unlink(self) -> None:
        """Remove the metadata of the pair; the graphs keep their names."""
        self.f.metadata, self.df.metadata = _others(self.f), _others(self.df)

    # -- the lists
    @property
    def real_outputs(self) -> int:
        """How many outputs f had before temporaries were appended."""
        text = self.f.metadata.get(REAL_OUTPUTS, "")
        if not (text.isdecimal() and text.isascii() and len(text) < 10):
            raise Error(f"graph '{self.f.name}': {REAL_OUTPUTS}={text} is no count", code="E0211")
        return int(text)

    @property
    def input_vjps(self) -> list[int]:
        """The outputs of f whose gradients df takes, in the order of df's inputs."""
        return list(read_numbers(self.df, "df_input_vjps"))

    @property
    def captured_inputs(self) -> list[int]:
        """Inputs of f that df takes, after the gradients."""
        return list(read_numbers(self.df, "df_input_captured_inputs"))

    @property
    def captured_outputs(self) -> list[int]:
        """Outputs of f that df takes, after the inputs."""
        return list(read_numbers(self.df, "df_input_captured_outputs"))

    @property
    def output_vjps(self) -> list[int]:
        """The inputs of f whose gradients df returns."""
        return list(read_numbers(self.df, "df_output_vjps"))

    @property
    def defined(self) -> list[bool] | None:
        """For each input of df, whether df was specialised for runs in which it is not None; None if df was not specialised."""
        if DEFINED not in self.df.metadata:
            return None
        flags = read_numbers(self.df, DEFINED)
        return [bool(flag) for flag in flags]

    @property
    def assumed(self) -> list[bool]:
        """Which inputs of df are defined, if nothing else is known: gradients of real outputs and captures are, gradients of temporaries
        are not."""
        recorded = self.defined
        if recorded is not None:
            return recorded
        real = self.real_outputs
        captured = len(self.captured_inputs) + len(self.captured_outputs)
        return [index < real for index in self.input_vjps] + [True] * captured

    def rename(self, f: str, df: str) -> None:
        """Rename both graphs."""
        self.f.name, self.df.name = f, df
        self.df.metadata = {**self.df.metadata, OF: f}

    # -- checking
    def problems(self, lists: Sequence[Sequence[int]] = ()) -> list[str]:
        """What does not fit: counts, indices out of range, types of values that f passes to df. lists: the numbers of `LISTS`, if known."""
        try:
            real, lists = self.real_outputs, lists or [read_numbers(self.df, name) for name in LISTS]
            flags = self.defined
        except Error as error:
            return [error.message]
        problems = []
        f, df = self.f, self.df
        vjps, inputs, outputs, gradients = lists
        if real > len(f.outputs):
            problems.append(f"{REAL_OUTPUTS}={real}, but '{f.name}' has {len(f.outputs)} outputs")
        for name, numbers, limit in zip(LISTS, lists, (len(f.outputs), len(f.inputs), len(f.outputs), len(f.inputs)), strict=True):
            if max(numbers, default=0) >= limit:
                problems += [f"{name} names {number}, but '{f.name}' has only {limit}" for number in numbers if number >= limit]
        if len(df.inputs) != len(vjps) + len(inputs) + len(outputs):
            problems.append(f"'{df.name}' has {len(df.inputs)} inputs, its lists name {len(vjps) + len(inputs) + len(outputs)}")
        if len(df.outputs) != len(gradients):
            problems.append(f"'{df.name}' has {len(df.outputs)} outputs, df_output_vjps names {len(gradients)}")
        if flags is not None and len(flags) != len(df.inputs):
            problems.append(f"{DEFINED} has {len(flags)} flags, '{df.name}' has {len(df.inputs)} inputs")
        if problems:
            return problems
        return type_problems(f, df, lists, f.name, df.name)

    def check(self, lists: Sequence[Sequence[int]] = ()) -> None:
        """Raises Error with all problems."""
        problems = self.problems(lists)
        if problems:
            raise Error(f"gradient pair '{self.f.name}', '{self.df.name}': " + "; ".join(problems), code="E0211")

    def __repr__(self) -> str:
        return f"<GradientPair {self.f.name}, {self.df.name}>"


def type_problems(f: Graph, df: Graph, lists: Sequence[Sequence[int]], f_name: str, df_name: str) -> list[str]:
    """What f and df hand to each other, and whose types do not fit. lists: the numbers of `LISTS`, all in range."""
    vjps, inputs, outputs, gradients = lists
    captured = chain(map(f.inputs.__getitem__, inputs), map(f.outputs.__getitem__, outputs))
    return [*(f"'{df_name}' takes {declaration(taken)}, '{f_name}' gives {declaration(value)}"
              for value, taken in unfit(flows, captured, islice(df.inputs, len(vjps), None))),
            *(f"'{df_name}' takes {declaration(gradient)} as the gradient of {declaration(value)}"
              for value, gradient in unfit(may_be_gradient, map(f.outputs.__getitem__, vjps), df.inputs)),
            *(f"'{df_name}' gives {declaration(gradient)} as the gradient of {declaration(value)}"
              for value, gradient in unfit(may_be_gradient, map(f.inputs.__getitem__, gradients), df.outputs))]


def unfit(fit: Callable[[Type, Type], bool], values: Iterable[Value], others: Iterable[Value]) -> Iterator[tuple[Value, Value]]:
    """The values that belong together and whose types do not fit. Millions of values have few types, and lie all over the memory: each
    is looked at once."""
    known = cache(fit)
    return ((value, other) for value, other in zip(values, others) if not known(value.type, other.type))


def declaration(value: Value) -> str:
    """A value as a declaration writes it: `%x : Tensor`."""
    return f"%{value.name} : {value.type}"


def pairs(module: Module) -> Iterator[GradientPair]:
    """The pairs of a module, in the order of their reverse graphs. Raises Error if a reverse graph names a graph that is missing."""
    by_name = {graph.name: graph for graph in module.graphs if graph.name}
    for graph in module.graphs:
        if OF in graph.metadata:
            f = by_name.get(graph.metadata[OF])
            if f is None or f is graph:
                raise Error(f"graph '{graph.name}' is the gradient of '{graph.metadata[OF]}', which is not in {module.filename}",
                            code="E0211")
            yield GradientPair(f, graph)


def pair_violations(module: Module) -> list[Diagnostic]:
    """The problems of a module's pairs, for the verifier."""
    out = []
    try:
        for pair in pairs(module):
            out += [Diagnostic("error", f"gradient pair '{pair.f.name}': {problem}", pair.df.source, code="E0211")
                    for problem in pair.problems()]
    except Error as error:
        out.append(Diagnostic("error", error.message, code="E0211"))
    return out


def read_numbers(graph: Graph, name: str) -> array[int]:
    """A list of small natural numbers in a graph's metadata: `[0, 1]`. Raises Error for anything else."""
    text = graph.metadata.get(name)
    if text is None:
        raise Error(f"graph '{graph.name}' has no {name}", code="E0211")
    try:
        return numbers_in(text)
    except ValueError:
        raise Error(f"graph '{graph.name}': {name}={text[:60]} is no list of numbers", code="E0211") from None


def numbers_in(text: str) -> array[int]:
    """The numbers that a text such as `[0, 1]` lists. Raises ValueError for anything else.

    An array, filled chunk by chunk: a million objects that live at the same time would be spread over all memory.
    """
    numbers, inner = array("i"), text[1:-1]
    if f"[{inner}]" != text or not inner.isascii() or any(each in inner for each in "+-_"):     # which int() reads
        raise ValueError(text)
    end = -1 if inner else 0
    while end < len(inner):
        start, end = end + 1, inner.find(",", end + CHUNK)
        end = len(inner) if end < 0 else end
        try:
            numbers.extend(map(int, inner[start:end].split(",")))
        except OverflowError:
            raise ValueError(text) from None
    return numbers


def is_in_pair(graph: Graph) -> bool:
    """Does the graph belong to a gradient pair, so that passes must not change its inputs and results?"""
    return OF in graph.metadata or REAL_OUTPUTS in graph.metadata


def set_defined(graph: Graph, flags: Sequence[bool]) -> None:
    """Record which inputs a reverse graph was specialised for."""
    graph.metadata = {**graph.metadata, DEFINED: spelled([int(flag) for flag in flags])}


def spelled(numbers: Sequence[int]) -> str:
    """A list of numbers as metadata and attributes have it: `[0, 1]`."""
    return "[" + ", ".join([str(list(numbers[start:start + CHUNK]))[1:-1] for start in range(0, len(numbers), CHUNK)]) + "]"


def _others(graph: Graph) -> dict[str, str]:
    return {key: value for key, value in graph.metadata.items() if key not in MEMBERS}
