"""TorchScript archives that torch wrote give torch's results, call after call; damaged ones are refused in one line."""
from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool

FOLDER = Path(__file__).parent / "data" / "archives"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt"))


def leaves(value: Any) -> list[Any]:
    """Tensors and numbers of a result, in order."""
    return [each for item in value for each in leaves(item)] if isinstance(value, list | tuple) else [value]


def arguments(arrays: Any, call: int) -> list[Any]:
    """The arguments of a call: numbers where they are 0-d."""
    values = [arrays[key] for key in arrays.files if key.startswith(f"{call}.") and ".out" not in key]
    return [each.item() if each.ndim == 0 else each for each in values]


@pytest.mark.parametrize("name", NAMES)
def test_calls_give_what_torch_gives(name: str) -> None:
    module = irtool.load(FOLDER / f"{name}.pt")
    with np.load(FOLDER / f"{name}.npz") as arrays:
        for call in range(2):
            results = leaves(module(*arguments(arrays, call)))
            for index, result in enumerate(results):
                expected = arrays[f"{call}.out.{index}"]
                assert np.asarray(result).dtype == expected.dtype or not hasattr(result, "dtype")
                np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-6)


def test_the_file_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    path.write_bytes((FOLDER / "state.pt").read_bytes())
    module = irtool.load(path)
    module(np.ones(2, np.float32), 3)
    assert module.steps == 3
    assert module.seen == [0, 3]
    assert path.read_bytes() == (FOLDER / "state.pt").read_bytes()
    assert irtool.load(path).steps == 0


def test_bytes_and_file_objects_are_taken() -> None:
    data = (FOLDER / "net_traced.pt").read_bytes()
    x = np.ones((1, 2, 4, 4), np.float32)
    first, second = irtool.load(data)(x), irtool.load(io.BytesIO(data))(x)
    np.testing.assert_array_equal(first, second)


def test_attributes_parameters_and_modules() -> None:
    module = irtool.load(FOLDER / "net_train.pt")
    names = [name for name, _ in module.named_parameters()]
    assert names == ["body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias", "head.weight", "head.bias"]
    assert list(module.state_dict())[4:7] == ["body.1.running_mean", "body.1.running_var", "body.1.num_batches_tracked"]
    x = np.ones((2, 2, 5, 5), np.float32)
    module.eval()
    once = module(x)
    module.head.bias += 1
    np.testing.assert_allclose(module(x), once + 1, rtol=1e-6)
    with pytest.raises(irtool.Error, match="takes bool"):
        module.training = "yes"
    for wrong in (3, 0.5, None, "yes", np.ones(1)):        # torch, too, takes 3 in an assignment and refuses it here
        with pytest.raises(irtool.Error, match="train: on=.*; expected True or False"):
            module.train(wrong)
        with pytest.raises(irtool.Error, match="requires_grad_: on=.*; expected True or False"):
            module.requires_grad_(wrong)
    assert module.training is module.body.training is False
    with pytest.raises(AttributeError, match="did you mean 'training'"):
        _ = module.trainin


def test_an_attribute_written_between_two_calls_is_seen() -> None:
    """Whichever way it was written: calls keep what attributes hold until one of them is written."""
    module, x = irtool.load(FOLDER / "net_train.pt").eval(), np.ones((2, 2, 5, 5), np.float32)
    first, bias = module(x), module.head.bias.copy()

    def by_assignment() -> None:
        module.head.bias = bias + 1

    def by_dict() -> None:
        module.load_state_dict({**module.state_dict(), "head.bias": bias + 2})

    def in_place() -> None:
        module.head.bias[...] = bias + 3

    for step, write in enumerate((by_assignment, by_dict, in_place), 1):
        write()
        np.testing.assert_allclose(module(x), first + step, rtol=1e-5)
    module.train()
    assert abs(module(x) - first - 3).max() > 1e-3        # batch norm by the batch
    trained = module.state_dict()["body.1.running_mean"].copy()
    assert abs(module(x) - module.eval()(x)).max() > 1e-3
    module.to(np.float64)
    assert module(x.astype(np.float64)).dtype == np.float64
    assert module.state_dict()["body.1.running_mean"].tolist() != trained.tolist()


def test_gradients_of_arguments_and_parameters() -> None:
    module = irtool.load(FOLDER / "net_traced.pt")
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    ones = np.ones((1, 3), np.float32)
    by_input, by_bias = module.vjp("forward", [x], [ones], [0, "head.bias"])
    np.testing.assert_array_equal(by_bias, np.ones(3))
    step = np.zeros_like(x)
    step[0, 1, 2, 2] = 1e-2
    slope = (module(x + step) - module(x - step)).sum() / 2e-2
    assert abs(slope - by_input[0, 1, 2, 2]) < 1e-3


