"""One overload on values: arguments are converted and promoted, the kernel runs, and the result is written in place or to out=.

Tensors are NumPy arrays, other values are Python's (`irtool.interpret`). A Python number may stand for a tensor: it is promoted as a
number, and becomes a 0-d array for a kernel without a promotion rule.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.ir.effects import OF_ONE, RESHAPES, UNDECLARED
from irtool.ir.errors import Error, RunError, UnsupportedError
from irtool.ir.schema import Argument, Schema
from irtool.ir.shapes import broadcast, pointwise_strides
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.arrays import (
    Array,
    as_array,
    astype,
    code_of,
    copied,
    current_namespace,
    element_strides,
    is_array,
    memory_order,
    share_memory,
    title,
    to_number,
)
from irtool.ops.checks import (
    channels_last,
    fit,
    in_memory_order,
    letter,
    overlaps,
    refuse_growth,
    refuse_overlap,
    refuse_own_elements,
    refuse_partial_overlap,
    refuse_windows,
    repeats,
    row_major,
    same_dtype,
)
from irtool.ops.conjugates import spread
from irtool.ops.facts import facts_of_overload
from irtool.ops.kinds_of_values import tag
from irtool.ops.op import Kernel, Op
from irtool.ops.out_dtypes import ADDED_IN_OUT, WIDENED_IN_OUT, check_out, converts, widened
from irtool.ops.out_overlaps import refuse_shared_out
from irtool.ops.promotion import Rule, can_cast, compute_dtype, result_type
from irtool.ops.quantized import HELD
from irtool.ops.size_facts import BY_INDEX, IN_ORDER, LISTS_IN_FULL, read_late

NO_PROMOTION_BY_NAME = frozenset({"condition", "mask", "alpha", "beta", "out"})
"""Arguments with a dtype of their own, even in operators with a promotion rule."""
THROUGH = RESHAPES | {"aten::masked_fill_", "aten::index_fill_", "aten::triu_", "aten::tril_"}
"""Kinds that accept targets whose elements share memory, as torch does for them: they write one number into what they change."""
UNWRITTEN = {"aten::nan_to_num_": "biu", "aten::conj_physical_": "biuf"}
"""Kinds that give the target back as it is, whatever memory its elements share -> NumPy's kinds of such targets; torch writes nothing."""
EXACT_IN_PLACE = {
    "aten::abs_": "In-place abs is not supported for complex tensors.",
    "aten::absolute_": "In-place abs is not supported for complex tensors.",
    "aten::float_power_": "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
}
"""Kinds whose result is only written into a tensor of its dtype -> torch's message about another dtype."""
ORDERED = frozenset(f"aten::{name}" for name in "binary_cross_entropy complex huber_loss l1_loss mse_loss polar smooth_l1_loss".split())
"""Kinds that are pointwise if they are asked to."""
SWAPPED = frozenset(("aten::rsub",))
"""Kinds whose second operand says first how the result lies in memory."""
NUMBER = (int, float, complex, np.generic)


