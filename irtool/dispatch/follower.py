"""The tracer of `irtool.jit`: a trace that notes its decisions.

Where Python asks for elements of a traced tensor (`if x.sum() > 0`, `range(int(n))`), the trace continues with the elements of this call,
and notes the question with its outcome: a `Decision`. The value asked for becomes an output of the graph, so that each run can compare its
answer. Numbers that are only computed with stay in the graph: `x.sum().item()` is a `Number`. Sizes that depend on elements (`x[x > 0]`)
become decisions when they are read.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irtool.dispatch.batched import draws
from irtool.dispatch.decisions import Decision, Earlier, Steps
from irtool.dispatch.layer_writes import is_inside, is_view, remember, root_of, take_in
from irtool.dispatch.stack import Boxed, Layer, current
from irtool.dispatch.traced_numbers import KINDS, MAY_OVERFLOW, Number, type_of_number
from irtool.dispatch.tracer import Tracer, type_of, written_statistics
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Value
from irtool.ir.schema import Argument
from irtool.ir.types import BOOL, FLOAT, INT, ListType, OptionalType, list_of, tensor_type
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES
from irtool.ops.call import overload
from irtool.ops.conjugates import may_share_memory
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.size_facts import (
    BY_MEMORY,
    COUNTED_BY_SIZES,
    DTYPE_QUESTIONS,
    MEMORY_MOVERS,
    NUMBER_KINDS,
    PLACE_NUMBERS,
    SIZE_LISTS,
    SIZE_NUMBERS,
    SIZE_QUESTIONS,
    SIZED_BY_ELEMENTS,
)
from irtool.ops.tensor import Tensor
from irtool.ops.tensor_facts import BY_NAME

MOST_ELEMENTS = 256
"""The largest number of elements in one decision."""
OUTSIDE = ("{} inside irtool.jit writes into a tensor that is no argument and was not made by irtool.torch inside the function: make it an "
           "argument, or return its new value")
DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
LARGEST = 1 << 62
"""Whole numbers beyond this are not computed in a graph, whose ints have 64 bits."""
PYTHON_NUMBERS = frozenset(("int", "float", "bool", "Scalar"))
"""Types of arguments that accept a tensor of one element instead of a number."""

Because = tuple[Number, ...] | None
"""What the sizes of a tensor depend on: these numbers among the arguments; None: elements."""


class Follower(Tracer):
    """Records a graph, and the decisions that it depends on."""

    follows = True

    def __init__(self, inner: Layer, name: str = "jit") -> None:
        super().__init__(inner, name)
        self.whole = self.graph
        self.steps = Steps()
        self.decisions: list[Decision] = []
        self.known: dict[Any, Any] = {}             # source of a number -> its outcome, once decided
        self.taken: dict[int, Value] = {}           # position of a number in the steps -> its input of the graph
        self.outside: dict[int, tuple[Any, Value]] = {}     # id of a tensor or array from outside -> itself and its input
        self.inputs: list[Any] = []                 # these inputs in order: position of a step, or the outer tensor
        self.varying: dict[Value, Because] = {}     # tensors whose sizes may differ in other runs
        self.watched: list[tuple[Boxed, Any]] = []  # the arguments, each with its first view
        self.written: set[int] = set()              # the arguments that were written into
        self.has_conjugates = False                 # is an argument the conjugate of a tensor? The trace sees its elements alone

    # -- numbers
    def argument(self, value: Any, place: int) -> Number:
        """The traced number for a number at a place of the arguments."""
        return Number(self, value, Earlier(self.steps.argument(place)))

    def computed(self, function: Callable[..., Any], operands: tuple[Any, ...], question: str = "") -> Any:
        """The result of a Python function of numbers: a Number, or the outcome of a decision. Raises the function's errors."""
        operands = tuple([self.known[each.source] if type(each) is Number and each.source in self.known else each for each in operands])
        numbers = [each for each in operands if type(each) is Number]
        values = [each.value if type(each) is Number else each for each in operands]
        result = function(*values)
        if not numbers or not self.is_alive:        # after the trace, numbers are plain
            return result
        if all(each.is_of_arguments for each in numbers):
            step = Earlier(self.steps.add(function, tuple([each.source if type(each) is Number else each for each in operands])))
            return self.answered(result, step, question.format(*map(text_of, operands)) or f"{name_of(function)}(...)")
        value = self.computed_in_graph(function, operands, values, result)
        if value is None:
            return function(*[each.decided() if type(each) is Number else each for each in operands])
        return self.answered(result, value, question.format(*map(text_of, operands)))

    def answered(self, result: Any, source: Earlier | Value, question: str) -> Any:
        """A result as a number of the trace; a result that is no number becomes a decision."""
        if isinstance(result, int | float | np.integer | np.floating) and not isinstance(result, bool):
            return Number(self, result, source)
        return self.decide(question, result, source)

    def computed_in_graph(self, function: Callable[..., Any], operands: Sequence[Any], values: list[Any], result: Any) -> Value | None:
        """The result of a new node for a function of numbers; None if graphs compute the function differently from Python."""
        kind, type = KINDS.get(function, ("", None))
        classes = {each.__class__ for each in values}
        if not kind or not classes <= {int, float}:
            return None
        if type is None:
            type = FLOAT if float in classes else INT
        if function is math.sqrt and not operands[0] >= 0 or function in DIVISIONS and operands[1] == 0 or \
                function in (operator.floordiv, operator.mod) and type is FLOAT:
            return None
        nodes = [self.operand(each) for each in operands]
        if function in MAY_OVERFLOW and type is INT:
            again = [self.build.node("aten::Float", (each,), output_types=[FLOAT]).output for each in nodes]
            if not self.is_below(self.build.node(kind, again, output_types=[FLOAT]).output, function(*map(float, values))):
                return None
        return self.build.node(kind, nodes, output_types=[type]).output

    def is_below(self, value: Value, number: float) -> bool:
        """Decide whether a float of the graph is smaller than a bound, so that a graph can convert it to an int."""
        square = self.build.node("aten::mul", (value, value), output_types=[FLOAT]).output
        small = self.build.node("aten::lt", (square, self.operand(float(LARGEST) ** 2)), output_types=[BOOL]).output
        return bool(self.decide("a whole number has fewer than 63 bits", number * number < float(LARGEST) ** 2, small))

    def converted(self, number: Number, kind: type) -> Any:
        """`int(...)` or `float(...)` of a number."""
        if type(number.value) is kind or not self.is_alive:
            return number if self.is_alive else kind(number.value)
        if number.is_of_arguments or number.source in self.known:
            return self.computed(kind, (number,))
        source = self.operand(number)
        if kind is int and not self.is_below(source, number.value):
            return kind(number.decided())
        value = self.build.node("aten::Int" if kind is int else "aten::Float", (source,), output_types=[INT if kind is int else FLOAT])
        return Number(self, kind(number.value), value.output)

    def tensor_of(self, number: Number, dtype: str) -> Any:
        """A number as a 0-d tensor."""
        return current().call("aten::scalar_tensor", (number,), {"dtype": BY_NAME[dtype]})

    # -- decisions
    def decide(self, question: str, outcome: Any, source: Earlier | Value) -> Any:
        """Note a decision; returns its outcome. Raises UnsupportedError inside a block, whose values cannot be outputs of the graph."""
        if source in self.known:
            return self.known[source]
        if not self.is_alive:
            return outcome
        if type(source) is Earlier:
            self.decisions.append(Decision(question, outcome, int(source), None))
        else:
            if self.graph is not self.whole or self.build.block is not self.graph.block:
                raise UnsupportedError(f"{question} decides what a traced branch, loop or function with its own gradient does: "
                                       "take torch.where, torch.cond or torch.while_loop there", code="E0507")
            self.decisions.append(Decision(question, outcome, -1, source))       # type: ignore[arg-type]
        self.known[source] = outcome
        return outcome

    def decide_number(self, number: Number) -> Any:
        """The plain number, which becomes a decision."""
        return self.decide(text_of(number), number.value, number.source)

    def look(self, tensor: Boxed) -> Any:
        """A tensor's elements, which become a decision. Raises UnsupportedError for more than MOST_ELEMENTS."""
        self.settle(tensor)
        flat = self.apply("aten::reshape", [tensor, [-1]])
        if flat.value.array.size > MOST_ELEMENTS:
            raise UnsupportedError(f"a decision by all {flat.value.array.size} elements of a tensor is not supported inside irtool.jit",
                                   code="E0507")
        for place in range(flat.value.array.size):
            element = self.apply("aten::item", [self.apply("aten::select.int", [flat, 0, place])])
            if type(element) is Number:
                element.decided()
        return tensor.value.array

    # -- sizes
    def shape(self, tensor: Boxed) -> list[int]:
        """The sizes of a tensor of the trace; those that may vary become a decision."""
        if self.varying:
            self.settle(tensor)
        return tensor.value.shape

    def settle(self, tensor: Any) -> None:
        """Make a tensor's sizes a decision, if they may vary."""
        if not self.owns(tensor) or tensor.known not in self.varying:
            return
        because = self.varying.pop(tensor.known)
        if because is not None:
            for number in because:
                number.decided()
            return
        sizes = self.build.node("aten::size", (tensor.known,), output_types=[list_of(INT)]).output
        self.decide("the sizes of a tensor", list(tensor.value.shape), sizes)

    def note_sizes(self, name: str, kind: str, args: Sequence[Any], sizing: list[Number], outputs: Sequence[Value],
                   results: Sequence[Any]) -> None:
        """Note the results of an operation whose sizes depend on elements, or on numbers among the arguments."""
        if kind == "aten::slice" and sizing and all(each.is_of_arguments for each in sizing) and self.owns(args[0]) \
                and args[0].known not in self.varying:
            length = self.computed(slice_length, (args[0].value.shape[args[1]], *args[2:]))
            sizing = [length] if type(length) is Number else []
        causes: list[Because] = [(each,) if each.is_of_arguments else None for each in sizing if each.source not in self.known]
        causes += [self.varying[each.known] for each in tensors_in(list(args)) if self.owns(each) and each.known in self.varying]
        masks = kind == "aten::index" and any(CODES[each.dtype] in ("bool", "uint8") for each in tensors_in([args[1]]))
        if masks or kind in SIZED_BY_ELEMENTS or name in SIZED_BY_ELEMENTS or kind == "aten::where" and len(args) == 1:
            causes.append(None)
        if not causes:
            return
        because: Because = None if None in causes else tuple(number for cause in causes for number in cause or ())
        for output, result in zip(outputs, results, strict=True):
            if isinstance(result, Tensor) and result.ndim:
                self.varying[output] = because
                output.type = tensor_type(CODES[result.dtype])

    # -- operations
    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation, and record it if an operand is a tensor or number of the trace. Raises UnsupportedError."""
        schema = overload(name).schema
        kind = schema.kind
        sizing: list[Number] = []
        args = [self.allowed(kind, argument, arg, sizing) for arg, argument in zip(args, schema.arguments, strict=True)]
        if self.has_conjugates and (kind in BY_MEMORY or kind == "aten::is_conj"):
            raise UnsupportedError(f"{kind} inside irtool.jit is not supported if an argument is the conjugate of a tensor", code="E0507")
        if schema.is_mutable:
            self.check_write(kind, schema, args)
        if kind in COUNTED_BY_SIZES or kind in SIZE_QUESTIONS:
            for each in tensors_in(args):
                self.settle(each)
        is_own = any(self.owns(each) or self.is_from_outside(each) for each in tensors_in(args)) or any(True for _ in numbers_in(args)) \
            or draws(name, args)        # each run draws anew
        if schema.is_mutable and not self.owns(args[0]):
            self.constants.clear()      # a write may have changed their elements
            if is_own:
                take_in(self, args[0])
        for argument, each in written_statistics(name, args):
            self.note_write(f"{kind}, which updates {argument},", each)
        if is_own:
            self.take_in_statistics(name, args)
        result = self.below.apply(name, plain(self.opened(args)))
        if not is_own and any(True for _ in tensors_in(args)):
            return remember(self, name, args, result) if is_view(name) else result
        if not any(True for _ in tensors_in([result])) and is_own and not schema.is_mutable and result != []:    # []: no rows
            return self.asked(kind, args, result)
        return self.recorded(name, kind, args, result, sizing)

    def recorded(self, name: str, kind: str, args: list[Any], result: Any, sizing: list[Number]) -> Any:
        """Record an operation whose results may have different sizes in each run."""
        if name == "aten::tensor_split.tensor_indices_or_sections" and self.owns(args[1]) and not args[1].ndim:
            self.look(args[1])      # the number of results depends on it
        if isinstance(result, list) and kind not in ("aten::where", "aten::nonzero_numpy") or kind == "aten::tensor_split":
            for each in tensors_in(args):
                self.settle(each)
        if not isinstance(result, Tensor) and not any(True for _ in tensors_in([result])) and not overload(name).schema.is_mutable:
            return result
        boxed = self.record(name, args, result)
        boxes = [each for each in tensors_in([boxed]) if self.owns(each)]
        self.note_sizes(name, kind, args, sizing, [each.known for each in boxes], [each.value for each in boxes])
        return boxed

    def asked(self, kind: str, args: list[Any], result: Any) -> Any:
        """The result of an operator that returns no tensor: a number, or the outcome of a decision."""
        if kind in SIZE_QUESTIONS or kind in DTYPE_QUESTIONS or result is None or isinstance(result, str):
            return result
        operands = [self.operand(arg) for arg in args]
        if (kind == "aten::item" or kind in NUMBER_KINDS) and type(result) in (int, float):
            kind = "aten::Int" if isinstance(result, int) else "aten::Float"
            return Number(self, result, self.build.node(kind, operands[:1], output_types=[type_of_number(result)]).output)
        if isinstance(result, bool | int | float | complex):
            type_ = type_of_number(result)
            return self.decide(f"{kind.removeprefix('aten::')} of a tensor", result,
                               self.build.node(kind, operands, output_types=[type_]).output)
        raise UnsupportedError(f"{kind} gives {type(result).__name__} made of elements, which irtool.jit cannot follow", code="E0507")

    def allowed(self, kind: str, argument: Argument, value: Any, sizing: list[Number]) -> Any:
        """An argument in which numbers that a graph cannot vary are decided. sizing: numbers that sizes depend on are appended to it."""
        place = kind, argument.name
        declared = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if any(True for _ in tensors_in([value])) and str(getattr(declared, "element", declared).key) in PYTHON_NUMBERS:
            value = map_tensors(self.as_number, value)      # a 0-d tensor in place of a number
        if type(value) is not Number and not isinstance(value, list | tuple):
            return value
        if isinstance(value, list | tuple):
            if not any(True for _ in numbers_in(value)):
                return value
            if place in SIZE_LISTS:
                sizing += numbers_in(value)
                return value
            return [each.decided() if type(each) is Number else each for each in value]
        if value.source in self.known:
            return self.known[value.source]
        if place in SIZE_NUMBERS:
            sizing.append(value)
            return value
        if place in PLACE_NUMBERS or not isinstance(declared, ListType) and str(declared.key) != "int" and kind != "aten::arange":
            return value
        return value.decided()

    def as_number(self, tensor: Tensor) -> Any:
        """The only element of a tensor, as a number."""
        return self.apply("aten::item", [tensor])

    def check_write(self, kind: str, schema: Any, args: Sequence[Any]) -> None:
        """Note which arguments are written into. Raises UnsupportedError for a write that no run of the graph could repeat."""
        target = args[0]
        places = schema.written_places
        if places != [0]:
            names = " and ".join([schema.arguments[place].name for place in places])
            what = " with out=" if names == "out" else f", which writes into {names},"
            raise UnsupportedError(f"{kind}{what} is not supported inside irtool.jit", code="E0507")
        if isinstance(target, Tensor):
            self.note_write(kind, target)

    def note_write(self, kind: str, target: Tensor) -> None:
        """Note which arguments a write into a tensor changes. Raises UnsupportedError as `check_write`."""
        if not self.owns(target):
            if is_inside(self, root_of(target)):
                return
            raise UnsupportedError(OUTSIDE.format(kind), code="E0507")
        if any(may_share_memory(target.value.array, getattr(held, "array", held)) for held, _ in self.outside.values()):
            raise UnsupportedError(OUTSIDE.format(kind), code="E0507")      # through a view: arguments are copies here
        for place, (box, memory) in enumerate(self.watched):
            if box is target or may_share_memory(target.value.array, memory):
                if kind in MEMORY_MOVERS:
                    raise UnsupportedError(f"{kind} of an argument is not supported inside irtool.jit", code="E0507")
                self.written.add(place)

    def watch(self, box: Boxed) -> Boxed:
        """Remember an argument, so that writes into it are noticed."""
        self.watched.append((box, box.value.array.view()))
        return box

    # -- operands
    def operand(self, value: Any, argument: Argument | None = None) -> Value:
        """As `Tracer.operand`; a number of the trace has a value of the graph too."""
        if type(value) is Number:
            if value.source in self.known:
                return super().operand(self.known[value.source], argument)
            source = self.number_input(value) if value.is_of_arguments else value.source
            assert isinstance(source, Value)
            if argument is not None and str(argument.type.key) == "float" and source.type is INT:
                source = self.build.node("aten::Float", (source,), output_types=[FLOAT]).output
            return source
        if isinstance(value, list | tuple) and any(True for _ in numbers_in(value)):
            return self.build.construct_list([self.operand(each) for each in value], INT)
        if type(value) is np.ndarray and value.ndim and value.dtype.isnative:
            return self.outer(value)
        return super().operand(value, argument)

    def is_from_outside(self, tensor: Any) -> bool:
        """Was a tensor made before the function was called, without being an argument?"""
        return not isinstance(tensor, Boxed) and tensor.born <= self.start

    def constant(self, tensor: Tensor) -> Value:
        """An input of the graph for a tensor from outside, since later runs read its current elements; a constant for any other."""
        return self.outer(tensor) if self.is_from_outside(tensor) else super().constant(tensor)

    def outer(self, held: Any) -> Value:
        """The input of the graph for a tensor or array from outside."""
        entry = self.outside.get(id(held))
        if entry is None:
            value = self.whole.block.add_input(self.whole.fresh_id(), type_of(held if isinstance(held, Tensor) else Tensor(held)))
            entry = self.outside[id(held)] = (held, value)
            self.inputs.append(held)
        return entry[1]

    def number_input(self, number: Number) -> Value:
        """The input of the graph for a number among the arguments. NumPy scalars become Python numbers."""
        if isinstance(number.value, np.generic):
            return self.operand(self.computed(operator.methodcaller("item"), (number,)))
        step = int(number.source)       # type: ignore[arg-type]
        if step not in self.taken:
            self.taken[step] = self.whole.block.add_input(self.whole.fresh_id(), type_of_number(number.value))
            self.inputs.append(step)
        return self.taken[step]


def slice_length(size: int, start: int | None, end: int | None, step: int) -> int:
    """The number of items of a slice."""
    return len(range(*slice(start, end, step).indices(size)))


def name_of(function: Any) -> str:
    """A function in a message."""
    return str(getattr(function, "__name__", "a function"))


def text_of(value: Any) -> str:
    """An operand in a question."""
    if type(value) is Number:
        return "a number of the arguments" if value.is_of_arguments else "a number made of elements"
    return repr(value)[:20]


def check_bits(number: int) -> None:
    """Raises RunError for a number that does not fit into 64 bits."""
    if not -2**63 <= number < 2**64:
        raise RunError(f"{number if abs(number) < 10**30 else 'a number'} is too big for an integer of 64 bits")


def numbers_in(value: Any) -> Iterator[Number]:
    """The traced numbers in a value, in order."""
    if type(value) is Number:
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from numbers_in(each)


def plain(value: Any) -> Any:
    """A value with its traced numbers replaced by their values in this trace."""
    if type(value) is Number:
        number = value.value.item() if isinstance(value.value, np.generic) else value.value
        if isinstance(number, int):
            check_bits(number)
        return number
    if type(value) in (list, tuple):
        return type(value)([plain(each) for each in value])
    return value
