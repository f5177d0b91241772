"""Attributes of a module that share memory still do after a method assigns one, changes a list, or is differentiated, as in torch."""
from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

import irtool

METHODS = {     # what a method does, and buf, view and lst after two calls of it, and then of `bump`
    "self.view = torch.slice(self.buf, 0, 1)\n    view = self.view\n    self.view = torch.add_(view, 1)":
        ([10, 12], [12], [[10, 12], [1]]),
    "self.lst = [self.buf, self.view]\n    lst = self.lst\n    _1 = torch._set_item(lst, 0, torch.add_(lst[0], 1))":
        ([12, 12], [12], [[12, 12], [12]]),
    "self.lst = [torch.slice(self.buf, 0, 1)]\n    buf = self.buf\n    self.buf = torch.add_(buf, 1)":
        ([12, 12], [12], [[12]]),
    "_0 = torch.add_(self.view, 2)\n    _1 = torch.append(self.lst, self.view)":
        ([14, 10], [14], [[14, 10], [1], [14], [14]]),
    "lst = self.lst\n    _0 = torch.add_(lst[0], 2)\n    _1 = torch._set_item(lst, 1, torch.add(lst[0], 1))\n    y = self.view":
        ([14, 14], [14], [[14, 14], [5, 5]]),
}
CODE = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  buf : Tensor
  view : Tensor
  lst : List[Tensor]
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    BODY
    return torch.mul(x, 3)
  def bump(self: __torch__.M) -> Tuple[Tensor, Tensor, List[Tensor]]:
    buf = self.buf
    self.buf = torch.add_(buf, 10)
    return (self.buf, self.view, self.lst)
