"""The kinds of types. Objects are made by the parser only, one per distinct text: compare by identity for "same text",
by `key` for "same type" (`Dynamic`, `Tensor` and `UNKNOWN_TYPE` have one key)."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DTYPES: dict[str, str] = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "Float": "float32", "Double": "float64", "Bool": "bool", "BFloat16": "bfloat16",
    "ComplexHalf": "complex32", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4",
    "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Bits1x8": "bits1x8", "Bits2x4": "bits2x4", "Bits4x2": "bits4x2", "Bits8": "bits8", "Bits16": "bits16",
    "Float8_e5m2": "float8_e5m2", "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2fnuz": "float8_e5m2fnuz",
    "Float8_e4m3fnuz": "float8_e4m3fnuz", "Float8_e8m0fnu": "float8_e8m0fnu", "Float4_e2m1fn_x2": "float4_e2m1fn_x2",
    **{f"UInt{bits}": f"uint{bits}" for bits in range(1, 8)}, **{f"Int{bits}": f"int{bits}" for bits in range(1, 8)},
}
"""Scalar type word of the text -> torch's dtype name."""

DTYPE_WORDS: dict[str, str] = {name: word for word, name in DTYPES.items()}
"""torch's dtype name -> scalar type word."""


class Type:
    """A type. `text` is its exact spelling; types are interned by text, so `is` compares spellings."""

    __slots__ = ("text", "_key")
    text: str
    _key: str

    @property
    def key(self) -> str:
        """A text that all spellings of one type share, and no other type."""
        if not self._key:
            self._key = self._make_key()
        return self._key

    @property
    def elements(self) -> tuple[Type, ...]:
        """The types of which the type is made; empty for a leaf."""
        return ()

    def _make_key(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}>"

    def __copy__(self) -> Type:
        return self

    def __deepcopy__(self, memo: object) -> Type:
        return self


class SimpleType(Type):
    """A type that is one word. `name` is today's word: `str` for `string`. (But `None` for `NoneType`.)"""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _make_key(self) -> str:
        return SAME_IN_GRAPHS.get(self.name, self.name)


SAME_IN_GRAPHS = {"ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int", "SymFloat": "float",
                  "SymBool": "bool", "Dimname": "str"}
"""Words that only signatures of operators distinguish: the values in a graph are plain numbers."""


class TensorType(Type):
    """A tensor with the known facts about it; None stands for an unknown fact.

    `sizes` has None for an unknown size; `strides` are set only if all are known. `marks` says per dimension whether the text has `!` (the
    stride is not the contiguous one: dialects before 2019-08); it is None if no dimension has.
    """

    __slots__ = ("dtype", "sizes", "strides", "requires_grad", "device", "undefined", "marks", "shape")

    def __init__(self, dtype: str | None = None, sizes: tuple[int | None, ...] | None = None,
                 strides: tuple[int, ...] | None = None, requires_grad: bool | None = None, device: str | None = None,
                 undefined: bool | None = None, marks: tuple[bool, ...] | None = None) -> None:
        self.dtype = dtype
        self.sizes = sizes
        self.strides = strides
        self.requires_grad = requires_grad
        self.device = device
        self.undefined = undefined
        self.marks = marks
        self.shape: tuple[int, ...] | None = None
        """The sizes if all of them are known, else None."""
        if sizes is not None:
            known = tuple([size for size in sizes if size is not None])
            self.shape = known if len(known) == len(sizes) else None

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if unknown."""
        return None if self.sizes is None else len(self.sizes)

    def _make_key(self) -> str:
        return tensor_text(self.dtype, self.sizes, self.strides, self.requires_grad, self.device, self.undefined, self.marks)


def tensor_text(dtype: str | None, sizes: tuple[int | None, ...] | None, strides: tuple[int, ...] | None,
                requires_grad: bool | None, device: str | None, undefined: bool | None = None,
                marks: tuple[bool, ...] | None = None) -> str:
    """A tensor type in today's spelling, plus `!` marks, which have no spelling today."""
    word = "Tensor" if dtype is None else DTYPE_WORDS.get(dtype, dtype)
    parts: list[str] = []
    if sizes is not None:
        for i, size in enumerate(sizes):
            parts.append(("*" if size is None else str(size)) + ("!" if marks is not None and marks[i] else ""))
        if strides:
            parts.append(f"strides=[{', '.join(map(str, strides))}]")
    elif dtype is not None:
        word += "Tensor"
    if requires_grad is not None:
        parts.append(f"requires_grad={int(requires_grad)}")
    if device is not None:
        parts.append(f"device={device}")
    text = f"{word}({', '.join(parts)})" if parts or sizes is not None else word
    return text + "[AutogradZero]" if undefined else text


