"""Damaged TorchScript archives: an irtool.Error or a result, soon, in bounded memory.

The text of a case names an archive of tests/data, and what is done to it: a line for each change, `record NAME SEED`, `pickle NAME SEED`,
`source NAME SEED` or `bytes SEED`. What the line says besides its seed says where it changes something, the seed what.
"""
from __future__ import annotations

import io
import pickletools
import random
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

import irtool
from fuzz.case import Case
from fuzz.judge import Skip, Wrong
from fuzz.mutations import PIECES, block_repeated, cut, end_early, in_place_of, insert, lines_moved, stretch, words_moved
from fuzz.texts import MOST_MEMORY, judge_message, peak

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "archives"
NAMES = ("", "/", "..", "../x", "/etc/passwd", "data.pkl", "data/0", "data/1", "code/__torch__.py", "constants.pkl", "version",
         ".data/version", "byteorder", "c:x", "a\\b", "é", "x" * 5000, "model.json", "data/", "code/", "\x1b[31m")
CONTENTS = (b"", b"\x00", b"0", b"11", b"-3", b"10", b"big", b"little", b"\x80\x02.", b"\x80\x02N.", b"\x80\x02).", b"\xff" * 64,
        bytes(4096))
NUMBERS = (0, 1, -1, 2, 255, 65535, 2**31 - 1, -2**31)
WIDE = (b"\x8a\x08" + each.to_bytes(8, "little", signed=True) for each in (2**63 - 1, -2**63, 2**40, -1, 0, 2**62))
GLOBALS = tuple(f"c{each}\n".encode() for each in (
    "os\nsystem", "builtins\neval", "torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_qtensor",
            "torch._utils\n_rebuild_sparse_tensor",
    "torch\nFloatStorage", "torch\nQInt8Storage", "torch\nLongStorage", "torch\nBFloat16Storage", "collections\nOrderedDict",
            "torch\ndevice",
    "torch.jit._pickle\nbuild_intlist", "torch.jit._pickle\nrestore_type_tag", "torch.jit._pickle\nbuild_tensor_from_id",
            "builtins\ncomplex",
    "torch\nper_tensor_affine", "torch\nper_channel_affine", "__torch__\nM", "__torch__.torch.classes.quantized\nLinearPackedParamsBase"))
OPCODES = (*[bytes([each]) for each in b")(t]}aesub.RQN0\x81\x85\x86\x87\x88\x89b"], b"K\x00", b"K\x01", b"h\x00", b"h\x01", b"q\x00",
        b"J\xff\xff\xff\xff",
           b"X\x01\x00\x00\x00a", b"G" + bytes(8), b"X\xff\xff\xff\x7f", b"r\xff\xff\xff\xff", b"\x82\x00", b"i", b"o", *WIDE, *GLOBALS)
WORD = re.compile(r"[A-Za-z_]\w*")
NUMBER = re.compile(r"-?\b\d[\d.]*(?:e-?\d+)?")
CODE_WORDS = ("Tensor", "int", "float", "str", "bool", "None", "Optional[Tensor]", "List[int]", "Dict[str, int]", "Any", "self", "x",
        "lambda",
              "async", "torch", "ops", "prim", "__torch__", "annotate", "unchecked_cast", "CONSTANTS.c0", "CONSTANTS.c99", "uninitialized",
              "Module", "Interface", "NamedTuple", "Enum", "if", "while", "for", "return", "raise", "pass", "def", "class", "import",
                      "with",
              "forward", "training", "getattr", "__annotations__", "torch.mul", "torch.cat", "torch.select", "torch.size", "torch.append",
                      "eval",
              "__class__", "__setstate__", "__getstate__", "torch.relu_", "torch.conv2d", "torch.zeros", "fork", "torch.wait")
CODE_NUMBERS = ("0", "1", "-1", "2", "7", "64", "1.5", "1e400", "-0.0", "9" * 20, "9" * 5000, "9223372036854775807",
        "-9223372036854775808",
                "4294967296", "inf", "nan", "1000000007")
EDITS = (*[in_place_of(WORD, ())] * 4, *[in_place_of(WORD, CODE_WORDS)] * 4, *[in_place_of(NUMBER, CODE_NUMBERS)] * 3, lines_moved,
        lines_moved,
         words_moved, cut, insert, end_early, stretch, block_repeated)
LOOPS = re.compile(r"\b(while|for|__setstate__)\b")


@cache
def archives() -> dict[str, dict[str, bytes]]:
    """The records of each archive, below its root."""
    records: dict[str, dict[str, bytes]] = {}
    for path in sorted(FOLDER.glob("*.pt")):
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if not each.endswith(".debug_pkl")]
            records[path.stem] = {each.partition("/")[2]: archive.read(each) for each in names}
    return records


