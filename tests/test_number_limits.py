"""Numbers that a dtype cannot hold are refused where torch refuses them, and wrap or round where torch lets them."""
from __future__ import annotations

import importlib
import importlib.util
import itertools

import numpy as np
import pytest
from side_by_side import DTYPES, complaint, is_error, ours, theirs

import irtool
from irtool import RunError
from irtool.ops.call import call_op
from irtool.ops.checks import fit

INF, NAN = float("inf"), float("nan")
NUMBERS = (300, -1, -128, -129, 3, 2.7, -2.7, -0.5, 127.9, 1e10, 70000, 70000.0, 1e39, -1e39, 1e300, 2**31, 2**40, 2**63 - 1, INF, -INF,
           NAN, True, 1j, 1e40 + 1j, 2 + 0j)


@pytest.mark.parametrize("scale", [1e25, 1e-30])
def test_a_deviation_whose_square_does_not_fit(scale):
    """torch adds squares of float32 in double precision."""
    whole = np.random.default_rng(0).normal(size=(4, 5)).astype("f")
    for args in ([True], [[0], True, False]):
        name = "aten::std" if len(args) == 1 else "aten::std.dim"
        np.testing.assert_allclose(call_op(name, [whole * np.float32(scale), *args]), scale * call_op(name, [whole, *args]), 1e-5)


@pytest.mark.parametrize(("number", "dtype", "holds"), [
    (255, "uint8", True), (256, "uint8", False), (-255, "uint8", True), (-256, "uint8", False), (-0.5, "uint8", False),
    (-128, "int8", True), (128, "int8", False), (2147483647.5, "int32", False), (NAN, "int64", False), (INF, "float16", True),
    (65504, "float16", True), (70000, "float16", False), (1e39, "float32", False), (1e39, "complex64", False), (1e39, "float64", True),
    (NAN, "float32", True), (1j, "float32", False), (2 + 0j, "int32", True), (1j, "bool", True), (300, "bool", True)])
def test_what_fits(number, dtype, holds):
    if holds:
        fit(number, np.dtype(dtype))
    else:
        with pytest.raises(RunError, match="without overflow"):
            fit(number, np.dtype(dtype))


def test_every_number_that_must_fit_is_an_argument():
    from irtool.ir.schema import parse_schema
    from irtool.ops import OPS

    for name, op in OPS.items():
        arguments = {argument.name for text in op.schemas for argument in parse_schema(text).arguments}
        assert {word.rstrip("+") for word in op.fits.split()} <= arguments, name


def test_in_place_forms_that_keep_their_dtype():
    with pytest.raises(RunError, match="In-place abs"):
        call_op("aten::abs_", [np.array([1j])])
    with pytest.raises(RunError, match="requires dtype Double"):
        call_op("aten::float_power_.Scalar", [np.ones(2, np.float32), 2])


X = np.array([1, 2, 3])
MASK, FIRST = np.array([True, False, True]), np.array([1])
SQUARE = np.ones((2, 2))
CALLS = {
    "add.Scalar": lambda x, n: (x, 2, n), "clamp": lambda x, n: (x, n), "clamp_": lambda x, n: (x, None, n),
    "clamp_min": lambda x, n: (x, n), "clamp_max_": lambda x, n: (x, n), "where.ScalarOther": lambda x, n: (MASK, x, n),
    "where.ScalarSelf": lambda x, n: (MASK, n, x),
    "fill.Scalar": lambda x, n: (x, n),
    "fill_.Scalar": lambda x, n: (x, n), "masked_fill.Scalar": lambda x, n: (x, MASK, n),
    "masked_fill.Tensor": lambda x, n: (x, MASK, np.array(n)), "full_like": lambda x, n: (x, n), "new_full": lambda x, n: (x, [2], n),
    "constant_pad_nd": lambda x, n: (x, [1, 1], n), "index_fill.int_Scalar": lambda x, n: (x, 0, FIRST, n),
    "scatter.value": lambda x, n: (x, 0, FIRST, n), "threshold": lambda x, n: (x, 2, n), "hardtanh": lambda x, n: (x, -1, n),
    "hardtanh_": lambda x, n: (x, n, 2),
    "leaky_relu": lambda x, n: (x, n), "elu": lambda x, n: (x, n), "celu": lambda x, n: (x, n), "softplus": lambda x, n: (x, n),
    "hardshrink": lambda x, n: (x, n), "addcmul": lambda x, n: (x, x, x), "addcdiv": lambda x, n: (x, x, x),
    "index_add": lambda x, n: (x, 0, FIRST, x[:1]), "lerp.Scalar": lambda x, n: (x, x, n), "pow.Tensor_Scalar": lambda x, n: (x, n),
    "pow_.Scalar": lambda x, n: (x, n), "float_power_.Scalar": lambda x, n: (x, n), "remainder.Scalar": lambda x, n: (x, n),
    "addmm": lambda x, n: (SQUARE.astype(x.dtype),) * 3, "addmv": lambda x, n: (x[:2], SQUARE.astype(x.dtype), x[:2]),
}
NAMED = {"addcmul": "value", "addcdiv": "value", "index_add": "alpha", "addmm": "alpha", "addmv": "beta"}
LENIENT = {("where.ScalarOther", "float16"), ("where.ScalarSelf", "float16")}
"""Where torch takes more: numbers beyond float32 beside float16. (And clamp takes complex numbers without an imaginary part.)"""


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_numbers_side_by_side(name):
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        args = CALLS[name](X.astype(dtype), number)
        named = {NAMED[name]: number} if name in NAMED else {}
        want = theirs(f"aten::{name}", args, named)
        if (name, dtype) in LENIENT or name[:5] == "clamp" and isinstance(number, complex):
            continue
        if want is None or is_error(want) and "ComplexHalf" in want[0]:
            continue
        why = complaint(ours(f"aten::{name}", args, named), want)
        assert why is None, f"{name} of {dtype} and {number}: {why}"


