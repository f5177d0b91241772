"""Running fused groups of pointwise operators: block by block with NumPy, or as one loop in C.

The nodes of a group (`prim::FusionGroup`) are lowered to steps for the dtypes of its operands (`irtool.ops.symbols.elementwise`), and the
steps to a Way to run them for the shapes of its operands. Blocks are so small that intermediate results stay in the processor's cache; no
intermediate result is ever a whole array. NumPy's steps are the functions that the kernels call, so results are the same bit for bit.

Steps whose result is smaller than the largest shape (`bias * 2` before it is broadcast) run once, before the loop. For operands that cannot
be fused (dtypes a kernel refuses, numbers, empty arrays) the group runs node by node.
"""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from irtool.execute.native import building
from irtool.execute.native.c_source import LIBRARY, Untranslatable, source
from irtool.execute.plan.buffers import ALIGNMENT
from irtool.execute.thread_pool import share
from irtool.interpret import run
from irtool.ir.graph import Graph
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.powers import at_run
from irtool.ops.select import select
from irtool.ops.symbols.array_layout import Meta, allocated
from irtool.ops.symbols.elementwise import CAST, WHERE, NotPointwise, Program, Step, number_key, program

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 2**15
"""Elements of a block: 128 KiB of float32, a few of which fit a second-level cache."""
SHORTEST = 2**13
"""Elements of the smallest block: blocks shrink until intermediate results take an eighth of the memory of the result at most."""
WORTH_COMPILING = 2**23
"""Elements times steps from which a native loop is compiled by default: a run takes several milliseconds, a compilation about 100."""
WORTH_COMPILING_SOON = 2**17
"""The same for a group whose results have the same bits in C: NumPy runs it the first time, the native loop from then on."""
SLOW = {"erf": 64, "erfc": 64, "power": 16}
"""Functions that NumPy and SciPy compute element by element: how many other steps take the time of one."""
WORTH_COMPILING_SLOW = 2**19
"""As `WORTH_COMPILING`, for steps of `SLOW` functions alone: the vector functions of the C library are much faster."""
FEW = 2**10
"""The number of elements below which slow functions do not matter."""
WORTH_THREADS = 2**18
"""Elements from which several threads share the blocks."""
MAX_WAYS = 64
"""Combinations of shapes and dtypes cached per group."""


class GroupOptions(NamedTuple):
    """How groups of pointwise operators, and loops, may run. native: as loops in C (None: where they are large); threads: how many may
    share the blocks of large arrays."""

    native: bool | None = None
    threads: int = 1


BY_SIZE = GroupOptions()


