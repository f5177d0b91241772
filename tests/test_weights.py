"""Weights in files: what torch.save wrote, safetensors, npz; read by `irtool.load`, which says of other files what they are."""
from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.interop import npz, safetensors
from irtool.interop.npz import Archive

WEIGHTS = Path(__file__).parent / "data" / "weights"


def same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Equal arrays of equal dtypes under equal names."""
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, name, strict=True)


@pytest.mark.parametrize("name", ["checkpoint", "legacy"])
def test_what_torch_saved_is_read_by_dotted_name(name: str) -> None:
    with np.load(WEIGHTS / "checkpoint.npz") as arrays:
        expected = dict(arrays)
    same(irtool.load(WEIGHTS / f"{name}.pt"), expected)
    same(irtool.load((WEIGHTS / f"{name}.pt").read_bytes()), expected)
    got = irtool.load(WEIGHTS / f"{name}.pt")
    assert np.shares_memory(got["views.0"], got["views.1.0"])


@pytest.mark.parametrize("name, what", [("module", "'net' is a pickled module, 'torch.nn.modules.container.Sequential'"),
                                        ("legacy_module", "a pickled module, '__main__.Net'")])
def test_pickled_modules_are_answered_with_the_way_out(name: str, what: str) -> None:
    with pytest.raises(irtool.Error) as caught:
        irtool.load(WEIGHTS / f"{name}.pt")
    assert what in caught.value.message and "torch.jit.script(module).save" in caught.value.message


def test_files_of_arrays_give_the_same_whatever_their_format() -> None:
    archive = Archive({"a.b": np.arange(6.0).reshape(2, 3), "c": np.array(True), "empty": np.empty((0, 4), np.int8), "n": np.zeros(()),
                       "h": np.array([1.5], np.float16), "z": np.array([1j], np.complex64), "brain": np.array([[1.5, -2]], np.float32)},
                      none={"n"}, bfloat16={"brain"})
    for module in (npz, safetensors):
        data = module.encode(archive)
        again = module.decode(data, "x")
        same(again.arrays, archive.arrays)
        assert (again.none, again.bfloat16) == (archive.none, archive.bfloat16) and module.encode(again) == data
        same(irtool.load(data), archive.arrays)


def test_a_file_of_safetensors_is_mapped_and_not_changed(tmp_path: Path) -> None:
    data = safetensors.encode(Archive({"w": np.arange(4, dtype=np.float32)}))
    (tmp_path / "w.safetensors").write_bytes(data)
    array = irtool.load(tmp_path / "w.safetensors")["w"]
    array += 1
    assert (tmp_path / "w.safetensors").read_bytes() == data


def file_of(header: Any, data: bytes = b"\0" * 8) -> bytes:
    """A file of safetensors with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def row(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    """A row of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize("header, message", [
    ({"a": row(offsets=[0, 80], shape=[20])}, "bytes 0 to 80, where the file has 8"),
    ({"a": row(), "b": row()}, "begins at byte 0 of the data, where the array before it ends at 8"),
    ({"a": row(shape=[1], offsets=[0, 4]), "b": row(shape=[1], offsets=[2, 6])}, "begins at byte 2"),
    ({"a": row(shape=[1], offsets=[4, 8])}, "begins at byte 4"), ({"a": row(shape=[1], offsets=[0, 4])}, "4 bytes behind the last array"),
    ({"a": row(shape=[3])}, "has 12"), ({"a": row(offsets=[8, 0])}, "bytes 8 to 0"), ({"a": row(shape=[-2])}, "no list of sizes"),
    ({"a": row(shape=[2.0])}, "no list of sizes"), ({"a": row(shape=[True, 2])}, "no list of sizes"),
    ({"a": row(shape="2")}, "no list of sizes"),
    ({"a": row(shape=[2**70])}, "no list of sizes"), ({"a": row(shape=[2**62, 2**62, 0], offsets=[0, 0])}, "damaged"),
    ({"a": row(shape=[1] * 65)}, "65 dimensions"), ({"a": row(dtype="F4")}, "dtype F4 is not supported"),
    ({"a": row(dtype=["F32"])}, "is not supported"), ({"a": {"dtype": "F32"}}, "expected dtype, shape and data_offsets"),
    ({"a": 3}, "expected"),
    ([], "no JSON object"), (b'{"a": 1, "a": 2}', "'a' stands in it twice"), (b"{" * 100_000, "its header"),
    (b'{"a": ' + b"9" * 5000, "its header"),
    (b"{\xff}", "its header"), ({"__metadata__": {"a": 1}}, "expected words"),
    ({"__metadata__": {"irtool.none": "[3]"}}, "no list of keys"),
    ({"__metadata__": {"irtool.none": '["q"]'}}, "behind the last|no key"),
])
def test_headers_that_lie_are_refused(header: Any, message: str) -> None:
    with pytest.raises(irtool.Error, match=message):
        safetensors.decode(file_of(header), "x.safetensors")


def test_a_header_longer_than_the_file_is_refused() -> None:
    for data in (b"", b"\xff" * 8 + b"{", (2**40).to_bytes(8, "little") + b"{}", b"{" * 7):
        with pytest.raises(irtool.Error, match="a header of"):
            safetensors.decode(data, "x.safetensors")


def zip_of(*names: str) -> bytes:
    """A zip of small records."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


@pytest.mark.parametrize("data, message", [
    (zip_of("a.txt", "b.txt"), "a zip of 2 files, 'a.txt' first; expected a TorchScript archive"),
    (zip_of("[Content_Types].xml", "word/document.xml"), "an Office document"), (zip_of("META-INF/MANIFEST.MF"), "a Java archive"),
    (zip_of("m/archive_format", "m/models/model.json"), "a program of torch.export"),
    (zip_of("m/.data/extern_modules", "m/.data/version"), "a package of torch.package"),
    (b"\x93NUMPY\1\0", "a single array"), (b"\x89PNG\r\n", "neither an archive, nor weights, nor text"), (b"\0" * 257 + b"ustar", "a tar"),
])
def test_other_files_are_called_by_their_kind(data: bytes, message: str) -> None:
    with pytest.raises(irtool.Error, match=message):
        irtool.load(data)


def test_ir_text_is_loaded_as_a_module(tmp_path: Path) -> None:
    text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n"
    assert str(irtool.load(text.encode())) == text
