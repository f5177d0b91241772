"""Rules for dtype and number of dimensions of an operator's results, from those of its operands.

The rules are those of torch's shape propagation (torch/csrc/jit/passes/shape_analysis.cpp), except where that is wrong (`argmax` a float,
a quotient of integers an integer, `where` the dtype of one branch only): there the rules here are right, or say less.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.shape_facts import (
    DEFAULT,
    Facts,
    Rule,
    category,
    dimensioned,
    one,
    spread,
    summed,
    to_float,
    to_real,
    type_like,
    with_dims,
    with_dtype,
    with_sizes,
)
from irtool.analysis.shape_sizes import COMPARISONS, scalar_arithmetic
from irtool.ir.constants import NOT_CONSTANT
from irtool.ir.types import TensorType, tensor_type
from irtool.ops.facts import BOOL, KEEPS, OWN_POINTWISE
from irtool.ops.torch_lists import FIRST_OPERAND, UNARY, UNARY_FLOAT


def _first(facts: Facts) -> list[TensorType] | None:
    return one(dimensioned(facts.types[0]))


def _clamped(facts: Facts) -> list[TensorType] | None:
    """The type of the first operand, if no bound can promote it; torch's rule forgets that a bound 0 turns bools into integers."""
    dtype = facts.types[0].dtype
    return _first(facts) if dtype is None or category(dtype) >= 2 else None


def _first_float(facts: Facts) -> list[TensorType] | None:
    type = dimensioned(facts.types[0])
    return one(with_dtype(type, to_float(type.dtype)))


def _first_real(facts: Facts) -> list[TensorType] | None:
    type = dimensioned(facts.types[0])
    return one(with_dtype(type, to_real(type.dtype)))


def _spread(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, facts.promoted()))


def _spread_float(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, to_float(facts.promoted())))


def _spread_known(facts: Facts) -> list[TensorType] | None:
    """As `_spread`, if the dtypes of the first two operands are known."""
    return None if any(type.dtype is None for type in facts.types[:2]) else _spread(facts)


def _spread_bool(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, "bool"))


def _where(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, facts.agreed(facts.promoted(1), facts.types[1].dtype)))


def _dims(count: int | None, dtype: Callable[[str | None], str | None] = lambda name: name) -> Rule:
    """A fixed number of dimensions."""
    return lambda facts: one(with_dims(with_dtype(facts.types[0], dtype(facts.types[0].dtype)), count))


def _more(difference: int) -> Rule:
    """`difference` dimensions more than the operand."""
    def rule(facts: Facts) -> list[TensorType] | None:
        rank = facts.types[0].rank
        return None if rank is None or rank + difference < 0 else one(with_dims(facts.types[0], rank + difference))
    return rule


def _unsqueeze(facts: Facts) -> list[TensorType] | None:
    return one(facts.types[0]) if facts.types[0].rank is None else _more(1)(facts)


def _listed(name: str) -> Rule:
    """As many dimensions as the list argument `name` has elements."""
    def rule(facts: Facts) -> list[TensorType] | None:
        length = facts.length(name)
        return None if length is None else one(dimensioned(with_dims(facts.types[0], length)))
    return rule


def _reduced(dtype: Callable[[str | None], str | None], indices: bool = False) -> Rule:
    """One dimension less, or of size 1 if `keepdim`; indices: positions are a second result."""
    def rule(facts: Facts) -> list[TensorType] | None:
        rank, keep = facts.types[0].rank, facts.flag("keepdim")
        if facts.constant("dim") is None:
            dims = rank if keep else 0 if keep is False else None
            return one(with_dims(with_dtype(facts.types[0], dtype(facts.types[0].dtype)), dims))
        if rank is None or keep is None or facts.types[0].dtype is None:
            return None
        type = with_dtype(facts.types[0], facts.dtype(dtype(facts.types[0].dtype)))
        type = _with_one(type, facts.number("dim")) if keep and rank else with_dims(type, max(rank - 1, 0))
        return [type, with_dtype(type, "int64")] if indices else [type]
    return rule


def _with_one(type: TensorType, dim: int | None) -> TensorType:
    """The type with size 1 along a dimension."""
    sizes = list(type.shape or ())
    if dim is None or not -len(sizes) <= dim < len(sizes):
        return dimensioned(type)
    if sizes[dim] == 1:
        return type
    sizes[dim] = 1
    return with_sizes(type, sizes)


def _with_dtype(dtype: Callable[[str | None], str | None]) -> Rule:
    """The first operand's dimensions, in the dtype that the argument `dtype` asks for, by default `dtype` of the operand's."""
    def rule(facts: Facts) -> list[TensorType] | None:
        type = facts.types[0]
        return None if type.dtype is None or type.rank is None else one(with_dtype(type, facts.dtype(dtype(type.dtype))))
    return rule


def _total(dtype: Callable[[str | None], str | None]) -> Rule:
    """A result without dimensions, in the dtype that the argument `dtype` asks for."""
    return lambda facts: one(with_dims(with_dtype(facts.types[0], facts.dtype(dtype(facts.types[0].dtype))), 0))


