"""One attribute of a node: its exact text, and the Python value that the text spells.

Values by text: `3` int, `0.5` float, `"s"` and bare words str, `[1, 2]` list, `(1, 2)` tuple, `{"a": 1}` dict, `None`, `True`,
types as Type, tensors as TensorLiteral, `<Graph>` and what has no value here as Opaque. What the text alone leaves open (`1` may be
an int, a bool or, before 2020, a float) the type decides: `attribute.as_type(type)`.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from irtool.ir.attribute_reader import AttributeSyntaxError, Opaque, parse_value, read_attributes, split_attributes, split_top
from irtool.ir.attribute_speller import argument_text, value_text
from irtool.ir.dialect import LATEST, Dialect
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.type_model import DictType, EnumType, ListType, OptionalType, SimpleType, TensorType, TupleType, Type, UnionType
from irtool.ir.type_parser import TypeSyntaxError, parse_type

__all__ = ["UNPARSED", "Attribute", "AttributeSyntaxError", "Opaque", "TensorLiteral", "parse_value", "read_attributes", "split_attributes"]


class _Unparsed:
    """The value of an attribute whose text has not been parsed yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNPARSED"

    __reduce__ = __repr__       # pickled by the name of the only instance


UNPARSED: object = _Unparsed()


class Attribute:
    """`text` is what follows `name=` in the line; `value` is parsed from it when first read. An attribute never changes.

    Two attributes are equal if their texts are: values cannot decide, since `1 == 1.0 == True` in Python. A graph or an array equals only
    itself, also an array whose elements the text rounds.
    """

    __slots__ = ("text", "_value")
    text: str

    def __init__(self, text: str, value: object = UNPARSED) -> None:
        self.text = text
        self._value = value

    @staticmethod
    def of(value: object, dialect: Dialect = LATEST, type: Type | None = None) -> Attribute:
        """An attribute with this value, spelled in a dialect. type: decides between float and int, and the elements of an empty list.
        Raises Error."""
        return Attribute(value_text(value, dialect, type), value)

    @staticmethod
    def argument(value: object, type: Type, dialect: Dialect) -> Attribute:
        """An operator's argument as an attribute, for dialects whose arguments are attributes: `{1}` for a `Scalar`, `1` for an int."""
        text = argument_text(value, type, dialect)
        return Attribute(text, TensorLiteral(text) if text.startswith("{") else value)

    @property
    def value(self) -> object:
        """The value of the text, as far as the text alone decides it; an Opaque if the text is no known value."""
        if self._value is UNPARSED:
            self._value = parse_value(self.text)
        return self._value

    @property
    def types(self) -> list[Type] | None:
        """The types that the text lists, as `types=[int, ()]` of `prim::isinstance` does; None for another value.

        By itself `()` is the value of an empty tuple, and only here its type.
        """
        value = self.value
        if not isinstance(value, list | tuple):
            return None
        if all(isinstance(each, Type) for each in value):
            return list(value)
        parts = split_top(self.text[1:-1]) if "()" in self.text else None
        try:
            return [parse_type(part) for part in parts] if parts is not None and self.text[:1] == "[" else None
        except TypeSyntaxError:
            return None

    @property
    def array(self) -> object | None:
        """The array of a tensor if it is known: the text may round or omit its elements."""
        value = self._value
        return value.data if isinstance(value, TensorLiteral) else None

    @property
    def is_shown(self) -> bool:
        """Does the text say all of the value? Not if the value is a graph, an object, or an array whose elements the text rounds or
        omits."""
        value = self._value
        return not (value.__class__ is TensorLiteral and value.data is not None or self.text.startswith(("<", "[<", "object(")))

    def as_type(self, type: Type) -> object:
        """The value for a reader that expects `type`: `1` is 1.0 for `float` and True for `bool`; `{1}` is 1 for `int`."""
        return _convert(self.value, type, self.text)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Attribute) or self.text != other.text:
            return False
        return self.is_shown and other.is_shown or self.value == other.value

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Attribute {self.text}>"


