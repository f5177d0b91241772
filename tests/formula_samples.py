"""Calls on which gradient formulas are tested: overload -> arguments. Arrays are float64, made from the sample's place in its list.

`python tests/formula_samples.py` (with torch) records torch's gradients of these calls in tests/data/formula_gradients.json.
"""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "formula_gradients.json"


class Draw:
    """A float64 array to be drawn, which gets a gradient: its shape, and between which bounds. Arrays given as such get none."""

    def __init__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> None:
        self.shape, self.low, self.high = shape, low, high

    def array(self, seed: int) -> np.ndarray:
        """Repeatable numbers."""
        return np.random.default_rng(seed).uniform(self.low, self.high, self.shape)


def T(*shape: int) -> Draw:
    """Any numbers."""
    return Draw(*shape)


def P(*shape: int) -> Draw:
    """Positive numbers."""
    return Draw(*shape, low=0.2, high=2.0)


def U(*shape: int) -> Draw:
    """Numbers within (-1, 1)."""
    return Draw(*shape, low=-0.9, high=0.9)


def C(*shape: int) -> Draw:
    """Chances within (0, 1)."""
    return Draw(*shape, low=0.1, high=0.9)


def I(*values: Any) -> np.ndarray:      # noqa: E743  (an index tensor)
    return np.array(values[0] if len(values) == 1 else values, np.int64)


def B(*values: Any) -> np.ndarray:
    return np.array(values, bool)


