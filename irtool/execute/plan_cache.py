"""Compiled plans on disk, so that the next process need not compile them again.

An entry is the code object of a plan's function, its constants, and the offsets of its buffers, as plain data (`marshal`), in the disk
cache (`irtool.execute.disk_cache`, which verifies a checksum, and whose folder nobody else may write to). The key contains the graph's
text, dtypes, shapes and strides of the inputs, the options, and the versions of irtool's files, NumPy and Python. A function is not
stored if it refers to values that are no plain data, or if the graph writes or draws random numbers.
"""
from __future__ import annotations

import importlib
import importlib.util
import marshal
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import ref

from irtool.execute import disk_cache
from irtool.execute.fusion import Bound, Fused
from irtool.execute.plan.buffers import Recycler, Shared, Workspace
from irtool.execute.plan.large_results import copy, room, spread, zeros
from irtool.execute.plan.memory import every
from irtool.execute.plan.opaque_calls import visitor
from irtool.execute.plan.placement import Buffer
from irtool.execute.plan.program import Visit
from irtool.execute.plan.python_source import seen
from irtool.execute.plan.row_functions import Rows
from irtool.execute.plan.row_reductions import Folds
from irtool.execute.thread_pool import Crew
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.edits import clone_node
from irtool.ir.graph import Graph, Node, Value
from irtool.ops.array_library import np
from irtool.ops.powers import power
from irtool.ops.select import select
from irtool.ops.symbols.array_layout import Meta, allocated, meta_of

if TYPE_CHECKING:
    from irtool.execute.plan.compiled import Variant
    from irtool.ir.dialect import Dialect

WORTH_KEEPING = 100
"""Nodes from which making a plan takes longer than reading one."""
MAX_BYTES = 4 * 2**20
FORM = 5
HEAD = f"irtool plan, form {FORM}\n".encode()
"""The first bytes of an entry."""


OWN = (Crew, copy, power, room, seen, select, spread, zeros)
"""The functions of irtool that compiled functions call."""


class NotData(Exception):
    """A compiled function refers to a value that is no plain data."""


class Kept:
    """A compiled function with its memory. If it raises, the caller runs the graph without it."""

    __slots__ = ("function", "workspace", "graph")

    def __init__(self, function: Callable[..., list[Any]], workspace: Workspace, graph: Graph | None = None) -> None:
        self.function = function
        self.workspace = workspace
        self.graph = None if graph is None else ref(graph)      # the graph that it runs, if known

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """One run."""
        work = self.workspace.borrow()
        try:
            with np.errstate(all="ignore"):
                results = self.function(*values, work)
        except Exception:
            self.workspace.give_back(work)
            raise
        self.workspace.give_back(work)      # not after an interruption: another thread may be writing into it
        return results


class Shelf:
    """The functions of one executor on disk, by facts of inputs. A function is stored if its graph runs often, or ran in an earlier
    process."""

    __slots__ = ("graph", "options", "entries")
    MAX_ENTRIES = 16

    def __init__(self, graph: Graph, options: Sequence[Any]) -> None:
        self.graph = graph
        self.options = options
        self.entries: dict[Any, Kept | str] = {}        # a string: the key of a missing entry; "": never stored

    def find(self, values: Sequence[Any]) -> Kept | None:
        """The function for these inputs; None if there is none."""
        facts = facts_of(values)
        if facts is None:
            return None
        entry = self.entries.get(facts)
        if entry is None:
            if len(self.entries) >= self.MAX_ENTRIES:
                return None
            key = key_of(self.graph, facts, self.options)
            entry = self.entries[facts] = (read(key) or key) if key else ""
        return None if isinstance(entry, str) else entry

    def forget(self, values: Sequence[Any]) -> None:
        """Do not use the function for these inputs again."""
        self.entries[facts_of(values)] = ""

    def is_known(self, values: Sequence[Any]) -> bool:
        """Has this graph run on such inputs in an earlier process? Marks that it has from now on."""
        key = self.entries.get(facts_of(values))
        if not isinstance(key, str) or not key:
            return False
        if disk_cache.read(key, "seen") is not None:
            return True
        disk_cache.store(key, "seen", b"")
        return False

    def offer(self, values: Sequence[Any], variant: Variant | None) -> None:
        """Store the function that ran, if there is one."""
        facts = facts_of(values)
        key = self.entries.get(facts)
        if isinstance(key, str) and key and variant is not None and (variant.function is not None or variant.is_interpreted):
            self.entries[facts] = ""
            keep(key, variant)


