"""Functions of TorchScript with inputs, drawn from a seed: every statement is well typed as it is written, and runs as Python, too.

Straight lines, branches and loops with numbers and with elements as conditions, lists and dicts that change, tuples, views, writes through
them, shapes that change in place; tensors of every dtype, without dimensions, without elements, and of up to three million elements.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

from fuzz import called, flow, sampled, structures, tables
from fuzz.expressions import Facts, Shape, broadcast, category
from fuzz.tables import Table
from fuzz.values import draw_literal

SHAPES: tuple[Shape, ...] = ((), (1,), (3,), (0,), (2, 3), (3, 3), (1, 3), (2, 1), (2, 3, 4), (2, 0), (4,), (1, 1), (3, 1, 2), (5,),
                             (2, 3), (3,), (8, 8))
LARGE: tuple[Shape, ...] = ((1000, 1000), (300_000,), (128, 128), (40_000,), (3, 20_000), (64, 64, 16), (10_000,))
DTYPES = ("float32", "float32", "float32", "float64", "float64", "int64", "bool", "int32", "uint8", "complex64")


@dataclass
class Name:
    """A variable: what is known of it, and which memory it shares with others."""

    text: str
    facts: Facts
    memory: int = 0


@dataclass(frozen=True)
class Style:
    """What is drawn. grad: smooth operators on float64, inputs are not written into; sizes: of the inputs."""

    grad: bool = False
    large: bool = False
    writes: bool = True
    most: int = 14
    one_result: bool = False
    """Does it return the sum of what it computed, as a gradient needs it?"""
    elements: bool = True
    """Does it make Python numbers of elements, to decide by? Where vmap hides them that is refused."""
    silent: bool = False
    """Are there statements in `torch.no_grad()`?"""
    mixed: bool = False
    """With `grad`: are there inputs of single precision, complex and whole numbers among those of double precision?"""

    compiled: bool = False
    """Is it only compiled, not executed as Python on irtool's tensors, which have no `torch.jit._fork`?"""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Of the inputs."""
        if self.grad:
            return ("float64", "float32", "float64", "complex128", "float32", "int64", "complex64") if self.mixed else ("float64",)
        return DTYPES[:4] if self.large else DTYPES

    def takes(self, dtype: str) -> bool:
        """May a variable have the dtype?"""
        return not self.grad or dtype == "float64" or self.mixed and ("float" in dtype or "complex" in dtype)


@dataclass(frozen=True)
class Program:
    """A function `f` and literals of its inputs by name."""

    source: str
    inputs: dict[str, str]