def _matmul(facts: Facts) -> list[TensorType] | None:
    left, right = facts.types
    if left.rank is None or right.rank is None or 0 in (left.rank, right.rank):
        return None
    ranks = left.rank, right.rank
    if max(ranks) < 3:
        return one(with_dims(right if ranks == (2, 1) else left, sum(ranks) - 2))
    return one(type_like(left.dtype, (None,) * (max(ranks) - (1 in ranks)), left))


def _any_of(count: int) -> Rule:
    """`count` dimensions, as the first operand of known rank."""
    def rule(facts: Facts) -> list[TensorType] | None:
        ranked = next((type for type in facts.types if type.rank is not None), None)
        return None if ranked is None else one(with_dims(ranked, count))
    return rule


def _nothing(facts: Facts) -> list[TensorType] | None:
    return None


def _like(facts: Facts) -> list[TensorType] | None:
    type = facts.types[0]
    if type.rank is None or not _is_told(facts):
        return None
    device = facts.constant("device")
    return one(tensor_type(facts.dtype(type.dtype), (None,) * type.rank, None, None, device if isinstance(device, str) else type.device))


def _factory(facts: Facts) -> list[TensorType] | None:
    sizes = facts.ints("size")
    if sizes is None or not _is_told(facts):
        return None
    device = facts.constant("device")
    dtype = facts.dtype(None if facts.schema.kind == "aten::full" else "int64" if facts.schema.kind == "aten::randint" else DEFAULT)
    return one(tensor_type(dtype, (None,) * len(sizes), None, None, device if isinstance(device, str) else "cpu"))


def _is_told(facts: Facts) -> bool:
    """Are the arguments dtype, layout and device constants or absent?"""
    return not any(facts.value(name) is not None and facts.constant(name) is NOT_CONSTANT for name in ("dtype", "layout", "device"))


def _scalar_arithmetic(facts: Facts) -> list[TensorType] | None:
    types = scalar_arithmetic(facts)
    return None if types is None else one(dimensioned(types[0]))


def _tensor_scalar(facts: Facts) -> list[TensorType] | None:
    """A tensor and a number, whose category may be higher."""
    type = facts.types[0]
    return one(dimensioned(type)) if type.dtype is None else _scalar_arithmetic(facts)


def _scalar_power(facts: Facts) -> list[TensorType] | None:
    """A number to the power of a tensor."""
    type, number = dimensioned(facts.types[0]), facts.value("self")
    is_whole = number is not None and str(number.type.key) == "int"
    return one(type if type.dtype is not None and (category(type.dtype) > 1 or is_whole) else with_dtype(type, None))


def _power(facts: Facts) -> list[TensorType] | None:
    type = dimensioned(facts.types[0])
    whole = facts.value("exponent")
    if type.dtype is not None and category(type.dtype) < 2 and (whole is None or str(whole.type.key) != "int"):
        type = with_dtype(type, None)
    elif type.dtype == "bool":
        type = with_dtype(type, "int64")        # as the exponent
    return one(type)


def _detach(facts: Facts) -> list[TensorType] | None:
    type = facts.types[0]
    sizes = None if type.rank is None else (None,) * type.rank
    return one(type_like(type.dtype, sizes, type, None, False))


def _type_as_partial(facts: Facts) -> list[TensorType] | None:
    return one(with_dtype(facts.types[0], facts.types[1].dtype))


def _same(name: str | None) -> str | None:
    return name


def _truth(name: str | None) -> str | None:
    """The dtype of `any` and `all`: uint8 if the operand is, else bool."""
    return name if name in (None, "uint8") else "bool"


def _long(name: str | None) -> str | None:
    return "int64"


def _if_alike(rule: Rule) -> Rule:
    """A rule whose dtypes hold if all operands have the same."""
    def checked(facts: Facts) -> list[TensorType] | None:
        types = rule(facts)
        is_alike = len({type.dtype for type in facts.types}) == 1
        return types if is_alike or types is None else [with_dtype(type, None) for type in types]
    return checked


def own_pointwise(facts: Facts) -> list[TensorType] | None:
    """Of a pointwise operator that a user added: as its facts say; all operands are floating-point, or nothing is known of the dtype."""
    stated, dtypes = OWN_POINTWISE[facts.schema.name], {type.dtype for type in facts.types}
    first = facts.types[0].dtype if facts.types else None
    keeps = stated == KEEPS and len(dtypes) == 1 and first is not None and category(first) == 2
    return one(spread(facts.types, "bool" if stated == BOOL else first if keeps else None)) if stated else None


