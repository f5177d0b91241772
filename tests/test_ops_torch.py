"""The elementwise, reducing, ordering, making and transforming operators side by side with torch, over dtypes and shapes."""
from __future__ import annotations

import itertools
from importlib import import_module

import numpy as np
import pytest
from side_by_side import DTYPES, numbers, ours, same_as_torch, theirs

from irtool.ir.effects import facts_of
from irtool.ir.schema import parse_schema
from irtool.ops import OPS

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

INF = float("inf")
SHAPES = ((7,), (), (0,), (2, 3, 4), (2, 0, 3), (1,))
UNLIKE = {
    "aten::_add_relu": "torch asserts on bool",
    "aten::_conj": "torch asserts on real tensors",
    "aten::_conj_copy": "torch asserts on real tensors",
    "aten::special_airy_ai": "torch is inexact",
    "aten::ldexp.Tensor": "torch rounds 2 ** other coarsely: tested with whole exponents",
    "aten::eq.Tensor_list": "takes lists",
    "aten::ne.Tensor_list": "takes lists",
    "aten::data": "no operator of its own in torch.ops",
}


def operators(*families):
    """(name, schema) of each overload with tensors and numbers alone, whose `Tensor` and `Scalar` arguments are one to three."""
    for family in families:
        for op in import_module(f"irtool.ops.kernels.{family}").table:
            for text, name in zip(op.schemas, op.names, strict=True):
                if name not in UNLIKE and name.partition(".")[0] not in UNLIKE and "(a!)" not in text and "Generator" not in text:
                    yield name, parse_schema(text)


def taking(kinds, *families):
    """Overloads whose arguments without default have exactly these types, each `Tensor` or `Scalar`."""
    return [name for name, schema in operators(*families)
            if [a.type.text for a in schema.arguments if not a.has_default] in kinds]


@pytest.mark.parametrize("name", taking([["Tensor"]], "pointwise", "comparison", "bitwise", "special"))
def test_one_tensor(name):
    for dtype, shape in itertools.product(DTYPES, ((37,), (), (0,), (2, 3))):
        same_as_torch(name, numbers(1, shape, dtype, special="bessel" not in name))


@pytest.mark.parametrize("name", taking([["Tensor", "Tensor"], ["Tensor", "Scalar"], ["Scalar", "Tensor"]], "pointwise_binary", "bitwise",
                                        "comparison"))
def test_two_operands(name):
    schema = dict(operators("pointwise_binary", "bitwise", "comparison"))[name]
    kinds = [argument.type.text for argument in schema.arguments[:2]]
    shapes = (((9,), (9,)), ((2, 3), ()), ((), (3,)), ((3, 1), (1, 2)), ((0,), (1,)), ((), ()))
    for (seed, (one, two)), (a, b) in itertools.product(enumerate(itertools.product(DTYPES, DTYPES)), shapes):
        operands = [numbers(seed + place, shape, dtype, low=1) if kind == "Tensor" else numbers(seed, (), dtype).item()
                    for place, (kind, dtype, shape) in enumerate(zip(kinds, (one, two), (a, b), strict=True))]
        for named in [{}] if not any(x.name == "alpha" for x in schema.arguments) else [{}, {"alpha": 2}]:
            if named and schema.overload == "Scalar":
                same_as_torch(name, *operands, 2)
            else:
                same_as_torch(name, *operands, **named)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ldexp(dtype):
    for exponents in ("int8", "int32", "int64"):
        same_as_torch("aten::ldexp.Tensor", numbers(1, (9,), dtype), numbers(2, (9,), exponents))


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_div_with_a_rounding_mode(mode):
    for one, two in itertools.product(DTYPES, DTYPES):
        same_as_torch("aten::div.Tensor_mode", numbers(1, (9,), one, -9, 9), numbers(2, (9,), two, 1, 5), rounding_mode=mode)
        same_as_torch("aten::div.Scalar_mode", numbers(1, (9,), one, -9, 9), numbers(2, (), two, 1, 5).item(), rounding_mode=mode)


@pytest.mark.parametrize("name", ["remainder.Tensor", "fmod.Tensor", "floor_divide", "atan2", "maximum", "fmin", "nextafter",
                                  "copysign.Tensor", "xlogy.Tensor", "heaviside", "hypot", "logaddexp2", "isclose"])
def test_infinities_nan_and_signed_zeros(name):
    for dtype in ("float32", "float64"):
        ends = np.array([INF, -INF, np.nan, 0.0, -0.0, 1.0, -2.5], dtype)
        same_as_torch(f"aten::{name}", ends[:, None].repeat(7, 1), ends[None].repeat(7, 0))


