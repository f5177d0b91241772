"""Pointwise operators as short programs of array functions, made by running their kernels on symbols.

A kernel is written against an array namespace. Run on symbols instead of arrays, it records the array functions that it calls, and their
dtypes: these are what a block of a large array, a C loop or a GPU kernel then computes element by element. So a pointwise operator states
its expression once, in its kernel. No list says which operators are pointwise: they are those whose kernels ask nothing about their
operands but dtypes. Whatever else a kernel does (ask for a shape, reduce, index) raises NotPointwise.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ir.effects import facts_of
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ops.array_library import NeedsNumpy, np
from irtool.ops.arrays import as_array
from irtool.ops.node_calls import call_node, plan_for
from irtool.ops.overload import Overload, coefficient, inside_dtype
from irtool.ops.promotion import Rule, compute_dtype

DType = np.dtype[Any]
WHERE, CAST = "where", "cast"
"""The two array functions of steps that are no ufuncs."""


class NotPointwise(Exception):
    """A kernel asks more of its operands than their dtypes."""


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of which only the dtype is known, and whether it is 0-d. It remembers the function and operands that it is computed from."""

    __slots__ = ("dtype", "is_number", "function", "operands")
    strides = ()
    """What copies ask for: as if there were no dimensions whose order they could change."""

    def __init__(self, dtype: DType, is_number: bool, function: Any = None, operands: tuple[Any, ...] = ()) -> None:
        self.dtype = dtype
        self.is_number = is_number      # 0-d: counts less in type promotion
        self.function = function        # a ufunc, WHERE or CAST; None for an operand of the program
        self.operands = operands        # Symbols and NumPy scalars

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Symbol:
        """As numpy.ndarray.astype."""
        dtype = np.dtype(dtype)
        return self if dtype == self.dtype else Symbol(dtype, self.is_number, CAST, (self,))

    def copy(self, order: str = "C") -> Symbol:
        """As numpy.ndarray.copy; the symbol itself, since nothing writes into a symbol."""
        return self

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotPointwise

    def __bool__(self) -> bool:
        raise NotPointwise

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Symbol:
        if method != "__call__" or ufunc.nout != 1 or ufunc.signature is not None or named:
            raise NotPointwise
        kinds = [_weak(each) for each in inputs]
        try:
            resolved = ufunc.resolve_dtypes((*kinds, None))
        except TypeError:
            raise NotPointwise from None
        operands = tuple(_operand(each, dtype) for each, dtype in zip(inputs, resolved, strict=False))
        return Symbol(resolved[-1], _is_number(inputs), ufunc, operands)

    def __array_function__(self, function: Any, _types: Any, args: Any, named: Any) -> Any:
        if function is np.where and len(args) == 3 and not named:
            condition, first, second = args
            dtype = np.result_type(*[each.dtype if isinstance(each, Symbol) else each for each in (first, second)])
            operands = (_operand(condition, np.dtype(np.bool_)), _operand(first, dtype), _operand(second, dtype))
            return Symbol(dtype, _is_number(args), WHERE, operands)
        raise NotPointwise


def _weak(value: Any) -> Any:
    """The argument of NumPy's type resolution: a dtype, or for a Python number its type, which counts less."""
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if type(value) in (int, float, complex):
        return type(value)
    if isinstance(value, Symbol | np.generic) or isinstance(value, np.ndarray) and not value.ndim:
        return value.dtype
    raise NotPointwise


def _operand(value: Any, dtype: DType) -> Any:
    """A symbol or a NumPy scalar, converted to the dtype that a function takes."""
    if isinstance(value, Symbol):
        return value.astype(dtype)
    if isinstance(value, np.ndarray) and value.ndim:
        raise NotPointwise
    return np.asarray(value).astype(dtype)[()]


def _is_number(values: Sequence[Any]) -> bool:
    return all(value.is_number for value in values if isinstance(value, Symbol))


def symbolic(overload: Overload, args: list[Any]) -> Any:
    """Call an overload on symbols instead of arrays, with the arguments of `Overload.__call__`; returns symbols.

    Raises NotPointwise if an element of the result depends on more than the operands' elements at its place, or on chance: a kernel that
    draws would draw here, too.
    """
    if overload.mode != "plain" or facts_of(overload.schema.kind).is_random and not any(
            value is False and each.name in ("train", "training") for value, each in zip(args, overload.schema.arguments, strict=False)):
        raise NotPointwise
    values = list(args)
    rule = overload.promote
    try:
        for place, converter, argument in overload.converters:
            if values[place] is not None and not isinstance(values[place], Symbol):
                values[place] = converter(values[place], argument)
        if rule is not None and not isinstance(rule, Rule):
            rule = rule(values)
        dtype = None
        if rule is None:
            overload.check(values, overload.given_dtype(values))
        else:
            operands = [values[place] for place in overload.promoted]
            dtype = compute_dtype(rule, [_stand_in(each) for each in operands])
            inside = inside_dtype(rule, dtype, [_stand_in(each) for each in values])
            overload.check(values, dtype)
            for place in overload.promoted:
                if values[place] is not None:
                    values[place] = _promoted(values[place], inside)
            for place, argument in enumerate(overload.schema.arguments[:len(values)]):
                number = values[place]
                if argument.name in ("alpha", "beta") and number is not None:
                    values[place] = as_array(number, inside) if isinstance(number, Symbol) else \
                        coefficient(argument.name, number, dtype, inside)
            dtype = {"compute": dtype, "bool": np.dtype(np.bool_)}.get(rule.result)
        result = overload.kernel(np, *values)
    except NeedsNumpy:
        raise
    except (Error, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        raise NotPointwise from error
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(each, Symbol) for each in results):
        raise NotPointwise
    if dtype is not None:
        results = tuple(each.astype(dtype) for each in results)
    if not overload.fresh and any(each is arg for each in results for arg in args):
        raise NotPointwise      # the operand itself, not a new tensor
    return results