FILLS = ("y.fill_(v)", "torch.zeros([n], dtype=torch.{dtype}).fill_(v)", "torch.zeros([n], dtype=torch.{dtype}).fill_({v})", "y.fill(v)",
         "torch.full_like(y, v)", "y.new_full([n], v)", "torch.full([n], v, dtype=torch.{dtype})", "y.masked_fill(y == y, v)",
         "y.masked_fill_(y == y, {v})", "y.clamp(max=v)", "y.add_(v)", "y.index_fill(0, torch.arange(n), v)",
         "torch.constant_pad_nd(y, [1, 1], v)", "torch.full([n], {v}, dtype=torch.{dtype}) + y")
FILL_NUMBERS = [300.0, 70000.0, 1e39, INF]


def outcome(call):
    """The numbers, or that it is an error."""
    try:
        return np.asarray(call()).tolist()
    except (irtool.Error, RuntimeError):
        return "error"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("fill", FILLS)
def test_numbers_that_do_not_fit_are_refused_in_all_ways(fill, count):
    """Of float16 a tensor of one element takes them, as infinities."""
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    for dtype, v in itertools.product(("uint8", "float16", "float32"), FILL_NUMBERS):
        if "{v}" in fill and v == INF:
            continue
        source = f"def f(x, v: float, n: int):\n    y = x.to(torch.{dtype}) * 1\n    return {fill.format(dtype=dtype, v=v)}\n"
        module, inputs = irtool.from_script(source), [np.ones(count), v, count]
        want = outcome(lambda: irtool.run(module, inputs, interpret=True)[0])       # noqa: B023
        for options in ({}, {"native": False}):
            executor = irtool.compile(irtool.from_script(source), **options)
            for _ in range(2):
                assert outcome(lambda: executor.run(inputs)[0]) == want, (dtype, v, options)    # noqa: B023
        if torch is not None:
            function = torch.jit.CompilationUnit(source).f
            assert outcome(lambda: function(torch.ones(count, dtype=torch.float64), v, count)) == want, (dtype, v)     # noqa: B023


@pytest.mark.oracle
@pytest.mark.parametrize("base", [0.0, -2.0, 0.5, 10.0])
def test_complex_exponents_side_by_side(base):
    """Of a base of 0 the power is that of torch's pow: 0, inf or nan."""
    torch = pytest.importorskip("torch")
    exponents = (1 - 0.5j, 0j, 0.5, -1.0, 2j, -0.5 + 1j, 2)
    for start, end, steps in itertools.product(exponents, exponents, (1, 2, 3)):
        if isinstance(start, complex) or isinstance(end, complex):
            want = torch.logspace(start, end, steps, base, dtype=torch.complex128).numpy()
            got = np.asarray(irtool.torch.logspace(start, end, steps, base, dtype=irtool.torch.complex128))
            np.testing.assert_allclose(got, want, 1e-9, 1e-12, err_msg=f"{start} {end} {steps}")
