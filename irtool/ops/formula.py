"""Gradient formulas by operator, and running them in Python, to check their compiled form."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ir.schema import forgets_kinds, parse_schema
from irtool.ops import OPS
from irtool.ops.arrays import astype, is_array
from irtool.ops.op import Formula, Op
from irtool.ops.tensor import Tensor, unwrapped, wrapped


def _stanza(name: str) -> tuple[Op, str] | None:
    """The stanza that serves an overload, and the name it stands under there: `aten::add_.Tensor` -> `aten::add.Tensor`."""
    from irtool.ops.call import overload

    op = OPS.get(name)
    if op is not None:
        return op, name
    try:
        derived = overload(name)
    except UnsupportedError:
        return None
    count = len(derived.schema.arguments) - derived.outs
    types = [argument.type.text for argument in derived.schema.arguments[:count]]
    for text, each in zip(derived.op.schemas, derived.op.names, strict=True):
        if [argument.type.text for argument in parse_schema(text).arguments] == types:
            return derived.op, each
    return derived.op, derived.op.names[0]


def formula_of(name: str) -> Formula | None:
    """The gradient formula of an overload, `aten::div.Tensor`, also of its in-place and out= forms; None if it has none."""
    stanza = _stanza(name)
    return stanza[0].formula(stanza[1]) if stanza else None


def is_conjugated(formula: Formula) -> bool:
    """Does a formula multiply a complex gradient by the conjugate of the derivative, as torch's formulas do?

    Other formulas multiply by the derivative itself: their arguments and results are the conjugates of torch's gradients. A module of
    formulas sets `CONJUGATED = True` if all of its formulas are like torch's, or to the names of those that are.
    """
    stated = getattr(formula, "__globals__", {}).get("CONJUGATED", False)
    return formula.__name__ in stated if isinstance(stated, tuple) else bool(stated)


def why_no_gradient(name: str) -> str | None:
    """The declared reason why an overload has no gradient; None if it has one, or nothing is declared."""
    stanza = _stanza(name)
    return stanza[0].no_gradient.get(stanza[1]) if stanza else None


def why_unsupported(name: str) -> str | None:
    """The declared reason why an overload with a gradient lacks a formula; None if nothing is declared."""
    stanza = _stanza(name)
    return stanza[0].unsupported.get(stanza[1]) if stanza else None


_refused: dict[str, dict[int, str]] = forgets_kinds({})


def refused_arguments(name: str) -> dict[int, str]:
    """Position of each argument of an overload whose gradient is refused -> the words of the refusal."""
    known = _refused.get(name)
    if known is None:
        stanza = _stanza(name)
        reasons = stanza[0].refused.get(stanza[1], {}) if stanza else {}
        arguments = [each for text in stanza[0].schemas if text.partition("(")[0] == stanza[1] for each in parse_schema(text).arguments] \
            if stanza and reasons else []
        known = _refused[name] = {
            place: f"the gradient of {name} for its argument '{argument.name}' is not supported: {reasons[argument.name]}"
            for place, argument in enumerate(arguments) if argument.name in reasons}
    return known


def run_formula(name: str, args: Sequence[Any]) -> tuple[list[Any], Any]:
    """Run the formula of an overload on one value per argument (arrays for tensors).

    Returns its results, and a function from gradients of the first results (arrays or None) to one gradient per argument: an array, a list
    of arrays, or None, in the shape and dtype of the argument. Raises UnsupportedError if the overload has no formula.
    """
    formula = formula_of(name)
    if formula is None:
        raise UnsupportedError(f"{name} has no gradient formula", code="E0501")
    *results, backward = formula(*[wrapped(arg) for arg in args])
    taken = len(signature(backward).parameters)
    turned = _same if is_conjugated(formula) else _conjugate

    def gradients(*grads: Any) -> list[Any]:
        cotangents = [wrapped(turned(grad)) for grad in grads[:taken]]
        if all(grad is None for grad in cotangents):
            return [None] * len(args)
        input_grads = backward(*cotangents)
        if len(args) == 1:
            input_grads = (input_grads,)
        if not isinstance(input_grads, tuple) or len(input_grads) != len(args):
            raise UnsupportedError(f"the formula of {name} gives {len(input_grads)} gradients for {len(args)} arguments", code="E0501")
        return [_back(grad, arg, turned) for grad, arg in zip(input_grads, args, strict=True)]

    return [unwrapped(result) for result in results], gradients


def _back(grad: Any, arg: Any, turned: Callable[[Any], Any]) -> Any:
    """A gradient converted to the dtype of its argument; for a real argument, the real part."""
    if isinstance(grad, Tensor):
        grad = grad.array
    if isinstance(grad, list | tuple):
        return [_back(each, one, turned) for each, one in zip(grad, arg, strict=True)]
    return None if grad is None or arg is None else astype(turned(grad), arg.dtype)


def _same(grad: Any) -> Any:
    return grad


def _conjugate(grad: Any) -> Any:
    """The conjugate of a gradient. Formulas multiply by the derivative; torch's gradient is the conjugate of their result for the conjugate
    of the cotangent."""
    if isinstance(grad, list | tuple):
        return [_conjugate(each) for each in grad]
    return grad.conj() if is_array(grad) and grad.dtype.kind == "c" else grad
