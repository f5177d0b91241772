"""Dictionaries: Python dicts in order of insertion, with torch's messages. Tensor keys go by identity, as torch hashes them."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.arrays import is_array
from irtool.ops.op import OpTable

table = OpTable("dict")

KEYS = ("Tensor", "bool", "complex", "float", "int", "str")


class TensorKey:
    """A tensor as a key: two of them are equal when they are the same array."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __hash__(self) -> int:
        return id(self.tensor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorKey) and self.tensor is other.tensor


def as_key(value: Any) -> Any:
    """The value for a key of the dict. A nan becomes another object, which no dict finds: Python takes an object for equal to itself."""
    if isinstance(value, float) and value != value:
        return value + 0.0
    return TensorKey(value) if is_array(value) else value


def from_key(key: Any) -> Any:
    """The key again."""
    return key.tensor if isinstance(key, TensorKey) else key


def each(template: str) -> list[str]:
    """One schema per type of key, `K` standing for it."""
    return [template.replace("K", key) for key in KEYS]


@table.op(*each("aten::__getitem__.Dict_K(Dict(K, t) self, K key) -> t(*)"))
def getitem(xp, self, key):
    """self[key]."""
    try:
        return self[as_key(key)]
    except KeyError:
        raise RunError(f"KeyError: {key}") from None


@table.op(*each("aten::_set_item.K(Dict(K, t)(a!) l, K(b -> *) idx, t(c -> *) v) -> ()"))
def set_item(xp, self, idx, v):
    """self[idx] = v."""
    self[as_key(idx)] = v


@table.op(*each("aten::__contains__.K(Dict(K, t) dict, K key) -> bool"))
def contains(xp, dict, key):
    """key in dict."""
    return as_key(key) in dict


@table.op(*each("aten::Delete.Dict_K(Dict(K, t)(a!) self, K key) -> ()"))
def delete(xp, self, key):
    """del self[key]."""
    pop.kernel(xp, self, key)


@table.op(*each("aten::pop.Dict_K(Dict(K, t)(a!) self, K key) -> t(*)"))
def pop(xp, self, key):
    """self.pop(key)."""
    try:
        return self.pop(as_key(key))
    except KeyError:
        raise RunError(f"KeyError: {key}") from None


@table.op(*each("aten::pop.Dict_default_K(Dict(K, t)(a!) self, K key, t default_value) -> t(*)"))
def pop_default(xp, self, key, default_value):
    """self.pop(key, default_value)."""
    return self.pop(as_key(key), default_value)


@table.op(*each("aten::popitem.K(Dict(K, t)(a!) self) -> ((K, t))"))
def popitem(xp, self):
    """Takes the *first* pair out, as torch does."""
    if not self:
        raise RunError("popitem(): dictionary is empty")
    key = next(iter(self))
    if key != key:
        raise RunError("Expected to erase 1 item, found 0")
    return from_key(key), self.pop(key)


@table.op(*each("aten::get.K(Dict(K, t) self, K key) -> t(*)?"))
def get(xp, self, key):
    """self.get(key)."""
    return self.get(as_key(key))


@table.op(*each("aten::get.default_K(Dict(K, t) self, K key, t default_value) -> t(*)"))
def get_default(xp, self, key, default_value):
    """self.get(key, default_value)."""
    return self.get(as_key(key), default_value)


@table.op(*each("aten::setdefault.K(Dict(K, t)(a!) self, K(b -> *) key, t(c -> *) default_value) -> t(*)"))
def setdefault(xp, self, key, default_value):
    """self.setdefault(key, default_value)."""
    return self.setdefault(as_key(key), default_value)


@table.op(*each("aten::update.K(Dict(K, t)(a!) self, Dict(K, t)(a!) to_add) -> ()"))
def update(xp, self, to_add):
    """self.update(to_add)."""
    for key, value in list(to_add.items()):
        self[as_key(from_key(key))] = value


@table.op(*each("aten::clear.K(Dict(K, t)(a!) self) -> ()"))
def clear(xp, self):
    """self.clear()."""
    self.clear()


@table.op(*each("aten::copy.Dict_K(Dict(K, t)(a) self) -> Dict(K, t)"), *each("aten::dict.Dict_K(Dict(K, t)(a) self) -> Dict(K, t)"))
def copy(xp, self):
    """A new dict of the same pairs."""
    return dict(self)


@table.op("aten::dict() -> Dict(str, Tensor)")
def empty(xp):
    """{}."""
    return {}


@table.op(*each("aten::dict.K((K, tVal)[] inputs) -> Dict(K, tVal)"))
def from_pairs(xp, inputs):
    """dict(inputs)."""
    return {as_key(key): value for key, value in inputs}


@table.op(*each("aten::len.Dict_K(Dict(K, t) self) -> int"))
def length(xp, self):
    """len(self)."""
    return len(self)


@table.op(*each("aten::keys.K(Dict(K, t) self) -> K[](*)"))
def keys(xp, self):
    """A list of the keys."""
    return [from_key(key) for key in self]


@table.op(*each("aten::values.K(Dict(K, t) self) -> t[](*)"))
def values(xp, self):
    """A list of the values."""
    return list(self.values())


@table.op(*each("aten::items.K(Dict(K, t) self) -> ((K, t)[])"))
def items(xp, self):
    """A list of the pairs."""
    return [(from_key(key), value) for key, value in self.items()]
