"""A lowered graph as the source of one flat Python function, and which node each of its lines runs.

    def plan(v0, v1, work):
        b0, b1 = work
        add(v0, v1, b0)                 # 3
        b2 = take2()
        maximum(b0, v1, out=b2)         # 4
        return [b2]

The number behind `#` is the line of the IR. `b` are buffers, `h` tuples that hold several of them, `c` constants, `v` all other values.
Names and literals come from tables and numbers only: no text of the graph ever gets into the source.

With several threads (`irtool.execute.plan.parallel`), tasks `t` are started and waited for:

    with Crew(2) as start:
        t0 = start(dot, v0, v1, b0)     # 3
        dot(v0, v2, b1)                 # 4
        t0()                            # 3
        add(b0, b1, b0)                 # 5
        return [b0.copy()]
"""
from __future__ import annotations

import builtins
import keyword
import math
import operator
from collections import Counter
from collections.abc import Iterable
from typing import Any

from irtool.execute.plan.buffers import RECYCLED, Recycler
from irtool.execute.plan.large_results import room
from irtool.execute.plan.loop_numbers import SYMBOLS
from irtool.execute.plan.memory import WRITES_OUT, MemoryPlan
from irtool.execute.plan.opaque_calls import itself
from irtool.execute.plan.placement import BY_OPERATOR, Buffer, Piece, View
from irtool.execute.plan.program import Branch, Call, Group, Instruction, Item, Known, Lowered, Program, Repeat, Variable, Visit, Wait
from irtool.execute.thread_pool import Crew
from irtool.ir.graph import Node
from irtool.ops.array_library import np
from irtool.ops.powers import at_run
from irtool.ops.symbols.array_layout import Meta

SMALL = 1 << 12
"""Bytes below which a dead value may live until the function returns."""
KEYWORD_OUT = frozenset((np.maximum, np.minimum, np.concatenate, np.stack))
"""Functions whose out= must be named."""
METHODS = {getattr(np.ndarray, name): name for name in "astype copy reshape transpose swapaxes squeeze sum mean max min".split()}
METHODS[np.dot] = "dot"         # the function looks for `__array_function__` of its operands; the method does not
GIVE_ARRAYS = frozenset((np.ndarray.astype, np.ndarray.copy, np.ndarray.reshape, np.where))
"""Functions that return an array, not a NumPy scalar, for results without dimensions too."""
OFTEN = 8
"""Uses of a global from which it becomes an argument with a default."""
LITERALS = (int, bool, type(None))


class Changed(Exception):
    """A result has other facts than the run that was observed."""


def seen(value: Any, meta: Meta) -> Any:
    """The value, if it is an array of the facts that the plan was made for. Raises Changed."""
    if type(value) is np.ndarray and value.shape == meta.shape and value.dtype == meta.dtype and value.strides == meta.strides:
        return value
    raise Changed


