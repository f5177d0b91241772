"""The program of a plan: instructions on items. An item is a known value, a variable of the run, or a group of items."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.execute.fusion import Fused
from irtool.execute.plan.loop_numbers import Bounds
from irtool.ir.graph import Graph, Node
from irtool.ops.symbols.array_layout import Meta


class Known:
    """A value that is the same in every run of the plan. Never an array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Variable:
    """A value of a run. `roots`: the variables whose memory it may share."""

    __slots__ = ("number", "meta", "roots", "constant", "bounds")

    def __init__(self, number: int, meta: Meta | None = None, roots: frozenset[Variable] | None = None, constant: Any = None) -> None:
        self.number = number
        self.meta = meta
        self.roots = frozenset((self,)) if roots is None else roots
        self.constant = constant        # the array, if the variable is a constant
        self.bounds: Bounds | None = None       # of a whole number: its smallest and largest possible value

    def __repr__(self) -> str:
        return f"v{self.number}"


class Group:
    """A list or tuple whose items are known one by one."""

    __slots__ = ("items", "make")

    def __init__(self, items: Sequence[Item], make: type) -> None:
        self.items = list(items)
        self.make = make        # list or tuple


Item = Known | Variable | Group


def numbers_of(item: Item | None) -> list[int]:
    """The numbers of a list if all are known; else empty."""
    if isinstance(item, Known) and isinstance(item.value, list) and all(type(each) is int for each in item.value):
        return item.value
    if isinstance(item, Group) and all(isinstance(each, Known) and type(each.value) is int for each in item.items):
        return [each.value for each in item.items if isinstance(each, Known)]
    return []


class Call:
    """`out = function(*args, **named)`. Arguments: items, tuples of them, plain values.

    way: one of those of `irtool.ops.symbols.recorder.Step`, or "number": the result is a whole number; or "keep": the call appends the
    second argument to the first, a list, and has no result.
    """

    __slots__ = ("function", "args", "named", "out", "way", "node", "step")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], out: Variable, way: str,
                 node: Node, step: int = 0) -> None:
        self.function = function
        self.args = args
        self.named = named
        self.out = out
        self.way = way
        self.node = node
        self.step = step        # the number of the call among the node's calls

    @property
    def lies_by_itself(self) -> bool:
        """Does NumPy lay the result out as the plan says? Where operands lie in several ways, the plan follows torch."""
        arrays = [self.out, *[each for each in self.args if isinstance(each, Variable)]]
        return self.way != "ufunc" or all(each.meta is None or each.meta.is_contiguous for each in arrays)


class Visit:
    """A node called as the interpreter calls it: `outs = function(list of args)`, which returns the sole result, or a sequence of results.

    fills: the function writes its results into arrays of the plan, `function(list of args, list of outs)`; over: result -> the operand
    that it may overwrite, if nothing else reads that operand.
    """

    __slots__ = ("function", "args", "outs", "node", "sole", "keeps", "facts", "fills", "over", "fresh")

    def __init__(self, function: Callable[..., Any], args: list[Item], outs: list[Variable], node: Node, sole: bool, keeps: bool) -> None:
        self.function = function
        self.args = args
        self.outs = outs
        self.node = node
        self.sole = sole
        self.keeps = keeps      # may the function write into operands, or keep references to them after it returns?
        self.facts: list[Meta | None] = []      # observed facts of the results, checked in each run
        self.fills = False
        self.over: dict[Variable, Variable] = {}
        self.fresh = False      # are the results new memory, to which nothing else refers?


class Branch:
    """`if condition`: the results of one of two blocks."""

    __slots__ = ("condition", "blocks", "outs", "node", "tests_none")

    def __init__(self, condition: list[Item], blocks: list[Lowered], outs: list[Variable], node: Node, tests_none: bool) -> None:
        self.condition = condition      # one item; with `tests_none`, several: true if any is not None
        self.blocks = blocks
        self.outs = outs
        self.node = node
        self.tests_none = tests_none


