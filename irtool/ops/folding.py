"""Operators on constants, for passes that compute ahead: numbers, strings, lists and tuples, mostly without NumPy.

Tensors are `TensorLiteral`s with known dtype and shape whose elements are known: their text has all digits, or the array is beside it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.ir.attribute import Attribute
from irtool.ir.effects import facts_of
from irtool.ir.errors import Error
from irtool.ir.schema import Literal, Schema, node_arguments, schema_of
from irtool.ir.tensor_dump import SHOWN, dump_text, literal_of
from irtool.ir.tensor_literal import NUMBER_DTYPES, SPELLED, TensorLiteral
from irtool.ir.types import ListType, OptionalType, TensorType, Type, UnionType, spell, tensor_type
from irtool.ops.array_library import has_elements, np
from irtool.ops.arrays import copy_in_layout
from irtool.ops.quantized import MAKERS

if TYPE_CHECKING:
    from irtool.ir.builder import Builder
    from irtool.ir.graph import Node, Value

MAX_SIZE = 10_000
"""Longer strings and lists are not computed ahead."""
PLAIN = (int, float, complex, str)
NUMBERS = frozenset((int, float, bool))

_WITHOUT_KERNEL = frozenset("""
prim::ListConstruct prim::TupleConstruct prim::DictConstruct prim::TupleUnpack prim::ListUnpack prim::TupleIndex prim::isinstance
prim::unchecked_cast aten::__is__ aten::__isnot__ prim::rangelist aten::pow aten::__lshift__
""".split())
"""Kinds that `evaluate` does not pass to a kernel, or only after a check of the result's size."""

_NOT_FOLDED = frozenset("""
prim::If prim::Loop prim::Closure prim::Function prim::Constant prim::AutogradZero prim::Uninitialized prim::Guard prim::profile
prim::profile_ivalue prim::unchecked_unwrap_optional prim::awaitable aten::dequantize aten::hash prim::TimePoint
prim::CreateObject prim::GetAttr prim::AutogradAnyNonZero prim::AnyDefined prim::Undefined prim::None
""".split())
"""Kinds whose result depends on more than their operands, or cannot be a constant."""

