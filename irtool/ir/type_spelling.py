"""A type in the words of a dialect. Facts about a tensor that it has no words for are left out: `Float(2, *)` is `Dynamic` in early
2018; kinds of types that came later (`int?`, `(int, Tensor)`) keep their words, for without them a graph would mean something else."""
from __future__ import annotations

from irtool.ir.dialect import Dialect
from irtool.ir.type_model import (
    DTYPE_WORDS,
    ClassType,
    DictType,
    ListType,
    NamedTupleType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    WrapperType,
)
from irtool.ir.type_parser import parse_type


def spell(type: Type, dialect: Dialect) -> Type:
    """The type as `dialect` spells it; the same object when its spelling already is that."""
    return parse_type(_text(type, dialect), dialect)


def _text(type: Type, dialect: Dialect) -> str:
    if isinstance(type, TensorType):
        return _tensor_text(type, dialect)
    if isinstance(type, SimpleType):
        return _simple_text(type, dialect)
    if isinstance(type, ListType):
        return _text(type.element, dialect) + "[]"
    if isinstance(type, OptionalType):
        return _text(type.element, dialect) + "?"
    if isinstance(type, NamedTupleType):
        return "NamedTuple(" + ", ".join(f"{n} : {_text(t, dialect)}" for n, t in zip(type.names, type.elements, strict=True)) + ")"
    if isinstance(type, TupleType):
        if not type.elements and dialect.bare_sizes:
            return "Tuple"      # `()` is a tensor there
        return "(" + ", ".join(_text(t, dialect) for t in type.elements) + ")"
    if isinstance(type, DictType):
        if dialect.python_dicts:
            return python_text(type, dialect)
        return f"Dict({_text(type.key_type, dialect)}, {_text(type.value_type, dialect)})"
    if isinstance(type, UnionType):
        return "Union(" + ", ".join(_text(t, dialect) for t in type.elements) + ")"
    if isinstance(type, WrapperType):
        inner = _text(type.element, dialect)
        return f"{type.word}({inner})" if type.word == "Await" else f"{type.word}[{inner}]"
    if isinstance(type, ClassType):
        return type.name
    return type.text


def _simple_text(type: SimpleType, dialect: Dialect) -> str:
    if type.name == "str":
        return dialect.string_word
    if type.name == "Scalar":
        return dialect.number_word
    if type.name == "None":
        return dialect.none_word
    return type.name


def python_text(type: Type, dialect: Dialect) -> str:
    """The type in Python's words: `List[int]`, as inside `Dict[...]` of 2019 and in `annotate(...)`."""
    if isinstance(type, ListType):
        return f"List[{python_text(type.element, dialect)}]"
    if isinstance(type, OptionalType):
        return f"Optional[{python_text(type.element, dialect)}]"
    if isinstance(type, TupleType) and not isinstance(type, NamedTupleType):
        return "Tuple[" + (", ".join(python_text(t, dialect) for t in type.elements) or "()") + "]"
    if isinstance(type, DictType):
        return f"Dict[{python_text(type.key_type, dialect)}, {python_text(type.value_type, dialect)}]"
    if isinstance(type, SimpleType) and type.name == "str":
        return "str"
    return _text(type, dialect)


def _tensor_text(type: TensorType, dialect: Dialect) -> str:
    if type.undefined and not dialect.undefined_word.startswith("["):
        return dialect.undefined_word or dialect.tensor_word
    text = _refined_text(type, dialect)
    return text + "[AutogradZero]" if type.undefined else text


def _refined_text(type: TensorType, dialect: Dialect) -> str:
    word = dialect.tensor_word if type.dtype is None else DTYPE_WORDS[type.dtype]
    sizes = type.sizes
    if sizes is None:
        if type.dtype is not None:
            word = word + "Tensor" if dialect.unranked_dtypes else dialect.tensor_word
        parts = _options(type, dialect)
        return f"{word}({', '.join(parts)})" if parts else word
    if dialect.partial_shapes != "any" and (type.dtype is None or None in sizes):
        if type.dtype is None or dialect.partial_shapes == "none":
            return dialect.tensor_word
        return f"{word}({', '.join('*' for _ in sizes)})"
    parts = [_size_text(type, i, dialect) for i in range(len(sizes))]
    if dialect.shape_style == "named" and type.strides:
        parts.append(f"strides=[{', '.join(map(str, type.strides))}]")
    return f"{word}({', '.join(parts + _options(type, dialect))})"


def _size_text(type: TensorType, i: int, dialect: Dialect) -> str:
    assert type.sizes is not None
    text = "*" if type.sizes[i] is None else str(type.sizes[i])
    if dialect.shape_style == "colon" and type.strides is not None:
        return f"{text}:{type.strides[i]}"
    if dialect.shape_style == "marks":
        marked = type.marks is not None and type.marks[i]
        if type.strides is not None and type.shape is not None:
            marked = _marks(type.shape, type.strides)[i]
        return text + ("!" if marked else "")
    return text


def _marks(sizes: tuple[int, ...], strides: tuple[int, ...]) -> list[bool]:
    """Which dimensions the dialects before 2019-08 mark with `!`: the stride differs from the next one's size times stride."""
    marks: list[bool] = []
    for i, stride in enumerate(strides):
        expected = 1 if i == len(strides) - 1 else sizes[i + 1] * strides[i + 1]
        marks.append(stride != expected)
    return marks


def _options(type: TensorType, dialect: Dialect) -> list[str]:
    if not dialect.tensor_options:
        return []
    parts: list[str] = []
    if type.requires_grad is not None:
        parts.append(f"requires_grad={int(type.requires_grad)}")
    if type.device is not None:
        parts.append(f"device={type.device}")
    return parts