CHOSEN_ZEROS = set(
    "fmax fmin relu relu6 _add_relu.Tensor softshrink cumulative_trapezoid.x median nanmedian cross_entropy_loss gelu".split())
"""Which of two equal zeros is the largest is NumPy's choice, and sums start at 0.0; torch's gelu of several single-precision numbers loses
the sign on some processors, that of one keeps it."""


def test_signs_of_zeros():
    """-0.0 stays, and appears, where it does in torch: 1 / x tells the two apart."""
    ends = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5])
    tried = 0
    for name, op in OPS.items():
        schema = parse_schema(dict(zip(op.names, op.schemas, strict=True))[name])
        count = sum(argument.type.text == "Tensor" for argument in schema.arguments)
        if not name.startswith("aten::") or schema.is_mutable or facts_of(schema.kind).is_random or "empty" in name or \
                [each.type.text for each in schema.returns] != ["Tensor"] or name.removeprefix("aten::") in CHOSEN_ZEROS or \
                not 0 < count < 3 or any(not each.has_default and each.type.text != "Tensor" for each in schema.arguments):
            continue
        for dtype in ("float32", "float64"):
            args = [each.astype(dtype) for each in ([ends] if count == 1 else [ends.repeat(8), np.tile(ends, 8)])]
            found, wanted = ours(name, args, {}), theirs(name, args, {})
            if isinstance(found, np.ndarray) and isinstance(wanted, np.ndarray) and found.shape == wanted.shape and found.dtype.kind == "f":
                zeros = (found == 0) & (wanted == 0)
                assert np.array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros])), f"{name} {found} {wanted}"
                tried += 1
    assert tried > 200


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_powers_to_numbers_of_infinities_nan_and_signed_zeros(dtype):
    ends = [INF, -INF, np.nan, 0.0, -0.0, 1.0, -2.5]
    base = np.array([complex(a, b) for a in ends for b in ends if a == a and b == b] if dtype.startswith("c") else ends, dtype)
    for exponent in (False, True, 0, 1, 2, 3, -1, -2, 0.5, -0.5, -3, 4, 1.5):
        same_as_torch("aten::pow.Tensor_Scalar", base, exponent)
        same_as_torch("aten::float_power.Tensor_Scalar", base, exponent)


@pytest.mark.parametrize("name", ["where.self", "addcmul", "addcdiv", "clamp.Tensor"])
def test_three_tensors(name):
    triples = enumerate(itertools.product(("bool", "int64", "float16", "float32", "complex64"), repeat=3))
    for (seed, dtypes), shapes in itertools.product(triples, (((5,), (5,), (5,)), ((2, 3), (), (3,)), ((), (), ()))):
        operands = [numbers(seed + place, shape, dtype) for place, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True))]
        if name == "where.self":
            operands[0] = np.asarray(operands[0] != 0)
        same_as_torch(f"aten::{name}", *operands)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_and_copies(dtype):
    for other, shape in itertools.product(DTYPES, ((20,), (), (0,), (2, 3))):
        x = numbers(1, shape, dtype, -200, 200)
        same_as_torch("aten::type_as", x, numbers(2, (), other))
        same_as_torch("aten::copy_", x, numbers(2, shape, other))
        same_as_torch("aten::fill_.Tensor", x, numbers(2, (), other))
    same_as_torch("aten::copy_", numbers(1, (2, 3), dtype), numbers(2, (2,), dtype))


