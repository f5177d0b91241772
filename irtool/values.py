"""What goes into a run and comes out: Python values made fit for the interpreter, copied where a graph writes, handed back."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from irtool.ir.errors import RunError
from irtool.ir.graph import Value
from irtool.ir.types import ClassType, DictType, ListType, OptionalType, TensorType, TupleType, Type
from irtool.ops.arrays import as_array, current_namespace, dtype_named, is_array, memory_of, namespace_of, number_dtype, on_host
from irtool.ops.structure import Object, attribute_name

DTYPE_NAMES = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
                         "uint16", "uint32", "uint64"))


def accept(value: Any, declared: Value) -> Any:
    """An input as the interpreter takes it. Raises RunError for arrays torch has no dtype for, and for missing attributes."""
    if isinstance(declared.type, ClassType) and not isinstance(value, Object):
        return _accept_object(value, declared)
    return _accept(value, declared.type, declared.name)


def _accept_object(value: Any, declared: Value) -> Any:
    """A Python object, or a dict of attributes, as an instance with the attributes that the graph reads before it writes any."""
    readers = [use.user for use in declared.uses if use.user.kind == "prim::GetAttr"]
    written = {attribute_name(use.user) for use in declared.uses if use.user.kind == "prim::SetAttr"}
    if not readers and not written:
        return value
    found = Object(declared.type)
    for node in readers:
        name = attribute_name(node)
        if name not in written or has_attribute(value, name):
            found.attributes[name] = accept(attribute_of(value, name, declared.name), node.output)
    return found


def has_attribute(value: Any, name: str) -> bool:
    """Has a Python object, or a dict of attributes, this one?"""
    return name in value if isinstance(value, dict) else hasattr(value, name)


def attribute_of(value: Any, name: str, whose: str) -> Any:
    """An attribute of a Python object, of an instance, or of a dict of them. Raises RunError."""
    attributes = value.attributes if isinstance(value, Object) else value
    if not has_attribute(attributes, name):
        raise RunError(f"input %{whose} has no attribute '{name}'")
    return attributes[name] if isinstance(attributes, dict) else getattr(attributes, name)


def _accept(value: Any, type: Type, name: str) -> Any:
    if isinstance(type, OptionalType):
        return None if value is None else _accept(value, type.element, name)
    if isinstance(value, np.ndarray | np.generic):
        return _accept_array(np.asarray(value), type, name)
    if is_array(value):
        return _accept_array(value, type, name)
    if isinstance(value, list | tuple):
        if isinstance(type, TupleType) and len(type.elements) == len(value):
            return tuple([_accept(item, each, name) for item, each in zip(value, type.elements, strict=True)])
        if isinstance(type, ListType):
            return [_accept(item, type.element, name) for item in value]
        return value
    if isinstance(value, dict) and isinstance(type, DictType):
        return {key: _accept(item, type.value_type, name) for key, item in value.items()}
    if isinstance(type, TensorType) and isinstance(value, bool | int | float | complex):
        return as_array(value, dtype_named(type.dtype) if type.dtype is not None else number_dtype(value))
    if str(type.key) == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(type, TensorType) and hasattr(value, "__array__"):
        return _accept_array(np.asarray(value), type, name)
    if not _may_be(value, type):
        raise RunError(f"input %{name}: expected {type}, got {repr(value)[:40]}")
    return value


def _may_be(value: Any, type: Type) -> bool:
    """Is it thinkable that the value is meant for the type? (Old texts call lists and numbers `Dynamic`.)"""
    if isinstance(type, TensorType):
        return not isinstance(value, str | dict)
    key = str(type.key)
    return key not in ("int", "float", "bool") or not (value is None or isinstance(value, str | list | tuple | dict))


PLAIN = frozenset(map(np.dtype, "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()))
"""Native dtypes that tensors have."""


def _accept_array(value: Any, type: Type, name: str) -> Any:
    if value.__class__ is np.ndarray and value.dtype in PLAIN and value.flags.c_contiguous and isinstance(type, TensorType) \
            and current_namespace() is np:
        return value        # as nearly all are
    if value.dtype not in PLAIN:
        if value.dtype.name == "bfloat16":
            value = value.astype(np.float32)
        if value.dtype.name not in DTYPE_NAMES:
            if value.dtype.kind == "U" and not value.ndim:
                return value.item()
            raise RunError(f"input %{name} is an array of dtype {value.dtype}, expected numbers or bools")
    if not isinstance(type, TensorType) and not value.ndim and str(type.key) in ("int", "float", "bool", "complex", "Scalar", "str"):
        number = value.item()
        return float(number) if str(type.key) == "float" else number
    if isinstance(type, ListType) and not isinstance(type.element, TensorType) and value.ndim == 1:
        return value.tolist()
    xp = namespace_of(value)
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if any(stride < 0 for stride in value.strides) or any(stride % max(value.itemsize, 1) for stride in value.strides):
        value = xp.ascontiguousarray(value).reshape(value.shape)      # torch has no such strides
    wanted = current_namespace()
    return value if wanted is xp else wanted.asarray(value) if xp is np else on_host(value)


def copied(values: Sequence[Any], written: Sequence[bool] | None = None) -> list[Any]:
    """The same values in new arrays, lists and dicts, with the same strides; what was one object twice is one object twice again, and
    arrays that shared memory share it again.

    written: of which values that matters; other arrays are themselves, unless they are, or overlap, one of those.
    """
    known: dict[int, Any] = {}
    copy_overlapping(values, written, known)
    if written is None:
        return [_copied(value, known) for value in values]
    for value, is_written in zip(values, written, strict=True):
        if is_written:
            _copied(value, known)
    return [known.get(id(value), value) if is_array(value) else _copied(value, known) for value in values]


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if not isinstance(value, list | tuple | dict | Object) and not is_array(value):
        return value
    found = known.get(id(value))
    if found is None:
        if is_array(value):
            found = copy_array(value)
        elif isinstance(value, Object):
            found = Object(value.type)
            found.attributes.update({key: _copied(item, known) for key, item in value.attributes.items()})
        elif isinstance(value, dict):
            found = {key: _copied(item, known) for key, item in value.items()}
        else:
            items = [_copied(item, known) for item in value]
            found = items if isinstance(value, list) else tuple(items)
        known[id(value)] = found
    return found


def copy_overlapping(values: Sequence[Any], written: Sequence[bool] | None, known: dict[int, Any]) -> None:
    """Copy arrays that overlap, as one piece of memory: a write through one of them shows in the others. Copies are noted by id."""
    owners: dict[int, dict[int, Any]] = {}
    touched: set[int] = set()
    for place, value in enumerate(values):
        for each in arrays_in(value):
            owners.setdefault(id(memory_of(each)), {})[id(each)] = each
            if written is None or written[place]:
                touched.add(id(each))
    for arrays in owners.values():
        if len(arrays) > 1 and not touched.isdisjoint(arrays):
            for piece in overlapping(arrays.values()):
                if len(piece) > 1 and any(id(each) in touched for each, _, _ in piece):
                    low = piece[0][1]
                    room = np.zeros(max(high for _, _, high in piece) - low, np.uint8)
                    for each, start, _ in piece:
                        known[id(each)] = copy = np.ndarray(each.shape, each.dtype, room, start - low, each.strides)
                        copy[...] = each


def arrays_in(value: Any) -> Iterator[Any]:
    """The NumPy arrays that a value is, or holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple | dict | Object):
        inner = value.attributes.values() if isinstance(value, Object) else value.values() if isinstance(value, dict) else value
        for each in inner:
            yield from arrays_in(each)


