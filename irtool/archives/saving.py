"""`save`: a module as an archive that torch and irtool load.

The code is copied unchanged, with the version that determines what its operators mean; the state is pickled anew from the present
attributes.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from irtool.archives.archive import Archive
from irtool.archives.calling import call_method
from irtool.archives.model_json import OldArchive
from irtool.archives.module_writer import of_graphs, write_methods
from irtool.archives.pickle_writer import PickleWriter, World
from irtool.archives.storage_writer import StorageWriter, Stored
from irtool.archives.zip_writer import ZipWriter
from irtool.interop.whole_file import whole_file
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.rounded import warn_of_rounded
from irtool.ir.types import NamedTupleType, Type
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.meanings import Enumeration

if TYPE_CHECKING:
    from irtool.archives.script_module import ScriptModule

STATE = "data.pkl", "data/", "traced_inputs", "byteorder", ".data/", "version", "constants/"
"""Records, or folders of records, that are written anew or left out; all others are copied."""


def save(module: ScriptModule | Graph | Module, target: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a TorchScript archive: of a loaded module, its code and its present attributes; of a graph, a module that computes it.

    module: a result of `load`; or a graph, which becomes the method `forward`; or a Module, whose graphs become methods with their names,
    the first one `forward` if none is called so.

    target: a path, where the file is written completely or not at all, even if the module is mapped from it; or a binary file object. The
    same module is saved as the same bytes.

    Warns (RoundedWarning) of constants that the text has with a few digits, since the archive does not show it.
    Raises Error for values that archives cannot contain, UnsupportedError for nodes without source and for names that are no names in a
    text; OSError if the file cannot be written.
    """
    if isinstance(module, Graph | Module):
        methods, name = of_graphs(module), module.name if isinstance(module, Graph) else ""
        for method in methods:
            warn_of_rounded(method.graph)

        def write(file: BinaryIO) -> None:
            write_methods(file, methods, name=name or "Graph")
    else:
        if not hasattr(module, "_program"):
            raise Error(f"save: expected a module as `load` returns it, a Module or a Graph, got {type(module).__name__}")

        def write(file: BinaryIO) -> None:
            write_module(module, file)
    if isinstance(target, str | os.PathLike):
        if os.fspath(target).endswith(".ir"):
            raise UnsupportedError("save: NAME.ir asks for text, and this writes archives; `irtool convert` writes text and weights "
                                   "beside it", code="E0404")
        with whole_file(os.path.realpath(os.fspath(target))) as file:
            write(file)
    elif hasattr(target, "write"):
        write(target)
    else:
        raise Error(f"save: expected a path or a binary file object, got {type(target).__name__}")


def write_module(module: ScriptModule, file: BinaryIO) -> None:
    """Write the archive of a module into a seekable file. Raises Error."""
    archive = module._program.archive
    storages = StorageWriter(archive.storages("data"))
    world = ModuleWorld(module)
    state = PickleWriter(world, storages).write(module._instance, module._instance.type)
    records = ZipWriter(file)
    for record in archive.container.names():
        if record.startswith("extra/"):
            records.write(record, archive.container.read(record))
    for stored in storages.stored:
        records.write(f"data/{stored.key}", stored.elements())
    records.write("data.pkl", state)
    if isinstance(archive, OldArchive):
        write_old(archive, world, records)
    else:
        for record in archive.container.names():
            if not record.startswith((*STATE, "extra/")):
                records.write(record, archive.container.read(record), record.endswith((".py", ".debug_pkl")))
        write_constants(archive, records)
    records.write("version", str(archive.version).encode())
    records.write("byteorder", b"little")
    records.close()


def write_constants(archive: Archive, records: ZipWriter) -> None:
    """The tensors of the constants: with their present elements if they were read, else the bytes of the file."""
    if archive.is_big:
        _ = archive.constants
    read = {storage.where.rpartition("'constants/")[2].rstrip("'"): storage for storage in archive.storages("constants")}
    for record in archive.container.names("constants/"):
        storage = read.get(record.removeprefix("constants/"))
        data = archive.container.read(record) if storage is None else (
            Stored("BFloat16Storage" if storage.dtype == "bfloat16" else "", "", storage.count, storage.array).elements())
        records.write(record, data)


def write_old(archive: OldArchive, world: World, records: ZipWriter) -> None:
    """Code and constants of an archive with `model.json`, in today's form."""
    for record, text in archive.new_code().items():
        records.write(record, text.encode(), is_code=True)
    storages = StorageWriter()
    constants = PickleWriter(world, storages).write(archive.constants, None)
    for stored in storages.stored:
        records.write(f"constants/{stored.key}", stored.elements())
    records.write("constants.pkl", constants)


class ModuleWorld(World):
    """The instances of a module that is being pickled."""

    def __init__(self, module: ScriptModule) -> None:
        self.library = module._program.library
        self.trainable = module._program.trainable

    def state(self, instance: Object) -> tuple[Any, Type | Sequence[tuple[str, Type]]]:
        definition = self.library.definition(instance.type)
        if "__getstate__" in definition.methods and "__setstate__" in definition.methods:
            graph = self.library.method(instance.type, "__getstate__")
            (value,) = call_method(self.library, instance, "__getstate__", [])
            return value, graph.outputs[0].type
        return instance.attributes, [(name, definition.attributes[name]) for name in definition.declared]

    def number(self, member: EnumMember) -> Any:
        enumeration = self.library.class_called(member.owner)
        assert isinstance(enumeration, Enumeration)
        return enumeration.members[member.name]

    def requires_grad(self, array: Any) -> bool:
        known = self.trainable.get(id(array))
        return known is not None and known[1]

    def class_name(self, type: Type) -> str:
        if isinstance(type, NamedTupleType):
            name = self.library.structure_named(type)
            if name is not None:
                return name
        return super().class_name(type)
