"""Pointwise programs in C: a statement per step, in loops over elements.

Sums, products, quotients, roots and comparisons follow IEEE 754; `irtool.execute.native.building` passes the flags that guarantee it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.symbols.elementwise import CAST, WHERE, Program, Step

DType = np.dtype[Any]
C_TYPES = {"float32": "float", "float64": "double", "bool": "unsigned char", "int64": "long long", "int32": "int"}
BUILTIN = {"absolute": "fabs", "fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
           "copysign": "copysign"}
"""Functions of floats that compile to instructions, by their names in NumPy."""
LIBRARY = {"power": "pow", **{name: name.replace("arc", "a") for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh erf erfc arctan2 "
    "hypot fmod cbrt").split()}}
SCALAR_ONLY = frozenset(("fmod",))
"""Functions without a vector version."""
ARITHMETIC = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "negative": "-{0}", "square": "{0} * {0}",
              "conjugate": "{0}", "positive": "{0}",
              "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}", "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}"}
"""Expressions for floats and integers. Of equal operands (0 and -0, too) the second is the result, of two nans the first, as in NumPy."""
OF_FLOATS = {"divide": "{0} / {1}", "reciprocal": "1 / {0}", "fmax": "{0} > {1} || {1} != {1} ? {0} : {1}",
             "fmin": "{0} < {1} || {1} != {1} ? {0} : {1}", "isnan": "{0} != {0}", "isinf": "__builtin_isinf({0}) != 0",
             "isfinite": "__builtin_isfinite({0})", "signbit": "__builtin_signbit({0}) != 0",
             "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}"}
COMPARISON = {"greater": "{0} > {1}", "greater_equal": "{0} >= {1}", "less": "{0} < {1}", "less_equal": "{0} <= {1}",
              "equal": "{0} == {1}", "not_equal": "{0} != {1}"}
LOGIC = {"logical_and": "{0} && {1}", "logical_or": "{0} || {1}", "logical_xor": "!{0} != !{1}", "logical_not": "!{0}",
         "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "!{0}",
         "add": "{0} | {1}", "multiply": "{0} & {1}", "maximum": "{0} | {1}", "minimum": "{0} & {1}", **COMPARISON}
"""Expressions for bools."""
DATA = 2
"""The offset, in pointers, of the address of the elements in an array object: after a Python object's head (`reads_objects`)."""
ITEMS = 3
"""The offset, in pointers, of the address of the items in a list object: after the head and the length."""


class Untranslatable(Exception):
    """The program has a step or a dtype without a translation to C."""


def source(program: Program, kinds: str, depth: int, vector: bool = True) -> str:
    """C for a program over `depth` nested loops: `kernel(extents, pointers, strides)`, and `direct`, which takes arrays.

    kinds: per array (operands, then outputs) a letter for its stride in the innermost loop: `v` contiguous, `s` stride 0 (one element for
    all), `g` any other. vector: declare the vector versions of functions of the C library. Raises Untranslatable.
    """
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
    pad = "    " * depth
    lines = [*library_declarations(functions, vector), "void kernel(const long long *n, char *const *base, const long long *stride)", "{"]
    lines += [f"    char *a{k}_0 = base[{k}];" for k in range(len(arrays))]
    for level in range(inner):
        outer = "    " * (level + 1)
        lines.append(f"{outer}for (long long i{level} = 0; i{level} < n[{level}]; i{level}++) {{")
        lines += [f"{outer}    char *a{k}_{level + 1} = a{k}_{level} + i{level} * stride[{k * depth + level}];" for k in range(len(arrays))]
    lines += [pad + _before(k, kinds[k], name, count, depth) for k, name in enumerate(types)]
    lines.append(f"{pad}const long long m = n[{inner}];")
    lines.append("#pragma GCC ivdep")       # safe: an output overlaps no operand, or is one, read before it is written
    lines.append(f"{pad}for (long long i = 0; i < m; i++) {{")
    lines += [f"{pad}    {line}" for line in (*read, *body, *write)]
    lines += [pad + "}"] + ["    " * (level + 1) + "}" for level in reversed(range(inner))] + ["}", ""]
    return "\n".join([*lines, direct(len(arrays))])


def _before(k: int, kind: str, type: str, count: int, depth: int) -> str:
    """The statement in front of the innermost loop for array `k`: load its one element, or declare a pointer. count: of the operands."""
    inner, constant = depth - 1, "const " if k < count else ""
    if kind == "s":
        return f"const {type} x{k} = *(const {type} *)a{k}_{inner};"
    if kind == "v":
        return f"{constant}{type} *p{k} = ({constant}{type} *)a{k}_{inner};"
    return f"char *p{k} = a{k}_{inner}; const long long s{k} = stride[{k * depth + inner}];"


def direct(count: int, lists: range = range(0)) -> str:
    """The function that takes array objects and calls `kernel` with pointers to their elements; lists: which of the objects are lists."""
    parameters = ", ".join([f"char **x{k}" for k in range(count)])
    data = ", ".join([f"x{k}[{ITEMS if k in lists else DATA}]" for k in range(count)])
    return (f"void direct(const long long *n, const long long *stride, {parameters})\n{{\n    char *base[] = {{{data}}};\n"
            "    kernel(n, base, stride);\n}\n")


def c_type(dtype: DType, types: Mapping[str, str] = C_TYPES) -> str:
    """A dtype in C; `types` as C_TYPES. Raises Untranslatable."""
    name = types.get(dtype.name)
    if name is None:
        raise Untranslatable(f"dtype {dtype.name}")
    return name


def computed_in(step: Step, program: Program) -> DType:
    """The dtype that a step computes in: that of its first operand (for `where`, of its second)."""
    operand = step.operands[1 if step.function == WHERE else 0]
    return program.dtype(operand) if type(operand) is int else operand.dtype


def _element(k: int, kind: str, type: str, constant: str) -> str:
    """The current element of array `k` in the innermost loop."""
    return f"p{k}[i]" if kind == "v" else f"*({constant}{type} *)(p{k} + i * s{k})"


def _literal(value: Any) -> str:
    """A NumPy scalar in C, exactly. Raises Untranslatable."""
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
    """One step as a C expression. names: of registers. Adds the C library's function that it calls to `functions`, with its declaration.

    Raises Untranslatable.
    """
    dtype = computed_in(step, program)
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


def library_declarations(functions: dict[str, str], vector: bool) -> list[str]:
    """The declarations of functions of the C library, and of their vector versions."""
    simd = '__attribute__((simd("notinbranch"))) '
    return [f"{simd if vector and name.rstrip('f') not in SCALAR_ONLY else ''}{declaration}" for name, declaration in functions.items()]