INF = math.inf
_UNARY = {
    T: "sin cos tanh exp exp2 expm1 sigmoid sinc deg2rad rad2deg neg abs square sinh cosh atan asinh tan erf erfc relu relu6 hardsigmoid "
       "hardswish selu silu mish log_sigmoid frac positive sgn ceil floor trunc round sign",
    P: "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma",
    U: "asin acos atanh erfinv",
}
SAMPLES: list[tuple[str, list[Any]]] = [(name, [draw(2, 3)]) for draw, names in _UNARY.items() for name in names.split()]
SAMPLES += [(name, [draw()]) for draw, names in _UNARY.items() for name in names.split()[::5]]
SAMPLES += [
    ("acosh", [Draw(3, low=1.2, high=3)]), ("logit", [C(3), None]), ("logit", [C(3), 0.3]), ("nan_to_num", [T(3), 0.0, None, None]),
    # two operands, broadcast both ways and 0-dim
    *[(f"{name}.Tensor", [a, b, *rest]) for name, rest in (("add", [2]), ("sub", [3]), ("rsub", [2]), ("mul", []), ("div", []))
      for a, b in ((T(2, 3), P(2, 3)), (T(2, 3), P(3)), (T(2, 1), P(1, 3)), (T(), P(2)), (T(2), P()))],
    *[(name, [a, b]) for name in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "logaddexp2")
      for a, b in ((T(2, 3), T(3)), (T(), T(2)))],
    *[(f"{name}.Scalar", [T(2, 3), 2.5, *rest]) for name, rest in (("add", [2]), ("sub", [2]), ("rsub", [2]), ("mul", []), ("div", []),
                                                                 ("remainder", []), ("fmod", []), ("copysign", []))],
    ("div.Tensor_mode", [T(3), P(2, 3), None]), ("div.Tensor_mode", [T(3), P(3), "floor"]), ("div.Scalar_mode", [T(3), 2.0, "trunc"]),
    ("remainder.Tensor", [T(2, 3), P(3)]), ("fmod.Tensor", [T(2, 3), P(3)]), ("copysign.Tensor", [T(2, 3), T(3)]),
    ("pow.Tensor_Tensor", [P(2, 3), T(3)]), ("pow.Tensor_Scalar", [T(3), 3]), ("pow.Tensor_Scalar", [T(3), 0]),
    ("pow.Tensor_Scalar", [P(3), -1.5]), ("pow.Scalar", [2.5, T(3)]), ("ldexp.Tensor", [T(2, 3), T(3)]),
    ("xlogy.Tensor", [T(2, 3), P(3)]), ("xlogy.Scalar_Self", [2.0, P(3)]), ("xlogy.Scalar_Other", [T(3), 2.0]),
    ("special_xlog1py", [T(3), P(2, 3)]), ("clamp", [T(7), -0.5, 0.5]), ("clamp", [T(7), None, 0.5]),
    ("clamp.Tensor", [T(2, 5), U(5), P(5)]), ("clamp_min", [T(5), 0.1]), ("clamp_max.Tensor", [T(2, 5), U(5)]),
    ("where.self", [B(True, False, True), T(2, 3), T(3)]), ("where.ScalarOther", [B(True, False), T(3, 2), 1.0]),
    ("lerp.Scalar", [T(2, 3), T(3), 0.3]), ("lerp.Tensor", [T(2, 3), T(3), T(2, 1)]), ("addcmul", [T(2, 3), T(3), T(2, 1), 0.5]),
    ("addcdiv", [T(2, 3), T(3), P(2, 1), 0.5]),
    # activations
    ("hardtanh", [T(9), -1.0, 0.5]), ("threshold", [T(9), 0.2, 5.0]), ("leaky_relu", [T(9), 0.1]), ("prelu", [T(2, 3, 2), P(3)]),
    ("hardshrink", [T(9), 0.5]), ("softshrink", [T(9), 0.5]), ("elu", [T(9), 1.5, 1.1, 0.9]), ("celu", [T(9), 1.5]),
    ("gelu", [T(9), "none"]), ("gelu", [T(9), "tanh"]), ("softplus", [T(9), 2.0, 1.5]), ("glu", [T(2, 4), -1]),
    # reductions
    ("sum", [T(2, 3), None]), ("sum.dim_IntList", [T(2, 3, 4), [0, -1], False, None]), ("sum.dim_IntList", [T(2, 3), [1], True, None]),
    ("sum.dim_IntList", [T(), [0], False, None]), ("mean", [T(2, 3), None]), ("mean.dim", [T(2, 3, 4), [1, 2], False, None]),
    ("prod", [T(2, 3), None]), ("prod.dim_int", [T(2, 3), 1, False, None]), ("amax", [T(2, 3), [1], False]), ("amin", [T(2, 3), [], True]),
    ("max", [T(2, 3)]), ("min", [T(2, 3)]), ("max.dim", [T(2, 3), 1, False]), ("min.dim", [T(2, 3), 0, True]),
    ("aminmax", [T(2, 3), 1, False]), ("logsumexp", [T(2, 3), [1], False]), ("sum_to_size", [T(2, 3), [1, 3]]),
    ("var.correction", [T(2, 5), [1], 1, False]), ("var", [T(5), True]), ("std.correction", [T(2, 5), None, 0, False]),
    ("std.dim", [T(2, 5), [1], True, True]), ("var_mean.correction", [T(2, 5), [1], 1, False]),
    ("std_mean.dim", [T(2, 5), [0, 1], True, False]), *[("linalg_vector_norm", [T(2, 5), p, [1], False, None])
                                                      for p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF)],
    ("norm.Scalar", [T(2, 3), 2]), ("norm.ScalarOpt_dim", [T(2, 3), None, [1], True]),
    ("softmax.int", [T(2, 5), 1, None]), ("log_softmax.int", [T(2, 5), -1, None]), ("softmax.int", [T(), 0, None]),
    ("cumsum", [T(2, 4), 1, None]), ("cumprod", [T(2, 4), 1, None]), ("logcumsumexp", [T(2, 4), 1]), ("cummax", [T(2, 4), 1]),
    ("diff", [T(2, 5), 2, 1, None, None]), ("sort", [T(2, 4), 1, True]), ("topk", [T(2, 5), 2, 1, True, True]),
    ("kthvalue", [T(2, 5), 2, 1, False]), ("median.dim", [T(2, 5), 1, False]), ("median", [T(5)]),
    # shape
    ("view", [T(2, 3), [3, 2]]), ("reshape", [T(2, 3), [-1]]), ("flatten.using_ints", [T(2, 3, 4), 1, -1]), ("t", [T(2, 3)]),
    ("transpose.int", [T(2, 3, 4), 0, -1]), ("permute", [T(2, 3, 4), [2, 0, 1]]), ("squeeze", [T(2, 1, 3)]), ("squeeze.dim", [T(2, 1), 1]),
    ("unsqueeze", [T(2, 3), -1]), ("expand", [T(2, 1), [4, 2, 3], False]), ("expand_as", [T(1), T(2, 3)]), ("select.int", [T(2, 3), 1, -1]),
    ("slice.Tensor", [T(5, 2), 0, 1, None, 2]), ("narrow", [T(5, 2), 0, -3, 2]), ("diagonal", [T(3, 4), 1, 0, 1]),
    ("unfold", [T(7), 0, 3, 2]), ("as_strided", [T(6), [2, 3], [2, 1], 0]), ("movedim.int", [T(2, 3, 4), 0, 2]),
    ("cat", [[T(2, 3), T(1, 3)], 0]), ("stack", [[T(3), T(3)], 1]), ("hstack", [[T(2), T(3)]]), ("vstack", [[T(3), T(2, 3)]]),
    ("repeat", [T(2, 3), [2, 1, 2]]), ("flip", [T(2, 3), [1]]), ("roll", [T(2, 3), [1], [1]]), ("tril", [T(3, 3), 0]),
    ("triu", [T(3, 3), 1]), ("diag_embed", [T(2, 3), 0, -2, -1]), ("diag", [T(3), 0]), ("diag", [T(3, 3), 1]), ("trace", [T(3, 3)]),
    ("constant_pad_nd", [T(2, 3), [1, -1], 0.5]), ("reflection_pad1d", [T(2, 5), [2, 1]]),
    ("replication_pad2d", [T(1, 2, 3), [1, 1, 2, 0]]),
    ("index_select", [T(3, 4), 1, I(0, 2, 2)]), ("gather", [T(3, 4), 1, I([[0, 0], [1, 2], [3, 3]]), False]),
    ("index.Tensor", [T(3, 4), [None, I(1, 1, 3)]]), ("index_put", [T(3, 4), [I(0, 2)], T(2, 4), False]),
    ("index_put", [T(3, 4), [I(0, 0)], T(4), True]), ("index_add", [T(3, 4), 0, I(0, 2), T(2, 4), 2]),
    ("index_copy", [T(3, 4), 0, I(0, 2), T(2, 4)]), ("masked_fill.Scalar", [T(2, 2), B(True, False), 1.0]),
    ("masked_fill.Tensor", [T(2, 2), B(True, False), T()]), ("masked_select", [T(2, 2), B(True, False)]),
    ("scatter.src", [T(3, 4), 1, I([[0, 1], [2, 3]]), T(2, 2)]), ("scatter_add", [T(3, 4), 1, I([[0, 0], [2, 2]]), T(2, 2)]),
    ("take_along_dim", [T(3, 4), I([[0, 0], [1, 2], [3, 3]]), 1]), ("take", [T(3, 4), I(0, 5, 5)]),
    # products
    ("mm", [T(2, 3), T(3, 4)]), ("bmm", [T(2, 2, 3), T(2, 3, 4)]), ("mv", [T(2, 3), T(3)]), ("dot", [T(3), T(3)]), ("outer", [T(2), T(3)]),
    *[("matmul", [T(*a), T(*b)]) for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)),
                                             ((2, 3), (4, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)))],
    ("linear", [T(2, 2, 3), T(4, 3), T(4)]), ("linear", [T(2, 3), T(4, 3), None]), ("addmm", [T(4), T(2, 3), T(3, 4), 0.5, 2]),
    ("baddbmm", [T(2, 1, 4), T(2, 2, 3), T(2, 3, 4), 0.5, 2]), ("addmv", [T(2), T(2, 3), T(3), 1, 1]),
    ("addr", [T(2, 3), T(2), T(3), 2, 1]),
    ("tensordot", [T(2, 3, 4), T(4, 3, 2), [1, 2], [1, 0]]), ("bilinear", [T(3, 2), T(3, 4), T(5, 2, 4), T(5)]),
    ("kron", [T(2, 2), T(2, 3)]),
    *[("einsum", [equation, [T(*shape) for shape in shapes], None]) for equation, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("bij, bkj", (2, 3, 4), (2, 2, 4)), ("...ij,jk->...k", (2, 3, 4), (4, 2)), ("ij->j", (2, 3)),
        ("i,j,ij->", (2,), (3,), (2, 3)), ("ii->i", (3, 3)), ("...ii,i->...", (2, 3, 3), (3,)), ("bqd,bkd->bqk", (1, 2, 3), (2, 4, 3)))],
    # layers
    ("batch_norm", [T(3, 2, 2), T(2), T(2), np.zeros(2), np.ones(2), True, 0.1, 1e-5, False]),
    ("batch_norm", [T(3, 2), None, None, np.zeros(2), np.full(2, 1.5), False, 0.1, 1e-5, False]),
    ("layer_norm", [T(2, 3, 4), [3, 4], T(3, 4), T(3, 4), 1e-5, False]), ("layer_norm", [T(2, 4), [4], None, None, 1e-5, False]),
    ("group_norm", [T(2, 4, 3), 2, T(4), T(4), 1e-5, False]),
    ("instance_norm", [T(2, 3, 4), T(3), T(3), None, None, True, 0.1, 1e-5, False]),
    ("conv1d", [T(2, 2, 6), T(3, 2, 3), T(3), [2], [1], [1], 1]),
    ("conv2d", [T(1, 4, 5, 4), T(4, 2, 2, 3), None, [1, 2], [1, 0], [2, 1], 2]),
    ("conv_transpose2d.input", [T(1, 2, 3, 3), T(2, 2, 2, 2), T(2), [2, 1], [0, 1], [1, 0], 1, [1, 1]]),
    ("max_pool2d", [T(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False]), ("max_pool1d", [T(1, 2, 6), [3], [2], [1], [1], False]),
    ("avg_pool2d", [T(1, 2, 5, 5), [3, 3], [2, 2], [1, 1], True, False, None]), ("adaptive_avg_pool2d", [T(1, 2, 5, 4), [2, 3]]),
    ("upsample_nearest2d", [T(1, 1, 2, 3), [4, 5], None, None]), ("upsample_bilinear2d", [T(1, 1, 2, 3), [4, 5], False, None, None]),
    ("embedding", [T(4, 2), I([[0, 3], [3, 1]]), 1, True, False]), ("pixel_shuffle", [T(1, 4, 2, 2), 2]),
    ("scaled_dot_product_attention", [T(2, 3, 4), T(2, 5, 4), T(2, 5, 4), T(3, 5), 0.0, False, None, False]),
    ("scaled_dot_product_attention", [T(2, 3, 4), T(2, 3, 4), T(2, 3, 4), None, 0.0, True, 0.7, False]),
    # losses
    *[(name, [T(2, 3), T(2, 3), reduction]) for name in ("mse_loss", "l1_loss") for reduction in (0, 1, 2)],
    ("soft_margin_loss", [T(2, 3), np.sign(np.arange(6.0).reshape(2, 3) - 2.5), 1]),
    ("smooth_l1_loss", [T(2, 3), T(2, 3), 1, 0.5]), ("huber_loss", [T(2, 3), T(2, 3), 2, 0.5]), ("kl_div", [T(2, 3), P(2, 3), 1, False]),
    ("binary_cross_entropy", [C(2, 3), C(2, 3), None, 1]),
    ("binary_cross_entropy_with_logits", [T(2, 3), C(2, 3), None, np.array([0.5, 1.0, 2.0]), 1]),
    ("nll_loss_nd", [T(3, 4), I(0, 3, 1), np.array([0.5, 1.0, 2.0, 1.5]), 1, 3]),
    ("cross_entropy_loss", [T(3, 4), I(0, 3, 1), None, 1, -100, 0.1]),
    ("cross_entropy_loss", [T(3, 4), C(3, 4), None, 2, -100, 0.0]),
    # -- covariances
    ("cov", [T(3, 5), 1, None, P(5)]), ("cov", [T(3, 5), 0, np.array([1, 2, 1, 3, 1]), P(5)]), ("cov", [T(5), 1, None, None]),
    ("corrcoef", [T(3, 5)]),
    *[("scatter_reduce.two", [T(3, 4), 0, np.array([[0, 1, 2, 0], [1, 1, 0, 0]]), T(2, 4), reduce, include_self])
      for reduce in ("sum", "mean", "prod", "amax", "amin") for include_self in (True, False)],
]


