"""Weights in files: what torch.save wrote, safetensors, npz; read by `irtool.load`, which says of other files what they are."""
from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cli.main import main
from irtool.interop import npz, safetensors
from irtool.interop.npz import Archive

WEIGHTS = Path(__file__).parent / "data" / "weights"


def run_cli(*words: Any) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], stdout=out, stderr=err)
    return code, out.getvalue(), err.getvalue()


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


def test_values_that_are_no_tensors_are_named(tmp_path: Path) -> None:
    names = "'epoch', '<key 12>', 'optimizer.param_groups.0.lr' and 14 more"
    with pytest.warns(UserWarning, match=f"checkpoint.pt: {names}: no tensors") as caught:
        irtool.load(WEIGHTS / "checkpoint.pt")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.savez(tmp_path / "state.npz", w=np.ones(2))
        assert run_cli("convert", tmp_path / "state.npz", tmp_path / "state.safetensors")[0] == 0


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
    ([], "no JSON object"), (b'{"a": 1, "a": 2}', "'a' occurs in it twice"), (b"{" * 100_000, "its header"),
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


CONSTANT = """graph(%x : Tensor):
  %w : Float(200) = prim::Constant[value=<Tensor>]()
  %s : Float() = prim::Constant[value={0.5}]()
  %y : Tensor = aten::mul(%x, %w)
  return (%y)
"""


@pytest.mark.parametrize("format, module", [("npz", npz), ("safetensors", safetensors)])
def test_ir_text_is_loaded_with_the_weights_that_it_names(tmp_path: Path, format: str, module: Any) -> None:
    assert str(irtool.load(CONSTANT.encode())) == CONSTANT
    data = module.encode(Archive({"w": np.arange(200, dtype=np.float32)}))
    text = f"# constants: w.{format} sha256={hashlib.sha256(data).hexdigest()}\n{CONSTANT}"
    (tmp_path / "m.ir").write_text(text)
    with pytest.raises(irtool.Error, match="No such file"):
        irtool.load(tmp_path / "m.ir")
    (tmp_path / f"w.{format}").write_bytes(data)
    (y,) = irtool.run(irtool.load(tmp_path / "m.ir").graph(), [np.ones(200, np.float32)])
    np.testing.assert_array_equal(y, np.arange(200))
    assert run_cli("run", tmp_path / "m.ir", "-i", "x=200xf32=1", "-o", tmp_path / "y.safetensors")[0] == 0
    same(irtool.load(tmp_path / "y.safetensors"), {"output0": y})
    assert run_cli("run", tmp_path / "m.ir", "-i", "x=200xf32=1", "--expect", tmp_path / "y.safetensors")[0] == 0
    (tmp_path / f"w.{format}").write_bytes(data[:-1] + b"x")
    with pytest.raises(irtool.Error, match="which is another file"):
        irtool.load(tmp_path / "m.ir")


# -- convert
def test_archives_text_and_weights_become_each_other(tmp_path: Path) -> None:
    path = WEIGHTS.parent / "archives" / "net_train.pt"
    module = irtool.load(path)
    x = np.linspace(-1, 1, 100, dtype=np.float32).reshape(2, 2, 5, 5)
    y = irtool.load(path)(x)        # which trains
    chain = path, "a.pt", "b.ir", "c.pt", "d.ir", "e.npz", "f.safetensors", "g.npz"
    for source, target in itertools.pairwise(chain):
        code, out, err = run_cli("convert", tmp_path / source, tmp_path / target)
        assert (code, out, err) == (0, "", "")
    for name in ("a.pt", "c.pt"):
        np.testing.assert_allclose(irtool.load(tmp_path / name)(x), y, 1e-6)
    for name in ("b.ir", "d.ir"):
        np.testing.assert_allclose(irtool.run(irtool.load(tmp_path / name).graph(), [x])[0], y, 1e-6)
    for name in ("e.npz", "f.safetensors"):
        same(irtool.load(tmp_path / name), irtool.load(tmp_path / "g.npz"))
    assert run_cli("convert", path, tmp_path / "h.safetensors")[0] == 0
    same(irtool.load(tmp_path / "h.safetensors"), module.state_dict())
    for name in ("checkpoint", "legacy"):
        assert run_cli("convert", WEIGHTS / f"{name}.pt", tmp_path / f"{name}.safetensors")[0] == 0
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == (tmp_path / "legacy.safetensors").read_bytes()
    for source in (path, tmp_path / "b.ir", f"{path}:forward"):
        assert run_cli("convert", source, tmp_path / "m.py")[0] == 0 and "def forward(" in (tmp_path / "m.py").read_text()


