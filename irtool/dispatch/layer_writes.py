"""Functionalisation of writes under layers: values never change; a write gives its target, and all tensors that share its memory, new ones.

A tensor object is a *handle*: a write exchanges the value in it, and all who refer to the handle see the new value. Each view remembers the
tensor that it views, and the operator. A write into a view computes a new value of the viewed tensor, and from that new values of all
its views; so layers see only operations that do not write. A write may turn a tensor made inside a transformed function into one of the
layer's; not so a tensor from outside, where the layer's values have no meaning.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from weakref import ref

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.memory_orders import first_place, in_memory_order_of, in_order_of, lies_in_order
from irtool.dispatch.stack import NUMBERS, Boxed, Layer, elements_of
from irtool.ir.effects import ITEMS_THEMSELVES, OF_EACH, OF_ONE, OPERAND_ITSELF, RESHAPES, UNDECLARED, facts_of
from irtool.ir.errors import Error, RunError, UnsupportedError
from irtool.ir.schema import forgets_kinds, parse_schema, schema_named
from irtool.ops import OPS
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, dtype_of
from irtool.ops.call import overload
from irtool.ops.checks import OVERLAP, PARTIAL, refuse_own_elements, refuse_partial_overlap
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.overload import THROUGH, refuse_dtype
from irtool.ops.size_facts import BY_INDEX, CERTAIN_VIEWS, CONJUGATES, HIDDEN_VIEWS, IN_ORDER, VIEWS_AS, read_late
from irtool.ops.tensor import Tensor, next_birth

SILENT = ("aten::detach", "aten::data")
"""Operators whose result shares the memory of a tensor, but not its gradient: a value written into the result is a constant."""
WITHOUT_WRITE = {f"aten::__i{name}__": f"aten::__{name}__" for name in "and or xor lshift rshift".split()}
"""Kinds that write though their names do not end in `_` -> the kinds that compute the same without writing."""
NUMBER_COPIES = ("aten::copy_.int", "aten::copy_.float")
RETURNS_OPERANDS = OPERAND_ITSELF | ITEMS_THEMSELVES
"""Kinds that return an operand itself, or those in a list, if there is nothing to do."""
FILLS = ("aten::zero_", "aten::fill_.Scalar")
"""Overloads that write one number everywhere, and so may write into elements that share a place in memory."""
NOT_IN_ORDER = "a write into memory that as_strided shows is not supported here: its tensor is not contiguous, or a part of other memory"


class View:
    """The operation that made a tensor a view of `whole`: operator, operands, and the position among its results. hole: where the whole is
    among the operands: first, or (position of a list, position in it). refusal: why the view of another tensor cannot be told."""

    __slots__ = ("whole", "name", "args", "hole", "place", "refusal")

    def __init__(self, whole: Tensor, name: str, args: list[Any], hole: tuple[int, int] | None, place: int) -> None:
        self.whole = whole
        self.name = "aten::reshape" if name == "aten::view" else name      # a new whole may have other strides
        self.args = [list(each) if isinstance(each, list) else each for each in args]
        if name in VIEWS_AS:        # the other tensor matters only by its sizes
            self.name, more = VIEWS_AS[name]
            self.args = [whole, args[1].shape, *more]
        self.hole = hole
        self.place = place
        self.refusal = ""

    def of(self, whole: Any, layer: Layer) -> Any:
        """The same view of another tensor. Raises UnsupportedError for elements by their places in memory (`as_strided`), if others are
        there."""
        if self.refusal or self.name == "aten::as_strided" and not lies_in_order(root_of(whole)):
            raise UnsupportedError(self.refusal or NOT_IN_ORDER, code="E0504")
        args = [whole, *(map(at_bottom, self.args[1:]) if layer is BACKEND else self.args[1:])]
        if self.hole is not None:
            at, inside = self.hole
            others = [sized_as(each, whole) for each in self.args[at]] if layer is BACKEND else self.args[at]
            args = [*self.args[:at], [*others[:inside], whole, *others[inside + 1:]], *self.args[at + 1:]]
        results = layer.apply(self.name, args)
        return next(each for at, each in enumerate(tensors_in(results)) if at == self.place)


def at_bottom(operand: Any) -> Any:
    """An operand of a view for the lowest layer. Of a batch of 0-d operands the first: all show as many elements, none twice."""
    if not isinstance(operand, Boxed):
        return operand
    array = elements_of(operand)
    return Tensor(array if operand.ndim else np.resize(array, ()))


def sized_as(other: Tensor, whole: Tensor) -> Tensor:
    """Another tensor of a list, for the lowest layer: of its elements, views of the list have only the number."""
    return Tensor(np.zeros(other.shape, dtype_of(whole.dtype)))


class Same(View):
    """The origin of a new handle for a tensor: both show the same elements."""

    __slots__ = ()

    def __init__(self, whole: Tensor) -> None:
        super().__init__(whole, "aten::alias", [whole], None, 0)

    def of(self, whole: Any, layer: Layer) -> Any:
        """The tensor itself."""
        return whole


class Links:
    """origin: the view that a tensor is (None: no view); parts: weak references to the views of the tensor."""

    __slots__ = ("origin", "parts")

    def __init__(self) -> None:
        self.origin: View | None = None
        self.parts: list[ref[Tensor]] = []


@forgets_kinds
@cache
def is_view(name: str) -> bool:
    """May the results of an operator be views of its first operand, or of tensors in a list, without a write?"""
    schema = schema_named(name) or overload(name).schema
    first = schema.arguments[0].alias if schema.arguments else None
    if schema.kind in UNDECLARED or schema.kind in OF_ONE or schema.kind in OF_EACH:
        return True
    return first is not None and not schema.is_mutable and any(each.alias is not None for each in schema.returns)


@forgets_kinds
@cache
def is_write(name: str) -> bool:
    """Does an operator write into its first operand?"""
    schema = schema_named(name) or overload(name).schema
    first = schema.arguments[0].alias if schema.arguments else None
    return first is not None and first.is_write


@forgets_kinds
@cache
def without_write(name: str) -> str | None:
    """For an overload that writes into its first operand, the overload that returns a new tensor instead; None for others."""
    written = overload(name)
    types = [argument.type.text for argument in written.schema.arguments]
    kind, dot, rest = name.partition(".")
    if written.mode == "inplace":
        alike = [each for text, each in zip(written.op.schemas, written.op.names, strict=True)
                 if [argument.type.text for argument in parse_schema(text).arguments[:len(types)]] == types]
        return next((each for each in alike if each.partition(".")[0] == kind[:-1]), (*alike, written.op.names[0])[0])
    if not is_write(name) or name in NUMBER_COPIES:
        return "aten::copy" if name in NUMBER_COPIES else None
    plain = WITHOUT_WRITE.get(kind) or (kind[:-1] if kind.endswith("_") else "")        # it has a kernel of its own
    taken = sorted([text.replace("?", "") for text in types])
    return next((each for each in (plain + dot + rest, plain) if each in OPS and taken == sorted(
        [argument.type.text.replace("?", "") for place, argument in enumerate(overload(each).schema.arguments)
         if place < len(taken) or not argument.has_default])), None)


def arguments_of_plain(name: str, plain: str, args: list[Any]) -> list[Any]:
    """The arguments of the overload `plain`, from those of `name`, which writes; more have defaults (`copy_.Tensor`).

    A number to be copied becomes a tensor, since it is converted as one; a number to fill with must fit. Running sums and products are
    computed in the dtype of what they are written into."""
    place = dtype_place(name)
    if place is not None and args[place] is None:
        args = [*args[:place], args[0].dtype, *args[place + 1:]]
    if plain == "aten::copy" and not isinstance(args[1], Tensor):
        args = [args[0], args[1].tensor() if hasattr(args[1], "tensor") else Tensor(np.asarray(args[1])), *args[2:]]
    rest = overload(plain).schema.arguments[len(args):]
    return [*[args[place] for place in plain_order(name, plain)], *[argument.default for argument in rest]]


@forgets_kinds
@cache
def dtype_place(name: str) -> int | None:
    """The position of the argument `dtype` of an overload; None: it has none."""
    return next((place for place, argument in enumerate(overload(name).schema.arguments) if argument.name == "dtype"), None)


@forgets_kinds
@cache
def plain_order(name: str, plain: str) -> tuple[int, ...]:
    """For each argument of the overload `plain` its position in `name`, which writes; they may differ: `x.polygamma_(n)`."""
    names = [argument.name for argument in overload(name).schema.arguments]
    others = [argument.name for argument in overload(plain).schema.arguments]
    return tuple([names.index(each) for each in others]) if sorted(names) == sorted(others) else tuple(range(len(names)))


# -- handles
def another(tensor: Tensor) -> Tensor:
    """A new handle with the same value: a write into one handle does not change the other."""
    handle: Tensor
    if isinstance(tensor, Boxed):
        handle = Boxed(tensor.layer, tensor.value, tensor.known)
    else:
        handle = Tensor(tensor.array)
        handle.born = next_birth()
        if hasattr(tensor, "label"):
            handle.label = tensor.label
    return handle


def become(target: Tensor, other: Tensor) -> None:
    """Set the value and the boxes of a handle to those of another."""
    target.__class__ = other.__class__
    if isinstance(other, Boxed):
        boxed: Any = target
        boxed.layer, boxed.value, boxed.known = other.layer, other.value, other.known
    else:
        target.array = other.array
        if hasattr(target, "label"):
            del target.label
        if hasattr(other, "label"):
            target.label = other.label


def remember(layer: Layer, name: str, args: list[Any], results: Any) -> Any:
    """Note for the results of an operator that they may be views of its first operand, or of tensors in a list; returns the results.

    A result that is the operand itself gets a new handle, and so does a result that the layer below has noted as a view of its operand.
    """
    whole = args[0]
    if isinstance(whole, Tensor):
        return whole if is_operand(layer, name, whole, results) else linked(layer, name, args, whole, None, results)
    if type(whole) in NUMBERS:      # `{2}` of 2018, a number that stands for a tensor
        return results
    at, tensors = next(((at, each) for at, each in enumerate(args) if isinstance(each, list)), (0, []))
    if isinstance(results, list | tuple):
        return [tensors[place] if is_operand(layer, name, tensors[place], result) else
                linked(layer, name, args, tensors[place], (at, place), result) for place, result in enumerate(results)]
    return linked(layer, name, args, tensors[0], (at, 0), results) if len(tensors) == 1 else results


def linked(layer: Layer, name: str, args: list[Any], whole: Tensor, hole: tuple[int, int] | None, results: Any) -> Any:
    """The results of an operator, noted as views of one operand. hole: as View has it."""
    is_own = layer.owns(whole)

    def handle(each: Tensor) -> Tensor:
        return another(each) if each is whole or is_own and each.links is not None and not layer.owns(each) else each
    results = map_tensors(handle, results)
    is_noted = is_inside(layer, root_of(whole))
    for place, each in enumerate(tensors_in(results)):
        is_linked = each.links is not None and each.links.origin is not None
        if is_linked and (may_copy(name) or root_of(each) is root_of(whole)) or may_copy(name) and not shares_memory(each, whole):
            continue
        view = View(whole, name, args, hole, place if hole is None else hole[1])
        if name == "aten::as_strided":
            see_memory_of_root(layer, view)
        link(each, view, is_noted)
    return results


def link(handle: Tensor, view: View, is_noted: bool = True) -> None:
    """Note that a handle is a view: a write into its whole changes it, too. is_noted: does the whole know its views?"""
    handle.links = handle.links or Links()
    handle.links.origin = view
    if not is_noted:
        return
    view.whole.links = view.whole.links or Links()
    view.whole.links.parts.append(ref(handle))


def see_memory_of_root(layer: Layer, view: View) -> None:
    """Make a view of memory (`as_strided`) one of the tensor at the start of the chain, as in torch, not of the part that it was asked of:
    a write reaches elements outside of this part, too."""
    whole, root = view.whole, root_of(view.whole)
    base, silent = whole, ""
    while base.links is not None and (origin := base.links.origin) is not None and origin.whole.dtype == base.dtype and \
            origin.name.partition(".")[0] not in CONJUGATES | HIDDEN_VIEWS:
        base, silent = origin.whole, silent or origin.name * (origin.name in SILENT)
    if not lies_in_order(root) or not shares_memory(whole, root) or \
            base is not root and (not lies_in_order(base) or elements_of(base).nbytes != elements_of(root).nbytes):
        view.refusal = NOT_IN_ORDER
    elif base is not whole:
        if view.args[3] is None:
            view.args[3] = first_place(whole)
        above = base.layer if isinstance(base, Boxed) and base.layer.contains(layer) else layer     # if the part is detached from that one
        view.whole = above.apply(silent, [base]) if silent else base


def is_operand(layer: Layer, name: str, operand: Tensor, result: Any) -> bool:
    """Did an operator return its first operand, or one in its list, having nothing to do? result: in a box of the layer, or as the layer
    below sees it."""
    if name.partition(".")[0] not in RETURNS_OPERANDS:
        return False
    if layer.owns(operand) and layer.owns(result):
        return result.value is operand.value and result.known == operand.known
    return result is layer.opened(operand)


def with_operands(layer: Layer, name: str, args: list[Any], results: Any, boxed: Any) -> Any:
    """The results of an operator in boxes, with a tensor of its list in place of each result that is that tensor itself.

    results: as the layer below sees them.
    """
    if name.partition(".")[0] not in ITEMS_THEMSELVES or not isinstance(args[0], list):
        return boxed
    return [item if is_operand(layer, name, item, each) else box for item, each, box in zip(args[0], results, boxed, strict=True)]


@forgets_kinds
@cache
def may_copy(name: str) -> bool:
    """May an operator that is a view by its schema return a copy (`reshape`)? The result of any other is a view, even if a layer computes
    a copy."""
    return name.partition(".")[0] not in CERTAIN_VIEWS | CONJUGATES


def shares_memory(view: Tensor, whole: Tensor) -> bool:
    """Does a result share memory with the operand, or is it a copy?"""
    a, b = elements_of(view), elements_of(whole)
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return True
    return a.dtype == b.dtype if not a.size else np.may_share_memory(a, b)      # without elements, equal dtypes are taken as a view


def root_of(tensor: Tensor) -> Tensor:
    """The tensor at the start of a chain of views; a tensor that is no view is its own root."""
    while tensor.links is not None and tensor.links.origin is not None:
        tensor = tensor.links.origin.whole
    return tensor


def is_inside(layer: Layer, root: Tensor) -> bool:
    """Is a tensor in a box of the layer, or was it made since the layer was pushed?"""
    return root.born > layer.start or layer.owns(root)


def views_of(whole: Tensor) -> Iterator[Tensor]:
    """All living views of a tensor, and views of these, each after the tensor that it views."""
    if whole.links is None:
        return
    alive = [view for each in whole.links.parts if (view := each()) is not None]
    whole.links.parts = [ref(view) for view in alive]
    for view in alive:
        yield view
        yield from views_of(view)


def take_in(layer: Layer, tensor: Tensor) -> None:
    """Turn a tensor made inside a traced function, and all tensors that share its memory, into tensors of the trace."""
    root = root_of(tensor)
    if not layer.owns(root) and is_inside(layer, root):
        become(root, layer.adopted(root))
        for each in views_of(root):
            if each.links is not None and each.links.origin is not None:
                become(each, each.links.origin.of(each.links.origin.whole, layer))


# -- writes
def do_write(layer: Layer, name: str, plain: str | None, args: list[Any]) -> Any:
    """Run an operator that writes into its first operand, which was made inside the function; returns the operand.

    plain: the operator that returns a new tensor instead. Raises UnsupportedError if there is none.
    """
    target = args[0]
    if name == "aten::requires_grad_" or name == "aten::copy_" and args[1] is target:
        return target       # also of an expanded tensor, which refuses other writes
    if plain is not None and turns_into_view(name):
        return reshaped(layer, plain, target, args[1:])
    if plain is not None:
        if not fills_where(name, args):
            refuse_shared_parts(name, target, args[1:])
        seen = as_of_root(layer, target)
        result = layer.apply(plain, arguments_of_plain(name, plain, [seen, *args[1:]]))
        if result is seen:
            return target       # nothing to do
        if is_view(plain):
            result = another(result)        # without the link to the target
        else:
            result = in_order_of(layer, seen, result)
        return write(layer, name, target, result)
    kind = name.partition(".")[0]
    if layer.owns(target) and not facts_of(kind).is_random or any(layer.owns(each) for each in tensors_in(args[1:])):
        raise UnsupportedError(f"{kind} is not supported inside {layer}: it writes into its operand", code="E0504")
    fresh = layer.below.apply("aten::clone", [layer.opened(target), None])
    layer.below.apply(name, [fresh, *args[1:]])
    return write(layer, name, target, fresh)


def as_of_root(layer: Layer, target: Tensor) -> Tensor:
    """The operand of a write. In memory that `as_strided` shows of a part, tapes must see the elements of the tensor at the start, as in
    torch: the gradient of `as_strided` itself ends at the part."""
    chain = chain_of(target)
    if not any(view.name == "aten::as_strided" for view in chain) or layer.silent_tapes(False):
        return target
    head = head_of(target)
    shown: Tensor = through(head, chain[len(chain_of(head)):], layer)
    return shown


def fills_where(name: str, args: list[Any]) -> bool:
    """Does it write one number where a mask is true, which is read before it is written (`x[x > 1] = x[0]`)?"""
    if name.partition(".")[0] not in ("aten::index_put_", "aten::_index_put_impl_"):
        return False
    masks = [each for each in args[1] if isinstance(each, Tensor)]
    return len(masks) == 1 and CODES[masks[0].dtype] in ("bool", "uint8") and np.prod(args[2].shape) == 1 and not args[3]


def refuse_shared_parts(name: str, target: Tensor, operands: list[Any]) -> None:
    """Raises, as a write into arrays does, if an operand is another part of the tensor that is written into, or, of writes by index, that
    tensor itself."""
    root, kind = root_of(target), name.partition(".")[0]
    operands = list(read_late(kind, operands))
    refuse_own_elements(kind, kind in IN_ORDER and any(root_of(each) is root for each in tensors_in(operands)))
    if kind in BY_INDEX and any(each is target for each in tensors_in(operands)):
        raise RunError(PARTIAL)
    others = [each for each in tensors_in(operands) if each is not target and root_of(each) is root]
    if others and (target is not root or any(each is not root for each in others)):
        shown, *parts = in_memory(root, [chain_of(each) for each in (target, *others)], name)
        refuse_partial_overlap(shown, parts, kind in BY_INDEX)


def in_memory(root: Tensor, chains: list[list[View]], name: str) -> list[Any]:
    """Arrays of one memory that lie in it as what chains of views of a tensor show. Views of another dtype, such as the real parts of
    complex numbers, are of a memory of the tensor's dtype. Raises UnsupportedError for an unknown view."""
    if not any(view.name.partition(".")[0] in INVERSES for chain in chains for view in chain):
        places = Tensor(in_memory_order_of(root, all_places(root).array))
        return [viewed(places, chain, name) for chain in chains]
    memory = Tensor(np.zeros(root.shape, dtype_of(root.dtype)))
    return [seen(memory, chain, name) for chain in chains]


