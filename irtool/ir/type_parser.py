"""Type text -> Type: every type PyTorch ever printed, one object per distinct text."""
from __future__ import annotations

from copyreg import pickle

from irtool.ir.errors import Error
from irtool.ir.type_model import (
    DTYPES,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    NamedTupleType,
    OptionalType,
    RRefType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from irtool.ir.dialect import Dialect

MAX_DEPTH = 100
"""Deeper nesting is refused, since the parser is recursive. Real types are far from it."""

MAX_DIGITS = 4000
"""Longer numbers are refused (Python itself refuses to read more than 4300 digits)."""

SIMPLE_NAMES: dict[str, str] = {
    **{word: word for word in (
        "int", "float", "bool", "complex", "str", "Scalar", "None", "Device", "Generator", "Stream", "Storage", "Function", "Any",
        "Capsule", "PyObject", "QScheme", "SymInt", "SymFloat", "SymBool", "Layout", "ScalarType", "MemoryFormat", "Dimname",
        "Quantizer", "Handle", "Multi", "Tuple", "World", "list", "tuple", "AnyClassType", "AnyEnumType")},
    "string": "str", "number": "Scalar", "Number": "Scalar", "NoneType": "None", "DeviceObjType": "Device", "AnyType": "Any",
    "AnyListType": "list", "AnyTupleType": "tuple",
}
"""One-word types: spelling -> name."""

TENSOR_WORDS: dict[str, bool | None] = {"Tensor": None, "Dynamic": None, "UNKNOWN_TYPE": None, "Undefined": True,
                                        "UndefinedTensor": True, "AutogradZeroTensor": True}
"""Words for a tensor without dtype -> is it known to be undefined?"""


class TypeSyntaxError(Error):
    """Text that is no type; `offset` is the position of the error in it."""

    code = "E0106"

    def __init__(self, message: str, offset: int, code: str = "") -> None:
        super().__init__(message, code=code)
        self.offset = offset


_interned: dict[str, Type] = {}
_interned_bare: dict[str, Type] = {}      # dialect A1, where `()` is a tensor of rank 0 and not a tuple


def parse_type(text: str, dialect: Dialect | None = None) -> Type:
    """The type that `text` spells. The same text gives the same object. Raises TypeSyntaxError."""
    bare = dialect is not None and dialect.bare_sizes
    table = _interned_bare if bare else _interned
    parsed = table.get(text)
    if parsed is None:
        parser = _TypeParser(text, 0, bare)
        parsed = parser.type(0)
        parser.blanks()
        if parser.pos != len(text):
            raise TypeSyntaxError(f"unexpected '{text[parser.pos]}' after type '{_short(parsed.text)}'", parser.pos)
        parsed = _intern(parsed, text, table)
    return parsed


def _pickled(type: Type) -> tuple[Callable[[str], Type], tuple[str]]:
    return parse_type, (type.text,)


for _kind in (AwaitType, ClassType, DictType, EnumType, FutureType, InterfaceType, ListType, NamedTupleType, OptionalType, RRefType,
              SimpleType, TensorType, TupleType, TypeVar, UnionType):
    pickle(_kind, _pickled)


def read_type(text: str, start: int, dialect: Dialect | None = None) -> tuple[Type, int]:
    """The longest type that begins at `text[start]`, and the position of its end. Raises TypeSyntaxError (its offset counts from the
    start of `text`)."""
    parser = _TypeParser(text, start, dialect is not None and dialect.bare_sizes)
    parsed = parser.type(0)
    return parsed, parser.pos


def _intern(type: Type, text: str, table: dict[str, Type]) -> Type:
    if type.text != text:       # blanks around it, or a tuple's parenthesis: the same type under another text
        table.setdefault(type.text, type)
        twin = _TypeParser(text, 0, table is _interned_bare).type(0, intern=False)
        twin.text = text
        type = twin
    return table.setdefault(text, type)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class _TypeParser:
    """A parser with a position. Each method reads one thing and moves `pos` behind it."""

    __slots__ = ("text", "pos", "bare")

    def __init__(self, text: str, pos: int, bare: bool) -> None:
        self.text = text
        self.pos = pos
        self.bare = bare

    # -- characters
    def blanks(self) -> None:
        text, pos = self.text, self.pos
        while pos < len(text) and text[pos] in " \t\r\n":
            pos += 1
        self.pos = pos

    def fail(self, message: str, code: str = "") -> TypeSyntaxError:
        return TypeSyntaxError(message, self.pos, code)

    def next_is(self, token: str) -> bool:
        """Skip blanks; read `token` if it follows. Returns whether it did."""
        self.blanks()
        if self.text.startswith(token, self.pos):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.next_is(token):
            actual = f"'{self.text[self.pos]}'" if self.pos < len(self.text) else "the end"
            raise self.fail(f"expected '{token}' in type, found {actual}")

    def word(self) -> str:
        """A name with dots: letters, digits, `_` and `.`."""
        text, start = self.text, self.pos
        pos = start
        while pos < len(text) and (text[pos].isalnum() or text[pos] in "_."):
            pos += 1
        self.pos = pos
        return text[start:pos]

    def integer(self) -> int:
        """An integer, possibly negative."""
        self.blanks()
        text, start = self.text, self.pos
        pos = start + text.startswith("-", start)
        digits = pos
        while pos < len(text) and text[pos] in "0123456789":
            pos += 1
        if pos == digits:
            raise self.fail("expected a number in type")
        if pos - digits > MAX_DIGITS:
            raise self.fail(f"number of {pos - digits} digits in type")
        number = int(text[start:pos])
        if not -1 << 63 <= number < 1 << 63:
            raise self.fail("a number of more than 64 bits in type")
        self.pos = pos
        return number

    # -- types
    def type(self, depth: int, intern: bool = True) -> Type:
        """A type with its suffixes `[]`, `?`, `[N]`, `[AutogradZero]`."""
        if depth > MAX_DEPTH:
            raise self.fail(f"type is nested deeper than {MAX_DEPTH}", "E0108")
        self.blanks()
        start = self.pos
        parsed = self.finish(self.base(depth), start, intern)
        text, levels = self.text, depth
        while self.pos < len(text):
            if text[self.pos] == "?":
                self.pos += 1
                parsed = self.finish(OptionalType(parsed), start, intern)
            elif text[self.pos] == "[":
                parsed = self.finish(self.bracket(parsed), start, intern)
            else:
                break
            levels += 1
            if levels > MAX_DEPTH:
                raise self.fail(f"type is nested deeper than {MAX_DEPTH}", "E0108")
        return parsed

    def finish(self, type: Type, start: int, intern: bool) -> Type:
        """Give a new type its text; returns the type that already has this text, if there is one."""
        text = self.text[start:self.pos]
        type.text = text
        type._key = ""
        if not intern:
            return type
        return (_interned_bare if self.bare else _interned).setdefault(text, type)

    def bracket(self, element: Type) -> Type:
        """A suffix `[...]` of a type."""
        self.pos += 1
        if self.next_is("]"):
            return ListType(element)
        for word in ("AutogradZero]", "Undefined]"):
            if self.next_is(word):
                if not isinstance(element, TensorType):
                    raise self.fail(f"'[{word}' follows a type that is no tensor")
                return TensorType(element.dtype, element.sizes, element.strides, element.requires_grad, element.device, True, element.marks)
        size = self.integer()
        self.expect("]")
        return ListType(element, size)

    def base(self, depth: int) -> Type:
        text = self.text
        if text.startswith("(", self.pos):
            return self.parenthesis(depth)
        start = self.pos
        word = self.word()
        follows = text[self.pos] if self.pos < len(text) else ""
        if not word or word[0] in "0123456789." or (word[-1] == "." and follows != "<"):
            self.pos = start
            raise self.fail(f"expected a type, found '{text[start]}'" if start < len(text) else "expected a type, found the end")
        if follows == "(":
            parsed = self.called(word, depth)
        elif follows == "[":
            parsed = self.subscripted(word, depth)
        elif follows == "<":
            parsed = self.angled(word)
        else:
            parsed = None
        if parsed is None:
            known = misspelt(word)
            if known:
                raise TypeSyntaxError(f"unknown type '{word}' (did you mean '{known}'?)", start)
            return plain_type(word)
        return parsed

    def parenthesis(self, depth: int) -> Type:
        """`(A, B)`: a tuple; `(2, 3)`: sizes (dialect A1). Only the empty `()` is ambiguous."""
        self.pos += 1
        self.blanks()
        follows = self.text[self.pos:self.pos + 1]
        if follows and follows in "0123456789*" or (self.bare and follows == ")"):
            return self.refinement(None)
        return TupleType(self.type_list(")", depth))

    def type_list(self, close: str, depth: int) -> tuple[Type, ...]:
        """Types up to `close`; the opening has been read."""
        listed: list[Type] = []
        if self.next_is(close):
            return ()
        while True:
            listed.append(self.type(depth + 1))
            if self.next_is(close):
                return tuple(listed)
            self.expect(",")

    def single(self, close: str, word: str, depth: int) -> Type:
        listed = self.type_list(close, depth)
        if len(listed) != 1:
            raise self.fail(f"{word} takes one type, got {len(listed)}")
        return listed[0]

    def called(self, word: str, depth: int) -> Type | None:
        """`word(...)`; None if the parenthesis does not belong to the type."""
        if word in ("Tensor", "ProfiledTensor") and self.text.startswith("(dtype = ", self.pos):
            return self.profiled()
        if word in DTYPES or word in TENSOR_WORDS or (word.endswith("Tensor") and word[:-6] in DTYPES):
            self.pos += 1
            return self.refinement(word)
        if word == "NamedTuple":
            self.pos += 1
            return self.named_tuple(depth)
        if word == "Union":
            self.pos += 1
            return UnionType(self.type_list(")", depth))
        if word == "Dict":
            self.pos += 1
            return self.dictionary(")", depth)
        maker = WRAPPERS.get(word)
        if maker is not None:
            self.pos += 1
            return maker(self.single(")", word, depth))
        return None

    def subscripted(self, word: str, depth: int) -> Type | None:
        """`word[...]` in Python's spelling; None if the bracket is a suffix."""
        if word not in PYTHON_GENERICS or self.text.startswith("[]", self.pos):
            return None
        self.pos += 1
        if word == "Dict":
            return self.dictionary("]", depth)
        if word == "Tuple":
            if self.next_is("()]"):
                return TupleType(())
            return TupleType(self.type_list("]", depth))
        if word == "Union":
            return UnionType(self.type_list("]", depth))
        element = self.single("]", word, depth)
        if word == "List":
            return ListType(element)
        if word == "Optional":
            return OptionalType(element)
        return WRAPPERS[word](element)

    def dictionary(self, close: str, depth: int) -> Type:
        listed = self.type_list(close, depth)
        if len(listed) != 2:
            raise self.fail(f"Dict takes a key type and a value type, got {len(listed)}")
        return DictType(*listed)

    def named_tuple(self, depth: int) -> Type:
        names: list[str] = []
        types: list[Type] = []
        if self.next_is(")"):
            return NamedTupleType((), ())
        while True:
            self.blanks()
            name = self.word()
            if not name:
                raise self.fail("expected a field name in NamedTuple")
            self.expect(":")
            names.append(name)
            types.append(self.type(depth + 1))
            if self.next_is("="):
                self.skip_default()
            if self.next_is(")"):
                return NamedTupleType(tuple(names), tuple(types))
            self.expect(",")

    def skip_default(self) -> None:
        """Skip the default of a field, which is part of the text only; strings in it have no quotes."""
        open_brackets = 0
        while self.pos < len(self.text):
            char = self.text[self.pos]
            if not open_brackets and char in ",)":
                return
            open_brackets += (char in "([{") - (char in ")]}")
            self.pos += 1

    def angled(self, word: str) -> Type:
        """`Enum<a.b.C>`, `UserType<Foo>`, or a class whose qualified name contains `<locals>`."""
        text, start = self.text, self.pos - len(word)
        while self.pos < len(text) and text[self.pos] == "<":
            close = text.find(">", self.pos)
            if close < 0 or any(c in "(),[]" for c in text[self.pos:close]):
                raise self.fail("expected '>' in type")
            self.pos = close + 1
            if word not in ANGLED:
                self.word()
        whole = text[start:self.pos]
        maker = ANGLED.get(word)
        return maker(whole[len(word) + 1:-1]) if maker is not None else ClassType(whole)

    # -- tensors
    def profiled(self) -> Type:
        """`ProfiledTensor(dtype = Float , shape = (2, 3)`, which torch prints without the last parenthesis."""
        self.pos += len("(dtype = ")
        dtype = DTYPES.get(self.word())
        self.blanks()
        if self.text.startswith("?", self.pos) or self.text.startswith("*", self.pos):
            self.pos += 1
        self.expect(",")
        self.expect("shape = ")
        if not self.next_is("("):
            self.expect("*")
            return TensorType(dtype)
        sizes, _, _, _ = self.dimensions()
        self.expect(")")
        return TensorType(dtype, sizes)

    def refinement(self, word: str | None) -> TensorType:
        """Sizes and options up to `)`, after the opening parenthesis. `word` is None for bare sizes."""
        dtype: str | None = None
        undefined: bool | None = None
        if word is not None:
            undefined = TENSOR_WORDS.get(word)
            dtype = DTYPES.get(word) or (DTYPES.get(word[:-6]) if word.endswith("Tensor") else None)
        sizes: tuple[int | None, ...] | None
        sizes, strides, marks, after_comma = self.dimensions()
        options: dict[str, str] = {}
        places: dict[str, int] = {}
        while not after_comma and not self.next_is(")") or after_comma:
            after_comma = False
            self.blanks()
            start = self.pos
            name = self.word()
            if name not in OPTIONS or name in options:
                self.pos = start
                raise self.fail(f"expected a size or one of {', '.join(OPTIONS)} in tensor type")
            self.expect("=")
            places[name] = start
            if name == "strides":
                strides = self.stride_list()
                options[name] = ""
            else:
                options[name] = self.option()
            if not self.next_is(","):
                self.expect(")")
                break
            after_comma = True
        if not sizes and options and (dtype is None or word in TENSOR_WORDS or (word is not None and word.endswith("Tensor"))):
            sizes = None        # `Tensor(requires_grad=0)`: unranked; `Long(requires_grad=0)`: rank 0
        if strides is not None and (sizes is None or len(strides) != len(sizes)):
            raise TypeSyntaxError(f"{len(strides)} strides for {len(sizes or ())} sizes", places.get("strides", self.pos))
        grad = options.get("requires_grad")
        if grad not in (None, "0", "1"):
            raise TypeSyntaxError(f"requires_grad is 0 or 1, not '{grad}'", places["requires_grad"])
        return TensorType(dtype, sizes, strides, None if grad is None else grad == "1", options.get("device"), undefined, marks)

    def dimensions(self) -> tuple[tuple[int | None, ...], tuple[int, ...] | None, tuple[bool, ...] | None, bool]:
        """Sizes, strides (of `2:3`), `!` marks; and whether the last size is followed by a comma."""
        sizes: list[int | None] = []
        strides: list[int] = []
        marks: list[bool] = []
        after_comma = False
        while True:
            self.blanks()
            char = self.text[self.pos:self.pos + 1]
            if char == "*":
                self.pos += 1
                sizes.append(None)
            elif char and char in "0123456789":
                sizes.append(self.integer())
            elif self.text.startswith("SS(", self.pos):
                self.pos += 3
                size = self.integer()
                self.expect(")")
                sizes.append(size if size >= 0 else None)
            else:
                break
            after_comma = False
            marks.append(self.text.startswith("!", self.pos))
            self.pos += marks[-1]
            if self.text.startswith(":", self.pos):
                self.pos += 1
                if not self.next_is("*"):
                    strides.append(self.integer())
            if not self.next_is(","):
                break
            after_comma = True
        known = tuple(strides) if strides and len(strides) == len(sizes) else None
        return tuple(sizes), known, tuple(marks) if any(marks) else None, after_comma

    def stride_list(self) -> tuple[int, ...] | None:
        self.expect("[")
        strides: list[int] = []
        known = True
        if self.next_is("]"):
            return ()
        while True:
            if self.next_is("*"):
                known = False
            else:
                strides.append(self.integer())
            if self.next_is("]"):
                return tuple(strides) if known else None
            self.expect(",")

    def option(self) -> str:
        """The text of an option's value: a word, possibly with `:`, as in `cuda:0`."""
        self.blanks()
        text, start = self.text, self.pos
        while self.pos < len(text) and (text[self.pos].isalnum() or text[self.pos] in "_:-."):
            self.pos += 1
        if self.pos == start:
            raise self.fail("expected a value in tensor type")
        return text[start:self.pos]


WRAPPERS = {"Future": FutureType, "RRef": RRefType, "Await": AwaitType}
PYTHON_GENERICS = frozenset(("List", "Dict", "Tuple", "Optional", "Union", "Future", "RRef", "Await"))
ANGLED = {"Enum": EnumType, "InterfaceType": InterfaceType, "UserType": ClassType, "ClassType": ClassType}
OPTIONS = ("strides", "requires_grad", "device", "layout")


KNOWN_WORDS = dict.fromkeys((*TENSOR_WORDS, *SIMPLE_NAMES, *DTYPES, *(f"{word}Tensor" for word in DTYPES), *WRAPPERS, *ANGLED,
                             "NamedTuple", "Union", "Dict", "List", "Optional", "ProfiledTensor"))
"""Every word that is a type or begins one, ordered by how likely a misspelt word means it."""


def plain_type(word: str) -> Type:
    """The type of a word that is not followed by brackets or parentheses."""
    name = SIMPLE_NAMES.get(word)
    if name is not None:
        return SimpleType(name)
    if word in TENSOR_WORDS:
        return TensorType(undefined=TENSOR_WORDS[word])
    dtype = DTYPES.get(word) or (DTYPES.get(word[:-6]) if word.endswith("Tensor") else None)
    if dtype is not None:
        return TensorType(dtype)
    if word[0].islower() and "." not in word:
        return TypeVar(word)
    return ClassType(word)


def misspelt(word: str) -> str:
    """The known word that `word` misspells by one edit (a letter more, less, another, or two swapped); None for most words.

    Other words without a dot are classes and type variables of hand-written text.
    """
    if "." in word or len(word) < 3 or word in KNOWN_WORDS:
        return ""
    for known in KNOWN_WORDS:
        if len(known) > 3 and abs(len(known) - len(word)) < 2 and one_slip(word, known):
            return known
    return ""


def one_slip(word: str, known: str) -> bool:
    """Is one text made from the other by inserting, removing or changing a character, or swapping two neighbours?"""
    same = 0
    while same < min(len(word), len(known)) and word[same] == known[same]:
        same += 1
    mine, theirs = word[same:], known[same:]
    return (mine[1:] == theirs or mine == theirs[1:] or mine[1:] == theirs[1:] or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:]))