def test_archives_and_weights_come_from_standard_input(tmp_path: Path) -> None:
    path = WEIGHTS.parent / "archives" / "net_train.pt"
    for name, target in ((path, "a.pt"), (path, "a.ir"), (tmp_path / "a.pt", "b.npz"), (tmp_path / "b.npz", "c.safetensors"),
                         (tmp_path / "c.safetensors", "d.pt"), (tmp_path / "d.pt", "e.npz"), (tmp_path / "a.ir", "f.py")):
        with open(name, "rb") as stream:
            assert main(["convert", "-", str(tmp_path / target)], stream, io.StringIO(), io.StringIO()) == 0
    same(irtool.load(tmp_path / "e.npz"), irtool.load(path).state_dict())
    with open(path, "rb") as stream:
        assert main(["run", "-", "-i", "x=2x2x5x5xf32=1"], stream, io.StringIO(), io.StringIO()) == 0


@pytest.mark.oracle
def test_torch_reads_weights_that_become_a_state_dict(tmp_path: Path) -> None:
    import torch

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = {"a": a, "transposed": a.T, "half": a.astype(np.float16), "brain": np.array([[1.5, -2]], np.float32),
              "z": np.array(1j, np.complex64), "flag": np.array([True]), "empty": np.empty((0, 4), np.int8), "nothing": np.zeros(())}
    (tmp_path / "w.safetensors").write_bytes(safetensors.encode(Archive(arrays, none={"nothing"}, bfloat16={"brain"})))
    assert run_cli("convert", tmp_path / "w.safetensors", tmp_path / "w.pt")[0] == 0
    state = torch.load(tmp_path / "w.pt", weights_only=True)
    assert state.pop("nothing") is None and state["brain"].dtype == torch.bfloat16
    same({name: tensor.float().numpy() if name == "brain" else tensor.numpy() for name, tensor in state.items()},
         {name: array for name, array in arrays.items() if name != "nothing"})


@pytest.mark.parametrize("source, target, code, message", [
    (WEIGHTS / "checkpoint.pt", "m.ir", 1, "arrays alone"), (WEIGHTS / "checkpoint.pt", "m.txt", 2, "the extension says"),
    (WEIGHTS / "nothing.pt", "m.ir", 2, "no such file"), (WEIGHTS / "module.pt", "m.npz", 1, "torch.jit.script(module).save"),
    (WEIGHTS.parent / "archives" / "state.pt", "no/m.pt", 2, "cannot write"), ("text.ir", "m.npz", 1, "no file has the numbers"),
])
def test_what_cannot_be_converted_is_said(tmp_path: Path, source: Any, target: str, code: int, message: str) -> None:
    (tmp_path / "text.ir").write_text(CONSTANT)
    got, out, err = run_cli("convert", tmp_path / source, tmp_path / target)
    assert (got, out) == (code, "") and message in err and not (tmp_path / target).exists()


def test_weights_are_inspected() -> None:
    code, out, _ = run_cli("inspect", WEIGHTS / "legacy.pt", "--json")
    rows = {each["name"]: each for each in json.loads(out)["weights"]}
    assert code == 0 and rows["more.brain"]["dtype"] == "bfloat16" and rows["net.0.weight"]["shape"] == [3, 2]
    code, out, _ = run_cli("inspect", WEIGHTS / "legacy.pt")
    assert code == 0 and out.startswith(f"{WEIGHTS / 'legacy.pt'}: weights\n")