class Overload:
    """A kernel as one schema calls it: plain, derived in-place, or derived out=."""

    __slots__ = ("schema", "op", "kernel", "promote", "promoted", "mode", "outs", "converters", "fitting", "takes", "result", "fresh",
                 "is_factory", "is_widened", "written", "of_quantized", "is_converted", "is_pointwise", "lengths", "ordering")

    def __init__(self, schema: Schema, op: Op, mode: str = "plain", outs: int = 0) -> None:
        self.schema = schema
        self.op = op
        self.kernel = laid_out(op.kernel, op.layout) if op.layout and mode == "plain" else op.kernel
        self.promote: Rule | Callable[[list[Any]], Rule] | None = op.promote      # a function chooses by the arguments' values
        self.mode = mode                # "plain"; "inplace": writes into argument 0; "out": writes into the last `outs` arguments
        self.outs = outs
        self.is_factory = mode == "out" and op.schemas[0].count("ScalarType? dtype") > schema.text.count("ScalarType? dtype")
        self.is_widened = mode == "out" and schema.name in WIDENED_IN_OUT
        self.is_converted = mode == "out" and converts(schema.name, op.promote is not None)
        arguments = schema.arguments[:len(schema.arguments) - outs]
        self.promoted = [place for place, argument in enumerate(arguments) if _takes_part(argument)] if op.promote else []
        promoted = set(self.promoted)
        tensors = [place for place, argument in enumerate(arguments) if argument.type.text in ("Tensor", "Tensor?")]
        self.is_pointwise = op.promote is not None or schema.kind in ORDERED or (
            schema.kind != "aten::masked_fill" and facts_of_overload(schema.name if mode == "plain" else op.names[0]).is_pointwise)
        self.ordering = (tensors[::-1] if schema.kind in SWAPPED else tensors) if mode == "plain" and self.is_pointwise else []
        self.written = [place for place, argument in enumerate(schema.arguments)
                        if argument.alias is not None and argument.alias.is_write and schema.kind not in RESHAPES]
        self.of_quantized = op.family.startswith("quantized")
        converters = CONVERTERS_OF_QUANTIZED if self.of_quantized else CONVERTERS
        self.converters: list[tuple[int, Callable[[Any, Argument], Any], Argument]] = []
        for place, argument in enumerate(arguments):
            converter = converters.get(argument.type.text)
            if converter is not None and place not in promoted and not (argument.alias is not None and "[]" in argument.type.text):
                self.converters.append((place, converter, argument))
        wide = {word.removesuffix("+"): word.endswith("+") for word in op.fits.split()}
        self.fitting = [(place, wide[argument.name]) for place, argument in enumerate(arguments)
                        if argument.name in wide and "Tensor" not in argument.type.text]
        least = 1 if schema.kind in LISTS_IN_FULL else 2
        self.lengths = [(place, argument.fixed_size) for place, argument in enumerate(arguments)
                        if argument.fixed_size >= least and argument.type.text.rstrip("?") in ("int[]", "SymInt[]")]
        self.takes = op.takes
        self.result = [RESULTS.get(result.type.text) for result in schema.returns]
        self.fresh = schema.kind not in UNDECLARED | OF_ONE and not any(result.alias is not None for result in schema.returns)

    def __call__(self, args: list[Any]) -> Any:
        """Run on one value per argument of the schema. Returns the kernel's result, with arrays for tensors."""
        if not self.of_quantized and not HELD.isdisjoint(map(type, args)) and self.takes_held(args):
            from irtool.ops.on_quantized import call_on_quantized

            if self.mode == "out":
                raise UnsupportedError(f"{self.schema.name} of quantized tensors is not supported")
            return call_on_quantized(self.schema.kind, self, args)
        outs, operands = parted(args, self.outs) if self.outs else ([], args)
        if self.is_factory:
            operands = [*operands, code_of(outs[0].dtype), None, None, None]
        elif self.schema.name in ADDED_IN_OUT and operands[-1] is None:
            operands = [*operands[:-1], code_of(outs[0].dtype)]
        elif self.is_widened:
            operands = widened(self.schema, operands, outs[0])
        target = args[0] if self.mode == "inplace" else None
        if target is not None:
            if self.schema.kind in UNWRITTEN and is_array(target) and target.dtype.kind in UNWRITTEN[self.schema.kind]:
                return target
            self.refuse_memory(target, operands)
        try:
            result = self._compute(operands)
        except Error:
            raise
        except NotImplementedError as error:
            raise UnsupportedError(f"{self.schema.kind}: {error}") from error
        except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError, KeyError, AttributeError, ArithmeticError,
                np.linalg.LinAlgError) as error:
            raise RunError(_numpy_complaint(self.schema, operands, error), code="E0407") from error
        if self.mode == "inplace":
            result = write_into(target, result, self.schema)
        elif self.mode == "out":
            if self.outs == 1:
                refuse_shared_out(self.schema.name, self.is_pointwise, outs[0], operands)
            result = write_outs(outs, result, self.schema.kind, self.is_converted or self.is_factory)
        for place in self.written:
            spread(args[place])
        return result

    def refuse_memory(self, target: Any, operands: list[Any]) -> None:
        """Raises RunError for a target whose elements share memory, and for operands that share memory with it, as torch does."""
        if self.promote is not None and is_array(target) and self.schema.kind not in THROUGH:
            refuse_overlap(target)
        if len(operands) > 1:
            refuse_parts(self.schema.kind, target, operands[1:])

    def takes_held(self, args: list[Any]) -> bool:
        """Is an argument for a tensor a quantized tensor, or does it contain one?"""
        return any(type(value) in HELD and "Tensor" in argument.type.text
                   for value, argument in zip(args, self.schema.arguments, strict=True))

    def _compute(self, args: list[Any]) -> Any:
        values = list(args)
        result = self._run_kernel(values)
        return in_common_order(result, [values[place] for place in self.ordering]) if len(self.ordering) > 1 else result

    def _run_kernel(self, values: list[Any]) -> Any:
        """The result of the kernel on the values of a list, in which they are converted."""
        for place, converter, argument in self.converters:
            if values[place] is not None:
                values[place] = converter(values[place], argument)
        for place, length in self.lengths:
            self.check_length(values[place], length, self.schema.arguments[place].name)
        rule = self.promote
        if rule is None:
            if self.fitting or self.takes:
                self.check(values, self.given_dtype(values))
            return self._finish(self.kernel(current_namespace(), *values), values)
        if not isinstance(rule, Rule):
            rule = rule(values)
        dtype = compute_dtype(rule, _flat(values[place] for place in self.promoted))
        inside = inside_dtype(rule, dtype, values)
        if self.fitting or self.takes:
            self.check(values, dtype)
        for place in self.promoted:
            value = values[place]
            if isinstance(value, list | tuple):
                values[place] = [as_array(item, inside) for item in value]
            elif value is not None:
                values[place] = as_array(value, inside)
        for place, argument in enumerate(self.schema.arguments[:len(values)]):
            if argument.name in ("alpha", "beta") and values[place] is not None:
                values[place] = coefficient(argument.name, values[place], dtype, inside)
        result = self.kernel(current_namespace(), *values)
        if rule.result == "compute":
            result = _map_arrays(result, dtype)
        elif rule.result == "bool":
            result = _map_arrays(result, np.dtype(np.bool_))
        return self._finish(result, values)

    def given_dtype(self, values: list[Any]) -> np.dtype[Any] | None:
        """The dtype of the first tensor, or the common dtype if the stanza says `+`. Raises RunError for others if it says `=`."""
        tensors = [value for value in _flat(values) if getattr(value, "ndim", None) is not None or hasattr(value, "is_number")]
        if self.takes[-1:] == "=":
            same_dtype(self.schema.kind.removeprefix("aten::"), *tensors)
        return result_type(tensors) if self.takes[-1:] == "+" and len(tensors) > 1 else first_dtype(values)

    def check_length(self, numbers: list[int] | None, length: int, name: str) -> None:
        """Raises RunError for a list of a declared length that has neither as many numbers nor one for all; `stride` may have none."""
        if numbers is None or len(numbers) == length:
            return
        if self.schema.kind in LISTS_IN_FULL or len(numbers) > 1 or not numbers and name != "stride":
            raise RunError(f"{self.schema.kind.removeprefix('aten::')}: {name} must have {length} numbers, but got {len(numbers)}")

    def check(self, values: list[Any], dtype: np.dtype[Any] | None) -> None:
        """Raises torch's error for a dtype without a kernel, and for known numbers that the dtype of the computation cannot represent."""
        if self.takes and dtype is not None and letter(dtype) not in self.takes:
            raise RunError(f"\"{self.schema.kind.removeprefix('aten::')}\" not implemented for '{title(dtype)}'", code="E0409")
        for place, wide in self.fitting:
            number = values[place]
            if dtype is not None and isinstance(number, int | float | complex):
                values[place] = fit(number, np.dtype(np.float32) if wide and dtype == np.float16 else dtype)

    def _finish(self, result: Any, args: list[Any]) -> Any:
        """The result as the schema declares it: arrays for tensors, Python numbers for numbers, no undeclared views."""
        if isinstance(result, tuple) and len(self.result) > 1:
            return tuple([self._finish_one(item, finish, args) for item, finish in zip(result, self.result, strict=False)])
        return self._finish_one(result, self.result[0] if self.result else None, args)

    def _finish_one(self, value: Any, finish: Callable[[Any], Any] | None, args: list[Any]) -> Any:
        if finish is not None and value is not None:
            value = finish(value)
        if self.fresh and is_array(value) and _shares(value, args):
            value = copied(value) if self.op.layout else value.copy()
        return value


