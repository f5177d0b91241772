"""Modules frozen, or rewritten by passes, and written again: the copy gives what the module gives, in irtool and in torch."""
from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

FOLDER = Path(__file__).parent / "data" / "archives"
NOT_YET = {"objects": "hands an instance", "hooked": "hooks"}
"""Archives of FOLDER that are refused, and the words for it."""
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt") if path.stem not in NOT_YET)

CODE = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  nothing : NoneType
  form : Union[bool, str]
  def forward(self: __torch__.M,
    x: Tensor,
    k: int=2,
    y: Optional[Tensor]=None) -> Tuple[Tensor, int]:
    node = __torch__.Node.__new__(__torch__.Node)
    _0 = (node).__init__(x, )
    last = (node).add(k, )
    if torch.__isnot__(y, None):
      y0 = unchecked_cast(Tensor, y)
      node.value = torch.mul(node.value, y0)
    else:
      pass
    form = self.form
    if isinstance(form, str):
      word = unchecked_cast(str, form)
      _1 = torch.__contains__(["a", "b"], word)
      if _1:
        node.value = torch.neg(node.value)
      else:
        pass
    else:
      pass
    nothing = self.nothing
    if torch.gt(k, 1000):
      w = ops.aten._unwrap_optional(annotate(Optional[Tensor], nothing))
      value = torch.add(node.value, w)
    else:
      value = node.value
    return (value, last)
class Node:
  value : Tensor
  next : Optional[Tensor]
  count : int
  def __init__(self: __torch__.Node,
    value: Tensor) -> NoneType:
    self.value = value
    self.next = None
    self.count = 0
    return None
  def add(self: __torch__.Node,
    k: int) -> int:
    for i in range(k):
      self.value = torch.add(self.value, i)
      self.count = torch.add(self.count, 1)
    return self.count
"""
STATES = {"false": b"\x89", "word": b"X\x01\x00\x00\x00a"}
"""The attribute `form`, pickled."""


def by_hand(form: bytes) -> bytes:
    """An archive of a module that makes objects, reads attributes that are None or of several types, and has defaults."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        state = b"".join([b"X" + bytes([len(name), 0, 0, 0]) + name + value for name, value in {b"nothing": b"N", b"form": form}.items()])
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}(" + state + b"ub.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", "3")
        archive.writestr("m/code/__torch__.py", CODE)
    return file.getvalue()


def copies(path: Path, folder: Path) -> dict[str, Path]:
    """Copies of an archive: frozen, rewritten by passes, and rewritten with what is known of it."""
    frozen = folder / "frozen.pt"
    irtool.save(irtool.load(path).eval().freeze(), frozen)
    made = {"frozen": frozen}
    for name, passes in (("rewritten", "cse,dce,canonicalize"), ("folded", "freeze{eval},canonicalize,constant-propagation,peephole,dce")):
        made[name] = folder / f"{name}.pt"
        err = io.StringIO()
        assert main(["opt", f"--passes={passes}", str(path), "-o", str(made[name])], stderr=err) == 0, err.getvalue()
    return made


def assert_same(result: Any, expected: Any) -> None:
    """Equal in value and dtype, in tuples, too."""
    if isinstance(expected, tuple):
        for one, other in zip(result, expected, strict=True):
            assert_same(one, other)
        return
    assert np.asarray(result).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-6)


def arguments(name: str, call: int) -> list[Any]:
    """The arguments of a recorded call: numbers where they are 0-d."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        values = [arrays[key] for key in arrays.files if key.startswith(f"{call}.") and ".out" not in key]
    return [each.item() if each.ndim == 0 else each for each in values]


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_gives_what_the_module_gives(name: str, tmp_path: Path) -> None:
    for kind, path in copies(FOLDER / f"{name}.pt", tmp_path).items():
        module, copy = irtool.load(FOLDER / f"{name}.pt"), irtool.load(path)
        if kind != "rewritten":
            module.eval()
        for call in range(2):
            assert_same(copy(*arguments(name, call)), module(*arguments(name, call)))


@pytest.mark.parametrize("name", NOT_YET)
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    err = io.StringIO()
    assert main(["opt", "--passes=cse", str(FOLDER / f"{name}.pt"), "-o", str(tmp_path / "x.pt")], stderr=err) == 1
    assert NOT_YET[name] in err.getvalue()
    assert not list(tmp_path.iterdir())


X, Y = np.array([1, -2], np.float32), np.array([3, 4], np.float32)
CALLS: list[tuple[Any, ...]] = [(X,), (X, 3), (X, 0, Y)]


@pytest.mark.parametrize("form", STATES)
def test_objects_defaults_and_code_that_never_runs_stay(form: str, tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(by_hand(STATES[form]))
    sign = -1 if form == "word" else 1
    for copy in (path, *copies(path, tmp_path).values()):
        module = irtool.load(copy)
        for call, expected in zip(CALLS, [(sign * (X + 1), 2), (sign * (X + 3), 3), (sign * X * Y, 0)], strict=True):
            assert_same(module(*call), expected)


@pytest.mark.parametrize("passes", ["canonicalize", "freeze{eval},canonicalize", "inference,canonicalize,cse", "canonicalize,O1"])
@pytest.mark.parametrize("name", NAMES)
def test_methods_take_the_arguments_that_they_took(name: str, passes: str, tmp_path: Path) -> None:
    """Under the same names and with the same defaults, whatever passes call the values."""
    module, path = irtool.load(FOLDER / f"{name}.pt"), tmp_path / "m.pt"
    err = io.StringIO()
    assert main(["opt", f"--passes={passes}", str(FOLDER / f"{name}.pt"), "-o", str(path)], stderr=err) == 0, err.getvalue()
    copy = irtool.load(path)
    for method in copy.methods():
        before, after = module.method(method).parameters, copy.method(method).parameters
        assert (after.names, after.defaults) == (before.names, before.defaults), method


@pytest.mark.oracle
@pytest.mark.parametrize("form", STATES)
def test_torch_takes_the_copies(form: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt"
    path.write_bytes(by_hand(STATES[form]))
    for copy in copies(path, tmp_path).values():
        module, other = irtool.load(path), torch.jit.load(str(copy))
        for call in CALLS:
            value, count = other(*[torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in call])
            assert_same((value.numpy(), count), module(*call))


STATEFUL = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  k : int
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.mul(x, self.k)
  def __getstate__(self: __torch__.M) -> Tuple[int]:
    return (torch.add(self.k, 1),)
  def __setstate__(self: __torch__.M,
    state: Tuple[int]) -> NoneType:
    k, = state
    self.k = torch.sub(k, 1)
    return None
"""


def test_a_copy_has_the_attributes_and_no_setstate(tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81K\x04\x85b.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", "3")
        archive.writestr("m/code/__torch__.py", STATEFUL)
    copy = tmp_path / "copy.pt"
    assert main(["opt", "--passes=dce", str(file), "-o", str(copy)], stderr=io.StringIO()) == 0
    assert irtool.load(file).methods() == ["forward", "__getstate__", "__setstate__"]
    assert irtool.load(copy).methods() == ["forward"]
    for each in (file, copy):
        assert_same(irtool.load(each)(X), X * np.float32(3))