NET = """graph(%self.1 : __torch__.Net,
      %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self.1)
  %weight : Float(2, 3) = prim::GetAttr[name="weight"](%fc)
  %bias : Tensor? = prim::GetAttr[name="bias"](%fc)
  %y : Tensor = aten::linear(%x, %weight, %bias)
  %rnn : __torch__.Rnn = prim::GetAttr[name="rnn"](%self.1)
  %ws : Tensor[] = prim::GetAttr[name="_flat_weights"](%rnn)
  %w : Tensor = aten::__getitem__(%ws, %one)
  %z : Tensor = aten::add(%y, %w, %one)
  %calls : Tensor = prim::GetAttr[name="calls"](%self.1)
  %more : Tensor = aten::add(%calls, %one, %one)
   = prim::SetAttr[name="calls"](%self.1, %more)
  %after : Tensor = prim::GetAttr[name="calls"](%self.1)
  %trains : bool = prim::GetAttr[name="training"](%fc)
  %scale : float = prim::GetAttr[name="scale"](%self.1)
  %out : Tensor = prim::If(%trains)
    block0():
      %o1 : Tensor = aten::mul(%z, %after)
      -> (%o1)
    block1():
      %o2 : Tensor = aten::mul(%z, %scale)
      -> (%o2)
  return (%out)
"""
STATE = {
    "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "fc.bias": np.ones(2, np.float32), "calls": np.array(3.0, np.float32),
    "rnn.weight_hh_l0": np.full((2, 2), 100, np.float32), "rnn.weight_ih_l0": np.zeros((2, 2)),
    "scale": np.array(2.0), "unused": np.zeros(3),
}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A folder with a printed graph of a module, its weights in two formats, and an input."""
    (tmp_path / "net.ir").write_text(NET)
    np.savez(tmp_path / "net.npz", **STATE)  # type: ignore[arg-type]
    (tmp_path / "net.safetensors").write_bytes(safetensors.encode(Archive(STATE)))
    (tmp_path / "x.safetensors").write_bytes(safetensors.encode(Archive({"x": np.ones((2, 3), np.float32)})))
    return tmp_path


@pytest.mark.parametrize("state", ["net.npz", "net.safetensors"])
def test_a_printed_graph_of_a_module_takes_weights_by_dotted_name(net: Path, state: str) -> None:
    y = STATE["fc.weight"].sum(1) + 1 + np.full((2, 2), 100)
    words = "run", net / "net.ir", net / "x.safetensors", "--load-state", net / state, "-o", net / "out.npz"
    for more, expected in ([], y * 2), (["-i", "self.fc.training=true"], y * 4), (["-i", "self.1.scale=3.0", "--interpret"], y * 3):
        code, out, err = run_cli(*words, *more)
        assert code == 0 and ("'fc.training', so it is false" in err) == ("self.fc.training=true" not in more), err
        with np.load(net / "out.npz") as outputs:
            np.testing.assert_array_equal(outputs["output0"], expected)
    assert run_cli("grad", *words[1:5], "-i", "vjp0=2x2xf32=1")[0] == 0


@pytest.mark.parametrize("name, value, message", [
    ("fc.weight", np.ones((3, 2), np.float32), "reads 'fc.weight' : Float(2, 3), which is float32 (3, 2) in"),
    ("scale", None, "reads 'scale' : float, which is not in"),
    ("calls", None, "reads 'calls' : Tensor, which is not in"), ("rnn.weight_hh_l0", None, "reads 'rnn._flat_weights' : Tensor[]"),
])
def test_weights_that_lack_something_are_named(net: Path, name: str, value: Any, message: str) -> None:
    state = {key: array for key, array in STATE.items() if key != name} | ({name: value} if value is not None else {})
    np.savez(net / "net.npz", **state)
    code, out, err = run_cli("run", net / "net.ir", net / "x.safetensors", "--load-state", net / "net.npz")
    assert (code, out) == (1, "") and message in err


@pytest.mark.parametrize("words", [["fmt"], ["opt", "--passes=dce"]])
def test_commands_that_print_graphs_put_weights_into_them(net: Path, words: list[str]) -> None:
    assert run_cli(*words, net / "net.ir", "--load-state", net / "net.npz", "-o", net / "whole.ir")[0] == 0
    code, _, err = run_cli("run", net / "whole.ir", net / "x.safetensors", "-o", net / "out.npz")
    with np.load(net / "out.npz") as outputs:
        np.testing.assert_array_equal(outputs["output0"], 2 * (STATE["fc.weight"].sum(1) + 1 + np.full((2, 2), 100)), err)
    path = WEIGHTS.parent / "archives" / "net_train.pt"
    np.savez(net / "zeros.npz", **{name: np.zeros_like(array) for name, array in irtool.load(path).state_dict().items()})
    for target in ("zero.ir", "zero.pt")[:1 if words == ["fmt"] else 2]:
        assert run_cli(*words, path, "--load-state", net / "zeros.npz", "-o", net / target)[0] == 0
        assert run_cli("run", net / target, "-i", "x=2x2x5x5xf32=1", "-o", net / "out.npz")[0] == 0
        with np.load(net / "out.npz") as outputs:
            assert not outputs["output0"].any()


FORKING = """graph(%self : __torch__.Net, %x : Tensor):
  %a : Future(Tensor) = prim::fork_0(%self, %x)
  %y : Tensor = aten::wait(%a)
  return (%y)
with prim::fork_0 = graph(%self : __torch__.Net, %x : Tensor):
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%fc)
  %bias : Tensor = prim::GetAttr[name="bias"](%fc)
  %y : Tensor = aten::linear(%x, %weight, %bias)
  return (%y)
