"""The content of an archive: its classes, its constants, and the instances that its pickle makes."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from irtool.archives.code_places import Code
from irtool.archives.container import Container
from irtool.archives.declared_values import check_attributes
from irtool.archives.packed_states import STATES
from irtool.archives.pickles import unpickle
from irtool.archives.storages import QUANTIZED, Storage, read_storage, strided
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.source import quoted
from irtool.ir.types import parse_type
from irtool.ops.quantized import Packed, Quantized
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library
from irtool.torchscript.meanings import Enumeration

VERSIONS = 1, 10
"""File formats that torch 2.13 reads."""


class Archive:
    """An archive whose pickles are read when `root` is first asked for."""

    REQUIRED: tuple[str, ...] = ("data.pkl", "constants.pkl")
    CODE = "code/"

    def __init__(self, container: Container) -> None:
        self.container = container
        self.trainable: dict[int, tuple[Any, bool]] = {}
        """By the id of a tensor: the tensor, and does it require gradients?"""
        self._storages: dict[tuple[str, str], Storage] = {}
        self._folder = "data"
        for record in self.REQUIRED:
            if record not in container:
                hint = "" if record == "data.pkl" else ". What torch.save writes holds weights or a pickled module, not a program"
                raise Error(f"{container.name}: no TorchScript archive: the record '{record}' is missing{hint}", code="E0711")
        self.version = self._version()
        self.is_big = self._is_big()
        self.library = Library(self._code, container.name, lambda: self.constants, self.version, Code(self))

    def _version(self) -> int:
        record = ".data/version" if ".data/version" in self.container else "version"
        text = self.container.text(record, 20).strip()
        if not text.isascii() or not text.isdecimal():
            self.container.fail(record, f"'{quoted(text)}' is no version")
        low, high = VERSIONS
        if not low <= int(text) <= high:
            self.container.fail(record, f"version {text} of the format, expected {low} to {high}")
        return int(text)

    def _is_big(self) -> bool:
        if "byteorder" not in self.container:
            return False
        order = self.container.text("byteorder", 20)
        if order not in ("little", "big"):
            self.container.fail("byteorder", f"'{quoted(order)}', expected little or big")
        return order == "big"

    def _code(self, path: str) -> str | None:
        record = f"code/{path}.py"
        return self.container.text(record) if record in self.container else None

    def sources(self) -> dict[str, str]:
        """The code by record. Raises Error."""
        return {record: self.container.text(record) for record in self.container.names(self.CODE) if record.endswith(".py")}

    def _unpickled(self, record: str, folder: str) -> Any:
        self._folder = folder
        return unpickle(self.container.read(record), f"{self.container.name}: record '{record}'", self)

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The values that the code calls `CONSTANTS.c0` and so on."""
        values = self._unpickled("constants.pkl", "constants")
        if not isinstance(values, tuple):
            self.container.fail("constants.pkl", "holds no tuple")
        return tuple(values)

    @cached_property
    def root(self) -> Object:
        """The module. Raises Error."""
        _ = self.constants
        root = self._unpickled("data.pkl", "data")
        if not isinstance(root, Object) or not isinstance(self.library.class_called(str(root.type)), ClassDefinition):
            self.container.fail("data.pkl", "holds no module")
        assert isinstance(root, Object)
        return root

    # -- what pickles ask for (pickles.World)
    def instance(self, path: str) -> Object | Packed:
        """A new instance of a class of the archive, or of one of torch's own."""
        if path in STATES:
            return Packed(parse_type(path))
        if path.startswith("__torch__.torch.classes."):
            raise UnsupportedError(f"{self.container.name}: instances of {quoted(path)} are not supported yet", code="E0404")
        definition = self.library.class_called(path)
        if not isinstance(definition, ClassDefinition):
            self.container.fail("data.pkl", f"an instance of '{quoted(path)}', which is no class of the archive's code")
        assert isinstance(definition, ClassDefinition)
        return Object(definition.type)

    def build(self, instance: Any, state: Any) -> None:
        """Give an instance its attributes, by its `__setstate__` where its class has one."""
        if isinstance(instance, Packed) and not instance.parts:
            try:
                instance.parts = STATES[str(instance.type)](state).parts
            except ValueError as error:
                self.container.fail("data.pkl", f"{instance.type}: {error}")
            return
        if not isinstance(instance, Object):
            self.container.fail("data.pkl", "a state for something that is no instance")
        definition = self.library.class_called(str(instance.type))
        assert isinstance(definition, ClassDefinition)
        if "__setstate__" in definition.methods:
            self.set_state(instance, state)
            return
        if not isinstance(state, dict):
            self.container.fail("data.pkl", f"the state of {definition.type} is no dict")
        instance.attributes.update(check_attributes(self.container, self.library, definition, state))

    def set_state(self, instance: Object, state: Any) -> None:
        """Run the archive's own `__setstate__`."""
        from irtool.archives.calling import call_method

        call_method(self.library, instance, "__setstate__", [state])

    def member(self, path: str, value: Any) -> EnumMember:
        """The member of an enumeration that has a value."""
        enumeration = self.library.class_called(path)
        if isinstance(enumeration, Enumeration):
            for name, each in enumeration.members.items():
                if each == value and type(each) is type(value):
                    return EnumMember(enumeration.type.name, name)
        self.container.fail("data.pkl", f"'{quoted(path)}' has no member for {quoted(str(value)[:40])}")
        raise AssertionError

    def storage(self, dtype: str, key: str, count: int) -> Storage:
        """The storage of a key, the same each time."""
        known = self._storages.get((self._folder, key))
        if known is None:
            record = f"{self._folder}/{key}"
            known = self._storages[self._folder, key] = read_storage(self.container, record, dtype, count, self.is_big)
        elif (known.dtype, known.count) != (dtype, count):
            self.container.fail(f"{self._folder}/{key}", f"{known.count} elements of {known.dtype}, and {count} of {dtype}")
        return known

    def storages(self, folder: str) -> list[Storage]:
        """The storages that were read, of the tensors of one folder's pickle."""
        return [storage for (of, _), storage in self._storages.items() if of == folder]

    def call(self, what: str, arguments: Sequence[Any]) -> Any:
        """What the functions give that a pickle may call."""
        return getattr(self, f"_{what}")(*arguments)

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, extra: Any = None) -> Any:
        array = strided(storage, offset, size, stride)
        if storage.dtype in QUANTIZED:
            raise UnsupportedError(f"{storage.where}: tensors of {storage.dtype} are not supported yet", code="E0404")
        if isinstance(extra, dict) and extra.get("conj"):
            array = np.conjugate(array)
        self.trainable[id(array)] = array, requires_grad is True
        return array

    def _quantized(self, storage: Any, offset: Any, size: Any, stride: Any, how: Any, *_: Any) -> Quantized:
        array = strided(storage, offset, size, stride)
        if storage.dtype not in QUANTIZED:
            raise TypeError(f"a quantized tensor of {storage.dtype}")
        scheme, scale, zero_point, *axis = how
        if scheme.name == "per_tensor_affine":
            return Quantized(array, storage.dtype, float(scale), int(zero_point))
        scales, zeros = np.asarray(scale), np.asarray(zero_point)
        if not 0 <= axis[0] < array.ndim or scales.shape != (array.shape[axis[0]],) or zeros.shape != scales.shape:
            raise ValueError("scales and zero points do not fit the tensor")
        return Quantized(array, storage.dtype, scales, zeros, axis[0])

    def _sparse(self, layout: Any, size: Any, requires_grad: Any, indices: Any, values: Any) -> Any:
        raise UnsupportedError(f"{self.container.name}: sparse tensors are not supported yet", code="E0404")

    def _mapping(self) -> dict[Any, Any]:
        return {}

    def _listed(self, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise TypeError("expected a list")
        return items

    def _tagged(self, value: Any, tag: Any) -> Any:
        return value

    def _row(self, number: Any) -> Any:
        raise TypeError("only archives of torch 1.1 and 1.2 number their tensors")

    def _complex_number(self, real: Any, imaginary: Any) -> complex:
        return complex(float(real), float(imaginary))

    def _device(self, name: Any, index: Any = None) -> str:
        if not isinstance(name, str) or index is not None and not isinstance(index, int):
            raise TypeError("expected a name and a number")
        return name if index is None else f"{name}:{index}"