def chain_of(tensor: Tensor) -> list[View]:
    """The views from the root of a tensor to the tensor, in order."""
    chain: list[View] = []
    while tensor.links is not None and tensor.links.origin is not None:
        chain.append(tensor.links.origin)
        tensor = chain[-1].whole
    return chain[::-1]


def reshapes(layer: Layer, name: str, args: list[Any]) -> bool:
    """Does an operator change only the shape of its operand (`t_`), a tensor made inside the function that has no box of the layer?"""
    return layer.facts(name).plain is not None and turns_into_view(name) and isinstance(args[0], Tensor) and \
        not layer.owns(args[0]) and is_inside(layer, root_of(args[0]))


def turns_into_view(name: str) -> bool:
    """Does an operator turn its operand into a view of itself, and write no element?"""
    kind = name.partition(".")[0]
    return kind in RESHAPES or kind == "aten::detach_"


def write(layer: Layer, name: str, target: Tensor, result: Any) -> Any:
    """Set the value of `target`, which was made inside the function, to `result`, and update its aliases.

    Raises RunError for a result of another shape or kind of dtype, UnsupportedError for a view whose elements cannot be put back.
    """
    chain, root = chain_of(target)[::-1], root_of(target)
    if result.shape != target.shape:
        raise RunError(f"output with shape {target.shape} doesn't match the broadcast shape {result.shape}")
    if result.dtype != target.dtype:
        dtypes = dtype_of(result.dtype), dtype_of(target.dtype)
        refuse_dtype(name, *dtypes)
        result = layer.apply("aten::_to_copy", [result, target.dtype, None, None, None, False, None])
    others = list(views_of(root))
    cut = next((place for place, view in enumerate(chain) if is_unknown_to_tapes(view)), len(chain))
    head = chain[cut - 1].whole if cut else target      # the root of those views that share the target's gradient
    tapes, every = layer.silent_tapes(False), layer.silent_tapes(True)
    with silence(tapes):
        value = put_back(layer, name, head, chain[:cut][::-1], result) if cut else result
    if head is not root:
        with silence(every):
            become(root, keeping(root, put_back(layer, name, root, chain[cut:][::-1], value), every))
    become(head, keeping(head, value, tapes))
    for each in others:
        if each is not head and each.links is not None and each.links.origin is not None:
            silent = tapes if head_of(each) is head else every
            with silence(silent):
                become(each, keeping(each, each.links.origin.of(each.links.origin.whole, layer), silent))
    return target


