"""Pointwise programs as loops in C, through the system's compiler.

The arithmetic is IEEE's, operation by operation (`-ffp-contract=off`, no fast-math): sums, products, quotients, roots and comparisons
have NumPy's bits. exp, tanh and their like come from the C library, its vector versions where it has them (`simd` declarations instead
of fast-math; a few units in the last place). Shared objects are kept on disk (`irtool.execute.disk_cache`), keyed by source, flags,
compiler and processor.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from irtool.execute import disk_cache
from irtool.ops.elementwise import CAST, WHERE, Program, Step

FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC",
         "-fno-tree-pre")       # which turns choices between values into branches, and then loops stay scalar
SECONDS = 120
"""How long the compiler may take."""
MAX_DEPTH = 6
"""Nested loops at most."""

C_TYPES = {"float32": "float", "float64": "double", "bool": "unsigned char", "int64": "long long", "int32": "int"}
BUILTIN = {"absolute": "fabs", "fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
           "copysign": "copysign"}
"""Functions of floats that the compiler has instructions for, by their names in NumPy."""
LIBRARY = {"exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sin": "sin",
           "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "asin", "arccos": "acos",
           "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "erf": "erf", "erfc": "erfc",
           "power": "pow", "arctan2": "atan2", "hypot": "hypot", "fmod": "fmod", "cbrt": "cbrt"}
SCALAR_ONLY = frozenset(("fmod",))
"""Without a vector version."""
ARITHMETIC = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "negative": "-{0}", "square": "{0} * {0}",
              "conjugate": "{0}", "positive": "{0}",
              "maximum": "{1} != {1} ? {1} : {1} > {0} ? {1} : {0}", "minimum": "{1} != {1} ? {1} : {1} < {0} ? {1} : {0}"}
"""Of floats and whole numbers."""
OF_FLOATS = {"divide": "{0} / {1}", "reciprocal": "1 / {0}", "fmax": "{0} >= {1} || {1} != {1} ? {0} : {1}",
             "fmin": "{0} <= {1} || {1} != {1} ? {0} : {1}", "isnan": "{0} != {0}", "isinf": "__builtin_isinf({0}) != 0",
             "isfinite": "__builtin_isfinite({0})", "signbit": "__builtin_signbit({0}) != 0",
             "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}"}
COMPARISON = {"greater": "{0} > {1}", "greater_equal": "{0} >= {1}", "less": "{0} < {1}", "less_equal": "{0} <= {1}",
              "equal": "{0} == {1}", "not_equal": "{0} != {1}"}
LOGIC = {"logical_and": "{0} && {1}", "logical_or": "{0} || {1}", "logical_xor": "!{0} != !{1}", "logical_not": "!{0}",
         "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "!{0}",
         "add": "{0} | {1}", "multiply": "{0} & {1}", "maximum": "{0} | {1}", "minimum": "{0} & {1}", **COMPARISON}
"""Of bools."""

DATA = 2
"""Where an array object has the address of its elements, counted in pointers: behind a Python object's head (`reads_objects`)."""
ITEMS = 3
"""Where a list object has the address of its items: behind the head, and their number."""


