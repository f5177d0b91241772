"""Groups of pointwise operators as one CuPy kernel each.

A group (`prim::FusionGroup`) is lowered to steps for the dtypes of its operands (`irtool.ops.symbols.elementwise`). The steps are the body
of a `cupy.ElementwiseKernel`, a statement each. CuPy broadcasts the operands, runs the loop, and caches compiled kernels on disk. Results
of different shapes need separate kernels. The arithmetic follows IEEE 754, operation by operation (`--fmad=false`), except that CuPy's
compiler options flush denormal numbers of single precision to zero; exp, tanh and similar functions are CUDA's. Integers wrap around.

Groups that CUDA cannot express (complex numbers, float16, functions that CUDA lacks, only numbers) run operator by operator.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.execute.native.c_source import (
    ARITHMETIC,
    BUILTIN,
    C_TYPES,
    COMPARISON,
    LIBRARY,
    LOGIC,
    OF_FLOATS,
    Untranslatable,
    c_type,
    computed_in,
)
from irtool.interpret import walk
from irtool.ir.graph import Graph
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array, using
from irtool.ops.node_calls import call_node
from irtool.ops.symbols.elementwise import CAST, WHERE, NotPointwise, Program, Step, number_key, program

OPTIONS = ("--fmad=false",)
"""Options of the compiler: products and sums are rounded one by one."""
MAX_KERNELS = 64
"""Combinations of dtypes and shapes cached per group."""
CUDA_TYPES = {**C_TYPES, "bool": "bool", "int16": "short", "int8": "signed char", "uint8": "unsigned char"}
SPECIAL = {"isinf": "isinf({0})", "isfinite": "isfinite({0})", "signbit": "signbit({0})"}
"""Functions of floats whose CUDA spelling differs from C."""
BITS = {"bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "invert": "~{0}",
        "absolute": "{0} < 0 ? -{0} : {0}", "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : 0"}
"""Expressions for integers."""
UNSIGNED = {"int64": "unsigned long long", "int32": "unsigned int"}
"""Unsigned types in which signed integers are computed, since signed overflow is undefined in C++. Narrower types are computed in int."""
WRAPPING = {**{name: ARITHMETIC[name] for name in ("add", "subtract", "multiply", "square")}, "negative": "0 - {0}",
            "absolute": "{0} >> {sign} ? 0 - {0} : {0}"}
NOT_A_NUMBER = {"float32": "__int_as_float(0x7fc00000)", "float64": "__longlong_as_double(0x7ff8000000000000LL)"}
INFINITY = {"float32": "__int_as_float(0x7f800000)", "float64": "__longlong_as_double(0x7ff0000000000000LL)"}


class Part:
    """The results of one shape: the kernel, the operands it reads, and the positions of its results."""

    __slots__ = ("kernel", "reads", "places")

    def __init__(self, kernel: Any, reads: list[int], places: list[int]) -> None:
        self.kernel = kernel
        self.reads = reads
        self.places = places


class KernelGroup:
    """A group ready to run on CuPy arrays. `chosen` says how each combination of operands seen so far runs; `sources`: of the kernels."""

    def __init__(self, graph: Graph, cupy: Any) -> None:
        self.graph = graph
        self.cupy = cupy
        self.ways: dict[Any, list[Part] | None] = {}
        self.chosen: dict[str, str] = {}
        self.sources: list[str] = []

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """The results; operands are CuPy arrays and numbers. Raises the operators' errors."""
        parts = self.way(operands)
        if parts is None:
            return walk(self.graph, list(operands), call_node)
        arrays = [x for x in operands if is_array(x)]
        results: list[Any] = [None] * len(self.graph.outputs)
        for part in parts:
            if part.kernel is None:
                for place in part.places:
                    results[place] = arrays[part.reads[0]].copy()
                continue
            outputs = part.kernel(*[arrays[i] for i in part.reads])
            for place, result in zip(part.places, outputs if isinstance(outputs, tuple) else (outputs,), strict=True):
                results[place] = result
        return results

    def way(self, operands: Sequence[Any]) -> list[Part] | None:
        """The kernels for these operands; None: run operator by operator."""
        key = tuple([(x.dtype.char, x.shape) if is_array(x) else number_key(x) for x in operands])
        try:
            if key not in self.ways:
                self.remember(key, operands)
        except TypeError:       # an operand that is not hashable is neither array nor number
            return None
        return self.ways[key]

    def remember(self, key: Any, operands: Sequence[Any]) -> None:
        """Make and cache the kernels for operands of new dtypes or shapes."""
        if len(self.ways) >= MAX_KERNELS:
            self.ways.clear()
        try:
            with using(np):
                steps = program(self.graph, [(x.dtype, not x.ndim) if is_array(x) else x for x in operands])
            parts = self.parts(steps, [x.shape for x in operands if is_array(x)])
            reason = f"{sum(part.kernel is not None for part in parts)} CuPy kernel(s), {len(steps.steps)} steps"
            self.ways[key] = parts
        except (NotPointwise, Untranslatable) as error:
            self.ways[key] = None
            reason = f"operator by operator: {str(error) or 'not pointwise on these operands'}"
        self.chosen[", ".join(f"{x.dtype.name}{list(x.shape)}" if is_array(x) else repr(x) for x in operands)] = reason

    def parts(self, steps: Program, shapes: list[tuple[int, ...]]) -> list[Part]:
        """One part per shape of results."""
        count = len(shapes)
        every = list(shapes)
        for step in steps.steps:
            try:
                every.append(np.broadcast_shapes(*[every[each] for each in step.operands if type(each) is int]))
            except ValueError:
                raise NotPointwise("shapes that do not broadcast") from None
        parts: list[Part] = []
        together: dict[tuple[int, ...], list[int]] = {}
        for place, register in enumerate(steps.outputs):
            if register < count:
                parts.append(Part(None, [register], [place]))
            else:
                together.setdefault(every[register], []).append(place)
        for places in together.values():
            inputs, outputs, body, reads = source(steps, [steps.outputs[place] for place in places])
            if not reads:
                raise Untranslatable("no array is read")
            self.sources.append(f"{inputs} -> {outputs}\n{body}\n")
            kernel = self.cupy.ElementwiseKernel(inputs, outputs, body, f"irtool_group_{len(self.sources)}", options=OPTIONS)
            parts.append(Part(kernel, reads, places))
        return parts