class Source:
    """Writes the function. Results: `text`, `names` (its globals) and `nodes` (line -> node)."""

    def __init__(self, program: Program, memory: MemoryPlan) -> None:
        self.program = program
        self.memory = memory
        self.over = dict(memory.over)           # a result -> one before it in its chain, the first where that was asked for
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []
        self.names: dict[str, Any] = {"asarray": np.asarray, "array": np.array, "seen": seen, "__builtins__": {"range": range, "int": int,
                                                                                                              "slice": slice}}
        self.known: dict[int, str] = {}         # id of a constant or function -> its name
        self.held: list[Any] = []               # references to the constants and functions, so that no id is used again
        self.local: dict[Variable, str] = {}
        self.begun: set[int] = {BY_OPERATOR}           # numbers of the buffers that have memory
        self.lasting: set[Variable] = set()     # views of the arena, created once, in front of the loops that read them
        self.first: list[tuple[str, Node]] = []
        self.inputs = frozenset(program.inputs)
        self.weight = 1                         # of a use of a global: more in a loop
        self.uses: Counter[str] = Counter()
        self.started: dict[Call | Visit, tuple[str, str]] = {}      # name of the task, and of its result; "" if the call writes into `out`
        self.depth = 2 if program.tasks else 1      # of the function's own statements
        inputs = [self.name(variable) for variable in program.inputs]
        self.write(0, "", None)
        inside = [self.name(each.variable) if isinstance(each, View) else f"b{each.number}" for each in memory.inside]
        if inside:
            self.write(1, f"{', '.join(inside)}{',' if len(inside) == 1 else ''} = work", None)
        for piece in memory.pieces:
            self.piece(piece)
        self.own_constants()
        begin = len(self.lines)
        self.block(program.body, self.depth, program.inputs, program.body.results)
        self.write(self.depth, f"return [{', '.join([self.item(item) for item in program.body.results])}]", None)
        rest = self.lines[begin:], self.nodes[begin:]
        del self.lines[begin:], self.nodes[begin:]
        for text, node in self.first:
            self.write(1, text, node)
        if program.tasks:
            self.write(1, f"with {self.function(Crew)}({program.threads}) as start:", None)
        self.lines += rest[0]
        self.nodes += rest[1]
        often = [f"{name}={name}" for name, count in self.uses.items() if count >= OFTEN]       # looking up a local is faster
        self.lines[0] = f"def plan({', '.join([*inputs, 'work', *['*'] * bool(often), *often])}):"
        self.text = "\n".join(self.lines) + "\n"

    def write(self, depth: int, text: str, node: Node | None) -> None:
        """One line."""
        self.lines.append("    " * depth + text + (f"  # {node.line}" if node is not None and node.line else ""))
        self.nodes.append(node)

    # -- names
    def name(self, variable: Variable) -> str:
        """The name of a variable in the source."""
        name = self.local.get(variable)
        if name is None:
            name = f"v{variable.number}"
            if variable.constant is not None:
                name = self.constant(variable.constant)
            self.local[variable] = name
        return name

    def own_constants(self) -> None:
        """Copy, in each run, the constants that someone may write into or hold."""
        for variable in sorted(self.memory.lives.escaping, key=lambda each: each.number):
            if variable.constant is not None:
                self.write(1, f"v{variable.number} = array({self.constant(variable.constant)})", None)
                self.local[variable] = f"v{variable.number}"

    def constant(self, value: Any, stem: str = "c") -> str:
        """The name of the global that holds a value."""
        name = self.known.get(id(value))
        if name is None:
            name = f"{stem}{len(self.known)}"
            self.names[name] = value
            self.known[id(value)] = name
            self.held.append(value)
        self.uses[name] += self.weight
        return name

    def function(self, function: Any) -> str:
        """The name of the global that holds a function: `__name__` of the function, if that is free."""
        function = at_run(function)
        name = self.known.get(id(function))
        if name is None:
            name = getattr(function, "__name__", "")
            if not is_free(name) or name in self.names:
                name = f"f{len(self.known)}"
            self.names[name] = function
            self.known[id(function)] = name
            self.held.append(function)
        self.uses[name] += self.weight
        return name

    # -- values
    def item(self, item: Item) -> str:
        """An item of the program."""
        if isinstance(item, Variable):
            return self.name(item)
        if isinstance(item, Known):
            return self.value(item.value)
        inner = ", ".join([self.item(each) for each in item.items])
        if item.make is list:
            return f"[{inner}]"
        return f"({inner},)" if item.items else "()"

    def value(self, value: Any) -> str:
        """An item, a tuple of them, or a plain value."""
        if isinstance(value, Variable | Known | Group):
            return self.item(value)
        if type(value) in LITERALS:
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        if type(value) is tuple:
            inner = ", ".join([self.value(each) for each in value])
            return f"({inner},)" if value else "()"
        if type(value) is list:
            return f"[{', '.join([self.value(each) for each in value])}]"
        if type(value) is slice:
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if isinstance(value, np.dtype) and value.name.isidentifier():
            self.names.setdefault(value.name, value)
            return value.name
        return self.constant(value)

    # -- blocks
    def block(self, lowered: Lowered, depth: int, owned: Iterable[Variable], results: Iterable[Item]) -> None:
        """Write the instructions of a block, and after each the `del` of values that nothing reads behind it."""
        dying = last_reads(lowered, owned, results)
        begun = {*owned, *[out for instruction in lowered.instructions for out in outs_of(instruction)]}
        for instruction in lowered.instructions:
            if isinstance(instruction, Call | Visit) and instruction in self.program.tasks:
                self.start(instruction, depth)
            elif isinstance(instruction, Wait):
                self.wait(instruction.started, depth)
            elif isinstance(instruction, Call):
                self.call(instruction, depth)
            elif isinstance(instruction, Visit):
                self.visit(instruction, depth, self.visited(instruction, depth))
            elif isinstance(instruction, Branch):
                self.branch(instruction, depth)
            else:
                self.repeat(instruction, depth)
            dead = [each for each in dying.get(id(instruction), ()) if self.first_in_place(each) in begun]
            self.release(instruction, dead, depth)      # a variable that shares its name with one of an outer block dies there

    def first_in_place(self, variable: Variable) -> Variable:
        """The first of a chain of results each of which overwrites the one before: all have its name."""
        chain = []
        while variable in self.over:
            chain.append(variable)
            variable = self.over[variable]
        self.over.update(dict.fromkeys(chain, variable))
        return variable

    def release(self, instruction: Instruction, variables: Iterable[Variable], depth: int) -> None:
        """Write `del` for dead variables that hold much memory, unless a result of the instruction has the same name."""
        taken = {self.name(out) for out in outs_of(instruction) if out not in variables}
        names: dict[str, None] = {}
        for variable in variables:
            held = [each.meta for each in (variable, *variable.roots)]      # a small view holds all of the array it looks into
            small = all(meta is not None and meta.nbytes < SMALL for meta in held)
            if not small and variable.constant is None and variable not in self.lasting and self.holds(variable) \
                    and self.name(variable) not in taken:
                names[self.name(variable)] = None
        if names:
            self.write(depth, f"del {', '.join(names)}", None)

    def holds(self, variable: Variable) -> bool:
        """May deleting a variable free memory? Not if the caller holds it, or if it is in the arena."""
        places = [self.memory.place.get(root) for root in variable.roots]
        return any(place is None or place.leaves and place.piece is None for place in places) and not variable.roots <= self.inputs

    def call(self, call: Call, depth: int) -> None:
        """One call of NumPy."""
        out, meta = call.out, call.out.meta
        if call.way == "view" and out in self.memory.views:
            return
        args = [self.value(each) for each in call.args]
        if call.way == "keep":
            self.write(depth, f"{args[0]}.append({args[1]})", call.node)
            return
        if call.way == "number":
            symbol = SYMBOLS.get(call.function)
            text = f"{args[0]} {symbol} {args[1]}" if symbol else f"{self.function(call.function)}({', '.join(args)})"
            self.write(depth, f"{self.name(out)} = {text}", call.node)
            return
        assert meta is not None
        if call.way == "into":
            copies = call.function is np.positive       # as an assignment: a ufunc copies operands that overlap `out` first
            text = f"{self.function(np.copyto)}({self.name(out)}, {args[0]})" if copies else \
                self.expression(call, args, self.out(call, self.name(out)))
            self.write(depth, text, call.node)
            return
        if call.way == "view" or call.way not in WRITES_OUT:
            text = self.expression(call, args)
            is_array = call.way == "view" or meta.shape or call.function in GIVE_ARRAYS
            text = f"{self.name(out)} = {text if is_array else f'asarray({text})'}"
            if depth > self.depth and call.way == "view" and self.is_lasting(call):
                self.first.append((text, call.node))
            else:
                self.write(depth, text, call.node)
            return
        buffer, over = self.memory.place[out], self.memory.over.get(out)
        place = self.local[out] = f"b{buffer.number}" if over is None else self.name(over)
        if over is None and buffer.leaves and buffer.number not in self.begun:
            if not buffer.is_handed_to(call):
                self.begun.add(buffer.number)
                text = self.expression(call, args)
                self.write(depth, f"{place} = {text if meta.shape else f'asarray({text})'}", call.node)
                return
            self.begin(buffer, depth, call.node)
        if call.function is not room:
            self.write(depth, self.expression(call, args, self.out(call, place), *self.work_of(call)), call.node)

    def begin(self, buffer: Buffer, depth: int, node: Node) -> None:
        """Allocate memory for a buffer that leaves, if it has none."""
        if buffer.leaves and buffer.number not in self.begun:
            self.begun.add(buffer.number)
            self.write(depth, f"b{buffer.number} = {self.taker(buffer)}()", node)

    def work_of(self, instruction: Call | Visit) -> list[str]:
        """The argument that is the scratch memory of a group."""
        buffer = self.memory.scratch.get(instruction)
        return [] if buffer is None else [f"scratch=b{buffer.number}"]

    def is_lasting(self, call: Call) -> bool:
        """Is the result of a call a view of a fixed place in the arena, so that all rounds of a loop can use one view?"""
        x = call.args[0]
        buffer = self.memory.place.get(x)
        if x not in self.lasting and (buffer is None or buffer.leaves and buffer.piece is None):
            return False
        read: set[Variable] = set()
        reads_of((*call.args, *call.named.values()), read)
        if read != {x}:
            return False
        self.lasting.add(call.out)
        return True

    def out(self, call: Call, place: str) -> str:
        """The text of the `out` argument of a call, by position if the function allows that."""
        by_place = call.function is np.dot or isinstance(call.function, np.ufunc) and call.function not in KEYWORD_OUT
        return place if by_place else f"out={place}"

    def piece(self, piece: Piece) -> None:
        """Allocate the memory of a result and of the buffers that share it. The run holds the tuple to its end."""
        number = piece.all[0].number
        self.names[f"take{number}"] = piece.shared().take
        self.begun.add(number)
        self.write(1, f"{', '.join([f'b{buffer.number}' for buffer in piece.all])} = h{number} = take{number}()", None)

    def taker(self, buffer: Buffer) -> str:
        """The name of the function that allocates a buffer that leaves."""
        name = f"take{buffer.number}"
        self.names[name] = (Recycler(buffer.meta, 0) if buffer.is_loose else Recycler(buffer.meta)).take
        return name

    def expression(self, call: Call, args: list[str], *more: str) -> str:
        """A method, an index, or a function."""
        named = [*[f"{name}={self.value(value)}" for name, value in call.named.items()], *more]
        if call.function is operator.getitem:
            return f"{args[0]}[{self.index(call.args[1])}]"
        if call.function is operator.pow:
            return f"{args[0]} ** {args[1]}"
        if call.function in METHODS:
            return f"{args[0]}.{METHODS[call.function]}({', '.join([*args[1:], *named])})"
        return f"{self.function(call.function)}({', '.join([*args, *named])})"

    def index(self, value: Any) -> str:
        """The text between the brackets of an index."""
        if type(value) is tuple and value:
            return ", ".join([self.index(each) for each in value]) + ("," if len(value) == 1 else "")
        if type(value) is slice and value.step in (None, 1):
            return f"{'' if value.start is None else self.value(value.start)}:{'' if value.stop is None else self.value(value.stop)}"
        return "..." if value is Ellipsis else self.value(value)

    # -- other threads
    def start(self, started: Call | Visit, depth: int) -> None:
        """Start a task: a call that another thread makes."""
        task, taker = f"t{len(self.started)}", ""
        if isinstance(started, Visit):
            args = [self.constant(started.function, "node"), *self.given_to(started, depth)]
        else:
            args = [self.function(started.function), *[self.value(each) for each in started.args]]
            args += [f"{name}={self.value(value)}" for name, value in started.named.items()]
            out = started.out
            if started.way in WRITES_OUT:       # not over an operand: the task reads operands until it is waited for
                buffer = self.memory.place[out]
                self.local[out] = f"b{buffer.number}"
                if not buffer.leaves or buffer.number in self.begun or buffer.is_handed_to(started):
                    self.begin(buffer, depth, started.node)
                    args.append(self.out(started, self.name(out)))
                else:
                    taker = self.name(out)
                    self.begun.add(buffer.number)
            else:
                taker = self.name(out)
        self.started[started] = task, taker
        self.write(depth, f"{task} = start({', '.join(args)})", started.node)

    def wait(self, started: Call | Visit, depth: int) -> None:
        """Wait for a task."""
        task, taker = self.started[started]
        if isinstance(started, Visit):
            self.visit(started, depth, f"{task}()")
        else:
            meta = started.out.meta
            text = f"{task}()" if meta is None or meta.shape else f"asarray({task}())"
            self.write(depth, f"{taker} = {text}" if taker else f"{task}()", started.node)

    def visited(self, visit: Visit, depth: int) -> str:
        """The text of a visit's call."""
        args = self.given_to(visit, depth)
        if visit.function is itself:
            return args[0]
        return f"{self.constant(visit.function, 'node')}({', '.join([*args, *self.work_of(visit)])})"

    def given_to(self, visit: Visit, depth: int) -> list[str]:
        """The arguments of a visit's function: the operands, and the arrays to fill if it fills some."""
        args = [f"[{', '.join([self.item(item) for item in visit.args])}]"]
        if visit.fills:
            for out in visit.outs:
                buffer, over = self.memory.place[out], self.memory.over.get(out)
                self.local[out] = f"b{buffer.number}" if over is None else self.name(over)
                self.begin(buffer, depth, visit.node)
            args.append(f"[{', '.join([self.name(out) for out in visit.outs])}]")
        return args

    def visit(self, visit: Visit, depth: int, text: str) -> None:
        """The results of a node called as the interpreter calls it."""
        outs = [self.name(out) for out in visit.outs]
        if visit.fills:
            self.write(depth, text, visit.node)
            return
        if not visit.sole:
            text = f"{', '.join(outs)}{',' if len(outs) == 1 else ''} = {text}" if outs else text
            self.write(depth, text, visit.node)
        elif visit.facts[0] is not None:
            self.write(depth, f"{outs[0]} = seen({text}, {self.constant(visit.facts[0], 'm')})", visit.node)
        else:
            self.write(depth, f"{outs[0]} = {text}", visit.node)
        if not visit.sole:
            for out, meta in zip(outs, visit.facts, strict=True):
                if meta is not None:
                    self.write(depth, f"seen({out}, {self.constant(meta, 'm')})", visit.node)

    def branch(self, branch: Branch, depth: int) -> None:
        """if and else."""
        if branch.tests_none:
            test = " or ".join([f"{self.item(item)} is not None" for item in branch.condition])
        else:
            test = self.item(branch.condition[0])
        for head, lowered in zip((f"if {test}:", "else:"), branch.blocks, strict=True):
            self.write(depth, head, branch.node)
            before = len(self.lines)
            self.block(lowered, depth + 1, (), lowered.results)
            self.assign(branch.outs, lowered.results, depth + 1, branch.node)
            if len(self.lines) == before:
                self.write(depth + 1, "pass", None)

    def assign(self, variables: list[Variable], items: list[Item], depth: int, node: Node) -> None:
        """Assign all variables in one statement, since an item may be another variable."""
        pairs = [(self.name(variable), self.item(item)) for variable, item in zip(variables, items, strict=True)]
        pairs = [(left, right) for left, right in pairs if left != right]
        if pairs:
            self.write(depth, f"{', '.join([left for left, _ in pairs])} = {', '.join([right for _, right in pairs])}", node)

    def repeat(self, loop: Repeat, depth: int) -> None:
        """A loop: `for` where only the count ends it, else `while`."""
        self.assign(loop.carried, loop.start, depth, loop.node)
        counter = self.name(loop.counter)
        limit, condition, again = loop.limit, loop.condition, loop.body.results[0]
        endless = isinstance(limit, Known) and limit.value is None
        if is_true(condition) and is_true(again) and not endless:
            self.write(depth, f"for {counter} in range(int({self.item(limit)})):", loop.node)
            self.body(loop, depth + 1)
            return
        number = loop.counter.number
        self.write(depth, f"done{number} = 0", loop.node)
        self.write(depth, f"go{number} = {self.item(condition)}", loop.node)
        test = f"go{number}"
        if not endless:
            self.write(depth, f"most{number} = {self.item(limit)}", loop.node)
            self.write(depth, f"most{number} = most{number} if most{number} is None else int(most{number})", loop.node)
            test = f"(most{number} is None or done{number} < most{number}) and go{number}"
        self.write(depth, f"while {test}:", loop.node)
        self.write(depth + 1, f"{counter} = done{number}", loop.node)
        self.write(depth + 1, f"done{number} += 1", loop.node)
        self.body(loop, depth + 1, f"go{number}")

    def body(self, loop: Repeat, depth: int, go: str = "") -> None:
        """Write one round, and the assignment of the carried values of the next."""
        self.weight *= OFTEN
        before = len(self.lines)
        pairs = list(zip(loop.carried, loop.body.results[1:], strict=True))
        defined = {out for each in loop.body.instructions for out in outs_of(each)}
        anew = [pair for pair in pairs if pair[1] in defined and self.is_made_anew(*pair)]
        for carried, _ in anew:
            self.write(depth, f"{self.name(carried)} = None", loop.node)      # frees the memory, which this round uses again
        self.block(loop.body, depth, (), loop.body.results)
        left, right = [self.name(each) for each, _ in pairs], [self.item(each) for _, each in pairs]
        self.weight //= OFTEN
        if go:
            left, right = [*left, go], [*right, self.item(loop.body.results[0])]
        if left != right:
            self.write(depth, f"{', '.join(left)} = {', '.join(right)}", loop.node)
            if anew:
                self.write(depth, f"del {', '.join(dict.fromkeys([self.item(each) for _, each in anew]))}", loop.node)
        elif len(self.lines) == before:
            self.write(depth, "pass", None)


    def is_made_anew(self, carried: Variable, item: Item) -> bool:
        """Does a round write a carried value into large recycled memory, without reading the value of the round before?"""
        buffer = self.memory.place.get(item) if isinstance(item, Variable) else None
        return (buffer is not None and buffer.leaves and buffer.number != BY_OPERATOR and buffer.meta.nbytes >= RECYCLED
                and carried not in self.memory.lives.looked_at and item not in self.memory.over)


