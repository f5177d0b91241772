"""What code reads by name: globals, and attributes of whatever the code meets."""
from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

GLOBAL_READS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "DELETE_GLOBAL", "STORE_GLOBAL"))
MODULE_READS = frozenset(("IMPORT_NAME",))
NAMESPACES = frozenset(("globals", "vars", "eval", "exec"))
"""Functions with which code reads globals by texts."""
WHOLE = frozenset(("vars", "dir", "__dict__", "__getattribute__", "__getattr__"))
"""Names with which code reads attributes that it does not name."""
BY_NAME = frozenset(("getattr", "hasattr"))
"""Functions that read the attribute that their second argument names."""


class Reads(NamedTuple):
    """The names of globals, of attributes, and of imported modules in code, and in the code of functions inside it. is_whole: does it
    compute names of attributes?"""

    names: tuple[str, ...]
    attributes: tuple[str, ...]
    modules: tuple[str, ...]
    is_whole: bool


@lru_cache(4096)
def reads_of(code: CodeType) -> Reads:
    """What code reads. Texts in it may be names of attributes, for `getattr` and `hasattr`."""
    names: dict[str, None] = {}
    attributes: dict[str, None] = {}
    modules: dict[str, None] = {}
    is_whole = False
    for each in codes_in(code):
        instructions = list(dis.get_instructions(each))
        for place, instruction in enumerate(instructions):
            if instruction.opname in GLOBAL_READS:
                names[instruction.argval] = None
                is_whole = is_whole or instruction.argval in BY_NAME and not names_a_constant(instructions[place + 1:])
            elif instruction.opname in MODULE_READS:
                modules[instruction.argval] = None
            elif instruction.opcode in dis.hasname:
                attributes[instruction.argval] = None
        attributes.update(dict.fromkeys(texts_in(each.co_consts)))
    if not NAMESPACES.isdisjoint(names):
        names.update(attributes)
    is_whole = is_whole or not WHOLE.isdisjoint(names) or not WHOLE.isdisjoint(attributes)
    return Reads(tuple(names), tuple(attributes), tuple(modules), is_whole)


def names_a_constant(instructions: list[dis.Instruction]) -> bool:
    """Is the second argument of a call a constant? instructions: those after the one that loads the function."""
    depth, second = 0, ""
    for each in instructions:
        if each.opname in ("PRECALL", "CALL") and depth == each.arg and depth in (2, 3):
            return second == "LOAD_CONST"
        depth += dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        if depth < 0:
            break
        if depth == 2:
            second = each.opname
    return False


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of the functions, classes and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def texts_in(constants: Any) -> Iterator[str]:
    """The texts among constants that can be names."""
    for constant in constants:
        if isinstance(constant, tuple | frozenset):
            yield from texts_in(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
