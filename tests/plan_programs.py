"""Random programs of what plans know before a run and what a run may change: lists, dicts, shapes, what loops carry, 0-d tensors."""
from __future__ import annotations

import random

NEW = ("{a} * 2", "{a} + {b}", "{a} - {s}", "torch.relu({a})", "{a}.clone()", "torch.where({a} > 0, {a}, {b})", "{a} * {s}",
       "torch.zeros_like({a})", "{a}", "{a}.view_as({b})", "{a}.detach()", "torch.maximum({a}, {b})", "{a} + {c}")
"""Tensors of one shape."""
SCALARS = ("{a}.sum()", "{s} + 1", "{s} * {t}", "torch.tensor(2.5)", "torch.tensor(3.0) + {c}", "{s}", "{s}.clone()", "-{s}", "{a}.max()",
           "torch.zeros([2])[0] + {s}")
"""Tensors without dimensions."""
CONSTANTS = ("torch.tensor(2.5, dtype=torch.float64)", "torch.tensor(3)", "torch.tensor(True)", "{d} + 1", "{d} * 2", "{d} + {e}",
             "torch.arange(3)[1] + {d}", "torch.ones([1], dtype=torch.float64)[0] * {d}")
"""The same of other dtypes, made of constants."""
WRITES = ("{a}.add_({b})", "{a} += {s}", "{a} -= 0.5 * {b}", "{a}.mul_({s})", "{a}.fill_({k})", "{a}.copy_({b})", "{a}.zero_()",
          "{a}[0:1] = {k}", "{a}.view(-1)[0:1].add_(1)", "{a}[{a} > {k}] = {k}", "{a}.masked_fill_({a} > {b}, {k})", "{s}.add_(1)",
          "{s}.mul_({t})", "{s} += 1", "{a}[{m}] = {k}", "{a}.relu_()", "{a}.t_()", "{a}.unsqueeze_(0)", "{a}.squeeze_(0)",
          "{a}.swapaxes_(0, -1)",
          "{a}.unsqueeze(0).add_(1)", "{a}.clamp_(-4, 4)", "{a}[0].mul_(2)")
LISTS = ("{l}.append({a})", "{l} += [{a}]", "{l}.insert(0, {b})", "{l}[0] = {a}", "{a} = {l}.pop()", "{a} = {l}[-1]", "{n} = len({l})",
         "{l}.extend([{a}, {b}])", "del {l}[0]", "{l}.reverse()", "{l}[-1].add_(1)", "{s} = torch.stack({l}).sum()", "{l} = {l} + [{b}]",
         "{s} = torch.cat([z.view(-1) for z in {l}]).sum()", "{l}.clear()", "{n} = torch.stack({l}).size(0)", "{l} = {l}[1:]")
DICTS = ('{q}["a"] = {s}', '{q}["b"] = {t}', '{q}["a"].add_(1)', '{s} = {q}["a"]', "{n} = len({q})", '{q}["c"] = {d}',
         'if "b" in {q}:\n{i}    {s} = {q}["b"]')
COUNTS = ("{n} = {n} + 1", "{n} = {a}.dim()", "{n} = {a}.numel()", "o.append({n})", "{n} = len(o)", "o.insert(0, 2)", "{n} = o[0]",
          "o[0] = {n}", "{n} = o.pop()", "{e} = torch.tensor(o)", "{n} = {a}.size(-1)", "o.sort()")
LOOPS = ("for i{d} in range(n0):", "for i{d} in range(2):", "for i{d} in range(3):", "j{d} = 0\n{i}while j{d} < n0:", "for z{d} in {l}:")


RESULTS = ("a", "b", "c", "u", "v", "l", "p", "q", "o", "n", "d", "e")


BEGINNING = """def f(x, y, s, n0: int, flag: bool):
    a = x + 1
    b = y * 1
    c = x
    u = s + 1
    v = x.sum()
    l = [a, b]
    p = [u]
    q = {'a': u}
    o = [1, 2]
    n = 1
    d = torch.tensor(1, dtype=torch.float64)
    e = torch.tensor(2)"""


class Writer:
    """Writes the lines of one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines = BEGINNING.splitlines()
        self.depth = 1

    def filled(self, text: str) -> str:
        """A line of a table with names in it."""
        rng = self.rng
        return text.format(a=rng.choice("abc"), b=rng.choice("abcy"), s=rng.choice("uv"), t=rng.choice("uvs"), c=rng.choice(("1.5", "n")),
                           k=rng.choice(("0.5", "-1.5", "2.0")), l=rng.choice("llp"), n="n", q="q", d=rng.choice("de"), e=rng.choice("de"),
                           m=rng.choice(("torch.tensor(flag)", "u > 0", "torch.tensor(0)")), i="    " * self.depth)

    def line(self, text: str) -> None:
        """One statement."""
        self.lines.append("    " * self.depth + text)

    def statement(self) -> None:
        """One of any kind."""
        rng = self.rng
        kind = rng.random()
        if self.depth < 3 and kind < 0.14:
            self.block()
        elif kind < 0.3:
            self.line(f"{rng.choice('abc')} = {self.filled(rng.choice(NEW))}")
        elif kind < 0.4:
            self.line(f"{rng.choice('uv')} = {self.filled(rng.choice(SCALARS))}")
        elif kind < 0.46:
            name = rng.choice("de")
            self.line(f"{name} = {self.filled(rng.choice(CONSTANTS))}")
        elif kind < 0.66:
            self.line(self.filled(rng.choice(WRITES)))
        elif kind < 0.84:
            self.line(self.filled(rng.choice(LISTS)))
        elif kind < 0.92:
            self.line(self.filled(rng.choice(DICTS)))
        else:
            self.line(self.filled(rng.choice(COUNTS)))

    def block(self) -> None:
        """A branch or a loop."""
        rng = self.rng
        depth = self.depth
        if rng.random() < 0.4:
            self.line(f"if {rng.choice(('flag', 'n0 > 1', 'bool(u > 2)', 'len(l) > 2', 'a.dim() > 1'))}:")
            self.inside(rng.randint(1, 3))
            if rng.random() < 0.5:
                self.line("else:")
                self.inside(rng.randint(1, 3))
            return
        loop = rng.choice(LOOPS)
        self.line(loop.format(d=depth, i="    " * depth, l="list(l)"))
        self.inside(rng.randint(1, 4))
        if "while" in loop:
            self.lines.append("    " * (depth + 1) + f"j{depth} += 1")

    def inside(self, count: int) -> None:
        """Statements of a block."""
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1


def plan_program(seed: int) -> str:
    """`def f(x, y, s, n0, flag)`: two tensors of a shape, one without dimensions, a number of rounds, a flag."""
    writer = Writer(seed)
    for _ in range(writer.rng.choice((3, 6, 9, 14))):
        writer.statement()
    results = writer.rng.sample(RESULTS, writer.rng.choice((2, 4, 8, len(RESULTS))))
    writer.line(f"return {', '.join(results)}")
    return "\n".join(writer.lines) + "\n"
