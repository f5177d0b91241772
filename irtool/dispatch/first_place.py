"""Is a batch taken of what the operator refuses alone? Batching rules compute with one dimension more, and so take sizes that the operator
refuses at each place, such as an operand without dimensions that is summed over dimension 1.
"""
from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any, NoReturn

from irtool.dispatch.stack import Boxed, Layer, elements_of
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.schema import forgets_kinds
from irtool.ops.array_library import np
from irtool.ops.call import overload
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.tensor import Tensor

MOST = 1 << 14
PLAIN = {bool, int, float, complex, str, type(None)}
_taken: set[Any] = forgets_kinds(set())
"""Overloads with the sizes and dtypes of operands that they take alone."""


class Unasked(Exception):
    """The operator cannot be asked: more layers hide dimensions of an operand, its elements are in no array, or a trace follows it."""


def check_first_place(layer: Layer, name: str, args: list[Any], results: Any) -> None:
    """Raises the operator's error if it refuses the operands of the first place, once for each kind of operands; UnsupportedError if its
    results have other sizes than those of the batching rule."""
    try:
        key = (name, *[kind_of(layer, each) for each in args])
        if key in _taken:
            return
        alone = of_first_place(layer, name, args)
    except Unasked:
        return
    sizes = [tuple(each.shape) for each in tensors_in(results)]
    if sizes != (wanted := [each.shape for each in arrays_in(alone)]):
        raise not_supported_with(name, f"its rule gives {sizes}, not {wanted}")
    if len(_taken) > MOST:
        _taken.clear()
    _taken.add(key)


def refuse_as_at_first_place(layer: Layer, name: str, args: list[Any], error: Exception) -> NoReturn:
    """For a batching rule that ended in one of Python's errors: raises the operator's error if it refuses the operands of the first place,
    UnsupportedError if it takes them, cannot be asked, or there is no place."""
    with suppress(Unasked):
        of_first_place(layer, name, args)
    raise not_supported_with(name, error) from error


def refuse_what_is_taken_alone(layer: Layer, length: int, name: str, args: list[Any], error: Error) -> None:
    """For a batching rule that raised an error: raises UnsupportedError if the operator takes the operands of each of the `length` places.
    Returns if it refuses those of one, as a singular matrix, or cannot be asked: the error is the operator's then."""
    try:
        for place in range(length):
            of_place(layer, name, args, place)
    except (Unasked, Error):
        return
    raise not_supported_with(name, error.message) from error


def not_supported_with(name: str, why: object) -> UnsupportedError:
    """The error for operands that the operator takes, and its batching rule does not."""
    return UnsupportedError(f"{name} under vmap is not supported with operands of these sizes: {why}", code="E0504")


def of_first_place(layer: Layer, name: str, args: list[Any]) -> Any:
    """What the operator gives at the first place. Raises its error; Unasked if it cannot be asked."""
    return of_place(layer, name, args, 0)


def of_place(layer: Layer, name: str, args: list[Any], place: int) -> Any:
    """The same at any place."""
    operands = [at_place(layer, each, place) for each in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return overload(name)(operands)


def at_place(layer: Layer, value: Any, place: int) -> Any:
    """A tensor as the operator sees it at one place of a batch; other values unchanged. Raises Unasked if that is not known."""
    if isinstance(value, list | tuple):
        return [at_place(layer, each, place) for each in value]
    if not isinstance(value, Tensor):
        return value
    whole = layer.opened(value)
    array = elements_of(whole)
    if not isinstance(array, np.ndarray) or list(array.shape) != list(whole.shape):
        raise Unasked
    if isinstance(value, Boxed) and value.layer is layer:
        if not array.shape[value.known]:
            raise Unasked
        array = array[(slice(None),) * value.known + (slice(place, place + 1),)].squeeze(value.known)
    # how a place lies in memory is the batch's affair; some operators write into operands, such as running statistics
    return np.array(array, order="C")


def kind_of(layer: Layer, value: Any) -> Any:
    """What a refusal depends on: sizes and dtypes of tensors, and other values with their types. Raises Unasked for other objects, such as
    numbers of a trace, which notes comparisons."""
    kind = type(value)      # a number of a trace has the `__class__` of its value
    if kind in PLAIN:
        return kind, value
    if isinstance(value, Tensor):
        array = elements_of(value)
        return array.shape, array.dtype, value.known if isinstance(value, Boxed) and value.layer is layer else None
    if isinstance(value, list | tuple):
        return tuple([kind_of(layer, each) for each in value])
    raise Unasked


def arrays_in(value: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(value, list | tuple):
        return [array for each in value for array in arrays_in(each)]
    return [value] if isinstance(value, np.ndarray | np.generic) else []