def overlapping(arrays: Iterable[Any]) -> list[list[tuple[Any, int, int]]]:
    """Arrays with their bounds, as addresses, those that overlap together; strides are not negative, as `accept` has seen to."""
    bounds = []
    for each in arrays:
        start = each.__array_interface__["data"][0]
        if each.size:
            bounds.append((each, start, start + each.itemsize + sum((n - 1) * s for n, s in zip(each.shape, each.strides, strict=True))))
    pieces: list[list[tuple[Any, int, int]]] = []
    end = 0
    for bound in sorted(bounds, key=lambda bound: bound[1:]):
        if not pieces or bound[1] >= end:
            pieces.append([])
        pieces[-1].append(bound)
        end = max(end, bound[2])
    return pieces


def copy_array(value: Any) -> Any:
    """A copy with the same strides; gaps stay gaps where they are few."""
    if value.flags.c_contiguous or not value.size:
        return value.copy()
    room = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)) // value.itemsize
    if room > 4 * value.size:
        return value.copy(order="K")
    xp = namespace_of(value)
    view = xp.lib.stride_tricks.as_strided(xp.zeros(room, value.dtype), value.shape, value.strides)
    view[...] = value
    return view


def delivered(value: Any, type: Type) -> Any:
    """An output as the caller gets it: a number that stands for a tensor becomes a 0-d array."""
    if isinstance(type, TensorType) and isinstance(value, bool | int | float | complex | np.generic):
        return as_array(value, dtype_named(type.dtype) if type.dtype is not None else None)
    if isinstance(type, OptionalType) and value is not None:
        return delivered(value, type.element)
    if isinstance(type, ListType) and isinstance(value, list) and isinstance(type.element, TensorType):
        return [delivered(item, type.element) for item in value]
    if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
        return tuple([delivered(item, each) for item, each in zip(value, type.elements, strict=True)])
    return value
