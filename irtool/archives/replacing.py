"""Arrays that replace those of a module during a call, and the effects of a call's writes, on them or on the module."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from irtool.accepted_values import arrays_in, copy_array, overlapping
from irtool.archives.lowering import Lowered
from irtool.dispatch.autograd import Autograd
from irtool.dispatch.backend import BACKEND
from irtool.dispatch.hooks import Hooks
from irtool.dispatch.layer_writes import another
from irtool.dispatch.logger import Logger
from irtool.dispatch.stack import Boxed, Layer, current
from irtool.dispatch.tracer import Tracer
from irtool.dispatch.write_guard import WriteGuard
from irtool.ir.errors import RunError, UnsupportedError, did_you_mean
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array, memory_of, share_memory
from irtool.ops.structure import Object
from irtool.ops.tensor import Tensor


class Replaced:
    """Values that replace arrays of a module in all its attributes, including lists and dicts."""

    def __init__(self, parameters: Mapping[str, Any] | None = None, places: Mapping[str, tuple[Object, str]] | None = None) -> None:
        """Raises RunError for unknown names, for two values of one parameter, and for values that are no arrays."""
        self.parameters = parameters
        self.names: dict[int, str] = {}
        for name, value in (parameters or {}).items():
            array = array_called(name, places or {}, "functional_call")
            if not isinstance(value, Tensor) and not is_array(value):
                raise RunError(f"functional_call: '{name}' takes an array, got a {type(value).__name__}", code="E0403")
            other = self.names.setdefault(id(array), name)
            if parameters is not None and parameters[other] is not value:
                raise RunError(f"functional_call: '{other}' and '{name}' are one tensor of the module, and are given two", code="E0402")

    def value(self, old: Any) -> Any:
        """The value that replaces an attribute's value."""
        if not self.names:
            return old
        if isinstance(old, list | tuple):
            return type(old)([self.value(each) for each in old])
        if isinstance(old, dict):
            return {key: self.value(each) for key, each in old.items()}
        name = self.names.get(id(old))
        return old if name is None or self.parameters is None else self.parameters[name]

    def attributes(self, lowered: Lowered) -> list[Any]:
        """The values of the attributes that are inputs of a graph."""
        try:
            values = [holder.attributes[name] for holder, name in lowered.sources]
        except KeyError:
            holder, name = next((holder, name) for holder, name in lowered.sources if name not in holder.attributes)
            raise RunError(f"an instance of {holder.type} never got its attribute '{name}'", code="E0711") from None
        return [self.value(each) for each in values] if self.names else values

    def holds(self, old: Any) -> bool:
        """Is the array of an attribute replaced?"""
        return id(old) in self.names

    def assign(self, old: Any, new: Any) -> bool:
        """Record the value that a method assigned to an attribute, if that is replaced."""
        name = self.names.get(id(old))
        if name is not None and isinstance(self.parameters, dict):
            self.parameters[name] = new
        return name is not None

    def check(self, lowered: Lowered, values: Sequence[Any]) -> None:
        """Raises UnsupportedError if the layers on the stack would lose the values that the graph writes into attributes, RunError in a
        function that must not write."""
        if lowered.changed:
            written = [each for place in lowered.changed for each in arrays_in(values[place])]
            for piece in overlapping(arrays_in(list(values))):
                if len(piece) > 1 and any(each is array for each, _, _ in piece for array in written):
                    raise UnsupportedError("a method that writes into an attribute whose memory another one shares is not supported "
                                           "under grad, vmap and jit", code="E0404")
        places = [*lowered.assigned, *[lowered.sources[place] for place in lowered.changed]]
        kept = [name for holder, name in places if not isinstance(self.value(holder.attributes.get(name)), Tensor)]
        for layer in layers(current()) if kept else ():
            if isinstance(layer, WriteGuard):
                raise layer.refusal(f"the attribute '{kept[0]}' of a module")
            if isinstance(layer, Tracer):
                raise UnsupportedError(f"a trace would write the attribute '{kept[0]}' once, and its graph never: give it among the "
                                           "parameters of irtool.functional_call, or call eval() first", code="E0404")


NOTHING = Replaced()


def layers(layer: Layer | None) -> Iterator[Layer]:
    """A layer and the layers below it."""
    while layer is not None:
        yield layer
        layer = layer.inner


def array_called(name: Any, places: Mapping[str, tuple[Object, str]], where: str) -> Any:
    """The array of a parameter or buffer. Raises RunError for an unknown name."""
    if name not in places:
        raise RunError(f"{where}: the module has no parameter or buffer {name!r}{did_you_mean(str(name), places)}", code="E0402")
    holder, attribute = places[name]
    return holder.attributes[attribute]


def settled(value: Any) -> Any:
    """A value in the form in which an attribute keeps it: without the tape of a gradient. Raises UnsupportedError for a value that a
    batch or a trace hides."""
    if isinstance(value, list | tuple):
        return type(value)([settled(each) for each in value])
    if isinstance(value, dict):
        return {key: settled(each) for key, each in value.items()}
    while isinstance(value, Boxed):
        if not isinstance(value.layer, Autograd | Hooks | Logger):
            raise UnsupportedError(f"an attribute of the module cannot keep a value computed inside {value.layer}: pass it in the "
                                   "parameters of irtool.functional_call", code="E0404")
        value = value.value
    return value.array if isinstance(value, Tensor) else value


