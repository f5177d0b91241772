"""Lists: Python lists with reference semantics, as TorchScript's. Indices and messages as torch's."""
from __future__ import annotations

from typing import Any

from irtool.ir.constants import slice_bound
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import is_array
from irtool.ops.call import call_op
from irtool.ops.kernels.c_numbers import wrap
from irtool.ops.op import OpTable
from irtool.ops.tensor import Tensor

table = OpTable("list")

ELEMENTS = ("bool", "float", "int", "str")


def place_in(items: list[Any], index: int) -> int:
    """An index counted from either end made a plain one. Raises RunError with torch's text."""
    size = len(items)
    if not -size <= index < size:
        raise RunError("list index out of range", code="E0408")
    return index % size


def same(a: Any, b: Any) -> bool:
    """Equality of elements; of tensors by value, which have to have one element. Raises RunError, in torch's words, for other tensors."""
    if is_array(a) or is_array(b):
        equal = call_op("aten::eq.Tensor", [b, a])
        if equal.size != 1:
            raise RunError(f"Boolean value of Tensor with {'more than one value' if equal.size else 'no values'} is ambiguous")
        return bool(equal.reshape(-1)[0])
    return bool(a == b)


@table.op("aten::__getitem__.t(t[](a) list, int idx) -> t(*)", "aten::select.t(t[](a) list, int idx) -> t(*)")
def getitem(xp, list, idx):
    """list[idx]."""
    return list[place_in(list, idx)]


