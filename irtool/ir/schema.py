"""Operator schemas: what PyTorch 2.13 declares about each kind, and the overload that a node means.

The declarations are data (`schemas.txt` beside this file, 4,056 overloads of 1,974 kinds); those of a kind are parsed on first use.
Overloads have the order in which torch tries them. `resolve` tries them in that order: first as torch does (every argument given, types are
subtypes), then leniently, for text that torch no longer prints (`Dynamic` operands, arguments as attributes, trailing defaults left out,
unqualified kinds).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import irtool.ir.types as types
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type
from irtool.ir.types import TypeVar as TypeVariable

if TYPE_CHECKING:
    from irtool.ir.attribute import Attribute
    from irtool.ir.graph import Node, Value


class Missing:
    """The class of `MISSING`, which stands for "no default"."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()
DEFAULT_WORDS = {"Mean": 1, "contiguous_format": 0, "preserve_format": 1, "long": 4, "float": 6, "strided": 0}
"""Defaults that the declarations write as words -> the number that the word stands for."""


class AliasInfo:
    """An annotation such as `(a!)`: the alias sets of an argument or result, and whether the operator writes into it."""

    __slots__ = ("sets", "after", "is_write", "on_elements")

    def __init__(self, sets: tuple[str, ...], after: tuple[str, ...], is_write: bool, on_elements: bool) -> None:
        self.sets = sets
        self.after = after
        """Sets after the call: `(a -> *)` puts the value into a container."""
        self.is_write = is_write
        self.on_elements = on_elements
        """Are the elements aliased, not the list (`Tensor(a!)[]`)?"""

    def __repr__(self) -> str:
        after = f" -> {'|'.join(self.after)}" if self.after != self.sets else ""
        return f"({'|'.join(self.sets)}{'!' if self.is_write else ''}{after})"


class Argument:
    """One argument or result of a schema."""

    __slots__ = ("name", "type", "type_text", "fixed_size", "default", "keyword_only", "alias")

    def __init__(self, name: str, type: Type, type_text: str, fixed_size: int, default: object, keyword_only: bool,
                 alias: AliasInfo | None) -> None:
        self.name = name
        self.type = type
        """The type in the IR, where `SymInt`, `ScalarType`, `Layout` and `MemoryFormat` are `int`."""
        self.type_text = type_text
        """The declared type without alias annotation: `SymInt[2]`, `ScalarType?`."""
        self.fixed_size = fixed_size
        """N for `int[N]`, for which one int may stand instead of N; else 0."""
        self.default = default
        self.keyword_only = keyword_only
        self.alias = alias

    @property
    def has_default(self) -> bool:
        """Can the argument be left out?"""
        return self.default is not MISSING

    def __repr__(self) -> str:
        return f"<Argument {self.type_text}{self.alias or ''} {self.name}>"


