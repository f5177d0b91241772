"""Python numbers inside a trace of `irtool.jit`: arithmetic is recorded, and other uses become decisions.

A number among the arguments, or one read from a tensor (`x.sum().item()`), is a `Number`; so is a result of arithmetic. Code that needs the
plain number (a branch, `range`, an index of a list, a function of another library) gets the number, and the trace notes a decision: for a
comparison its outcome, for all other uses the number.

Numbers that depend on arguments alone are computed by Python, before the graph runs (`irtool.dispatch.decisions.Steps`); numbers that
depend on elements are computed by nodes of the graph.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from irtool.dispatch.decisions import Earlier
from irtool.ir.graph import Value
from irtool.ir.python_operators import ARITHMETIC, BINARY, COMPARISONS
from irtool.ir.types import BOOL, FLOAT, INT, Type
from irtool.ops.array_library import np

if TYPE_CHECKING:
    from irtool.dispatch.follower import Follower

Source = Earlier | Value
"""The source of a number in later runs: a step from the arguments' numbers, or a value of the graph."""


class Number:
    """A number of a trace. value: the plain number in this trace, whose class `__class__` names."""

    __slots__ = ("tracer", "value", "source")

    def __init__(self, tracer: Follower, value: Any, source: Source) -> None:
        self.tracer = tracer
        self.value = value
        self.source = source

    __class__: Any = property(lambda self: type(self.value))

    @property
    def is_of_arguments(self) -> bool:
        """Does the number depend on arguments alone, and on no elements?"""
        return type(self.source) is Earlier

    def decided(self) -> Any:
        """The plain number, which becomes a decision: from now on it is a constant of the trace."""
        return self.tracer.decide_number(self)

    def tensor(self, dtype: str | None = None) -> Any:
        """The number as a 0-d tensor of a dtype; None: NumPy's dtype for it."""
        return self.tracer.tensor_of(self, dtype or np.asarray(self.value).dtype.name)

    def __repr__(self) -> str:
        return repr(self.decided())

    def __str__(self) -> str:
        return str(self.decided())

    def __format__(self, form: str) -> str:
        return format(self.decided(), form)

    def __hash__(self) -> int:
        return hash(self.decided())

    def __index__(self) -> int:
        return operator.index(self.decided())

    def __int__(self) -> int:
        return int(self.decided())

    def __float__(self) -> float:
        return float(self.decided())

    def __complex__(self) -> complex:
        return complex(self.decided())

    def __bool__(self) -> bool:
        return bool(operator.ne(self, 0))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.decided(), dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self.value), (self.decided(),)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        if name == "item" and isinstance(self.value, np.generic):
            return lambda: self.tracer.computed(operator.methodcaller("item"), (self,))
        return getattr(self.decided(), name)

    def __round__(self, digits: Any = None) -> Any:
        return self.applied(round, self) if digits is None else self.applied(round, self, digits)

    def __trunc__(self) -> Any:
        return to_int(self)

    def __floor__(self) -> Any:
        return self.applied(math.floor, self)

    def __ceil__(self) -> Any:
        return self.applied(math.ceil, self)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self.applied(operator.neg, self)

    def __abs__(self) -> Any:
        return self.applied(abs, self)

    def __invert__(self) -> Any:
        return self.applied(operator.invert, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def applied(self, function: Callable[..., Any], *operands: Any) -> Any:
        """The result of a function of this number and further operands."""
        return self.tracer.computed(function, operands)


def is_number(value: Any) -> bool:
    """Is a value a number of Python, NumPy or a trace?"""
    return type(value) is Number or isinstance(value, int | float | complex | np.number)


def _binary(function: Callable[[Any, Any], Any], reverse: bool = False, question: str = "") -> Callable[[Number, Any], Any]:
    def method(self: Number, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self.tracer.computed(function, (other, self) if reverse else (self, other), question)
    return method


for _each in BINARY:
    if _each.sign != "@":
        setattr(Number, _each.method, _binary(_each.function))
        setattr(Number, f"__{_each.swapped}__", _binary(_each.function, True))
for _each in COMPARISONS:
    setattr(Number, _each.method, _binary(_each.function, question=f"{{}} {_each.sign} {{}}"))


# -- operations of graphs on numbers
KINDS: dict[Any, tuple[str, Type | None]] = {
    **{each.function: (each.kind, FLOAT if each.sign == "/" else None) for each in ARITHMETIC if each.sign != "**"},
    **{each.function: (each.kind, BOOL) for each in COMPARISONS}, operator.neg: ("aten::neg", None), math.sqrt: ("aten::sqrt", FLOAT)}
"""Function of numbers -> kind of the node, and type of the result; None: float if an operand is a float, else int."""
MAY_OVERFLOW = (operator.add, operator.sub, operator.mul, operator.neg)
"""Functions whose results may exceed the 64 bits of ints in graphs."""


def type_of_number(value: Any) -> Type:
    """The type of a number in a graph."""
    return BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT


# -- replacements of builtins that always return plain numbers
def to_int(value: Any = 0, *rest: Any, **named: Any) -> Any:
    """`int(...)`; for numbers and tensors of a trace, a number of the trace."""
    return _converted(int, "aten::Int", value, rest, named)


def to_float(value: Any = 0.0, *rest: Any) -> Any:
    """`float(...)`; for numbers and tensors of a trace, a number of the trace."""
    return _converted(float, "aten::Float", value, rest, {})


def _converted(kind: type, operator_kind: str, value: Any, rest: tuple[Any, ...], named: dict[str, Any]) -> Any:
    from irtool.dispatch.stack import Boxed
    from irtool.ops.tensor import call

    if not rest and not named:
        if type(value) is Number:
            return value.tracer.converted(value, kind)
        if isinstance(value, Boxed):
            return call(operator_kind, (value,), {})
    return kind(value, *rest, **named)


def class_of(value: Any) -> Any:
    """`type(...)`; for a number of a trace, the class of the plain number."""
    return type(value.value) if type(value) is Number else type(value)


class Mathematics:
    """The module `math`, whose functions of a trace's numbers return numbers of the trace."""

    def __getattr__(self, name: str) -> Any:
        from irtool.dispatch.stack import Boxed

        original = getattr(math, name)
        if not callable(original):
            return original

        def function(*args: Any, **named: Any) -> Any:
            args = tuple([to_float(each) if isinstance(each, Boxed) else each for each in args])
            numbers = [each for each in args if type(each) is Number]
            if not numbers or named or not all(map(is_number, args)):
                return original(*args, **named)
            return numbers[0].tracer.computed(original, args)
        return function


MATHEMATICS = Mathematics()
