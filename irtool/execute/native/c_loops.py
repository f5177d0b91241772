"""Loops as one function in C: a counted loop whose body is elementwise steps and products of small matrices.

Dtypes, shapes and strides are constants in the source; the number of rounds is an argument. Elementwise steps have the arithmetic of
`irtool.execute.native.building`; products are computed by our C code, which adds in another order than BLAS.
"""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from irtool.execute.fusion import WORTH_COMPILING_SOON, coalesced
from irtool.execute.native import building
from irtool.execute.native.c_source import DATA, Untranslatable, c_type, direct, expression, library_declarations
from irtool.execute.native.loop_rounds import Rounds
from irtool.execute.native.small_products import declarations, definition, packing
from irtool.execute.native.stages import Either, Elementwise, NotNative, Packing, Place, Product, Stage, Store, Sum
from irtool.execute.plan.buffers import ALIGNMENT
from irtool.execute.plan.placement import Buffer, largest_sum, place
from irtool.execute.plan.program import Item, Known, Repeat, Variable
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta
from irtool.ops.symbols.elementwise import flattened

WORTH_A_LOOP = 1 << 19
"""The estimated time of a loop, in elements, from which it is compiled though its results have other bits than NumPy's: half a millisecond,
of which C leaves a quarter."""
CALL = 1000
"""The time of one call from Python, in elements computed in that time."""
FUSED = 16
"""Multiplications of a product in the time of one element of an elementwise step."""


MOST = 1 << 33
"""Rounds of a loop in C, where they are known: seconds to a minute, if a round does next to nothing."""


class NativeLoop:
    """A compiled loop, called with a list: the number of rounds, loop-carried arrays, arrays and lists that it reads, the workspace.
    Returns the loop-carried arrays and the lists that it fills; with `into`, writes them there (a list into an array, a row per round)."""

    __slots__ = ("kernel", "direct", "outs", "stacks", "steps")
    __name__ = "loop"       # in the source of plans

    def __init__(self, compiled: building.Loop, outs: Sequence[Meta], stacks: Sequence[Meta], count: int, steps: int) -> None:
        self.kernel = compiled
        self.steps = steps      # elements per round, as `work_of` counts
        self.outs = [partial(np.empty, meta.shape, meta.dtype) for meta in outs]
        self.stacks = [(meta.shape, meta.dtype) for meta in stacks]
        self.direct: Callable[..., None] | None = None
        if compiled.direct is not None:
            objects = count + len(outs) + len(stacks)
            compiled.direct.argtypes = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.py_object] * objects)
            self.direct = compiled.direct

    def __call__(self, values: Sequence[Any], into: Sequence[Any] | None = None) -> list[Any]:
        limit, *operands = values
        rounds = max(int(limit), 0)
        outs = [make() for make in self.outs] if into is None else into
        stacks = [np.empty((rounds, *shape), dtype) for shape, dtype in self.stacks] if into is None else []
        objects = [*[each if type(each) in (np.ndarray, list) else np.asarray(each) for each in operands], *outs, *stacks]
        number = ctypes.c_longlong(rounds)
        if self.direct is not None:
            self.direct(ctypes.byref(number), None, *objects)
        else:
            self.kernel(ctypes.byref(number), (ctypes.c_void_p * len(objects))(*[each.ctypes.data for each in objects]), None)
        return [*outs, *map(list, stacks)]


class LoopInC:
    """A loop that can run in C. arrays: outer arrays that it reads; lists: those that it fills, and the facts of their items; work: bytes
    of the workspace; writes: does it write into outer arrays? over: numbers of the loop-carried arrays whose result may overwrite the
    operand."""

    __slots__ = ("loop", "arrays", "lists", "work", "writes", "over", "reason")

    def __init__(self, loop: NativeLoop, arrays: list[Item], rounds: Rounds, work: int, reason: str) -> None:
        self.loop = loop
        self.arrays = arrays
        self.lists = [(held, store.meta) for held, store in rounds.filled]
        self.work = work
        self.writes = bool(rounds.written)
        self.over = {number for number, each in enumerate(rounds.carried) if each.in_place}
        self.reason = reason


