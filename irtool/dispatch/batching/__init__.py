"""Batching rules by operator: how it is done for all places of a hidden dimension at once.

    @rule("softmax.int _softmax log_softmax.int")      # kinds, or overloads, without aten::
    def along(batch, self, dim, *rest):
        x = batch.front(self)
        return batch.box(batch.same(x, shifted(dim, self), *rest))

A rule takes a `Batch` (`irtool.dispatch.batched`) and the schema's arguments in order; tensors with a hidden dimension are in the layer's
boxes. It does operations on the layer below and boxes the results. Pointwise operators need no rule of their own: which they are is
known from their kernels (`irtool.ops.symbols.elementwise`), and one rule serves them all. What has no rule says why.
"""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from irtool.ir.errors import UnsupportedError

Rule = Callable[..., Any]
FAMILIES = ("algebra", "bags", "counting", "dims", "images", "indexing", "losses", "margins", "matmul", "norms", "others", "sequences",
            "shape", "spectra")
"""The modules of rules."""

_rules: dict[str, Rule] = {}
_reasons: dict[str, str] = {}
_loaded: list[bool] = []


def rule(names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of overloads, named without `aten::`. A kind none of whose overloads has that very name stands for them all."""
    def state(function: Rule) -> Rule:
        for word in names.split():
            name = word if "::" in word else f"aten::{word}"
            if name in _rules:
                raise KeyError(f"{name} has two batching rules")
            _rules[name] = function
        return function
    return state


def no_rule(reason: str, names: str) -> None:
    """State that kinds or overloads have no batching rule, and why."""
    for word in names.split():
        _reasons[word if "::" in word else f"aten::{word}"] = reason


def load() -> None:
    """Import the modules of rules, once."""
    if not _loaded:
        _loaded.append(True)
        for family in FAMILIES:
            import_module(f"irtool.dispatch.batching.{family}")


def find(name: str) -> Rule | None:
    """The rule of an overload; None when there is none. What writes has that of the operator that gives a new tensor."""
    load()
    found = _rules.get(name) or _rules.get(_general(name))
    if found is None:
        from irtool.dispatch.batching.pointwise import pointwise
        from irtool.dispatch.operator_rules import LIBRARY
        from irtool.ops.facts import facts_of_overload

        plain = LIBRARY.without_write(name)
        found = pointwise if facts_of_overload(name).is_pointwise else None if plain is None else find(plain)
        if found is not None:
            _rules[name] = found
    return found


def why_not(name: str) -> str | None:
    """Why an overload is stated to have no rule; None where nothing is stated."""
    load()
    return _reasons.get(name) or _reasons.get(_general(name))


def _general(name: str) -> str:
    """The kind, when that is not the name of an overload of its own."""
    from irtool.ops import OPS

    kind = name.partition(".")[0]
    return "" if kind in OPS else kind


def rule_of(name: str) -> Rule:
    """The rule of an overload. Raises UnsupportedError, with the reason where one is stated, when there is none."""
    found = find(name)
    if found is None:
        reason = why_not(name)
        raise UnsupportedError(f"{name} under vmap is not supported{f': {reason}' if reason else ' yet'}")
    return found


def wrapped_dim(dim: int, rank: int) -> int:
    """A dimension of the visible ones counted from the front. A 0-d tensor counts as 1-d. Raises RunError with torch's text."""
    from irtool.ops.arrays import wrap_dim

    return wrap_dim(dim, rank)


def shifted(dim: Any, tensor: Any) -> Any:
    """A dimension, or a list of them, of the tensor's visible ones, as those behind a hidden first one. None stays."""
    if dim is None:
        return None
    rank = tensor.ndim
    if isinstance(dim, list | tuple):
        return [wrapped_dim(each, rank) + 1 for each in dim]
    return wrapped_dim(dim, rank) + 1


__all__ = ["find", "no_rule", "rule", "rule_of", "shifted", "why_not", "wrapped_dim"]