def refuse_parts(kind: str, target: Any, operands: Sequence[Any]) -> None:
    """Raises torch's error for operands that share memory with the target of a write, as far as torch refuses them for the kind;
    UnsupportedError where torch gives what the order of writing gives."""
    if kind in IN_ORDER:
        refuse_own_elements(kind, any(is_array(each) and share_memory(target, each) for each in read_late(kind, operands)))
    refuse_partial_overlap(target, read_late(kind, operands), kind in BY_INDEX)


def laid_out(kernel: Kernel, letters: str) -> Kernel:
    """The kernel with results in the memory order that the stanza states."""
    def wrapped(xp: Any, *args: Any) -> Any:
        results = kernel(xp, *args)
        several = results if isinstance(results, tuple) else (results,)
        laid = tuple([in_order(xp, each, letter, args) for each, letter in zip(several, letters, strict=True)])
        return laid if isinstance(results, tuple) else laid[0]
    return wrapped


def in_order(xp: Any, array: Any, letter: str, args: Sequence[Any]) -> Any:
    """The array, or the arrays of a list, in the memory order of a letter: C, F, K (as the first argument, if that has the same shape),
    P (the same, if it has the same rank), M (channels last, if the first argument of two or three sizes is), L (or of one size), W (as a
    convolution of the first with the second), or - (unchanged)."""
    if isinstance(array, list):
        return [in_order(xp, each, letter, args) for each in array]
    first = args[0]
    rank = getattr(array, "ndim", 0)
    if rank < 2 or letter == "-" or array is first:     # as for dropout outside of training: the operand, whatever its strides
        return array
    if letter == "W" and args[1].ndim > rank:       # without a batch dimension
        return in_order(xp, array[None], "W" if rank < 4 else "C", (first[None], *args[1:]))[0]
    order: Any = range(rank)
    if letter == "F":
        order = [*order[:-2], rank - 1, rank - 2]
    elif letter == "K" and first.shape == array.shape or letter == "P" and first.ndim == rank:
        order = memory_order(first)
    elif letter in "MLW" and first.ndim == rank:
        seen = [first] if letter != "W" else args[rank == 3:2] if rank < 5 or array.dtype == np.float32 else []
        orders = [list(channels_last(each, 4 if letter == "M" else 3)) for each in seen]
        order = max(orders, default=order)      # channels last, if any is
    return row_major(xp, array) if list(order) == sorted(order) else in_memory_order(xp, array, order)


