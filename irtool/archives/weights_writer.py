"""Arrays by name, written as `torch.save` writes a dict of tensors, for `torch.load(file, weights_only=True)`."""
from __future__ import annotations

import io
from typing import Any

from irtool.archives.pickle_writer import PickleWriter, World
from irtool.archives.storage_writer import StorageWriter
from irtool.archives.storages import Storage
from irtool.archives.zip_writer import ZipWriter
from irtool.interop.npz import Archive
from irtool.ops.array_library import np


class Weights(World):
    """The properties of tensors of which only the elements are known."""

    def requires_grad(self, array: Any) -> bool:
        """No tensor of a state dict does."""
        return False


def encode(archive: Archive) -> bytes:
    """The bytes of the file. Arrays that share memory share it in the file, too. Raises UnsupportedError for dtypes without a storage
    class."""
    values = {name: archive.get(name) for name in archive.arrays}
    rounded = []
    for name in archive.bfloat16 - archive.none:
        flat = np.ascontiguousarray(archive.arrays[name], np.float32).reshape(-1)
        values[name] = flat.reshape(archive.arrays[name].shape)
        rounded.append(Storage("bfloat16", flat.size, flat, ""))
    storages = StorageWriter(rounded)
    file = io.BytesIO()
    records = ZipWriter(file)
    records.write("data.pkl", PickleWriter(Weights(), storages).write(values, None))
    records.write("byteorder", b"little")
    for stored in storages.stored:
        records.write(f"data/{stored.key}", stored.elements())
    records.write("version", b"3\n")
    records.close()
    return file.getvalue()
