"""Archives that call a method of an interface on a value that is of one class or another (`Union[A, B]`)."""
from __future__ import annotations

import io
import zipfile

import numpy as np

import irtool

CODE = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.M,
    x: Tensor,
    b: bool) -> Tensor:
    i = __torch__.A.__new__(__torch__.A)
    _0 = (i).__init__()
    if b:
      i1 = __torch__.B.__new__(__torch__.B)
      _1 = (i1).__init__()
      i0 : Union[__torch__.A, __torch__.B] = i1
    else:
      i0 = i
    return __torch__.u(i0, x, )
def u(i: __torch__.I,
    x: Tensor) -> Tensor:
  return (i).go(x, )
class A:
  k : int
  def __init__(self: __torch__.A) -> NoneType:
    self.k = 2
    return None
  def go(self: __torch__.A,
    x: Tensor) -> Tensor:
    k = self.k
    return torch.mul(x, k)
class B:
  k : float
  def __init__(self: __torch__.B) -> NoneType:
    self.k = 5.
    return None
  def go(self: __torch__.B,
    x: Tensor) -> Tensor:
    k = self.k
    return torch.add(x, k)
class I(Interface):
  def go(self, x: Tensor) -> Tensor:
    pass
"""
"""As torch 2.13 writes it."""


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as records:
        records.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}X\x08\x00\x00\x00training\x89sb.")
        records.writestr("m/constants.pkl", b"\x80\x02).")
        records.writestr("m/version", "10")
        records.writestr("m/code/__torch__.py", CODE)
    return file.getvalue()


def test_a_value_of_two_classes_has_the_method_of_its_class() -> None:
    module = irtool.load(archive())
    x = np.float32([1, 3])
    for _ in range(3):      # interpreted first, then by a plan
        for other, expected, gradient in ((False, [2, 6], [2, 2]), (True, [6, 8], [1, 1])):
            assert module(x, other).tolist() == expected
            assert module.vjp("forward", [x, other], [np.ones(2, np.float32)], [0])[0].tolist() == gradient
