"""Conversion of inputs and outputs of runs: Python values to those of the interpreter, copies for graphs that write, results for the
caller."""
from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from irtool.ir.errors import RunError
from irtool.ir.graph import Graph, Value
from irtool.ir.pair import is_input_of_reverse
from irtool.ir.structure_kinds import ASKING_DEFINED, GRADIENT_KINDS, UNDEFINED_KINDS
from irtool.ir.types import ClassType, DictType, EnumType, ListType, OptionalType, SimpleType, TensorType, TupleType, Type, UnionType
from irtool.ops.array_library import np
from irtool.ops.arrays import (
    address_of,
    are_apart,
    as_array,
    bounds_of,
    code_of,
    current_namespace,
    dtype_named,
    is_array,
    namespace_of,
    number_dtype,
    on_host,
)
from irtool.ops.kernels.prim import device
from irtool.ops.quantized import Packed, Quantized
from irtool.ops.structure import Object, attribute_name, is_instance, is_member

DTYPE_NAMES = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
                         "uint16", "uint32", "uint64"))


def accept(value: Any, declared: Value) -> Any:
    """An input of a graph, converted for the interpreter: a float that is a whole number is an int where the graph takes one.

    torch's interpreter takes such floats; its methods refuse them, as those of archives do here. Raises RunError for arrays of a dtype that
    torch does not have, and for missing attributes.
    """
    if value.__class__ is float and value.is_integer() and str(declared.type.key) in ("int", "SymInt"):
        return accepted(int(value), declared.type, declared.name)
    if isinstance(declared.type, ClassType) and not isinstance(value, Object | Packed):
        return _accept_object(value, [declared])
    if isinstance(declared.type, ListType) and is_input_of_reverse(declared) and (
            value is None or isinstance(value, list) and any(each is None for each in value)):
        return value
    return accepted(value, declared.type, declared.name)


def refuse_none(graph: Graph, inputs: Sequence[Any]) -> None:
    """Raises RunError for None in place of a tensor among the inputs of a call, also in lists, tuples and dicts.

    In a run None is the undefined tensor, which gradient graphs take: a df, and graphs that add gradients, or ask whether they are defined.
    Attributes of instances, which `irtool.execute.objects` puts in place of inputs, are not looked at.
    """
    if inputs.__class__ not in (list, tuple):
        return
    for value, declared in zip(inputs, graph.inputs, strict=False):
        if (value is None or value.__class__ in (list, tuple, dict)) and _has_none_for_tensor(value, declared.type) \
                and not _may_be_undefined(declared, graph):
            where = "" if value is None else f" in a {builtins.type(value).__name__}"
            raise RunError(f"input %{declared.name}: expected {declared.type}, got None{where}", code="E0403")


def _has_none_for_tensor(value: Any, type: Type) -> bool:
    """Is None in the place of a tensor, or of a list or tuple with tensors?"""
    if isinstance(type, OptionalType | UnionType) or not _names_tensors(type):
        return False
    if value is None:
        return True
    if isinstance(type, ListType) and isinstance(value, list | tuple):
        return any([_has_none_for_tensor(each, type.element) for each in value])
    if isinstance(type, TupleType) and isinstance(value, list | tuple):
        return any(map(_has_none_for_tensor, value, type.elements))
    return isinstance(type, DictType) and isinstance(value, dict) and any([_has_none_for_tensor(each, type.value_type)
                                                                          for each in value.values()])


OF_GRADIENTS = frozenset([kind.removeprefix("prim::") for kind in (*GRADIENT_KINDS, *ASKING_DEFINED, *UNDEFINED_KINDS)]) | {
    "AutogradAllNonZero", "AutogradAllZero", "ReplaceIfUndef"}
"""Names of kinds that only gradient graphs have."""


def _may_be_undefined(declared: Value, graph: Graph) -> bool:
    """May an input be an undefined tensor, or is it not read, or compared with None?"""
    if is_input_of_reverse(declared) or not declared.has_uses or isinstance(declared.type, TensorType) and declared.type.undefined:
        return True
    return any(use.user.kind in ("aten::__is__", "aten::__isnot__") for use in declared.uses) or _has_gradients(graph)