def beyond_text(nodes: Iterable[Mapping[str, Attribute]]) -> Iterator[object]:
    """The known arrays of tensors, and the graphs, that the text of attributes does not show. nodes: the attributes of each."""
    for attributes in nodes:
        for attribute in attributes.values():
            value = attribute._value
            if value.__class__ is TensorLiteral:
                if value.data is not None:
                    yield value.data
            elif attribute.text == "<Graph>" and value is not UNPARSED and not isinstance(value, Opaque):
                yield value


def _convert(value: object, type: Type, text: str = "") -> object:
    if isinstance(type, OptionalType):
        return None if value is None else _convert(value, type.element, text)
    if isinstance(type, SimpleType):
        maker = _SIMPLE.get(type.key)
        return value if maker is None else maker(value, text)
    if isinstance(type, TensorType):
        return value.with_type(type.dtype, type.shape) if isinstance(value, TensorLiteral) else value
    if isinstance(type, ListType):
        if isinstance(value, TensorLiteral) and value.has_data:
            value = value.numbers()
        return [_convert(v, type.element) for v in value] if isinstance(value, (list, tuple)) else value
    if isinstance(type, TupleType):
        if isinstance(value, TupleType):        # `(Color.RED,)` by itself is the name of a type
            value = tuple(value.elements)
        if isinstance(value, (tuple, list)) and len(value) == len(type.elements):
            return tuple(_convert(v, t) for v, t in zip(value, type.elements, strict=True))
        return value
    if isinstance(type, DictType) and isinstance(value, dict):
        return {_convert(k, type.key_type): _convert(v, type.value_type) for k, v in value.items()}
    if isinstance(type, UnionType):
        return _convert_union(value, type)
    if isinstance(type, EnumType) and isinstance(value, Type):
        return Opaque(text or value.text)
    return value


def _convert_union(value: object, type: UnionType) -> object:
    """The value for a reader that expects a union: only lists, tuples and dicts are converted, to the union's first container type, or
    another that the value has as it is: `[2.]` stays a list of floats where a list of ints comes first."""
    if not isinstance(value, (list, tuple, dict)):
        return value
    converted = [_convert(value, element) for element in type.elements if isinstance(element, (ListType, TupleType, DictType))]
    return next((each for each in converted if repr(each) == repr(value)), converted[0] if converted else value)


def _single(value: object) -> object:
    return value.item() if isinstance(value, TensorLiteral) and value.has_data else value


def _to_int(value: object, text: str) -> object:
    value = _single(value)
    return int(value) if isinstance(value, (bool, int)) or isinstance(value, float) and value.is_integer() else value


def _to_float(value: object, text: str) -> object:
    value = _single(value)
    return float(value) if isinstance(value, (bool, int, float)) and abs(value) < 1e308 else value


def _to_bool(value: object, text: str) -> object:
    value = _single(value)
    return bool(value) if isinstance(value, (bool, int, float)) else value


def _to_complex(value: object, text: str) -> object:
    value = _single(value)
    if isinstance(value, int) and abs(value) >= 1e308:      # no attribute holds it, as verify says
        return value
    return complex(value) if isinstance(value, (bool, int, float, complex)) else value


def _to_number(value: object, text: str) -> object:
    value = _single(value)
    return int(value) if isinstance(value, bool) else value


def _to_str(value: object, text: str) -> object:
    """A bare word may look like a number or a type (`mode=1`, `name=Float`), so that only quotes or the expected type make it a string."""
    return value if isinstance(value, str) else (text or str(value))


def _to_device(value: object, text: str) -> object:
    """A device: `[0, -1]` (kind and index) before 2018-12, `"cuda:0"` since."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        kind = {0: "cpu", 1: "cuda"}.get(value[0])
        if kind is not None:
            return kind if value[1] < 0 else f"{kind}:{value[1]}"
    word = value if isinstance(value, str) else text or (value.text if isinstance(value, Opaque) else value)
    return word[len(IN_TUPLE):-2] if isinstance(word, str) and word.startswith(IN_TUPLE) and word.endswith('")') else word


IN_TUPLE = 'torch.device("'
"""How a device is printed that is part of a constant tuple."""
_SIMPLE = {"int": _to_int, "float": _to_float, "bool": _to_bool, "complex": _to_complex, "Scalar": _to_number, "str": _to_str,
           "Device": _to_device}
