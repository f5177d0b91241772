"""Pointwise programs as loops in C (`irtool.execute.native.c_source`), through the system's compiler.

The arithmetic follows IEEE 754, operation by operation (`-ffp-contract=off`, no fast-math): sums, products, quotients, roots and
comparisons have NumPy's bits. exp, tanh and similar functions come from the C library, in vector versions if it has them (`simd`
declarations instead of fast-math; they are a few units in the last place off). Shared objects are cached on disk
(`irtool.execute.disk_cache`), keyed by source, flags, compiler and processor.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from irtool.execute import disk_cache
from irtool.execute.native.c_source import DATA, ITEMS, Untranslatable, source
from irtool.ops.array_library import np
from irtool.ops.symbols.elementwise import Program

FLAGS = ("-fno-fast-math", "-fno-unsafe-math-optimizations",     # even if $CC contains them
         "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC",
         "-fno-tree-pre")       # which would turn selections into branches; then loops are not vectorised
SECONDS = 120
"""The time limit of the compiler."""
MAX_DEPTH = 6
"""The largest number of nested loops."""


class Loop:
    """A compiled loop, called with extents, pointers (operands, then outputs), and strides in bytes (per array, one per extent).

    `direct`, if not None, takes extents, strides, and then the array objects.
    """

    __slots__ = ("kernel", "direct")

    def __init__(self, library: ctypes.CDLL) -> None:
        self.kernel = library.kernel
        self.kernel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.kernel.restype = None
        self.direct: Any = None
        if reads_objects():
            self.direct = library.direct
            self.direct.restype = None

    def __call__(self, extents: Any, pointers: Any, strides: Any) -> None:
        self.kernel(extents, pointers, strides)


@cache
def command() -> tuple[str, ...]:
    """The command of the C compiler: $CC, a path or words as in a shell (`ccache gcc`), else cc, gcc or clang; () if there is none."""
    named = os.environ.get("CC", "").strip()
    rest: list[str] = []
    executable = next((path for path in map(shutil.which, (named,) if named else ("cc", "gcc", "clang")) if path), None)
    if executable is None and named:
        with suppress(ValueError):      # an unterminated quotation
            first, *rest = shlex.split(named)
            executable = shutil.which(first)
    return () if executable is None else (os.path.abspath(executable), *rest)


def compiler() -> str | None:
    """The C compiler; None if there is none, or if it exceeded the time limit or could not be started before."""
    return command()[0] if command() and not _given_up else None


# -- building
_loops: dict[str, Loop | None] = {}
_lock = threading.Lock()
_given_up: list[str] = []
"""Not empty: reasons why the compiler is not called any more."""


def loop(program: Program, kinds: str, depth: int) -> Loop | None:
    """The compiled loop; None if there is no compiler, or the program cannot be translated to C."""
    if depth > MAX_DEPTH or compiler() is None:
        return None
    try:
        text = source(program, kinds, depth)
    except Untranslatable:
        return None
    return built(text, lambda: source(program, kinds, depth, vector=False))


def built(text: str, plain: Callable[[], str]) -> Loop | None:
    """The compiled source; `plain` returns a source without vector functions, for a compiler without them. None if neither compiles."""
    with _lock:
        if text not in _loops:
            _loops[text] = _build(text) or _build(plain())
        return _loops[text]


def _build(text: str) -> Loop | None:
    """The compiled function of a source, from the disk cache if possible. None if it cannot be made, for any reason."""
    key = disk_cache.key_of(text, *FLAGS, *command(), _compiler_version(), _processor())
    cached = disk_cache.load(key, "so")
    opened = _open(cached) if cached is not None else None
    if opened is not None or _given_up:
        return opened
    try:
        with tempfile.TemporaryDirectory(prefix="irtool-", ignore_cleanup_errors=True) as base:
            library = _compile(text, Path(base))
            if library is None:
                return None
            cached = disk_cache.store(key, "so", library.read_bytes())
            return _open(cached or library) or _open(library)       # an open library stays usable after its file is removed
    except OSError:         # no folder for temporary files, or no space in it
        return None


def _compile(text: str, base: Path) -> Path | None:
    """Call the compiler in an empty folder, ignoring its messages: the library, or None. Raises OSError."""
    place, library = base / "kernel.c", base / "kernel.so"
    place.write_text(text)
    for libraries in (["-lmvec", "-lm"], ["-lm"]):
        try:
            done = subprocess.run([*command(), *FLAGS, str(place), "-o", str(library), *libraries], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False, cwd=base)
        except (OSError, subprocess.TimeoutExpired) as error:
            _given_up.append(str(error))
            return None
        if done.returncode == 0 and library.exists():
            return library
    return None


def _open(path: Path) -> Loop | None:
    try:
        return Loop(ctypes.CDLL(str(path), mode=os.RTLD_NOW))
    except (OSError, AttributeError):
        return None


@cache
def reads_objects() -> bool:
    """Are the addresses of elements in array and list objects at `DATA` and `ITEMS`? True of the usual builds of CPython and NumPy."""
    if sys.implementation.name != "cpython" or np.empty(0).__sizeof__() < (DATA + 1) * ctypes.sizeof(ctypes.c_void_p):
        return False
    probes = [np.empty(extent, np.uint8) for extent in (1, 1000)]

    def word(address: int, place: int) -> int | None:
        return ctypes.c_void_p.from_address(address + place * ctypes.sizeof(ctypes.c_void_p)).value

    items = word(id(probes), ITEMS) if probes.__sizeof__() > (ITEMS + 1) * ctypes.sizeof(ctypes.c_void_p) else None
    return bool(items) and all(word(id(each), DATA) == each.ctypes.data and word(items or 0, place) == id(each)
                               for place, each in enumerate(probes))


@cache
def _compiler_version() -> str:
    try:
        said = subprocess.run([*command(), "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.partition(b"\n")[0].decode(errors="replace")


@cache
def _processor() -> str:
    """The features of the processor on which `-march=native` depends."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return hashlib.sha256((platform.machine() + flags).encode()).hexdigest()


__all__ = ["Loop", "built", "compiler", "loop", "reads_objects"]