def _stand_in(value: Any) -> Any:
    """An array of the symbol's dtype, 0-d or not, for type promotion."""
    return np.empty(() if value.is_number else (0,), value.dtype) if isinstance(value, Symbol) else value


def _promoted(value: Any, dtype: DType) -> Any:
    if isinstance(value, list | tuple):
        raise NotPointwise
    return value.astype(dtype) if isinstance(value, Symbol) else as_array(value, dtype)


class Step:
    """One array function: `function(*operands)` computes an array of `dtype`. Operands that are ints are registers."""

    __slots__ = ("function", "operands", "dtype")

    def __init__(self, function: Any, operands: tuple[Any, ...], dtype: DType) -> None:
        self.function = function
        self.operands = operands
        self.dtype = dtype

    @property
    def name(self) -> str:
        """`add`, `exp`, `where`, `cast`."""
        return self.function if isinstance(self.function, str) else self.function.__name__

    def __repr__(self) -> str:
        return f"{self.name}{self.operands} : {self.dtype}"


class Program:
    """A graph of pointwise operators as steps. Registers are numbered: first the operands, then one per step."""

    __slots__ = ("dtypes", "steps", "outputs")

    def __init__(self, dtypes: list[DType], steps: list[Step], outputs: list[int]) -> None:
        self.dtypes = dtypes
        self.steps = steps
        self.outputs = outputs

    def dtype(self, register: int) -> DType:
        """The dtype of a register."""
        count = len(self.dtypes)
        return self.dtypes[register] if register < count else self.steps[register - count].dtype


def number_key(number: Any) -> Any:
    """A key for a number in a cache of steps: 0.0 is not -0.0, and nan equals nan."""
    return type(number), repr(number) if isinstance(number, float | complex) else number


def program(graph: Graph, operands: Sequence[Any]) -> Program:
    """The steps of a graph whose nodes are all pointwise. operands: per input (dtype, is it 0-d?) of an array, or a known number.

    Equal steps occur once. Raises NotPointwise.
    """
    env: dict[Value, Any] = {}
    symbols: list[Symbol] = []
    for value, operand in zip(graph.inputs, operands, strict=True):
        if isinstance(operand, tuple):
            operand = Symbol(np.dtype(operand[0]), operand[1])
            symbols.append(operand)
        env[value] = operand
    for node in graph.block:
        env.update(zip(node.outputs, results_of(node, [env[value] for value in node.inputs]), strict=True))
    results = [env[value] for value in graph.outputs]
    if not all(isinstance(each, Symbol) for each in results):
        raise NotPointwise
    return flattened(symbols, results)


def results_of(node: Node, values: list[Any]) -> Sequence[Any]:
    """The results of a node on symbols and numbers. Raises NotPointwise."""
    if node.blocks or node.subgraph is not None:
        raise NotPointwise
    if not any(isinstance(value, Symbol) for value in values):
        if node.kind not in ("prim::Constant", "prim::None"):
            raise NotPointwise
        return call_node(node, values)
    plan = plan_for(node)
    if plan is None:
        raise NotPointwise
    results: Sequence[Any] = symbolic(plan.overload, list(plan.arguments(values)))
    if len(results) != len(node.outputs):
        raise NotPointwise
    return results


def flattened(inputs: list[Symbol], results: list[Symbol]) -> Program:
    """Symbols as steps, each after its operands (without recursion, since chains may be long)."""
    registers: dict[int, int] = {id(symbol): place for place, symbol in enumerate(inputs)}
    steps: list[Step] = []
    known: dict[Any, int] = {}
    for result in results:
        pending = [result]
        while pending:
            symbol = pending[-1]
            if id(symbol) in registers:
                pending.pop()
                continue
            missing = [each for each in symbol.operands if isinstance(each, Symbol) and id(each) not in registers]
            if missing:
                pending += missing
                continue
            pending.pop()
            operands: tuple[Any, ...] = tuple([registers[id(each)] if isinstance(each, Symbol) else each for each in symbol.operands])
            key = (symbol.function, symbol.dtype, *[each if type(each) is int else (each.dtype, each.tobytes()) for each in operands])
            if key not in known:
                known[key] = len(inputs) + len(steps)
                steps.append(Step(symbol.function, operands, symbol.dtype))
            registers[id(symbol)] = known[key]
    return Program([symbol.dtype for symbol in inputs], steps, [registers[id(symbol)] for symbol in results])