class Loop:
    """A compiled loop, called with extents, pointers (operands, then outputs), and strides in bytes (per array, one per extent).

    `direct`, where there is one, takes extents, strides, and then the arrays themselves.
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


class Untranslatable(Exception):
    """The program has a step or a dtype that is not written in C here."""


@cache
def compiler() -> str | None:
    """The C compiler: $CC, else cc, gcc or clang; None when there is none."""
    named = os.environ.get("CC", "")
    candidates = (named,) if named and not named.isspace() and " " not in named else ("cc", "gcc", "clang")
    return next((path for path in map(shutil.which, candidates) if path), None)


# -- source
def source(program: Program, kinds: str, depth: int, vector: bool = True) -> str:
    """C for a program over `depth` nested loops. kinds: per array (operands, then outputs) how it lies in the innermost loop: `v` element
    after element, `s` one element for all, `g` with gaps. Raises Untranslatable."""
    arrays = [*program.dtypes, *[program.dtype(register) for register in program.outputs]]
    types = [c_type(dtype) for dtype in arrays]
    count = len(program.dtypes)
    functions: dict[str, str] = {}
    names = [f"x{i}" for i in range(count)]
    body: list[str] = []
    for i, step in enumerate(program.steps):
        body.append(f"const {c_type(step.dtype)} t{i} = {expression(program, step, names, functions)};")
        names.append(f"t{i}")
    read = [f"const {types[k]} x{k} = {_element(k, kinds[k], types[k], 'const ')};" for k in range(count) if kinds[k] != "s"]
    write = [f"{_element(k, kinds[k], types[k], '')} = {names[register]};" for k, register in enumerate(program.outputs, count)]
    inner = depth - 1
    lines = [f"{declaration}" for declaration in declarations(functions, vector)]
    lines += ["void kernel(const long long *n, char *const *base, const long long *stride)", "{"]
    lines += [f"    char *a{k}_0 = base[{k}];" for k in range(len(arrays))]
    for level in range(inner):
        pad = "    " * (level + 1)
        lines.append(f"{pad}for (long long i{level} = 0; i{level} < n[{level}]; i{level}++) {{")
        lines += [f"{pad}    char *a{k}_{level + 1} = a{k}_{level} + i{level} * stride[{k * depth + level}];" for k in range(len(arrays))]
    pad = "    " * (inner + 1)
    for k, name in enumerate(types):
        constant = "const " if k < count else ""
        if kinds[k] == "s":
            lines.append(f"{pad}const {name} x{k} = *(const {name} *)a{k}_{inner};")
        elif kinds[k] == "v":
            lines.append(f"{pad}{constant}{name} *p{k} = ({constant}{name} *)a{k}_{inner};")
        else:
            lines.append(f"{pad}char *p{k} = a{k}_{inner}; const long long s{k} = stride[{k * depth + inner}];")
    lines.append(f"{pad}const long long m = n[{inner}];")
    lines.append("#pragma GCC ivdep")       # an output is apart from all operands, or it is one of them, read before it is written
    lines.append(f"{pad}for (long long i = 0; i < m; i++) {{")
    lines += [f"{pad}    {line}" for line in (*read, *body, *write)]
    lines += [pad + "}"] + ["    " * (level + 1) + "}" for level in reversed(range(inner))] + ["}", ""]
    return "\n".join([*lines, direct(len(arrays))])


def direct(count: int, lists: range = range(0)) -> str:
    """The function that takes array objects and finds their elements, in front of `kernel`; lists: which are lists, with items."""
    given = ", ".join([f"char **x{k}" for k in range(count)])
    data = ", ".join([f"x{k}[{ITEMS if k in lists else DATA}]" for k in range(count)])
    return (f"void direct(const long long *n, const long long *stride, {given})\n{{\n    char *base[] = {{{data}}};\n"
            "    kernel(n, base, stride);\n}\n")


def c_type(dtype: Any) -> str:
    """A dtype in C. Raises Untranslatable."""
    found = C_TYPES.get(dtype.name)
    if found is None:
        raise Untranslatable(f"dtype {dtype.name}")
    return found


def _kind_of(step: Step, program: Program) -> Any:
    """The dtype a step computes in: that of its first operand (of `where`, of what is chosen)."""
    place = 1 if step.function == WHERE else 0
    operand = step.operands[place]
    return program.dtype(operand) if type(operand) is int else operand.dtype


def _element(k: int, kind: str, type: str, constant: str) -> str:
    return f"p{k}[i]" if kind == "v" else f"*({constant}{type} *)(p{k} + i * s{k})"


def _literal(value: Any) -> str:
    """A NumPy scalar in C."""
    kind = value.dtype.kind
    if kind == "b":
        return "1" if value else "0"
    if kind == "i":
        number = int(value)
        return f"({number}LL)" if number != -2**63 else "(-9223372036854775807LL - 1)"
    if kind != "f":
        raise Untranslatable(f"dtype {value.dtype.name}")
    wide, tail = float(value), "f" if value.dtype == np.float32 else ""
    if wide != wide:
        return f"__builtin_nan{tail}(\"\")"
    if wide in (np.inf, -np.inf):
        return f"({'-' if wide < 0 else ''}__builtin_inf{tail}())"
    return f"({wide.hex()}{tail})"


def expression(program: Program, step: Step, names: Sequence[str], functions: dict[str, str]) -> str:
    """One step in C. names: of registers. What it calls of the C library is noted in `functions`, with its declaration."""
    dtype = _kind_of(step, program)
    operands = [names[each] if type(each) is int else _literal(each) for each in step.operands]
    name, kind = step.name, dtype.kind
    if step.function == WHERE:
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if step.function == CAST:
        c_type(dtype)
        if step.dtype.kind == "b":
            return f"{operands[0]} != 0"
        return f"({c_type(step.dtype)}){operands[0]}"
    if kind == "f":
        tail, real = ("f", "float") if dtype == np.float32 else ("", "double")
        if name in BUILTIN:
            return f"__builtin_{BUILTIN[name]}{tail}({', '.join(operands)})"
        if name in LIBRARY:
            function = LIBRARY[name] + tail
            functions[function] = f"{real} {function}({', '.join([real] * len(operands))});"
            return f"{function}({', '.join(operands)})"
        form = ARITHMETIC.get(name) or OF_FLOATS.get(name) or COMPARISON.get(name)
    elif kind == "i":
        form = ARITHMETIC.get(name) or COMPARISON.get(name)
    else:
        form = LOGIC.get(name)
    if form is None:
        raise Untranslatable(f"{name} of {dtype.name}")
    return form.format(*operands)


def declarations(functions: dict[str, str], vector: bool) -> list[str]:
    """What is called of the C library, in its vector versions too."""
    simd = '__attribute__((simd("notinbranch"))) '
    return [f"{simd if vector and name.rstrip('f') not in SCALAR_ONLY else ''}{declaration}" for name, declaration in functions.items()]


# -- building
_loops: dict[str, Loop | None] = {}
_lock = threading.Lock()


def loop(program: Program, kinds: str, depth: int) -> Loop | None:
    """The compiled loop; None where there is no compiler, or the program cannot be written in C."""
    if depth > MAX_DEPTH or compiler() is None:
        return None
    try:
        text = source(program, kinds, depth)
    except Untranslatable:
        return None
    return built(text, lambda: source(program, kinds, depth, vector=False))


def built(text: str, plain: Callable[[], str]) -> Loop | None:
    """The compiled source; `plain` gives it without vector functions, for a compiler that has none. None where neither compiles."""
    with _lock:
        if text not in _loops:
            _loops[text] = _build(text) or _build(plain())
        return _loops[text]


def _build(text: str) -> Loop | None:
    """The function of a source, from the disk where it was kept."""
    key = disk_cache.key_of(text, *FLAGS, compiler() or "", _compiler_version(), _processor())
    kept = disk_cache.load(key, "so")
    if kept is not None:
        found = _open(kept)
        if found is not None:
            return found
    with tempfile.TemporaryDirectory(prefix="irtool-") as base:
        made = _compile(text, Path(base))
        if made is None:
            return None
        kept = disk_cache.store(key, "so", made.read_bytes())
        return _open(kept or made)      # a library that is open stays usable when its file goes


def _compile(text: str, base: Path) -> Path | None:
    place, made = base / "kernel.c", base / "kernel.so"
    place.write_text(text)
    command = [str(compiler()), *FLAGS, str(place), "-o", str(made)]
    for libraries in (["-lmvec", "-lm"], ["-lm"]):
        try:
            done = subprocess.run([*command, *libraries], capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode == 0 and made.exists():
            return made
    return None


def _open(path: Path) -> Loop | None:
    try:
        return Loop(ctypes.CDLL(str(path), mode=os.RTLD_NOW))
    except (OSError, AttributeError):
        return None


@cache
def reads_objects() -> bool:
    """Do arrays and lists have their elements' addresses where `DATA` and `ITEMS` say? True of CPython's and NumPy's usual builds."""
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
        return subprocess.run([str(compiler()), "--version"], capture_output=True, timeout=10, stdin=subprocess.DEVNULL, check=False,
                              text=True).stdout.partition("\n")[0]
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""


@cache
def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return hashlib.sha256((platform.machine() + flags).encode()).hexdigest()


__all__ = ["Loop", "Untranslatable", "built", "c_type", "compiler", "declarations", "direct", "expression", "loop", "source"]
