"""A round (one iteration) of a loop as stages: elementwise steps over one shape, and products of matrices, on arrays of known places.

An elementwise call joins the first stage of its shape after all stages that it reads; a result that only its own stage reads is never
stored. A loop-carried array has two buffers, which are swapped after each round: `now` and `next`. NotNative refuses any other loop, with
the reason.
"""
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

from irtool.execute.native.c_source import C_TYPES
from irtool.execute.native.small_products import LARGEST, LARGEST_PACKED
from irtool.execute.native.stages import Carried, Either, Elementwise, NotNative, Packing, Place, Product, Stage, Store, Sum, turned, whole
from irtool.execute.plan.loop_numbers import derived
from irtool.execute.plan.program import Branch, Call, Known, Repeat, Variable
from irtool.execute.plan.python_source import all_reads, reads_of
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.select import select
from irtool.ops.symbols.array_layout import Meta, dummy
from irtool.ops.symbols.elementwise import NotPointwise, Symbol

NUMBERS = {operator.add: "({} + {})", operator.sub: "({} - {})", operator.mul: "({} * {})", operator.neg: "(-{})",
           derived: "({1} + {0} * {2})"}
"""Arithmetic on counters, in C."""
POWERS = {2: np.square, 1: np.positive, 0.5: np.sqrt, -1: np.reciprocal}
"""The function for `x ** number`, by number, as NumPy chooses it."""
NEAR = 1 << 17
"""Bytes of a contiguous right factor that stays near the processor as it is, and is not worth a copy in panels. Larger ones are copied if
the lists that the loop fills take more memory than that."""


