"""Pickles as data: a machine for the opcodes that archives have, and a table of the few functions that they may call. Nothing is imported.

Source of the opcodes: Python's pickletools; of the names: torch/csrc/jit/serialization/pickler.cpp.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from irtool.ir.errors import Error

MAX_NAME = 4096
"""The longest name of a class, in bytes."""
CALLED = {
    ("torch._utils", "_rebuild_tensor_v2"): "tensor", ("torch._utils", "_rebuild_qtensor"): "quantized",
    ("torch._utils", "_rebuild_sparse_tensor"): "sparse", ("collections", "OrderedDict"): "mapping",
    ("torch.jit._pickle", "build_intlist"): "listed", ("torch.jit._pickle", "build_doublelist"): "listed",
    ("torch.jit._pickle", "build_boollist"): "listed", ("torch.jit._pickle", "build_tensorlist"): "listed",
    ("torch.jit._pickle", "restore_type_tag"): "tagged", ("torch.jit._pickle", "build_tensor_from_id"): "row",
    ("builtins", "complex"): "complex_number", ("__builtin__", "complex"): "complex_number", ("torch", "device"): "device",
}
"""A function that pickles may call -> the method of `World` for it, after a `_`; most are in pickled_values.py."""
STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
}
"""Classes of storages -> the dtype of their elements."""
SCHEMES = frozenset(("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams"))


class Global:
    """A name in a pickle: a class of the archive, a function of CALLED, the class of a storage, or a quantization scheme."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_class(self) -> bool:
        """Is the name that of a class of the archive?"""
        return self.module.partition(".")[0] == "__torch__"


class World(Protocol):
    """Makes the instances and tensors that a pickle describes. Its methods raise Error."""

    def instance(self, path: str) -> Any:
        """A new instance of a class, without attributes."""

    def build(self, instance: Any, state: Any) -> None:
        """Set the state of an instance."""

    def member(self, path: str, value: Any) -> Any:
        """The member of an enumeration with this value."""

    def storage(self, dtype: str, key: str, count: int) -> Any:
        """The storage of a key, with this number of elements."""

    def call(self, what: str, arguments: Sequence[Any]) -> Any:
        """The result of one of the functions in CALLED."""


class Mark:
    """Marks on the stack the start of the items of a tuple, list or dict."""

    __slots__ = ()


MARK = Mark()


class Machine:
    """Reads one pickle."""

    def __init__(self, data: Any, where: str, world: World, opcodes: Mapping[int, Callable[[Machine], None]] | None = None,
                 place: int = 0) -> None:
        """data: bytes or mapped memory, in which the pickle begins at `place`; opcodes: OPCODES, or an extended table."""
        self.data = data
        self.where = where
        self.world = world
        self.opcodes = OPCODES if opcodes is None else opcodes
        self.place = place
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value of the pickle. Raises Error."""
        data = self.data
        while True:
            if self.place >= len(data):
                self.fail("ends without STOP")
            code = data[self.place]
            self.place += 1
            if code == 0x2E:    # STOP
                if len(self.stack) != 1:
                    self.fail(f"ends with {len(self.stack)} values, expected one")
                return self.stack[0]
            handler = self.opcodes.get(code)
            if handler is None:
                self.fail(f"opcode 0x{code:02x}, which no archive has")
            handler(self)

    def fail(self, message: str) -> NoReturn:
        """Raise an Error at the current byte."""
        raise Error(f"{self.where}: pickle: {message} (byte {max(self.place - 1, 0)})", code="E0712")

    # -- bytes
    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.place + count
        if count < 0 or end > len(self.data):
            self.fail(f"{count} bytes wanted where {len(self.data) - self.place} are left")
        data: bytes = self.data[self.place:end]
        self.place = end
        return data

    def number(self, form: str) -> Any:
        """The next bytes as a number of struct's form."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, count: int) -> str:
        """The next bytes as text."""
        try:
            return self.take(count).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self.fail("a string that is no UTF-8")

    def line(self) -> str:
        """The bytes up to the next line break, as text."""
        end = self.data.find(b"\n", self.place, self.place + MAX_NAME)
        if end < 0:
            self.fail("a name without an end")
        text = self.text(end - self.place)
        self.place += 1
        return text

    # -- the stack
    def pop(self) -> Any:
        """Remove and return the last value."""
        if not self.stack or self.stack[-1] is MARK:
            self.fail("a value is missing on the stack")
        return self.stack.pop()

    def items(self) -> list[Any]:
        """Remove and return the values after the last mark, and remove the mark."""
        stack = self.stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] is MARK:
                items = stack[index + 1:]
                del stack[index:]
                return items
        self.fail("a mark is missing on the stack")

    def last(self, kind: type) -> Any:
        """The last value, which must be a list or a dict."""
        if not self.stack or not isinstance(self.stack[-1], kind):
            self.fail(f"items for something that is no {kind.__name__}")
        return self.stack[-1]


# -- opcodes
def _constant(value: Any) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(value)


def _number(form: str) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(m.number(form))


def _fresh(kind: type) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(kind())


def _protocol(m: Machine) -> None:
    version = m.take(1)[0]
    if version > 4:
        m.fail(f"protocol {version}, expected 2")