class Fused:
    """A group ready to run. native, threads: its GroupOptions.

    `chosen` says how each combination of shapes seen so far is run, and why.
    """

    def __init__(self, graph: Graph, native: bool | None = None, threads: int = 1) -> None:
        self.graph = graph
        self.native = native
        self.threads = threads
        self.ways: dict[Any, Way | None] = {}
        self.chosen: dict[str, str] = {}

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """The results; operands are arrays and numbers. Raises the operators' errors."""
        way = self.way(operands)
        if way is None:
            return run(self.graph, operands)
        return list(way([x for x in operands if isinstance(x, np.ndarray)]))

    def into(self, operands: Sequence[Any], outs: Sequence[Array], scratch: Array | None = None) -> None:
        """The results, written to `outs`: arrays of their dtypes and shapes, in any layout, that share no memory with the operands."""
        way = self.way(operands)
        results = run(self.graph, operands) if way is None else way([x for x in operands if isinstance(x, np.ndarray)], outs, scratch)
        for one, out in zip(results, outs, strict=True):
            if one is not out:
                np.copyto(out, one)

    def scratch(self, apart: bool) -> int:
        """Bytes of scratch memory for all operands seen so far. apart: results share no memory with operands."""
        return max([way.scratch_bytes[apart] for way in self.ways.values() if way is not None], default=0)

    def is_native_for(self, operands: Sequence[Any]) -> bool:
        """Can a native loop run the group on such operands? An operand is (dtype, is 0-d) for an array, or a number."""
        if self.native is False or building.compiler() is None:
            return False
        try:
            steps = program(self.graph, operands)
            source(steps, "v" * (len(steps.dtypes) + len(steps.outputs)), 1)
        except (NotPointwise, Untranslatable):
            return False
        return bool(steps.steps)

    def way(self, operands: Sequence[Any]) -> Way | None:
        """The way to run these operands; None: run node by node."""
        key = tuple([(x.dtype.char, x.shape, x.strides) if isinstance(x, np.ndarray) else number_key(x) for x in operands])
        try:
            return self.ways[key]
        except KeyError:
            return self._remember(key, operands)
        except TypeError:
            return None

    def _remember(self, key: Any, operands: Sequence[Any]) -> Way | None:
        """Make and cache the way for operands of new shapes."""
        if len(self.ways) >= MAX_WAYS:
            self.ways.clear()
        try:
            steps = program(self.graph, [(x.dtype, not x.ndim) if isinstance(x, np.ndarray) else x for x in operands])
            way = Way(steps, [x for x in operands if isinstance(x, np.ndarray)], self.native, self.threads)
            reason = way.reason
        except NotPointwise:
            way, reason = None, "node by node: not pointwise on these operands"
        self.ways[key] = way
        shapes = ", ".join(f"{x.dtype.name}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in operands)
        self.chosen[shapes] = reason
        return way


class Bound:
    """A group of one result whose operands have the same dtypes, shapes and strides in every call, so that its way is looked up once."""

    __slots__ = ("group", "meta", "make", "quick")
    __name__ = "group"      # in the source of plans

    def __init__(self, group: Fused, meta: Meta) -> None:
        self.group = group
        self.meta = meta        # of the result
        self.make = maker(meta)
        self.quick: Quick | None = None

    def __call__(self, *operands: Any, out: Array | None = None, scratch: Array | None = None) -> Array:
        """The result, in `out` or else new. `out` may be an operand of the same shape and strides. scratch: memory for intermediates."""
        if out is None:
            out = self.make()
        quick = self.quick
        if quick is not None:
            quick.call(*operands if quick.in_order else [operands[i] for i in quick.places], out)
            return out
        self.group.into(operands, [out], scratch)
        way = self.group.way(operands)
        if way is not None:
            self.quick = way.quick(operands, [out])
        return out


def maker(meta: Meta) -> Callable[[], Array]:
    """What makes arrays of the facts."""
    is_plain = meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize)
    return partial(np.empty, meta.shape, meta.dtype) if is_plain else partial(allocated, meta)


class BoundToMany:
    """The same for a group of several results. Called with a list of operands, and optionally a list of arrays for the results."""

    __slots__ = ("group", "makers", "quick")

    def __init__(self, group: Fused, metas: Sequence[Meta | None]) -> None:
        self.group = group
        self.makers = [maker(meta) for meta in metas if meta is not None]       # of the results, in the memory order of the reference
        self.quick: Quick | None = None

    def __call__(self, operands: Sequence[Any], outs: Sequence[Array] | None = None, scratch: Array | None = None) -> Sequence[Any]:
        """The results, in `outs` or else new."""
        if outs is None:
            outs = [make() for make in self.makers]
        quick = self.quick
        if quick is not None:
            quick.call(*operands if quick.in_order else [operands[i] for i in quick.places], *outs)
            return outs
        self.group.into(operands, outs, scratch)
        way = self.group.way(operands)
        if way is not None:
            self.quick = way.quick(operands, outs)
        return outs


class Quick:
    """A native loop with all its arguments except the arrays."""

    __slots__ = ("call", "places", "in_order", "c_arrays")

    def __init__(self, function: Callable[..., None], extents: Any, strides: Any, places: list[int], count: int) -> None:
        self.c_arrays = (extents, strides)
        self.call = partial(function, *[ctypes.c_void_p(ctypes.addressof(each)) for each in self.c_arrays])
        self.places = places
        self.in_order = places == list(range(count))


