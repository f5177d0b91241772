"""Random graphs with views, writes, lists, branches and loops, as text: what a plan must get right all at once."""
from __future__ import annotations

import itertools
import random

ONE = ("neg", "exp", "tanh", "sigmoid", "relu", "abs", "cos", "t", "contiguous")
TWO = ("add", "mul", "sub", "maximum")
WRITES = ("add_", "mul_", "relu_", "neg_", "sigmoid_", "copy_", "zero_")
PREAMBLE = """  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %big : int = prim::Constant[value=9223372036854775807]()
  %half : float = prim::Constant[value=0.5]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %square : int[] = prim::ListConstruct(%three, %three)
  %flat : int[] = prim::ListConstruct(%big)
  %c : Float(3, 3) = prim::Constant[value= 1  2  3
 4  5  6
 7  8  9 [ CPUFloatType{3,3} ]]()
"""


READINGS = ("neg({})", "mul({}, %one)", "add({}, %zero, %one)", "mul({}, %half)", "t({})", "reshape({}, %square)", "contiguous({}, %zero)",
            "clone({}, %none)", "expand({}, %square, %false)", "detach({})", "type_as({}, %c)")
WRITES_AFTER_USE = ("neg_({})", "add_({}, %half, %one)", "zero_({})", "copy_({}, %c, %true)")


def read_twice(tensor: str, names: list[str], reading: str, write: str, target: int, is_between: bool) -> list[str]:
    """Lines that read a tensor's view twice, and write into the tensor, the view or the first reading between the two or after both: no
    reading may stand for another, nor the view for a reading that has its elements. Names: of the view, the readings, and their sum."""
    view, first, second, both = names
    reads = [f"{name} : Tensor = aten::{reading.format(view)}" for name in (first, second)]
    written = f"{both}w : Tensor = aten::{write.format((tensor, view, first)[target])}"
    return [f"{view} : Tensor = aten::view({tensor}, %square)", reads[0], *([written, reads[1]] if is_between else [reads[1], written]),
            f"{both} : Tensor = aten::add({first}, {second}, %one)"]


def every_write_after_a_use() -> str:
    """A graph of every `read_twice`, each of a tensor of its own; what they read is returned."""
    lines, results = [], []
    for number, parts in enumerate(itertools.product(READINGS, WRITES_AFTER_USE, (0, 1, 2), (False, True))):
        names = [f"%{letter}{number}" for letter in "abst"]
        lines += [f"%o{number} : Tensor = aten::neg(%y)", *read_twice(f"%o{number}", names, *parts)]
        results += names
    body = "".join(f"  {line}\n" for line in lines)
    return f"graph(%x : Tensor, %y : Tensor, %b : bool, %n : int):\n{PREAMBLE}{body}  return ({', '.join(results)})\n"


