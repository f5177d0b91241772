"""Operators that users add: `@irtool.operator` makes a stanza, which every part of irtool reads.

    import numpy as np, irtool
    from irtool import Tensor, torch

    @irtool.operator("my::gelu(Tensor x, float a=1.) -> Tensor")
    def gelu(x, a):                                     # arguments: NumPy arrays and Python values, as in the schema
        return 0.5 * x * (1 + np.tanh(a * x))

    @gelu.gradient                                      # TorchScript: the result, and a function from its gradient to the arguments'
    def gelu_gradient(x: Tensor, a: float):
        t = torch.tanh(a * x)

        def backward(grad: Tensor):
            return grad * 0.5 * (1 + t + a * x * (1 - t * t)), None

        return 0.5 * x * (1 + t), backward

    gelu.facts(pointwise="keeps")                       # or a rule: @gelu.batching
    gelu.sample(np.linspace(-2, 2, 6).reshape(2, 3), a=0.8)     # what `irtool check-operator` tries it on

`gelu(x, 0.8)` does the operator on tensors, under `grad`, `vmap`, `jit` and `trace` too, and on arrays; a text that says
`my::gelu(%x, %a)` runs it. `irtool.ops.op` says what formulas and batching rules are.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import Parameter, signature
from typing import Any

from irtool.ir import effects
from irtool.ir.arguments import check_function
from irtool.ir.errors import Error
from irtool.ir.extensions import OURS, Place, added, check_name
from irtool.ir.schema import Schema, declare, parse_schema, schemas, withdraw
from irtool.ops import OPS, facts, python_op
from irtool.ops.array_library import np
from irtool.ops.derivative import Derivative
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.op import Formula, Op, Rule
from irtool.ops.samples.draw import call, exactly
from irtool.ops.tensor import Tensor, calling_kind, torch, unwrapped, wrapped

OWN: dict[str, Operator] = {}
"""Every operator of users, by qualified name with overload."""
POINTWISE = (facts.KEEPS, facts.BOOL, facts.REAL, facts.OTHER)


class Operator:
    """A user's operator. Calling it runs the operator: on tensors it returns tensors, on arrays arrays."""

    def __init__(self, schema: Schema, function: Callable[..., Any]) -> None:
        self.schema = schema
        self.name = schema.name
        self.function = function
        self.place = Place(function)
        takes_namespace = next(iter(signature(function).parameters), "") == "xp"
        kernel = function if takes_namespace else lambda xp, *args: function(*args)
        self.op = Op((schema.text,), kernel, None, schema.kind.partition("::")[0])
        self.op.doc = (function.__doc__ or "").strip()
        self.__doc__ = self.op.doc

    def __call__(self, *args: Any, **named: Any) -> Any:
        result = self._function(*wrapped(list(args)), **wrapped(named))
        return result if any(True for _ in tensors_in([list(args), named])) else unwrapped(result)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return calling_kind(self.schema.kind)

    def gradient(self, formula: Formula) -> Formula:
        """A decorator: states the gradient formula, a function in TorchScript, which may call operators of users. Raises Error if it does
        not take the schema's arguments."""
        self._check(formula, len(self.schema.arguments), "a gradient formula takes the arguments of the schema")
        self.op._formulas[self.name] = formula
        self._declare()
        return formula

    def derivative(self, rule: Formula) -> Formula:
        """A decorator: states the gradients of the tensor arguments alone, from which the formula is generated (`irtool.ops.derivative`).

        The rule takes `grad`, the gradient of the result, and other values by name: arguments, `result`, facts such as `x_size`. It returns
        one gradient per tensor argument, in order; that of a broadcast operand is summed to its shape. Raises Error for other parameters or
        another number of gradients, and for a `^Python` operator, which needs `gradient`.
        """
        check_function(self.name, rule)
        if self.name.startswith("^"):
            raise Place(rule).error(f"'{self.name}' is a Python operator, which needs a whole formula: state it by .gradient")
        tensors = [each.type.text for each in self.schema.arguments if "Tensor" in each.type.text]
        stated = Derivative(rule, [self.name], self.schema.text, set(tensors) == {"Tensor"}, False, {"torch": torch})
        try:
            stated.source(self.schema, rule.__name__)
        except ValueError as error:
            raise Place(rule).error(str(error)) from None
        self.op._formulas[self.name] = stated
        self._declare()
        return rule

    def no_gradient(self, reason: str) -> None:
        """State that the operator has no gradient, and why: its results count as constants."""
        self.op._no_gradient[self.name] = reason
        self._declare()

    def batching(self, rule: Rule) -> Rule:
        """A decorator: states the batching rule, `rule(batch, *arguments)`. Raises Error if it does not take the schema's arguments."""
        self._check(rule, len(self.schema.arguments) + 1, "a batching rule takes the batch (irtool.ops.batch), then the arguments")
        self.op._batch_rules[self.name] = rule
        self._declare()
        return rule

    def facts(self, *, pointwise: str = "", random: bool = False, side_effects: bool = False) -> None:
        """State further facts about the operator. Raises Error for an unknown word.

        pointwise: each element of the results depends only on the operands' elements at that place; the dtype of the result is "keeps":
        that of the first operand, "bool", "real": that of the real part, or "other". Then `vmap` needs no rule, and fusion includes it.
        random: two calls with equal operands differ; the operator draws from `irtool.ops.arrays.generator()`. side_effects: the operator
        must run even if nobody reads its results.
        """
        if pointwise not in ("", *POINTWISE):
            raise self.place.error(f"'{self.name}' is pointwise in one of these ways: {', '.join(POINTWISE)}; not '{pointwise}'")
        facts.OWN_POINTWISE[self.name] = pointwise
        for stated, kinds in ((random, effects.OWN_RANDOM), (side_effects, effects.OWN_SIDE_EFFECTS)):
            (kinds.add if stated else kinds.discard)(self.schema.kind)
        self._declare()

    def sample(self, *args: Any, **named: Any) -> None:
        """State a sample call for `irtool check-operator`; its floating-point arrays have gradients. Raises RunError for wrong
        arguments."""
        each = call(*map(drawn, args), **{name: drawn(value) for name, value in named.items()})
        each.arguments(self.schema.text)
        self.op._samples.setdefault(self.name, []).append(each)

    def _check(self, function: Callable[..., Any], count: int, what: str) -> None:
        check_function(self.name, function)
        names = [each for each in signature(function).parameters.values() if each.kind is not Parameter.VAR_POSITIONAL]
        if len(names) != count and len(names) == len(signature(function).parameters):
            raise Place(function).error(f"{what}: {count} parameters for {self.schema.text}, not {len(names)}")

    def _declare(self) -> None:
        """Add the operator to the tables of irtool, again after each further statement."""
        declare(*[each.schema for each in OWN.values() if each.schema.kind == self.schema.kind])

    def _take_away(self) -> None:
        if OWN.get(self.name) is self:
            del OWN[self.name]
            OPS.leave(self.op)
            facts.OWN_POINTWISE.pop(self.name, None)
            effects.OWN_RANDOM.discard(self.schema.kind)
            effects.OWN_SIDE_EFFECTS.discard(self.schema.kind)
            withdraw(self.schema.kind)
            self._declare()

    def __repr__(self) -> str:
        return f"<Operator {self.schema.text}>"