def rewritten(**records: bytes | None) -> bytes:
    """The archive `state` with some records replaced, or left out."""
    stream = io.BytesIO()
    with zipfile.ZipFile(FOLDER / "state.pt") as old, zipfile.ZipFile(stream, "w") as new:
        for info in old.infolist():
            name = info.filename.partition("/")[2]
            data = records.get(name.replace(".", "_"), old.read(info))
            if data is not None:
                new.writestr(info.filename, data)
    return stream.getvalue()


@pytest.mark.parametrize(("records", "message"), [
    ({"data_pkl": b"\x80\x02cos\nsystem\n."}, "nothing is imported or called"),
    ({"data_pkl": b"\x80\x02]"}, "ends without STOP"),
    ({"data_pkl": b"\x80\x02X\xff\xff\xff\x7fa."}, "bytes wanted where"),
    ({"data_pkl": None}, "'data.pkl' is missing"),
    ({"constants_pkl": None}, "'constants.pkl' is missing"),
    ({"version": b"11"}, "version 11 of the format, expected 1 to 10"),
    ({"byteorder": b"middle"}, "expected little or big"),
    ({"data/0": b"abc"}, "expected 2 elements of float32"),
])
def test_damaged_archives_are_refused(records: dict[str, bytes | None], message: str) -> None:
    with pytest.raises(irtool.Error, match=message):
        irtool.load(rewritten(**records))(np.ones(2, np.float32))


def written(version: int, body: str, constants: bytes = b"\x80\x02).", **records: bytes) -> bytes:
    """An archive by hand, of a module whose method `forward` returns an expression of x and y; `records` are its `constants/...`."""
    code = ("class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  def forward(self: __torch__.M,\n    x: Tensor,\n    y: Tensor) "
            f"-> Tensor:\n    return {body}\ndef halved(x: Tensor) -> Tensor:\n  return torch.div(x, 2)\n")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}b.")
        archive.writestr("m/constants.pkl", constants)
        for name, data in records.items():
            archive.writestr(f"m/constants/{name}", data)
        archive.writestr("m/version", str(version))
        archive.writestr("m/code/__torch__.py", code)
    return file.getvalue()


def test_a_buffer_that_may_be_none_is_not_in_the_state() -> None:
    """As in torch, which goes by the declared type."""
    code = ("class M(Module):\n  __parameters__ = []\n  __buffers__ = [\"b\", ]\n  b : Optional[Tensor]\n"
            "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    self.b = x\n    return x\n")
    file = io.BytesIO(written(3, "x"))
    records = {"m/code/__torch__.py": code.encode(), "m/data.pkl": b"\x80\x02c__torch__\nM\n)\x81}(X\x01\x00\x00\x00bNub."}
    changed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, records.get(name, old.read(name)))
    module = irtool.load(changed.getvalue())
    module(np.ones(2, np.float32))
    assert module.b.tolist() == [1, 1]
    assert not module.state_dict() and not list(module.named_buffers())
    assert module.load_state_dict({}) == ([], [])


FRACTION = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nDoubleStorage\nX\x01\x00\x00\x000"
            b"X\x03\x00\x00\x00cpuK\x01tQK\x00)(t\x89ccollections\nOrderedDict\n)RtR\x85.")
"""The constants of an archive: one tensor of float64 without dimensions."""


@pytest.mark.parametrize(("body", "dtype"), [         # what torch 2.13 gives for the same files
    ("torch.mul(x, CONSTANTS.c0)", "float32"),
    ("torch.add(x, CONSTANTS.c0, alpha=2)", "float32"),
    ("torch.sub(x, CONSTANTS.c0)", "float32"),
    ("torch.div(x, CONSTANTS.c0)", "float32"),
    ("torch.mul(CONSTANTS.c0, x)", "float64"),
    ("torch.div(x, CONSTANTS.c0, rounding_mode=\"floor\")", "float64"),
    ("torch.maximum(x, CONSTANTS.c0)", "float64"),
])
def test_constants_that_are_second_operands_are_numbers(body: str, dtype: str) -> None:
    archive = written(8, body, FRACTION, **{"0": np.float64(1.5).tobytes()})
    assert irtool.load(archive)(np.array([3, -4]), np.ones(1)).dtype == dtype


