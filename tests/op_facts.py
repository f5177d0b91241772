"""Calls whose results are facts about torch that NumPy would get differently (dtype, ties, nan, empty, errors): title, op, arguments.

What torch answers is recorded in data/op_facts.json by `python tests/side_by_side.py`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

inf, nan = float("inf"), float("nan")
FACTS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = []


def b(*values: Any) -> np.ndarray:
    return np.array(values, bool)


def u1(*values: Any) -> np.ndarray:
    return np.array(values, np.uint8)


def i4(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def i8(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def f2(*values: Any) -> np.ndarray:
    return np.array(values, np.float16)


def f4(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def f8(*values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def c8(*values: Any) -> np.ndarray:
    return np.array(values, np.complex64)


def zero_dim(value: Any, dtype: str) -> np.ndarray:
    return np.array(value, dtype)


def empty(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def fact(title: str, name: str, *args: Any, **named: Any) -> None:
    FACTS.append((title, "aten::" + name, args, named))


FLOAT32, FLOAT64, INT32, INT64, BOOL = (np.dtype(name) for name in ("float32", "float64", "int32", "int64", "bool"))
matrix = f4(1, 5, 5, 2, 0, 2).reshape(2, 3)

# promotion
fact("int / int is float32", "div.Tensor", i8(1, 2), i8(2, 4))
fact("int / bool is float32", "div.Tensor", i8(1, 2), b(1, 0))
fact("float32 with int64 stays float32", "add.Tensor", f4(1, 2), i8(1, 2), alpha=1)
fact("float16 with int64 stays float16", "mul.Tensor", f2(1, 2), i8(3, 4))
fact("complex64 with int64 stays complex64", "mul.Tensor", c8(1, 2j), i8(3, 4))
fact("a 0-dim float64 does not widen float32", "add.Tensor", f4(1, 2), zero_dim(1.5, "float64"))
fact("a 0-dim int64 does not widen int32", "add.Tensor", i4(1, 2), zero_dim(3, "int64"))
fact("a 0-dim float64 decides over int64", "add.Tensor", i8(1, 2), zero_dim(1.5, "float64"))
fact("int64 and a float number is float32", "mul.Scalar", i8(1, 2), 2.5)
fact("uint8 and 300 wraps", "add.Scalar", u1(3, 200), 300)
fact("bool + bool is or", "add.Tensor", b(1, 0), b(1, 0))
fact("bool - bool is refused", "sub.Tensor", b(1, 0), b(1, 0))
fact("float - bool is refused", "sub.Tensor", f4(1, 0), b(1, 0))
fact("-bool is refused", "neg", b(1, 0))
fact("a float alpha of whole numbers is refused", "add.Tensor", i8(1), i8(1), alpha=2.5)
fact("a bool alpha of whole numbers is refused", "add.Tensor", i8(1), i8(1), alpha=True)
fact("where of int64 and float32", "where.self", b(1, 0), i8(1, 2), f4(3, 4))
fact("where of two numbers", "where.Scalar", b(1, 0), 1, 2.5)
fact("where needs a bool condition", "where.self", i8(1, 0), f4(1, 2), f4(3, 4))
fact("sin of int64 is float32", "sin", i8(0, 1))
fact("exp of bool is float32", "exp", b(0, 1))
fact("float_power is float64", "float_power.Tensor_Scalar", f4(2, 3), 2)
fact("shapes that do not broadcast", "add.Tensor", f4(1, 2), f4(1, 2, 3))
fact("float16 keeps a small factor exact", "mul.Scalar", f2(1000), 1e-6)

# quotients, remainders, powers
fact("trunc division of ints", "div.Tensor_mode", i8(-7, 7, -7), i8(2, -2, -2), rounding_mode="trunc")
fact("floor division of ints", "div.Tensor_mode", i8(-7, 7, -7), i8(2, -2, -2), rounding_mode="floor")
fact("no rounding mode", "div.Tensor_mode", i8(-7), i8(2), rounding_mode=None)
fact("floor division of floats", "floor_divide", f4(-7.5, 7.5, 1, inf), f4(2, -2, 0, 2))
fact("int // 0 raises", "floor_divide", i8(1), i8(0))
fact("int % 0 raises", "remainder.Scalar", i8(1), 0)
fact("fmod by 0 raises", "fmod.Tensor", i8(1), i8(0))
fact("float % 0 is nan", "remainder.Scalar", f4(1, -1), 0)
fact("remainder has the divisor's sign", "remainder.Tensor", f4(-7, 7, -7), f4(3, -3, inf))
fact("fmod has the dividend's sign", "fmod.Tensor", i8(-7, 7), i8(3, -3))
fact("int ** negative tensor", "pow.Tensor_Tensor", i8(2, 1, -1, -1, 0), i8(-1, -2, -2, -3, -1))
fact("int ** negative number is refused", "pow.Tensor_Scalar", i8(2), -1)
fact("bool ** bool is refused", "pow.Tensor_Tensor", b(1, 0), b(1, 0))
fact("bool ** 2 is int64", "pow.Tensor_Scalar", b(1, 0), 2)
fact("nan ** 0 is 1", "pow.Tensor_Scalar", f4(nan, 2), 0)
fact("a number ** ints", "pow.Scalar", 2, i8(0, 3))
fact("square of bool is int64", "square", b(1, 0))
fact("reciprocal of ints", "reciprocal", i8(4, 0))
fact("shifts by 64 and by -1", "bitwise_left_shift.Tensor", i8(5, 5, 5), i8(1, 64, -1))
fact("right shifts beyond the width", "bitwise_right_shift.Tensor", i8(-5, 5, -5), i8(64, 64, -1))
fact("bit operators refuse floats", "bitwise_and.Tensor", f4(1), f4(1))
fact("gcd of negatives", "gcd", i8(-4, 0), i8(6, -5))

# signs, rounding, nan
fact("sign of nan is 0", "sign", f4(nan, -0.0, -3, inf))
fact("sgn of complex", "sgn", c8(3 + 4j, 0))
fact("sign of complex is refused", "sign", c8(1j))
fact("heaviside of nan is 0", "heaviside", f4(nan, 0, 1, -1), f4(7, 7, 7, 7))
fact("angle of -0.0 is 0", "angle", f4(-0.0, -1, 1, nan))
fact("halves go to even", "round", f4(0.5, 1.5, 2.5, -0.5))
fact("round to decimals", "round.decimals", f4(1.25, -1.35, 123.456), decimals=1)
fact("round before the point", "round.decimals", f4(125, 135), decimals=-1)
fact("maximum takes nan", "maximum", f4(nan, 1), f4(1, nan))
fact("fmax drops nan", "fmax", f4(nan, 1, nan), f4(1, nan, nan))
fact("clamp with min above max", "clamp", f4(0, 5, nan), 3, 1)
fact("clamp by nan", "clamp", f4(0, 5), nan, None)
fact("clamp of ints by a float", "clamp", i8(0, 5), 0.5, None)
fact("clamp without bounds is refused", "clamp", f4(1), None, None)
fact("nan_to_num", "nan_to_num", f4(nan, inf, -inf, 1))
fact("logit clamps", "logit", f4(-1, 0.5, 2), 0.1)
fact("xlogy of 0 and nan", "xlogy.Tensor", f4(0, 0, 1), f4(0, nan, 2))
fact("isclose asks for one dtype", "isclose", f4(1), f8(1))
fact("isclose of infinities and nan", "isclose", f4(inf, nan, 1), f4(inf, nan, 1.000001), equal_nan=True)
fact("logical_and of nan", "logical_and", f4(nan, 0), f4(1, 1))
fact("lt of complex is refused", "lt.Tensor", c8(1), c8(2))
fact("eq of int and float", "eq.Scalar", i8(2, 3), 2.5)
fact("floats go to ints as on x86-64", "type_as", f4(300, -1, 3e9, 2.9, nan), u1(0))
fact("floats out of range of int32", "type_as", f8(3e9, -inf), i4(0))
fact("complex to real", "type_as", c8(1 + 2j), f4(0))

# reductions
fact("sum of bool is int64", "sum", b(1, 1, 0))
fact("sum of uint8 is int64", "sum.dim_IntList", u1(200, 200).reshape(1, 2), [1], True)
fact("sum over [] is over all", "sum.dim_IntList", matrix, [])
fact("sum casts first", "sum", f4(1.9, 1.9), dtype=INT64)
fact("sum of nothing", "sum", empty(0))
fact("sum of a 0-dim over dim -1", "sum.dim_IntList", zero_dim(3, "float32"), [-1], True)
fact("a dim named twice", "sum.dim_IntList", matrix, [0, -2])
fact("a dim out of range", "sum.dim_IntList", matrix, [2])
fact("mean of ints is refused", "mean", i8(1, 2))
fact("mean of nothing is nan", "mean", empty(0))
fact("nansum and nan", "nansum", f4(nan, 1), [0])
fact("prod of ints", "prod", i4(3, -2))
fact("any of uint8 is uint8", "any", u1(0, 2))
fact("all over dims [] changes no shape", "all.dims", matrix, [])
fact("max of ties is the first", "max.dim", matrix, 1)
fact("max and nan", "max.dim", f4(1, nan, 3, nan), 0)
fact("max of a 0-dim", "max.dim", zero_dim(3, "float32"), 0)
fact("max of nothing is refused", "max", empty(0))
fact("amax over an empty dim is refused", "amax", empty(0, 3), [0])
fact("amax over a full dim of nothing", "amax", empty(0, 3), [1])
fact("argmax without dim keeps dims", "argmax", matrix, None, True)
fact("argmax of bool is refused", "argmax", b(1, 0))
fact("logsumexp of -inf", "logsumexp", f4(-inf, -inf), [0])
fact("logsumexp of ints", "logsumexp", i8(1, 2), [0])
fact("var of one is nan", "var", f4(1))
fact("var with a fractional correction", "var.correction", matrix, [1], correction=0.5)
fact("std of ints is refused", "std", i8(1, 2))
fact("var_mean of complex", "var_mean", c8(1 + 2j, 3))
fact("norm of order 0, 3 and inf", "norm.ScalarOpt_dim", matrix, 3, [1])
fact("norm inf of nothing is refused", "norm.Scalar", empty(0), inf)
fact("cov of ints", "cov", i8(1, 4, 2))
fact("corrcoef", "corrcoef", matrix)
fact("sum_to_size", "sum_to_size", matrix, [2, 1])
fact("sum_to_size that cannot be", "sum_to_size", matrix, [2])

# scans
fact("cumsum of uint8 is int64", "cumsum", u1(200, 200), 0)
fact("cummax takes the last of equals", "cummax", f4(1, 3, 3, 2, nan, 5), 0)
fact("cummin of a 0-dim", "cummin", zero_dim(3, "float32"), 0)
fact("logcumsumexp", "logcumsumexp", f4(-inf, 0, 100), 0)
fact("diff of bools", "diff", b(1, 0, 0))
fact("diff beyond the length", "diff", f4(1, 2), 5)
fact("trapezoid of ints", "trapezoid.dx", i8(1, 2, 4))
fact("gradient", "gradient.scalarint", f4(1, 4, 9, 16), spacing=2)

# order
fact("descending sort is stable", "sort.stable", f4(1, 2, 1, 2), stable=True, descending=True)
fact("nan is the largest", "sort", f4(nan, 1, inf), 0, False)
fact("sort of a 0-dim", "sort", zero_dim(3, "float32"))
fact("median is the lower middle", "median", f4(4, 1, 3, 2))
fact("median and nan", "median", f4(4, nan, 3))
fact("nanmedian skips nan", "nanmedian", f4(4, nan, 3))
fact("median of no float is nan", "median", empty(0))
fact("topk out of range", "topk", f4(1, 2), 3)
fact("kthvalue", "kthvalue", f4(4, 1, 3), 2)
fact("mode is the smallest of the most frequent", "mode", i8(3, 1, 3, 1, 2))
fact("quantile", "quantile", matrix, f4(0.2, 0.5), 1, True)
fact("quantile of ints is refused", "quantile.scalar", i8(1, 2), 0.5)
fact("nanquantile", "nanquantile.scalar", f4(nan, 1, 3), 0.5)
fact("unique keeps every nan", "_unique2", f4(nan, 1, nan, 1), True, True, True)
fact("what is not asked of unique is empty", "_unique2", i8(3, 1, 3))
fact("unique_consecutive", "unique_consecutive", i8(1, 1, 2, 1), True, True)
fact("unique_dim", "unique_dim", i8(2, 1, 1, 0, 2, 1).reshape(3, 2), 0)
fact("searchsorted and nan", "searchsorted.Tensor", f4(1, 2, nan), f4(2, nan, 5))
fact("bucketize", "bucketize.Tensor", f4(1, 2, 3), f4(1, 2), right=True)
fact("bincount with weights", "bincount", i8(1, 3, 1), f4(0.5, 1, 2))
fact("bincount refuses negatives", "bincount", i8(-1))
fact("histc", "histc", f4(1, 2, 2, 5), 4, 1, 5)
fact("histogram of a density", "histogram.bin_ct", f4(1, 2, 2, 5), 2, density=True)

# factories
fact("arange of ints is int64", "arange", 3)
fact("arange of a float is float32", "arange", 2.5)
fact("arange backwards", "arange.start_step", 5, 0, -2)
fact("arange that never ends", "arange.start", 3, 0)
fact("linspace of ints is float32", "linspace", 0, 10, 5)
fact("linspace in ints truncates", "linspace", 0, 10, 4, dtype=INT64)
fact("full of bool", "full", [2], True)
fact("full of a float", "full", [2], 1.5)
fact("full out of range", "full", [1], 300, dtype=np.dtype("uint8"))
fact("full_like keeps the dtype", "full_like", i8(1, 2), 2.7)
fact("scalar_tensor of an int is float32", "scalar_tensor", 3)
fact("eye", "eye.m", 2, 3)
fact("tril_indices", "tril_indices", 3, 2)
fact("hann_window", "hann_window", 4)
fact("a negative size is refused", "zeros", [-1])
fact("complex of two dtypes is refused", "complex", f4(1), f8(1))

# special functions, transforms
fact("lgamma at poles and infinities", "lgamma", f4(0, -1, inf, -inf, 0.5))
fact("digamma at poles", "digamma", f4(0, -0.0, -1, 1))
fact("polygamma near a pole", "polygamma", 1, f4(0.5, 2))
fact("zeta at corners", "special_zeta", f4(1, 0.5, 2, 2), f4(2, 2, 0, inf))
fact("igamma at infinities", "igamma", f4(inf, 1, inf, 0), f4(1, inf, inf, 0))
fact("a polynomial of negative degree is 0", "special_chebyshev_polynomial_t", f4(0.5, 0.5, 2), f4(-1, 2.9, 3))
fact("erfinv at the ends", "erfinv", f4(1, -1, 2, 0))
fact("i0 overflows where exp does", "i0", f4(88, 90))
fact("fft of ints is complex64", "fft_fft", i8(1, 2, 3))
fact("rfft of complex is refused", "fft_rfft", c8(1, 2))
fact("irfft", "fft_irfft", c8(1, 2, 3), 5)
fact("hfft2", "fft_hfft2", c8(1, 2, 3, 4).reshape(2, 2))

# dropout that is none
fact("dropout outside training", "dropout", f4(1, 2), 0.5, False)
fact("dropout of everything", "dropout", f4(1, 2), 1.0, True)
fact("a dropout probability above 1", "dropout", f4(1, 2), 1.5, True)

# arguments of no meaning
fact("a bound of logit beyond float16", "logit", f2(0.5), 1e10)
fact("sequences are padded on a side", "pad_sequence", [f4(1, 2), f4(3)], False, 0.0, "middle")
fact("sequences are padded with a number of their dtype", "pad_sequence", [u1(1, 2), u1(3)], False, 300.0, "left")
fact("indices of 8 bits with a sign are refused", "index.Tensor", f4(1, 2), [np.array([0], np.int8)])
fact("an algorithm of GPUs is refused", "linalg_svd", matrix, False, driver="gesvd")
fact("a square of bools is refused", "matrix_power", b(1, 0, 0, 1).reshape(2, 2), 2)
fact("a power of bools by 1", "matrix_power", b(1, 0, 0, 1).reshape(2, 2), 1)
fact("a tensor of nothing is dense", "is_non_overlapping_and_dense", np.zeros((2, 0, 4), np.float32))
