"""Archives that somebody wrote to do harm: one line that says what is wrong, within a second, in bounded memory, and nothing is run."""
from __future__ import annotations

import io
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping

import numpy as np
import pytest

import irtool

SECONDS, MEMORY = 5.0, 256 << 20     # tracing memory costs time
HEAD = "class M(Module):\n  __parameters__ = [\"w\", ]\n  __buffers__ = []\n  w : Tensor\n"
METHOD = "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n"
CODE = f"{HEAD}{METHOD}    return torch.add(x, self.w)\n"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu%stQ"


def long(number: int) -> bytes:
    """A number as a pickle has it."""
    width = max(1, (number.bit_length() + 8) // 8)
    return b"\x8a" + bytes([width]) + number.to_bytes(width, "little", signed=True)


def longs(numbers: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(long, numbers)) + b"t"


def tensor(offset: int = 0, size: tuple[int, ...] = (4,), stride: tuple[int, ...] = (1,), count: int = 4) -> bytes:
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE % long(count) + long(offset) + longs(size) + longs(stride)
            + b"\x88ccollections\nOrderedDict\n)RtR")


def module(weight: bytes) -> bytes:
    """The pickle of the module, with that in place of its weight."""
    return b"\x80\x02c__torch__\nM\n)\x81}(X\x01\x00\x00\x00w" + weight + b"ub."


GOOD = {"data.pkl": module(tensor()), "constants.pkl": b"\x80\x02).", "version": b"3", "data/0": np.ones(4, np.float32).tobytes(),
        "code/__torch__.py": CODE.encode()}


