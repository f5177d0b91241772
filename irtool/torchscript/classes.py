"""Classes of the source that are types of a graph (named tuples and enumerations), and other names for types.

Nothing in them is executed: fields are read from annotations, members from literals and arithmetic of literals.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.graph import Value
from irtool.ir.types import ClassType, EnumType, InterfaceType, NamedTupleType, Type
from irtool.torchscript.annotations import annotation, dotted, signature, type_name
from irtool.torchscript.class_definitions import ClassDefinition, class_definition, is_interface
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.enumerations import ENUMERATIONS, members_of
from irtool.torchscript.environment import Meaning
from irtool.torchscript.meanings import Enumeration, ExceptionClass, Structure, TypeValue
from irtool.torchscript.python_names import EXCEPTIONS
from irtool.torchscript.source_text import Function, Place, fail, literal

MAX_BASES = 20
"""The most classes between a class of exceptions and Python's own."""


def interface_called(name: str, place: Place) -> ast.ClassDef | None:
    """The interface (`torch.jit.interface`) of this name in the file; the code of archives has classes for interfaces."""
    definition = place.classes.get(name) if place.library is None else None
    return definition if definition is not None and is_interface(definition) else None


def conforming(interface: ast.ClassDef, place: Place) -> list[ClassDefinition]:
    """The classes of the file that conform to an interface: a value of the interface is an instance of one of them."""
    known = [class_of_unit(name, place) for name in place.classes]
    return [each for each in known if isinstance(each, ClassDefinition) and conforms(each, interface, place)]


def conforms(actual: ClassDefinition, interface: ast.ClassDef, place: Place) -> bool:
    """Has a class all methods of an interface, with the same parameters and results?"""
    assert place.unit is not None
    for each in interface.body:
        if not isinstance(each, ast.FunctionDef):
            continue
        method = actual.methods.get(each.name)
        if method is None:
            return False
        wanted, has = signature(Function(each, place, place.unit, actual.type)), signature(method)
        if has.names != wanted.names or has.types != wanted.types or has.result not in (None, wanted.result):
            return False
    return True


def class_of(type: ClassType | EnumType | InterfaceType, place: Place) -> Structure | Enumeration | ClassDefinition | None:
    """The class of a type, in the file or the archive that the file is part of."""
    return class_called(type.name if place.library is not None else type.name.rpartition(".")[2], place)


def class_called(name: str, place: Place) -> Structure | Enumeration | ClassDefinition | None:
    """The class of a name: in the file, or, for a full name, in the archive that the file is part of."""
    return class_of_unit(name, place) if place.library is None else place.library.class_called(name)


def class_of_unit(name: str, place: Place) -> Structure | Enumeration | ClassDefinition | None:
    """The class that has this name in the file: a named tuple, an enumeration, or a class whose instances a graph makes; None for
    anything else."""
    if name in place.known_types:
        known = place.known_types[name]
        return known if isinstance(known, Structure | Enumeration | ClassDefinition) else None
    definition = _made(name, place)
    if definition is not None:
        place.known_types[name] = definition
    return definition


def _made(name: str, place: Place) -> Structure | Enumeration | ClassDefinition | None:
    definition = place.classes.get(name)
    if definition is not None:
        bases = [(dotted(base) or "").rpartition(".")[2] for base in definition.bases]
        if "NamedTuple" in bases:
            return _structure(definition, place)
        if any(base in ENUMERATIONS for base in bases):
            return _enumeration(definition, place)
        return class_definition(definition, place) if not is_exception(name, place) else None
    value = place.aliases.get(name)
    if isinstance(value, ast.Call):
        return _called(value, place)
    return class_of_unit(value.id, place) if isinstance(value, ast.Name) and value.id != name else None


