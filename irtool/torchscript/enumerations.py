"""Enumerations of the source: the values of their members, from literals and arithmetic of literals. Nothing is executed."""
from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from irtool.torchscript.annotations import dotted
from irtool.torchscript.meanings import Known
from irtool.torchscript.python_names import python_name
from irtool.torchscript.source_text import Place, fail, literal

ENUMERATIONS = ("Enum", "IntEnum", "StrEnum", "Flag")
"""Without `IntFlag`, of which torch knows no type."""
LARGEST = 1000
"""The largest exponent and shift, and the most copies of a string: others would fill the memory."""
ARITHMETIC: dict[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}
"""Without `/`, which torch refuses in a class."""
NO_LITERAL = "Cannot create Enum with a value that is no literal, nor arithmetic of literals: expected an int, a float or a string"


def members_of(definition: ast.ClassDef, place: Place) -> dict[str, object]:
    """The members of an enumeration, each with its value. Raises ParseError for values that torch does not take, or that are unknown."""
    bases = [(dotted(base) or "").rpartition(".")[2] for base in definition.bases]
    names: dict[str, object] = {}
    members: dict[str, object] = {}
    ignored: list[str] = []
    for name, node in _assigned(definition, place):
        if name == "_ignore_":
            words = _known(node, names, place)
            ignored = words.replace(",", " ").split() if isinstance(words, str) else list(words) if isinstance(words, list) else []
            continue
        if name.startswith("__") or name == "_order_":      # no member
            continue
        if name.startswith("_") and name.endswith("_"):
            fail(place, node, f"_sunder_ names, such as '{name}', are reserved for future Enum use")
        names[name] = _next(bases, name, members) if _is_auto(node) else _known(node, names, place)
        if name not in ignored:
            _check(names[name], node, place)
            if names[name] not in members.values():         # a second name for a member is no member
                members[name] = names[name]
    return members


def _assigned(definition: ast.ClassDef, place: Place) -> Iterator[tuple[str, ast.expr]]:
    """The names that the body of a class assigns, in order."""
    for each in definition.body:
        targets = each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
        for target in targets if value is not None else []:
            assert value is not None
            if isinstance(target, ast.Name):
                yield target.id, value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from [(part.id, other) for part, other in zip(target.elts, value.elts, strict=True) if isinstance(part, ast.Name)]
            else:
                fail(place, target, "members of an enumeration have to be assigned by name")


def _is_auto(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (dotted(node.func) or "").rpartition(".")[2] == "auto" and not node.args


def _next(bases: list[str], name: str, members: Mapping[str, object]) -> object:
    """The value of `auto()`: the largest one plus 1, for flags the next power of two."""
    if "StrEnum" in bases:
        return name.lower()
    highest = max((value for value in members.values() if isinstance(value, int)), default=0)
    return 1 << highest.bit_length() if "Flag" in bases else highest + 1


def _known(node: ast.expr, names: Mapping[str, object], place: Place) -> object:
    """The value of a literal, of a name with a known value, or of arithmetic of these. Raises ParseError."""
    try:
        return literal(node)
    except ValueError:
        pass
    if isinstance(node, ast.UnaryOp | ast.BinOp) and type(node.op) in ARITHMETIC:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        operands = [_known(part, names, place) for part in parts]
        if _is_large(node.op, operands):
            fail(place, node, NO_LITERAL)
        try:
            return ARITHMETIC[type(node.op)](*operands)
        except (ArithmeticError, TypeError, ValueError) as error:
            fail(place, node, f"{error}")
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    constants, modules = (place.unit.constants, place.unit.modules) if place.unit is not None else ({}, {})
    if isinstance(node, ast.Name) and node.id in constants and not isinstance(constants[node.id], ast.Name):
        return _known(constants[node.id], {}, place)
    root, _, rest = (dotted(node) or "").partition(".")
    meaning = python_name(f"{modules[root]}.{rest}") if root in modules and rest else None
    if isinstance(meaning, Known) and modules[root] != "torch":
        return meaning.value
    fail(place, node, NO_LITERAL)


def _is_large(op: ast.AST, operands: list[object]) -> bool:
    """May arithmetic take long, or fill the memory?"""
    if any(isinstance(each, int) and abs(each) > 2 ** 64 or isinstance(each, str) and len(each) > LARGEST for each in operands):
        return True
    if isinstance(op, ast.Mult | ast.Mod) and any(not isinstance(each, int | float) for each in operands):
        return isinstance(op, ast.Mod) or any(isinstance(each, int) and each > LARGEST for each in operands)
    return isinstance(op, ast.Pow | ast.LShift) and isinstance(operands[1], int) and operands[1] > LARGEST


def _check(member: object, node: ast.expr, place: Place) -> None:
    if isinstance(member, bool) or not isinstance(member, int | float | str):
        fail(place, node, f"Cannot create Enum with value type '{type(member).__name__}', only int, float and string values are supported")
    if isinstance(member, int) and not -(2 ** 63) <= member < 2 ** 63:
        fail(place, node, "Cannot create Enum with an int that does not fit in 64 bits")