def _names(words: str) -> list[str]:
    return [f"aten::{word}" for word in words.split()]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_names(UNARY), _first), **dict.fromkeys(_names(UNARY_FLOAT), _first_float),
    **dict.fromkeys(_names(FIRST_OPERAND), _first), **dict.fromkeys(_names("clamp clamp_max clamp_min"), _clamped),
    **dict.fromkeys(_names("add.Tensor sub.Tensor mul.Tensor"), _spread), "aten::div.Tensor": _spread_float,
    **dict.fromkeys(_names("pow.Tensor_Tensor fmod.Tensor remainder.Tensor max.other min.other lerp.Scalar lerp.Tensor __and__.Tensor "
                           "__or__.Tensor __xor__.Tensor __lshift__.Tensor __rshift__.Tensor addcmul"), _spread_known),
    **dict.fromkeys(_names("atan2 addcdiv"), lambda facts: _spread_float(facts) if _spread_known(facts) else None),
    **dict.fromkeys([f"aten::{name}.{form}" for name in COMPARISONS for form in ("Tensor", "Scalar")], _spread_bool),
    **dict.fromkeys(_names("add.Scalar sub.Scalar mul.Scalar div.Scalar"), _scalar_arithmetic),
    **dict.fromkeys(_names("fmod.Scalar remainder.Scalar __and__.Scalar __or__.Scalar __xor__.Scalar __lshift__.Scalar __rshift__.Scalar"),
                    _tensor_scalar),
    "aten::pow.Tensor_Scalar": _power, "aten::pow.Scalar": _scalar_power,
    "aten::where.self": _where, "aten::detach": _detach, "aten::type_as": _type_as_partial,
    **dict.fromkeys(_names("expand_as reshape_as view_as"), lambda facts: one(with_dims(dimensioned(facts.types[0]), facts.types[1].rank))),
    **dict.fromkeys(_names("det logdet"), _more(-2)),
    "aten::dot": _dims(0), "aten::trace": _dims(0, summed), "aten::mvlgamma": _first_float,
    **dict.fromkeys(_names("norm.Scalar std var"), _dims(0, to_real)),
    "aten::dist": _if_alike(_dims(0, to_real)),
    **dict.fromkeys(_names("max min median nanmedian"), _dims(0)),
    **dict.fromkeys(_names("all any"), _dims(0, _truth)), "aten::abs": _first_real,
    **dict.fromkeys(_names("sum prod"), _total(summed)), "aten::mean": _total(_same),
    **dict.fromkeys(_names("argmax argmin"), _reduced(_long)), **dict.fromkeys(_names("all.dim any.dim"), _reduced(_truth)),
    "aten::prod.dim_int": _reduced(summed),
    **dict.fromkeys(_names("max.dim min.dim median.dim nanmedian.dim mode kthvalue"), _reduced(_same, True)),
    **dict.fromkeys(_names("cumsum cumprod"), _with_dtype(summed)),
    **dict.fromkeys(_names("softmax.int log_softmax.int"), _with_dtype(_same)),
    "aten::polygamma": lambda facts: one(with_dtype(facts.types[0], to_float(facts.types[0].dtype))),
    "aten::normal.Tensor_Tensor": lambda facts: one(facts.types[0]) if facts.types[0].shape == facts.types[1].shape else _spread(facts),
    "aten::mm": _any_of(2), "aten::bmm": _any_of(3), "aten::matmul": _matmul, "aten::mv": _any_of(1),
    "aten::addmm": _any_of(2), "aten::addmv": _any_of(1), "aten::addr": _if_alike(_any_of(2)), "aten::addbmm": _any_of(2),
    "aten::baddbmm": _any_of(3),
    "aten::masked_select": lambda facts: one(with_dims(facts.types[0], 1)),
    "aten::nonzero": lambda facts: one(with_dtype(with_dims(facts.types[0], 2 if facts.types[0].rank is not None else None), "int64")),
    "aten::select.int": _more(-1), "aten::diagonal": _more(-1), "aten::unsqueeze": _unsqueeze, "aten::unfold": _more(1),
    "aten::diag": lambda facts: {1: _more(1), 2: _more(-1)}.get(facts.types[0].rank or 0, _nothing)(facts),
    "aten::diagflat": lambda facts: one(with_dims(dimensioned(facts.types[0]), 2)) if facts.types[0].dtype is not None else None,
    "aten::take": lambda facts: None if facts.types[1].rank is None else one(with_dims(dimensioned(facts.types[0]), facts.types[1].rank)),
    "aten::embedding": lambda facts: None if facts.types[1].rank is None or facts.types[0].dtype is None else one(
        with_dims(dimensioned(facts.types[0]), facts.types[1].rank + 1)),
    "aten::view": _listed("size"), "aten::reshape": _listed("shape"), "aten::expand": _listed("size"), "aten::repeat": _listed("repeats"),
    "aten::as_strided": _listed("size"),
    **dict.fromkeys(_names("tanh_backward sigmoid_backward"), _spread),
    **dict.fromkeys(_names("empty_like full_like ones_like rand_like randn_like zeros_like randint_like randint_like.low_dtype"), _like),
    **dict.fromkeys(_names("zeros ones rand randn full empty.memory_format randint randint.low"), _factory),
}
"""Name of the overload -> rule. Types of operands may be incomplete."""
BY_TYPES = frozenset(name for name, rule in RULES.items()
                     if rule in (_first, _first_float, _first_real, _spread, _spread_float, _spread_bool, _spread_known))
"""Overloads whose rules depend only on the types of operands."""