_MAKERS = frozenset(f"aten::{name}" for name in """
arange linspace logspace range eye full full_like zeros ones zeros_like ones_like new_zeros new_ones new_full tril_indices triu_indices
vander repeat repeat_interleave tile expand broadcast_to one_hot bincount pad constant_pad_nd bartlett_window blackman_window
hamming_window hann_window kaiser_window histc cartesian_prod combinations outer kron resize diag diag_embed
""".split())
"""Kinds whose results may be much larger than their operands."""
_UNFIXED = frozenset(f"aten::{name}" for name in "empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())
"""Kinds whose results are uninitialised memory, so that they are known only if they have no elements."""

_ALWAYS: dict[str, list[Any]] = {"aten::is_scripting": [True]}
"""Kinds without operands -> their results."""


def is_foldable(kind: str) -> bool:
    """May a node of this kind be replaced by its results, as far as the kind decides it?"""
    facts = facts_of(kind)
    return (kind.startswith(("aten::", "prim::")) and kind not in _NOT_FOLDED and kind not in MAKERS
            and not (facts.side_effects or facts.may_write or facts.is_random))


def evaluate(node: Node, values: Sequence[Any], beside: bool = False) -> list[Any] | None:
    """The results of a node whose operands have these values; None if they cannot be computed here (also for errors).

    beside: also return tensors that no text represents exactly: a literal with torch's text and its array beside it; for a tensor that is
    large or not contiguous, the array itself, from which other results can be computed.
    """
    if node.kind not in _WITHOUT_KERNEL and values and NUMBERS.issuperset(map(type, values)):
        schema = schema_of(node)
        if schema is not None and len(values) == len(schema.arguments) and not node.attributes:
            return _run(node, schema, values, beside)
    if not node.inputs:
        return _construct(node, values) or _ALWAYS.get(node.kind)
    if _is_too_big(node.kind, values) or node.kind in ("aten::tensor", "aten::as_tensor") and \
            (_is_empty(values[0]) or not is_number(node.inputs[0].type)):       # the types decide the dtype
        return None
    constructed = _construct(node, values)
    if constructed is not None:
        return constructed
    schema = schema_of(node)
    if schema is None:
        return None
    if not all(map(_is_plain, values)):
        values = [_arrays(value) for value in values]
        if not all(map(_is_operand, values)):
            return None
    if node.attributes or len(node.inputs) != len(schema.arguments):
        values = _arguments(node, schema, values)
        if _is_too_big(node.kind, values):
            return None
    return _run(node, schema, values, beside)


def _run(node: Node, schema: Schema, values: Sequence[Any], beside: bool) -> list[Any] | None:
    try:
        result = _function(schema.name)(values)
    except (Error, NotImplementedError, ArithmeticError, ValueError, TypeError, IndexError, KeyError):
        return None         # it fails when it runs, with the right message
    if type(result) in NUMBERS and len(node.outputs) == 1 and _is_plain(result):
        return [result]
    results = list(result) if len(schema.returns) > 1 and isinstance(result, tuple) else [result]
    if node.kind in _UNFIXED and any(value.size for value in results):
        return None
    results = [_written(value, beside) for value in results]
    return results if len(results) == len(node.outputs) and all([_is_told(value, beside) for value in results]) else None


def _written(value: Any, beside: bool) -> Any:
    """A result with its arrays as literals, where they can be. A text has no strides, which `is_contiguous` and `as_strided` read."""
    if isinstance(value, list) and beside:
        return [_written(each, beside) for each in value]
    if not hasattr(value, "flags") or not (beside or value.flags.c_contiguous):
        return value
    return with_array(value) if beside else _literal(value)


def _is_told(value: Any, beside: bool) -> bool:
    """Is a result a literal, or made of numbers, or (beside) an array, or a list of these?"""
    if isinstance(value, TensorLiteral) or _is_plain(value):
        return True
    return beside and (_is_array(value) and value.size <= MAX_SIZE or _is_list_of_tensors(value))


def _is_list_of_tensors(value: Any) -> bool:
    """Is it a list, perhaps empty, of known tensors?"""
    return isinstance(value, list) and all([isinstance(each, TensorLiteral) or _is_array(each) and each.size <= MAX_SIZE for each in value])


def _is_too_big(kind: str, values: Sequence[Any]) -> bool:
    """Is the value huge, although its text is short? (`"a" * 10**12`)"""
    if (kind in _MAKERS or kind in _UNFIXED) and _product(values) > MAX_SIZE:
        return True
    large = [value for value in values if isinstance(value, int) and abs(value) > MAX_SIZE]
    if not large:
        return any(isinstance(value, (str, list, tuple)) and len(value) > MAX_SIZE for value in values)
    return kind in ("prim::rangelist", "aten::pow", "aten::__lshift__") or any(isinstance(value, (str, list)) for value in values)


def _is_empty(value: Any) -> bool:
    """Do nested lists contain no element?"""
    return isinstance(value, list) and all(map(_is_empty, value))


def _product(value: Any) -> float:
    """The number of elements of a tensor with these sizes."""
    if isinstance(value, (list, tuple)):
        product = 1.0
        for each in value:
            product *= _product(each)
        return product
    return max(1.0, abs(float(value))) if isinstance(value, (int, float)) and value == value else 1.0


def is_number(type: Type) -> bool:
    """Do lists of this type contain numbers of one type? torch makes tensors of no others."""
    while isinstance(type, ListType):
        type = type.element
    return not isinstance(type, TensorType | OptionalType | UnionType) and type.text != "NoneType"


def _is_operand(value: Any) -> bool:
    """Can a kernel take the value: an array, a plain value, or a list of arrays? Not a literal whose elements are uncertain."""
    return _is_array(value) or _is_plain(value) or isinstance(value, list) and all(map(_is_array, value))


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and not isinstance(value, TensorLiteral)


def _is_plain(value: Any) -> bool:
    """Is the value made only of numbers (ints of 64 bits), strings and None, and of moderate size?"""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    if isinstance(value, (list, tuple)):
        return len(value) <= MAX_SIZE and all(map(_is_plain, value))
    if isinstance(value, dict):
        return _is_plain([*value.values()])
    return type(value) in PLAIN and (not isinstance(value, str) or len(value) <= MAX_SIZE)


def array_of(literal: TensorLiteral) -> Any:
    """The array of a tensor whose text says all, or the number that it stands for; else the literal, which no schema accepts as a tensor.

    torch's dump of several elements has 4 digits, so that only integers are certain.
    """
    dtype, shape = literal.dtype, literal.shape
    if dtype is None or shape is None or not literal.has_data or dtype.startswith(("q", "complex", "bfloat")):
        return literal
    from irtool.ops.arrays import dtype_named

    if literal.is_number:
        return literal.item()
    if literal.is_exact:
        return np.full(shape, literal.item(), dtype_named(dtype))
    if literal.data is not None:
        return np.array(literal.data, dtype_named(dtype), order="C").reshape(shape) if literal.strides is None else literal.data
    try:
        numbers = literal.numbers()
    except Error:
        return literal
    if literal.is_rounded and not all(isinstance(number, int) or isinstance(number, float) and number.is_integer() for number in numbers):
        return literal
    return np.array(numbers, dtype_named(dtype)).reshape(shape)


def _arrays(value: Any) -> Any:
    """Literals as arrays, also those in a list."""
    if isinstance(value, TensorLiteral):
        return array_of(value)
    return [array_of(each) if isinstance(each, TensorLiteral) else each for each in value] if isinstance(value, list) else value


def _literal(array: Any) -> Any:
    """An array as text from which it can be read back exactly; the array itself if there is no such text."""
    if array.size > SHOWN or array.dtype.kind not in "biuf" or array.dtype.name == "bfloat16" or not has_elements(array):
        return array
    shape = tuple(array.shape)
    if array.size == 1:
        element = array.reshape(())
        if not shape and str(array.dtype) in NUMBER_DTYPES:
            return TensorLiteral.element(element.item(), str(array.dtype))
        if array.dtype.kind != "f":
            return TensorLiteral(TensorLiteral.scalar(element.item()).text, str(array.dtype), shape)
        number = float(str(element))        # the shortest decimal for this precision
        six = f"{number:g}"     # as torch prints it, which may cut digits off
        return TensorLiteral("{" + (six if float(six) == number or number != number else repr(number)) + "}", str(array.dtype), shape)
    literal = literal_of(array.ravel().tolist(), shape, str(array.dtype))
    try:
        again = np.array(literal.numbers(), array.dtype).reshape(shape)
    except (Error, ValueError, OverflowError):
        return array
    return literal if again.tobytes() == array.tobytes() else array


def with_array(array: Any) -> Any:
    """As `_literal`, but with torch's text and the array beside it where that text is rounded, no text, or would be a number; not for large
    arrays.

    `{1}` with an array is a tensor; alone it would be a number. Whoever reads such a text alone is told so: RoundedWarning, and the error
    that `<Tensor>` has no numbers.
    """
    is_view = not array.flags.c_contiguous
    literal = array if is_view else _literal(array)
    shape, dtype = tuple(array.shape), str(array.dtype)
    says_all = isinstance(literal, TensorLiteral) and not literal.is_rounded and (shape or dtype not in NUMBER_DTYPES)
    if says_all or array.size > SPELLED or array.dtype.kind not in "bif" or not has_elements(array):
        return literal
    if array.dtype.name == "bfloat16" or np.isnan(array).any():     # no text says the bits of a nan
        return literal
    if is_view:
        if min(array.strides) < 0:
            return array
        array = copy_in_layout(array)
    return TensorLiteral(dump_text(array.ravel().tolist(), shape, dtype), dtype, shape, array)


def tensor_constant(build: Builder, array: Any) -> Value:
    """A constant for an array, which then belongs to the graph: as text if that is exact, else beside the text."""
    literal = _literal(array)
    if not isinstance(literal, TensorLiteral) or literal.is_rounded:       # some texts look rounded, although they are exact
        text = literal.text if isinstance(literal, TensorLiteral) else "<Tensor>"
        literal = TensorLiteral(text, array.dtype.name, array.shape, array)
    strides = [each // array.itemsize for each in array.strides]
    complete = spell(tensor_type(array.dtype.name, array.shape, strides, False, "cpu"), build.graph.dialect)
    return build.node("prim::Constant", (), {"value": Attribute(literal.text, literal)}, [complete]).output


def _construct(node: Node, values: Sequence[Any]) -> list[Any] | None:
    """The results of containers and casts, which have no kernel."""
    kind = node.kind
    if kind == "prim::ListConstruct":
        return [list(values)] if all(map(_is_plain, values)) or _is_list_of_tensors(list(values)) else None
    if kind == "prim::TupleConstruct":
        return [tuple(values)] if all(map(_is_plain, values)) else None
    if kind == "prim::DictConstruct":
        return [dict(zip(values[::2], values[1::2], strict=True))] if all(map(_is_plain, values)) and _are_keys(values[::2]) else None
    if kind == "prim::isinstance":
        return _instance(node, values[0])
    if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
        held = values[0] if values else None
        if not isinstance(held, (list, tuple)) or len(held) != len(node.outputs):
            return None
        return list(held) if _is_plain(held) or _is_list_of_tensors(held) else None
    if kind == "prim::TupleIndex" and len(values) == 2:
        held, index = values
        return [held[index]] if isinstance(held, tuple) and isinstance(index, int) and -len(held) <= index < len(held) else None
    if kind == "prim::unchecked_cast" and len(values) == 1 and _is_plain(values[0]):
        return [values[0]]
    if kind in ("aten::__is__", "aten::__isnot__") and len(values) == 2 and (values[0] is None or values[1] is None):
        return [(values[0] is values[1]) == (kind == "aten::__is__")]
    return None


def _are_keys(values: Sequence[Any]) -> bool:
    """Can the values be keys of a dict, all different? nan is different from itself."""
    return all(isinstance(value, (int, float, str)) and value == value for value in values) and len(set(values)) == len(values)


_SIMPLE = {int: "int", float: "float", bool: "bool", complex: "complex", str: "str", type(None): "None"}


def _instance(node: Node, value: Any) -> list[Any] | None:
    """Is a number, a string or None of one of some types?"""
    held = _SIMPLE.get(type(value))
    wanted = node.attributes["types"].types if "types" in node.attributes else None
    declared = node.inputs[0].type
    says_it = declared.key in (held, "None", "Any") or value is None or isinstance(declared, OptionalType | UnionType)
    if held is None or wanted is None or not says_it:
        return None
    if any(each.key == "Any" or isinstance(each, OptionalType | UnionType) for each in wanted):
        return None
    return [any(each.key == held for each in wanted)]


def _arguments(node: Node, schema: Schema, values: Sequence[Any]) -> list[Any]:
    known = dict(zip(node.inputs, values, strict=True))
    out: list[Any] = []
    for argument in node_arguments(node, schema):
        if isinstance(argument, Literal):
            out.append(argument.value)
        else:
            out.append([known[each] for each in argument] if isinstance(argument, list) else known[argument])
    return out


_functions: dict[str, Callable[[Sequence[Any]], Any]] = {}


def _function(name: str) -> Callable[[Sequence[Any]], Any]:
    """The function that runs the overload of that name: a kernel of the scalar family itself, else the general call, which needs NumPy."""
    if not _functions:
        from irtool.ops.kernels import scalar

        for op in scalar.table:
            for each in op.names:
                _functions[each] = _scalar_call(op.kernel)
    function = _functions.get(name)
    if function is None:
        from irtool.ops.call import call_op

        def general(values: Sequence[Any]) -> Any:
            return call_op(name, values)

        function = _functions[name] = general
    return function


def _scalar_call(kernel: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    def call(values: Sequence[Any]) -> Any:
        return kernel(None, *values)

    return call