"""


def test_weights_reach_forks(net: Path) -> None:
    (net / "fork.ir").write_text(FORKING)
    words = "run", net / "fork.ir", net / "x.safetensors", "--load-state", net / "net.npz", "-o", net / "out.npz"
    assert run_cli(*words)[0] == 0
    with np.load(net / "out.npz") as outputs:
        np.testing.assert_array_equal(outputs["output0"], [STATE["fc.weight"].sum(1) + 1] * 2)
    (net / "fork.ir").write_text(FORKING.replace("aten::linear(%x, %weight, %bias)", 'prim::CallMethod[name="forward"](%fc, %x)'))
    code, _, err = run_cli(*words)
    assert code == 1 and "torch leaves calls in forks. Save the module as an archive" in err


def test_what_takes_no_weights_says_so(net: Path) -> None:
    (net / "f.ir").write_text("graph(%x : Tensor):\n  return (%x)\n")
    code, _, err = run_cli("run", net / "f.ir", "--load-state", net / "net.npz", "-i", "x=1")
    assert code == 2 and "takes a module as its first input" in err
    (net / "call.ir").write_text(NET.replace("aten::linear(%x, %weight, %bias)", 'prim::CallMethod[name="forward"](%fc, %x)'))
    code, _, err = run_cli("run", net / "call.ir", net / "x.safetensors", "--load-state", net / "net.npz")
    assert code == 1 and "print the module's inlined_graph" in err
    code, _, err = run_cli("run", WEIGHTS / "checkpoint.pt", "-i", "x=1")
    assert code == 1 and "arrays alone" in err


def test_archives_take_other_weights(tmp_path: Path) -> None:
    path = WEIGHTS.parent / "archives" / "net_train.pt"
    state = {name: np.zeros_like(array) for name, array in irtool.load(path).state_dict().items()}
    np.savez(tmp_path / "zeros.npz", **state)
    words = "run", path, "-i", "x=2x2x5x5xf32=1", "-o", tmp_path / "out.npz"
    assert run_cli(*words, "--load-state", tmp_path / "zeros.npz")[0] == 0
    with np.load(tmp_path / "out.npz") as zeros:
        assert not zeros["output0"].any()
    assert run_cli(*words, "--load-state", path)[0] == 0
    np.savez(tmp_path / "zeros.npz", w=np.zeros(1))
    code, _, err = run_cli(*words, "--load-state", tmp_path / "zeros.npz")
    assert code == 1 and "it has no 'w'" in err


def test_a_printed_graph_and_its_weights_become_an_archive(net: Path) -> None:
    words = "convert", net / "net.ir", net / "net.pt", "--load-state", net / "net.safetensors"
    assert run_cli(*words)[0] == 0
    y = irtool.load(net / "net.pt")(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(y, 2 * (STATE["fc.weight"].sum(1) + 1 + np.full((2, 2), 100)))
    for more in (["-i", "x=1"], ["-i", "self.scale"]):
        assert run_cli(*words, *more)[0] == 2
    assert run_cli("convert", net / "net.ir", net / "net.pt", "-i", "self.scale=1.0")[0] == 2
    path = WEIGHTS.parent / "archives" / "net_train.pt"
    np.savez(net / "zeros.npz", **{name: np.zeros_like(array) for name, array in irtool.load(path).state_dict().items()})
    assert run_cli("convert", path, net / "zero.pt", "--load-state", net / "zeros.npz")[0] == 0
    assert not any(array.any() for array in irtool.load(net / "zero.pt").state_dict().values())


@pytest.mark.oracle
def test_graphs_and_weights_out_of_torch(tmp_path: Path) -> None:
    import torch

    from tests.data.weights.nets import Net

    torch.manual_seed(0)
    net = Net()
    net(torch.randn(4, 2, 5))
    net.eval()
    x = torch.randn(4, 2, 5)
    torch.save(net.state_dict(), tmp_path / "state.pt")
    for name, module in (("script", torch.jit.script(net)), ("trace", torch.jit.trace(net, x))):
        (tmp_path / "net.ir").write_text(str(module.inlined_graph))
        np.savez(tmp_path / "x.npz", x.numpy())
        np.savez(tmp_path / "y.npz", output0=net(x).detach().numpy())
        code, out, err = run_cli("run", tmp_path / "net.ir", tmp_path / "x.npz", "--load-state", tmp_path / "state.pt", "--expect",
                                 tmp_path / "y.npz", *(["-i", "self.scale=2.0"] if name == "script" else []))
        assert code == 0, out + err


# -- pickles that lie
DEEP = 100_000


def saved(pickle: bytes) -> bytes:
    """A zip of torch.save with this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in (("data.pkl", b"\x80\x02" + pickle), ("byteorder", b"little"), ("data/0", b"\0" * 16)):
            archive.writestr(f"a/{name}", data)
    return file.getvalue()


