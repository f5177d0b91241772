"""TorchScript archives (`.pt`, `.ptl`): `load` returns a `ScriptModule`, whose methods run without torch.

Reading
    file_kinds          what a file is, by its bytes
    container           the zip and its records, checked
    pickles             pickles as data, nothing executed; pickled_values: values made by the functions that pickles call
    packed_states       states of torch's own classes; declared_values: comparison of values with declared types
    storages            tensors in mapped memory
    archive             the instances of an archive, from all of these; model_json: those of archives of torch 1.0 to 1.2
    torch_saves         files of torch.save
    text_state          attributes for a printed graph, from a file of weights
    inspection          the content of an archive
Calling
    script_module       `ScriptModule`, for users; state: its state as a whole
    opening             a method with its calls inlined; lowering: as a graph of arrays
    calling             calls of methods; module_call: of the module, with hooks; replacing: with other arrays in place of parameters
    code_places         places of errors in an archive's code
Writing
    saving              `save`
    module_writer       a module made of graphs; method_source: graphs as methods
    pickle_writer, storage_writer, zip_writer    parts of the file; weights_writer: files for torch.load
Rewriting
    rewriting           passes over methods; flat_methods: methods as graphs
    freezing            `freeze`; packed_text: packed parameters as calls

Five places know the types of attributes: CALLED of pickles.py (the function that a pickle calls), the method of pickled_values.py (which
makes the value), WORDS of declared_values.py (does the value fit the declared type?), `PickleWriter._value` or `_plain` (writing it), PLAIN
of freezing.py (constants of graphs). Lists, tuples and dicts of such values need nothing more.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from irtool.archives.archive import Archive
from irtool.archives.container import in_memory
from irtool.archives.file_kinds import content_of
from irtool.archives.script_module import ScriptModule
from irtool.ir.collector import Building
from irtool.ir.errors import Error

if TYPE_CHECKING:
    from irtool.ir.module import Module


def load(source: str | os.PathLike[str] | bytes | BinaryIO) -> Any:
    """The content of a file, whose kind is recognised by its bytes, not its name. source: a path, the bytes of a file, or a file object.

    A TorchScript archive becomes a ScriptModule; weights alone (of torch.save, .npz, .safetensors) a dict of arrays, those in nested
    dicts by dotted name; IR text a Module, with the weights of the file that the text names.
    Tensors of a file given by its path are mapped, not copied: values that a method writes stay in memory, and never reach the file.
    Python executes nothing in the file. Raises Error, which names the record, for a damaged file and for one of another kind;
    UnsupportedError for what is not supported; OSError if the file cannot be read.
    """
    memory, name = in_memory(source)
    content = content_of(memory, name)
    if content is None:
        return parsed(bytes(memory), name)
    with Building():
        return ScriptModule.of_archive(content) if isinstance(content, Archive) else content.arrays


def parsed(data: bytes, path: str) -> Module:
    """The module of IR text, with the weights that it names. Raises ParseError; Error where those are missing, or others by now."""
    from irtool.interop.beside import attach_content, named_in
    from irtool.ir.source import SourceFile
    from irtool.text.parser import parse

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Error(f"{path}: neither an archive, nor weights, nor text: byte {error.start} is no UTF-8", code="E0711") from None
    module = parse(text, path)
    beside = named_in(module, SourceFile(path, text))
    if beside is not None:
        place = os.path.join(os.path.dirname(path), beside.name)
        try:
            with open(place, "rb") as file:
                attach_content(module, beside, file.read(), place)
        except OSError as error:
            raise Error(diagnostics=[beside.problem(f"constants are in {place}: {error.strerror}")], code="E0706") from None
    return module


__all__ = ["ScriptModule", "load"]