class Writer:
    """Writes one graph; every tensor is 3 x 3 where it is named, so that anything goes with anything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"%v{self.count}"

    def graph(self, side: int = 3) -> str:
        """The text. Inputs: two 3 x 3 tensors, a condition, a number of rounds. With another side, tensors are of that size, and what is
        a constant otherwise is the last input."""
        lines: list[str] = []
        values = ["%x", "%y", "%c"]
        self.block(lines, values, 1, self.random.randint(3, 14))
        results = [self.random.choice(values[2:]) for _ in range(self.random.randint(1, 3))] + [values[-1]]
        preamble, more = PREAMBLE, ""
        if side != 3:
            preamble = preamble[:preamble.index("  %c :")].replace("ListConstruct(%three, %three)", "ListConstruct(%side, %side)")
            preamble, more = f"  %side : int = prim::Constant[value={side}]()\n{preamble}", ", %c : Tensor"
        return (f"graph(%x : Tensor, %y : Tensor, %b : bool, %n : int{more}):\n" + preamble + "\n".join(lines)
                + f"\n  return ({', '.join(results)})\n")

    def block(self, lines: list[str], values: list[str], depth: int, count: int) -> None:
        """Some nodes; the tensors they make go behind `values`."""
        pad = "  " * depth
        for _ in range(count):
            kind = self.random.choices(("one", "two", "write", "again", "view", "list", "held", "join", "if", "loop"),
                                       (6, 8, 4, 4, 4, 2, 1, 2, 2, 2))[0]
            if depth > 4 and kind in ("if", "loop"):
                kind = "two"
            getattr(self, f"write_{kind}")(lines, values, pad, depth)

    def pick(self, values: list[str]) -> str:
        """A tensor, rather a late one."""
        return values[-1] if self.random.random() < 0.4 else self.random.choice(values)

    def write_one(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        op, out = self.random.choice(ONE), self.fresh()
        lines.append(f"{pad}{out} : Tensor = aten::{op}({self.pick(values)}{', %zero' if op == 'contiguous' else ''})")
        values.append(out)

    def write_two(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        op, out = self.random.choice(TWO), self.fresh()
        other = self.pick(values) if op == "maximum" or self.random.random() < 0.8 else "%half"
        lines.append(f"{pad}{out} : Tensor = aten::{op}({self.pick(values)}, {other}{', %one' if op in ('add', 'sub') else ''})")
        values.append(out)

    def write_write(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        op, out, target = self.random.choice(WRITES), self.fresh(), self.pick(values)
        is_part = self.random.random() < 0.4
        if is_part:
            part = self.fresh()
            lines.append(f"{pad}{part} : Tensor = aten::select({target}, {self.random.choice(('%zero', '%one'))}, %two)")
            target = part
        more = {"add_": ", %half, %one", "mul_": ", %half", "copy_": ", %half, %true"}.get(op, "")
        if op == "copy_":
            other = self.fresh()
            lines.append(f"{pad}{other} : Tensor = aten::select({self.pick(values)}, %zero, %one)")
            more = f", {other}, %true"
        lines.append(f"{pad}{out} : Tensor = aten::{op}({target}{more})")
        if not is_part:
            values.append(out)

    def write_again(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        names = [self.fresh() for _ in range(4)]
        parts = [self.random.choice(each) for each in (READINGS, WRITES_AFTER_USE, (0, 1, 2), (False, True))]
        lines += [pad + line for line in read_twice(self.pick(values), names, *parts)]
        values += names[1:]

    def write_held(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        """A tensor is written into, and only lists that nothing reads hold it."""
        made, items, more, again, lists, last = (self.fresh() for _ in range(6))
        lines.append(f"{pad}{made} : Tensor = aten::neg({self.pick(values)})")
        self.write_write(lines, [made], pad, depth)
        lines.append(f"{pad}{items} : Tensor[] = prim::ListConstruct({made})")
        lines.append(f"{pad}{more} : Tensor[] = prim::ListConstruct({made}, {made})")
        lines.append(f"{pad}{lists} : Tensor[][] = prim::ListConstruct({items}, {more})")
        lines.append(f"{pad}{again} : Tensor[] = aten::__getitem__({lists}, %zero)")
        lines.append(f"{pad}{last} : Tensor[] = aten::append({again}, {made})")

    def write_view(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        flat, out = self.fresh(), self.fresh()
        lines.append(f"{pad}{flat} : Tensor = aten::transpose({self.pick(values)}, %zero, %one)")
        lines.append(f"{pad}{out} : Tensor = aten::reshape({flat}, %square)")
        values += [flat, out]

    def write_list(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        items, again, out = self.fresh(), self.fresh(), self.fresh()
        lines.append(f"{pad}{items} : Tensor[] = prim::ListConstruct({self.pick(values)}, {self.pick(values)})")
        if self.random.random() < 0.5:
            lines.append(f"{pad}{again} : Tensor[] = aten::append({items}, {self.pick(values)})")
        lines.append(f"{pad}{out} : Tensor = aten::__getitem__({items}, {self.random.choice(('%zero', '%one'))})")
        values.append(out)

    def write_join(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        items, both, out = self.fresh(), self.fresh(), self.fresh()
        lines.append(f"{pad}{items} : Tensor[] = prim::ListConstruct({self.pick(values)}, {self.pick(values)})")
        lines.append(f"{pad}{both} : Tensor = aten::cat({items}, %zero)")
        lines.append(f"{pad}{out} : Tensor = aten::slice({both}, %zero, %one, %big, %two)")
        values.append(out)

    def inner(self, lines: list[str], values: list[str], depth: int, results: int) -> list[str]:
        """The nodes of a nested block; gives tensors for its results."""
        own = list(values)
        self.block(lines, own, depth, self.random.randint(1, 4))
        return [self.pick(own) for _ in range(results)]

    def write_if(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        outs = [self.fresh() for _ in range(self.random.randint(1, 2))]
        lines.append(f"{pad}{', '.join(f'{out} : Tensor' for out in outs)} = prim::If(%b)")
        for number in (0, 1):
            lines.append(f"{pad}  block{number}():")
            lines.append(f"{pad}    -> ({', '.join(self.inner(lines, values, depth + 2, len(outs)))})")
        values += outs

    def write_loop(self, lines: list[str], values: list[str], pad: str, depth: int) -> None:
        outs = [self.fresh() for _ in range(self.random.randint(1, 2))]
        carried, counter = [self.fresh() for _ in outs], self.fresh()
        rounds = self.random.choice(("%three", "%n"))
        lines.append(f"{pad}{', '.join(f'{out} : Tensor' for out in outs)} = prim::Loop({rounds}, %true, "
                     f"{', '.join(self.pick(values) for _ in outs)})")
        lines.append(f"{pad}  block0({counter} : int, {', '.join(f'{each} : Tensor' for each in carried)}):")
        part, scaled = self.fresh(), self.fresh()
        lines.append(f"{pad}    {part} : Tensor = aten::select({self.pick(values)}, %zero, {counter if rounds == '%three' else '%one'})")
        lines.append(f"{pad}    {scaled} : Tensor = aten::mul({carried[0]}, {part})")
        lines.append(f"{pad}    -> (%true, {', '.join(self.inner(lines, [*values, *carried, scaled], depth + 2, len(outs)))})")
        values += outs
