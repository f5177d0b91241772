"""Rules for sizes and strides of an operator's results, from operands of complete types.

torch infers sizes for a handful of operators (torch/csrc/jit/passes/shape_analysis.cpp): by formulas, or by running arithmetic and
comparisons on zeros. Here all are formulas. Where torch is wrong (`unsqueeze` counted from the end, products of matrices), the sizes here
are the right ones.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.shape_facts import DEFAULT, Facts, Rule, category, one, summed, to_float, type_like, with_dtype, with_sizes
from irtool.ir.shapes import broadcast, expanded_strides, pointwise_strides
from irtool.ir.types import TensorType, contiguous_strides

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _arithmetic(facts: Facts, dtype: Callable[[str | None], str | None] = lambda name: name) -> list[TensorType] | None:
    """Elementwise operators, with broadcasting."""
    shapes = [type.shape for type in facts.types]
    sizes = broadcast([shape for shape in shapes if shape is not None])
    promoted = dtype(facts.promoted())
    if sizes is None or promoted is None:
        return None
    strides = pointwise_strides(sizes, [(type.shape or (), type.strides or ()) for type in facts.types])
    return one(type_like(promoted, sizes, facts.types[0], strides, facts.requires_grad))


def scalar_arithmetic(facts: Facts) -> list[TensorType] | None:
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


def _product(facts: Facts) -> list[TensorType] | None:
    """Products of matrices, or of batches of matrices."""
    left, right = (type.shape or () for type in facts.types)
    if len(left) < 2 or len(left) != len(right) or left[:-2] != right[:-2]:
        return None
    sizes = (*left[:-1], right[-1])
    return one(type_like(facts.types[0].dtype, sizes, facts.types[0], contiguous_strides(sizes),
                    None if facts.schema.kind == "aten::mm" else facts.types[0].requires_grad))


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
    total, stated = 1, 1
    for size in type.shape:
        total *= size
    for size in sizes:
        stated *= 1 if size == -1 else size
    if -1 in sizes:
        if not stated:
            return None
        sizes[sizes.index(-1)] = total // stated
    return one(with_sizes(type, sizes)) if all(size >= 0 for size in sizes) else None


def _type_as(facts: Facts) -> list[TensorType] | None:
    type, other = facts.types
    return one(type if type.dtype == other.dtype else with_sizes(with_dtype(type, other.dtype), type.shape or ()))


def _expand(facts: Facts) -> list[TensorType] | None:
    type, sizes = facts.types[0], facts.ints("size")
    shape, strides = type.shape, type.strides or ()
    if sizes is None or shape is None or len(strides) != len(shape) or len(sizes) < len(shape):
        return None
    olds = (*[1] * (len(sizes) - len(shape)), *shape)
    expanded = [old if size == -1 else size for old, size in zip(olds, sizes, strict=True)]
    if any(size != old != 1 for old, size in zip(olds, expanded, strict=True)):
        return None
    return one(with_sizes(type, expanded, expanded_strides(shape, strides, expanded)))


def _index_select(facts: Facts) -> list[TensorType] | None:
    type, index, dim = facts.types[0], facts.types[1], facts.number("dim")
    sizes = list(type.shape or ())
    if dim is None or not 0 <= dim < len(sizes) or len(index.shape or ()) != 1:
        return None
    sizes[dim] = (index.shape or ())[0]
    return one(with_sizes(type, sizes))


def _quotient(facts: Facts) -> list[TensorType] | None:
    return _arithmetic(facts, to_float)


def _compare(facts: Facts) -> list[TensorType] | None:
    return _arithmetic(facts, lambda name: "bool" if name is not None else None)


COMPLETE: dict[str, Rule] = {
    **dict.fromkeys(("aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::pow.Tensor_Tensor", "aten::max.other",
                     "aten::min.other"), _arithmetic), "aten::div.Tensor": _quotient,
    **dict.fromkeys([f"aten::{name}.Tensor" for name in COMPARISONS], _compare),
    **dict.fromkeys([f"aten::{name}.Scalar" for name in ("add", "sub", "mul", "div")], scalar_arithmetic),
    "aten::pow.Tensor_Scalar": lambda facts: one(facts.types[0]) if category(str(facts.types[0].dtype)) > 1 else None,
    **dict.fromkeys(("aten::neg", "aten::sigmoid", "aten::tanh", "aten::logit"), lambda facts: one(with_sizes(
        with_dtype(facts.types[0], facts.types[0].dtype if facts.schema.kind == "aten::neg" else to_float(facts.types[0].dtype)),
        facts.types[0].shape or ()))),
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::matmul"), _product), "aten::t": _t, "aten::narrow": _narrow,
    "aten::sum": lambda facts: one(with_sizes(with_dtype(facts.types[0], facts.dtype(summed(facts.types[0].dtype))), ())),
    "aten::sum.dim_IntList": _sum_dims, "aten::squeeze.dim": _squeeze, "aten::unsqueeze": _unsqueeze, "aten::view": _view,
    "aten::type_as": _type_as, "aten::expand": _expand, "aten::index_select": _index_select,
}
"""Name of the overload -> rule. Types of operands are complete."""
RUN = frozenset(name for name, rule in COMPLETE.items() if rule in (_arithmetic, _quotient, _compare))
"""Operators that torch runs on zeros to learn the types of results."""
EXPANDED = frozenset(("aten::pow.Tensor_Tensor", "aten::max.other", "aten::min.other", *[f"aten::{name}.Tensor" for name in COMPARISONS]))
"""Operators in front of which torch inserts `expand` nodes that bring operands to one shape."""