class Schema:
    """One overload: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`."""

    __slots__ = ("name", "kind", "overload", "arguments", "returns", "is_vararg", "is_varret", "text", "positions")

    def __init__(self, text: str, name: str, arguments: tuple[Argument, ...], returns: tuple[Argument, ...],
                 is_vararg: bool, is_varret: bool) -> None:
        self.text = text
        self.name = name
        self.kind, _, self.overload = name.partition(".")
        self.arguments = arguments
        self.returns = returns
        self.is_vararg = is_vararg
        self.is_varret = is_varret
        self.positions = {argument.name: i for i, argument in enumerate(arguments)}

    @property
    def written_places(self) -> list[int]:
        """The positions of the arguments that the operator writes into."""
        return [place for place, each in enumerate(self.arguments) if each.alias is not None and each.alias.is_write]

    @property
    def is_mutable(self) -> bool:
        """Does the operator write into an argument?"""
        return any(a.alias is not None and a.alias.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Schema {self.text}>"


# ---------------------------------------------------------------- reading declarations
_CONTAINERS = frozenset({"Dict", "Future", "Await", "RRef", "Union", "Optional", "List"})
_AS_INT = {"SymInt": "int", "SymBool": "bool", "SymFloat": "float", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}
_OPENING, _CLOSING = "([{", ")]}"


def parse_schema(text: str) -> Schema:
    """One declaration `aten::name.Overload(Type name=default, *, ...) -> Type`. Raises ValueError for anything else."""
    open_at = text.find("(")
    close_at = _closing(text, open_at) if open_at > 0 else -1
    name, arrow, returned = text[:open_at].strip(), text[close_at + 1:].lstrip()[:2], text[close_at + 1:].lstrip()[2:].strip()
    if open_at <= 0 or close_at < 0 or arrow != "->" or not name or not returned:
        raise ValueError(f"not an operator schema: {text}")
    arguments: list[Argument] = []
    keyword_only = is_vararg = False
    for part in _split(text[open_at + 1:close_at]):
        if part == "*":
            keyword_only = True
        elif part == "...":
            is_vararg = True
        else:
            arguments.append(_argument(part, keyword_only))
    if returned == "...":
        return Schema(text, name, tuple(arguments), (), is_vararg, True)
    parts = _split(returned[1:-1]) if returned[0] == "(" and _closing(returned, 0) == len(returned) - 1 else [returned]
    returns = tuple(_result(part) for part in parts)
    return Schema(text, name, tuple(arguments), returns, is_vararg, False)


def _closing(text: str, at: int) -> int:
    """The position of the bracket that closes the one at `at`; strings are skipped; -1 if there is none."""
    depth = 0
    while at < len(text):
        c = text[at]
        if c == '"':
            at = _string_end(text, at)
        elif c in _OPENING:
            depth += 1
        elif c in _CLOSING:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1


def _string_end(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at


def _split(text: str) -> list[str]:
    parts, start, at, depth = [], 0, 0, 0
    while at < len(text):
        c = text[at]
        if c == '"':
            at = _string_end(text, at)
        elif c in _OPENING:
            depth += 1
        elif c in _CLOSING:
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _argument(part: str, keyword_only: bool) -> Argument:
    head, equals, default_text = part, "", ""
    depth = 0
    for i, c in enumerate(part):
        depth += (c in _OPENING) - (c in _CLOSING)
        if c == "=" and depth == 0:
            head, equals, default_text = part[:i].strip(), "=", part[i + 1:].strip()
            break
    cut, depth = -1, 0
    for i, c in enumerate(head):
        depth += (c in _OPENING) - (c in _CLOSING)
        if c == " " and depth == 0:
            cut = i
    if cut < 0:
        raise ValueError(f"not a schema argument: {part}")
    type, text, size, alias = _declared_type(head[:cut].strip())
    default = _default(default_text) if equals else MISSING
    return Argument(head[cut + 1:], type, text, size, default, keyword_only, alias)


def _result(part: str) -> Argument:
    cut, depth = -1, 0
    for i, c in enumerate(part):
        depth += (c in _OPENING) - (c in _CLOSING)
        if c == " " and depth == 0:
            cut = i
    name = part[cut + 1:] if cut > 0 else ""
    type, text, size, alias = _declared_type(part[:cut].strip() if cut > 0 else part)
    return Argument(name, type, text, size, MISSING, False, alias)


def _declared_type(text: str) -> tuple[Type, str, int, AliasInfo | None]:
    """(type, text without annotation, N of `int[N]`, annotation) of a declared type such as `Tensor(a!)[]` or `t[](a -> *)`."""
    alias = None
    at = text.find("(", 1)
    while at > 0:
        end = _closing(text, at)
        word_at = at
        while word_at > 0 and (text[word_at - 1].isalnum() or text[word_at - 1] in "_."):
            word_at -= 1
        if text[word_at:at] not in _CONTAINERS:
            alias = _alias(text[at + 1:end], "[" in text[end:])
            text = text[:at] + text[end + 1:]
            break
        at = text.find("(", end)
    size, plain = 0, text
    at = text.find("[")
    while at >= 0:
        end = text.find("]", at)
        if text[at + 1:end].isdecimal():
            size = int(text[at + 1:end])
            plain = plain.replace(text[at:end + 1], "[]")
        at = text.find("[", end)
    return _ir_type(plain), text, size, alias


def _ir_type(text: str) -> Type:
    word = text.rstrip("[]?")
    return types.parse_type(_AS_INT.get(word, word) + text[len(word):])


def _alias(text: str, on_elements: bool) -> AliasInfo:
    before, arrow, after = text.partition("->")
    before = before.strip()
    sets = tuple(word.strip() for word in before.rstrip("!").split("|"))
    return AliasInfo(sets, tuple(word.strip() for word in after.split("|")) if arrow else sets, before.endswith("!"), on_elements)


_WORDS: dict[str, object] = {"None": None, "True": True, "False": False}
_ESCAPES = {"n": "\n", "t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a", "b": "\b"}


def _default(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == "[":
        return [_default(part) for part in _split(text[1:-1])]
    if text[0] == '"':
        out, at = [], 1
        while at < len(text) - 1:
            if text[at] == "\\":
                at += 1
                out.append(_ESCAPES.get(text[at], text[at]))
            else:
                out.append(text[at])
            at += 1
        return "".join(out)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text         # a word: `Mean`, `contiguous_format`


# ---------------------------------------------------------------- the declarations by kind
_text = ""
_by_kind: dict[str, tuple[Schema, ...]] = {}
_own: dict[str, tuple[Schema, ...]] = {}
_caches: list[Callable[[], None]] = []

Cache = TypeVar("Cache")


def forgets_kinds(cache: Cache) -> Cache:
    """A decorator for a cache of facts about kinds (a dict, or a function under `functools.cache`): the cache is emptied when kinds are
    declared."""
    empty: Callable[[], None] = getattr(cache, "cache_clear", None) or cache.clear      # type: ignore[attr-defined]
    _caches.append(empty)
    return cache


def declare(*declared: Schema) -> None:
    """Declare overloads of kinds that torch does not declare. They replace earlier declarations of the kind."""
    for kind in {schema.kind for schema in declared}:
        _own[kind] = tuple([schema for schema in declared if schema.kind == kind])
    for empty in _caches:
        empty()


def withdraw(kind: str) -> None:
    """The inverse of `declare`."""
    _own.pop(kind, None)
    for empty in _caches:
        empty()


def _declarations() -> str:
    global _text
    if not _text:
        path = __file__.rpartition("schema.py")[0] + "schemas.txt"
        with open(path, encoding="utf-8") as file:
            _text = "\n" + file.read()
    return _text


def schemas(kind: str) -> tuple[Schema, ...]:
    """The overloads of a kind (`aten::add`), in the order in which torch tries them; empty for a kind that is not declared."""
    overloads = _by_kind.get(kind)
    if overloads is None:
        overloads = _own.get(kind, ())
        text = _declarations()
        at = text.find(f"\n{kind}\n") if "\n" not in kind else -1
        if at >= 0:
            start = at + len(kind) + 2
            lines = []
            while text.startswith(" ", start):
                end = text.index("\n", start)
                lines.append(text[start + 1:end])
                start = end + 1
            overloads = tuple(parse_schema(f"{kind}{line}" if line.startswith("(") else f"{kind}.{line}") for line in lines)
        if len(_by_kind) > 20_000:      # made-up kinds of hostile input would fill the cache
            _by_kind.clear()
        _by_kind[kind] = overloads
        if not overloads and "::" in kind and not kind.startswith(("aten::", "prim::")):
            from irtool.ir.extensions import import_operator

            import_operator(kind)
            return _by_kind.setdefault(kind, _own.get(kind, ()))
    return overloads


forgets_kinds(_by_kind)


def schema_named(name: str) -> Schema | None:
    """The schema called `aten::add.Tensor` (or `aten::relu`); None if there is none."""
    kind = name.partition(".")[0]
    return next((schema for schema in schemas(kind) if schema.name == name), None)


def declared_kinds() -> list[str]:
    """All kinds that torch declares, sorted, then those that others declare."""
    return [*[line for line in _declarations().split("\n") if line and line[0] not in " #"], *_own]


def qualified(kind: str) -> str:
    """The qualified kind: `aten::mul` for `mul` of a 2017 text; other kinds are unchanged."""
    return kind if "::" in kind or kind[:1] == "^" else "aten::" + kind


# ---------------------------------------------------------------- which overload
_TENSOR_KEY = types.TENSOR.key
_LENIENT = {        # types that a value may stand for in old texts, and by torch's implicit conversions
    "int": ("float", "complex", "Scalar", "bool"),
    "bool": ("int", "float", "Scalar"),
    "float": ("complex", "Scalar"),
    "Scalar": ("int", "float", "complex", "bool"),
}
_resolved: dict[tuple[object, ...], Schema | None] = {}
forgets_kinds(_resolved)
_accepts: dict[tuple[Type, Type, bool], bool] = {}


def schema_of(node: Node) -> Schema | None:
    """The overload that a node means, chosen by operand types and attribute names; None if no declaration fits."""
    key = (node.kind, len(node.outputs), *[value.type for value in node.inputs], *node.attributes)
    try:
        return _resolved[key]
    except KeyError:
        pass
    if len(_resolved) > 50_000:
        _resolved.clear()
    schema = _resolved[key] = resolve(node.kind, [value.type for value in node.inputs], list(node.attributes), len(node.outputs))
    return schema


def resolve(kind: str, operands: Sequence[Type], attributes: Sequence[str] = (), results: int = -1) -> Schema | None:
    """The first overload that takes these operands in order and these attributes by name; exact matches are preferred to lenient ones.

    Attributes that are arguments of no overload are ignored (`warn_id=0`). If operand types do not decide, the number of results does (-1:
    unknown).
    """
    candidates = schemas(qualified(kind))
    if kind[:1] == "^":     # leading arguments are written as scalars, `^Scale(2)(%x)`
        return next((schema for schema in candidates if len(operands) <= len(schema.arguments) and _fits(
            schema, operands, len(schema.arguments) - len(operands))), None)
    attributes = [name for name in attributes if any(name in schema.positions for schema in candidates)]
    if not attributes:
        for schema in candidates:
            if len(operands) == len(schema.arguments) or schema.is_vararg and len(operands) >= len(schema.arguments):
                if _fits(schema, operands) and (results < 0 or schema.is_varret or len(schema.returns) == results or results == 0):
                    return schema
    fitting = [schema for lenient in (False, True) for schema in candidates if _fits_partly(schema, operands, attributes, lenient)]
    if not fitting:
        return None
    chosen = [schema for schema in fitting if results < 0 or len(schema.returns) == results] or fitting
    return chosen[0] if attributes else _of_numbers(chosen, operands)


def _of_numbers(fitting: Sequence[Schema], operands: Sequence[Type]) -> Schema:
    """The first overload; if a tensor stands for the bool that it takes first, the overload for the tensor's numbers.

    Tensors of unknown dtype are floats, as where torch compiles `torch.tensor(x)` of a tensor.
    """
    taken = fitting[0].arguments
    if not operands or not taken or taken[0].type is not types.BOOL or not is_tensor_like(operands[0]):
        return fitting[0]
    name = (operands[0].dtype if isinstance(operands[0], types.TensorType) else None) or "float"
    number = next((word for word in ("bool", "float", "complex") if word in name), "int")
    return next((each for each in fitting if each.arguments[0].type.key == number), fitting[0])


def _fits(schema: Schema, operands: Sequence[Type], first: int = 0) -> bool:
    variables: dict[str, Type] = {}
    return all(takes(argument.type, operand, variables) for argument, operand in zip(schema.arguments[first:], operands, strict=False))


def _fits_partly(schema: Schema, operands: Sequence[Type], attributes: Sequence[str], lenient: bool) -> bool:
    if schema.is_vararg:
        return not attributes and len(operands) >= len(schema.arguments)
    if any(name not in schema.positions for name in attributes):
        return False
    free = [argument for argument in schema.arguments if argument.name not in attributes]
    if len(operands) > len(free):
        return _spread(schema, free, operands)
    if any(not argument.has_default for argument in free[len(operands):]):
        return _spread(schema, free, operands)
    variables: dict[str, Type] = {}
    return all(takes(argument.type, operand, variables) or lenient and takes_leniently(argument, operand)
               for argument, operand in zip(free, operands, strict=False)) or _spread(schema, free, operands)


def _spread(schema: Schema, free: Sequence[Argument], operands: Sequence[Type]) -> bool:
    """The schema's arguments for text from before mid-2018, where a `Tensor[]` was written as its elements, at least one:
    `aten::cat[dim=1](%a, %b)`."""
    lists = [argument for argument in free if _is_tensor_list(argument.type)]
    others = [argument for argument in free if not _is_tensor_list(argument.type) and not argument.has_default]
    return len(lists) == 1 and len(others) < len(operands) and all(is_tensor_like(operand) for operand in operands)


def _is_tensor_list(type: Type) -> bool:
    if not isinstance(type, ListType):
        return False
    element = type.element
    return (element.element if isinstance(element, OptionalType) else element).key == _TENSOR_KEY


def is_tensor_like(type: Type) -> bool:
    """Is the type a tensor type, with or without known facts, or an undefined tensor's?"""
    return type.key == _TENSOR_KEY or isinstance(type, types.TensorType)


def takes(formal: Type, actual: Type, variables: dict[str, Type]) -> bool:
    """May a value of type `actual` be passed where `formal` is declared? Binds type variables."""
    if formal is actual:
        return True
    known = _accepts.get((formal, actual, False))
    if known is None:
        if has_variables(formal):
            return _bind(formal, actual, variables)
        if len(_accepts) > 50_000:
            _accepts.clear()
        known = _accepts[formal, actual, False] = types.is_subtype(actual, formal)
    return known


def has_variables(type: Type) -> bool:
    """Does the type contain a variable, which the operands' types determine?"""
    return isinstance(type, TypeVariable) or any(has_variables(element) for element in type.elements)


def _bind(formal: Type, actual: Type, variables: dict[str, Type]) -> bool:
    if isinstance(formal, TypeVariable):
        bound = variables.setdefault(formal.name, actual)
        if types.is_subtype(actual, bound):
            return True
        joined = types.join(bound, actual)
        if joined is None:
            return False
        variables[formal.name] = joined
        return True
    if isinstance(formal, OptionalType):
        if actual.key == "None":
            return True
        return _bind(formal.element, actual.element if isinstance(actual, OptionalType) else actual, variables)
    if formal.elements:
        return (type(formal) is type(actual) and len(formal.elements) == len(actual.elements)
                and all(_bind(x, y, variables) for x, y in zip(formal.elements, actual.elements, strict=True)))
    return types.is_subtype(actual, formal)


def takes_leniently(argument: Argument, actual: Type) -> bool:
    formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    wanted, key = formal.key, actual.key
    if is_tensor_like(actual):      # `Dynamic` was any tensor, and numbers were tensors until mid-2018
        return not isinstance(formal, (DictType, TupleType)) and wanted not in ("str", "Device")
    if is_tensor_like(formal):
        return key in _NUMBERS
    if argument.fixed_size and isinstance(formal, ListType) and key in _NUMBERS and (key != _BOOL_KEY or formal.element.key == _BOOL_KEY):
        return True
    if isinstance(formal, ListType) and isinstance(actual, ListType):
        return formal.element.key in _LENIENT.get(str(actual.element.key), ()) or key == "Any[]" or is_tensor_like(actual.element)
    return wanted in _LENIENT.get(str(key), ())


_BOOL_KEY = types.BOOL.key
_NUMBERS = tuple(type.key for type in (types.INT, types.FLOAT, types.BOOL, types.COMPLEX, types.NUMBER))


# ---------------------------------------------------------------- arguments by name
class Literal:
    """An argument that is no operand: an attribute, or the schema's default."""

    __slots__ = ("value", "attribute")

    def __init__(self, value: object, attribute: Attribute | None = None) -> None:
        self.value = value
        """The Python value, converted to the argument's type."""
        self.attribute = attribute
        """The attribute that the value is from; None for a default."""

    def __repr__(self) -> str:
        return f"Literal({self.value!r})"


def node_arguments(node: Node, schema: Schema | None = None) -> list[Value | Literal | list[Value]]:
    """The value of each argument of a node's schema, in order; extra operands of a `...` schema follow.

    A Value for an operand; a Literal for an attribute or a default; a list of Values for a `Tensor[]` written as several operands. Raises
    ValueError if no schema fits the node.
    """
    schema = schema or schema_of(node)
    if schema is None:
        raise ValueError(f"no schema of {node.kind} fits")
    if node.kind[:1] == "^":
        return [*_scalars(node, schema), *node.inputs]
    if not node.attributes and len(node.inputs) >= len(schema.arguments):
        if len(node.inputs) == len(schema.arguments) or schema.is_vararg:
            return list(node.inputs)
    free = [argument for argument in schema.arguments if argument.name not in node.attributes]
    surplus = _surplus(free, node.inputs)
    out: list[Value | Literal | list[Value]] = []
    at = 0
    for argument in schema.arguments:
        attribute = node.attributes.get(argument.name)
        if attribute is not None:
            out.append(Literal(attribute.as_type(argument.type), attribute))
        elif surplus >= 0 and _is_tensor_list(argument.type):
            out.append(list(node.inputs[at:at + surplus]))
            at += surplus
        elif at < len(node.inputs):
            out.append(node.inputs[at])
            at += 1
        elif argument.has_default:
            out.append(Literal(argument.default))
        else:
            raise ValueError(f"{node.kind}: no value for argument '{argument.name}'")
    return out


def _scalars(node: Node, schema: Schema) -> list[Literal]:
    """The scalars of a Python operator. Raises ValueError if their number is not that of the arguments without an operand."""
    from irtool.ir.attribute import Attribute
    from irtool.ir.scalars import split_scalars

    attribute = node.attributes.get("scalars")
    words = split_scalars(attribute.text, ",") if attribute is not None and attribute.text.strip() else []
    arguments = schema.arguments[:len(schema.arguments) - len(node.inputs)]
    if len(words) != len(arguments):
        raise ValueError(f"{node.kind} has {len(words)} scalars, {schema.text} wants {len(arguments)}")
    values = [Attribute(word.strip()).as_type(argument.type) for word, argument in zip(words, arguments, strict=True)]
    return [Literal(value, attribute) for value in values]


def _surplus(free: Sequence[Argument], operands: Sequence[Value]) -> int:
    """How many operands are the elements of a `Tensor[]` argument; -1 if the list is one operand."""
    lists = [i for i, argument in enumerate(free) if _is_tensor_list(argument.type)]
    if len(lists) != 1:
        return -1
    if lists[0] < len(operands) and isinstance(operands[lists[0]].type, ListType):
        return -1
    required = [argument for i, argument in enumerate(free) if i != lists[0] and not argument.has_default]
    return max(len(operands) - len(required), 0)


def node_argument(node: Node, name: str) -> Value | Literal | list[Value] | None:
    """The value of the argument called `name` (see `node_arguments`). None if no schema fits, or has no such argument."""
    schema = schema_of(node)
    if schema is None or name not in schema.positions:
        return None
    return node_arguments(node, schema)[schema.positions[name]]


# ---------------------------------------------------------------- for builders
def match_types(schema: Schema, operands: Sequence[Type | None]) -> dict[str, Type]:
    """The types that the schema's type variables stand for, from the types of operands (None: unknown)."""
    variables: dict[str, Type] = {}
    for argument, operand in zip(schema.arguments, operands, strict=False):
        if operand is not None and has_variables(argument.type):
            _bind(argument.type, operand, variables)
    return variables


def substitute(type: Type, variables: dict[str, Type]) -> Type:
    """The type with its variables replaced; the same object if it has none."""
    if isinstance(type, TypeVariable):
        return variables.get(type.name, type)
    if not has_variables(type):
        return type
    parts = [substitute(element, variables) for element in type.elements]
    if isinstance(type, ListType):
        return types.list_of(parts[0])
    if isinstance(type, OptionalType):
        return types.optional(parts[0])
    if isinstance(type, DictType):
        return types.dict_of(parts[0], parts[1])
    return types.tuple_of(parts) if isinstance(type, TupleType) else types.parse_type(f"{type.text.partition('(')[0]}({parts[0].text})")