class Way:
    """How a program runs on arrays of certain shapes and strides."""

    def __init__(self, steps: Program, operands: list[Array], is_native: bool | None, threads: int) -> None:
        self.program = steps
        self.threads = threads
        shapes = _shapes(steps, operands)
        full = max(shapes, key=lambda shape: (math.prod(shape), len(shape)))
        self.size = math.prod(full)
        if not steps.steps or any(0 in shape for shape in shapes):
            raise NotPointwise
        self.before, self.inside, self.inputs = _split(steps, shapes, full, len(operands))
        self.results = steps.outputs
        inside_places = {register for register in steps.outputs if register >= len(operands) and shapes[register] == full}
        self.written = [register for register in dict.fromkeys(steps.outputs) if register in inside_places]
        self.bodies = [_body(steps, self.inside, self.inputs, self.written, apart) for apart in (False, True)]
        self.body = self.bodies[0]
        self.order = _order(full, [operands[i] for i in self.inputs if i < len(operands)])
        self.full = full
        self.shape = tuple(full[axis] for axis in self.order)
        self.back = tuple(np.argsort(self.order)) if self.order != tuple(range(len(full))) else None
        self.dtypes = [steps.dtype(register) for register in self.written]
        self.is_native = is_native is not False
        if is_native is None and self.size * len(self.inside) < WORTH_COMPILING:
            self.is_native = is_slow([(step.name, self.size) for _, step in self.inside])
        self.soon = is_native is None and not self.is_native and self.size * len(self.inside) >= WORTH_COMPILING_SOON \
            and building.compiler() is not None and all(map(self.is_exact, self.inside))
        eighth = self.size * max([dtype.itemsize for dtype in self.dtypes], default=0) // 8
        self.block = min(BLOCK, max(SHORTEST, eighth // max(sum([dtype.itemsize for dtype in self.body.scratch]), 1)))     # elements
        alone = (threads <= 1 or self.size < WORTH_THREADS) and not self.is_native and not self.soon
        self.scratch_bytes = [sum(map(self.block_bytes, body.scratch)) if alone else 0 for body in self.bodies]
        self.loops: dict[Any, building.Loop | None] = {}
        self.functions: list[Callable[..., None] | None] = [None, None]
        self.reason = self._reason(is_native)

    def is_exact(self, numbered: tuple[int, Step]) -> bool:
        """Does a step give the same bits in C and in NumPy? Not a function of the C library, nor a cast of floats to integers, in which
        large floats overflow."""
        step = numbered[1]
        cut = step.function == CAST and step.dtype.kind in "iu" and self.program.dtype(step.operands[0]).kind == "f"
        return step.name not in LIBRARY and not cut

    def _reason(self, wanted: bool | None) -> str:
        """How this way runs, and why, in words; wanted: the caller's option `native`."""
        work = f"{self.size} elements, {len(self.inside)} steps"
        if not self.is_native:
            return f"NumPy in blocks: {work}" + (", native loops are off" if wanted is False else ", too little for a native loop")
        if building.compiler() is None:
            return f"NumPy in blocks: {work}, there is no C compiler"
        return f"native loop: {work}"

    def __call__(self, operands: list[Array], outs: Sequence[Array] = (), scratch: Array | None = None) -> Sequence[Any]:
        """Run. outs: arrays for the results that have the full shape and are computed in the loop. scratch: memory for intermediates."""
        registers = dict(enumerate(operands))
        for register, step in self.before:
            registers[register] = _plain(step, registers)
        read = [registers[register] for register in self.inputs]
        if outs and self.results == self.written and all(out.shape == self.full for out in outs):
            self._run(read, [out.transpose(self.order) for out in outs], scratch)
            return outs
        if self.inside:
            outputs = [np.empty(self.shape, dtype) for dtype in self.dtypes]
            self._run(read, outputs, scratch)
            for register, output in zip(self.written, outputs, strict=True):
                registers[register] = output if self.back is None else output.transpose(self.back)
        count = len(operands)
        results = []
        for place, register in enumerate(self.results):
            value = registers[register]     # a result that is an operand or an earlier result is copied
            results.append(value.copy() if register < count else value.copy("K") if register in self.results[:place] else value)
        return results

    def quick(self, operands: Sequence[Any], outputs: Sequence[Array]) -> Quick | None:
        """The native loop for arrays of these strides; None if Python must do more than call it."""
        serial = self.threads <= 1 or self.size < WORTH_THREADS
        if not self.is_native or self.before or not serial or self.written != self.results or len(outputs) != len(self.written):
            return None
        places = [i for i, each in enumerate(operands) if isinstance(each, np.ndarray)]
        if any(register >= len(places) for register in self.inputs):
            return None
        places = [places[register] for register in self.inputs]
        arrays = [np.broadcast_to(operands[i], self.full).transpose(self.order) for i in places]
        laid = [each.transpose(self.order) for each in outputs]
        extents, strides = coalesced(self.shape, [x.strides for x in (*arrays, *laid)])
        loop = self.loops.get((self._kinds(arrays, laid, strides), len(extents)))
        if loop is None or loop.direct is None:
            return None
        function = loop.direct
        function.argtypes = (*[ctypes.c_void_p] * 2, *[ctypes.py_object] * (len(arrays) + len(laid)))
        flat = [s for each in strides for s in each]
        return Quick(function, (ctypes.c_longlong * len(extents))(*extents), (ctypes.c_longlong * len(flat))(*flat), places, len(operands))

    @staticmethod
    def _kinds(arrays: Sequence[Array], outputs: Sequence[Array], strides: list[tuple[int, ...]]) -> str:
        """Per array a letter for its stride in the innermost loop (see `irtool.execute.native.c_source.source`)."""
        return "".join(["s" if s[-1] == 0 and i < len(arrays) else "v" if s[-1] == x.itemsize else "g"
                        for i, (x, s) in enumerate(zip((*arrays, *outputs), strides, strict=True))])

    def _run(self, operands: list[Array], outputs: list[Array], scratch: Array | None) -> None:
        """Run the steps of the loop, into outputs of the full shape whose axes are in `self.order`: in C, at once, or block by block."""
        arrays = [np.broadcast_to(x, self.full).transpose(self.order) for x in operands]
        extents, strides = coalesced(self.shape, [x.strides for x in (*arrays, *outputs)])
        if self.is_native:
            if self._run_native(operands, arrays, outputs, extents, strides):
                return
            self.soon = False
        self.is_native = self.soon
        apart = not any(np.may_share_memory(out, x) for out in outputs for x in operands)
        if self.size <= self.block and len(extents) == 1:
            self.function(apart)(*arrays, *outputs, *self.scratch(self.shape, scratch, apart))
            return
        views = [np.lib.stride_tricks.as_strided(x, extents, s) for x, s in zip((*arrays, *outputs), strides, strict=True)]
        places = list(_places(extents, self.block))
        if self.threads > 1 and self.size >= WORTH_THREADS and len(places) > 1:
            each = -(-len(places) // self.threads)
            parts = [places[i:i + each] for i in range(0, len(places), each)]
            share(self.threads, lambda part: self._blocks(views, part, None, apart), parts)
        else:
            self._blocks(views, places, scratch, apart)

    def function(self, apart: bool) -> Callable[..., None]:
        """The function that runs one block; apart: results share no memory with operands."""
        function = self.functions[apart]
        if function is None:
            function = self.functions[apart] = _block_function(self.bodies[apart])
        return function

    def _blocks(self, views: list[Array], places: list[Any], room: Array | None, apart: bool) -> None:
        """Run some blocks; views: operands and outputs, room: memory for intermediates."""
        function = self.function(apart)
        shape: tuple[int, ...] | None = None
        scratch: list[Array] = []
        with np.errstate(all="ignore"):
            for place in places:
                parts = [view[place] for view in views]
                if parts[-1].shape != shape:
                    shape = parts[-1].shape
                    scratch = self.scratch(shape, room, apart)
                function(*parts, *scratch)

    def scratch(self, shape: tuple[int, ...], room: Array | None, apart: bool) -> list[Array]:
        """Arrays for intermediate results of a block, in `room` if that is large enough."""
        dtypes = self.bodies[apart].scratch
        if room is None or room.nbytes < self.scratch_bytes[apart]:
            return [np.empty(shape, dtype) for dtype in dtypes]
        starts = accumulate(map(self.block_bytes, dtypes), initial=0)
        return [np.ndarray(shape, dtype, room, start) for start, dtype in zip(starts, dtypes, strict=False)]

    def block_bytes(self, dtype: Any) -> int:
        """Bytes of a block of an array, in whole cache lines."""
        bytes: int = min(self.size, self.block) * dtype.itemsize
        return -(-bytes // ALIGNMENT) * ALIGNMENT

    def _run_native(self, operands: list[Array], arrays: list[Array], outputs: list[Array], extents: tuple[int, ...],
                    strides: list[tuple[int, ...]]) -> bool:
        """Run the steps of the loop by the loop in C. Returns False if there is none."""
        everything = (*arrays, *outputs)
        key = (self._kinds(arrays, outputs, strides), len(extents))
        if key not in self.loops:
            self.loops[key] = building.loop(self.body.program, *key)
        loop = self.loops[key]
        if loop is None:
            return False
        depth = len(extents)
        flat = (ctypes.c_longlong * (depth * len(everything)))(*[s for each in strides for s in each])

        def part(start: int, stop: int) -> None:
            base = (ctypes.c_void_p * len(everything))(*[x.ctypes.data + start * s[0] for x, s in zip(everything, strides, strict=True)])
            loop((ctypes.c_longlong * depth)(stop - start, *extents[1:]), base, flat)

        if self.threads > 1 and self.size >= WORTH_THREADS and extents[0] >= self.threads:
            bounds = [extents[0] * i // self.threads for i in range(self.threads + 1)]
            share(self.threads, part, bounds[:-1], bounds[1:])
        else:
            part(0, extents[0])
        return True


def is_slow(steps: Iterable[tuple[str, int]]) -> bool:
    """Do these functions (name, number of elements) take so long in NumPy that a native loop pays?"""
    return sum([size * SLOW.get(name, 0) for name, size in steps if size >= FEW]) >= WORTH_COMPILING_SLOW


# -- which steps run before the loop, and which in it
def _shapes(steps: Program, operands: list[Array]) -> list[tuple[int, ...]]:
    """The shape of every register. Raises NotPointwise if operands do not broadcast."""
    shapes = [x.shape for x in operands]
    for step in steps.steps:
        read = [shapes[each] for each in step.operands if type(each) is int]
        try:
            shapes.append(read[0] if len(set(read)) == 1 else np.broadcast_shapes(*read))
        except ValueError:
            raise NotPointwise from None
    return shapes


def _split(steps: Program, shapes: list[tuple[int, ...]], full: tuple[int, ...], count: int) -> tuple[list[Any], list[Any], list[int]]:
    """The steps before the loop, those in it, and the registers computed outside that the loop reads."""
    numbered = list(enumerate(steps.steps, count))
    before = [(register, step) for register, step in numbered if shapes[register] != full]
    inside = [(register, step) for register, step in numbered if shapes[register] == full]
    computed = {register for register, _ in inside}
    read = dict.fromkeys(each for _, step in inside for each in step.operands if type(each) is int and each not in computed)
    return before, inside, sorted(read)


def _order(full: tuple[int, ...], operands: list[Array]) -> tuple[int, ...]:
    """The axes from the largest stride to the smallest of an operand of the full shape: results get the same memory order."""
    for x in operands:
        if x.shape == full and 0 not in x.strides:
            if x.flags.c_contiguous:
                break
            return tuple(sorted(range(len(full)), key=lambda axis: -abs(x.strides[axis]) if full[axis] > 1 else 0))
    return tuple(range(len(full)))


def coalesced(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Extents and strides with neighbouring axes merged where every array allows it, and without axes of extent 1."""
    extents: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(row[-1] == s[axis] * extent for row, s in zip(merged, strides, strict=True)):
            extents[-1] *= extent
            for row, s in zip(merged, strides, strict=True):
                row[-1] = s[axis]
            continue
        extents.append(extent)
        for row, s in zip(merged, strides, strict=True):
            row.append(s[axis])
    if not extents:
        return (1,), [(0,)] * len(strides)
    return tuple(extents), [tuple(row) for row in merged]


def _places(extents: tuple[int, ...], block: int) -> Iterator[tuple[Any, ...]]:
    """Indices that cut an array into blocks of at most `block` elements."""
    inner = math.prod(extents[1:])
    if inner > block:
        for i in range(extents[0]):
            for rest in _places(extents[1:], block):
                yield (i, *rest)
        return
    rows = max(1, block // inner)
    for start in range(0, extents[0], rows):
        yield (slice(start, start + rows),)


# -- the steps of a block, as one Python function
class Body:
    """The steps inside the loop with registers renumbered: first those computed outside, then one per step."""

    __slots__ = ("program", "scratch", "places")

    def __init__(self, program: Program, scratch: list[Any], places: list[str]) -> None:
        self.program = program
        self.scratch = scratch      # dtypes of the arrays for intermediate results
        self.places = places        # per step, the name of the array it writes


def _body(steps: Program, inside: list[tuple[int, Step]], inputs: list[int], written: list[int], apart: bool) -> Body:
    """The steps of the loop, and the array for each result: an output, or a scratch array that is reused after its last reader.

    apart: outputs share no memory with operands, and serve as scratch arrays until they are written.
    """
    number = {register: i for i, register in enumerate([*inputs, *[register for register, _ in inside]])}
    renumbered = [Step(step.function, tuple([number[each] if type(each) is int else each for each in step.operands]), step.dtype)
           for _, step in inside]
    outputs = [number[register] for register in written]
    last: dict[int, int] = {}
    for i, step in enumerate(renumbered):
        last.update((each, i) for each in step.operands if type(each) is int)
    count = len(inputs)
    place_of: dict[int, str] = {register: f"o{i}" for i, register in enumerate(outputs)}
    ends = {place_of[register]: register - count for register in outputs}       # the step that writes each output
    scratch: list[Any] = []
    free: dict[Any, list[str]] = {}
    for place, end in ends.items() if apart else ():
        free.setdefault(renumbered[end].dtype, []).append(place)
    for i, step in enumerate(renumbered):
        register = count + i
        dying = [each for each in dict.fromkeys(step.operands) if type(each) is int and each >= count and last[each] == i
                 and each not in outputs]
        for each in dying:      # an elementwise step may overwrite its operand
            free.setdefault(renumbered[each - count].dtype, []).append(place_of[each])
        if register not in place_of:
            places = free.setdefault(step.dtype, [])
            fitting = [place for place in places if last.get(register, i) <= ends.get(place, len(renumbered))]
            if fitting:
                place_of[register] = fitting[-1]
                places.remove(fitting[-1])
            else:
                place_of[register] = f"s{len(scratch)}"
                scratch.append(step.dtype)
    dtypes = [steps.dtype(register) for register in inputs]
    return Body(Program(dtypes, renumbered, outputs), scratch, [place_of[count + i] for i in range(len(renumbered))])


def _block_function(body: Body) -> Callable[..., None]:
    """A function of operands, outputs and scratch arrays that runs the steps. Its source contains only names made here."""
    count = len(body.program.dtypes)
    names: dict[str, Any] = {"copyto": np.copyto, "select": select}
    lines: list[str] = []

    def name(operand: Any) -> str:
        if type(operand) is int:
            return f"i{operand}" if operand < count else body.places[operand - count]
        names[f"c{len(names)}"] = operand
        return f"c{len(names) - 1}"

    for step, place in zip(body.program.steps, body.places, strict=True):
        operands = [name(each) for each in step.operands]
        if step.function == CAST:
            lines.append(f"copyto({place}, {operands[0]}, 'unsafe')")
        elif step.function == WHERE:
            lines.append(f"select({', '.join(operands)}, {place})")
        else:
            function = f"f_{step.name}"
            names[function] = at_run(step.function)
            lines.append(f"{function}({', '.join(operands)}, out={place})")
    arguments = [f"i{i}" for i in range(count)] + [f"o{i}" for i in range(len(body.program.outputs))]
    arguments += [f"s{i}" for i in range(len(body.scratch))]
    text = f"def block({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines or ["pass"])
    exec(compile(text, "<fused block>", "exec"), names)     # noqa: S102  contains only names made here
    block: Callable[..., None] = names["block"]
    return block


def _plain(step: Step, registers: dict[int, Any]) -> Any:
    """One step on whole arrays."""
    operands = [registers[each] if type(each) is int else each for each in step.operands]
    with np.errstate(all="ignore"):
        if step.function == WHERE:
            return np.asarray(np.where(*operands))
        if step.function == CAST:
            return np.asarray(operands[0]).astype(step.dtype)
        return np.asarray(at_run(step.function)(*operands))