def in_common_order(result: Any, operands: Sequence[Any]) -> Any:
    """The result of a pointwise operator with the dimensions in the order that torch gives them: as in the operands, of which the first
    counts most, where NumPy orders by rows what they do not agree on. Who reshapes the result gets a view of it, or a copy."""
    arrays = [each for each in operands if is_array(each) and each.ndim]
    if all(each.flags.c_contiguous for each in arrays) or not is_array(result) or broadcast([a.shape for a in arrays]) != result.shape:
        return result
    strides = pointwise_strides(result.shape, [(each.shape, element_strides(each)) for each in arrays])
    if all(step == wanted or size == 1 for step, wanted, size in zip(element_strides(result), strides, result.shape, strict=True)):
        return result
    if hasattr(result, "lie_as") and result.lie_as(tuple([step * result.itemsize for step in strides])):     # no elements yet
        return result
    return in_memory_order(current_namespace(), result, sorted(range(result.ndim), key=lambda place: -strides[place]))


def first_dtype(values: Sequence[Any]) -> np.dtype[Any] | None:
    """The dtype of the first tensor among values, also in lists."""
    for value in values:
        dtype: Any = first_dtype(value) if isinstance(value, list | tuple) else getattr(value, "dtype", None)
        if isinstance(dtype, np.dtype):
            return dtype
    return None


