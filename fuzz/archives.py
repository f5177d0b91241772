"""Damaged archives of arrays as inputs, expected values, constants and cotangents: a clear message or a result, soon, in bounded memory.

The text of a case is a recipe, a line of JSON for each member: name, header and body of an npy file, how it is packed; or names with plain
arrays. The option `damage` says what is done to the bytes of the whole file. What NumPy reads without complaint irtool reads as well, or
refuses by its dtype; what it gives is then what NumPy reads.
"""
from __future__ import annotations

import io
import json
import random
import shlex
import struct
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.case import Case
from fuzz.judge import Wrong, same
from fuzz.reduction import fewer_lines
from fuzz.texts import called, judge_message

GRAPH = "graph(%x : Tensor):\n  return (%x)\n"
CONSTANT = "graph(%y : Tensor):\n  %x : Float(2) = prim::Constant[value=<Tensor>]()\n  return (%x)\n"
SUM = "graph(%x : Tensor):\n  %n : NoneType = prim::Constant()\n  %s : Tensor = aten::sum(%x, %n)\n  return (%s)\n"
COMMANDS = {"run - FILE": GRAPH, "run - FILE --cast": GRAPH, "run - -i x=2xf32=1 --expect FILE": GRAPH,
            "run - -i y=2xf32=1 --constants FILE": CONSTANT,
            "grad - FILE": SUM, "grad - -i x=2xf32=1 --cotangents FILE": SUM, "run - -i x=@FILE": GRAPH, "run - FILE --json": GRAPH}
DESCRIPTIONS = ("<f4", "<f4", "<f4", "<f8", "<i8", "|b1", "|u1", "<i4", "<f2", "<c8", ">f4", "<U3", "<U0", "|S4", "|O", "|V8", "<M8[D]",
                "<f16", "<U2000000000", "f4", "",
                "<x4", "=f4", "<f3", "<U-1", "int32", "float", "<c16", "<u8", "(2,)<f4", "<i1", "|i1", "\x1b[31m")
SHAPES = ("(2,)", "(2,)", "(2,)", "()", "(1,)", "(2, 1)", "(0,)", "(2L,)", "(2L, 1L)", "(-1,)", "(True,)", "(2.0,)", "[2]", "2",
          "(1000000000000,)",
          "(4294967296, 4294967296)", "(18446744073709551616, 0)", "(9223372036854775807, 9223372036854775807, 0)", "None", "(2,) + (1,)",
          "(1," + "1, " * 70 + ")",
          "(2, )", "(0x2,)", "('2',)", "(2,", "((2,),)", "(1_0,)", "(0, 5000000000)")
ORDERS = ("False", "False", "False", "True", "0", "1", "None", "'no'")
FORMS = ("{{'descr': {d}, 'fortran_order': {o}, 'shape': {s}, }}", "{{'descr': {d}, 'fortran_order': {o}, 'shape': {s}}}",
         "{{'shape': {s}, 'fortran_order': {o}, 'descr': {d}}}", "{{'descr': {d}, 'shape': {s}}}",
         "{{'descr': {d}, 'fortran_order': {o}, 'shape': {s}, 'more': 1}}",
         "{{'descr': [('a', {d})], 'fortran_order': {o}, 'shape': {s}, }}", "__import__('os').getpid()", "{{}}", "[]", "", "(" * 3000,
         "{{'descr': {d}",
         "{{'descr': {d}, 'fortran_order': {o}, 'shape': {s}, }} # {s}",
         "{{'descr': {d}, 'descr': {d}, 'fortran_order': {o}, 'shape': {s}}}")
NAMES = ("x.npy", "x.npy", "x.npy", "x.npy", "y.npy", "vjp0.npy", "output0.npy", "input0.npy", "none.npy", "bfloat16.npy", "x.0.npy",
         "x.k0.npy", "x", "x.py", "../x.npy",
         "/etc/x.npy", "x\n.npy", "\x1b]0;x\x07.npy", ".npy", "x/", "x.NPY", "0.npy", "arr_0.npy", "x.npy/y.npy", "é.npy")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def draw(seed: int) -> Case:
    """What a command wants, with a few things changed: the parts of a header, the member, the bytes of the whole file."""
    rng = random.Random(seed)
    command = rng.choice(list(COMMANDS))
    wanted = "output0.npy" if "expect" in command else "vjp0.npy" if "cotangents" in command else "x.npy"
    members = [member(rng, wanted), *(member(rng, rng.choice(NAMES)) for _ in range(rng.choice((0, 0, 0, 0, 1, 2))))]
    options = {"command": command}
    if rng.random() < 0.25:
        options["damage"] = " ".join(damage(rng) for _ in range(rng.choice((1, 1, 2, 4))))
    return Case("archives", "".join(json.dumps(each) + "\n" for each in members), {}, options)


def member(rng: random.Random, name: str) -> dict[str, Any]:
    """The recipe of one member: a vector of two numbers, with up to three parts changed."""
    changed = rng.sample(("form", "dtype", "shape", "order", "name", "body", "version", "length", "method", "method"),
                         rng.choice((0, 1, 1, 1, 2, 3)))
    parts = {"d": repr(rng.choice(DESCRIPTIONS) if "dtype" in changed else "<f4"),
             "s": rng.choice(SHAPES) if "shape" in changed else "(2,)",
             "o": rng.choice(ORDERS) if "order" in changed else "False"}
    recipe: dict[str, Any] = {"name": rng.choice(NAMES) if "name" in changed else name,
                              "header": (rng.choice(FORMS) if "form" in changed else FORMS[0]).format(**parts),
                              "body": rng.choice((16, 0, 7, 9, 4096, 32)) if "body" in changed else 8}
    if "version" in changed:
        recipe["version"] = rng.choice(([1, 0], [2, 0], [3, 0], [0, 0], [9, 9], [1, 1]))
    if "length" in changed:
        recipe["length"] = rng.choice((0, 1, 10, 65535, 2**31 - 1))
    if "method" in changed:
        recipe["method"] = rng.choice(METHODS)
    if rng.random() < 0.003:
        recipe["zeros"] = 300
    return recipe


