"""The kind of a file, recognised by its bytes: an archive, weights, or text."""
from __future__ import annotations

from typing import Any

from irtool.archives.archive import Archive
from irtool.archives.container import Container
from irtool.archives.model_json import OldArchive
from irtool.archives.script_module import ScriptModule
from irtool.archives.torch_saves import MAGIC, read_legacy, read_zip
from irtool.interop import npy, npz, safetensors
from irtool.ir.errors import Error
from irtool.ops.array_library import np

ZIP = b"PK\x03\x04", b"PK\x05\x06"
ZIP_END, ZIP_TAIL = b"PK\x05\x06", 65_557
"""The beginning of a zip's last record, and its largest distance from the end."""


def content_of(memory: Any, name: str) -> Archive | npz.Archive | None:
    """The archive, or the arrays, in a file; None for other files, which may be text. Raises Error."""
    start = bytes(memory[:262])
    if start[:len(MAGIC)] == MAGIC:
        return read_legacy(memory, name)
    is_zip = start[:4] in ZIP
    if not is_zip and safetensors.is_safetensors(start, len(memory)):
        return safetensors.decode(memory, name)
    if not is_zip and ZIP_END not in bytes(memory[-ZIP_TAIL:]):
        if start[:6] == npy.MAGIC:
            raise Error(f"{name}: a single array (.npy); expected an archive, or arrays by name", code="E0711")
        if start[257:262] == b"ustar":
            raise Error(f"{name}: a tar, as torch.save wrote before 0.1.10: load and save it with a torch that reads it", code="E0711")
        return None
    if is_npz(memory):
        return npz.decode(bytes(memory), name)
    container = Container(memory, name)
    if "data.pkl" in container and "constants.pkl" not in container and not container.names("code/"):
        return read_zip(container)
    if "model.json" in container and "data.pkl" not in container and not container.names("models/"):
        return OldArchive(container)
    return Archive(container)


def is_npz(memory: Any) -> bool:
    """Is the first record of a zip an array of NumPy?"""
    length = int.from_bytes(bytes(memory[26:28]), "little")
    return bytes(memory[:4]) == ZIP[0] and bytes(memory[30:30 + length]).endswith(b".npy")


def weights_in(memory: Any, name: str, has_attributes: bool = False) -> npz.Archive:
    """The arrays of a file of weights, or the state of an archive's module. Raises Error.

    has_attributes: of a module, all attributes that an .npz can contain, not only parameters and buffers.
    """
    content = content_of(memory, name)
    if content is None:
        raise Error(f"{name}: expected weights: a .npz, a .safetensors, or a file of torch", code="E0701")
    if not isinstance(content, Archive):
        return content
    module = ScriptModule.of_archive(content)
    if not has_attributes:
        return state_of(module)
    weights = npz.Archive()
    for key, value in module.named_attributes():
        try:
            weights.put(key, value)
        except Error:       # an .npz has no form for a value of this type
            pass
    return weights


def state_of(module: ScriptModule) -> npz.Archive:
    """Parameters and buffers by dotted name, with the names of those that are bfloat16 in the file."""
    state = module.state_dict()
    rounded = [storage.array for storage in module._program.archive.storages("data") if storage.dtype == "bfloat16"]
    return npz.Archive(state, bfloat16={name for name, array in state.items()
                                        if array.dtype == np.float32 and any(np.may_share_memory(array, each) for each in rounded)})