def tensor(size: bytes, stride: bytes = b"K\x01\x85", count: bytes = b"K\x04", offset: bytes = b"K\x00") -> bytes:
    """A tensor on the only storage, pickled."""
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
            + count + b"tQ" + offset + size + stride + b"\x89}tR")


@pytest.mark.parametrize("pickle, message", [
    (b"]" * DEEP + b"a" * (DEEP - 1) + b".", "nested deeper than 100"), (b")" + b"\x85" * DEEP + b".", "nested deeper than 100"),
    (b"}" + b")" + b"\x85" * DEEP + b"K\x01s.", "no tensors"),
    (b"ca\nb\n)\x81" * DEEP + b"b" * (DEEP - 1) + b".", "an instance of 'a.b'"),
    (b"ctorch\nSize\n" + b")" + b"\x85" * DEEP + b"\x85R.", "nested deeper than 100"), (b"]q\x00h\x00a.", "nested deeper than 100"),
    (b"ccollections\nOrderedDict\n])" + b"\x85" * DEEP + b"K\x01\x86a\x85R.", "OrderedDict"),
    (b"]q\x00" + b"".join([b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) + b"\x86" for i in range(60)])
     + b".", "more than 500000"),
    (b"\x8b\xff\xff\xff\x7f.", "bytes wanted"), (b"\x8b\xff\xff\xff\xff.", "bytes wanted"),
    (b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "'os.system'"),
    (b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "'builtins.eval'"), (tensor(b"K\x05\x85") + b".", "but 4 elements"),
    (tensor(b"K\x04\x85", offset=b"K\x01") + b".", "but 4 elements"), (tensor(b"K\x04\x85", count=b"K\x05") + b".", "expected 5 elements"),
    (tensor(b"K\x04\x85", b"J\xff\xff\xff\xff\x85") + b".", "strides"), (tensor(b"K\x04\x85", b")") + b".", "strides"),
    (b"}(X\x03\x00\x00\x00a.b" + tensor(b"K\x04\x85") + b"X\x01\x00\x00\x00a}X\x01\x00\x00\x00b" + tensor(b"K\x04\x85") + b"su.",
     "'a.b'"),
])
def test_pickles_of_torch_save_that_lie_are_refused(pickle: bytes, message: str) -> None:
    with pytest.raises(irtool.Error, match=message):
        irtool.load(saved(pickle))


@given(st.sampled_from(["checkpoint.pt", "legacy.pt", "safetensors"]),
       st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=9)), max_size=4))
@settings(deadline=None, max_examples=100)
def test_damaged_weights_are_errors_or_weights(name: str, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(safetensors.encode(Archive(STATE)) if name == "safetensors" else (WEIGHTS / name).read_bytes())
    for place, new in changes:
        place %= len(data)
        data[place:place + len(new)] = new
    with contextlib.suppress(irtool.Error):
        assert isinstance(irtool.load(bytes(data)), dict)


@pytest.mark.filterwarnings("ignore::irtool.archives.torch_saves.WeightsWarning")
@pytest.mark.parametrize("command", ["opt", "plan", "fmt", "decompile", "stats"])
def test_weights_are_no_program_to_any_command(command: str) -> None:
    code, _, err = run_cli(command, WEIGHTS / "checkpoint.pt")
    assert code == 1 and "arrays alone" in err, err


def test_graphs_that_take_a_module_are_compared_on_inputs_from_a_file(net: Path) -> None:
    code, _, err = run_cli("compare", net / "net.ir", net / "net.ir")
    assert code == 1 and "name a file of inputs" in err, err


@pytest.mark.parametrize("option", ["--in-place", "--check"])
@pytest.mark.parametrize("method", ["", ":forward"])
def test_text_never_replaces_an_archive_in_place(tmp_path: Path, method: str, option: str) -> None:
    path, other = tmp_path / "net.pt", tmp_path / "other.pt"
    before = (WEIGHTS.parent / "archives" / "net_train.pt").read_bytes()
    for each in (path, other):
        each.write_bytes(before)
    for others in ([], [other]):
        code, _, err = run_cli("fmt", option, f"{path}{method}", *others)
        assert code and "is an archive" in err and path.read_bytes() == before, err
    assert len(list(tmp_path.iterdir())) == 2
