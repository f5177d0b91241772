"""Values of an archive as pickles that torch reads: opcodes of protocol 2, the functions of `pickles.CALLED`, types beside lists.

Source: torch/csrc/jit/serialization/pickler.cpp. A value that occurs several times is written once. Nothing is recursive.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from irtool.archives.packed_states import packed_state
from irtool.archives.storage_writer import StorageWriter, Stored
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type, UnionType
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.quantized import Packed, Quantized
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.printing.literals import annotation, class_name

LISTS = {"int": "build_intlist", "float": "build_doublelist", "bool": "build_boollist", "Tensor": "build_tensorlist"}
"""Types of elements -> the function with which torch's pickles build a list of them."""
Task = "bytes | Callable[[], Iterable[Task]]"


class World:
    """What a writer needs to know about instances."""

    def state(self, instance: Object) -> tuple[Any, Type | Sequence[tuple[str, Type]]]:
        """The state of an instance: a value and its type, or a dict of attributes with the type of each. Raises Error."""
        raise NotImplementedError

    def number(self, member: EnumMember) -> Any:
        """The value of a member of an enumeration. Raises Error."""
        raise NotImplementedError

    def requires_grad(self, array: Any) -> bool:
        """Does a tensor require gradients?"""
        raise NotImplementedError

    def class_name(self, type: Type) -> str:
        """The full name of a class in the type of a list or dict. Raises Error."""
        return class_name(type)


