"""TorchScript archives (`.pt`, `.ptl`): `load` gives a `ScriptModule`, whose methods run without torch.

file_kinds.py: what a file is; container.py: the zip and its records, checked; pickles.py: pickles as data, nothing executed; storages.py:
tensors on mapped memory; archive.py: the three together, as the instances of an archive; model_json.py: the same for archives of torch 1.0
to 1.2; torch_saves.py: the same for what torch.save writes; opening.py: a method with its calls opened; lowering.py: the same as a graph of
arrays; calling.py: calls of it; module_call.py: the same with hooks; replacing.py: arrays in place of parameters, and what calls write;
state.py: the state as a whole; code_places.py: where errors are; script_module.py: what users see; inspection.py: what is in a file.

What pickles hold: pickled_values.py, packed_states.py (torch's own classes), declared_values.py (compared with declared types),
text_state.py (attributes of a printed graph). Writing: saving.py `save`; module_writer.py, method_source.py: a module of graphs;
pickle_writer.py, storage_writer.py, zip_writer.py: the file; weights_writer.py: what torch.load reads. Rewriting: rewriting.py passes
over methods; flat_methods.py: methods as graphs; packed_text.py: packed parameters as calls; freezing.py: `freeze`.

Five places know the types of attributes: CALLED of pickles.py (what a pickle calls), the method of pickled_values.py (the value), WORDS of
declared_values.py (does it fit the declared type?), `PickleWriter._value` or `_plain` (writing it), PLAIN of freezing.py (constants of
graphs). Lists, tuples and dicts of such values then need nothing more.
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
    """What a file holds, by its bytes, whatever its name: a path, the bytes of a file, or a binary file object.

    A TorchScript archive gives a ScriptModule; weights alone (what torch.save wrote, .npz, .safetensors) a dict of arrays, those in nested
    dicts by dotted name; IR text a Module, with the weights of the file that it names beside it.
    Tensors of a file given by its path are mapped, not copied: what a method writes stays in memory, and never reaches the file.
    Nothing in the file is executed by Python. Raises Error, which names the record, for a file that is damaged or is none of these;
    UnsupportedError for what is not supported yet; OSError where the file cannot be read.
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