class Repeat:
    """A loop: `carried` begins as `start`; the results of `body` are the condition and the next values of `carried`."""

    __slots__ = ("limit", "condition", "start", "counter", "carried", "body", "node")

    def __init__(self, limit: Item, condition: Item, start: list[Item], counter: Variable, carried: list[Variable], body: Lowered,
                 node: Node) -> None:
        self.limit = limit
        self.condition = condition
        self.start = start
        self.counter = counter
        self.carried = carried      # inside the body, and the loop's results
        self.body = body
        self.node = node

    @property
    def is_counted(self) -> bool:
        """Does only the number of rounds end the loop, and no condition?"""
        return all(isinstance(each, Known) and each.value is True for each in (self.condition, self.body.results[0]))

    @property
    def rounds(self) -> int | None:
        """The number of rounds, if the loop is counted and the count is known."""
        return self.limit.value if self.is_counted and isinstance(self.limit, Known) and type(self.limit.value) is int else None


class Wait:
    """Waits for another thread to finish a Call or a Visit, which that thread starts where the Call or Visit stands in the program
    (`irtool.execute.plan.parallel`)."""

    __slots__ = ("started", "cost", "beside")

    def __init__(self, started: Call | Visit, cost: float) -> None:
        self.started = started
        self.cost = cost                            # nanoseconds, about
        self.beside: list[Instruction] = []         # what runs at the same time and is worth mentioning

    @property
    def node(self) -> Node:
        """The node of the instruction that is waited for."""
        return self.started.node


Instruction = Call | Visit | Branch | Repeat | Wait


class Lowered:
    """A block: instructions in order, and its results."""

    __slots__ = ("instructions", "results")

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.results: list[Item] = []


class Program:
    """A whole graph, lowered."""

    __slots__ = ("body", "inputs", "variables", "graph", "is_random", "writes", "groups", "loops", "threads", "tasks")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.body = Lowered()
        self.inputs: list[Variable] = []
        self.variables = 0
        self.is_random = False
        self.writes = False         # do calls write into memory that others may see?
        self.groups: list[tuple[Node, Fused]] = []      # groups that run block by block
        self.loops: list[tuple[Node, str]] = []         # how each loop runs, and why
        self.threads = 1
        self.tasks: dict[Call | Visit, Wait] = {}       # instructions that other threads run

    def variable(self, meta: Meta | None = None, roots: frozenset[Variable] | None = None, constant: Any = None) -> Variable:
        """A new variable."""
        self.variables += 1
        return Variable(self.variables - 1, meta, roots, constant)


# -- items
def operand_of(item: Item) -> tuple[Any] | None:
    """The operand for an item when a kernel is traced (a value, or facts of an array), in a tuple of one; None if facts are missing."""
    if isinstance(item, Known):
        return (item.value,)
    if isinstance(item, Variable):
        return None if item.meta is None else (item.meta,)
    operands = [operand_of(each) for each in item.items]
    return None if None in operands else (item.make([each[0] for each in operands if each is not None]),)


def leaves(items: Sequence[Item]) -> list[Variable]:
    """The variables in items, in order."""
    variables: list[Variable] = []
    for item in items:
        if isinstance(item, Variable):
            variables.append(item)
        elif isinstance(item, Group):
            variables += leaves(item.items)
    return variables


def roots_of(item: Item) -> frozenset[Variable]:
    """The variables whose memory an item may share."""
    if isinstance(item, Variable):
        return item.roots
    if isinstance(item, Group):
        return frozenset().union(*[roots_of(each) for each in item.items])
    return frozenset()


def meta_of_item(item: Item) -> Meta | None:
    """The facts of an item that is an array."""
    return item.meta if isinstance(item, Variable) else None


def is_never_none(item: Item) -> bool:
    """Is an item in no run None?"""
    if isinstance(item, Known):
        return item.value is not None
    return isinstance(item, Group) or item.meta is not None