class PickleWriter:
    """Writes one pickle. `storages` collects the memory of its tensors."""

    def __init__(self, world: World, storages: StorageWriter) -> None:
        self.world = world
        self.storages = storages
        self.parts: list[bytes] = [b"\x80\x02"]
        self._numbers: dict[Any, int] = {}
        """The id of a value, or the name of a global -> its number in the pickle's memo."""
        self._alive: list[Any] = []
        """The values whose ids are keys, kept alive so that no other value gets the id."""
        self._open: set[int] = set()

    def write(self, value: Any, type: Type | None) -> bytes:
        """The pickle of a value. Raises Error for a value that archives cannot contain."""
        todo: list[Any] = [lambda: self._value(value, type)]
        while todo:
            task = todo.pop()
            if isinstance(task, bytes):
                self.parts.append(task)
            else:
                todo += reversed(list(task()))
        return b"".join([*self.parts, b"."])

    # -- the memo
    def _remember(self, key: Any, value: Any = None) -> list[Any]:
        def put() -> Iterable[Any]:
            number = self._numbers[key] = len(self._numbers)
            self._alive.append(value)
            return [b"q" + bytes((number,)) if number < 256 else b"r" + struct.pack("<I", number)]
        return [put]

    def _recalled(self, key: Any) -> bytes | None:
        number = self._numbers.get(key)
        if number is None:
            return None
        return b"h" + bytes((number,)) if number < 256 else b"j" + struct.pack("<I", number)

    def _global(self, module: str, name: str) -> list[Any]:
        def named() -> Iterable[Any]:
            known = self._recalled((module, name))
            return [known] if known else [f"c{module}\n{name}\n".encode(), *self._remember((module, name))]
        return [named]

    def _class(self, type: Type) -> list[Any]:
        module, _, name = type.text.rpartition(".")
        return self._global(module, name)

    # -- values
    def _value(self, value: Any, type: Type | None) -> Iterable[Any]:
        while isinstance(type, OptionalType):
            type = type.element
        if isinstance(type, UnionType):
            type = None
        if isinstance(value, list | dict | tuple | Object | Packed | Quantized) or is_array(value):
            return self._shared(value, type)
        if isinstance(value, EnumMember):
            return [*self._global(*_split(value.owner)), lambda: self._value(self.world.number(value), None), b"R"]
        word = "" if type is None else str(type.key)
        if isinstance(value, str):
            if word == "Device":
                return [*self._global("torch", "device"), *self._tuple(value.split(":")[:1] + [int(n) for n in value.split(":")[1:]]), b"R"]
            return [_text(value)]
        return self._plain(value, word)

    def _plain(self, value: Any, word: str) -> list[Any]:
        value = value.item() if isinstance(value, np.generic) else value
        if value is None:
            return [b"N"]
        if isinstance(value, bool):
            return [b"\x88" if value else b"\x89"]
        if word == "complex" and isinstance(value, int | float):
            value = complex(value)
        if isinstance(value, complex):
            return [*self._global("builtins", "complex"), *self._tuple([value.real, value.imag]), b"R"]
        if isinstance(value, int) and word != "float":
            return [_integer(value)]
        if isinstance(value, int | float):
            return [b"G" + struct.pack(">d", value)]
        raise UnsupportedError(f"save: a {type(value).__name__} cannot be saved", code="E0404")

    def _shared(self, value: Any, type: Type | None) -> Iterable[Any]:
        """A value that may occur several times."""
        known = self._recalled(id(value))
        if known is not None:
            return [known]
        if id(value) in self._open:
            raise UnsupportedError("save: a value that contains itself cannot be saved", code="E0404")
        self._open.add(id(value))

        def close() -> Iterable[Any]:
            self._open.discard(id(value))
            return ()
        return [*self._parts(value, type), *self._remember(id(value), value), close]

    def _parts(self, value: Any, type: Type | None) -> Sequence[Any]:
        if isinstance(value, Object):
            return [*self._class(value.type), b")\x81", *self._state(value), b"b"]
        if isinstance(value, Packed):
            state, declared = packed_state(value)
            return [*self._class(value.type), b")\x81", lambda: self._value(state, declared), b"b"]
        if isinstance(value, Quantized):
            return self._quantized(value)
        if isinstance(value, list):
            return self._list(value, type)
        if isinstance(value, tuple):
            return self._tuple(value, type)
        if isinstance(value, dict):
            return self._dict(value, type)
        return self._tensor(value)

    def _state(self, instance: Object) -> list[Any]:
        state, types = self.world.state(instance)
        if isinstance(types, Type):
            return [lambda: self._value(state, types)]
        items: list[Any] = [b"}("]
        for name, type in types:
            items += [_text(name), lambda name=name, type=type: self._value(state[name], type)]
        return [*items, b"u"]

    def _list(self, value: list[Any], type: Type | None) -> list[Any]:
        element = type.element if isinstance(type, ListType) else None
        items = [lambda each=each: self._value(each, element) for each in value]
        function = LISTS.get(str(element.key)) if element is not None else None
        if element is None:
            return [b"](", *items, b"e"]
        if function is not None:
            return [*self._global("torch.jit._pickle", function), b"(](", *items, b"etR"]
        return [*self._global("torch.jit._pickle", "restore_type_tag"), b"(](", *items, b"e", *self._tag(type), b"tR"]

    def _dict(self, value: dict[Any, Any], type: Type | None) -> list[Any]:
        of_key, of_value = (type.key_type, type.value_type) if isinstance(type, DictType) else (None, None)
        items: list[Any] = [b"}("]
        for key, each in value.items():
            items += [lambda key=key: self._value(key, of_key), lambda each=each: self._value(each, of_value)]
        items.append(b"u")
        if not isinstance(type, DictType):
            return items
        return [*self._global("torch.jit._pickle", "restore_type_tag"), b"(", *items, *self._tag(type), b"tR"]

    def _tag(self, type: Type | None) -> list[Any]:
        assert type is not None
        return [_text(annotation(type, name_of=self.world.class_name))]

    def _tuple(self, value: Sequence[Any], type: Type | None = None) -> list[Any]:
        types: Sequence[Type | None] = type.elements if isinstance(type, TupleType) else [None] * len(value)
        items = [lambda each=each, of=of: self._value(each, of) for each, of in zip(value, types, strict=True)]
        if not items:
            return [b")"]
        return [*items, (b"\x85", b"\x86", b"\x87")[len(items) - 1]] if len(items) <= 3 else [b"(", *items, b"t"]

    # -- tensors
    def _tensor(self, value: Any) -> list[Any]:
        return [*self._global("torch._utils", "_rebuild_tensor_v2"), b"(", *self._place(value, None),
                b"\x88" if self.world.requires_grad(value) else b"\x89", *self._global("collections", "OrderedDict"), b")R", b"tR"]

    def _place(self, value: Any, dtype: str | None) -> list[Any]:
        """Storage, offset, sizes and strides of a tensor."""
        place = self.storages.place(value, dtype)
        return [lambda: self._storage(place.storage), _integer(place.offset), *self._tuple(value.shape), *self._tuple(place.strides)]

    def _storage(self, storage: Stored) -> Iterable[Any]:
        """A storage; by its number if it occurred before, since torch reads a key that occurs twice as two storages."""
        known = self._recalled(id(storage))
        return [known] if known else [b"(", _text("storage"), *self._global("torch", storage.kind), _text(storage.key), _text("cpu"),
                                      _integer(storage.count), b"tQ", *self._remember(id(storage), storage)]

    def _quantized(self, value: Quantized) -> list[Any]:
        if value.axis is None:
            how = [b"(", *self._global("torch", "per_tensor_affine"), b"G" + struct.pack(">d", float(value.scale)),
                   _integer(int(value.zero_point)), b"t"]
        else:
            has_floats = np.asarray(value.zero_point).dtype.kind == "f"
            scheme = "per_channel_affine_float_qparams" if has_floats else "per_channel_affine"
            how = [b"(", *self._global("torch", scheme), lambda: self._value(np.asarray(value.scale), None),
                   lambda: self._value(np.asarray(value.zero_point), None), _integer(value.axis), b"t"]
        return [*self._global("torch._utils", "_rebuild_qtensor"), b"(", *self._place(value.ints, value.name), *how, b"\x89",
                *self._global("collections", "OrderedDict"), b")R", b"tR"]


def _split(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(".")
    return module, name


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def _integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes((value,))
    if -2**31 <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    if not -2**63 <= value < 2**63:
        raise Error(f"save: {value} has more than 64 bits")
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