def _long(m: Machine) -> None:
    m.stack.append(int.from_bytes(m.take(m.take(1)[0]), "little", signed=True))


def _global(m: Machine) -> None:
    module, name = m.line(), m.line()
    named = Global(module, name)
    if not (named.is_class or (module, name) in CALLED or module == "torch" and (name in STORAGES or name in SCHEMES)):
        m.fail(f"the name '{module[:80]}.{name[:80]}', which no archive mentions: nothing is imported or called")
    m.stack.append(named)


def _tuple(count: int) -> Callable[[Machine], None]:
    def read(m: Machine) -> None:
        items = [m.pop() for _ in range(count)]
        m.stack.append(tuple(reversed(items)))
    return read


def _append(m: Machine) -> None:
    value = m.pop()
    m.last(list).append(value)


def _appends(m: Machine) -> None:
    items = m.items()
    m.last(list).extend(items)


def _set(m: Machine, mapping: dict[Any, Any], pairs: Sequence[Any]) -> None:
    if len(pairs) % 2:
        m.fail("a key without a value")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(key, str | int | float | complex):
            m.fail(f"a key of a dict that is a {type(key).__name__}")
        mapping[key] = value


def _set_item(m: Machine) -> None:
    value = m.pop()
    key = m.pop()
    _set(m, m.last(dict), (key, value))


def _set_items(m: Machine) -> None:
    items = m.items()
    _set(m, m.last(dict), items)


def _memoize(form: str) -> Callable[[Machine], None]:
    def read(m: Machine) -> None:
        number = m.number(form)
        if not m.stack or m.stack[-1] is MARK:
            m.fail("nothing to remember")
        m.memo[number] = m.stack[-1]
    return read


def _recall(form: str) -> Callable[[Machine], None]:
    def read(m: Machine) -> None:
        number = m.number(form)
        if number not in m.memo:
            m.fail(f"value {number} was not remembered")
        m.stack.append(m.memo[number])
    return read


def _new(m: Machine) -> None:
    arguments, named = m.pop(), m.pop()
    if not isinstance(named, Global) or not named.is_class or arguments != ():
        m.fail("an instance of something that is no class of the archive")
    m.stack.append(m.world.instance(named.path))


def _build(m: Machine) -> None:
    state = m.pop()
    if not m.stack or m.stack[-1] is MARK or isinstance(m.stack[-1], Global):
        m.fail("a state for nothing")
    m.world.build(m.stack[-1], state)


def _reduce(m: Machine) -> None:
    arguments, named = m.pop(), m.pop()
    # the class of an enumeration: torch writes its argument as the value, Python as a tuple of the value
    if isinstance(named, Global) and named.is_class:
        is_tuple = isinstance(arguments, tuple) and len(arguments) == 1
        m.stack.append(m.world.member(named.path, arguments[0] if is_tuple else arguments))
        return
    if not isinstance(named, Global) or not isinstance(arguments, tuple):
        m.fail("a call of something that is no function")
    what = CALLED.get((named.module, named.name))
    if what is None:
        m.fail(f"a call of '{named.path}'")
    try:
        m.stack.append(m.world.call(what, arguments))
    except (TypeError, ValueError, OverflowError) as error:
        m.fail(f"{named.name}: {error}")


def _storage(m: Machine) -> None:
    persistent = m.pop()
    if not (isinstance(persistent, tuple) and len(persistent) in (5, 6) and isinstance(persistent[0], str)
            and persistent[0] == "storage" and isinstance(persistent[1], Global)
            and persistent[1].name in STORAGES and isinstance(persistent[2], str) and isinstance(persistent[4], int)):
        m.fail("a storage that is not ('storage', class, key, location, count)")
    _, named, key, _, count = persistent[:5]
    m.stack.append(m.world.storage(STORAGES[named.name], key, count))


OPCODES: dict[int, Callable[[Machine], None]] = {
    0x80: _protocol, ord("c"): _global, ord(")"): _fresh(tuple), ord("t"): lambda m: m.stack.append(tuple(m.items())),
    0x85: _tuple(1), 0x86: _tuple(2), 0x87: _tuple(3), ord("]"): _fresh(list), ord("a"): _append, ord("e"): _appends,
    ord("}"): _fresh(dict), ord("s"): _set_item, ord("u"): _set_items, ord("("): _constant(MARK), 0x81: _new, ord("b"): _build,
    ord("R"): _reduce, ord("Q"): _storage, ord("N"): _constant(None), 0x88: _constant(True), 0x89: _constant(False),
    ord("J"): _number("<i"), ord("K"): _number("<B"), ord("M"): _number("<H"), 0x8A: _long, ord("G"): _number(">d"),
    ord("X"): lambda m: m.stack.append(m.text(m.number("<I"))), 0x8C: lambda m: m.stack.append(m.text(m.take(1)[0])),
    ord("q"): _memoize("<B"), ord("r"): _memoize("<I"), ord("h"): _recall("<B"), ord("j"): _recall("<I"),
    ord("0"): lambda m: (m.pop(), None)[1],
}
"""Opcode -> the function that executes it; `Machine.run` handles STOP."""


def unpickle(data: bytes, where: str, world: World) -> Any:
    """The value of a pickle, made by `world`; `where` is the name of its record in messages. Raises Error."""
    return Machine(data, where, world).run()
