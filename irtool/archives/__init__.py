"""TorchScript archives (`.pt`, `.ptl`): `load` gives a `ScriptModule`, whose methods run without torch.

container.py: the zip and its records, checked; pickles.py: pickles as data, nothing executed; storages.py: tensors on mapped memory;
archive.py: the three together, as the instances of an archive; model_json.py: the same for archives of torch 1.0 to 1.2; opening.py: a
method with its calls opened; lowering.py: the same as a graph of arrays; calling.py: calls of it; script_module.py: what users see.
"""
from __future__ import annotations

import os
from typing import BinaryIO

from irtool.archives.archive import Archive
from irtool.archives.container import Container
from irtool.archives.model_json import OldArchive
from irtool.archives.script_module import ScriptModule


def load(source: str | os.PathLike[str] | bytes | BinaryIO) -> ScriptModule:
    """The module of a TorchScript archive: a path, the bytes of one, or a binary file object.

    Tensors of a file given by its path are mapped, not copied: what a method writes stays in memory, and never reaches the file.
    Nothing in the file is executed by Python. Raises Error, which names the record, for a file that is damaged or is no archive;
    UnsupportedError for what is not supported yet; OSError where the file cannot be read.
    """
    container = Container.of(source)
    is_old = "model.json" in container and "data.pkl" not in container
    return ScriptModule.of_archive((OldArchive if is_old else Archive)(container))


def is_archive(start: bytes) -> bool:
    """Do the first bytes of a file look like those of a zip?"""
    return start[:4] in (b"PK\x03\x04", b"PK\x05\x06")


__all__ = ["ScriptModule", "is_archive", "load"]