def contiguous_strides(sizes: Sequence[int], itemsize: int = 1) -> tuple[int, ...]:
    """Strides of a dense row-major array in elements, or in bytes given the size of an element. A size of 0 counts as 1."""
    strides: list[int] = []
    step = itemsize
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class ListType(Type):
    """`T[]`. `size` is the N of `int[N]` in an operator's signature (there a single value may stand for the list)."""

    __slots__ = ("element", "size")

    def __init__(self, element: Type, size: int | None = None) -> None:
        self.element = element
        self.size = size

    @property
    def elements(self) -> tuple[Type, ...]:
        return (self.element,)

    def _make_key(self) -> str:
        return self.element.key + "[]"


class OptionalType(Type):
    """`T?`: a T or None."""

    __slots__ = ("element",)

    def __init__(self, element: Type) -> None:
        self.element = element

    @property
    def elements(self) -> tuple[Type, ...]:
        return (self.element,)

    def _make_key(self) -> str:
        return self.element.key if isinstance(self.element, OptionalType) else self.element.key + "?"


class TupleType(Type):
    """`(A, B)`."""

    __slots__ = ("_elements",)

    def __init__(self, elements: tuple[Type, ...]) -> None:
        self._elements = elements

    @property
    def elements(self) -> tuple[Type, ...]:
        return self._elements

    def _make_key(self) -> str:
        return "(" + ", ".join(t.key for t in self._elements) + ")"


class NamedTupleType(TupleType):
    """`NamedTuple(a : int, b : Tensor)`."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...], elements: tuple[Type, ...]) -> None:
        super().__init__(elements)
        self.names = names

    def _make_key(self) -> str:
        return "NamedTuple(" + ", ".join(f"{n} : {t.key}" for n, t in zip(self.names, self._elements, strict=True)) + ")"


class DictType(Type):
    """`Dict(K, V)`; `value` is the type of the values."""

    __slots__ = ("key_type", "value_type")

    def __init__(self, key_type: Type, value_type: Type) -> None:
        self.key_type = key_type
        self.value_type = value_type

    @property
    def elements(self) -> tuple[Type, ...]:
        return self.key_type, self.value_type

    def _make_key(self) -> str:
        return f"Dict({self.key_type.key}, {self.value_type.key})"


class UnionType(Type):
    """`Union(int, str)`."""

    __slots__ = ("_elements",)

    def __init__(self, elements: tuple[Type, ...]) -> None:
        self._elements = elements

    @property
    def elements(self) -> tuple[Type, ...]:
        return self._elements

    def _make_key(self) -> str:
        return "Union(" + ", ".join(sorted(t.key for t in self._elements)) + ")"


class WrapperType(Type):
    """One type wrapped in a word: `word` is `Future`, `RRef` or `Await`."""

    __slots__ = ("element",)
    word = ""

    def __init__(self, element: Type) -> None:
        self.element = element

    @property
    def elements(self) -> tuple[Type, ...]:
        return (self.element,)

    def _make_key(self) -> str:
        return f"{self.word}({self.element.key})"


class FutureType(WrapperType):
    """`Future[T]`, or `Future(T)` as torch reads it."""

    __slots__ = ()
    word = "Future"


class RRefType(WrapperType):
    """`RRef[T]`, or `RRef(T)` as torch reads it."""

    __slots__ = ()
    word = "RRef"


class AwaitType(WrapperType):
    """`Await(T)`."""

    __slots__ = ()
    word = "Await"


class ClassType(Type):
    """A class, or any other word that is no known type: `__torch__.a.b.___torch_mangle_4.Foo`, `UserType<Foo>`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _make_key(self) -> str:
        return self.name


class InterfaceType(Type):
    """`InterfaceType<Foo>`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class EnumType(Type):
    """`Enum<__torch__.Color>`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class TypeVar(Type):
    """A lower-case word that is no type: `t` in an operator's signature."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