def _has_gradients(graph: Graph) -> bool:
    """Has a graph, or a graph that one of its nodes owns, a node of gradients?"""
    return any(node.kind.removeprefix("prim::") in OF_GRADIENTS or any(map(_has_gradients, node.graphs.values())) for node in graph.walk())


def _accept_object(value: Any, declared: Sequence[Value]) -> Any:
    """A Python object, or a dict of attributes, as an instance with the attributes that the graph reads before it writes any.

    declared: the values of the graph for the object, several if several nodes read the same attribute.
    """
    users = [use.user for each in declared for use in each.uses]
    readers: dict[str, list[Value]] = {}
    for node in users:
        if node.kind == "prim::GetAttr":
            readers.setdefault(attribute_name(node), []).append(node.output)
    written = {attribute_name(node) for node in users if node.kind == "prim::SetAttr"}
    if not readers and not written:
        return value
    instance = Object(declared[0].type)
    for name, results in readers.items():
        if name not in written or has_attribute(value, name):
            attribute = attribute_of(value, name, declared[0].name)
            if isinstance(results[0].type, ClassType) and not isinstance(attribute, Object):
                instance.attributes[name] = _accept_object(attribute, results)
            else:
                instance.attributes[name] = accept(attribute, results[0])
    return instance


def has_attribute(value: Any, name: str) -> bool:
    """Has a Python object, or a dict of attributes, an attribute of this name?"""
    return name in value if isinstance(value, dict) else hasattr(value, name)


def attribute_of(value: Any, name: str, whose: str) -> Any:
    """An attribute of a Python object, of an instance, or of a dict of them. Raises RunError."""
    attributes = value.attributes if isinstance(value, Object) else value
    if not has_attribute(attributes, name):
        raise RunError(f"input %{whose} has no attribute '{name}'", code="E0403")
    return attributes[name] if isinstance(attributes, dict) else getattr(attributes, name)


def takes_objects(graph: Graph) -> bool:
    """Does the graph read attributes of an input?"""
    return any(isinstance(value.type, ClassType) and any(use.user.kind == "prim::GetAttr" for use in value.uses) for value in graph.inputs)


def accepted(value: Any, type: Type, name: str) -> Any:
    """A value converted to a type. Raises RunError, as torch does, if it does not fit."""
    if isinstance(type, OptionalType):
        return None if value is None else accepted(value, type.element, name)
    if isinstance(type, UnionType):
        return _accept_member(value, type, name)
    if isinstance(value, np.ndarray | np.generic):
        return _accept_array(np.asarray(value), type, name)
    if is_array(value):
        return _accept_array(value, type, name)
    if isinstance(value, Quantized | Packed) and isinstance(type, TensorType | ClassType):
        return value
    if isinstance(type, TensorType):
        return _accept_tensor(value, type, name)
    if value is None and isinstance(type, ListType) and _names_tensors(type):
        return None         # the gradient of a list may be undefined, as that of a tensor
    if isinstance(value, list | tuple | range):
        return _accept_items(value, type, name)
    if isinstance(type, DictType):
        if not isinstance(value, dict):
            _refuse(value, type, name)
        return {accepted(key, type.key_type, name): accepted(item, type.value_type, name) for key, item in value.items()}
    if isinstance(type, EnumType):
        if not is_member(value, type):
            _refuse(value, type, name)
        return value
    return _accept_word(value, type, name)


def _accept_tensor(value: Any, type: TensorType, name: str) -> Any:
    """A value that is no array for a tensor type: a number, or None for the undefined tensor; in old texts (`Dynamic`) also a list."""
    if isinstance(value, bool | int | float | complex):
        return as_array(value, dtype_named(type.dtype) if type.dtype is not None else number_dtype(value))
    if value is None:
        return None
    if hasattr(value, "__array__"):
        return _accept_array(np.asarray(value), type, name)
    if type.text == "Dynamic" and not isinstance(value, str | dict):
        return [accepted(item, type, name) for item in value] if isinstance(value, list | tuple) else value
    _refuse(value, type, name)