def is_free(name: str) -> bool:
    """Can a function have its `__name__` in the source, without hiding a builtin or meeting a name of ours (`v3`, `work`)?"""
    return (name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and not hasattr(builtins, name) and name != "work"
            and not name[-1].isdecimal())


def is_true(item: Item) -> bool:
    """Is an item the constant True (or a number that counts as true)?"""
    return isinstance(item, Known) and isinstance(item.value, bool | int) and bool(item.value)


def last_reads(lowered: Lowered, owned: Iterable[Variable], results: Iterable[Item]) -> dict[int, list[Variable]]:
    """By id of an instruction: the variables of this block that it reads or defines, and that nothing behind it reads."""
    later: set[Variable] = set()
    for item in results:
        reads_of(item, later)
    mine = set(owned)
    for instruction in lowered.instructions:
        mine.update(outs_of(instruction))
    dying: dict[int, list[Variable]] = {}
    for instruction in reversed(lowered.instructions):
        read: set[Variable] = set()
        all_reads(instruction, read)
        read.update(outs_of(instruction))
        dead = [variable for variable in read if variable in mine and variable not in later]
        if dead:
            dying[id(instruction)] = sorted(dead, key=lambda each: each.number)
        later |= read
    return dying


def outs_of(instruction: Instruction) -> list[Variable]:
    """The variables that an instruction defines."""
    if isinstance(instruction, Wait):
        instruction = instruction.started
    if isinstance(instruction, Call):
        return [instruction.out] if instruction.way not in ("into", "keep") else []       # `out` of "into" is defined before
    return instruction.carried if isinstance(instruction, Repeat) else instruction.outs


def reads_of(value: Any, variables: set[Variable]) -> None:
    """Add the variables in an item, argument or tuple to a set."""
    if isinstance(value, Variable):
        variables.add(value)
    elif isinstance(value, Group):
        for each in value.items:
            reads_of(each, variables)
    elif isinstance(value, tuple | list):
        for each in value:
            reads_of(each, variables)


def all_reads(instruction: Instruction, variables: set[Variable]) -> None:
    """Add the variables that an instruction and its blocks read to a set."""
    if isinstance(instruction, Wait):       # the task reads its operands until then
        all_reads(instruction.started, variables)
        return
    if isinstance(instruction, Call):
        reads_of((*instruction.args, *instruction.named.values(), *[instruction.out] * (instruction.way == "into")), variables)
        return
    if isinstance(instruction, Visit):
        reads_of(tuple(instruction.args), variables)
        return
    if isinstance(instruction, Branch):
        reads_of(tuple(instruction.condition), variables)
        blocks = instruction.blocks
    else:
        reads_of((instruction.limit, instruction.condition, *instruction.start), variables)
        blocks = [instruction.body]
    for block in blocks:
        reads_of(tuple(block.results), variables)
        for inner in block.instructions:
            all_reads(inner, variables)
