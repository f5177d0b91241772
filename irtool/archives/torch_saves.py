"""Files of `torch.save`: arrays by dotted name, from a pickle that may mention anything. Nothing is imported or called.

Since torch 1.6 the file is a zip whose `data.pkl` is the pickle; before (and with `_use_new_zipfile_serialization=False`) it is several
pickles, followed by the storages. Instances of classes that are not known here are `Unknown`: their state may contain tensors, too.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, cast

from irtool.archives.container import Container
from irtool.archives.pickled_values import PickledValues
from irtool.archives.pickles import CALLED, MARK, OPCODES, STORAGES, Global, Machine
from irtool.archives.storages import QUANTIZED, Storage, is_big_endian, read_storage, storage_of
from irtool.interop.npz import Archive
from irtool.ir.callers import warn_in_users_code
from irtool.ir.errors import Error
from irtool.ir.source import quoted
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.quantized import Quantized

MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
"""The first pickle of a file from before torch 1.6: a number."""
PROTOCOL = 1001
MAX_DEPTH, MAX_PLACES = 100, 500_000
"""The deepest nesting of dicts, and the number of values in them, that are searched."""
LISTED = 3
DTYPES = frozenset(("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"))
"""Dtypes without a class of storages; a storage of bytes and the dtype stand for them."""
REBUILT = {
    ("torch._utils", "_rebuild_tensor"): "old_tensor", ("torch._utils", "_rebuild_tensor_v3"): "typed_tensor",
    ("torch._utils", "_rebuild_parameter"): "parameter", ("torch._utils", "_rebuild_parameter_with_state"): "parameter",
    ("torch._tensor", "_rebuild_from_type_v2"): "of_type", ("collections", "OrderedDict"): "pairs", ("collections", "defaultdict"): "fresh",
    ("torch", "Size"): "listed", ("_codecs", "encode"): "encoded",
}
"""What such a pickle may call besides CALLED -> the method of `Saved` for it."""
TENSORS = "tensor", "old_tensor", "typed_tensor", "quantized", "sparse"
NUMPY = {f"numpy.{core}.multiarray.{name}": what for core in ("core", "_core") for name, what in (("_reconstruct", "array"),
                                                                                                  ("scalar", "number"))}
"""Functions that make NumPy's arrays and numbers."""
PLAIN = str, int, float, complex, bytes
WAY_OUT = "its code is Python's own. In torch, torch.jit.script(module).save(FILE) makes an archive that runs here, and " \
    "torch.save(module.state_dict(), FILE) a file of its weights"


class WeightsWarning(UserWarning):
    """A file of weights contains values that are no arrays; they are left out."""

    code = "W0108"


class Unknown:
    """An instance of a class, or the result of a function, that is not known here: its name, and its arguments in the pickle."""

    __slots__ = ("path", "arguments", "state", "items", "pairs")

    def __init__(self, path: str, arguments: Any = ()) -> None:
        self.path = path
        self.arguments = arguments
        self.state: Any = None
        self.items: list[Any] = []
        self.pairs: dict[Any, Any] = {}

    @property
    def is_module(self) -> bool:
        """Is the instance a torch.nn.Module? Decided by its state, which has `_modules` and `_parameters`."""
        states = self.state, *(self.arguments if isinstance(self.arguments, tuple) else ())
        return any([isinstance(state, dict) and "_modules" in state and "_parameters" in state for state in states])