@pytest.mark.oracle
def test_traced_numbers_have_torch_s_dtypes() -> None:
    torch = pytest.importorskip("torch")
    forms = (lambda x: x * 1.5, lambda x: 2 * x, lambda x: x + 2.5, lambda x: 1.5 - x, lambda x: x / 3, lambda x: x // 2, lambda x: x - 1,
             lambda x: 0.5 / (x + 1), lambda x: x > 1.5, lambda x: (x + 1) ** 2, lambda x: x % 2, lambda x: x.clone().mul_(2))
    for form in forms:
        for dtype in ("int64", "uint8", "float16", "float32", "float64", "complex64"):
            x = torch.ones(2).to(getattr(torch, dtype))
            archive = io.BytesIO()
            try:
                torch.jit.save(torch.jit.trace(form, x), archive)
            except RuntimeError:        # no such operator on complex numbers
                continue
            wanted = torch.jit.load(io.BytesIO(archive.getvalue()))(x).numpy()
            found = irtool.load(archive.getvalue())(x.numpy())
            assert found.dtype == wanted.dtype and np.allclose(found, wanted), (dtype, found, wanted)


WHOLE, F = np.array([7, -7, 5]), np.array([7, -7, 5], np.float32)
T = np.array([3, -2, -1])
REFUSED = None


@pytest.mark.parametrize(("version", "body", "x", "y", "expected"), [     # what torch 2.13 gives for the same files
    (3, "torch.div(x, y)", WHOLE, T, np.array([2, 3, -5])),
    (4, "torch.div(x, y)", WHOLE, -2 * T, np.array([-7 / 6, -1.75, 2.5], np.float32)),
    (3, "torch.div(x, y)", F, T, np.array([7 / 3, 3.5, -5], np.float32)),
    (3, "torch.div(x, 2)", WHOLE, T, np.array([3, -3, 2])),
    (3, "torch.div(x, 2.)", WHOLE, T, np.array([3.5, -3.5, 2.5], np.float32)),
    (3, "__torch__.halved(x, )", WHOLE, T, np.array([3.5, -3.5, 2.5], np.float32)),       # functions are not upgraded, methods are
    (3, "torch.div_(torch.clone(x), y)", WHOLE, T, np.array([2, 3, -5])),
    (3, "torch.div_(torch.clone(x), 2)", WHOLE, T, np.array([3, -3, 2])),
    (3, "torch.div(x, y, out=torch.zeros([3], dtype=4))", WHOLE, T, np.array([2, 3, -5])),
    (3, "torch.div(x, y, out=torch.zeros([3]))", WHOLE, T, np.array([7 / 3, 3.5, -5], np.float32)),
    (3, 'torch.div(x, y, rounding_mode="floor")', WHOLE, T, np.array([2, 3, -5])),
    (4, "torch.full([2], 3)", WHOLE, T, np.array([3, 3], np.float32)),
    (5, "torch.full([2], 3)", WHOLE, T, np.array([3, 3])),
    (4, "torch.full([2], 3, dtype=3)", WHOLE, T, np.array([3, 3], np.int32)),
    (7, "torch.slice(torch.linspace(0, 99), 0, 0, 3)", WHOLE, T, np.array([0, 1, 2], np.float32)),
    (8, "torch.linspace(0, 1)", WHOLE, T, REFUSED),
    (7, "torch.linspace(0, 10, 3, out=torch.zeros([3], dtype=4))", WHOLE, T, np.array([0, 5, 10])),
    (8, "torch.slice(torch.logspace(0, 99, None, 1.), 0, 0, 3)", WHOLE, T, np.array([1, 1, 1], np.float32)),
    (9, "torch.logspace(0, 1)", WHOLE, T, REFUSED),
    (8, "torch.logspace(0, 2, 3, out=torch.zeros([3], dtype=4))", WHOLE, T, np.array([1, 10, 100])),
])
def test_operators_mean_what_they_meant_in_the_version_of_the_file(version: int, body: str, x: Any, y: Any, expected: Any) -> None:
    if expected is REFUSED:
        with pytest.raises(irtool.Error, match="Arguments for call are not valid"):
            irtool.load(written(version, body))(x, y)
        return
    result = irtool.load(written(version, body))(x, y)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6)


OLD_CODE = """op_version_set = 0
def forward(self,
    x: Tensor,
    n: int) -> Tuple[Tensor, int]:
  y, i = x, 0
  _0 = torch.lt(0, n)
  while _0:
    y_1 = torch.add(torch.mm(y, self.cell.w), getattr(self, "0").b, alpha=1)
    i_1 = torch.add(i, 1)
    _0, y, i = torch.lt(i_1, n), y_1, i_1
  l = [torch.mul(y, CONSTANTS.c2), y]
  if torch.__isnot__(annotate(Tensor, None), None):
    z = torch._unwrap_optional(annotate(Tensor, None))
  else:
    z = torch.select(l, 0)
  return (z, torch.select(ops.prim.shape(z), 1))
def halved(self,
    x: Tensor) -> Tensor:
  return torch.div(x, 2)
"""