def _accept_items(value: Sequence[Any], type: Type, name: str) -> Any:
    """A list or tuple for a type of either."""
    if isinstance(type, TupleType):
        if len(type.elements) != len(value):
            _refuse(value, type, name)
        return tuple([accepted(item, each, name) for item, each in zip(value, type.elements, strict=True)])
    if isinstance(type, ListType):
        return [accepted(item, type.element, name) for item in value]
    words = ("tuple", "Tuple") if isinstance(value, tuple) else ("list",)
    if isinstance(type, DictType | EnumType) or isinstance(type, SimpleType) and type.key not in (*ANYTHING, *words):
        _refuse(value, type, name)
    return value


def _of_tensors(type: ListType | TupleType) -> bool:
    return bool(type.elements) and isinstance(type.elements[0], TensorType)


ANYTHING = frozenset(("Any", "Generator", "Stream", "Storage", "Function", "Capsule", "PyObject", "QScheme", "Quantizer", "Handle", "World",
                      "AnyClassType", "AnyEnumType", "Dimname"))
"""Types whose values need no conversion."""


def _accept_word(value: Any, type: Type, name: str) -> Any:
    """A number, string, device or None for a type."""
    kind = str(type.key)
    if isinstance(value, bool | int | float | complex):
        return _accept_number(value, type, name)
    if kind in ("int", "ScalarType") and isinstance(value, np.dtype | builtins.type):       # a dtype is its number
        try:
            return code_of(np.dtype(value))
        except (TypeError, RunError):
            _refuse(value, type, name)
    if isinstance(type, ListType | TupleType) and not (value is None and _of_tensors(type)):     # no gradient
        _refuse(value, type, name)
    if isinstance(type, SimpleType) and kind not in ANYTHING:
        fits = isinstance(value, str) if kind in ("str", "Device") else value is None and kind == "None"
        if not fits:
            _refuse(value, type, name)
    if kind == "Device":
        return device.kernel(None, value)
    return value


KINDS: dict[str, tuple[Callable[[Any], Any], tuple[builtins.type, ...]]] = {
    "int": (int, (int,)), "float": (float, (int, float)), "complex": (complex, (int, float, complex)),
    "bool": (bool, (int, float, complex)), **dict.fromkeys(("ScalarType", "Layout", "MemoryFormat", "SymInt"), (int, (int,))),
}
"""Type of numbers -> the function that converts to it, and the classes that it converts."""


def _accept_number(value: Any, type: Type, name: str) -> Any:
    """A Python number converted to a type of numbers."""
    kind = str(type.key)
    if kind in KINDS:
        convert, fitting = KINDS[kind]
        if isinstance(value, fitting):
            number = convert(value)
            if convert is not int or -2 ** 63 <= number < 2 ** 63:
                return number
        _refuse(value, type, name)
    if isinstance(type, SimpleType) and kind not in ANYTHING and kind != "Scalar" or isinstance(type, ListType | TupleType):
        _refuse(value, type, name)
    return value


def _accept_member(value: Any, type: UnionType, name: str) -> Any:
    """A value of one of a union's types, exactly: an int is no float here. An array of one element may represent a number."""
    for each in type.elements:
        if is_instance(value, each):
            return accepted(value, each, name)
    if is_array(value) or isinstance(value, np.generic):
        for each in sorted(type.elements, key=lambda each: not isinstance(each, TensorType)):
            if isinstance(each, TensorType) or not np.ndim(value) and np.asarray(value).dtype.kind in LETTERS.get(str(each.key), ""):
                return accepted(value, each, name)
    _refuse(value, type, name)


LETTERS = {"int": "iu", "float": "f", "bool": "b", "complex": "c", "Scalar": "iufc"}
"""Kind of number -> NumPy's letters for it."""


def _refuse(value: Any, type: Type, name: str) -> NoReturn:
    shown = f"a {builtins.type(value).__name__}" if isinstance(value, np.ndarray) else repr(value)[:40]
    tag = TAGS.get(value.__class__) if isinstance(type, TensorType) else None
    raise RunError(f"input %{name}: expected {type}, got {shown}" + (f" (Expected Tensor but got {tag})" if tag else ""), code="E0403")


