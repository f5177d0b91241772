"""Random TorchScript functions with nested control flow and lists that change; the same seed gives the same one."""
from __future__ import annotations

import random

EXPRESSIONS = ("torch.sin({a} * {b})", "{a} * {b} + {c}", "{a} - 0.5 * torch.tanh({b})", "torch.sigmoid({a}) * {b}", "{a} * {n} + {b}",
               "torch.cos({a}) + {b} * {c}", "torch.stack([{a}, {b}]).sum(0)", "torch.cat([{a}, {b}])[1:4] * {c}")
CHANGES = ("q = q + [{e}]", "q.extend([{e}, h])", "q = q[-2:]", "q += [{e}]", "q.reverse()", "r = [r[-1], {e}]", "q = [{e}]")
WRITES = ("{v} += {e}", "{v} *= 0.5", "{v}[{i} % 3] = ({e}).sum()", "{v}[1:] *= ({e})[:2]", "{v}.copy_({e})", "{v} = {v}.clone()",
          "{v}.unsqueeze(0)[0].add_({e})", "{v} = torch.zeros_like({v})", "{v}.view(-1)[:1] = ({e})[2]")


class Writer:
    """Writes one function of two vectors `x`, `w` and a number `n`."""

    def __init__(self, seed: int, writes: bool = False) -> None:
        self.random = random.Random(seed)
        self.writes = writes
        """Are tensors written into?"""
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.count = 0

    def source(self) -> str:
        """The whole function."""
        for line in ("h = x * w", "s = w", "t = torch.sin(x)", "q: List[Tensor] = [x]", "r = [w, x * 0.5]"):
            self.line(line, 1)
        for _ in range(self.random.randint(2, 4)):
            self.statement(1, 3)
        self.line("return torch.stack(q).sum(0) * h + s * t, torch.stack(r)", 1)
        return "\ndef f(x, w, n: int):\n" + "\n".join(self.lines) + "\n"

    def line(self, text: str, depth: int) -> None:
        """Add a line."""
        self.lines.append("    " * depth + text)

    def tensor(self) -> str:
        """Something to read."""
        pick = self.random.choice(("h", "s", "t", "x", "w", "q[-1]", "q[0]", "r[1]", "r[-1]", "q[{i} % len(q)]"))
        return pick.format(i=self.number())

    def number(self) -> str:
        """A small number."""
        return self.random.choice((*self.loops, "n", "1"))

    def expression(self) -> str:
        """A vector."""
        text = self.random.choice(EXPRESSIONS)
        return text.format(a=self.tensor(), b=self.tensor(), c=self.tensor(), n=self.number())

    def block(self, depth: int, left: int) -> None:
        """One to three statements."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, left)

    def statement(self, depth: int, left: int) -> None:
        """One statement; with blocks in it while `left` allows."""
        if self.writes and self.random.random() < 0.3:
            text = self.random.choice(WRITES).format(v=self.random.choice("hst"), e=self.expression(), i=self.number())
            self.line(text, depth)
            return
        kind = self.random.randrange(14 if left else 9)
        if kind < 4:
            self.line(f"{self.random.choice('hst')} = {self.expression()}", depth)
        elif kind == 4:
            self.line(f"q.append({self.expression()})", depth)
        elif kind == 5:
            self.line(f"r[{self.random.choice(('0', '1', '-1'))}] = {self.expression()}", depth)
        elif kind == 6:
            self.line("if len(q) > 1:", depth)
            self.line(f"{self.random.choice('hst')} = q.pop({self.random.choice(('', '0', '-1'))}) * {self.tensor()}", depth + 1)
        elif kind == 7:
            self.line(f"q.insert({self.random.choice(('0', '1', '-1', self.number()))}, {self.expression()})", depth)
        elif kind == 8:
            self.line(self.random.choice(CHANGES).format(e=self.expression()), depth)
        elif kind < 11:
            self.loop(depth, left)
        else:
            self.choice(depth, left)

    def choice(self, depth: int, left: int) -> None:
        """An `if`, by a number or by what was computed."""
        self.line(self.random.choice((f"if {self.number()} % 2 == 0:", f"if bool({self.tensor()}.sum() > 0):", "if len(q) > 2:")), depth)
        self.block(depth + 1, left - 1)
        if self.random.random() < 0.6:
            self.line("else:", depth)
            self.block(depth + 1, left - 1)

    def loop(self, depth: int, left: int) -> None:
        """A `for`, or a `while` that ends; maybe with a `break` or a `continue`."""
        self.count += 1
        name = f"i{self.count}"
        if self.random.random() < 0.7:
            self.line(f"for {name} in range({self.random.choice(('n', '2', '0', *self.loops))}):", depth)
        else:
            self.line(f"{name} = 0", depth)
            self.line(f"while {name} < 2 and bool(h.sum() < 4.0):", depth)
            self.line(f"{name} += 1", depth + 1)
        self.loops.append(name)
        self.block(depth + 1, left - 1)
        if self.random.random() < 0.3:
            self.line(f"if {name} == 1:", depth + 1)
            self.line(self.random.choice(("break", "continue")), depth + 2)
            self.block(depth + 1, 0)
        self.loops.pop()


def program(seed: int, writes: bool = False) -> str:
    """The source of a random function."""
    return Writer(seed, writes).source()