class SaveMachine(Machine):
    """Reads one pickle of torch.save."""

    def last(self, kind: type) -> Any:
        """The last value, which must be a list or a dict, or derived from one."""
        if self.stack and isinstance(self.stack[-1], Unknown):
            return self.stack[-1].pairs if kind is dict else self.stack[-1].items
        return super().last(kind)

    def called(self, function: Any, arguments: Any) -> Any:
        """The result of a call."""
        if not isinstance(function, Global) or not isinstance(arguments, tuple):
            return Unknown("")
        what = REBUILT.get((function.module, function.name)) or CALLED.get((function.module, function.name))
        if what is None:
            return Unknown(function.path, arguments)
        try:
            return self.world.call(what, arguments)
        except (TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
            self.fail(f"{function.name}: {error}")


# -- opcodes that differ, and opcodes that only Python writes
def _global(m: Machine) -> None:
    module = m.line()
    m.stack.append(Global(module, m.line()))


def _stack_global(m: Machine) -> None:
    name, module = m.pop(), m.pop()
    if not isinstance(module, str) or not isinstance(name, str):
        m.fail("a name that is no text")
    m.stack.append(Global(module, name))


def _new(m: Machine) -> None:
    arguments, named = m.pop(), m.pop()
    m.stack.append(Unknown(named.path if isinstance(named, Global) else "", arguments))


def _new_by_names(m: Machine) -> None:
    m.pop()
    _new(m)


def _reduce(m: Machine) -> None:
    arguments, function = m.pop(), m.pop()
    assert isinstance(m, SaveMachine)
    m.stack.append(m.called(function, arguments))


def _build(m: Machine) -> None:
    state = m.pop()
    if m.stack and isinstance(m.stack[-1], Unknown):
        m.stack[-1].state = state


def _set(m: Machine, mapping: dict[Any, Any], pairs: list[Any]) -> None:
    if len(pairs) % 2:
        m.fail("a key without a value")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        is_plain = isinstance(key, str | int | float | complex) or key is None
        mapping[key if is_plain else f"<key {len(mapping)}>"] = value


def _set_item(m: Machine) -> None:
    value = m.pop()
    key = m.pop()
    _set(m, m.last(dict), [key, value])


def _set_items(m: Machine) -> None:
    items = m.items()
    _set(m, m.last(dict), items)


def _listed(m: Machine) -> None:
    items = m.items()
    m.last(list).extend(items)


def _persistent(m: Machine) -> None:
    persistent = m.pop()
    kind = persistent[0] if isinstance(persistent, tuple) and persistent else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind == "module" and len(persistent) > 1:
        m.stack.append(persistent[1])
        return
    if not (kind == "storage" and len(persistent) in (5, 6) and isinstance(persistent[1], Global) and isinstance(persistent[2], str)
            and type(persistent[4]) is int):
        m.fail("a storage that is not ('storage', class, key, location, count)")
    dtype = STORAGES.get(persistent[1].name, "uint8")
    view = persistent[5] if len(persistent) == 6 else None
    storage = m.world.storage(dtype, persistent[2], persistent[4])
    if view is not None:
        if not (isinstance(view, tuple) and len(view) == 3 and all(type(each) is int and each >= 0 for each in view[1:])
                and view[1] + view[2] <= storage.count):
            m.fail("a view of a storage that leaves it")
        storage = Storage(dtype, view[2], storage.array[view[1]:view[1] + view[2]], storage.where)
    m.stack.append(storage)


def _bytes(form: str) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(bytes(m.take(m.number(form))))


def _old_text(form: str) -> Callable[[Machine], None]:
    """A string of Python 2, text or bytes."""
    return lambda m: m.stack.append(bytes(m.take(m.number(form))).decode("latin1"))


def _memoize(m: Machine) -> None:
    if not m.stack or m.stack[-1] is MARK:
        m.fail("nothing to remember")
    m.memo[len(m.memo)] = m.stack[-1]


SAVED = {
    **OPCODES, ord("c"): _global, 0x81: _new, ord("R"): _reduce, ord("b"): _build, ord("s"): _set_item, ord("u"): _set_items,
    ord("e"): _listed, ord("Q"): _persistent, ord("B"): _bytes("<I"), ord("C"): _bytes("<B"), ord("T"): _old_text("<I"),
    ord("U"): _old_text("<B"), 0x8B: lambda m: m.stack.append(int.from_bytes(m.take(m.number("<i")), "little", signed=True)),
    0x8E: _bytes("<Q"), 0x8D: lambda m: m.stack.append(m.text(m.number("<Q"))), 0x8F: lambda m: m.stack.append([]), 0x90: _listed,
    0x91: lambda m: m.stack.append(m.items()), 0x92: _new_by_names, 0x93: _stack_global, 0x94: _memoize,
    0x95: lambda m: (m.take(8), None)[1],
}


class Saved(PickledValues):
    """Makes the objects that a pickle of torch.save describes."""

    def __init__(self, name: str, storage: Callable[[str, str, int], Storage], is_big: bool = False) -> None:
        """storage: returns the storage for a dtype, a key and a number of elements; is_big: are numbers big-endian?"""
        super().__init__(name)
        self._storage = storage
        self._is_big = is_big
        self.rounded: dict[int, Any] = {}
        """The id of an array that was bfloat16 -> the array."""

    def storage(self, dtype: str, key: str, count: int) -> Storage:
        """The storage of a key."""
        return self._storage(dtype, key, count)

    def instance(self, path: str) -> Any:
        """An instance of an archive's class, which is treated like any other here."""
        return Unknown(path)

    def build(self, instance: Any, state: Any) -> None:
        """Does nothing; `_build` does the work."""

    def member(self, path: str, value: Any) -> Any:
        """A member of an enumeration."""
        return Unknown(path, (value,))

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
                extra: Any = None) -> Any:
        array = super()._tensor(storage, offset, size, stride, requires_grad, hooks, extra)
        if isinstance(extra, dict) and extra.get("neg"):
            array = np.negative(array)
        if storage.dtype == "bfloat16":
            self.rounded[id(array)] = array
        return array

    _old_tensor = _tensor

    def _typed_tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
                      extra: Any = None) -> Any:
        if not isinstance(dtype, Global) or dtype.module != "torch" or dtype.name not in DTYPES or self._is_big:
            raise ValueError(f"tensors of {getattr(dtype, 'name', dtype)} are not supported")
        return self._tensor(storage_of(storage.array, dtype.name, storage.where), offset, size, stride, requires_grad, hooks, extra)

    def _parameter(self, data: Any, *_: Any) -> Any:
        return data

    def _of_type(self, function: Any, type: Any, arguments: Any, state: Any) -> Any:
        what = REBUILT.get((function.module, function.name)) or CALLED.get((function.module, function.name))
        return Unknown(function.path, arguments) if what is None else self.call(what, arguments)

    def _pairs(self, items: Any = ()) -> dict[Any, Any]:
        return {str(key) if not isinstance(key, int) else key: value for key, value in items}

    def _fresh(self, *_: Any) -> dict[Any, Any]:
        return {}

    def _listed(self, items: Any) -> list[Any]:
        return list(items)

    def _encoded(self, text: Any, *_: Any) -> bytes:
        return str(text).encode("latin1")