TAGS = {tuple: "Tuple", list: "GenericList", dict: "GenericDict", str: "String"}
"""Class of a value -> what torch's interpreter calls it (IValue::tagKind), in its words for a value that is no tensor."""


PLAIN = frozenset(map(np.dtype, "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()))
"""NumPy's dtypes of tensors, in native byte order."""


def _accept_array(value: Any, type: Type, name: str) -> Any:
    if value.__class__ is np.ndarray and value.dtype in PLAIN and value.flags.c_contiguous and isinstance(type, TensorType) \
            and current_namespace() is np:
        return value        # the usual case
    given = value
    if value.dtype not in PLAIN:
        if value.dtype.name == "bfloat16":
            value = value.astype(np.float32)
        if value.dtype.name not in DTYPE_NAMES:
            if value.dtype.kind == "U" and not value.ndim:
                return value.item()
            raise RunError(f"input %{name} is an array of dtype {value.dtype}, expected numbers or bools", code="E0403")
    if isinstance(type, SimpleType) and str(type.key) not in ANYTHING:
        if value.size != 1 or str(type.key) in ("int", "SymInt") and value.dtype.kind in "fc" and value.item() != np.trunc(value.item()):
            raise RunError(f"input %{name}: expected {type}, got an array of {value.dtype} {value.shape}", code="E0403")
        number = value.item()
        return _accept_number(int(number.real) if str(type.key) == "int" else number, type, name)
    if isinstance(type, ListType | TupleType) and value.ndim:
        items = list(value) if _of_tensors(type) else value.tolist()
        return _accept_items(items, type, name)
    if isinstance(type, DictType | EnumType | ListType | TupleType):
        _refuse(value, type, name)
    xp = namespace_of(value)
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if any(stride < 0 for stride in value.strides) or any(stride % max(value.itemsize, 1) for stride in value.strides):
        value = xp.ascontiguousarray(value).reshape(value.shape)      # torch has no such strides
    wanted = current_namespace()
    if wanted is not xp:
        value = wanted.asarray(value) if xp is np else on_host(value)
    made = conversions.get()
    return value if value is given or made is None else made.setdefault(id(given), (given, value))[1]


conversions: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("irtool_conversions", default=None)
"""Where `accept` notes copies: id of an array that cannot be a tensor as it is -> the array, and its copy for all inputs of the run."""

_noted: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("irtool_copies", default=None)


@contextmanager
def noting_copies() -> Iterator[dict[int, tuple[Any, Any]]]:
    """A context in which runs note their copies of inputs: id of an array -> the array, and the copy that the last run made."""
    pairs: dict[int, tuple[Any, Any]] = {}
    token = _noted.set(pairs)
    try:
        yield pairs
    finally:
        _noted.reset(token)


def copied(values: Sequence[Any], written: Sequence[bool] | None = None) -> list[Any]:
    """Copies of values, with the same strides. An object that occurs twice occurs twice in the copy, and arrays that share memory still do.

    written: flags, which values must be copied; other arrays are copied only if they overlap one of those.
    """
    known: dict[int, Any] = {}
    copy_overlapping(values, written, known)
    if written is None:
        copies = [_copied(value, known) for value in values]
    else:
        for value, is_written in zip(values, written, strict=True):
            if is_written:
                _copied(value, known)
        copies = [known.get(id(value), value) if is_array(value) else _copied(value, known) for value in values]
    pairs = _noted.get()
    if pairs is not None:
        pairs.update({id(each): (each, known[id(each)]) for each in arrays_in(list(values)) if id(each) in known})
    return copies


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if not isinstance(value, list | tuple | dict | Object | Quantized) and not is_array(value):
        return value
    copy = known.get(id(value))
    if copy is None:
        if is_array(value):
            copy = copy_array(value)
        elif isinstance(value, Quantized):
            copy = value.with_ints(_copied(value.ints, known))
        elif isinstance(value, Object):
            copy = Object(value.type)
            copy.attributes.update({key: _copied(item, known) for key, item in value.attributes.items()})
        elif isinstance(value, dict):
            copy = {key: _copied(item, known) for key, item in value.items()}
        else:
            items = [_copied(item, known) for item in value]
            copy = items if isinstance(value, list) else tuple(items)
        known[id(value)] = copy
    return copy


def copy_overlapping(values: Sequence[Any], written: Sequence[bool] | None, known: dict[int, Any]) -> None:
    """Copy overlapping arrays as one piece of memory, so that a write through one changes the others. known: id -> copy."""
    arrays: dict[int, Any] = {}
    touched: set[int] = set()
    for place, value in enumerate(values):
        for each in arrays_in(value):
            arrays[id(each)] = each
            if written is None or written[place]:
                touched.add(id(each))
    if not touched or are_apart(list(arrays.values())):
        return
    for piece in overlapping(arrays.values()):
        if len(piece) > 1 and any(id(each) in touched for each, _, _ in piece):
            low = piece[0][1]
            room = np.zeros(max(high for _, _, high in piece) - low, np.uint8)
            for each, _, _ in piece:
                known[id(each)] = copy = np.ndarray(each.shape, each.dtype, room, address_of(each) - low, each.strides)
                copy[...] = each


def arrays_in(value: Any, on_device: bool = False) -> Iterator[Any]:
    """The NumPy arrays in a value, recursively. on_device: those on a device, too."""
    if isinstance(value, np.ndarray) or on_device and is_array(value):
        yield value
    elif isinstance(value, list | tuple | dict | Object):
        inner = value.attributes.values() if isinstance(value, Object) else value.values() if isinstance(value, dict) else value
        for each in inner:
            yield from arrays_in(each, on_device)


def overlapping(arrays: Iterable[Any]) -> list[list[tuple[Any, int, int]]]:
    """Lists of arrays that overlap, each with the addresses of its first byte and of the first one behind it."""
    bounds = [(each, *bounds_of(each)) for each in arrays if each.size]
    pieces: list[list[tuple[Any, int, int]]] = []
    end = 0
    for bound in sorted(bounds, key=lambda bound: bound[1:]):
        if not pieces or bound[1] >= end:
            pieces.append([])
        pieces[-1].append(bound)
        end = max(end, bound[2])
    return pieces


def copy_array(value: Any) -> Any:
    """A copy with the same strides, unless the gaps between elements are large."""
    if value.flags.c_contiguous or not value.size:
        return value.copy()
    room = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)) // value.itemsize
    if room > 4 * value.size:
        return value.copy(order="K")
    xp = namespace_of(value)
    zeros = xp.zeros(room, value.dtype)
    view = np.ndarray(value.shape, value.dtype, zeros, 0, value.strides) if xp is np else \
        xp.lib.stride_tricks.as_strided(zeros, value.shape, value.strides)      # a view of an array can get another shape in place
    view[...] = value
    return view


def delivered(value: Any, type: Type) -> Any:
    """An output converted for the caller: a number for an output of type Tensor becomes a 0-d array."""
    if isinstance(type, TensorType) and isinstance(value, bool | int | float | complex | np.generic):
        return as_array(value, dtype_named(type.dtype) if type.dtype is not None else None)
    if isinstance(type, OptionalType) and value is not None:
        return delivered(value, type.element)
    if isinstance(type, ListType) and isinstance(value, list) and _names_tensors(type):
        return [delivered(item, type.element) for item in value]
    if isinstance(type, DictType) and isinstance(value, dict) and _names_tensors(type):
        return {key: delivered(item, type.value_type) for key, item in value.items()}
    if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
        return tuple([delivered(item, each) for item, each in zip(value, type.elements, strict=True)])
    return value


def _names_tensors(type: Type) -> bool:
    """Does a container type have tensor elements?"""
    if isinstance(type, ListType | OptionalType):
        return _names_tensors(type.element)
    if isinstance(type, DictType):
        return _names_tensors(type.value_type)
    if isinstance(type, TupleType):
        return any(map(_names_tensors, type.elements))
    return isinstance(type, TensorType)