def zipped(records: Mapping[str, bytes | str | None], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in records.items():
            if data is not None:
                archive.writestr(name if name.startswith("/") or ".." in name else f"m/{name}", data)
    return file.getvalue()


def with_(**changes: bytes | str | None) -> bytes:
    """The good archive with other records: `data_pkl` is `data.pkl`, `code` the code, `storage` the bytes of the weight."""
    names = {"data_pkl": "data.pkl", "constants_pkl": "constants.pkl", "code": "code/__torch__.py", "storage": "data/0"}
    return zipped({**GOOD, **{names.get(key, key): data for key, data in changes.items()}})


def body(text: str) -> bytes:
    return with_(code=f"{HEAD}{METHOD}{text}")


def returning(expression: str) -> bytes:
    return body(f"    return {expression}\n")


def directory(change: Callable[[bytearray, int], None], record: int = 0) -> bytes:
    """The good archive with an entry of its directory changed."""
    data = bytearray(zipped(GOOD))
    place = -1
    for _ in range(record + 1):
        place = data.index(b"PK\x01\x02", place + 1)
    change(data, place)
    return bytes(data)


def put(offset: int, form: str, value: int) -> Callable[[bytearray, int], None]:
    return lambda data, place: struct.pack_into(form, data, place + offset, value)


def cyclic_list() -> bytes:
    return b"]q\x01(h\x01h\x01e"


HOSTILE: dict[str, bytes | Callable[[], bytes]] = {
    # the zip
    "no zip": b"PK\x03\x04" + bytes(100), "an end alone": b"PK\x05\x06" + bytes(18), "cut": zipped(GOOD)[:-30],
    "a compressed size beyond the file": directory(put(20, "<I", 2**31)), "a size beyond the file": directory(put(24, "<I", 2**31)),
    "two sizes of a stored record": directory(put(24, "<I", 5)), "an offset beyond the file": directory(put(42, "<I", 2**30)),
    "records that overlap": directory(put(42, "<I", 0), 1), "another checksum": directory(put(16, "<I", 1)),
    "encrypted": directory(put(8, "<H", 1)), "an unknown method": directory(put(10, "<H", 99)),
    "a name beyond the directory": directory(put(28, "<H", 0xFFFF)), "sizes of zip64 without them": directory(put(24, "<I", 2**32 - 1)),
    "a path to above": zipped({**GOOD, "m/../../x": b""}), "a path from the root": zipped({**GOOD, "/etc/x": b""}),
    "a backslash": zipped({**GOOD, "data\\x": b""}), "a drive": zipped({"../c:/x": b"", **GOOD}),
    "an empty part": zipped({**GOOD, "data//x": b""}), "a dot": zipped({**GOOD, "./x": b""}),
    "no folder": zipped({"../x": b"1"}), "nothing but a version": zipped({"version": b"3"}),
    "a bomb": lambda: zipped({**GOOD, "extra/x": bytes(80 << 20)}, zipfile.ZIP_DEFLATED),
    # small records
    "no version": with_(version=None), "version -1": with_(version=b"-1"), "version 1e1": with_(version=b"1e1"),
    "another digit 3": with_(version="٣"), "a long version": with_(version=b"3" * 10**6), "bytes for a version": with_(version=b"\xff\xfe"),
    "an order": with_(byteorder=b"both"), "no code": with_(code=None), "no constants": with_(constants_pkl=None),
    "constants that are a list": with_(constants_pkl=b"\x80\x02]."), "no pickle": with_(data_pkl=b""),
    # pickles
    "a shell": with_(data_pkl=b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00idtR."), "eval": with_(data_pkl=b"\x80\x02c__builtin__\neval\n."),
    "getattr": with_(data_pkl=b"\x80\x02cbuiltins\ngetattr\n."), "an instance by name": with_(data_pkl=b"(ios\nsystem\n."),
    "a name of the stack": with_(data_pkl=b"\x80\x04\x8c\x02os\x8c\x06system\x93."), "an extension": with_(data_pkl=b"\x80\x02\x82\x01."),
    "a storage by text": with_(data_pkl=b"\x80\x02Pid\n."), "protocol 255": with_(data_pkl=b"\x80\xff."),
    "a class that is not there": with_(data_pkl=b"\x80\x02c__torch__\nN\n)\x81."),
    "a class above": with_(data_pkl=b"\x80\x02c__torch__.../x\nN\n)\x81."),
    "a name without an end": with_(data_pkl=b"\x80\x02c" + b"a" * 10**6), "text of 4 GB": with_(data_pkl=b"\x80\x02X\xff\xff\xff\xff."),
    "a long of 255 bytes": with_(data_pkl=b"\x80\x02\x8a\xff."), "a memo that is not there": with_(data_pkl=b"\x80\x02j\xff\xff\xff\xff."),
    "marks alone": with_(data_pkl=b"\x80\x02" + b"(" * 10**5 + b"."),
    "tuples in tuples": with_(data_pkl=module(b"(" * 10**5 + b"t" * 10**5)),
    "lists in lists": with_(data_pkl=module(b"]" * 10**5 + b"a" * (10**5 - 1))),
    "a list in itself": with_(data_pkl=module(cyclic_list())),
    "a state in itself": with_(data_pkl=b"\x80\x02c__torch__\nM\n)\x81q\x01h\x01b."),
    "a module in itself": with_(data_pkl=b"\x80\x02c__torch__\nM\n)\x81q\x01}(X\x01\x00\x00\x00wh\x01ub."),
    "a list that doubles": with_(data_pkl=module(b"]q\x00" + b"]q\x00(h\x00h\x00e" * 200)),
    "a number for a weight": with_(data_pkl=module(b"K\x01")), "no weight": with_(data_pkl=b"\x80\x02c__torch__\nM\n)\x81}b."),
    "a state twice as a number": with_(data_pkl=b"\x80\x02c__torch__\nM\n)\x81K\x01b."),
    "a key of bytes": with_(data_pkl=b"\x80\x02}(]K\x01u."),
    "a tensor of too few": with_(data_pkl=module(b"ctorch._utils\n_rebuild_tensor_v2\n)R")),
    "complex of text": with_(data_pkl=module(b"cbuiltins\ncomplex\n(X\x01\x00\x00\x00xK\x01tR")),
    # storages
    "a storage that is too short": with_(storage=bytes(12)), "no storage": with_(storage=None),
    "an offset before": with_(data_pkl=module(tensor(offset=-1))), "an offset behind": with_(data_pkl=module(tensor(offset=1))),
    "a huge offset": with_(data_pkl=module(tensor(offset=2**64))), "strides beyond": with_(data_pkl=module(tensor(stride=(2,)))),
    "strides back": with_(data_pkl=module(tensor(stride=(-1,)))), "huge strides": with_(data_pkl=module(tensor(stride=(2**62,)))),
    "other ranks": with_(data_pkl=module(tensor(size=(2, 2)))),
    "100 dimensions": with_(data_pkl=module(tensor(size=(1,) * 100, stride=(1,) * 100))),
    "a size below": with_(data_pkl=module(tensor(size=(-4,)))),
    "a huge size": with_(data_pkl=module(tensor(size=(2**40, 2**40), stride=(0, 0)))),
    "a huge empty size": with_(data_pkl=module(tensor(size=(2**62, 0, 2**62), stride=(0, 0, 0)))),
    "2**60 expanded numbers": with_(data_pkl=module(tensor(size=(2**60,), stride=(0,)))),
    "a count below": with_(data_pkl=module(tensor(count=-1))), "a huge count": with_(data_pkl=module(tensor(count=2**62))),
    # code
    "parentheses": returning("(" * 10**5 + "x" + ")" * 10**5), "minus signs": returning("-" * 10**5 + "x"),
    "a long sum": returning("+".join(["x"] * 10**5)), "a long chain": returning("x" + ".t()" * 10**4),
    "lists in code": returning("[" * 5000 + "]" * 5000), "attributes": returning("x" + ".y" * 5000),
    "blocks": body("".join(" " * (4 + i) + "if True:\n" for i in range(3000)) + " " * 3004 + "return x\n"),
    "a long number": returning(f"torch.add(x, {'9' * 10**5})"), "a name of Python": returning("x.__class__"),
    "a call of Python": returning("eval(\"1\")"), "an import": returning("__import__(\"os\")"), "a NUL": returning("x\0"),
    "no UTF-8": with_(code=CODE.encode() + b"\xff"), "a line cut": with_(code=CODE[:-8]), "a lambda": returning("(lambda: x)()"),
    "a method that calls itself": returning("(self).forward(x, )"), "an operator that is not there": returning("ops.nothing.at_all(x)"),
    "a statement": with_(code="print(1)\n" + CODE), "a class twice": with_(code=CODE + CODE),
    "an endless type": with_(code=CODE.replace("w : Tensor", "w : " + "List[" * 5000 + "int" + "]" * 5000)),
    "a class in itself": with_(code=CODE.replace("w : Tensor", "w : __torch__.M")),
    "a default of nothing": with_(code=CODE.replace("x: Tensor)", "x: Tensor=y)")),
}


def test_the_good_archive_runs() -> None:
    np.testing.assert_array_equal(irtool.load(zipped(GOOD)).forward(np.ones(4, np.float32)), np.full(4, 2))


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_harm_is_refused(name: str) -> None:
    each = HOSTILE[name]
    data = each() if callable(each) else each
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(irtool.Error) as raised:
            irtool.load(data).forward(np.ones(4, np.float32))
        seconds, memory = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(raised.value).strip()
    assert seconds < SECONDS and memory < MEMORY