class Writer:
    """Writes one function."""

    def __init__(self, seed: int, style: Style) -> None:
        self.random = random.Random(seed)
        self.style = style
        self.lines: list[str] = []
        self.inputs: dict[str, str] = {}
        self.names: list[Name] = []
        self.fixed: set[int] = set()
        """Memory that is not written into: that of inputs of which gradients are taken."""
        self.carried: set[str] | None = None
        """Inside a block: names from outside that may be assigned and written there; None outside of blocks."""
        self.ints: list[str] = []
        self.reals: list[str] = []
        self.depth = 1
        self.count = 0
        self.results: list[str] = []
        """Lists, dicts and numbers that may be returned as they are."""
        self.helpers: list[str] = []
        """Functions that are called."""
        self.in_helper = False
        self.exits: list[tuple[int, list[str], int]] = []
        """Lines that leave the function, with the tensors that are known there, and how far they are indented."""

    # -- names and text
    def emit(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self) -> Name:
        """A tensor, rather a late one."""
        return self.random.choice(self.names[-5:] if self.random.random() < 0.5 else self.names)

    def number(self) -> str:
        """A small whole number."""
        return self.random.choice(self.ints) if self.ints and self.random.random() < 0.5 else str(self.random.choice((0, 1, 2, 3)))

    def real(self) -> str:
        """A floating point number."""
        return self.random.choice(self.reals) if self.reals and self.random.random() < 0.4 else self.random.choice(("0.5", "1.5", "-2.0",
                                                                                                                    "0.25"))

    # -- expressions
    def table(self) -> Table:
        """Which operators to choose from."""
        if self.style.grad:
            return self.random.choices((tables.SMOOTH, tables.SMOOTH_BOTH, tables.VIEWS, tables.REDUCE, tables.MORE_SMOOTH,
                                        tables.MORE_BOTH, sampled.SMOOTH, sampled.REDUCE, sampled.MOVE), (5, 6, 4, 2, 2, 1.5, 2, 2, 2))[0]
        every = (tables.SMOOTH, tables.EXACT, tables.SMOOTH_BOTH, tables.EXACT_BOTH, tables.VIEWS, tables.REDUCE, tables.EXACT_REDUCE,
                 tables.CONVERT, tables.MAKE, tables.MORE_SMOOTH, tables.MORE_BOTH, tables.MORE_EXACT, sampled.EXACT, sampled.SMOOTH,
                 sampled.REDUCE, sampled.CHOICE, sampled.MOVE)
        return self.random.choices(every, (4, 3, 5, 3, 5, 1.5, 1.5, 1.5, 1.5, 2, 1.5, 2, 2, 1, 1, 1, 2))[0]

    def expression(self) -> tuple[str, Facts, int] | None:
        """Text, facts, and the memory it may share; None where the draw does not fit."""
        if self.random.random() < 0.12:
            return self.call()
        table = self.table()
        text, rule = self.random.choice(table)
        a, b = self.pick(), self.pick()
        if "{b}" in text and self.random.random() < 0.6:
            b = self.random.choice([each for each in self.names if broadcast(each.facts.shape, a.facts.shape) is not None] or [b])
        facts = rule(a.facts, b.facts)
        if facts is None or not self.style.takes(facts.dtype) or facts.count > 3 * 10**6:
            return None
        if self.style.large and not self.style.grad and table is tables.REDUCE and facts.bits is None and "mean" not in text:
            return None
        shares = table in (tables.VIEWS, tables.CONVERT, sampled.MOVE) or "detach" in text or "contiguous" in text or "expand_as" in text
        return text.format(a=a.text, b=b.text, n=self.number(), r=self.real()), facts, a.memory if shares else self.new_memory()

    def call(self) -> tuple[str, Facts, int] | None:
        """As `expression`, of any operator."""
        a, b = self.pick(), self.pick()
        b = self.random.choice((a, b))
        for _ in range(6):
            text = called.call(self.random, self.style.grad)
            facts = called.facts(text, a.facts, b.facts, self.style.grad)
            if facts is not None and self.style.takes(facts.dtype):
                memory = b.memory if b.memory in self.fixed else a.memory
                return text.format(a=a.text, b=b.text, n=self.number(), r=self.real()), facts, memory
        return None

    def new_memory(self) -> int:
        """A number for memory of its own."""
        self.count += 1
        return self.count

    def assign(self) -> None:
        """A new tensor."""
        for _ in range(8):
            drawn = self.expression()
            if drawn is not None:
                self.define(*drawn)
                return

    def define(self, text: str, facts: Facts, memory: int) -> Name:
        """`v = text`."""
        name = Name(self.fresh(), facts, memory)
        self.emit(f"{name.text} = {text}")
        self.names.append(name)
        return name

    def assign_again(self, name: Name) -> None:
        """Another value of the same dtype and shape for a name."""
        facts = name.facts
        for _ in range(15):
            drawn = self.expression()
            if drawn is not None and (drawn[1].dtype, drawn[1].shape) == (facts.dtype, facts.shape) and drawn[2] not in self.fixed:
                self.emit(f"{name.text} = {drawn[0]}")
                name.facts = Facts(facts.dtype, facts.shape, None)
                return
        kind = category(facts.dtype)
        self.emit(f"{name.text} = " + (f"~{name.text}" if not kind
                                       else f"{name.text} + 1" if kind == 1 else f"{name.text} * 0.5 + {name.text}"))
        name.facts = Facts(facts.dtype, facts.shape, None)
        name.memory = self.new_memory()

    # -- writes
    def writable(self) -> list[Name]:
        """Tensors that may be written into here."""
        return [each for each in self.names if each.memory not in self.fixed
                and (self.carried is None or each.text in self.carried or each.text not in self.outside)]

    outside: frozenset[str] = frozenset()

    def write(self) -> None:
        """Into a tensor, or a part of one."""
        targets = self.writable()
        if not targets:
            return
        target = self.random.choice(targets[-4:] if self.random.random() < 0.6 else targets)
        facts, kind = target.facts, category(target.facts.dtype)
        if self.random.random() < 0.12:
            self.reshape(target)
            return
        if self.random.random() < 0.15:
            self.call_that_writes(target)
            return
        is_part = bool(facts.shape) and facts.count > 0 and self.random.random() < 0.4
        shape = facts.shape[1:] if is_part else facts.shape
        if kind == 0:
            text = self.random.choice(("{a}.logical_not_()", "{a}.fill_(True)", "{a}.zero_()"))
        elif is_part:
            text = self.random.choice(tables.PART_WRITES if kind >= 2
                                      else ("{a}[0] = {b}", "{a}[1:] = {n}", "{a}[0].add_({b})", "{a}[0] += {b}"))
        elif kind == 1:
            text = self.random.choice(tables.WHOLE_WRITES)
        else:
            more = tables.EXACT_WRITES if not self.style.grad and facts.is_exact and kind == 2 else ()
            text = self.random.choice(tables.SMOOTH_WRITES + more)
        others = [each for each in self.names if broadcast(each.facts.shape, shape) == shape and category(each.facts.dtype) <= kind
                  and each.facts.dtype != "bool" and (each.memory != target.memory or each is target and not is_part)]
        if facts.count > 10**4 and (".unbind(" in text or ".split(" in text):       # a view of each row
            return
        if "{b}" in text and not others or ".view(" in text and not self.is_contiguous(target):
            return
        other = self.random.choice(others or [target])
        self.emit(text.format(a=target.text, b=other.text, n=self.number(), r=self.real()))
        self.rounded(target.memory)

    def call_that_writes(self, target: Name) -> None:
        """Any operator in place."""
        other = self.random.choice([each for each in self.names if each.memory != target.memory] or [target])
        for _ in range(6):
            text = called.write(self.random, self.style.grad)
            facts = called.facts(text, target.facts, other.facts, self.style.grad)
            if facts is not None and (facts.dtype, facts.shape) == (target.facts.dtype, target.facts.shape):
                self.emit(text.format(a=target.text, b=other.text, n=self.number(), r=self.real()))
                self.rounded(target.memory)
                return

    def is_contiguous(self, target: Name) -> bool:
        """Was it not transposed or stepped? Views of it are sometimes refused then, by torch and by irtool alike."""
        return sum(each.memory == target.memory for each in self.names) == 1

    def rounded(self, memory: int) -> None:
        """What shares the memory may hold rounded numbers from now on."""
        for each in self.names:
            if each.memory == memory:
                each.facts.bits = None

    def reshape(self, target: Name) -> None:
        """A shape that changes in place; in blocks, which may not run, or run often, only to what it was."""
        text, rule = self.random.choice(tables.RESHAPES)
        facts = rule(target.facts, target.facts)
        if facts is None or self.carried is not None and facts.shape != target.facts.shape:
            return
        self.emit(text.format(a=target.text))
        target.facts.shape = facts.shape

    def add(self, text: str, other: Name) -> None:
        """One more name of a tensor."""
        self.names.append(Name(text, other.facts, other.memory))

    def alias(self) -> None:
        """A second name of a tensor."""
        other, name = self.pick(), self.fresh()
        self.emit(f"{name} = {other.text}")
        self.add(name, other)

    # -- numbers, lists, dicts, tuples
    def numbers(self) -> None:
        """A Python number, of other numbers, of sizes, or of elements."""
        a, kind = self.pick(), self.random.randrange(4 if self.style.elements else 2)
        if kind == 0:
            text, names = self.random.choice(("{n} + 1", "{n} * 2", "{n} // 2", "min({n}, 2)", "{n} % 2", "len({a}.size())",
                                              "{a}.numel() % 5")), self.ints
        elif kind == 1:
            text, names = self.random.choice(("{r} * 0.5", "{r} + {n}", "float({n})", "{n} / 2", "max({r}, 0.5)", "1.0 - {r}")), self.reals
        elif a.facts.is_exact and a.facts.count and not self.style.grad and category(a.facts.dtype) in (1, 2) and a.facts.dtype != "uint8":
            text, names = (("int({a}.max()) % 4", self.ints), ("float({a}.min())", self.reals))[kind - 2]
        else:
            return
        name = self.fresh("k")
        self.emit(f"{name} = {text.format(a=a.text, n=self.number(), r=self.real())}")
        names.append(name)
        if self.carried is None and not self.style.grad and self.random.random() < 0.3:
            self.results.append(name)

    # -- blocks
    def condition(self) -> str:
        """Of numbers, of sizes, or of elements."""
        a = self.pick()
        elements = [f"bool({a.text}.any())"] if a.facts.is_exact and self.style.elements else []
        if self.style.elements and category(a.facts.dtype) == 2 and a.facts.count and a.facts.dtype != "float16":
            elements.append(f"bool({a.text}.mean() > 0.3337)")
        flag = ["flag", "not flag"] if "flag" in self.inputs else []
        return self.random.choice([*elements, *elements, *flag, f"{self.number()} > 1", f"{a.text}.dim() > 1", f"{self.number()} % 2 == 0"])

    def block(self, size: int, again: list[Name], first: str = "") -> None:
        """Statements of a block, the names in `again` assigned at its end; names that it defines end with it. first: its first line."""
        before = list(self.names), list(self.ints), list(self.reals), self.carried, self.outside
        self.outside = frozenset(each.text for each in self.names)
        self.carried = {each.text for each in again} & (self.carried if self.carried is not None else self.outside)
        self.depth += 1
        length = len(self.lines)
        if first:
            self.emit(first)
        for _ in range(size):
            self.statement()
        for name in again:
            if self.random.random() < 0.6:
                self.assign_again(name)
        if len(self.lines) == length:
            self.emit("pass")
        self.depth -= 1
        self.names, self.ints, self.reals, self.carried, self.outside = before

    def chosen(self) -> list[Name]:
        """Names that a block may change; what they hold is not exact any more."""
        names = [each for each in self.writable() if not each.text.startswith("x")]
        names = self.random.sample(names, min(len(names), self.random.choice((0, 1, 1, 2))))
        for name in names:
            for each in self.names:
                if each.memory == name.memory:
                    each.facts.bits = None
        return names

    def branch(self) -> None:
        """An `if`, maybe with an `else`."""
        again = self.chosen()
        if self.style.silent and self.random.random() < 0.4:
            self.emit("with torch.no_grad():")
            first = f"torch.set_grad_enabled({self.condition()})" if self.random.random() < 0.3 else ""
            self.block(self.random.choice((1, 2, 3)), again, first)
            return
        self.emit(f"if {self.condition()}:")
        self.block(self.random.choice((1, 1, 2)), again)
        if self.random.random() < 0.6:
            self.emit("else:")
            self.block(self.random.choice((1, 2)), again)

    def loop(self) -> None:
        """A `for` or a `while`, maybe with a `break` or a `continue`."""
        again, kind, counter = self.chosen(), self.random.randrange(6), self.fresh("i")
        if kind == 0:
            self.emit(f"{counter} = 0")
            extra = self.condition() if self.random.random() < 0.5 else "True"
            self.emit(f"while {counter} < {self.random.choice(('2', '3', self.number()))} and {extra}:")
            self.emit(f"    {counter} += 1")
        elif kind == 1 and (rows := self.rows()):
            self.emit(f"for {counter} in {rows.text}.unbind(0):")
            self.names.append(Name(counter, Facts(rows.facts.dtype, rows.facts.shape[1:], None), rows.memory))
            self.block(self.random.choice((1, 2)), again)
            self.names = [each for each in self.names if each.text != counter]
            return
        else:
            self.emit(f"for {counter} in range({self.random.choice(('0', '2', '3', '4', self.number()))}):")
        if self.random.random() < 0.2:
            self.emit(f"    if {counter} == 1:")
            self.emit(f"        {self.random.choice(('break', 'continue'))}")
        self.ints.append(counter)
        self.block(self.random.choice((1, 2, 2)), again)
        self.ints.remove(counter)

    def rows(self) -> Name | None:
        """A tensor with a few rows."""
        names = [each for each in self.names if each.facts.shape and 0 < each.facts.shape[0] < 9]
        return self.random.choice(names) if names else None

    def statement(self) -> None:
        """One statement, maybe with blocks."""
        draw = self.random.random()
        if draw < 0.5 or self.depth > 3 and draw > 0.85:
            self.assign()
        elif draw < 0.68:
            if self.style.writes:
                self.write()
        elif draw < 0.85:
            if self.random.random() < 0.3:
                self.random.choice((self.alias, self.numbers))()
            else:
                self.random.choice(structures.STATEMENTS if self.random.random() < 0.5 else flow.STATEMENTS)(self)
        elif draw < 0.92:
            self.branch()
        else:
            self.loop()

    # -- the function
    def arguments(self) -> list[str]:
        """Parameters, and literals for them."""
        for place in range(self.random.randint(1, 3)):
            shape = self.random.choice(LARGE if self.style.large and not place else SHAPES)
            dtype = self.random.choice(self.style.dtypes)
            self.inputs[f"x{place}"] = draw_literal(self.random, shape, dtype)
            self.names.append(Name(f"x{place}", Facts(dtype, shape), place + 1))
        self.count = 9
        words = [f"x{place}: Tensor" for place in range(len(self.names))]
        for name, kind, literal in (("n", "int", str(self.random.randrange(4))), ("r", "float", self.random.choice(("0.5", "-1.5", "2.0"))),
                                    ("flag", "bool", self.random.choice(("true", "false")))):
            if self.random.random() < 0.6:
                self.inputs[name] = literal
                words.append(f"{name}: {kind}")
        self.ints += ["n"] * ("n" in self.inputs)
        self.reals += ["r"] * ("r" in self.inputs)
        return words

    def program(self) -> Program:
        """The whole function."""
        words = self.arguments()
        if self.style.grad:
            self.fixed = {each.memory for each in self.names}
            for name in list(self.names):
                if self.random.random() < 0.6:
                    self.define(f"{name.text} * 1.25", Facts(name.facts.dtype, name.facts.shape, None), self.new_memory())
        for _ in range(self.random.randint(2, 6 if self.style.large else self.style.most)):
            self.statement()
        self.emit(f"return {self.result()}")
        body = "\n".join(self.left_early())
        return Program("".join(self.helpers) + f"def f({', '.join(words)}):\n{body}\n", self.inputs)

    def of_helper(self) -> Writer:
        """A writer of another function that this one calls."""
        inner = Writer(self.random.randrange(10**9), self.style)
        inner.in_helper, inner.count = True, self.count
        return inner

    def left_early(self) -> list[str]:
        """The lines, where the function is left early with as many tensors as its last line returns, if that returns tensors alone."""
        lines, words = list(self.lines), self.lines[-1].strip().removeprefix("return ").split(", ")
        known = {each.text for each in self.names}
        for at, names, depth in self.exits:
            chosen = ", ".join(self.random.choice(names) for _ in words)
            if known.issuperset(words):
                lines[at] = "    " * depth + f"return {chosen}"
        return lines

    def result(self) -> str:
        """What is returned: one tensor, several, or a structure."""
        late = [each for each in self.names if not each.text.startswith("x")] or self.names
        chosen = self.random.sample(late, min(len(late), self.random.choice((1, 2, 3, 5, 8))))
        if self.style.one_result:
            return " + ".join(f"({each.text} * 0.5).sum()" for each in chosen)
        texts = [each.text for each in chosen]
        if self.results and self.random.random() < 0.6:
            texts.append(self.random.choice(self.results))
            if self.random.random() < 0.3:
                texts = texts[-1:]
        mates = [each.text for each in late if (each.facts.dtype, each.facts.shape) == (chosen[0].facts.dtype, chosen[0].facts.shape)]
        draw = self.random.random()
        if draw < 0.08:
            return "{" + ", ".join(f'"k{place}": {text}' for place, text in enumerate([*reversed(mates[:3])])) + "}"
        if draw < 0.14:
            return f"[{', '.join(mates[:3])}]"
        return ", ".join(texts) if draw < 0.9 else f"{texts[0]}, ({', '.join([*texts[1:], texts[0]])},)"


def program(seed: int, style: Style) -> Program:
    """The function of a seed."""
    return Writer(seed, style).program()

