"""The table in which layers look up facts about operators; the one here answers from the stanzas.

A user's table (in tests, or for teaching) has the same methods: `choose`, `run`, `forward`, `backward`, `add`, `batch`, `spelled`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.dispatch import recipes
from irtool.dispatch.batch_rules import is_pointwise_rule, rule_or_refusal
from irtool.dispatch.layer_writes import is_view, is_write, without_write
from irtool.dispatch.stack import choose_overload
from irtool.ir.python_operators import ARITHMETIC
from irtool.ops.array_library import np
from irtool.ops.call import overload
from irtool.ops.formula import refused_arguments, why_unsupported
from irtool.ops.size_facts import NOT_LOGGED
from irtool.ops.tensor import run_overload

Apply = Callable[..., Any]
SIGNS = {each.kind: each.sign for each in ARITHMETIC[:4]}


class Library:
    """All operators of irtool."""

    is_library = True
    constants_on_tape = False
    """Does a tape record operations none of whose operands is on it?"""

    def choose(self, kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """The name of the overload that accepts the operands, and one value per argument of its schema."""
        return choose_overload(kind, args, named)

    def run(self, name: str, args: list[Any]) -> Any:
        """Run the kernel on arrays."""
        with np.errstate(all="ignore"):
            return run_overload(overload(name), args)

    # -- derivatives
    def is_differentiable(self, name: str) -> bool:
        """Has an overload a gradient formula? Raises UnsupportedError if its formula is missing."""
        return recipes.recipe_of(name) is not None

    def lacks(self, name: str) -> str:
        """The refusal for who asks for the gradient of an operator that has none by declaration; "" for others. As in torch, it runs where
        nobody asks."""
        reason = why_unsupported(name)
        return "" if reason is None or overload(name).schema.is_mutable else f"the gradient of {name} is not supported: {reason}"

    def forward(self, name: str, args: list[Any], apply: Apply) -> tuple[Any, Any]:
        """The results, and other values that the gradient needs."""
        recipe = recipes.recipe_of(name)
        assert recipe is not None
        return recipe.forward(args, apply)

    def backward(self, name: str, args: list[Any], results: list[Any], saved: Any, grads: list[Any], apply: Apply,
                 needed: tuple[bool, ...], again: bool = False, is_fitted: bool = True) -> Sequence[Any]:
        """One gradient per operand; None where it is not needed. again: recompute the saved values by `apply`, so that they can be
        differentiated in turn."""
        recipe = recipes.recipe_of(name)
        assert recipe is not None
        if again:
            saved = recipe.saved(args, results, saved, apply)
        return recipe.backward(args, results, saved, grads, apply, needed, is_fitted)

    def refused(self, name: str) -> Mapping[int, str]:
        """Position of each operand for which an operator has no gradient though one exists -> the words of the refusal."""
        return refused_arguments(name)

    def taken(self, name: str) -> int:
        """The number of results, the first ones, of which an operator's gradient takes gradients: of native_batch_norm one, since save_mean
        has none."""
        recipe = recipes.recipe_of(name)
        assert recipe is not None
        return recipe.count

    def add(self, a: Any, b: Any, apply: Apply) -> Any:
        """The sum of two gradients."""
        return apply("aten::add.Tensor", [a, b, 1])

    def shortcut(self, name: str, args: list[Any]) -> Any:
        """A result that needs no operation; None if one is needed."""
        return None

    def without_write(self, name: str) -> str | None:
        """For an operator that writes into its first operand, the overload that returns a new tensor; None for others."""
        return without_write(name)

    def is_view(self, name: str) -> bool:
        """May the results of an operator share memory with its first operand?"""
        return is_view(name)

    def only_writes(self, name: str) -> bool:
        """Does an operator write into its first operand, and has no form that does not write?"""
        return without_write(name) is None and is_write(name)

    # -- batches
    def batch(self, name: str) -> Callable[..., Any]:
        """The batching rule of an overload. Raises UnsupportedError, with the reason, if it has none."""
        return rule_or_refusal(name)

    def is_pointwise(self, name: str) -> bool:
        """Has an operator the common batching rule of pointwise operators, and does it not write?"""
        return is_pointwise_rule(name) and without_write(name) is None

    def expanded(self, value: Any, length: int, apply: Apply) -> Any:
        """A tensor expanded by a new first dimension of extent `length`."""
        return apply("aten::expand", [apply("aten::unsqueeze", [value, 0]), [length, *value.shape], False])

    # -- printing
    def is_logged(self, name: str) -> bool:
        """Does a logger print an operator? It does not print those that only read sizes."""
        return name.partition(".")[0] not in NOT_LOGGED

    def spelled(self, name: str, args: list[Any], label: Callable[[Any], str], is_tape: bool = False) -> str:
        """The text of an operation: `v0 + v1`, `v0.sum(dim=(0,))`, `where(v0, v1, v2)`."""
        kind = name.partition(".")[0]
        if kind in SIGNS and (len(args) == 2 or args[2] == 1):
            return f"{label(args[0])} {SIGNS[kind]} {label(args[1])}"
        schema = overload(name).schema
        arguments = [f"{argument.name}={label(value)}" if argument.keyword_only else label(value)
                 for argument, value in zip(schema.arguments, args, strict=False)
                 if not (argument.has_default and type(value) is type(argument.default) and value == argument.default)]
        return f"{kind.removeprefix('aten::')}({', '.join(arguments)})"


LIBRARY = Library()
