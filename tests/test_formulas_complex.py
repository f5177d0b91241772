"""Gradients of complex tensors, side by side with torch; what is real beside them gets a real gradient."""
from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.pairs import Forward
from irtool.ir.pair import pairs
from irtool.torchscript import compile_source
from tests.laws import over

FUNCTIONS = {
    "abs": lambda t, z: t.abs(z), "sgn": lambda t, z: t.sgn(z), "angle": lambda t, z: t.angle(z),
    "tanh": lambda t, z: t.tanh(z), "sigmoid": lambda t, z: t.sigmoid(z), "acosh": lambda t, z: t.acosh(z), "tan": lambda t, z: t.tan(z),
    "rsqrt": lambda t, z: t.rsqrt(z), "sinc": lambda t, z: t.sinc(z), "softsign": lambda t, z: t.nn.functional.softsign(z),
    "real and imag": lambda t, z: z.real * z.imag, "conj": lambda t, z: z.conj().resolve_conj() * z, "squares": lambda t, z: z ** 2,
    "power of itself": lambda t, z: z ** z, "power of a number": lambda t, z: 2.5 ** z, "power 0": lambda t, z: z ** 0,
    "real times complex": lambda t, z: z.abs() * (1 + 2j) * z, "relu of the real part": lambda t, z: t.relu(z.real) * z,
    "polar": lambda t, z: t.polar(z.real.abs(), z.imag), "complex": lambda t, z: t.complex(z.imag, z.real) * z,
    "variance": lambda t, z: z.var(1), "deviation": lambda t, z: z.std(), "deviation and mean": lambda t, z: t.std_mean(z, 1),
    "norm": lambda t, z: z.norm(), "norm 1": lambda t, z: z.norm(1.0), "norm 1.5": lambda t, z: t.linalg.vector_norm(z, 1.5, 1),
    "norm inf": lambda t, z: z.norm(float("inf")), "distance": lambda t, z: t.dist(z, z.flip(0)),
    "product": lambda t, z: z.prod(1), "cumulative product": lambda t, z: z.cumprod(1), "trapezoid": lambda t, z: t.trapezoid(z, z * z),
    "lerp": lambda t, z: t.lerp(z, z * z, z.conj()), "matmul": lambda t, z: z @ z.mH, "vdot": lambda t, z: t.vdot(z[0], z[1]),
    "l1": lambda t, z: t.nn.functional.l1_loss(z.real, z * z), "conv1d": lambda t, z: t.nn.functional.conv1d(z[None], z[None, :, :2]),
    "fft": lambda t, z: t.fft.fft(z), "rfft": lambda t, z: t.fft.rfft(z.real), "ihfft": lambda t, z: t.fft.ihfft(z.real, norm="ortho"),
    "irfft2": lambda t, z: t.fft.irfft2(z, s=(3, 5)), "inverse": lambda t, z: t.linalg.inv(z[:, :3]),
    "determinant": lambda t, z: t.linalg.slogdet(z[:, :3]), "solve": lambda t, z: t.linalg.solve(z[:, :3], z),
    "cholesky": lambda t, z: t.linalg.cholesky(z @ z.mH + 2 * t.eye(3, dtype=z.dtype)), "qr": lambda t, z: t.linalg.qr(z.mH)[1],
    "singular values": lambda t, z: t.linalg.svdvals(z), "lu": lambda t, z: t.linalg.lu(z[:, :3])[2],
}
TYPES = re.compile(r" : (?:ComplexDouble|Double)\([^)]*\)")


@pytest.mark.oracle
@over("name, dtype, is_typed", [pytest.param(name, dtype, is_typed, id=f"{name} in {dtype}, {'with' if is_typed else 'without'} types")
                                for name in FUNCTIONS for dtype in ("complex128", "float64") for is_typed in (True, False)],
      lambda name, *_: name)
def test_gradient_is_torchs(name: str, dtype: str, is_typed: bool) -> None:
    torch = pytest.importorskip("torch")
    function = FUNCTIONS[name]
    torch.manual_seed(1)
    z = torch.randn((3, 4), dtype=getattr(torch, dtype)).requires_grad_()
    try:
        found = function(torch, z)
    except RuntimeError:
        pytest.skip("not for real tensors")
    results = [each for each in (found if isinstance(found, tuple) else (found,))]
    cotangents = [torch.randn(each.shape, dtype=each.dtype) if each.requires_grad else None for each in results]
    (want,) = torch.autograd.grad([each for each in results if each.requires_grad], z, [each for each in cotangents if each is not None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = str(torch.jit.trace(lambda z: function(torch, z), z.detach(), check_trace=False).graph)
    if not is_typed:
        text = TYPES.sub(" : Tensor", text)
    given = [None if each is None else each.resolve_conj().numpy() for each in cotangents]
    (got,) = irtool.vjp(irtool.parse(text), [z.detach().numpy()], given, [0])
    assert_close(got, (want.resolve_conj() + torch.zeros_like(z)).detach().numpy())


def assert_close(got: Any, want: np.ndarray) -> None:
    got = np.zeros_like(want) if got is None else got
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_real_operand_gets_a_real_gradient_on_its_way() -> None:
    """relu between a real input and a complex factor: its own backward pass compares, which complex numbers cannot be."""
    text = """graph(%x : Double(2, strides=[1]), %z : ComplexDouble(2, strides=[1])):
  %r : Double(2, strides=[1]) = aten::relu(%x)
  %y : ComplexDouble(2, strides=[1]) = aten::mul(%r, %z)
  return (%y)
"""
    x, z = np.array([2.0, -1.0]), np.array([1 + 2j, 3j])
    found = irtool.vjp(irtool.parse(text), [x, z], [np.array([1 + 1j, 1 - 1j])], [0, 1])
    assert_close(found[0], np.array([3.0, 0.0]))
    assert_close(found[1], np.array([2 + 2j, 0j]))


REAL_OF_COMPLEX = """
torch.linalg.norm(z)
torch.linalg.norm(z, 2)
torch.linalg.norm(z, "nuc")
torch.linalg.matrix_norm(z)
torch.linalg.matrix_norm(z, 1)
torch.linalg.vector_norm(z, 3.)
torch.linalg.svdvals(z)[0]
torch.linalg.eigvalsh(z + z.mH)[2]
torch.dist(z, z.mT)
torch.pairwise_distance(z, z.mT)
torch.fft_irfft(z, 3)
torch.fft_irfft2(z, [3, 3])
z.abs()
z.angle()
z.std()
torch.view_as_real(z).select(-1, 1)
""".strip().splitlines()


@pytest.mark.parametrize("real", REAL_OF_COMPLEX)
def test_a_pair_without_types_takes_the_real_part_of_what_comes_back_to_a_real_result(real: str) -> None:
    """What is real is multiplied by something complex: nothing but the formula of what made it can know that its gradient is real."""
    source = f"def f(z: Tensor, w: Tensor) -> Tensor:\n    return ({real}) * w\n"
    graph = compile_source(source).graph()
    rng = np.random.default_rng(3)
    z, w = (rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)) for _ in range(2))
    cotangent = irtool.run(graph, [z, w])[0] * (1 - 2j)
    (pair,) = pairs(irtool.PassManager("differentiate,lower-grad-of").run(compile_source(source)))
    found, _ = Forward(pair, [z, w]).backward({0: cotangent})
    for mine, its in zip([found[0], found[1]], irtool.vjp(graph, [z, w], [cotangent], [0, 1]), strict=True):
        assert_close(mine, its)