# -- the two layouts
def read_zip(container: Container) -> Archive:
    """The arrays of a zip of torch.save by dotted name. Raises Error."""
    is_big = is_big_endian(container)
    known: dict[str, Storage] = {}

    def storage(dtype: str, key: str, count: int) -> Storage:
        if key not in known:
            known[key] = read_storage(container, f"data/{key}", dtype, count, is_big)
        elif (known[key].dtype, known[key].count) != (dtype, count):
            container.fail(f"data/{key}", f"{known[key].count} elements of {known[key].dtype}, and {count} of {dtype}")
        return known[key]

    saved = Saved(container.name, storage, is_big)
    machine = SaveMachine(container.read("data.pkl"), f"{container.name}: record 'data.pkl'", saved, SAVED)
    return named_arrays(machine.run(), saved)


def read_legacy(memory: Any, name: str) -> Archive:
    """The arrays of a file of torch.save from before 1.6 by dotted name. Raises Error.

    The storages follow the pickle that needs them, so the pickle is read twice.
    """
    kinds: dict[str, tuple[str, int]] = {}

    def noted(dtype: str, key: str, count: int) -> Storage:
        if kinds.setdefault(key, (dtype, count)) != (dtype, count):
            raise Error(f"{name}: storage '{quoted(key)}': {kinds[key][1]} elements of {kinds[key][0]}, and {count} of {dtype}",
                        code="E0712")
        return Storage(dtype, count, np.empty(0, np.uint8), name)

    place = len(MAGIC)
    values: list[Any] = []
    for _ in range(2):      # the pickles of the protocol's version and the system
        machine = SaveMachine(memory, name, Saved(name, noted), SAVED, place)
        values.append(machine.run())
        place = machine.place
    if not isinstance(values[0], int) or values[0] != PROTOCOL:
        raise Error(f"{name}: no file of torch.save: another protocol than {PROTOCOL}", code="E0711")
    scan = SaveMachine(memory, name, Scanned(name, noted), SAVED, place)
    scan.run()
    keys = SaveMachine(memory, name, Saved(name, noted), SAVED, scan.place)
    listed = keys.run()
    storages: dict[str, Storage] = {}
    end = keys.place
    for key in listed if isinstance(listed, list) else []:
        dtype, count = kinds.get(key, ("", 0)) if isinstance(key, str) else ("", 0)
        if not dtype or bytes(memory[end:end + 8]) != struct.pack("<q", count):
            raise Error(f"{name}: storage '{quoted(key[:80]) if isinstance(key, str) else '?'}' is damaged, or no tensor's", code="E0711")
        width = np.dtype("uint16" if dtype == "bfloat16" else QUANTIZED.get(dtype, dtype)).itemsize
        if end + 8 + count * width > len(memory):
            raise Error(f"{name}: storage '{quoted(key)}': {count} elements of {dtype}, but the file ends", code="E0711")
        bytes_of = np.frombuffer(memory, np.uint8, count * width, end + 8) if count else np.empty(0, np.uint8)
        storages[key] = storage_of(bytes_of.copy(), dtype, f"{name}: storage '{quoted(key)}'")
        end += 8 + count * width

    def storage(dtype: str, key: str, count: int) -> Storage:
        if key not in storages:
            raise Error(f"{name}: the storage '{quoted(key)}' of a tensor is missing", code="E0711")
        return storages[key]

    saved = Saved(name, storage)
    return named_arrays(SaveMachine(memory, name, saved, SAVED, place).run(), saved)