class Layout:
    """The size of an arena, and its buffers: the attributes of a plan that `Workspace` reads."""

    __slots__ = ("arena", "inside")

    def __init__(self, arena: int, inside: list[Buffer]) -> None:
        self.arena = arena
        self.inside = inside


def facts_of(values: Sequence[Any]) -> tuple[Any, ...] | None:
    """The facts of `arrays_key` as text and numbers, for a key on disk; None if an input is neither array nor bool nor None."""
    if all(type(each) is np.ndarray or each is None or type(each) is bool for each in values):
        return tuple([(each.dtype.str, each.shape, each.strides) if type(each) is np.ndarray else each for each in values])
    return None


def key_of(graph: Graph, facts: tuple[Any, ...], options: Sequence[Any]) -> str:
    """The key of a function; empty if the graph's text does not determine the graph."""
    text = str(graph)
    if "<Tensor" in text or disk_cache.folder() is None:
        return ""
    return disk_cache.key_of("plan", str(FORM), versions(), text, repr(facts), repr(options))


@cache
def versions() -> str:
    """The versions of all that a plan depends on; of irtool, size and time of every file, so that edits count."""
    files = []
    folders = [str(Path(__file__).resolve().parent.parent)]
    for folder in folders:      # grows by the folders in it
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    files.append((entry.name, status.st_size, status.st_mtime_ns))
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)
    return f"{sorted(files)} {np.__version__} {importlib.util.MAGIC_NUMBER.hex()}"


# -- keeping
def keep(key: str, variant: Variant) -> bool:
    """Store a function, if possible; was it stored?"""
    function, workspace, program = variant.function, variant.workspace, variant.program
    if not isinstance(function, FunctionType) or workspace is None or program is None or program.writes or program.is_random:
        return False
    code = function.__code__
    if function.__closure__ or function.__defaults__:
        return False
    visits = {id(each.function): each.node for each in every(program.body) if isinstance(each, Visit)}
    try:
        names = [(name, written(function.__globals__[name], visits)) for name in code.co_names if name in function.__globals__]
        defaults = [(name, written(each, visits)) for name, each in (function.__kwdefaults__ or {}).items()]
    except NotData:
        return False
    inside = [(each.offset, *facts_of_meta(each.meta)) for each in workspace.plan.inside]
    data = HEAD + marshal.dumps((code, names, defaults, workspace.plan.arena, inside))
    return len(data) <= MAX_BYTES and disk_cache.store(key, "plan", data) is not None


def facts_of_meta(meta: Meta) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """A Meta as plain data."""
    return meta.dtype.str, tuple(meta.shape), tuple(meta.strides)


def text_of(node: Node) -> str:
    """The text of a graph of this node alone. Raises NotData if the text does not determine the graph."""
    graph = node.graph
    if graph is None or graph.dialect.attribute_arguments or node.blocks or node.subgraph is not None or node.kind[:1] == "^":
        raise NotData(node.kind)
    text = str(alone(node, graph.dialect))
    if "<Tensor" in text:
        raise NotData(node.kind)
    return text


def alone(node: Node, dialect: Dialect) -> Graph:
    """A graph of a node alone, whose inputs are the operands of the node; constants are copied."""
    graph = Graph(dialect)
    mapping: dict[Value, Value] = {}
    for value in node.inputs:
        if value.node.kind in CONSTANT_KINDS and value not in mapping:
            clone_node(value.node, mapping, graph.block, graph)
        elif value not in mapping:
            mapping[value] = graph.block.add_input(value.name, value.type)
    graph.block.set_outputs(clone_node(node, mapping, graph.block, graph).outputs)
    return graph


