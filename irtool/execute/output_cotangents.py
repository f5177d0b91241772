"""Cotangents of outputs: which of them belongs to which tensor of which output.

Callers pass them flat, one per tensor of the outputs (tensors of lists and tuples in order, of dicts in the order of insertion). Or they
pass trees, one per output, with the lengths of the output's lists and tuples and the keys of its dicts.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irtool.ir.errors import RunError, did_you_mean
from irtool.ops.array_library import np
from irtool.ops.arrays import on_this_device


def distributed(outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """One cotangent per output; for a list, tuple or dict, a list or dict of the same structure.

    Raises RunError if there are too few or too many, or if a tree has another structure than its output.
    """
    if len(cotangents) == len(outputs) and any(map(is_tree, outputs, cotangents)):
        return [grown(output, tree, f"cotangent {place}") for place, (output, tree) in enumerate(zip(outputs, cotangents, strict=True))]
    found = [each for output in outputs for each in leaves(output)]
    for takes in TAKES:
        if sum(map(takes, found)) == len(cotangents):
            remaining = iter(cotangents)
            return [taken(output, remaining, takes) for output in outputs]
    raise RunError(f"expected {sum(map(TAKES[-1], found))} cotangents, got {len(cotangents)}", code="E0503")


TAKES: tuple[Callable[[Any], bool], ...] = (lambda leaf: True, lambda leaf: leaf is not None, lambda leaf: hasattr(leaf, "shape"))
"""Which leaves of outputs have a cotangent: callers may count what is no tensor, or not."""


def is_tree(output: Any, cotangent: Any) -> bool:
    """Is a cotangent a tree for a whole list, tuple or dict? Nested lists of numbers are one array."""
    return isinstance(output, list | tuple | dict) and holds_parts(cotangent)


def holds_parts(value: Any) -> bool:
    """Does a value contain arrays, or keys, rather than numbers?"""
    if isinstance(value, dict):
        return True
    return isinstance(value, list | tuple) and any(each is None or hasattr(each, "shape") or holds_parts(each) for each in value)


def grown(output: Any, tree: Any, where: str) -> Any:
    """The cotangents of an output, in the output's structure. Raises RunError if `tree` has another structure."""
    if tree is None:
        return none_for(output)
    if isinstance(output, dict):
        if not isinstance(tree, dict):
            raise RunError(f"{where} is of a dict with the keys {listed(output)}, expected a dict of those, not {type(tree).__name__}",
                           code="E0503")
        for key in tree:
            if key not in output:
                raise RunError(f"{where} has the key {key!r}, its output has {listed(output)}"
                               f"{did_you_mean(str(key), [str(each) for each in output])}", code="E0503")
        for key in output:
            if key not in tree:
                raise RunError(f"{where} lacks the key {key!r} of its output; None is for what takes no part", code="E0503")
        return {key: grown(one, tree[key], f"{where}[{key!r}]") for key, one in output.items()}
    if isinstance(output, list | tuple):
        if not isinstance(tree, list | tuple) or len(tree) != len(output):
            got = f"one of {len(tree)}" if isinstance(tree, list | tuple) else type(tree).__name__
            raise RunError(f"{where} is of a {type(output).__name__} of {len(output)}, expected a list or tuple of as many, not {got}",
                           code="E0503")
        return [grown(one, each, f"{where}[{place}]") for place, (one, each) in enumerate(zip(output, tree, strict=True))]
    return tree


def listed(output: dict[Any, Any]) -> str:
    """The keys of a dict in words, only the first ones if there are many."""
    names = [repr(key) for key in output]
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "no keys"


def taken(output: Any, remaining: Iterator[Any], takes: Callable[[Any], bool]) -> Any:
    """Take one cotangent per leaf of an output that takes one from `remaining`, and return them in the output's structure."""
    if isinstance(output, dict):
        return {key: taken(each, remaining, takes) for key, each in output.items()}
    if isinstance(output, list | tuple):
        return [taken(each, remaining, takes) for each in output]
    return next(remaining) if takes(output) else None


def none_for(output: Any) -> Any:
    """None for every tensor of an output."""
    if isinstance(output, dict):
        return {key: none_for(each) for key, each in output.items()}
    return [none_for(each) for each in output] if isinstance(output, list | tuple) else None


def is_absent(cotangent: Any) -> bool:
    """Are all leaves of a tree of cotangents None?"""
    if isinstance(cotangent, dict):
        return all(map(is_absent, cotangent.values()))
    return all(map(is_absent, cotangent)) if isinstance(cotangent, list) else cotangent is None


def parts_of(output: Any) -> Sequence[Any]:
    """The elements of a list, tuple or dict; for any other value, the value itself."""
    return list(output.values()) if isinstance(output, dict) else output if isinstance(output, list | tuple) else [output]


def leaves(output: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts, in order."""
    return [leaf for each in parts_of(output) for leaf in leaves(each)] if isinstance(output, list | tuple | dict) else [output]


def as_seed(cotangent: Any, output: Any) -> Any:
    """A cotangent as an array of its output's dtype; None where there is none, also for a list without any. Raises RunError for a wrong
    shape."""
    if isinstance(output, dict):
        return {key: as_seed(cotangent[key], one) for key, one in output.items()} if cotangent is not None else None
    if isinstance(output, list | tuple):
        if is_absent(cotangent):
            return None
        return [as_seed(each, one) for each, one in zip(cotangent, output, strict=True)]
    if cotangent is None:
        return None
    array, seed = on_this_device(output), as_numbers(cotangent)
    if seed.shape != array.shape:
        raise RunError(f"a cotangent has shape {seed.shape}, its output {array.shape}", code="E0503")
    if seed.dtype.kind == "c" != array.dtype.kind:
        raise RunError(f"a cotangent is of {seed.dtype}, its output of {array.dtype}", code="E0503")
    return conjugate(seed.astype(array.dtype, copy=False))


def as_numbers(cotangent: Any) -> Any:
    """A cotangent as an array. Raises RunError if it is not made of numbers."""
    try:
        array = on_this_device(cotangent)
    except (TypeError, ValueError):
        array = None
    if array is None or array.dtype.kind in "OUSMm":
        raise RunError(f"a cotangent is an array of numbers or None, not {type(cotangent).__name__} {str(cotangent)[:40]}", code="E0503")
    return np.asarray(array) if isinstance(array, np.ndarray) else array        # of a subclass the elements alone, as of inputs


def conjugate(gradient: Any) -> Any:
    """The conjugate of a gradient. Formulas multiply by the derivative; torch's gradient is the conjugate of their result for the conjugate
    of the cotangent."""
    return gradient.conj() if gradient.dtype.kind == "c" else gradient