def native_loop(loop: Repeat, inputs: Sequence[Variable], overwrites: bool, wanted: bool | None,
                writes_results: Callable[[], bool]) -> LoopInC:
    """The loop in C. inputs: of the plan; overwrites: may the graph write into tensors? wanted: the option `native` (None: only if it
    pays); writes_results: may the graph write, in a round or later, into results of the loop?

    Raises NotNative with the reason if it cannot run in C, or need not.
    """
    if wanted is False:
        raise NotNative("native loops are off")
    if not loop.is_counted or isinstance(loop.limit, Known) and type(loop.limit.value) is not int:
        raise NotNative("each round decides whether there is another")
    if isinstance(loop.limit, Known) and isinstance(loop.limit.value, int) and loop.limit.value > MOST:
        raise NotNative("it has more rounds than one waits for, and a loop in C does not stop at Ctrl-C")
    rounds = Rounds(loop, inputs, overwrites)
    if overwrites and writes_results():
        raise NotNative("its results are written into")
    reason = f"{sum(isinstance(each, Product) for each in rounds.stages)} products, " \
             f"{sum(each.calls for each in rounds.stages if isinstance(each, Elementwise))} steps a round"
    steps = work_of(loop, rounds)
    too_little = NotNative("too little for a native loop")
    if wanted is None and steps < WORTH_COMPILING_SOON:
        raise too_little
    if building.compiler() is None:
        raise NotNative("there is no C compiler")
    if rounds.lists and not building.reads_objects():
        raise NotNative("this Python's lists cannot be read from C")
    source = Source(rounds)
    try:
        text, work = source.written()
    except Untranslatable as error:
        raise NotNative(str(error)) from None
    if wanted is None and steps < WORTH_A_LOOP and (source.functions or source.products):     # other bits than NumPy's
        raise too_little
    compiled = building.built(text, lambda: Source(rounds, False).written()[0])
    if compiled is None:
        raise NotNative("the C compiler fails on it")
    metas = [each.meta for each in rounds.carried]
    read: list[Item] = [*rounds.outside, *rounds.lists]
    native = NativeLoop(compiled, metas, [store.meta for _, store in rounds.filled], len(metas) + len(read) + bool(work), steps)
    return LoopInC(native, read, rounds, work, reason)


def work_of(loop: Repeat, rounds: Rounds) -> int:
    """The estimated time of all rounds in Python, in elements of elementwise steps."""
    count = loop.limit.value if isinstance(loop.limit, Known) else 1
    total = 0
    for stage in rounds.stages:
        if isinstance(stage, Product):
            rows, factor = stage.left.shape[0], stage.left.shape[1] * stage.right.shape[1]
            total += CALL + factor + rows * factor // FUSED      # BLAS reads the right factor and lays it out
        elif isinstance(stage, Elementwise):
            total += stage.calls * (CALL + math.prod(stage.shape))
    return int(count) * total