def written(value: Any, visits: Mapping[int, Node]) -> tuple[Any, ...]:
    """A value as plain data; visits: by id of a function that calls a node as the interpreter does, the node. Raises NotData."""
    if id(value) in visits:
        return "visit", text_of(visits[id(value)])
    name = getattr(value, "__name__", "")
    if isinstance(name, str) and name and getattr(np, name, None) is value:
        return "numpy", name
    if isinstance(value, np.ufunc) and getattr(sys.modules.get("scipy.special"), name, None) is value:
        return "scipy", name
    if type(value) is np.ndarray and value.dtype.kind in "biufc":
        return "array", value.tobytes(), *facts_of_meta(meta_of(value))
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return "number", value.tobytes(), value.dtype.str
    if isinstance(value, np.dtype) and value.kind in "biufc":
        return "dtype", value.str
    if type(value) is Meta:
        return "meta", *facts_of_meta(value)
    if isinstance(getattr(value, "__self__", None), Recycler):
        return "take" if value.__self__.most else "make", *facts_of_meta(value.__self__.meta)
    if isinstance(getattr(value, "__self__", None), Shared):
        shared = value.__self__
        return "shared", shared.size, *[(each.offset, *facts_of_meta(each.meta)) for each in (shared.result, *shared.guests)]
    if type(value) in (int, float, bool, str, type(None)):
        return "value", value
    if any(value is each for each in OWN):
        return "own", OWN.index(value)
    if type(value) is Rows:
        return "rows", value.function.__name__
    if type(value) is Folds:
        return "folds", value.name, value.shape, value.keeps
    if type(value) is Bound:
        group = value.group
        return "group", str(group.graph), group.native, group.threads, *facts_of_meta(value.meta)
    raise NotData(type(value).__name__)


# -- reading
def read(key: str) -> Kept | None:
    """The function under a key; None if there is none, or if it has another format."""
    data = disk_cache.read(key, "plan")
    if data is None or not data.startswith(HEAD):       # on other data, marshal may take much time and memory
        return None
    try:
        code, names, defaults, arena, inside = marshal.loads(memoryview(data)[len(HEAD):])
        if not isinstance(code, CodeType):
            return None
        space = {name: again(each) for name, each in names}
        space["__builtins__"] = {"range": range, "int": int, "slice": slice}
        function = FunctionType(code, space, "plan")
        function.__kwdefaults__ = {name: again(each) for name, each in defaults}
        buffers = [buffer_again(*each) for each in inside]
    except (ValueError, TypeError, EOFError, LookupError, AttributeError, RecursionError, MemoryError, OverflowError):
        return None
    layout: Any = Layout(arena, buffers)
    return Kept(function, Workspace(layout))


def meta_again(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Meta:
    """A Meta from plain data."""
    return Meta(np.dtype(dtype), shape, strides)


def buffer_again(offset: int, *facts: Any) -> Buffer:
    """A buffer at an offset."""
    buffer = Buffer(0, meta_again(*facts), 0, 0, False)
    buffer.offset = offset
    return buffer


@lru_cache(maxsize=1024)
def visitor_of(text: str) -> Any:
    """The function that calls the node of a graph of one node."""
    from irtool.text.parser import parse

    return visitor(parse(text).graph().block.return_node.prev)[0]


def again(data: tuple[Any, ...]) -> Any:
    """The value that `written` stored as plain data."""
    kind, *rest = data
    if kind == "numpy":
        return getattr(np, rest[0])
    if kind == "scipy":
        return getattr(importlib.import_module("scipy.special"), rest[0])
    if kind == "array":
        array = allocated(meta_again(*rest[1:]))
        array[...] = np.frombuffer(rest[0], array.dtype).reshape(array.shape)
        return array
    if kind == "number":
        return np.frombuffer(rest[0], rest[1])[0]
    if kind == "dtype":
        return np.dtype(rest[0])
    if kind == "meta":
        return meta_again(*rest)
    if kind == "visit":
        return visitor_of(rest[0])
    if kind == "take":
        return Recycler(meta_again(*rest)).take
    if kind == "make":
        return Recycler(meta_again(*rest), 0).take
    if kind == "shared":
        size, result, *guests = rest
        return Shared(size, buffer_again(*result), [buffer_again(*each) for each in guests]).take
    if kind == "own":
        return OWN[rest[0]]
    if kind == "rows":
        return Rows(getattr(np, rest[0]))
    if kind == "folds":
        return Folds(*rest)
    if kind == "group":
        from irtool.text.parser import parse

        return Bound(Fused(parse(rest[0]).graph(), rest[1], rest[2]), meta_again(*rest[3:]))
    return rest[0]