"""


def tensor(key: int, size: int, is_known: bool = False) -> bytes:
    """The pickle of a vector at the start of a storage of two numbers; is_known: a tensor before it has the storage."""
    storage = b"h" + bytes([key]) if is_known else (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00%dX\x03\x00\x00\x00cpuK\x02tQq%c" % (key, key))
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K" + bytes([size])
            + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR")


def module(body: str, code: str = CODE, more: dict[bytes, bytes] | None = None) -> irtool.ScriptModule:
    """A module whose attributes `view` and `lst[0]` are parts of the memory of `buf`; more: pickles of further attributes."""
    values = {b"buf": tensor(0, 2), b"view": tensor(0, 1, True), b"lst": b"](" + tensor(0, 2, True) + tensor(1, 1) + b"e", **(more or {})}
    state = b"".join([b"X" + struct.pack("<I", len(name)) + name + value for name, value in values.items()])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}(" + state + b"ub.")
        archive.writestr("m/data/0", np.zeros(2, np.float32).tobytes())
        archive.writestr("m/data/1", np.ones(2, np.float32).tobytes())
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", "3")
        archive.writestr("m/code/__torch__.py", code.replace("BODY", body))
    loaded = irtool.load(file.getvalue())
    assert isinstance(loaded, irtool.ScriptModule)
    return loaded


def use(made: Any, x: Any, wrt: list[int | str] | None) -> None:
    """Call a module, or, with `wrt`, ask for its gradients, which has the same effects."""
    if wrt is None:
        made(x)
    else:
        made.vjp("forward", [x], [np.ones(2, np.float32)], wrt)


@pytest.mark.parametrize("wrt", [None, [], [0]], ids=["called", "no gradient", "gradient"])
@pytest.mark.parametrize("body", METHODS)
def test_attributes_share_memory_as_before(body: str, wrt: list[int | str] | None) -> None:
    made = module(body)
    x = np.ones(2, np.float32)
    for _ in range(2):
        use(made, x, wrt)
    buf, view, lst = made.bump()
    np.testing.assert_equal((buf.tolist(), view.tolist(), [each.tolist() for each in lst]), METHODS[body])


def test_an_attribute_that_gets_another_shape_in_place_still_shares_memory() -> None:
    made = module("_0 = torch.t_(torch.unsqueeze_(self.buf, 0))")
    made(np.ones(2, np.float32))
    buf, view, lst = made.bump()
    assert buf.tolist() == [[10], [10]]
    assert view.tolist() == [10]
    assert [each.tolist() for each in lst] == [[10, 10], [1]]
    with pytest.raises(irtool.UnsupportedError, match="may change the shape of an attribute in place"):
        made.vjp("forward", [np.ones(2, np.float32)], [np.ones(2, np.float32)], [0])


@pytest.mark.parametrize(("of_argument", "expected"), [
    ("torch.slice(x, 0, 1)", [14]), ("torch.slice(x, 0, 0, 2)", [13, 14]), ("x", [13, 14]),
])
def test_what_attributes_keep_of_an_argument_is_one_tensor(of_argument: str, expected: list[int]) -> None:
    made = module(f"self.buf = {of_argument}\n    _0 = torch.append(self.lst, self.buf)\n    self.view = torch.slice(x, 0, 1)")
    given = [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    for each in given:
        made(each)
    buf, view, lst = made.bump()
    assert buf.tolist() == lst[3].tolist() == expected
    assert view.tolist() == [14]
    assert [each.tolist() for each in lst[:2]] == [[0, 0], [1]]
    assert [each.tolist() for each in given] == [[1, 2], [3, 4]]


KEEPERS = ("self.other = self.lst", "_0 = torch.append(self.lists, self.lst)\n    self.other = self.lists[0]")


@pytest.mark.parametrize("wrt", [None, [], [0]], ids=["called", "no gradient", "gradient"])
@pytest.mark.parametrize("body", KEEPERS)
def test_a_list_that_two_attributes_are_is_one_list(body: str, wrt: list[int | str] | None) -> None:
    """Also in a copy that is saved, and for a caller that gives tensors."""
    code = CODE.replace("  lst : List[Tensor]\n", "  lst : List[Tensor]\n  other : List[Tensor]\n  lists : List[List[Tensor]]\n").replace(
        "BODY", body).replace("return (self.buf, self.view, self.lst)", "_0 = torch.append(self.lst, self.buf)\n    "
                              "return (self.buf, self.view, self.other)")
    for given in (np.ones(2, np.float32), irtool.Tensor(np.ones(2, np.float32))):
        made = module(body, code, {b"other": b"]", b"lists": b"]"})
        if wrt is None:
            assert type(made(given)) is type(given)
        else:
            gradients = made.vjp("forward", [given], [np.ones(2, np.float32)], wrt)
            assert [each.tolist() for each in gradients] == [[3, 3]] * len(wrt)
        file = io.BytesIO()
        irtool.save(made, file)
        for each in (made, irtool.load(file.getvalue())):
            with pytest.raises(irtool.UnsupportedError, match="a list or dict that is several"):
                each.vjp("bump", [], [None] * 5, [])
            each.bump()
            assert [one.tolist() for one in each.other] == [one.tolist() for one in each.lst] == [[10, 10], [1], [10, 10]]


@pytest.mark.parametrize("wrt", [None, [], [0]], ids=["called", "no gradient", "gradient"])
def test_an_attribute_stays_another_one_where_a_third_one_becomes_an_argument(wrt: list[int | str] | None) -> None:
    made = module("self.view = self.buf\n    self.lst = [x, torch.slice(x, 0, 1), self.buf]")
    x = np.ones(2, np.float32)
    for _ in range(2):
        use(made, x, wrt)
        buf, view, lst = made.bump()
        _0 = made.lst[0].__iadd__(1)
    assert buf.tolist() == view.tolist() == lst[2].tolist() == [20, 20]
    assert [each.tolist() for each in made.lst] == [[2, 2], [2], [20, 20]]
    assert x.tolist() == [1, 1]


CHANGES = {     # what changes a dict, and its values afterwards, before which it was {"a": zeros of its own, "b": buf}
    "_0 = torch.update(d, {\"a\": self.buf})": [[10, 10], [10, 10]],
    "_0 = torch.update(d, {\"a\": x})": [[1, 1], [10, 10]],
    "_0 = torch.setdefault(d, \"c\", self.buf)": [[0, 0], [10, 10], [10, 10]],
    "_0 = torch.setdefault(d, \"a\", self.buf)": [[0, 0], [10, 10]],
    "_0 = torch.popitem(d)": [[10, 10]],
    "_0 = torch._set_item(d, \"a\", self.buf)": [[10, 10], [10, 10]],
    "_0 = torch.pop(d, \"a\")": [[10, 10]],
}


@pytest.mark.parametrize("wrt", [None, [], [0]], ids=["called", "no gradient", "gradient"])
@pytest.mark.parametrize("body", CHANGES)
def test_what_a_dict_holds_after_a_change_is_the_tensor_itself(body: str, wrt: list[int | str] | None) -> None:
    """Not its elements, written into the tensor that the dict held before."""
    code = CODE.replace("  lst : List[Tensor]\n", "  lst : List[Tensor]\n  d : Dict[str, Tensor]\n  own : Tensor\n").replace(
        "BODY", "d = self.d\n    BODY").replace(
        "return (self.buf, self.view, self.lst)", "d = self.d\n    return (self.own, self.view, list(torch.values(d)))")
    made = module(body, code, {b"own": tensor(0, 2), b"d": b"}"})
    made.own = np.zeros(2, np.float32)
    made._instance.attributes["d"].update(a=made._instance.attributes["own"], b=made._instance.attributes["buf"])
    x, ones = np.ones(2, np.float32), np.ones(2, np.float32)
    if wrt is None:
        made(x)
    else:
        made.vjp("forward", [x], [ones], wrt)
    own, _, values = made.bump()
    assert own.tolist() == [0, 0]
    assert [each.tolist() for each in values] == CHANGES[body]