@cache
def arguments(name: str) -> Sequence[object]:
    """The arguments of the first call of an archive."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        values = [arrays[key] for key in arrays.files if key.startswith("0.") and ".out" not in key]
    return [each.item() if each.ndim == 0 else each for each in values]


def draw(seed: int) -> Case:
    """An archive, and one to three changes of it."""
    rng = random.Random(seed)
    name = rng.choice(list(archives()))
    names = list(archives()[name])
    lines = [name]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        what = rng.choice(("bytes", "record", "pickle", "pickle", "pickle", "source", "source"))
        chosen = [each for each in names if what == "record" or each.endswith(".pkl" if what == "pickle" else ".py")]
        lines.append(" ".join([what, *([rng.choice(chosen)] if what != "bytes" else []), str(rng.randrange(10**9))]))
    return Case("modules", "\n".join(lines) + "\n")


def pickle_changed(rng: random.Random, data: bytes) -> bytes:
    """An opcode dropped, doubled, moved, replaced, or with another argument; or a byte."""
    try:
        places = [place for _, _, place in pickletools.genops(data) if place is not None]
    except Exception:
        return data[:rng.randrange(len(data) + 1)]
    parts = [data[start:end] for start, end in zip(places, [*places[1:], len(data)], strict=True)]
    one, two, how = rng.randrange(len(parts)), rng.randrange(len(parts)), rng.randrange(8)
    if how == 0:
        del parts[one]
    elif how == 1:
        parts.insert(two, parts[one])
    elif how == 2:
        parts[one], parts[two] = parts[two], parts[one]
    elif how in (3, 4):
        parts[one] = rng.choice(OPCODES)
    elif how == 5:
        parts.insert(one, rng.choice(OPCODES) * rng.choice((1, 1, 1, 2, 3000)))
    elif how == 6:
        numbers = [index for index, part in enumerate(parts) if part[:1] in b"KMJh" and len(part) > 1]
        if numbers:
            parts[rng.choice(numbers)] = b"J" + rng.choice(NUMBERS).to_bytes(4, "little",
                    signed=True) if rng.random() < 0.7 else rng.choice(OPCODES)
    else:
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    return b"".join(parts)


def source_changed(rng: random.Random, data: bytes) -> bytes:
    """The code with one or two edits."""
    text = data.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice((1, 1, 2))):
        text = rng.choice(EDITS)(rng, text, [text, *PIECES])
    return text.encode("utf-8", "surrogateescape")


def record_changed(rng: random.Random, records: list[tuple[str, bytes]], place: int) -> None:
    """A record dropped, renamed, doubled, cut, stretched, or with the bytes of another."""
    name, data = records[place]
    how = rng.randrange(6)
    if how == 0:
        del records[place]
    elif how == 1:
        records[place] = rng.choice(NAMES), data
    elif how == 2:
        records.append((rng.choice((name, *NAMES)), rng.choice(CONTENTS)))
    elif how == 3:
        records[place] = name, rng.choice(CONTENTS)
    elif how == 4:
        records[place] = name, rng.choice((data[:rng.randrange(len(data) + 1)], data + bytes(7), data * 2))
    else:
        records[place] = name, rng.choice(records)[1]


def bytes_changed(rng: random.Random, data: bytes) -> bytes:
    """The file with some of its bytes changed: most of them in headers."""
    changed = bytearray(data)
    marks = [match.start() for match in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06)", data)]
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not changed:
            break
        in_header = marks and rng.random() < 0.8
        place = min(rng.choice(marks) + rng.randrange(60) if in_header else rng.randrange(len(changed)), len(changed) - 1)
        how = rng.randrange(6)
        if how < 4:
            changed[place] = rng.choice((0, 1, 2, 8, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif how == 4:
            del changed[place:place + rng.choice((1, 4, 64, 10**6))]
        else:
            changed[place:place] = bytes(rng.choice((1, 64)))
    return bytes(changed)


CHANGES: dict[str, Callable[[random.Random, bytes], bytes]] = {"pickle": pickle_changed, "source": source_changed}


def built(case: Case) -> tuple[str, bytes]:
    """The archive that a case begins with, and the bytes of the file that it describes."""
    name, *lines = case.text.splitlines()
    records = list(archives()[name].items())
    rest: list[int] = []
    for line in lines:
        what, *record, seed = line.split(" ")
        rng = random.Random(int(seed))
        place = next((index for index, each in enumerate(records) if record and each[0] == record[0]), -1)
        if what == "bytes":
            rest.append(int(seed))
        elif place >= 0 and what == "record":
            record_changed(rng, records, place)
        elif place >= 0:
            records[place] = records[place][0], CHANGES[what](rng, records[place][1])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for each, data in records:
            archive.writestr(zipfile.ZipInfo(f"m/{each}"), data, zipfile.ZIP_DEFLATED if each.endswith(".py") else zipfile.ZIP_STORED)
    data = file.getvalue()
    for number in rest:
        data = bytes_changed(random.Random(number), data)
    return name, data


def check(case: Case, tally: Counter[str]) -> None:
    """Load the archive; run it where nothing of its code repeats; copy its state; describe it. Raises Wrong."""
    name, data = built(case)
    before = peak(reset=True)
    try:
        module = irtool.load(data)
        tally["loads"] += 1
        if not hasattr(module, "methods"):
            return
        if "source " in case.text and repeats(data):
            module.graph("forward")
            raise Skip("its code may repeat without an end")
        module.forward(*arguments(name))
        tally["ways"] += 1
        module.state_dict()
        module.inspect()
    except irtool.Error as error:
        tally["refused"] += 1
        judge_message(str(error))
        if not str(error).strip():
            raise Wrong("message", "an error without a text") from None
    if peak() - before > MOST_MEMORY:
        raise Wrong("load", f"memory: {(peak() - before) >> 10} MiB")


def repeats(data: bytes) -> bool:
    """Does code in the archive have loops?"""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return any(LOOPS.search(archive.read(each).decode("utf-8", "replace")) for each in archive.namelist() if each.endswith(".py"))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return True


def smaller(case: Case) -> Iterator[Case]:
    """Fewer changes."""
    name, *lines = case.text.splitlines()
    for place in range(len(lines)):
        yield case.with_text("\n".join([name, *lines[:place], *lines[place + 1:]]) + "\n")