DIMS = (None, [], [0], [-1], [0, 1], [2], [0, 2])
CASTS = ({}, {"dtype": np.dtype("float64")}, {"dtype": np.dtype("float32")})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("special", [False, True])
def test_reductions_over_dimensions(dtype, special):
    for shape, keep, dim in itertools.product(SHAPES, (False, True), DIMS):
        x = numbers(3, shape, dtype, special=special)
        for name, named in itertools.product(("sum.dim_IntList", "mean.dim", "nansum", "nanmean"), CASTS):
            same_as_torch(f"aten::{name}", x, dim, keep, **named)
        for name in ("all.dims", "any.dims", "var.correction", "std.correction"):
            same_as_torch(f"aten::{name}", x, dim, *([keep] if "dims" in name else []), **({} if "dims" in name else {"keepdim": keep}))
        for name in ("amax", "amin", "hash_tensor"):
            if not (x.dtype.kind == "c" and x.size == 0):
                same_as_torch(f"aten::{name}", x, dim or [], **{"keepdim": keep})
        for order in (2, 1, 0, INF, -INF, 3, -1, 0.5):
            same_as_torch("aten::linalg_vector_norm", x, order, dim, keep)
        if dim:
            same_as_torch("aten::logsumexp", x, dim, keep)
            same_as_torch("aten::count_nonzero.dim_IntList", x, dim)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_all_and_of_one_dimension(dtype):
    for shape, special in itertools.product(SHAPES, (False, True)):
        x = numbers(4, shape, dtype, special=special)
        for name in ("sum", "mean", "prod", "all", "any", "max", "min", "aminmax", "argmax", "argmin", "count_nonzero", "std", "var",
                     "var_mean", "cov", "corrcoef", "median", "nanmedian"):
            if not (name.endswith("median") and (x.dtype.kind == "b" or x.size == 0)):
                same_as_torch(f"aten::{name}", x)
        for dim, keep in itertools.product((0, -1, 1), (False, True)):
            for name in ("all.dim", "any.dim", "max.dim", "min.dim", "prod.dim_int"):
                same_as_torch(f"aten::{name}", x, dim, keep)
        for size in ([], [1], [3, 1], [2, 1, 4], [5]):
            same_as_torch("aten::sum_to_size", x, size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_and_order(dtype):
    for shape, special, dim in itertools.product(SHAPES, (False, True), (0, -1)):
        x = numbers(5, shape, dtype, special=special)
        for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
            same_as_torch(f"aten::{name}", x, dim)
        for n in (0, 1, 2, 9):
            same_as_torch("aten::diff", x, n, dim)
        for descending in (False, True):
            same_as_torch("aten::sort.stable", x, stable=True, dim=dim, descending=descending)
        for asked in itertools.product((False, True), repeat=2):
            same_as_torch("aten::_unique2", x, True, *asked)
            same_as_torch("aten::unique_consecutive", x, *asked)
            if not special:
                same_as_torch("aten::unique_dim", x, dim, True, *asked)
        if not special:
            same_as_torch("aten::trapezoid.dx", x, dx=0.5, dim=dim)
            same_as_torch("aten::cumulative_trapezoid.x", x, x, dim=dim)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_order_without_ties(dtype):
    for shape, dim, keep in itertools.product(SHAPES, (0, -1, 1), (False, True)):
        x = numbers(6, shape, dtype)
        for k in (0, 1, 3):
            same_as_torch("aten::topk", x, k, dim, keep, True)
            same_as_torch("aten::kthvalue", x, k, dim, keep)
        same_as_torch("aten::median.dim", x, dim, keep)
        for how, name in itertools.product(("linear", "lower", "higher", "midpoint", "nearest"), ("quantile", "nanquantile")):
            same_as_torch(f"aten::{name}", x, np.array([0, 0.1, 0.5, 1], dtype), dim, keep, interpolation=how)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_search_and_histograms(dtype):
    for shape, right in itertools.product(SHAPES, (False, True)):
        x, edges = numbers(7, shape, dtype), np.sort(numbers(8, (9,), dtype))
        same_as_torch("aten::searchsorted.Tensor", edges, x, right=right, out_int32=right)
        same_as_torch("aten::bucketize.Tensor", x, edges, right=right)
        for wanted in (edges, edges.reshape(3, 3), np.tile(edges, (3, 1))):
            same_as_torch("aten::isin.Tensor_Tensor", x, wanted, invert=right)
        same_as_torch("aten::bincount", abs(x), None, 5)
        for low, high in ((0, 0), (-1, 2), (2, 1)):
            same_as_torch("aten::histc", x, 5, low, high)
        same_as_torch("aten::histogram.bin_ct", x, 6, range=[-1.0, 2.0], density=right)
        same_as_torch("aten::histogram.bins_tensor", x, np.array([-2, -0.5, 0, 2]).astype(dtype), weight=x)


def test_factories():
    ends = (0, 1, 5, -3, 2.5, -1.25, True)
    for name in ("int32", "int64", "float16", "float32", "float64", "complex64", None):
        named = {} if name is None else {"dtype": np.dtype(name)}
        for a in ends:
            same_as_torch("aten::full", [2], a, **named)
            same_as_torch("aten::scalar_tensor", a, **named)
            same_as_torch("aten::arange", a, **named)
            for b, steps in itertools.product(ends, (0, 1, 2, 5, 10)):
                same_as_torch("aten::linspace", a, b, steps, **named)
                same_as_torch("aten::logspace", a, b, steps, 2.0, **named)
                same_as_torch("aten::arange.start_step", a, b, 2 if steps < 5 else -1, **named)
        for n in (0, 1, 2, 10):
            for window in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
                same_as_torch(f"aten::{window}_window.periodic", n, bool(n % 3), **named)
            same_as_torch("aten::fft_fftfreq", n, 0.5, **named)
            same_as_torch("aten::eye.m", n, 3, **named)
            same_as_torch("aten::triu_indices", n, 3, 1)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "float64", "complex64", "complex128"])