def is_unknown_to_tapes(view: View) -> bool:
    """Do tapes treat a view as a separate tensor: does a write into it change the elements of the whole, but not its gradient?"""
    return view.name in SILENT or view.name.partition(".")[0] in HIDDEN_VIEWS


def head_of(tensor: Tensor) -> Tensor:
    """The root of a tensor's chain of views as tapes see it."""
    while tensor.links is not None and tensor.links.origin is not None and not is_unknown_to_tapes(tensor.links.origin):
        tensor = tensor.links.origin.whole
    return tensor


@contextmanager
def silence(tapes: list[Any]) -> Iterator[None]:
    """A context in which these tapes record nothing."""
    with ExitStack() as stack:
        for tape in tapes:
            stack.enter_context(tape.silently())
        yield


def keeping(before: Tensor, after: Tensor, tapes: list[Any]) -> Tensor:
    """The new value `after` of a tensor with the variables that `tapes` have for `before`: for them, and for traces below, the write is
    one of constants."""
    return kept_in(before, after, tapes) if tapes else after


def kept_in(before: Tensor, after: Tensor, tapes: list[Any]) -> Tensor:
    """As `keeping`, layer by layer."""
    if not isinstance(before, Boxed):
        return after
    layer = before.layer
    inside = another(layer.laid_out(after, before))     # without the links of `after`, which may be noted as a view
    kept = kept_in(before.value, inside, tapes)
    return Boxed(layer, kept, before.known) if layer in tapes else layer.renewed(before, after, kept)


