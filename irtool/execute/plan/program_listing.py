"""A program as text, a line per instruction: what `irtool plan --print-after-all` shows."""
from __future__ import annotations

from typing import Any

from irtool.execute.plan.program import Branch, Call, Group, Instruction, Known, Lowered, Program, Repeat, Variable, Visit

INDENT = "  "


def listing(program: Program) -> str:
    """The instructions of a program in order, with the blocks of branches and loops indented, then the results."""
    inputs = ", ".join(declared(each) for each in program.inputs)
    return "\n".join([f"program({inputs}):", *lines(program.body, 1), f"{INDENT}return ({joined(program.body.results)})", ""])


def lines(block: Lowered, depth: int) -> list[str]:
    """The instructions of a block."""
    return [line for each in block.instructions for line in instruction_lines(each, depth)]


def instruction_lines(instruction: Instruction, depth: int) -> list[str]:
    """One instruction, with its blocks."""
    pad = INDENT * depth
    if isinstance(instruction, Call):
        named = [f"{name}={shown(value)}" for name, value in instruction.named.items()]
        arguments = ", ".join([*map(shown, instruction.args), *named])
        result = "" if instruction.way == "keep" else f"{declared(instruction.out)} = "
        return [f"{pad}{result}{name_of(instruction.function)}({arguments})  # {instruction.node.kind}"]
    if isinstance(instruction, Visit):
        results = ", ".join(map(declared, instruction.outs))
        return [f"{pad}{results + ' = ' if results else ''}{instruction.node.kind}({joined(instruction.args)})"]
    if isinstance(instruction, Branch):
        out = [f"{pad}{', '.join(map(declared, instruction.outs))} = if {joined(instruction.condition)}"
               f"{' is not None' if instruction.tests_none else ''}:"]
        for word, block in zip(("then", "else"), instruction.blocks, strict=True):
            out += [f"{pad}{INDENT}{word}:", *lines(block, depth + 2), f"{pad}{INDENT * 2}-> ({joined(block.results)})"]
        return out
    if isinstance(instruction, Repeat):
        pairs = zip(instruction.carried, instruction.start, strict=True)
        carried = ", ".join(f"{declared(variable)} = {shown(start)}" for variable, start in pairs)
        test = f"below {shown(instruction.limit)} while {shown(instruction.condition)}"
        return [f"{pad}loop {instruction.counter!r} {test}, carrying ({carried}):",
                *lines(instruction.body, depth + 1), f"{pad}{INDENT}-> ({joined(instruction.body.results)})"]
    return [f"{pad}wait for {', '.join(map(repr, results_of(instruction.started)))}"]


def results_of(started: Call | Visit) -> list[Variable]:
    """The results of an instruction that another thread runs."""
    return [started.out] if isinstance(started, Call) else started.outs


def declared(variable: Variable) -> str:
    """A variable with what is known of it: `v3: float32[2, 3]`."""
    meta = variable.meta
    return repr(variable) if meta is None else f"{variable!r}: {meta.dtype}[{', '.join(map(str, meta.shape))}]"


def joined(items: Any) -> str:
    """Several arguments."""
    return ", ".join(map(shown, items))


def shown(value: Any) -> str:
    """An argument."""
    if isinstance(value, Variable):
        return repr(value)
    if isinstance(value, Known):
        return repr(value.value)
    if isinstance(value, Group):
        return f"[{joined(value.items)}]" if value.make is list else f"({joined(value.items)})"
    if isinstance(value, tuple):
        return f"({joined(value)})"
    return name_of(value) if callable(value) else repr(value)


def name_of(function: Any) -> str:
    """The name of what is called: `np.add`, `getitem`."""
    return str(getattr(function, "__name__", type(function).__name__))