def source(steps: Program, outputs: Sequence[int]) -> tuple[str, str, str, list[int]]:
    """An elementwise kernel for some registers of a program: input and output parameters, the body, and the operands that it reads.

    Raises Untranslatable for a step or a dtype without a translation to CUDA.
    """
    count = len(steps.dtypes)
    needed: set[int] = set()
    pending = list(outputs)
    while pending:
        register = pending.pop()
        if register not in needed:
            needed.add(register)
            if register >= count:
                pending += [each for each in steps.steps[register - count].operands if type(each) is int]
    reads = [register for register in range(count) if register in needed]
    names = {register: f"x{register}" for register in reads}
    lines = []
    for register, step in enumerate(steps.steps, count):
        if register in needed:
            operands = [names[each] if type(each) is int else literal(each) for each in step.operands]
            names[register] = f"t{register - count}"
            lines.append(f"const {c_type(step.dtype, CUDA_TYPES)} {names[register]} = {expression(step, steps, operands)};")
    lines += [f"y{place} = {names[register]};" for place, register in enumerate(outputs)]
    for register in (*reads, *outputs):
        c_type(steps.dtype(register), CUDA_TYPES)
    inputs = ", ".join(f"{steps.dtype(register).name} x{register}" for register in reads)
    results = ", ".join(f"{steps.dtype(register).name} y{place}" for place, register in enumerate(outputs))
    return inputs, results, "\n".join(lines), reads


def literal(value: Any) -> str:
    """A NumPy scalar in CUDA C++, exactly. Raises Untranslatable."""
    kind, name = value.dtype.kind, value.dtype.name
    c_type(value.dtype, CUDA_TYPES)
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        whole = int(value)
        return f"({c_type(value.dtype, CUDA_TYPES)})({whole}LL)" if whole != -2**63 else "(-9223372036854775807LL - 1)"
    number = float(value)
    if number != number:
        return NOT_A_NUMBER[name]
    if number in (np.inf, -np.inf):
        return f"({'-' if number < 0 else ''}{INFINITY[name]})"
    return f"({float(str(value))!r}f)" if name == "float32" else f"({number!r})"


def expression(step: Step, steps: Program, operands: list[str]) -> str:
    """One step in CUDA C++. Raises Untranslatable."""
    name = step.name
    dtype = computed_in(step, steps)
    if step.function == WHERE:
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if step.function == CAST:
        return f"{operands[0]} != 0" if step.dtype.kind == "b" else f"({c_type(step.dtype, CUDA_TYPES)}){operands[0]}"
    if dtype.kind == "f":
        tail = "f" if dtype == np.float32 else ""
        function = BUILTIN.get(name) or LIBRARY.get(name)
        if function is not None:
            return f"{function}{tail}({', '.join(operands)})"
        form = SPECIAL.get(name) or ARITHMETIC.get(name) or OF_FLOATS.get(name) or COMPARISON.get(name)
    elif dtype.name in UNSIGNED and name in WRAPPING:
        unsigned = UNSIGNED[dtype.name]
        wrapped = WRAPPING[name].format(*[f"({unsigned}){each}" for each in operands], sign=dtype.itemsize * 8 - 1)
        return f"({c_type(dtype, CUDA_TYPES)})({wrapped})"
    elif dtype.kind in "iu":
        form = ARITHMETIC.get(name) or COMPARISON.get(name) or BITS.get(name)
    else:
        form = LOGIC.get(name)
    if form is None:
        raise Untranslatable(f"{name} of {dtype.name}")
    return form.format(*operands)