def put_back(layer: Layer, name: str, root: Any, chain: list[View], part: Any) -> Any:
    """`root` with the elements that the last view of a chain shows replaced by `part`. Raises RunError if a view shows an element twice."""
    chain = [view for view in chain if not isinstance(view, Same)]
    if not chain:
        return part
    for place, view in enumerate(chain):
        if view.name.partition(".")[0] in INVERSES:
            inner = through(root, chain[:place], layer)
            shown = view.of(inner, layer)
            if shown.dtype != inner.dtype:
                changed = put_back(layer, name, shown, chain[place + 1:], part)
                return put_back(layer, name, root, chain[:place], INVERSES[view.name.partition(".")[0]](layer, inner, changed))
    if part.dtype != root.dtype:
        raise unknown_elements(name)
    flat = layer.apply("aten::reshape", [root, [int(np.prod(root.shape, dtype=np.int64))]])
    places = places_of(root, chain, name)
    if sum(view.name.partition(".")[0] in CONJUGATES for view in chain) % 2:
        part = layer.apply("aten::conj_physical", [part])
    part = layer.apply("aten::reshape", [part, [len(places)]])
    once = np.unique(places)
    if len(once) != len(places):
        kind = name.partition(".")[0]
        if name not in FILLS:
            if kind in THROUGH or kind == "aten::index_put_":
                raise UnsupportedError(f"{kind} into an expanded tensor is not supported inside {layer}", code="E0504")
            raise RunError(OVERLAP)
        places, part = once, layer.apply("aten::slice.Tensor", [part, 0, 0, len(once), 1])
    where: Any = Tensor(places)
    if any(isinstance(each, Boxed) for view in chain for each in view.args[1:]):      # of an operand that may differ in each run
        where = layer.apply("aten::reshape", [through(all_places(root), chain, layer), [-1]])
    whole = layer.apply("aten::reshape", [layer.apply("aten::index_put", [flat, [where], part, False]), list(root.shape)])
    return in_order_of(layer, root, whole)