class Source:
    """Writes the C of a loop."""

    def __init__(self, rounds: Rounds, vector: bool = True) -> None:
        self.rounds = rounds
        self.vector = vector
        self.functions: dict[str, str] = {}     # functions of the C library, with declarations
        self.products: dict[str, str] = {}      # definition without the name -> name
        self.types: set[str] = set()            # C types of products

    def written(self) -> tuple[str, int]:
        """The source, and the bytes of the workspace."""
        rounds = self.rounds
        before = [line for stage in rounds.before for line in self.stage(stage, "    ")]
        body = [line for stage in rounds.stages for line in self.stage(stage, "        ")]
        places, work = self.workspace()
        count = len(rounds.carried)
        lists = range(count + len(rounds.outside), count + len(rounds.outside) + len(rounds.lists))
        items = [declared(f"*{store.name}", store, f"((char ***)base[{lists[rounds.lists.index(held)]}])[{index}][{DATA}]")
                 for (held, index), store in rounds.items.items()]
        lines = [declared(f"*{store.name}", store, f"base[{place}]") for place, store in enumerate(rounds.outside.values(), count)]
        lines += places
        base = lists.stop + bool(work)
        first, turn, last = self.around(base)
        first += [declared(f"*{store.name}", store, f"base[{place}]") for place, (_, store) in enumerate(rounds.filled, base + count)]
        kernel = ["void kernel(const long long *n, char *const *base, const long long *stride)", "{",
                  "    const long long rounds = n[0] > 0 ? n[0] : 0;", *[f"    {line}" for line in (*lines, *first)], *before,
                  "    for (long long t = 0; t < rounds; t++) {", *[f"        {line}" for line in items], *body,
                  *[f"        {line}" for line in turn], "    }",
                  *[f"    {line}" for line in last], "}", ""]
        arrays = base + count + len(rounds.filled)
        text = "\n".join(["#include <stdint.h>\n#include <string.h>", declarations(self.types),
                          *library_declarations(self.functions, self.vector),
                          *[form.replace("{}", each, 1) for form, each in self.products.items()], *kernel, direct(arrays, lists)])
        return text, work

    def workspace(self) -> tuple[list[str], int]:
        """The declarations of temporaries and of second buffers of loop-carried arrays, and the size of the workspace that holds them."""
        rounds = self.rounds
        last = len(rounds.stages)
        stores = [(store, store.first, store.last) for store in rounds.stores]
        stores += [(store, -1, last) for store in rounds.lasting]
        stores += [(each.next, -1, last) for each in rounds.carried if each.changes and not each.in_place]
        buffers = [Buffer(number, store.meta, start, end, False) for number, (store, start, end) in enumerate(stores)]
        work = place(buffers, largest_sum([each.life for each in buffers])).arena
        base = len(rounds.carried) + len(rounds.outside) + len(rounds.lists)
        if not work:
            return [], 0
        lines = [f"char *const room = base[{base}] + -(uintptr_t)base[{base}] % {ALIGNMENT};"]     # vectors cross no line of the cache
        for (store, _, _), buffer in zip(stores, buffers, strict=True):
            lines.append(declared(f"*const {store.name.replace('next', 'spare')}", store, f"(room + {buffer.offset})"))
        return lines, work + ALIGNMENT

    def around(self, base: int) -> tuple[list[str], list[str], list[str]]:
        """The statements for loop-carried arrays: in front of the loop, at the end of a round, and behind the loop."""
        first, turn, last = [], [], []
        for k, each in enumerate(self.rounds.carried):
            name, size = c_type(each.meta.dtype), each.meta.nbytes
            first.append(f"{name} *const out{k} = ({name} *)base[{base + k}];")
            if each.in_place:
                first += [f"{name} *const now{k} = out{k};", f"if ((char *)now{k} != base[{k}])", f"    memcpy(now{k}, base[{k}], {size});"]
                continue
            first.append(f"const {name} *now{k} = (const {name} *)base[{k}];")
            if not each.changes:
                last.append(f"memcpy(out{k}, now{k}, {size});")
                continue
            first.append(f"{name} *next{k} = rounds % 2 ? out{k} : spare{k};")
            turn += [f"now{k} = next{k};", f"next{k} = next{k} == out{k} ? spare{k} : out{k};"]
            last += ["if (!rounds)", f"    memcpy(out{k}, now{k}, {size});"]
        return first, turn, last

    def stage(self, stage: Stage, pad: str) -> list[str]:
        """The statements of one stage."""
        if isinstance(stage, Either):
            lines = [f"if ({stage.condition}) {{", *self.stage(stage.first, "    "), "} else {", *self.stage(stage.second, "    "), "}"]
        else:
            lines = self.elementwise(stage) if isinstance(stage, Elementwise) else self.product(stage) if isinstance(stage, Product) \
                else self.packing(stage) if isinstance(stage, Packing) else self.sum(stage)
        return [pad + line for line in lines]

    def product(self, stage: Product) -> list[str]:
        """A call of the function for products of these extents."""
        left, right = stage.left, stage.right
        name = c_type(stage.into.meta.dtype)
        self.types.add(name)
        columns = right.shape[1]
        form = definition("{}", name, (left.strides[0], left.strides[1]), right.strides[0], columns,
                          (left.shape[0], columns, left.shape[1]), stage.more, stage.packed)
        function = self.products.setdefault(form, f"product{len(self.products)}")
        return [f"{function}({address(left)}, {address(right)}, {stage.into.name});"]

    def packing(self, stage: Packing) -> list[str]:
        """A call of the function that packs a right factor."""
        source, name = stage.source, c_type(stage.into.meta.dtype)
        self.types.add(name)
        form = packing("{}", name, (source.strides[0], source.strides[1]), (stage.rows, source.shape[1], source.shape[0]))
        function = self.products.setdefault(form, f"product{len(self.products)}")
        return [f"{function}({address(source)}, {stage.into.name});"]

    def sum(self, stage: Sum) -> list[str]:
        """A sum of rows: copy the first row, and add each of the others."""
        rows, size = stage.source.shape[0], math.prod(stage.source.shape[1:])
        into, source = stage.into.name, address(stage.source)
        return [f"memcpy({into}, {source}, {stage.into.meta.nbytes});", f"for (long i = 1; i < {rows}; i++)", "#pragma GCC ivdep",
                f"    for (long j = 0; j < {size}; j++)", f"        {into}[j] += ({source})[i * {size} + j];"]

    def elementwise(self, stage: Elementwise) -> list[str]:
        """Nested loops over elements."""
        if not stage.written:
            return []
        read = list(stage.read.values())
        program = flattened([symbol for _, symbol in read], [symbol for symbol, _ in stage.written])
        places = [*[place for place, _ in read], *[place for _, place in stage.written]]
        target = stage.written[0][1].strides
        order = sorted(range(len(stage.shape)), key=lambda axis: (-abs(target[axis]), axis))
        laid = [tuple([strides[axis] for axis in order]) for strides in [spread(place, stage.shape) for place in places]]
        extents, strides = coalesced(tuple([stage.shape[axis] for axis in order]), laid)
        names = [f"v{i}" for i in range(len(read))]
        used = {each for step in program.steps for each in step.operands if type(each) is int} | set(program.outputs)
        inner = [f"const {c_type(symbol.dtype)} v{i} = {element(place, strides[i])};" for i, (place, symbol) in enumerate(read)
                 if i in used]
        for i, step in enumerate(program.steps):
            inner.append(f"const {c_type(step.dtype)} t{i} = {expression(program, step, names, self.functions)};")
            names.append(f"t{i}")
        inner += [f"{element(place, strides[i])} = {names[register]};"
                  for i, ((_, place), register) in enumerate(zip(stage.written, program.outputs, strict=True), len(read))]
        lines = []
        for level, extent in enumerate(extents):
            pad = "    " * level
            if level == len(extents) - 1:
                lines.append("#pragma GCC ivdep")
            lines.append(f"{pad}for (long i{level} = 0; i{level} < {extent}; i{level}++) {{")
        lines += ["    " * len(extents) + line for line in inner]
        return [*lines, *["    " * level + "}" for level in reversed(range(len(extents)))]]


def declared(name: str, store: Store, value: str) -> str:
    """The declaration of a pointer to a store."""
    type = c_type(store.meta.dtype)
    return f"{type} {name} = ({type} *){value};"


def address(place: Place) -> str:
    """The address of the first element of a place, in C."""
    return f"{place.store.name}{f' + {place.offset}' if place.offset else ''}{place.moving}"


def element(place: Place, strides: Sequence[int]) -> str:
    """The element of a place at i0, i1, ..., in C."""
    index = " + ".join([f"i{level}{f' * {stride}' if stride != 1 else ''}" for level, stride in enumerate(strides) if stride])
    start = f"{place.offset or ''}{place.moving}".removeprefix(" + ")
    return f"{place.store.name}[{' + '.join([each for each in (start, index) if each]) or 0}]"


def spread(place: Place, shape: tuple[int, ...]) -> list[int]:
    """The strides of a place broadcast to a shape."""
    strides = [0 if extent == 1 else stride for extent, stride in zip(place.shape, place.strides, strict=True)]
    return [0] * (len(shape) - len(strides)) + strides


__all__ = ["LoopInC", "NativeLoop", "native_loop"]