class Scanned(Saved):
    """As `Saved`, for a pickle of which only the end and the names of its storages are needed."""

    def call(self, what: str, arguments: Any) -> Any:
        return None if what in TENSORS else super().call(what, arguments)


# -- by dotted name
def named_arrays(root: Any, saved: Saved) -> Archive:
    """The arrays in nested dicts and lists by dotted name; a single tensor is `0`. Raises Error for a pickled module.

    Numbers and strings are left out, and a warning names them.
    """
    archive = Archive()
    seen = ""
    left_out: list[str] = []
    for name, value in places(saved.name, [root] if is_array(root) or isinstance(root, Quantized) else root):
        if isinstance(value, Unknown) and value.path in NUMPY:
            value = numpy_array(value, saved.name)
            if value is None:
                left_out.append(name)
        if isinstance(value, Unknown):
            seen = seen or value.path
            if value.is_module:
                where = f"'{quoted(name)}' is " if name else ""
                raise Error(f"{saved.name}: {where}a pickled module, '{quoted(value.path)}': {WAY_OUT}", code="E0711")
        elif is_array(value) or isinstance(value, Quantized):
            if name in archive.arrays:
                raise Error(f"{saved.name}: two tensors are called '{quoted(name)}'", code="E0711")
            archive.arrays[name] = cast(Any, value)
            if id(value) in saved.rounded:
                archive.bfloat16.add(name)
        elif isinstance(value, PLAIN) and name:
            left_out.append(name)
    if not archive.arrays and not (isinstance(root, dict) and not root):
        what = f"an instance of '{quoted(seen)}', and {WAY_OUT}" if seen or isinstance(root, Unknown) else f"a {type(root).__name__}"
        raise Error(f"{saved.name}: no tensors in what torch.save wrote: it is {what}", code="E0711")
    if left_out:
        names = ", ".join(f"'{quoted(name)}'" for name in left_out[:LISTED])
        more = f" and {len(left_out) - LISTED} more" if len(left_out) > LISTED else ""
        warn_in_users_code(f"{saved.name}: {names}{more}: no tensors, and left out of the weights", WeightsWarning)
    return archive


def numpy_array(value: Unknown, where: str) -> Any:
    """The NumPy array whose parts a pickle contains; None if it is not of numbers. Raises Error."""
    parts = value.state if NUMPY[value.path] == "array" else (0, (), *value.arguments, b"")
    if not isinstance(parts, tuple) or len(parts) != 5:
        return None
    _, shape, dtype, is_fortran, data = parts if NUMPY[value.path] == "array" else (*parts[:3], False, parts[3])
    form = dtype.arguments[0] if isinstance(dtype, Unknown) and dtype.path == "numpy.dtype" and dtype.arguments else ""
    if not isinstance(form, str) or form[:1] not in tuple("biufc") or not form[1:].isdecimal() or not isinstance(dtype.state, tuple) \
            or len(dtype.state) < 2 or dtype.state[1] not in ("<", ">", "|", "="):
        return None
    try:
        array = np.frombuffer(bytearray(data.encode("latin1") if isinstance(data, str) else data), f"{dtype.state[1]}{form[:3]}")
        return array.reshape(shape, order="F" if is_fortran else "C").astype(array.dtype.newbyteorder("="))
    except (TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise Error(f"{where}: an array of NumPy: {error}", code="E0712") from None


def places(where: str, root: Any) -> Iterator[tuple[str, Any]]:
    """All values in a value by dotted name, itself first. Raises Error for values that contain themselves, or too many."""
    todo = [("", root, 0)]
    count = 0
    while todo:
        name, value, depth = todo.pop()
        yield name, value
        inner: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            inner = list(value.items())
        elif isinstance(value, list | tuple):
            inner = list(enumerate(value))
        elif isinstance(value, Unknown) and value.path not in NUMPY:
            parts = [value.pairs, value.items, value.state, value.arguments]
            inner = [pair for part in parts if isinstance(part, dict | list | tuple)
                     for pair in (part.items() if isinstance(part, dict) else enumerate(part))]
        if not isinstance(value, Unknown):
            yield from ((f"{name}.{key}" if name else str(key), each) for key, each in inner if isinstance(each, PLAIN))
        inner = [pair for pair in inner if not isinstance(pair[1], (*PLAIN, NoneType))]
        count += len(inner)
        if depth >= MAX_DEPTH or count > MAX_PLACES:
            raise Error(f"{where}: values nested deeper than {MAX_DEPTH}, or more than {MAX_PLACES} of them", code="E0711")
        todo += [(f"{name}.{key}" if name else str(key), each, depth + 1) for key, each in reversed(inner)]