def test_fourier_transforms(dtype):
    norms = (None, "ortho", "forward", "nothing")
    for shape, norm in [*itertools.product(((7,), (2, 3, 4), ()), norms), *itertools.product(((8,), (0,), (1,)), norms[:2])]:
        x = numbers(9, shape, dtype)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
            for n, dim in itertools.product((None, 1, 5, 9, 0), (-1, 0)):
                same_as_torch(f"aten::fft_{name}", x, n, dim, norm)
            for dim in (None, [-1], [0, 1], [1, 0], [0, 0]):
                same_as_torch(f"aten::fft_{name}n", x, None, dim, norm)
                same_as_torch(f"aten::fft_{name}n", x, None if dim is None else [4] * len(dim), dim, norm)
            same_as_torch(f"aten::fft_{name}2", x, [3, 5], [-2, -1], norm)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_stft_and_back(dtype):
    for shape, window, onesided, hop in itertools.product(((40,), (3, 40)), (None, 8), (None, False), (None, 3)):
        x = numbers(10, shape, dtype)
        shaped = None if window is None else np.abs(numbers(11, (window,), "float64" if dtype == "float64" else "float32")) + 0.1
        named = {"normalized": bool(hop), "onesided": onesided}
        same_as_torch("aten::stft", x, 10, hop, window, shaped, return_complex=True, **named)
        same_as_torch("aten::stft.center", x, 10, hop, window, shaped, return_complex=False, **named)
        if dtype != "complex64":
            spectrum = numbers(12, (6, 21), "complex128" if dtype == "float64" else "complex64")
            for length, center in itertools.product((None, 35), (True, False)):
                same_as_torch("aten::istft", spectrum, 10, hop or 2, window, shaped, center, bool(hop), True, length)


@pytest.mark.parametrize("name", ["igamma", "igammac", "special_zeta", "special_xlog1py"])
def test_special_functions_of_two_tensors(name):
    corners = [0.0, 1.0, 2.0, 0.5, 10.0, INF]
    for dtype in ("float32", "float64"):
        a, x = np.meshgrid(np.array(corners + [2.5, 3.0], dtype), np.array(corners + [0.25, 30.0], dtype))
        same_as_torch(f"aten::{name}", a, x)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_polygamma_and_mvlgamma(dtype):
    x = numbers(13, (50,), dtype, 1, 30) + (0 if dtype == "int64" else 2)
    for order in range(5):
        same_as_torch("aten::polygamma", order, x)
        if order:
            same_as_torch("aten::mvlgamma", x, order)


@pytest.mark.parametrize("name", taking([["Tensor", "Tensor"]], "polynomial"))
def test_polynomials(name):
    degrees = np.repeat(np.arange(-2, 12), 9)
    for dtype in ("float32", "float64", "int64"):
        x = np.tile(np.array([-2, -1, -0.5, 0, 0.25, 0.5, 0.9, 1, 3]), 14).astype(dtype)
        same_as_torch(name, x, degrees)
        same_as_torch(name, x, degrees.astype("float32"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_exponentials_of_infinite_complex_numbers_added(dtype):
    """Two of them that are 0 were nan, and so were gradients of logcumsumexp whose cotangents have zeros."""
    ends = [complex(real, imag) for real in (-INF, 0.0, -1.0, INF, float("nan")) for imag in (0.0, 1.0, -2.0, INF, float("nan"))]
    pairs = np.array(list(itertools.product(ends, ends)), dtype).T.copy()
    same_as_torch("aten::logaddexp", *pairs)
    same_as_torch("aten::logsumexp", pairs, [0])
    same_as_torch("aten::logcumsumexp", pairs, 0)
    same_as_torch("aten::logcumsumexp", np.array(ends, dtype), 0)


@pytest.mark.parametrize("row", [[1 + 2j, 0.3 - 1j, -2 + 0.5j], [0, -INF, 1], [-INF, 0, 1j], [-INF, -INF, 1], [-1000, 0, 1j], [800, 0, 1j]])
@pytest.mark.parametrize("cotangent", [[1, 0, 0], [0, 1j, 0], [0, 0, 0], [1, -1, 0], [0, 0, 2]])
def test_gradient_of_logcumsumexp_of_complex_numbers(row, cotangent):
    import torch

    import irtool

    x, grad = np.array(row, complex), np.array(cotangent, complex)
    leaf = torch.tensor(x, requires_grad=True)
    wanted, = torch.autograd.grad(leaf.logcumsumexp(0), leaf, torch.tensor(grad))
    graph = irtool.from_script("def f(x):\n    return torch.logcumsumexp(x, 0)\n", "f")
    for interpret in (False, True):
        found, = irtool.vjp(graph, [x], [grad], [0], interpret=interpret)
        np.testing.assert_allclose(found, wanted.resolve_conj().numpy(), rtol=1e-10, atol=1e-12)