@table.op("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
def set_item(xp, self, idx, el):
    """self[idx] = el; returns the list."""
    self[place_in(self, idx)] = el
    return self


@table.op("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
def append(xp, self, el):
    """self.append(el); returns the list."""
    self.append(el)
    return self


@table.op("aten::extend.t(t[](a!) self, t[] other) -> ()")
def extend(xp, self, other):
    """self.extend(other)."""
    self.extend(list(other))


@table.op("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()")
def insert(xp, self, idx, el):
    """self.insert(idx, el)."""
    self.insert(idx, el)


@table.op("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)")
def pop(xp, self, idx):
    """self.pop(idx)."""
    if not self:
        raise RunError("pop from empty list")
    return self.pop(place_in(self, idx))


@table.op("aten::Delete.t(t[](a!) self, int idx) -> ()")
def delete(xp, self, idx):
    """del self[idx]."""
    if not self:
        raise RunError("pop from empty list")
    del self[place_in(self, idx)]


@table.op("aten::remove.Tensor(Tensor[](a!) self, Tensor el) -> ()",
          *(f"aten::remove.{t}({t}[](a!) self, {t} el) -> ()" for t in ELEMENTS))
def remove(xp, self, el):
    """Drop the first element equal to `el`."""
    for place, item in enumerate(self):
        if same(item, el):
            del self[place]
            return
    raise RunError("list.remove(x): x not in list")


@table.op("aten::clear.t(t[](a!) self) -> ()")
def clear(xp, self):
    """self.clear()."""
    self.clear()


@table.op("aten::reverse.t(t[](a!) self) -> ()")
def reverse(xp, self):
    """self.reverse()."""
    self.reverse()


@table.op("aten::copy.t(t[](a) self) -> t[]", "aten::list.t(t[] l) -> t[]")
def copy(xp, self):
    """A new list of the same elements."""
    return list(self)


@table.op("aten::len.t(t[] a) -> int", "aten::len.any(Any[] a) -> int")
def length(xp, a):
    """len(a)."""
    return len(a)


@table.op("aten::add.t(t[] a, t[] b) -> t[]")
def concatenate(xp, a, b):
    """A new list: a then b."""
    return [*a, *b]


@table.op("aten::add_.t(t[](a!) self, t[] b) -> t[]")
def concatenate_in_place(xp, self, b):
    """self += b; returns self."""
    self.extend(list(b))
    return self


@table.op("aten::mul.left_t(t[] l, int n) -> t[]")
def repeat(xp, items, n):
    """items * n, a new list."""
    return repeated(items, n)


def repeated(items, n):
    """A list n times. Raises RunError, in torch's words, where n is negative and the list is not empty."""
    if items and n < 0:
        raise RunError("vector::reserve")
    return list(items) * n


@table.op("aten::mul.right_(int n, t[] l) -> t[]")
def repeat_right(xp, n, items):
    """n * items, a new list."""
    return repeated(items, n)


@table.op("aten::mul_.t(t[](a!) l, int n) -> t[](a!)")
def repeat_in_place(xp, items, n):
    """items *= n; returns the list."""
    items *= n
    return items


@table.op("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]")
def slice_list(xp, items, start, end, step):
    """items[start:end:step], a new list."""
    if step == 0:
        raise RunError("slice step cannot be zero")
    return list(items)[slice_bound(start):slice_bound(end):step]


@table.op("aten::index.list_Tensor(Tensor[] self, Tensor el) -> int",
          *(f"aten::index.list_{t}({t}[] self, {t} el) -> int" for t in ELEMENTS))
def index(xp, self, el):
    """Position of the first element equal to `el`."""
    for place, item in enumerate(self):
        if same(item, el):
            return place
    raise RunError(f"'{el}' is not in list")


@table.op("aten::count.Tensor(Tensor[] self, Tensor el) -> int", *(f"aten::count.{t}({t}[] self, {t} el) -> int" for t in ELEMENTS))
def count(xp, self, el):
    """Number of elements equal to `el`."""
    return sum(same(item, el) for item in self)


@table.op("aten::__contains__.float_list(float[] l, float item) -> bool", "aten::__contains__.int_list(int[] l, int item) -> bool",
          "aten::__contains__.str_list(str[] l, str item) -> bool")
def contains(xp, items, item):
    """item in items."""
    return any(same(x, item) for x in items)


SORTED = (int, float, str, tuple)


class OnTape:
    """A tensor that a layer follows: its number is not at hand, but operators compare it."""

    __slots__ = ("tensor",)
    __hash__ = None     # type: ignore[assignment]

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __lt__(self, other: OnTape) -> bool:
        return bool(self.tensor < other.tensor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnTape) and bool(self.tensor == other.tensor)


def _key(item: Any) -> Any:
    """What a list is sorted by. Raises RunError, in torch's words, for an item of a type that has no order; UnsupportedError for an
    instance."""
    value = item.item() if is_array(item) else item
    if isinstance(value, Tensor):
        return OnTape(value)
    if not isinstance(value, SORTED):
        from irtool.ops.structure import Object

        if isinstance(value, Object):
            raise UnsupportedError(f"sorting instances of {value.type} by an operator is not supported: it cannot call their __lt__. Sort "
                                   "them in source or in an archive, alone or in tuples", code="E0404")
        raise RunError("Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ compare method or "
                       f"Tuples of aforementioned types can be sorted, got list of {type(value).__name__}")
    return tuple(map(_key, value)) if isinstance(value, tuple) else value + 0.0 if isinstance(value, float) and value != value else value


def _holds_nan(key: Any) -> bool:
    return any(map(_holds_nan, key)) if isinstance(key, tuple) else key != key


@table.op("aten::sort.Tensor(Tensor[](a!) self, bool reverse=False) -> ()", "aten::sort.any(t[](a!) self, bool reverse=False) -> ()",
          *(f"aten::sort.{t}({t}[](a!) self, bool reverse=False) -> ()" for t in ELEMENTS))
def sort(xp, self, reverse):
    """self.sort(reverse=reverse)."""
    self[:] = _sorted(self, reverse)


@table.op("aten::sorted.Tensor(Tensor[](a) input) -> Tensor[]", "aten::sorted.any(t[](a) self) -> t[]",
          *(f"aten::sorted.{t}({t}[](a) input) -> {t}[]" for t in ELEMENTS))
def sort_copy(xp, input):
    """A sorted copy."""
    return _sorted(input, False)


INSERTED = 16
"""The lists that C++ sorts by inserting one item after the other."""


def _sorted(items: list[Any], reverse: bool) -> list[Any]:
    """The items in order. A nan has no order: where it leaves the others depends on how C++ sorts, which is known of short lists."""
    if len(items) < 2:      # also of a tensor of several elements, which nothing is compared with
        return list(items)
    keys = [_key(item) for item in items]
    if not any(map(_holds_nan, keys)):
        return sorted(items, key=_key, reverse=reverse)
    if len(items) > INSERTED:
        raise RunError(f"the order of more than {INSERTED} numbers, one of them nan, depends on torch's compiler")
    placed: list[tuple[Any, Any]] = []
    for pair in zip(keys, items, strict=True):
        place = len(placed)
        if placed and _is_before(pair[0], placed[0][0], reverse):
            place = 0
        while place and _is_before(pair[0], placed[place - 1][0], reverse):
            place -= 1
        placed.insert(place, pair)
    return [item for _, item in placed]


def _is_before(one: Any, other: Any, reverse: bool) -> bool:
    return bool(one != other) and bool(one < other) != reverse


@table.op("aten::sum.int(int[] self) -> int", "aten::sum.bool(bool[] self) -> int")
def sum_ints(xp, self):
    """Sum of ints (bools count as 0 and 1), wrapping at 64 bits."""
    return wrap(sum(self))


@table.op("aten::sum.complex(complex[] self) -> complex")
def sum_complex(xp, self):
    """Sum from left to right, complex also of nothing."""
    return complex(sum(self))


@table.op("aten::sum.float(float[] self) -> float")
def sum_floats(xp, self):
    """Sum from left to right."""
    total = 0.0
    for item in self:
        total += item
    return total


@table.op("aten::all.int(int[] self) -> bool", "aten::all.float(float[] self) -> bool", "aten::all.bool(bool[] self) -> bool")
def all_true(xp, self):
    """Are all elements true?"""
    return all(self)


@table.op("aten::any.int(int[] self) -> bool", "aten::any.float(float[] self) -> bool", "aten::any.bool(bool[] self) -> bool",
          "aten::any.str(str[] self) -> bool")
def any_true(xp, self):
    """Is an element true?"""
    return any(self)


def _chosen(kind: str) -> list[str]:
    return [f"prim::{kind}.{t}_list({t}[](a) l, {t}[](a) r) -> {t}[](a)" for t in ("bool", "float", "int")]


@table.op(*_chosen("max"))
def larger(xp, left, right):
    """The larger list itself, in lexicographic order; of equal ones the second. Elements without order, nan, make it the second."""
    for one, other in zip(left, right, strict=False):
        if one != other:
            return left if one > other else right
    return left if len(left) > len(right) else right


@table.op(*_chosen("min"))
def smaller(xp, left, right):
    """The smaller list itself, in lexicographic order; of equal ones the first. Elements without order, nan, make it the second."""
    for one, other in zip(left, right, strict=False):
        if one != other:
            return left if one < other else right
    return right if len(right) < len(left) else left


@table.op(*(f"prim::max.self_{t}({t}[] self) -> {t}" for t in ("bool", "float", "int")))
def largest(xp, self):
    """The largest element."""
    if not self:
        raise RunError("max() arg is an empty sequence")
    return max(self)


@table.op(*(f"prim::min.self_{t}({t}[] self) -> {t}" for t in ("bool", "float", "int")))
def smallest(xp, self):
    """The smallest element."""
    if not self:
        raise RunError("min() arg is an empty sequence")
    return min(self)


table.define([f"aten::_construct_empty_{t.lower()}_list() -> {t}[]" for t in ("int", "float", "Tensor")], lambda xp: [],
             doc="A new, empty list, as 2018 wrote it.")


@table.op("prim::rangelist(int n) -> int[]")
def rangelist(xp, n):
    """[0, ..., n - 1]."""
    return list(range(n))


@table.op("aten::Size(int[] sizes) -> int[]")
def size_of_ints(xp, sizes):
    """A list of the sizes."""
    return list(sizes)


@table.op("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?")
def size_if_not_equal(xp, self_size, other_size):
    """self_size when the two differ, else None."""
    return None if list(self_size) == list(other_size) else list(self_size)


@table.op("aten::_infer_size(int[] a, int[] b) -> int[]")
def broadcast_sizes(xp, a, b):
    """The shape two shapes broadcast to."""
    rank = max(len(a), len(b))
    result = []
    for dim in range(rank):
        x = a[dim - rank + len(a)] if dim >= rank - len(a) else 1
        y = b[dim - rank + len(b)] if dim >= rank - len(b) else 1
        if x != y and x != 1 and y != 1:
            raise RunError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {dim}")
        result.append(y if x == 1 else x)
    return result


@table.op("prim::BroadcastSizes(...) -> int[]")
def broadcast_many_sizes(xp, *shapes):
    """The shape several shapes broadcast to."""
    result: list[int] = []
    for shape in shapes:
        result = broadcast_sizes.kernel(xp, result, shape)
    return result


@table.op("prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]")
def reduction_sizes(xp, size, red_axes, keepdim):
    """The shape of a reduction over `red_axes`."""
    gone = {axis % len(size) for axis in red_axes}
    return [1 if dim in gone else n for dim, n in enumerate(size) if keepdim or dim not in gone]
