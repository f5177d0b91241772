"""Programs to measure on, the same for every call with the same size; each is written as torch IR and, for xDSL, as generic MLIR.

A program is a list of (result, operator, operands); see `PROGRAMS`.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Op = tuple[str, str, tuple[str, ...]]
SMALL = "Float(2, 3, 4)"
TRACED = "Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu)"


def uniform(n: int) -> Iterator[Op]:
    """n binary operators; operands are among the last 64 results."""
    draw = random.Random(0).randrange
    for i in range(2, n + 2):
        low = max(0, i - 64)
        yield str(i), ("mul", "div", "maximum", "minimum")[i & 3], (str(draw(low, i)), str(draw(low, i)))


def dce(n: int) -> Iterator[Op]:
    """A chain that lives, and one beside it that nobody reads."""
    live, dead = "0", "1"
    for k in range(n // 2):
        yield f"v{k}", "mul", (live, "1")
        yield f"d{k}", "mul", (dead, live)
        live, dead = f"v{k}", f"d{k}"


def cse(n: int) -> Iterator[Op]:
    """Each product is computed twice."""
    last = "0"
    for k in range(n // 3):
        yield f"x{k}", "mul", (last, "1")
        yield f"y{k}", "mul", (last, "1")
        yield f"z{k}", "atan2", (f"x{k}", f"y{k}")
        last = f"z{k}"


def constants(n: int) -> Iterator[Op]:
    """Integer arithmetic, half of it on constants (`c3`, `c1`), half on an input (`i`)."""
    folded, open_end = "c3", "i"
    for k in range(n // 2):
        yield f"a{k}", "add" if k % 2 else "sub", (folded, "c1")
        yield f"b{k}", "add", (open_end, f"a{k}")
        folded, open_end = f"a{k}", f"b{k}"


def ones(n: int) -> Iterator[Op]:
    """Integer arithmetic, half of it products with one (`c1`)."""
    last = "i"
    for k in range(n // 2):
        yield f"a{k}", "mul", (last, "c1")
        yield f"b{k}", "add", (f"a{k}", "i")
        last = f"b{k}"


PROGRAMS: dict[str, Callable[[int], Iterator[Op]]] = {"uniform": uniform, "dce": dce, "cse": cse, "constant-propagation": constants,
                                                      "peephole": ones}
INTEGERS = ("constant-propagation", "peephole")
"""Programs on integers, with the constants `c3` and `c1`."""


def torch_text(program: str, n: int) -> str:
    """The program as torch IR."""
    if program == "reallike":
        return reallike(n)
    integers = program in INTEGERS
    type = "int" if integers else SMALL if program == "uniform" else "Tensor"
    out = [f"graph(%0 : {type},\n      %1 : {type},\n      %i : int):\n"]
    if integers:
        out += ["  %c3 : int = prim::Constant[value=3]()\n", "  %c1 : int = prim::Constant[value=1]()\n"]
    name = "0"
    for name, op, operands in PROGRAMS[program](n):
        out.append(f"  %{name} : {type} = aten::{op}({', '.join('%' + operand for operand in operands)})\n")
    out.append(f"  return (%{last_live(program, name)})\n")
    return "".join(out)


def last_live(program: str, name: str) -> str:
    """The result the program returns: in `dce` not the last one."""
    return name.replace("d", "v") if program == "dce" else name


def reallike(n: int) -> str:
    """About n lines like those of a scripted model: constants, lists, strides, source comments, If and Loop."""
    out = [f"graph(%x.1 : {TRACED},\n      %w.1 : {TRACED},\n      %flag.1 : bool):\n"]
    count, k, last = 0, 0, "x.1"
    while count < n:
        place = f" # model.py:{10 + k % 900}:{k % 40}"
        lines = [
            f"  %one.{k} : int = prim::Constant[value=1]()",
            f"  %half.{k} : float = prim::Constant[value=0.5]()" + place,
            f"  %none.{k} : NoneType = prim::Constant()",
            f"  %h.{k} : {TRACED} = aten::mul(%{last}, %w.1)" + place,
            f"  %a.{k} : {TRACED} = aten::add(%h.{k}, %{last}, %one.{k})" + place,
            f"  %s.{k} : int[] = prim::ListConstruct(%one.{k}, %one.{k})",
            f"  %d.{k} : Tensor = aten::sum(%a.{k}, %s.{k}, %flag.1, %none.{k})" + place,
            f"  %t.{k} : {TRACED} = aten::tanh(%a.{k})" + place,
        ]
        count += 8
        last = f"t.{k}"
        if k % 4 == 3:
            lines += [f"  %y.{k} : {TRACED} = prim::If(%flag.1)" + place,
                      "    block0():", f"      %p.{k} : {TRACED} = aten::relu(%t.{k})" + place, f"      -> (%p.{k})",
                      "    block1():", f"      %q.{k} : {TRACED} = aten::sigmoid(%t.{k})" + place, f"      -> (%q.{k})"]
            count, last = count + 3, f"y.{k}"
        elif k % 16 == 6:
            lines += [f"  %y.{k} : {TRACED} = prim::Loop(%one.{k}, %flag.1, %t.{k})" + place,
                      f"    block0(%i.{k} : int, %z.{k} : {TRACED}):", f"      %p.{k} : {TRACED} = aten::mul(%z.{k}, %w.1)" + place,
                      f"      -> (%flag.1, %p.{k})"]
            count, last = count + 2, f"y.{k}"
        out.append("\n".join(lines) + "\n")
        k += 1
    out.append(f"  return (%{last})\n")
    return "".join(out)


def mlir_text(program: str, n: int) -> str:
    """The same program over i32 in MLIR's generic form (`arith`, whose operators xDSL knows to be pure)."""
    names = {"mul": "muli", "atan2": "divui", "div": "divui", "maximum": "maxsi", "minimum": "minsi", "add": "addi", "sub": "subi"}
    overflow = " <{overflowFlags = #arith.overflow<none>}>"
    out = ['"builtin.module"() ({\n  "func.func"() <{function_type = (i32, i32, i32) -> i32, sym_name = "f"}> ({\n',
           "  ^bb0(%0 : i32, %1 : i32, %i : i32):\n"]
    if program in INTEGERS:
        out += [f'    %c{value} = "arith.constant"() <{{value = {value} : i32}}> : () -> i32\n' for value in (3, 1)]
    name = "0"
    for name, op, operands in PROGRAMS[program](n):
        word = names[op]
        flags = overflow if word in ("muli", "addi", "subi") else ""
        out.append(f'    %{name} = "arith.{word}"({", ".join("%" + operand for operand in operands)}){flags} : (i32, i32) -> i32\n')
    out.append(f'    "func.return"(%{last_live(program, name)}) : (i32) -> ()\n  }}) : () -> ()\n}}) : () -> ()\n')
    return "".join(out)