class Rounds:
    """The stages of a loop's body; `before`: stages that run once, in front of the loop. Raises NotNative."""

    def __init__(self, loop: Repeat, inputs: Sequence[Variable], overwrites: bool) -> None:
        self.loop = loop
        self.overwrites = overwrites        # may the graph write into items of its lists?
        self.lists: list[Variable] = []     # lists whose items are read
        self.items: dict[tuple[Variable, str], Store] = {}          # items of those lists, by index in C
        self.filled: list[tuple[Variable, Store]] = []      # lists that get an item per round, and the array of all items
        self.stages: list[Stage] = []
        self.before: list[Stage] = []
        self.carried: list[Carried] = []
        self.outside: dict[Variable, Store] = {}          # arrays from outside
        self.written: dict[Store, Variable] = {}        # arrays from outside that are written
        self.stores: list[Store] = []                   # in the workspace
        self.lasting: list[Store] = []                  # in the workspace, computed before the loop
        self.panels: dict[Any, Store] = {}              # of these, right factors in panels, by rows of the product and place
        self.numbers: dict[Variable, str] = {loop.counter: "t"}
        self.places: dict[Variable, Place] = {}
        self.values: dict[Variable, tuple[int, Symbol]] = {}        # results of elementwise stages, perhaps not stored
        self.products: dict[Variable, int] = {}         # results of products: their stages
        self.next_of: dict[Variable, Carried] = {}      # a result of the round -> the carried array whose next value it is
        self.readers: Counter[Variable] = Counter()
        rows = [each.args[1].meta for each in loop.body.instructions if isinstance(each, Call) and each.way == "keep"]
        self.list_bytes = (loop.rounds or 0) * sum([meta.nbytes for meta in rows if meta is not None])  # bytes of the lists that it fills
        self.begin()
        for each in loop.body.instructions:
            if isinstance(each, Call):
                self.call(each)
            elif isinstance(each, Branch):
                self.branch(each)
            else:
                raise NotNative(f"{each.node.kind} in it has no C form")
        self.end(inputs)

    def begin(self) -> None:
        """Note the places of carried arrays, and how often each variable is read."""
        loop = self.loop
        defined = set()
        for each in loop.body.instructions:
            if isinstance(each, Call):
                defined.add(each.out)
                reads: list[Variable] = []
                for value in (*each.args, *each.named.values()):
                    read: set[Variable] = set()
                    reads_of(value, read)
                    reads += read
                self.readers.update(reads)
            elif isinstance(each, Branch):
                defined.update(each.outs)
                read = set()
                all_reads(each, read)
                self.readers.update([*read] * 2)        # an inner instruction may read more than once
        self.readers.update([each for each in loop.body.results if isinstance(each, Variable)])
        for number, (variable, start, result) in enumerate(zip(loop.carried, loop.start, loop.body.results[1:], strict=True)):
            if variable.meta is None or not isinstance(start, Variable) or not isinstance(result, Variable):
                raise NotNative("a loop-carried value is not an array of the same dtype, shape and strides in each round")
            carried = Carried(number, self.checked(variable.meta), result is not variable)
            if not is_plain(variable.meta):
                raise NotNative("a loop-carried array is not contiguous")
            self.carried.append(carried)
            self.places[variable] = whole(carried.now)
            if result in defined:
                self.next_of.setdefault(result, carried)

    def end(self, inputs: Sequence[Variable]) -> None:
        """Store every carried result into its `next` buffer; refuse loops that read an array they also write."""
        for carried, result in zip(self.carried, self.loop.body.results[1:], strict=True):
            if not carried.changes or carried.in_place or not isinstance(result, Variable):
                continue
            place = self.place(result)
            if place.store is not carried.next:
                at = self.stage(carried.meta.shape, place.store.ready)
                self.store(at, self.load(at, result), whole(carried.next))
        if self.written and self.items:
            raise NotNative("it may read an array that it writes into")
        read = {place.store for stage in (*self.before, *self.stages) for place in stage.places()}
        starts = [each for each in self.loop.start if isinstance(each, Variable)]
        for store, variable in self.written.items():
            others = [*starts, *[each for each in self.outside if each is not variable]]
            if store in read or any(not each.roots.isdisjoint(variable.roots) for each in (*others, *inputs)):
                raise NotNative("it may read an array that it writes into")

    # -- places
    @staticmethod
    def checked(meta: Meta) -> Meta:
        """The facts of an array that C can read. Raises NotNative for any other."""
        if meta.dtype.name not in C_TYPES:
            raise NotNative(f"{meta.dtype.name} in it")
        if 0 in meta.shape:
            raise NotNative("empty arrays")
        if any(stride % meta.dtype.itemsize for stride in meta.strides):
            raise NotNative("unaligned elements")
        return meta

    def place(self, variable: Variable) -> Place:
        """The place of a variable; a variable without one is stored first."""
        place = self.places.get(variable)
        if place is not None:
            return place
        value = self.values.get(variable)
        if value is not None:
            place = self.places[variable] = whole(self.new_store(variable, value[0]))
            self.store(*value, place)
            return place
        if variable.meta is None:
            raise NotNative("an array that it reads may have other dtypes or shapes")
        store = self.outside[variable] = Store(f"x{len(self.outside)}", self.checked(variable.meta))
        place = self.places[variable] = whole(store)
        return place

    def new_store(self, variable: Variable, stage: int) -> Store:
        """Memory for a result of a stage: the `next` buffer of a carried array, or new memory in the workspace."""
        carried = self.next_of.get(variable)
        if carried is not None:
            carried.next.ready = stage + 1
            return carried.next
        assert variable.meta is not None
        self.stores.append(Store(f"w{len(self.stores)}", self.checked(variable.meta), stage, stage + 1))
        return self.stores[-1]

    def behind(self, variable: Variable, shape: tuple[int, ...]) -> int:
        """The number of the first stage over `shape` that may read a variable."""
        value = self.values.get(variable)
        if value is None:
            return self.place(variable).store.ready
        return value[0] + (self.stage_at(value[0]).shape != shape)

    def load(self, at: int, variable: Variable) -> Symbol:
        """A variable as an elementwise stage reads it."""
        value = self.values.get(variable)
        if value is not None and value[0] == at:
            return value[1]
        place = self.place(variable)
        place.store.last = max(place.store.last, at)
        return self.stage_at(at).load(place)

    def stage(self, shape: tuple[int, ...], behind: int) -> int:
        """The number of the first elementwise stage over `shape` from stage `behind` on; if there is none, of a new one."""
        for at in range(behind, len(self.stages)):
            stage = self.stages[at]
            if isinstance(stage, Elementwise) and stage.shape == shape:
                return at
        self.stages.append(Elementwise(shape))
        return len(self.stages) - 1

    def stage_at(self, at: int) -> Elementwise:
        """An elementwise stage, by its number."""
        stage = self.stages[at]
        assert isinstance(stage, Elementwise)
        return stage

    def store(self, at: int, symbol: Symbol, place: Place) -> None:
        """Let a stage store a value at a place."""
        if symbol.dtype != place.store.meta.dtype:
            raise NotNative("it converts a result to another dtype")
        self.stage_at(at).written.append((symbol, place))
        place.store.ready = max(place.store.ready, at + 1)

    # -- calls
    def call(self, call: Call) -> None:
        """One call of the body."""
        function = call.function
        if call.way == "number":
            if function in NUMBERS:
                self.numbers[call.out] = NUMBERS[function].format(*[self.number(each) for each in call.args])
        elif call.way == "keep":
            self.keep(*call.args)
        elif call.way == "view":
            if isinstance(call.args[0], Variable) and call.args[0].meta is None:
                self.item(call)
            else:
                self.view(call)
        elif function is np.ndarray.sum:
            self.sum(call)
        elif function in (np.dot, np.matmul):
            self.product(call)
        elif function is np.concatenate:
            self.join(call)
        elif not (function is np.add and call.way == "ufunc" and self.sum_of_products(call)):
            self.elementwise(call)

    def number(self, value: Any) -> str:
        """An integer in C, which may depend on the round."""
        if isinstance(value, Variable) and value in self.numbers:
            return self.numbers[value]
        number = value.value if isinstance(value, Known) else value
        if type(number) is not int:
            raise NotNative("it computes with numbers that have no C form")
        return f"{number}LL"

    def view(self, call: Call) -> None:
        """Note the place of a view of an array."""
        x, *args = call.args
        base, meta = self.place(x), x.meta
        moving = base.moving
        if call.function is operator.getitem:
            index = args[0] if isinstance(args[0], tuple) else (args[0],)
            axis, still = 0, []
            for each in index:
                if isinstance(each, Variable) and each in self.numbers:
                    moving += f" + {self.inside(each, meta.shape[axis])} * {base.strides[axis]}"
                if each is Ellipsis:
                    axis = len(meta.shape) - sum(part is not None for part in index[index.index(Ellipsis) + 1:])
                else:
                    axis += each is not None
                still.append(0 if isinstance(each, Variable) else each)
            args = [tuple(still)]
        template = dummy(meta)
        try:
            view = call.function(template, *args)
        except (TypeError, ValueError, IndexError):
            raise NotNative(f"{call.node.kind} in it") from None
        steps, itemsize = view.ctypes.data - template.ctypes.data, meta.dtype.itemsize
        if steps % itemsize or view.dtype != meta.dtype:
            raise NotNative("unaligned elements")
        self.places[call.out] = Place(base.store, view.shape, [stride // itemsize for stride in view.strides],
                                      base.offset + steps // itemsize, moving)

    def item(self, call: Call) -> None:
        """Note the place of an item of a list that the loop reads."""
        held, index = call.args
        meta = call.out.meta
        if call.function is not operator.getitem or meta is None or isinstance(index, Variable) and (index.bounds or (-1, 0))[0] < 0:
            raise NotNative("an array that it reads may have other dtypes or shapes")
        if held not in self.lists:
            self.lists.append(held)
        key = held, self.number(index)
        if key not in self.items:
            self.items[key] = Store(f"item{len(self.items)}", self.checked(meta))
        self.places[call.out] = whole(self.items[key])

    def keep(self, held: Variable, item: Any) -> None:
        """Append an array to a list: the items of all rounds are one array."""
        if self.overwrites or not isinstance(item, Variable) or item.meta is None or not item.meta.shape or not is_plain(item.meta):
            raise NotNative("it appends an array that it may write into, or that is not contiguous")
        store = Store(f"kept{len(self.filled)}", self.checked(item.meta))
        self.filled.append((held, store))
        target = whole(store)
        at = self.stage(target.shape, self.behind(item, target.shape))
        size = item.meta.nbytes // item.meta.dtype.itemsize
        self.store(at, self.load(at, item), Place(store, target.shape, target.strides, 0, f" + t * {size}"))

    def sum(self, call: Call) -> None:
        """Add a stage for a sum over rows."""
        x, meta, named = call.args[0], call.out.meta, call.named
        source = self.place(x)
        axes = named.get("axis")
        axes = tuple(range(len(x.meta.shape))) if axes is None else (axes,) if type(axes) is int else axes
        if meta is None or len(call.args) != 1 or not is_plain(x.meta) or named.get("dtype", meta.dtype) != x.meta.dtype != np.bool_ \
                or sorted(axis % len(x.meta.shape) for axis in axes) != [0] or len(x.meta.shape) < 2 or x.meta.shape[1:] == (1,):
            raise NotNative(f"{call.node.kind} in it")
        at = len(self.stages)
        source.store.last = max(source.store.last, at)
        store = self.new_store(call.out, at)
        self.stages.append(Sum(source, store))
        self.places[call.out] = whole(store)

    def inside(self, number: Variable, extent: int) -> str:
        """A number in C as an index counted from the front."""
        low, high = number.bounds or (-1, 0)
        if low < 0 <= high:
            raise NotNative("an index whose sign is unknown")
        return self.numbers[number] if low >= 0 else f"({self.numbers[number]} + {extent})"

    def elementwise(self, call: Call) -> None:
        """Add an elementwise call to a stage; its result is new, or written into an outer array."""
        meta = call.out.meta
        if meta is None or call.named:
            raise NotNative(f"{call.node.kind} in it")
        args = [each.value if isinstance(each, Known) else each.constant
                if isinstance(each, Variable) and each.constant is not None and not each.constant.ndim else each for each in call.args]
        variables = [each for each in args if isinstance(each, Variable)]
        at = self.stage(meta.shape, max([self.behind(each, meta.shape) for each in variables], default=0))
        symbols = [self.load(at, each) if isinstance(each, Variable) else each for each in args]
        try:
            symbol = applied(call.function, symbols)
        except NotPointwise:
            symbol = None
        if not isinstance(symbol, Symbol) or symbol.dtype != meta.dtype:
            raise NotNative(f"{call.node.kind} in it")
        self.stage_at(at).calls += 1
        if call.way != "into":
            self.values[call.out] = at, symbol
        else:
            self.write(call.out, at, symbol)

    def write(self, target: Variable, at: int, symbol: Symbol) -> None:
        """Write into an outer array; a write into an array of the round only gives its variable a new value."""
        if target in self.values and target not in self.places:
            self.values[target] = at, symbol
            return
        place = self.place(target)
        if place.store not in (*self.stores, *self.outside.values()):
            raise NotNative("it writes into a loop-carried array")
        root = next((variable for variable, store in self.outside.items() if store is place.store), None)
        if root is not None:
            if place.store in self.written:
                raise NotNative("it writes twice into one array")
            self.written[place.store] = root
            self.store(at, symbol, place)
            return
        if any(each.store is place.store for variable, each in self.places.items() if variable is not target):
            raise NotNative("it may read an array that it writes into")
        del self.places[target]
        self.products.pop(target, None)
        self.values[target] = at, symbol

    def branch(self, branch: Branch) -> None:
        """Add a branch on a number: one elementwise call on arrays if the number is not 0, else an array."""
        numbers, (first, second) = branch.condition, branch.blocks
        *others, last = first.instructions or [branch]
        refusal = NotNative(f"{branch.node.kind} in it has no C form")
        if branch.tests_none or len(branch.outs) != 1 or second.instructions or numbers[0] not in self.numbers:
            raise refusal
        (out,) = branch.outs
        meta = out.meta
        if meta is None:
            raise refusal
        if not isinstance(last, Call) or last.way != "ufunc" or first.results != [last.out] or not isinstance(second.results[0], Variable):
            raise refusal
        for each in others:
            if not isinstance(each, Call) or each.way not in ("number", "view"):
                raise refusal
            self.call(each)
            if each.way == "number" and each.out.bounds is not None and each.out.bounds[0] >= 0:      # C looks up an item of a list
                number = self.numbers[each.out]                                                       # in both cases
                self.numbers[each.out] = f"({number} < 0 ? 0 : {number})"
        at = len(self.stages)
        stages = Elementwise(meta.shape), Elementwise(meta.shape)
        places = [self.place(each) for each in (*last.args, second.results[0]) if isinstance(each, Variable)]
        if len(places) != len(last.args) + 1:
            raise refusal
        for place in places:
            place.store.last = max(place.store.last, at)
        try:
            outcomes = applied(last.function, [stages[0].load(place) for place in places[:-1]]), stages[1].load(places[-1])
        except NotPointwise:
            raise refusal from None
        store = self.new_store(out, at)
        for stage, symbol in zip(stages, outcomes, strict=True):
            if not isinstance(symbol, Symbol) or symbol.dtype != meta.dtype:
                raise refusal
            stage.written.append((symbol, whole(store)))
        self.stages.append(Either(self.number(numbers[0]), *stages))
        self.places[out] = whole(store)

    def join(self, call: Call) -> None:
        """Add a concatenation: each array is stored into its part of the result."""
        parts, axis = call.args[0], call.args[1] if len(call.args) > 1 else call.named.get("axis", 0)
        if type(axis) is not int or not isinstance(parts, tuple | list) or call.out.meta is None:
            raise NotNative(f"{call.node.kind} in it")
        store = self.new_store(call.out, len(self.stages))
        target, start, store.ready = whole(store), 0, 0
        for part in parts:
            if not isinstance(part, Variable) or part.meta is None:
                raise NotNative(f"{call.node.kind} in it")
            at = self.stage(part.meta.shape, self.behind(part, part.meta.shape))
            store.first = min(store.first, at)
            self.store(at, self.load(at, part), Place(store, part.meta.shape, target.strides, start * target.strides[axis]))
            start += part.meta.shape[axis]
        self.places[call.out] = target

    # -- products
    def product(self, call: Call) -> None:
        """Add a stage for a product of matrices, or of a matrix and a vector."""
        a, b = call.args
        if call.named or not (isinstance(a, Variable) and isinstance(b, Variable)) or call.out.meta is None:
            raise NotNative(f"{call.node.kind} in it")
        left, right = self.place(a), self.place(b)
        dtype = left.store.meta.dtype
        if dtype.kind != "f" or right.store.meta.dtype != dtype or not 1 <= len(left.shape) <= 2 or not 1 <= len(right.shape) <= 2:
            raise NotNative("a product of arrays that are no matrices")
        if len(left.shape) == 1:
            left = Place(left.store, (1, *left.shape), (0, *left.strides), left.offset, left.moving)
        if len(right.shape) == 1:
            right = Place(right.store, (*right.shape, 1), (*right.strides, 0), right.offset, right.moving)
        if right.shape[1] == 1:
            left, right = turned(right), turned(left)
        size = right.shape[0] * right.shape[1] * dtype.itemsize
        strided = right.strides[1] != 1 and right.shape[1] > 1
        packed = self.is_fixed(right) and right.shape[1] > 1 and (strided or NEAR <= size <= self.list_bytes)
        if size > (LARGEST_PACKED if packed else LARGEST):
            raise NotNative("a product so large that BLAS is faster")
        if packed:
            right = self.in_panels(right, left.shape[0])
        elif strided:
            right = self.laid_out(right)
        at = len(self.stages)
        for place in (left, right):
            place.store.last = max(place.store.last, at)
        store = self.new_store(call.out, at)
        self.stages.append(Product(left, right, store, packed))
        self.products[call.out] = at
        self.places[call.out] = whole(store)

    def is_fixed(self, place: Place) -> bool:
        """Is a place the same, and what it holds, in all rounds?"""
        return not place.moving and (place.store in self.outside.values()
                                     or place.store in [each.now for each in self.carried if not each.changes])

    def in_panels(self, place: Place, rows: int) -> Place:
        """A copy of a right factor, made before the loop, in the order in which products of `rows` rows read it."""
        store = self.panels.get((rows, place.key))
        if store is None:
            store = Store(f"l{len(self.lasting)}", Meta(place.store.meta.dtype, place.shape,
                                                        contiguous_strides(place.shape, place.store.meta.dtype.itemsize)))
            self.panels[rows, place.key] = store
            self.lasting.append(store)
            self.before.append(Packing(place, store, rows))
        return whole(store)

    def laid_out(self, place: Place) -> Place:
        """A contiguous copy of a place."""
        meta = Meta(place.store.meta.dtype, place.shape, contiguous_strides(place.shape, place.store.meta.dtype.itemsize))
        at = self.stage(place.shape, place.store.ready)
        store = Store(f"w{len(self.stores)}", meta, at, at + 1)
        self.stores.append(store)
        place.store.last = max(place.store.last, at)
        self.store(at, self.stage_at(at).load(place), whole(store))
        return whole(store)

    def sum_of_products(self, call: Call) -> bool:
        """Add a product in place to another product, or to a loop-carried array; False if that is not possible."""
        if len(call.args) != 2 or not all(isinstance(each, Variable) and each.meta == call.out.meta for each in call.args):
            return False
        for other, variable in (call.args, call.args[::-1]):
            at = self.products.get(variable)
            product = None if at is None else self.stages[at]
            if not isinstance(product, Product) or product.more or self.readers[variable] != 1 or self.readers[other] != 1:
                continue
            earlier = self.products.get(other)
            carried = self.next_of.get(call.out)
            if earlier is not None and at is not None and earlier < at:
                self.drop(product.into)
                target = self.places[other].store
                if carried is not None:
                    self.drop(target)
                    target = carried.next
                self.replace(self.places[other].store, target)
                target.ready = at + 1
                target.last = max(target.last, at)
            elif carried is not None and self.places.get(other) is not None and self.places[other].store is carried.now \
                    and self.readers[call.out] == 1:
                self.drop(product.into)
                target, carried.in_place = carried.now, True
            else:
                continue
            product.into, product.more = target, True
            self.products[call.out] = self.products[variable]
            self.places[call.out] = whole(target)
            return True
        return False

    def replace(self, old: Store, new: Store) -> None:
        """Let products that are written to one store be written to another."""
        for stage in self.stages:
            if isinstance(stage, Product) and stage.into is old:
                stage.into = new

    def drop(self, store: Store) -> None:
        """Remove an unused store from the workspace."""
        if store in self.stores:
            self.stores.remove(store)


def is_plain(meta: Meta) -> bool:
    """Is an array contiguous?"""
    return meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize)


def applied(function: Any, values: list[Any]) -> Any:
    """The result of an elementwise function on symbols. Raises NotPointwise."""
    if isinstance(function, np.ufunc) or function is np.where:
        return function(*values)
    if function is select:
        return np.where(*values)
    first = values[0]
    if function is np.ndarray.astype and len(values) == 2:
        return first.astype(values[1])
    if function is np.ndarray.copy:
        return first
    if function is operator.pow and values[1] in POWERS:
        return POWERS[values[1]](first)
    raise NotPointwise


__all__ = ["Carried", "Either", "Elementwise", "NotNative", "Packing", "Place", "Product", "Rounds", "Stage", "Store", "Sum", "whole"]