def _structure(definition: ast.ClassDef, place: Place) -> Structure:
    """`class P(NamedTuple):` with a line per field."""
    fields = [each for each in definition.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    names = [each.target.id for each in fields if isinstance(each.target, ast.Name)]
    return _named_tuple(definition.name, names, [annotation(each.annotation, place) for each in fields], [each.value for each in fields])


def _named_tuple(name: str, names: Sequence[str], parts: Sequence[Type], defaults: Sequence[ast.expr | None]) -> Structure:
    tuple_type = types.named_tuple_of(names, parts)
    assert isinstance(tuple_type, NamedTupleType)
    return Structure(name, tuple_type, defaults)


def _called(call: ast.Call, place: Place) -> Structure | None:
    """The named tuple of `namedtuple("P", ["a", "b"])`, whose fields are tensors, or `NamedTuple("P", [("a", int)])`."""
    kind = (dotted(call.func) or "").rpartition(".")[2]
    if kind not in ("namedtuple", "NamedTuple") or len(call.args) != 2 or not isinstance(call.args[0], ast.Constant):
        return None
    title, fields = str(call.args[0].value), call.args[1]
    if kind == "namedtuple":
        try:
            words = literal(fields)
        except ValueError:
            words = None
        if not isinstance(words, str | list | tuple):
            fail(place, fields, "the fields of a named tuple have to be written out")
        names = words.replace(",", " ").split() if isinstance(words, str) else [str(each) for each in words]
        return _named_tuple(title, names, [types.TENSOR] * len(names), [None] * len(names))
    pairs = [each.elts for each in getattr(fields, "elts", ()) if isinstance(each, ast.Tuple) and len(each.elts) == 2]
    names = [str(getattr(pair[0], "value", "")) for pair in pairs]
    return _named_tuple(title, names, [annotation(pair[1], place) for pair in pairs], [None] * len(names))


def _enumeration(definition: ast.ClassDef, place: Place) -> Enumeration:
    """The enumeration of `class Color(Enum):`. Raises ParseError for members of several types."""
    members = members_of(definition, place)
    kinds = {type(value) for value in members.values()}
    if len(kinds) > 1:
        fail(place, definition, f"Could not unify type list since the members of {definition.name} are of several types "
                                f"({', '.join(sorted(kind.__name__ for kind in kinds))})", len("class"))
    enum_type = types.parse_type(f"Enum<{place.module}.{definition.name}>")
    assert isinstance(enum_type, EnumType)
    return Enumeration(definition.name, enum_type, members)


def is_exception(name: str, place: Place, depth: int = 0) -> bool:
    """Is a class of the file an exception?"""
    definition = place.classes.get(name)
    bases = [dotted(base) or "" for base in definition.bases] if definition is not None and depth < MAX_BASES else []
    return any(base in EXCEPTIONS or is_exception(base, place, depth + 1) for base in bases)


def meaning_of_name(name: str, place: Place) -> Meaning | None:
    """The meaning of a name at the file's top level, if it is a class or another name for a type."""
    definition = class_called(name, place)
    if definition is None and is_exception(name, place):
        return ExceptionClass(name)
    if definition is not None or name not in place.aliases:
        return definition
    value = place.aliases[name]
    if isinstance(value, ast.Subscript) or dotted(value) in ("int", "float", "bool", "str", "torch.Tensor", "Tensor"):
        return TypeValue(annotation(value, place))
    return None


# ---------------------------------------------------------------- members
def member_constant(e: Emitter, enumeration: Enumeration, name: str) -> Value:
    """A constant for a member, a new one at each mention, since for torch's `is` each mention is another object."""
    text = Attribute(f"{enumeration.type.name}.{name}")
    return e.one("prim::Constant", (), enumeration.type, {"value": text})


def enumeration_of(e: Emitter, type: EnumType) -> Enumeration | None:
    """The class of a value that is a member of an enumeration of the source; None for other values."""
    definition = class_of(type, e.place)
    return definition if isinstance(definition, Enumeration) else None


def member_field(e: Emitter, node: ast.Attribute, value: Value) -> Value | None:
    """`member.name`, `member.value`. Graphs do not contain the values, so they are looked up by name."""
    type = value.type
    assert isinstance(type, EnumType)
    if node.attr not in ("name", "value"):
        return None
    enumeration = enumeration_of(e, type)
    known = value.node.attributes.get("value") if value.node.kind == "prim::Constant" else None
    word = known.text.rpartition(".")[2] if known is not None else None
    if node.attr == "name":
        return e.constant(word) if word is not None else e.one("prim::EnumName", (value,), types.STR)
    if enumeration is None or not enumeration.members:
        e.fail(node, f"the source does not contain the values of the members of {type_name(type)}")
    if word is not None:
        return e.constant(enumeration.members[word])
    result = e.constant(next(iter(enumeration.members.values()))).type
    pairs = [e.constant(each) for pair in enumeration.members.items() for each in pair]
    table = e.one("prim::DictConstruct", pairs, types.dict_of(types.STR, result))
    return e.operator(node, "aten::__getitem__", [table, e.one("prim::EnumName", (value,), types.STR)])


def members_listed(e: Emitter, enumeration: Enumeration) -> Value:
    """All members of an enumeration, as a list."""
    return e.list_value([member_constant(e, enumeration, name) for name in enumeration.members], enumeration.type)