INVERSES: dict[str, Callable[[Layer, Any, Any], Any]] = {
    "aten::view_as_real": lambda layer, whole, part: layer.apply("aten::view_as_complex", [part]),
    "aten::view_as_complex": lambda layer, whole, part: layer.apply("aten::view_as_real", [part]),
    "aten::real": lambda layer, whole, part: layer.apply("aten::complex", [part, layer.apply("aten::imag", [whole])]),
    "aten::imag": lambda layer, whole, part: layer.apply("aten::complex", [layer.apply("aten::real", [whole]), part]),
}
"""Views of another dtype -> what the whole tensor is when such a view of it is `part`."""


def places_of(root: Tensor, chain: list[View], name: str) -> Any:
    """The flat indices of the elements of `root` that the last view of a chain shows. Raises UnsupportedError for an unknown view."""
    return viewed(all_places(root), chain, name).reshape(-1)


def all_places(root: Tensor) -> Tensor:
    """The flat index of each element of a tensor, in the tensor's shape."""
    return Tensor(np.arange(int(np.prod(root.shape, dtype=np.int64))).reshape(root.shape))


def viewed(places: Any, chain: list[View], name: str) -> Any:
    """A chain of views applied to a tensor of indices. Raises UnsupportedError for an unknown view."""
    elements = seen(places, chain, name)
    if elements.dtype != np.int64:
        raise unknown_elements(name)
    return elements