def written_as_of_old(code: str = OLD_CODE, **changes: object) -> bytes:
    """An archive as torch 1.0 writes them: a module with two in it, one without code."""
    def row(index: int, *size: str) -> dict[str, object]:
        strides = ["2", "1"][2 - len(size):]
        return {**({"dims": [*size], "strides": strides} if size else {}), "offset": "0", "requiresGrad": bool(size), "dataType": "FLOAT",
                "data": {"key": f"tensors/{index}"}, "device": "cpu"}

    cell = {"name": "cell", "parameters": [{"isBuffer": False, "tensorId": "0", "name": "w"}]}
    bias = {"name": "0", "parameters": [{"isBuffer": True, "tensorId": "1", "name": "b"}]}
    main = {"name": "net", "torchscriptArena": {"key": "code/net.py"}, "submodules": [cell, bias]}
    model = {"protoVersion": "1", "mainModule": main, "tensors": [row(0, "2", "2"), row(1, "2"), row(2)], **changes}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("net/version", "1\n")
        archive.writestr("net/code/net.py", code)
        for index, values in enumerate(([0, 1, 1, 0], [1, 10], [2])):
            archive.writestr(f"net/tensors/{index}", np.array(values, np.float32).tobytes())
        archive.writestr("net/model.json", json.dumps(model))
    return file.getvalue()


def test_archives_of_torch_1_0_run() -> None:
    module = irtool.load(written_as_of_old())
    result, length = module(np.array([[1, 2]], np.float32), 1)
    np.testing.assert_array_equal(result, np.array([[6, 22]], np.float32))
    assert length == 2
    np.testing.assert_array_equal(module.halved(np.array([7, -7])), [3, -3])
    assert [name for name, _ in module.named_parameters()] == ["cell.w"]
    assert [name for name, _ in module.named_buffers()] == ["0.b"]
    (gradient,) = module.vjp("forward", [np.array([[1, 2]], np.float32), 1], [np.ones((1, 2), np.float32)], ["cell.w"])
    np.testing.assert_array_equal(gradient, [[2, 2], [4, 4]])


@pytest.mark.parametrize("changes", [
    {"tensors": []}, {"tensors": [1]}, {"mainModule": []}, {"mainModule": {"name": 1}}, {"mainModule": {"submodules": [3]}},
    {"mainModule": {"attributes": [{"name": "a", "type": "int", "id": "7"}]}}, {"mainModule": {"parameters": [{"name": "a"}]}},
    {"tensors": [{"dims": ["-1"], "strides": ["1"], "data": {"key": "tensors/0"}}]}, {"tensors": [{"data": {"key": "../tensors/0"}}]},
    {"tensors": [{"dims": ["9"], "strides": ["1"], "data": {"key": "tensors/0"}}]},
    {"tensors": [{"dims": [[]], "data": {"key": "tensors/0"}}]},
])
def test_damaged_archives_of_torch_1_0_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(irtool.Error):
        irtool.load(written_as_of_old(**changes))(np.ones((1, 2), np.float32), 1)


@pytest.mark.parametrize("call", ["torch.div(x, 2.5)", "torch.div_(torch.clone(x), 2.5)"])
def test_numbers_had_the_dtype_of_the_tensor_up_to_torch_1_2(call: str) -> None:
    """Later versions made float32 of both."""
    module = irtool.load(written_as_of_old(f"op_version_set = 0\ndef forward(self,\n    x: Tensor) -> Tensor:\n  return {call}\n"))
    np.testing.assert_array_equal(module(np.array([7, -7])), np.array([3, -3]), strict=True)
    np.testing.assert_array_equal(module(np.array([5.0, -5.0])), [2, -2])


def test_arange_gave_floats_in_methods_of_torch_1_2() -> None:
    code = "op_version_set = 1\ndef forward(self,\n    n: int) -> Tensor:\n  return torch.arange(n, dtype=None, layout=None, device=None)\n"
    result = irtool.load(written_as_of_old(code))(3)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [0, 1, 2])


def test_an_empty_tensor_grows_when_it_is_out() -> None:
    module = irtool.load(written(8, "torch.add(torch.linspace(0, 2, 3, out=y), y)"))
    for size in (0, 3, 0, 0, 3):
        np.testing.assert_array_equal(module(np.ones(1, np.float32), np.zeros(size, np.float32)), [0, 2, 4])


def test_operators_of_other_libraries_are_brought_along(monkeypatch: pytest.MonkeyPatch) -> None:
    from irtool.ops import python_op

    monkeypatch.setattr(python_op, "_registered", {})
    x = np.ones(2, np.float32)
    data = written(10, "ops.boxes.scaled(x, y, 0.5)")
    with pytest.raises(irtool.Error, match=r"boxes::scaled is not supported yet: irtool.register_python_op\('boxes::scaled', function\)"):
        irtool.load(data)(x, x)
    irtool.register_python_op("boxes::scaled", lambda x, y, scale: x * np.float32(scale) + y)
    np.testing.assert_array_equal(irtool.load(data)(x, x), [1.5, 1.5])