def inside_dtype(rule: Rule, dtype: np.dtype[Any], values: list[Any]) -> np.dtype[Any]:
    """The dtype in which a kernel computes: float32 for float16 if a rule keeps a number (the second operand, or alpha) exact."""
    if rule.exact_numbers and dtype == np.float16:
        second = values[1]
        scaled = any(value != 1 for value in values[2:] if isinstance(value, int | float))
        if scaled or not (is_array(second) and second.ndim):
            return np.dtype(np.float32)
    return dtype


def _takes_part(argument: Argument) -> bool:
    """Takes an argument part in type promotion?"""
    return argument.name not in NO_PROMOTION_BY_NAME and not argument.keyword_only and (
        argument.type.text in ("Tensor", "Tensor?", "Tensor[]", "Scalar", "Scalar?"))


def _flat(values: Any) -> Any:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def _shares(value: Array, args: list[Any]) -> bool:
    """Is `value` one of the arrays among `args`, or a view of one?"""
    for arg in args:
        if isinstance(arg, np.ndarray):
            if value is arg or (value.base is not None and (not value.size or np.may_share_memory(value, arg))):
                return True
        elif isinstance(arg, list | tuple):
            if arg and is_array(arg[0]) and _shares(value, list(arg)):
                return True
        # some of CuPy's views do not know the array that they are views of
        elif value is arg or is_array(arg) and share_memory(value, arg):
            return True
    return False