def seen(tensor: Tensor, chain: list[View], name: str) -> Any:
    """The array that a chain of views of a tensor shows. Raises UnsupportedError for an unknown view."""
    try:
        return np.asarray(through(tensor, chain, BACKEND).array)
    except Error as error:
        operator = chain[-1].name.partition(".")[0]
        raise UnsupportedError(f"{name.partition('.')[0]} into what {operator} gives is not supported here yet", code="E0504") from error


def through(tensor: Any, chain: list[View], layer: Layer) -> Any:
    """A chain of views of a tensor."""
    for view in chain:
        tensor = view.of(tensor, layer)
    return tensor


def unknown_elements(name: str) -> UnsupportedError:
    """The refusal of a write into a view as another dtype, such as the real parts of complex numbers."""
    return UnsupportedError(f"{name.partition('.')[0]} into what shows other elements than it is a view of is not supported here",
                            code="E0504")


def reshaped(layer: Layer, plain: str, target: Tensor, rest: list[Any]) -> Any:
    """Turn `target` into a view of itself (`t_`, `detach_`); it still shares memory as before. Raises RunError for detaching a view.

    Where gradients are off, tapes still have the tensor for what it was.
    """
    is_part = target.links is not None and target.links.origin is not None
    if plain in SILENT and is_part:
        raise RunError("Can't detach views in-place. Use detach() instead.")
    before = another(target)
    before.born, before.links = target.born, target.links
    if before.links is not None:
        for view in before.links.parts:
            part = view()
            if part is not None and part.links is not None and part.links.origin is not None:
                part.links.origin.whole = before
        if before.links.origin is not None:
            siblings = before.links.origin.whole.links
            if siblings is not None:
                siblings.parts = [ref(before) if each() is target else each for each in siblings.parts]
    with ExitStack() as stack:
        for tape in [] if plain in SILENT else layer.silent_tapes(False):
            stack.enter_context(tape.noting_shapes())
        shown = remember(layer, plain, [before, *rest], layer.apply(plain, [before, *rest]))
    become(target, shown)
    target.links = shown.links
    for whole in (before, *[each.whole for each in chain_of(target)[-1:]]):
        if whole.links is not None:
            whole.links.parts = [ref(target) if each() is shown else each for each in whole.links.parts]
    return target
