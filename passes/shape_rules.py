"""What is known of an operator's results from what is known of its operands: dtype, number of dimensions, for a few also sizes.

The rules are those of torch's shape propagation (passes/shape_analysis.cpp), which knows sizes for a handful of operators and the number of
dimensions for most; where that claims a dtype the operator does not give (`argmax` a float, a quotient of integers an integer), the
dtype here is the right one, or none.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.ir.constants import NOT_CONSTANT
from irtool.ir.shapes import broadcast
from irtool.ir.types import TensorType, contiguous_strides, tensor_type
from irtool.passes.shape_facts import (
    DEFAULT,
    Facts,
    category,
    dimensioned,
    made,
    one,
    promoted,
    spread,
    summed,
    to_float,
    with_dims,
    with_dtype,
    with_sizes,
)

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")

Rule = Callable[[Facts], "list[TensorType] | None"]
"""The types of the tensors among the results; None where it cannot tell."""


# -- operators of which sizes are known
def _arithmetic(facts: Facts, dtype: Callable[[str | None], str | None] = lambda name: name) -> list[TensorType] | None:
    """Floating-point operands, dense: the result is dense too."""
    shapes = [type.shape for type in facts.types]
    known = [shape for shape in shapes if shape is not None]
    sizes = broadcast(known)
    found = dtype(promoted(facts.types))
    if sizes is None or found is None or any(type.dtype is None or category(type.dtype) < 2 for type in facts.types):
        return None
    strides = contiguous_strides(sizes)
    if any(type.strides not in (None, contiguous_strides(type.shape or ())) for type in facts.types):
        full = [type for type in facts.types if type.shape == sizes and 0 not in (type.strides or ())]
        if not full or any(type.strides != full[0].strides for type in full):
            return None
        strides = full[0].strides or ()
    return one(made(found, sizes, facts.types[0], strides, facts.node.output.type.requires_grad
                    if isinstance(facts.node.output.type, TensorType) else None))


def _scalar_arithmetic(facts: Facts) -> list[TensorType] | None:
    type, other = facts.types[0], facts.value("other")
    if type.dtype is None or other is None:
        return None
    number = {"int": 1, "float": 2, "complex": 3, "bool": 0}.get(str(other.type.key))
    if number is None:
        return None
    if number > category(type.dtype):
        return one(with_dtype(type, DEFAULT if number == 2 else "int64" if number == 1 and facts.schema.kind != "aten::div" else
                              DEFAULT if number == 1 else None))
    if facts.schema.kind == "aten::div":
        return one(with_dtype(type, to_float(type.dtype)))
    return one(type)


def _mm(facts: Facts) -> list[TensorType] | None:
    left, right = facts.types
    if len(left.shape or ()) != 2 or len(right.shape or ()) != 2:
        return None
    assert left.shape is not None and right.shape is not None
    sizes = (left.shape[0], right.shape[1])
    return one(made(left.dtype, sizes, left, contiguous_strides(sizes)))


def _t(facts: Facts) -> list[TensorType] | None:
    type = facts.types[0]
    if len(type.shape or ()) != 2 or type.strides is None:
        return None
    return one(with_sizes(type, (type.shape or ())[::-1], type.strides[::-1]))


def _narrow(facts: Facts) -> list[TensorType] | None:
    type, dim, length = facts.types[0], facts.number("dim"), facts.number("length")
    sizes = list(type.shape or ())
    if dim is None or length is None or not 0 <= dim < len(sizes):
        return None
    sizes[dim] = length
    return one(with_sizes(type, sizes, type.strides))


def _sum_dims(facts: Facts) -> list[TensorType] | None:
    dims, keep = facts.ints("dim"), facts.flag("keepdim")
    type = facts.types[0]
    sizes = list(type.shape or ())
    if dims is None or keep is None or not dims:
        return None
    for dim in reversed(dims):
        if not 0 <= dim < len(sizes):
            return None
        if keep:
            sizes[dim] = 1
        else:
            del sizes[dim]
    return one(with_sizes(with_dtype(type, facts.dtype(summed(type.dtype))), sizes))


def _squeeze(facts: Facts) -> list[TensorType] | None:
    type, dim = facts.types[0], facts.number("dim")
    sizes, strides = list(type.shape or ()), list(type.strides or ())
    dim = dim + len(sizes) if dim is not None and dim < 0 else dim
    if dim is None or not 0 <= dim < len(sizes) or len(strides) != len(sizes):
        return None
    if sizes[dim] == 1:
        del sizes[dim], strides[dim]
    return one(with_sizes(type, sizes, strides))


def _unsqueeze(facts: Facts) -> list[TensorType] | None:
    type, dim = facts.types[0], facts.number("dim")
    sizes, strides = list(type.shape or ()), list(type.strides or ())
    dim = dim + len(sizes) + 1 if dim is not None and dim < 0 else dim
    if dim is None or not 0 <= dim <= len(sizes) or len(strides) != len(sizes):
        return None
    strides.insert(dim, 1 if dim == len(sizes) else sizes[dim] * strides[dim])
    sizes.insert(dim, 1)
    return one(with_sizes(type, sizes, strides))


def _view(facts: Facts) -> list[TensorType] | None:
    type, sizes = facts.types[0], facts.ints("size")
    if sizes is None or type.shape is None or sizes.count(-1) > 1:
        return None
    total, given = 1, 1
    for size in type.shape:
        total *= size
    for size in sizes:
        given *= 1 if size == -1 else size
    if -1 in sizes:
        if not given:
            return None
        sizes[sizes.index(-1)] = total // given
    return one(with_sizes(type, sizes)) if all(size >= 0 for size in sizes) else None


def _type_as(facts: Facts) -> list[TensorType] | None:
    type, other = facts.types
    return one(type if type.dtype == other.dtype else with_sizes(with_dtype(type, other.dtype), type.shape or ()))


def _expand(facts: Facts) -> list[TensorType] | None:
    type, sizes = facts.types[0], facts.ints("size")
    shape, strides = type.shape, type.strides or ()
    if sizes is None or shape is None or len(strides) != len(shape) or len(sizes) < len(shape):
        return None
    ahead = len(sizes) - len(shape)
    found: list[int] = []
    steps: list[int] = []
    for place in reversed(range(len(sizes))):
        old = shape[place - ahead] if place >= ahead else 1
        step = strides[place - ahead] if place >= ahead else (found[0] * steps[0] if found else 1)
        size = old if sizes[place] == -1 else sizes[place]
        if size != old and old != 1:
            return None
        found.insert(0, size)
        steps.insert(0, 0 if size != old else step)
    return one(with_sizes(type, found, steps))


def _index_select(facts: Facts) -> list[TensorType] | None:
    type, index, dim = facts.types[0], facts.types[1], facts.number("dim")
    sizes = list(type.shape or ())
    if dim is None or not 0 <= dim < len(sizes) or len(index.shape or ()) != 1:
        return None
    sizes[dim] = (index.shape or ())[0]
    return one(with_sizes(type, sizes))


def _compare(facts: Facts) -> list[TensorType] | None:
    return _arithmetic(facts, lambda name: "bool" if name is not None else None)


COMPLETE: dict[str, Rule] = {
    **dict.fromkeys(("aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor", "aten::pow.Tensor_Tensor",
                     "aten::max.other", "aten::min.other"), _arithmetic),
    **dict.fromkeys([f"aten::{name}.Tensor" for name in COMPARISONS], _compare),
    **dict.fromkeys([f"aten::{name}.Scalar" for name in ("add", "sub", "mul", "div")], _scalar_arithmetic),
    "aten::pow.Tensor_Scalar": lambda facts: one(facts.types[0]) if category(str(facts.types[0].dtype)) > 1 else None,
    **dict.fromkeys(("aten::neg", "aten::sigmoid", "aten::tanh", "aten::logit"), lambda facts: one(with_sizes(
        with_dtype(facts.types[0], facts.types[0].dtype if facts.schema.kind == "aten::neg" else to_float(facts.types[0].dtype)),
        facts.types[0].shape or ()))),
    "aten::mm": _mm, "aten::t": _t, "aten::narrow": _narrow,
    "aten::sum": lambda facts: one(with_sizes(with_dtype(facts.types[0], facts.dtype(summed(facts.types[0].dtype))), ())),
    "aten::sum.dim_IntList": _sum_dims, "aten::squeeze.dim": _squeeze, "aten::unsqueeze": _unsqueeze, "aten::view": _view,
    "aten::type_as": _type_as, "aten::expand": _expand, "aten::index_select": _index_select,
}
"""By name of the overload; every operand is complete."""
EXPANDED = frozenset(("aten::pow.Tensor_Tensor", "aten::max.other", "aten::min.other", *[f"aten::{name}.Tensor" for name in COMPARISONS]))
"""Operators whose operands are expanded to one shape, in so many words."""


# -- operators of which the number of dimensions is known
def _first(facts: Facts) -> list[TensorType] | None:
    return one(dimensioned(facts.types[0]))


def _first_float(facts: Facts) -> list[TensorType] | None:
    type = dimensioned(facts.types[0])
    return one(with_dtype(type, to_float(type.dtype)))


def _spread(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, promoted(facts.types)))


def _spread_float(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, to_float(promoted(facts.types))))


def _spread_bool(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, "bool"))


def _where(facts: Facts) -> list[TensorType] | None:
    return one(spread(facts.types, promoted(facts.types[1:])))


def _dims(count: int | None, dtype: Callable[[str | None], str | None] = lambda name: name, of: int = 0) -> Rule:
    """A fixed number of dimensions."""
    return lambda facts: one(with_dims(with_dtype(facts.types[of], dtype(facts.types[of].dtype)), count))


def _more(difference: int, of: int = 0, like: int = 0) -> Rule:
    """So many dimensions more than an operand has."""
    def rule(facts: Facts) -> list[TensorType] | None:
        rank = facts.types[of].rank
        if rank is not None and rank + difference < 0:
            return None
        return one(with_dims(facts.types[like], None if rank is None else rank + difference))
    return rule


def _listed(name: str) -> Rule:
    """As many dimensions as a list has elements."""
    def rule(facts: Facts) -> list[TensorType] | None:
        length = facts.length(name)
        return None if length is None else one(dimensioned(with_dims(facts.types[0], length)))
    return rule


def _reduced(dtype: Callable[[str | None], str | None], indices: bool = False) -> Rule:
    """One dimension less, or none where it is kept; with positions as a second result."""
    def rule(facts: Facts) -> list[TensorType] | None:
        rank, keep = facts.types[0].rank, facts.flag("keepdim")
        if facts.constant("dim") is None:
            return one(with_dims(with_dtype(facts.types[0], dtype(facts.types[0].dtype)), 0))
        if rank is None or keep is None or not rank and not keep:
            return None
        found = with_dims(with_dtype(facts.types[0], facts.dtype(dtype(facts.types[0].dtype))), rank if keep else rank - 1)
        return [found, with_dtype(found, "int64")] if indices else [found]
    return rule


def _with_dtype(dtype: Callable[[str | None], str | None]) -> Callable[[Facts], list[TensorType]]:
    """The same dimensions in the dtype asked for."""
    return lambda facts: one(with_dtype(facts.types[0], facts.dtype(dtype(facts.types[0].dtype))))


def _matmul(facts: Facts) -> list[TensorType] | None:
    left, right = facts.types
    if left.rank is None or right.rank is None:
        return None
    ranks = left.rank, right.rank
    if ranks == (1, 1):
        return one(with_dims(left, 0))
    if ranks in ((2, 1), (1, 2), (2, 2)):
        return one(with_dims(right if ranks == (2, 1) else left, 1 if 1 in ranks else 2))
    if 0 in ranks:
        return None
    return one(made(left.dtype, (None,) * (max(ranks) - (1 in ranks)), left))


def _any_of(count: int) -> Rule:
    """So many dimensions, of the first operand with a known type."""
    def rule(facts: Facts) -> list[TensorType] | None:
        found = next((type for type in facts.types if type.dtype is not None), None)
        return None if found is None else one(with_dims(found, count))
    return rule


def _added(count: int) -> Rule:
    """The same, of a product that is added to something."""
    def rule(facts: Facts) -> list[TensorType] | None:
        found = _any_of(count)(facts)
        return None if found is None else one(dimensioned(found[0]))
    return rule


def _sum_to_size(facts: Facts) -> list[TensorType] | None:
    size = facts.value("size")
    length = facts.length("size")
    if length is None and size is not None and size.node.kind == "aten::size" and len(size.node.inputs) == 1:
        whole = size.node.inputs[0].type
        length = whole.rank if isinstance(whole, TensorType) else None
    return None if length is None else one(dimensioned(with_dims(facts.types[0], length)))


def _nothing(facts: Facts) -> list[TensorType] | None:
    return None


def _like(facts: Facts) -> list[TensorType] | None:
    type = facts.types[0]
    if type.rank is None or type.dtype is None:
        return None
    return one(made(facts.dtype(type.dtype), (None,) * type.rank, type))


def _factory(facts: Facts) -> list[TensorType] | None:
    sizes = facts.ints("size")
    if sizes is None or facts.constant("device") is NOT_CONSTANT:
        return None
    device = facts.constant("device")
    dtype = facts.dtype(None if facts.schema.kind == "aten::full" else "int64" if facts.schema.kind == "aten::randint" else DEFAULT)
    return one(tensor_type(dtype, (None,) * len(sizes), None, None, device if isinstance(device, str) else "cpu"))


def _tensor_scalar(facts: Facts) -> list[TensorType] | None:
    """With a number: the category of the number may be higher."""
    type, other = facts.types[0], facts.value("other")
    if type.dtype is None or other is None:
        return one(dimensioned(type)) if facts.schema.kind != "aten::div" and type.dtype is None else None
    found = _scalar_arithmetic(facts) if facts.schema.positions.get("other") is not None else None
    return None if found is None else one(dimensioned(found[0]))


def _power(facts: Facts) -> list[TensorType] | None:
    type = dimensioned(facts.types[0])
    whole = facts.value("exponent")
    if type.dtype is not None and category(type.dtype) < 2 and (whole is None or str(whole.type.key) != "int"):
        type = with_dtype(type, None)
    return one(type)


def _detach(facts: Facts) -> list[TensorType] | None:
    type = facts.types[0]
    sizes = None if type.rank is None else (None,) * type.rank
    return one(made(type.dtype, sizes, type, None, False))


def _type_as_partial(facts: Facts) -> list[TensorType] | None:
    return one(with_dtype(facts.types[0], facts.types[1].dtype))


UNARY = """
alias celu clamp_max clamp_min clone contiguous dropout elu feature_alpha_dropout feature_dropout flip gelu
glu hardshrink hardtanh leaky_relu neg permute pin_memory relu relu6 rot90 rrelu selu slice.Tensor softplus softshrink
t threshold transpose.int tril triu alpha_dropout bernoulli bernoulli.p narrow ceil floor round trunc frac sign pinverse inverse
normal.Tensor_float log_sigmoid hardswish mvlgamma abs clamp clamp.Tensor
"""
UNARY_FLOAT = """
acos asin atan cos cosh digamma erf erfc erfinv exp expm1 lgamma log log10 log1p log2 logit reciprocal rsqrt sigmoid sin sinh sqrt tan tanh
"""
FIRST = """
batch_norm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution _convolution
_convolution.deprecated adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d
max_pool3d max_unpool2d max_unpool3d reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
replication_pad3d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
prelu bilinear hardswish_
"""


def _same(name: str | None) -> str | None:
    return name


def _bool(name: str | None) -> str | None:
    return "bool"


def _long(name: str | None) -> str | None:
    return "int64"


def _names(words: str) -> list[str]:
    return [f"aten::{word}" for word in words.split()]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_names(UNARY), _first), **dict.fromkeys(_names(UNARY_FLOAT), _first_float), **dict.fromkeys(_names(FIRST), _first),
    **dict.fromkeys(_names("add.Tensor sub.Tensor mul.Tensor pow.Tensor_Tensor fmod.Tensor remainder.Tensor "
                           "lerp.Scalar lerp.Tensor __and__.Tensor __or__.Tensor __xor__.Tensor __lshift__.Tensor __rshift__.Tensor "
                           "addcmul"), _spread),
    **dict.fromkeys(_names("div.Tensor atan2 addcdiv"), _spread_float),
    **dict.fromkeys([f"aten::{name}.{form}" for name in COMPARISONS for form in ("Tensor", "Scalar")], _spread_bool),
    **dict.fromkeys(_names("add.Scalar sub.Scalar mul.Scalar div.Scalar fmod.Scalar remainder.Scalar __and__.Scalar __or__.Scalar "
                           "__xor__.Scalar __lshift__.Scalar __rshift__.Scalar"), _tensor_scalar),
    "aten::pow.Tensor_Scalar": _power, "aten::pow.Scalar": lambda facts: one(dimensioned(facts.types[0]))
    if category(facts.types[0].dtype or "bool") > 1 else None,
    **dict.fromkeys(_names("max.other min.other"), lambda facts: _spread(facts) if promoted(facts.types) is not None else None),
    "aten::where.self": _where, "aten::detach": _detach, "aten::type_as": _type_as_partial,
    **dict.fromkeys(_names("expand_as reshape_as view_as"), lambda facts: one(with_dims(dimensioned(facts.types[0]), facts.types[1].rank))),
    **dict.fromkeys(_names("det logdet dot dist norm.Scalar trace"), _dims(0)),
    **dict.fromkeys(_names("max min median nanmedian"), _dims(0)),
    **dict.fromkeys(_names("std var"), _dims(0)), **dict.fromkeys(_names("all any"), _dims(0, _bool)),
    **dict.fromkeys(_names("sum prod"), lambda facts: one(with_dims(_with_dtype(summed)(facts)[0], 0))),
    "aten::mean": lambda facts: one(with_dims(_with_dtype(_same)(facts)[0], 0)),
    **dict.fromkeys(_names("argmax argmin"), _reduced(_long)), **dict.fromkeys(_names("all.dim any.dim"), _reduced(_bool)),
    "aten::prod.dim_int": _reduced(summed),
    **dict.fromkeys(_names("max.dim min.dim median.dim nanmedian.dim mode kthvalue"), _reduced(_same, True)),
    **dict.fromkeys(_names("cumsum cumprod"), _with_dtype(summed)),
    **dict.fromkeys(_names("softmax.int log_softmax.int"), _with_dtype(_same)),
    "aten::polygamma": lambda facts: one(with_dtype(facts.types[0], to_float(facts.types[0].dtype))),
    "aten::normal.Tensor_Tensor": lambda facts: one(facts.types[0]),
    "aten::mm": _any_of(2), "aten::bmm": _any_of(3), "aten::matmul": _matmul, "aten::mv": _any_of(1),
    "aten::addmm": _added(2), "aten::addmv": _added(1), "aten::addr": _added(2), "aten::addbmm": _added(2), "aten::baddbmm": _added(3),
    "aten::masked_select": lambda facts: one(with_dims(facts.types[0], 1)),
    "aten::nonzero": lambda facts: one(with_dtype(with_dims(facts.types[0], 2 if facts.types[0].rank is not None else None), "int64")),
    "aten::select.int": _more(-1), "aten::diagonal": _more(-1), "aten::unsqueeze": _more(1), "aten::unfold": _more(1),
    "aten::diag": lambda facts: {1: _more(1), 2: _more(-1)}.get(facts.types[0].rank or 0, _nothing)(facts),
    "aten::diagflat": lambda facts: one(with_dims(dimensioned(facts.types[0]), 2)) if facts.types[0].dtype is not None else None,
    "aten::take": lambda facts: None if facts.types[1].rank is None else one(with_dims(dimensioned(facts.types[0]), facts.types[1].rank)),
    "aten::embedding": lambda facts: None if facts.types[1].rank is None or facts.types[0].dtype is None else one(
        with_dims(dimensioned(facts.types[0]), facts.types[1].rank + 1)),
    "aten::view": _listed("size"), "aten::reshape": _listed("shape"), "aten::expand": _listed("size"), "aten::repeat": _listed("repeats"),
    "aten::as_strided": _listed("size"), "aten::sum_to_size": _sum_to_size,
    **dict.fromkeys(_names("tanh_backward sigmoid_backward"), _spread),
    **dict.fromkeys(_names("empty_like full_like ones_like rand_like randn_like zeros_like randint_like randint_like.low_dtype"), _like),
    **dict.fromkeys(_names("zeros ones rand randn full empty.memory_format randint randint.low"), _factory),
}
"""By name of the overload; any operand may be known or not."""
BY_TYPES = frozenset(name for name, rule in RULES.items() if rule in (_first, _first_float, _spread, _spread_float, _spread_bool))
"""Overloads whose rules look at nothing but the types of operands."""