def _map_arrays(result: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(result, tuple | list):
        return type(result)([_map_arrays(item, dtype) for item in result])
    return result if result is None else as_array(result, dtype)


def coefficient(name: str, value: Any, dtype: np.dtype[Any], inside: np.dtype[Any]) -> Any:
    """alpha or beta in the dtype of the computation. Raises torch's error if its category is too high, or the common dtype cannot
    represent it."""
    number = to_number(value)
    kind = np.dtype(dtype).kind
    if isinstance(number, bool) and kind != "b":
        raise RunError("Boolean alpha only supported for Boolean results.")
    if isinstance(number, float) and kind in "iub":
        raise RunError(f"For integral input tensors, argument {name} must not be a floating point number.", code="E0409")
    if isinstance(number, complex) and kind != "c":
        raise RunError(f"For non-complex input tensors, argument {name} must not be a complex number.", code="E0409")
    return as_array(fit(number, dtype), inside)


class Resized(UnsupportedError):
    """A tensor that is written to has another size than its result: whoever else holds it would see the new one.

    results: tensors to read instead of those written to; warnings: torch's.
    """

    def __init__(self, message: str, results: Sequence[Any], warnings: Sequence[str] = ()) -> None:
        super().__init__(f"{message} is not supported where the tensor is read again")
        self.results = results
        self.warnings = warnings


def write_into(target: Any, result: Any, schema: Schema) -> Any:
    """Store `result` in `target` as an in-place operator does; returns `target`. Raises RunError with torch's messages."""
    if isinstance(result, tuple):
        result = result[0]
    if not is_array(target):
        raise RunError(f"{schema.kind} needs a tensor to write into, got {type(target).__name__}")
    if result is target:
        return target
    if schema.kind in RESHAPES or (result.base is not None or not isinstance(result, np.ndarray)) and share_memory(result, target):
        return reshape_in_place(target, result, schema.kind)
    refuse_growth(target, result.shape)
    refuse_dtype(schema.kind, result.dtype, target.dtype)
    if schema.kind not in THROUGH:
        refuse_windows(schema.kind, target)
    if overlaps(target) or schema.kind in THROUGH and repeats(target):
        # only changed elements: unchanged ones may share memory with one that was changed
        result = astype(result, target.dtype)
        current_namespace().copyto(target, result, where=(result != target) & ((result == result) | (target == target)))
    else:
        target[...] = astype(result, target.dtype)
    return target


def refuse_dtype(kind: str, result: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Raises torch's error for writing a result into a tensor of another dtype."""
    if kind in EXACT_IN_PLACE and result != target:
        raise RunError(EXACT_IN_PLACE[kind].format(title(target), title(result)), code="E0409")
    if not can_cast(result, target):
        raise RunError(f"result type {title(result)} can't be cast to the desired output type {title(target)}", code="E0409")


def reshape_in_place(target: Array, view: Array, kind: str) -> Array:
    """Change the shape and strides of `target` itself to those of `view`, a view of all of it (`t_`, `squeeze_`, `unsqueeze_`)."""
    if view.size != target.size:
        raise Resized(f"{kind} to another number of elements", [view])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)      # NumPy prefers a new view, but other values refer to this one
        try:
            if target.shape != view.shape:
                # then any shape is allowed; NumPy compares the space with the base, or with the present strides
                if not target.flags.c_contiguous:
                    rows = contiguous_strides(target.shape)
                    target.strides = tuple([0 if target.base is not None else step * target.itemsize for step in rows])
                target.shape = view.shape
            if target.strides != view.strides:
                target.strides = view.strides
        except (AttributeError, ValueError) as error:
            what = "a tensor that is not contiguous" if isinstance(target, np.ndarray) else "a CuPy array, whose strides cannot be set,"
            raise UnsupportedError(f"{kind} on {what} is not supported yet") from error
    return target


def parted(args: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The out= arguments, which are the last ones, and the operands before them. Raises RunError for an out= that is no tensor."""
    outs = args[len(args) - count:]
    for out in outs:
        if not is_array(out):
            raise RunError(f"out= takes a tensor, found {tag(out)}", code="E0403")
    return outs, args[:len(args) - count]


def write_outs(outs: list[Any], result: Any, kind: str, converted: bool) -> Any:
    """Store results in the out= arguments, converted to their dtypes or not; returns these. Raises Resized."""
    results = result if isinstance(result, tuple) else (result,)
    for out, value in zip(outs, results, strict=True):
        check_out(kind, converted, value, out)
    if any(out.size and out.shape != value.shape for out, value in zip(outs, results, strict=True)):
        pairs = list(zip(outs, results, strict=True))
        raise Resized("out= with another shape", [astype(value, out.dtype) for out, value in pairs], [
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required "
            f"output shape {list(value.shape)}." for out, value in pairs if out.size and out.shape != value.shape])
    for out, value in zip(outs, results, strict=True):
        if out.shape != value.shape:
            if not isinstance(out, np.ndarray) or not out.flags.owndata:
                raise UnsupportedError("out= that must grow is not supported yet")
            out.resize(value.shape, refcheck=False)     # views of an empty array have no elements either
        out[...] = astype(value, out.dtype)
    return tuple(outs) if len(outs) > 1 else outs[0]


def _numpy_complaint(schema: Schema, args: Sequence[Any], error: Exception) -> str:
    """torch's message for an error of NumPy, if it is known; else NumPy's own."""
    if "broadcast" in str(error):
        shapes = [a.shape for a in args if is_array(a)]
        said = broadcast_complaint(shapes)
        if said:
            return said
    return f"{schema.kind}: {error}"


def broadcast_complaint(shapes: Sequence[tuple[int, ...]]) -> str:
    """torch's message for shapes that do not broadcast; empty if they do."""
    if len(shapes) < 2:
        return ""
    result = shapes[0]
    for shape in shapes[1:]:
        rank = max(len(result), len(shape))
        a, b = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        for dim in reversed(range(rank)):
            if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
                return f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at non-singleton dimension {dim}"
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return ""


# -- conversion of values for the kernel
def _tensor(value: Any, argument: Argument) -> Any:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, NUMBER):
        return as_array(value)
    if is_array(value):
        return value
    if type(value) in HELD:
        raise UnsupportedError("this operator does not take quantized tensors yet: dequantize() gives the numbers", code="E0409")
    raise RunError(f"Expected Tensor but got {tag(value)}")


def _any_tensor(value: Any, argument: Argument) -> Any:
    """Converts a tensor, quantized or not."""
    return value if type(value) in HELD else _tensor(value, argument)


def _any_tensors(value: Any, argument: Argument) -> Any:
    return [_any_tensor(item, argument) for item in value]


def _tensors(value: Any, argument: Argument) -> Any:
    if isinstance(value, list | tuple):
        return [item if item is None else _tensor(item, argument) for item in value]
    return [_tensor(value, argument)]


def _scalar(value: Any, argument: Argument) -> Any:
    return to_number(value)


def _int(value: Any, argument: Argument) -> Any:
    if type(value) is int or isinstance(value, str):
        return value
    value = to_number(value)
    return int(value) if isinstance(value, bool | float) and value == int(value) else value


def _float(value: Any, argument: Argument) -> Any:
    if type(value) is float:
        return value
    value = to_number(value)
    return float(value) if isinstance(value, int) else value


def _bool(value: Any, argument: Argument) -> Any:
    return value if type(value) is bool else bool(to_number(value))


def _device(value: Any, argument: Argument) -> Any:
    """Converts a device to its name; before 2019 it was a list of kind and index."""
    if isinstance(value, list) and len(value) == 2:
        kind = {0: "cpu", 1: "cuda"}.get(value[0], f"device{value[0]}")
        return kind if value[1] < 0 else f"{kind}:{value[1]}"
    return value


def _ints(value: Any, argument: Argument) -> Any:
    if isinstance(value, list | tuple):
        return value if all(type(item) is int for item in value) else [_int(item, argument) for item in value]
    if is_array(value) and value.ndim:
        return [int(item) for item in value]
    return [_int(value, argument)] * max(argument.fixed_size, 1)


def _floats(value: Any, argument: Argument) -> Any:
    if type(value) is list and all(type(item) is float for item in value):
        return value        # itself: a list with a nan equals no other
    if isinstance(value, list | tuple):
        return [_float(item, argument) for item in value]
    return [_float(value, argument)] * max(argument.fixed_size, 1)


CONVERTERS: Mapping[str, Callable[[Any, Argument], Any]] = {
    "Tensor": _tensor, "Tensor?": _tensor, "Tensor[]": _tensors, "Tensor[]?": _tensors, "Tensor?[]": _tensors, "Tensor?[]?": _tensors,
    "Scalar": _scalar, "Scalar?": _scalar, "int": _int, "int?": _int, "float": _float, "float?": _float, "bool": _bool, "bool?": _bool,
    "Device": _device, "Device?": _device, "int[]": _ints, "int[]?": _ints, "float[]": _floats, "float[]?": _floats,
}
"""Category of an argument -> the function that converts values for the kernel."""
CONVERTERS_OF_QUANTIZED = {**CONVERTERS, "Tensor": _any_tensor, "Tensor?": _any_tensor, "Tensor[]": _any_tensors}
"""The same, for families whose kernels accept quantized tensors."""


# -- conversion of results to the schema's types
def _tensor_result(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) or is_array(value) or type(value) in HELD else current_namespace().asarray(value)


def _tensors_result(value: Any) -> Any:
    return [_tensor_result(item) for item in value]


def _number_result(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) or is_array(value) else value


RESULTS: Mapping[str, Callable[[Any], Any]] = {
    "Tensor": _tensor_result, "Tensor[]": _tensors_result, "Scalar": _number_result, "int": _number_result, "float": _number_result,
    "bool": _number_result, "complex": _number_result,
}
