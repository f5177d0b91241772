"""The content of an archive: its classes, its constants, and the instances that its pickle makes."""
from __future__ import annotations

from functools import cached_property
from typing import Any

from irtool.archives.code_places import Code
from irtool.archives.container import Container, described
from irtool.archives.declared_values import check_attributes
from irtool.archives.packed_states import STATES
from irtool.archives.pickled_values import PickledValues
from irtool.archives.pickles import unpickle
from irtool.archives.storages import Storage, is_big_endian, read_storage
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.source import quoted
from irtool.ir.types import parse_type
from irtool.ops.quantized import Packed
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library
from irtool.torchscript.meanings import Enumeration

VERSIONS = 1, 10
"""File formats that torch 2.13 reads."""


class Archive(PickledValues):
    """An archive; its pickles are read on first use of `root`."""

    REQUIRED: tuple[str, ...] = ("data.pkl", "constants.pkl")
    CODE = "code/"

    def __init__(self, container: Container) -> None:
        super().__init__(container.name)
        self.container = container
        self._storages: dict[tuple[str, str], Storage] = {}
        self._folder = "data"
        for record in self.REQUIRED:
            if record not in container:
                what = described([f"{container.root}/{name}" for name in container.names()])
                raise Error(f"{container.name}: no TorchScript archive: the record '{record}' is missing in {what}", code="E0711")
        self.version = self._version()
        self.is_big = is_big_endian(container)
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
            self.container.fail("constants.pkl", "contains no tuple")
        return tuple(values)

    @cached_property
    def root(self) -> Object:
        """The module. Raises Error."""
        _ = self.constants
        root = self._unpickled("data.pkl", "data")
        if not isinstance(root, Object) or not isinstance(self.library.class_called(str(root.type)), ClassDefinition):
            self.container.fail("data.pkl", "contains no module")
        assert isinstance(root, Object)
        return root

    # -- called by pickles (pickles.World)
    def instance(self, path: str) -> Object | Packed:
        """A new instance of a class of the archive, or of one of torch's own classes."""
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
        """Set an instance's attributes; if its class has `__setstate__`, by that method."""
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
        """The member of an enumeration with this value."""
        enumeration = self.library.class_called(path)
        if isinstance(enumeration, Enumeration):
            for name, each in enumeration.members.items():
                if each == value and type(each) is type(value):
                    return EnumMember(enumeration.type.name, name)
        self.container.fail("data.pkl", f"'{quoted(path)}' has no member for {quoted(str(value)[:40])}")
        raise AssertionError

    def storage(self, dtype: str, key: str, count: int) -> Storage:
        """The storage of a key, the same object each time."""
        known = self._storages.get((self._folder, key))
        if known is None:
            record = f"{self._folder}/{key}"
            known = self._storages[self._folder, key] = read_storage(self.container, record, dtype, count, self.is_big)
        elif (known.dtype, known.count) != (dtype, count):
            self.container.fail(f"{self._folder}/{key}", f"{known.count} elements of {known.dtype}, and {count} of {dtype}")
        return known

    def storages(self, folder: str) -> list[Storage]:
        """The storages of one folder's tensors, as far as they were read."""
        return [storage for (of, _), storage in self._storages.items() if of == folder]