def damage(rng: random.Random) -> str:
    """One change of the file's bytes, as a word."""
    place = rng.randrange(400)
    return rng.choice((f"flip:{place}:{rng.randrange(256)}", f"flip:{-place - 1}:{rng.randrange(256)}", f"cut:{place}", f"end:{place}",
                       f"zeros:{place}",
                       f"insert:{place}:{rng.randrange(256)}", "bare"))


def npy(recipe: dict[str, Any]) -> bytes:
    """The bytes of a member."""
    text: bytes = recipe["header"].encode("utf-8", "surrogateescape")
    version = recipe.get("version", [1, 0])
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    length = recipe.get("length", len(text))
    size = struct.pack("<H", length % 65536) if version[0] == 1 else struct.pack("<I", length)
    body = bytes(range(1, 5)) * 1024
    return b"\x93NUMPY" + bytes(version) + size + text + body[:recipe["body"]]


def built(case: Case) -> bytes:
    """The bytes of the file that a case describes."""
    recipes = [json.loads(line) for line in case.text.splitlines() if line]
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")         # of two members of one name
        for recipe in recipes:
            with archive.open(zipped(recipe), "w", force_zip64=bool(recipe.get("zeros"))) as target:
                target.write(npy(recipe))
                for _ in range(recipe.get("zeros", 0)):
                    target.write(bytes(1 << 20))
    data = file.getvalue()
    for word in case.options.get("damage", "").split():
        data = damaged(data, word, recipes)
    return data


def zipped(recipe: dict[str, Any]) -> zipfile.ZipInfo:
    """The entry of a member."""
    entry = zipfile.ZipInfo(recipe["name"])
    entry.compress_type = zipfile.ZIP_DEFLATED if recipe.get("zeros") else recipe.get("method", zipfile.ZIP_STORED)
    return entry


def damaged(data: bytes, word: str, recipes: list[dict[str, Any]]) -> bytes:
    """The bytes after one change."""
    how, *numbers = word.split(":")
    if how == "bare":
        return npy(recipes[0])
    at = int(numbers[0])
    if how == "flip":
        at = at % max(1, len(data))
        return data[:at] + bytes([int(numbers[1])]) + data[at + 1:]
    if how == "insert":
        return data[:at] + bytes([int(numbers[1])]) + data[at:]
    others = {"cut": data[:at] + data[at + 16:], "end": data[:max(0, len(data) - at)], "zeros": data[:at] + bytes(32) + data[at + 32:]}
    return others[how]


def check(case: Case, tally: Counter[str]) -> None:
    """The command with the archive. Raises Wrong."""
    words = shlex.split(case.options["command"])
    data = built(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        path.write_bytes(data)
        result = Path(folder, "out.npz")
        argv = [word.replace("FILE", str(path)) for word in words]
        if words == ["run", "-", "FILE"]:
            argv += ["-o", str(result)]
        code, out, err = called(argv, COMMANDS[case.options["command"]], bounded=True)
        tally["ways"] += 1
        tally[f"exit {code}"] += 1
        judge_message(err + out)
        if code and result.exists():
            raise Wrong("run", "it failed, and left a file")
        compare_with_numpy(path, result, code, err, tally)


def compare_with_numpy(path: Path, result: Path, code: int, err: str, tally: Counter[str]) -> None:
    """Where a run succeeded, it gives what NumPy reads. Raises Wrong."""
    if code or not result.exists():
        return
    try:
        with warnings.catch_warnings(), np.load(path, allow_pickle=False) as archive:
            warnings.simplefilter("ignore")
            want = archive[archive.files[0]]
    except Exception as error:
        raise Wrong("run", f"it reads what NumPy does not: {type(error).__name__}") from None
    with np.load(result, allow_pickle=False) as archive:
        tally["compared with NumPy"] += 1
        same(archive["output0"], want.astype(want.dtype.newbyteorder("=")), "run", exact=True)


def smaller(case: Case) -> Iterator[Case]:
    """Fewer members, less damage, plainer recipes."""
    damages = case.options.get("damage", "").split()
    for place in range(len(damages)):
        yield case.with_option("damage", " ".join(damages[:place] + damages[place + 1:]))
    lines = case.text.splitlines()
    for fewer in fewer_lines(["", *lines]):
        if len(fewer) > 1:
            yield case.with_text("".join(line + "\n" for line in fewer[1:]))
    for place, line in enumerate(lines):
        recipe = json.loads(line)
        plainer = [{key: value for key, value in recipe.items() if key != name} for name in ("version", "length", "method",
                                                                                             "zeros") if name in recipe]
        for each in [*plainer, {**recipe, "body": 8}, {**recipe, "name": "x.npy"}]:
            yield case.with_text("".join(one + "\n" for one in [*lines[:place], json.dumps(each), *lines[place + 1:]]))