def written_over(old: Any, new: Any, rebinds: bool = False) -> Any:
    """The tensor, array or container `old` with the content of `new`, so that everything that shares it sees the change.

    rebinds: may a list or dict contain other arrays than before? Then unchanged arrays stay and others replace the old ones; otherwise all
    stay, with new elements.
    """
    if isinstance(old, Tensor) and current() is not BACKEND:
        current().call("aten::copy_", (old, new), {})
        return old
    if isinstance(old, Tensor):
        written_over(old.array, settled(new))
        return old
    new = settled(new)
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.shape == new.shape and old.dtype == new.dtype:
        if old is new or rebinds and old.tobytes() == new.tobytes():
            return old
        if rebinds:
            return new
        np.copyto(old, new)
        return old
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        items = [written_over(*pair, rebinds) for pair in zip(old, new, strict=False)] + list(new[len(old):])
        if isinstance(old, tuple):
            return tuple(items)
        old[:] = items
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        changed = {key: written_over(old[key], each, rebinds) if key in old else each for key, each in new.items()}
        old.clear()
        old.update(changed)
        return old
    return new


def new_handle(tensor: Tensor) -> Tensor:
    """A new handle of the same value, into which layers let a function write."""
    handle = another(tensor)
    if not isinstance(tensor, Boxed):
        handle.array = tensor.array.copy()
    return handle


def copied_if_shared(values: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    """The values, with copies of the arrays that share memory with `others`; arrays of the module stay themselves."""
    arrays = list(arrays_in(list(others)))
    is_shared = any(share_memory(each, other) for each in arrays_in(list(values)) for other in arrays)
    return originals(values, {}, (), others) if is_shared else values


# -- the arrays of which results were made
class Piece:
    """The memory of an array from a byte on, as an object from which NumPy makes arrays."""

    def __init__(self, array: Any, offset: int, view: Any) -> None:
        self.base = array       # keeps the array alive, and leads `memory_of` to it, as the objects of as_strided do
        self.__array_interface__ = {**array.__array_interface__, "data": (address(array) + offset, False), "shape": view.shape,
                                    "strides": view.strides, "typestr": view.dtype.str}


def address(array: Any) -> int:
    """The address of its first element."""
    return int(array.__array_interface__["data"][0])


def originals(values: Sequence[Any], copies: Mapping[int, tuple[Any, Any]], state: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """The results of a run that worked on copies of the arrays in `state`: the original arrays, with the new elements, and views of
    them, also in lists and dicts. Results that share memory with arguments are copied."""
    foreign = list(arrays_in(list(arguments)))
    left = {id(each) for each in arrays_in(list(values))}
    pairs = []
    for original in {id(each): each for each in arrays_in(list(state))}.values():
        chain = [original]
        while id(chain[-1]) in copies:      # a part of the run may have copied the copy
            chain.append(copies[id(chain[-1])][1])
        chain = chain[1:]
        # the arrays among the results come last, since theirs are the final elements
        pairs += [(original, each) for each in sorted(chain, key=lambda each: id(each) in left)]
    by_copy = {id(copy): original for original, copy in pairs}
    known: dict[int, Any] = {}
    """Copies of arguments, by the id of the argument."""
    by_memory: dict[int, list[tuple[Any, Any]]] = {}
    for original, copy in pairs:
        by_memory.setdefault(id(memory_of(copy)), []).append((original, copy))

    def original_of(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)([original_of(each) for each in value])
        if isinstance(value, dict):
            return {key: original_of(each) for key, each in value.items()}
        if not isinstance(value, np.ndarray) or id(value) in by_copy:
            return by_copy.get(id(value), value)
        for original, copy in by_memory.get(id(memory_of(value)), ()):
            offset = address(value) - address(copy)
            if value.size and 0 <= offset and offset + extent(value) <= extent(copy) and original.strides == copy.strides:
                return np.asarray(Piece(original, offset, value))
        argument = next((each for each in foreign if share_memory(value, each)), None)
        return value if argument is None else taken_from(argument, value)

    def taken_from(argument: Any, value: Any) -> Any:
        """A view in a copy of the argument, which all results that share memory with it share."""
        if id(argument) not in known:
            known[id(argument)] = copy_array(argument)
        copy, offset = known[id(argument)], address(value) - address(argument)
        is_inside = value.size and 0 <= offset and offset + extent(value) <= extent(argument)
        return np.asarray(Piece(copy, offset, value)) if is_inside and argument.strides == copy.strides else value.copy()
    results = [original_of(each) for each in values]
    for original, copy in {id(original): (original, copy) for original, copy in pairs}.values():
        if original.tobytes() != copy.tobytes():
            np.copyto(original, copy)
    return results


def extent(array: Any) -> int:
    """The number of bytes from the first element to the end of the last one."""
    return int(array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)))


def refilled(old: Any, new: Any) -> Any:
    """A list or dict with the content of another; any other value unchanged."""
    if isinstance(old, list) and isinstance(new, list):
        old[:] = [refilled(*pair) for pair in zip(old, new, strict=False)] + new[len(old):]
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        items = {key: refilled(old[key], each) if key in old else each for key, each in new.items()}
        old.clear()
        old.update(items)
        return old
    return new
