"""Gradients of pointwise operators where numbers end: zeros of both signs, tiny and huge ones, infinities, nan.

`python tests/extreme_gradients.py` (with torch) records what torch says in tests/data/extreme_gradients.npz. torch is given few numbers at
a time: what it makes of nan depends on whether it takes eight at once.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "extreme_gradients.npz"
NUMBERS = (0.0, -0.0, 1e-40, -1e-30, 1e-5, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 90.0, -710.0, 1e30, -1e30, np.inf, -np.inf, np.nan)
FEW = (0.0, -0.0, 1e-30, -1e-40, 0.5, -1.0, 2.0, -3.0, 90.0, 1e30, np.inf, -np.inf, np.nan)
FEWEST = (0.0, -1e-40, 0.5, -2.0, 1e30, np.inf, -np.inf, np.nan)
CHUNK = 3

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 lgamma log log10
log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc
special.entr special.log_ndtr special.ndtr special.ndtri special.i1""".split()
FUNCTIONS = ("celu({x})", "celu({x}, 0.5)", "elu({x})", "elu({x}, 2.0)", "gelu({x})", "gelu({x}, approximate='tanh')", "hardsigmoid({x})",
             "hardswish({x})", "hardtanh({x})", "leaky_relu({x}, 0.1)", "leaky_relu({x}, -0.5)", "logsigmoid({x})", "mish({x})",
             "relu6({x})", "selu({x})", "silu({x})", "softplus({x})",
             "softplus({x}, 2.0, 3.0)", "softshrink({x})", "hardshrink({x})", "softsign({x})",
             "tanhshrink({x})", "threshold({x}, 0.5, 2.0)", "threshold({x}, 0.0, 0.0)")
SCALARS = ("torch.pow(x, 2)", "torch.pow(x, 0)", "torch.pow(x, -1)", "torch.pow(x, 0.5)", "torch.pow(x, 1.5)", "torch.pow(x, -0.5)",
           "torch.pow(2, x)", "torch.pow(0, x)", "torch.pow(-2.0, x)", "torch.float_power(x, 0.5)", "torch.float_power(x, -2)",
           "torch.float_power(2.0, x)", "torch.clamp(x, -1.0, 2.0)", "torch.clamp(x, min=0.5)", "torch.clamp(x, max=-0.5)",
           "torch.clamp(x, 2.0, -1.0)", "torch.remainder(x, 3.0)", "torch.fmod(x, 3.0)", "torch.xlogy(x, 2.0)", "torch.xlogy(0.0, x)",
           "torch.xlogy(2.0, x)", "1.0 / x", "0.0 / x", "x / 0.0", "torch.logit(x, 0.1)", "torch.nan_to_num(x, 1.0, 2.0, 3.0)",
           "torch.polygamma(1, x)", "torch.mvlgamma(x, 2)", "torch.rsub(x, 2.0, alpha=3.0)", "torch.copysign(x, -1.0)",
           "torch.special.xlog1py(x, 2.0)")
BINARY = ("x + y", "x - y", "x * y", "x / y", "torch.atan2(x, y)", "torch.pow(x, y)", "torch.fmax(x, y)", "torch.fmin(x, y)",
          "torch.fmod(x, y)", "torch.remainder(x, y)", "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.hypot(x, y)",
          "torch.logaddexp(x, y)", "torch.logaddexp2(x, y)", "torch.xlogy(x, y)", "torch.special.xlog1py(x, y)", "torch.copysign(x, y)",
          "torch.float_power(x, y)", "torch.ldexp(x, y)", "torch.true_divide(x, y)", "torch.rsub(x, y)",
          "torch.div(x, y, rounding_mode='floor')",
          "torch.where(x > y, x * y, y)", "torch.nn.functional.mse_loss(x, y, reduction='none')",
          "torch.nn.functional.l1_loss(x, y, reduction='none')", "torch.nn.functional.smooth_l1_loss(x, y, reduction='none')",
          "torch.nn.functional.huber_loss(x, y, reduction='none')", "torch.nn.functional.kl_div(x, y, reduction='none')",
          "torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction='none')", "torch.clamp(x, y)", "torch.clamp(x, max=y)",
          "torch.lerp(x, y, 0.25)", "torch.lerp(x, y, 0.75)")
TERNARY = ("torch.addcmul(x, y, z, value=0.5)", "torch.addcdiv(x, y, z, value=0.5)", "torch.lerp(x, y, z)", "torch.clamp(x, y, z)",
           "torch.where(x > 0, y, z)")
COMPLEX = ("torch.real(torch.polar(x, y))", "torch.imag(torch.polar(x, y))", "torch.abs(torch.complex(x, y))",
           "torch.angle(torch.complex(x, y))")


def sources() -> dict[str, int]:
    """Expression -> how many tensors it takes."""
    found = dict.fromkeys([f"torch.{name}(x)" for name in UNARY], 1)
    found.update(dict.fromkeys([f"torch.nn.functional.{text.format(x='x')}" for text in FUNCTIONS], 1))
    found.update(dict.fromkeys(SCALARS, 1))
    found.update(dict.fromkeys((*BINARY, *COMPLEX), 2))
    found.update(dict.fromkeys(TERNARY, 3))
    return found


def inputs(count: int, dtype: str) -> list[Any]:
    """Every combination of numbers, one array per tensor."""
    grid = np.meshgrid(*[np.array((NUMBERS, FEW, FEWEST)[count - 1], dtype)] * count, indexing="ij")
    return [np.ascontiguousarray(each.reshape(-1)) for each in grid]


def function(expression: str, count: int) -> str:
    """The expression as TorchScript."""
    return f"def f({', '.join('xyz'[:count])}):\n    return {expression}\n"


def recorded_by_torch(expression: str, count: int, dtype: str) -> list[Any]:
    """torch's gradients, for ones."""
    import torch

    call = torch.jit.CompilationUnit(function(expression, count)).f
    values = inputs(count, dtype)
    found: list[list[Any]] = [[] for _ in values]
    for start in range(0, len(values[0]), CHUNK):
        leaves = [torch.from_numpy(value[start:start + CHUNK].copy()).requires_grad_() for value in values]
        result = call(*leaves)
        gradients = [None] * count
        if result.requires_grad:
            gradients = torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)
        for place, gradient in enumerate(gradients):
            found[place].append(np.zeros(len(leaves[place]), dtype) if gradient is None else (gradient + 0).numpy())
    return [np.concatenate(each) for each in found]


if __name__ == "__main__":
    import torch

    torch._C._jit_set_profiling_executor(False)
    torch._C._set_graph_executor_optimize(False)
    kept = {}
    for text, many in sources().items():
        for name in ("float32", "float64"):
            for at, gradient in enumerate(recorded_by_torch(text, many, name)):
                kept[f"{text} {name} {at}"] = gradient.astype(np.float32)
    np.savez_compressed(RECORDED, **kept)