def gradients_wanted(name: str, args: list[Any]) -> list[int]:
    """Arguments that get a gradient: those drawn."""
    return [place for place, arg in enumerate(args)
            if isinstance(arg, Draw) or isinstance(arg, list) and any(isinstance(one, Draw) for one in arg)]


def drawn(number: int, args: list[Any]) -> list[Any]:
    """The arguments of sample `number`, arrays drawn."""
    return [arg.array(1000 * number + place) if isinstance(arg, Draw)
            else [one.array(1000 * number + 100 + 10 * place + at) if isinstance(one, Draw) else one for at, one in enumerate(arg)]
            if isinstance(arg, list) else arg for place, arg in enumerate(args)]


def cotangents(number: int, outputs: list[Any]) -> list[Any]:
    """One for each result that is a float array, None for others."""
    return [np.random.default_rng(7000 + number + place).uniform(-1, 1, out.shape)
            if isinstance(out, np.ndarray) and out.dtype.kind == "f" else None for place, out in enumerate(outputs)]


def flat(values: Any) -> list[Any]:
    """Lists and tuples taken apart."""
    return [one for value in values for one in flat(value)] if isinstance(values, list | tuple) else [values]


def recorded_by_torch() -> list[list[Any]]:
    """torch's gradients of every sample: per argument that is drawn, its numbers in order (None where there is none)."""
    import torch

    found: list[list[Any]] = []
    for number, (name, args) in enumerate(SAMPLES):
        kind, _, variant = name.partition(".")
        op = getattr(getattr(torch.ops.aten, kind), variant or "default")
        wanted = gradients_wanted(name, args)

        def tensor(value: Any, track: bool) -> Any:
            if isinstance(value, list):
                return [tensor(one, track) for one in value]
            return torch.tensor(value, requires_grad=track) if isinstance(value, np.ndarray) else value

        given = [tensor(arg, place in wanted) for place, arg in enumerate(drawn(number, args))]
        fixed = op._schema.arguments
        positional = [value for value, argument in zip(given, fixed, strict=True) if not argument.kwarg_only]
        named = {argument.name: value for value, argument in zip(given, fixed, strict=True) if argument.kwarg_only}
        outputs = op(*positional, **named)
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        given_back = cotangents(number, [out.detach().numpy() for out in outputs])
        pairs = [(out, torch.tensor(c)) for out, c in zip(outputs, given_back, strict=True) if c is not None and out.requires_grad]
        leaves = flat([given[place] for place in wanted])
        grads = [None] * len(leaves)
        if pairs:
            grads = torch.autograd.grad([out for out, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True)
        found.append([None if g is None else [float(f"{x:.12g}") for x in torch.empty_like(g).copy_(g).reshape(-1).tolist()]
                      for g in grads])
    return found


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(recorded_by_torch(), separators=(",", ":")).replace("],[[", "],\n[[") + "\n")