def operator(schema: str) -> Callable[[Callable[..., Any]], Operator]:
    """A decorator that makes a function the kernel of a new operator, declared by a schema in torch's form.

    The function takes one value per argument: NumPy arrays for tensors (CuPy arrays on a device); a first parameter `xp` gets their
    library. It returns an array, or a tuple of arrays for several results, and writes into no argument. `^Name(...)` declares a Python
    operator. Raises Error for an invalid schema, for a name that is taken, and for a function that does not take the arguments.
    """
    def define(function: Callable[..., Any]) -> Operator:
        check_function("operator", function)
        place = Place(function)
        try:
            declared = parse_schema(schema)
        except (ValueError, Error) as error:
            raise place.error(f"{error}; expected one such as 'my::gelu(Tensor x, float a=1.) -> Tensor'") from None
        entry = Operator(declared, function)
        check_space(entry)
        check_parameters(entry)
        previous = OWN.get(entry.name)
        check_name("the operator", entry.name, function, previous.function if previous else None)
        if previous is not None:
            previous._take_away()
        OWN[entry.name] = entry
        OPS.join(entry.op)
        entry._declare()
        if entry.name.startswith("^"):
            python_op.register_python_op(entry.name, function)
        added(entry._take_away)
        return entry
    return define


def check_space(entry: Operator) -> None:
    """Raises Error if the name is invalid, or in a namespace of torch or irtool."""
    space, colons, word = entry.schema.kind.partition("::")
    is_python = entry.name.startswith("^")
    if is_python and (colons or not entry.name[1:].isidentifier()) or not is_python and not (space.isidentifier() and word.isidentifier()):
        raise entry.place.error(f"'{entry.name}' is no name of an operator: expected one such as 'my::gelu' or '^Gelu'")
    if not is_python and (space in OURS or any(each.name not in OWN for each in schemas(entry.schema.kind))):
        raise entry.place.error(f"'{entry.name}' is in a name space that is not yours; 'my::{word}' would be")
    if entry.schema.is_mutable or any(each.alias is not None for each in entry.schema.returns):
        raise entry.place.error(f"'{entry.name}' writes into an argument, or gives a view of one: that is not supported")


def check_parameters(entry: Operator) -> None:
    """Raises Error if the function does not take one value per argument of the schema."""
    taken = list(signature(entry.function).parameters.values())
    if taken and taken[0].name == "xp":
        taken = taken[1:]
    count = len(entry.schema.arguments)
    if any(each.kind is Parameter.VAR_POSITIONAL for each in taken):
        return
    needed = [each for each in taken if each.default is Parameter.empty or each.kind is Parameter.KEYWORD_ONLY]
    if len(taken) < count or len(needed) > count or any(each.kind is Parameter.KEYWORD_ONLY for each in taken):
        names = ", ".join(each.name for each in entry.schema.arguments)
        raise entry.place.error(f"'{entry.name}' takes {count} arguments ({names}), and its function {len(taken)}")


def drawn(value: Any) -> Any:
    """A value of a sample; a floating-point array gets a gradient."""
    if isinstance(value, list | tuple):
        return [drawn(each) for each in value]
    if isinstance(value, Tensor):
        value = value.numpy()
    return exactly(value.astype(np.float64)) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
