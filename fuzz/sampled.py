"""Expressions whose results are looked up: each is tried on an example of its operands' dtypes and shapes, by irtool itself.

What irtool has wrong about a dtype or a shape here shows when the program is compared with torch; what it refuses is not drawn.
"""
from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

import irtool
from fuzz.expressions import ORDER, Facts, Rule, Shape
from fuzz.values import elements

MOST = 400
"""Of operands with more elements none is looked up."""
ELEMENTWISE = (
    "{a}.frac()", "torch.sgn({a})", "torch.signbit({a})", "{a}.logical_not()", "{a}.bitwise_not()", "torch.isinf({a})", "{a}.floor()",
    "{a}.ceil()", "torch.triu({a}, 1)", "torch.flip({a}, [-1])", "torch.roll({a}, [1], [-1])", "torch.rot90({a})",
    "torch.threshold({a}, 0.5, 2)", "F.relu6({a})", "F.hardshrink({a}, 0.75)", "F.softshrink({a})", "torch.heaviside({a}, {b})",
    "torch.fmod({a}, {b} + 3)", "torch.remainder({a}, {b} + 3)", "torch.floor_divide({a}, {b} * 2 + 1)", "torch.fmax({a}, {b})",
    "torch.fmin({a}, {b})", "{a} ^ {b}", "torch.bitwise_left_shift({a}, 1)", "{a} >> 1", "torch.gcd({a}, {b})", "torch.lcm({a}, {b})",
    "torch.copysign({a}, {b})", "torch.div({a}, {b} * 2 + 1, rounding_mode='floor')", "torch.div({a}, {b} * 2 + 1, rounding_mode='trunc')",
    "torch.where({a} > {b}, {r}, {a})", "torch.where({a} > 0, {n}, {r})", "torch.where({a} > 0, {a}, 0)", "{a}.clamp({b}, {b} + 1)",
    "torch.clamp_max({a}, 1)", "{a}.clip(max={r})", "{a} - {n}", "{n} - {a}", "{a}.to({b})", "{a}.pow({n})", "{n} ** {a}.clamp(0, 2)",
    "torch.equal({a}, {b}) + {a}", "torch.ge({a}, {n})", "{a}.lt({b})", "{a}.new_full({b}.size(), {n})",
    "torch.masked_fill({a}, {b} > 0, {n})", "{a}.fmod(2)", "{a}.remainder(-3)", "{r} + {a}", "{a} * 2j", "torch.real({a})",
    "torch.conj({a})", "{a}.conj().resolve_conj()", "torch.imag({a} * 1j)", "{a}.to(torch.int8)", "{a}.to(torch.int16)", "{a}.half()",
    "{a}.to(torch.complex64)", "{a}.to(torch.complex128)", "{a}.short()", "{a}.char() + 1", "{a}.byte() + {n}",
    "torch.ones_like({a}, dtype=torch.float16)", "torch.zeros_like({a}, dtype=torch.int8)",
    "torch.full_like({a}, {r}, dtype=torch.float64)",
)
"""Elementwise; exact numbers stay so."""
ROUNDED = (
    "torch.sinh({a} * 0.5)", "torch.cosh({a} * 0.5)", "torch.asinh({a})", "torch.acosh({a} * {a} + 1.5)", "torch.atanh({a} * 0.1)",
    "torch.asin({a} * 0.1)", "torch.acos({a} * 0.1)", "torch.tan({a} * 0.1)", "torch.exp2({a})", "torch.log2({a} * {a} + 1)",
    "torch.log10({a} * {a} + 1)", "torch.log({a} * {a} + 1)", "torch.sinc({a})", "torch.deg2rad({a})",
    "torch.lgamma({a} * {a} + 1)", "torch.digamma({a} * {a} + 1)", "torch.erfc({a})", "torch.erfinv({a} * 0.1)",
    "torch.logit({a} * 0.05 + 0.5)", "torch.i0({a})", "torch.special.expit({a})", "torch.special.ndtr({a})",
    "torch.special.xlog1py({a}, {b} * {b})", "torch.xlogy({a}, {b} * {b} + 1)", "torch.hypot({a}, {b})", "torch.logaddexp({a}, {b})",
    "torch.logaddexp2({a}, {b})", "torch.ldexp({a}, {b})", "torch.float_power({a}, 2)", "torch.true_divide({a}, {b} * {b} + 1)",
    "torch.addcdiv({a}, {a}, {b} * {b} + 1, value=0.5)", "torch.lerp({a}, {b}, {a} * 0.1)", "F.hardsigmoid({a})",
    "F.hardswish({a} + 0.111)", "F.mish({a})", "F.selu({a} + 0.111)", "F.celu({a} + 0.111)", "F.softsign({a})", "F.tanhshrink({a})",
    "F.logsigmoid({a})", "F.softmin({a}, -1)", "F.glu({a}, -1)", "F.prelu({a} + 0.111, torch.tensor([0.25], dtype={a}.dtype))",
    "F.gelu({a}, approximate='tanh')", "{a}.sqrt()", "{a} ** 0.5", "({a} * {a} + 1) ** {r}", "{r} ** ({a} * 0.25)", "1 / ({a} * {a} + 1)",
    "torch.rsub({a}, 1)", "torch.polar({a}, {b})", "torch.complex({a}, {b})", "torch.view_as_real({a} * (1 + 1j))",
    "torch.abs({a} * (1 + 1j))",
    "torch.angle({a} + 20)", "{a}.exp()",
)
"""Elementwise, rounded."""
FOLDS = (
    "{a}.sum(dtype=torch.float64)", "{a}.cumsum(-1)", "{a}.cumprod(0)", "torch.logcumsumexp({a}, 0)", "{a}.std()", "{a}.var(-1)",
    "{a}.std(0, keepdim=True)", "torch.var_mean({a}, 0)[1]", "torch.std_mean({a})[0]", "{a}.mean(dtype=torch.float64)",
    "{a}.mean([0, -1])", "{a}.sum([0, 1])", "{a}.sum((-1,), True)", "{a}.norm(1, 0)", "{a}.norm(2, -1, True)",
    "torch.linalg.vector_norm({a}, 2, [0])", "torch.linalg.norm({a})", "torch.nansum({a}, 0)", "torch.nanmean({a})",
    "{a}.logsumexp([0, -1])", "torch.trace({a})", "{a}.prod(0)", "{a}.prod(-1, keepdim=True)", "torch.diff({a})", "torch.diff({a}, dim=0)",
    "torch.cdist({a}, {b})", "torch.dist({a}, {b})", "torch.tensordot({a}, {b}, 1)", "torch.inner({a}, {b})", "torch.kron({a}, {b})",
    "{a}.mv({b})", "torch.vdot({a}, {b})", "torch.baddbmm({a}, {a}, {b})", "torch.addmv({a}, {b}, {a})", "torch.addr({a}, {a}, {b})",
    "torch.einsum('ij,j->i', {a}, {b})", "torch.einsum('...i,...i->...', {a}, {b})",
    "torch.einsum('ii', {a})", "torch.linalg.cross({a}, {b})", "torch.cov({a})", "F.l1_loss({a}, {b}, reduction='sum')",
    "F.smooth_l1_loss({a}, {b} + 0.111)", "F.huber_loss({a}, {b} + 0.111)", "F.kl_div({a}, {b})",
    "F.binary_cross_entropy_with_logits({a}, {b})", "F.cosine_similarity({a} + 3, {b} + 3, dim=0)", "F.pairwise_distance({a}, {b})",
    "F.cross_entropy({a}, {b})", "F.nll_loss({a}, torch.zeros({a}.size()[:1], dtype=torch.int64))", "F.softmax({a}, 0)",
    "F.log_softmax({a}, -1)", "F.normalize({a} + 3, dim=-1)", "F.group_norm({a} + 0.1, 1)",
    "F.batch_norm({a}, torch.zeros_like({a}[0]), torch.ones_like({a}[0]))", "F.rms_norm({a}, {a}.size()[-1:])",
    "F.scaled_dot_product_attention({a}, {b}, {b})", "F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True)", "F.conv1d({a}, {b})",
    "F.conv1d({a}, {a}[:1, :, :2])", "F.conv_transpose1d({a}, {a}[:, :, :2])", "F.avg_pool1d({a}, 2)", "F.adaptive_avg_pool1d({a}, 2)",
    "F.avg_pool2d({a}, 2, 1)", "F.interpolate({a}, scale_factor=2.0, mode='nearest')", "F.interpolate({a}, [5], mode='linear')",
    "F.linear({a}, {b}, {a}[0, 0])", "torch.linalg.det({a})", "torch.linalg.inv({a} + 4 * torch.eye(3, dtype={a}.dtype))",
    "torch.linalg.matrix_power({a}, 2)", "torch.chain_matmul({a}, {a})",
    "torch.linalg.solve({a} + 9 * torch.eye(3, dtype={a}.dtype), {b})", "torch.cumulative_trapezoid({a})", "torch.trapezoid({a})",
    "torch.corrcoef({a})", "torch.renorm({a}, 2, 0, 1.5)", "torch.linalg.multi_dot([{a}, {b}])",
    "torch.bilinear({a}, {a}, {b}.unsqueeze(0), None)", "{a}.matmul({b}).sum(-1)",
)
"""Over elements, rounded."""
PICKS = (
    "{a}.argmax()", "{a}.argmin(0)", "{a}.median()", "{a}.median(0)[0]", "{a}.kthvalue(1, 0)[0]", "{a}.mode(0)[0]", "{a}.cummin(0)[0]",
    "{a}.aminmax()[1]", "torch.sort({a}, 0, descending=True)[0]", "{a}.topk(2, -1)[0]", "{a}.msort()", "torch.unique({a})",
    "{a}.nonzero()", "torch.argwhere({a})", "torch.histc({a}, 4, -2, 2)", "torch.searchsorted({a}.sort(-1)[0], {a})",
    "torch.isin({a}, {b})", "torch.count_nonzero({a}, 0)", "{a}.any(0)", "{a}.all(-1, True)", "torch.quantile({a}, 0.5)", "{a}.max({b})",
    "{a}.argsort(stable=True, dim=-1)", "F.max_pool1d({a}, 2)", "F.max_pool2d({a}, 2, 1)", "F.adaptive_max_pool1d({a}, 1)",
    "F.one_hot({a}.long().abs() % 4, 4)", "F.embedding({a}.long().abs() % 3, {b}[:, None].expand(-1, 2).repeat(3, 1))",
    "torch.logical_or({a}, {b})", "torch.tril_indices(2, 3)", "torch.cumsum({a} > 0, 0)", "{a}.sum(0, dtype=torch.int64)",
    "({a} > 0).sum()", "({a} > 0).float().mean()", "torch.allclose({a}, {b}) + {a}", "{a}.nanmedian()",
)
"""Which elements, by comparison: of exact numbers only."""
MOVES = (
    "torch.cat([{a}, {a}], 0)", "torch.stack([{a}, {a}, {b}], 1)", "torch.hstack([{a}, {b}])", "torch.vstack([{a}, {b}])",
    "torch.dstack([{a}, {b}])", "torch.column_stack([{a}, {b}])", "torch.tile({a}, [2, 1])", "{a}.repeat(2, 1)",
    "{a}.repeat_interleave(2, 0)", "{a}.repeat_interleave(2)", "torch.block_diag({a}, {b})",
    "torch.meshgrid([{a}, {b}], indexing='ij')[0]", "torch.diag({a})", "torch.diag_embed({a})", "torch.diagflat({a})",
    "torch.combinations({a})", "torch.cartesian_prod({a}, {b})", "F.pad({a}, [1, 0, 0, 1], value=2.0)",
    "F.pad({a}, [1, 1], mode='reflect')", "F.pad({a}, [1, 1], mode='replicate')", "F.pad({a}, [1, 1], mode='circular')",
    "F.pad({a}, [-1, 0])", "F.unfold({a}, [2, 2])", "F.pixel_shuffle({a}, 2)", "torch.channel_shuffle({a}, 1)",
    "{a}.take(torch.tensor([0, 0]))", "torch.take_along_dim({a}, torch.zeros([1], dtype=torch.int64))",
    "torch.gather({a}, -1, torch.zeros_like({a}, dtype=torch.int64))", "{a}.index_select(-1, torch.tensor([0, 0]))",
    "{a}.scatter_add(-1, torch.zeros_like({a}, dtype=torch.int64), {a})",
    "{a}.scatter(0, torch.zeros_like({a}, dtype=torch.int64), 2)",
    "{a}.scatter_reduce(0, torch.zeros_like({a}, dtype=torch.int64), {a}, 'sum')", "{a}.index_add(0, torch.tensor([0]), {a}[:1])",
    "{a}.index_copy(0, torch.tensor([0]), {a}[-1:])", "{a}.index_fill(0, torch.tensor([0]), 2)",
    "{a}.index_put([torch.tensor([0, 0])], {a}[:1].sum(), True)", "{a}.masked_scatter({a} > 0, {a} + 1)", "{a}[{a} > 0]", "{a}[{b} > 0]",
    "{a}[torch.tensor([True] * {a}.size(0))]", "{a}[torch.tensor([[0, -1]]), :]", "{a}[:, torch.tensor([0, 0])]",
    "{a}[torch.tensor([0]), torch.tensor([0])]", "{a}[[0, -1]]", "{a}[{a}.size(0) - 1]",
    "{a}[None, ..., None]", "{a}[1:][:, :1]", "{a}.slice_scatter({a}[:1] + 1, 0, 0, 1)", "{a}.select_scatter({a}[0] * 2, 0, 0)",
    "{a}.diagonal_scatter({a}.diagonal() + 1)", "torch.broadcast_tensors({a}, {b})[0]", "{a}.broadcast_to({b}.size())",
    "torch.atleast_2d({a})", "torch.tensor_split({a}, 2)[1]", "torch.split({a}, [1, {a}.size(0) - 1])[1]", "{a}.flatten(1)",
    "{a}.reshape({a}.size(0), -1)", "{a}.view({b}.size())", "{a}.reshape_as({b})", "torch.swapdims({a}, 0, 1)",
    "torch.moveaxis({a}, -1, 0)", "torch.einsum('ij->ji', {a})", "{a}.adjoint()", "{a}.tril(-1)", "torch.vander({a})",
    "{a}.fliplr()", "{a}.flipud()",
    "{a}.clone(memory_format=torch.contiguous_format)", "{a}.new_empty({a}.size()).copy_({a})", "torch.empty_like({a}).copy_({b})",
    "{a}.new_ones([2, 2])", "{a}.new_zeros([2], dtype=torch.float64)", "{a}.unsqueeze(1)",
    "torch.unbind({a}, -1)[-1]", "{a}.chunk(3, -1)[-1]", "{a}.split(2, 0)[0]", "{a}.permute(2, 0, 1)", "{a}.T", "{a}.squeeze(-1)",
    "{a}.squeeze([0, -1])", "{a}.diagonal(1)", "{a}.diagonal(0, -1, 0)", "{a}.ravel()", "{a}.unflatten(-1, [-1, 1])", "{a}.select(0, -1)",
)
"""Elements moved about, or views."""

def rule(texts: tuple[str, ...], text: str) -> Rule:
    """The rule of an expression of one of the five above."""
    def looked_up(a: Facts, b: Facts) -> Facts | None:
        is_compared = texts in (ELEMENTWISE, PICKS)
        if max(a.count, b.count) > MOST or is_compared and not (a.is_exact and b.is_exact):
            return None
        if texts in (ROUNDED, FOLDS) and "16" in a.dtype + b.dtype or texts is not MOVES and "complex" in a.dtype + b.dtype:
            return None
        result = facts_of(text, (a.dtype, b.dtype), (a.shape, b.shape))
        if result is None or result[0] not in ORDER or math.prod(result[1]) > MOST:
            return None
        is_kept = texts is MOVES and a.bits is not None and b.bits is not None and result[0] in (a.dtype, b.dtype)
        return Facts(*result, max(a.bits or 6, b.bits or 6) if is_kept else None)
    return looked_up


@cache
def facts_of(text: str, dtypes: tuple[str, str], shapes: tuple[Shape, Shape]) -> tuple[str, Shape] | None:
    """Dtype and shape of the result on an example; None where irtool refuses it, or where they are not those of another example."""
    found = {example(text, dtypes, shapes, seed) for seed in (1, 2, 3)}
    return found.pop() if len(found) == 1 else None


def example(text: str, dtypes: tuple[str, str], shapes: tuple[Shape, Shape], seed: int) -> tuple[str, Shape] | None:
    """Dtype and shape of the result on one example; None where irtool refuses it."""
    rng = np.random.default_rng(seed)
    space: dict[str, Any] = {"torch": irtool.torch, "F": irtool.torch.nn.functional}
    space |= {name: irtool.torch.tensor(elements(rng, shape, dtype)) for name, dtype, shape in zip("ab", dtypes, shapes)}
    try:
        result = eval(text.format(a="a", b="b", n=(seed + 1) % 4, r=0.5), space)  # an expression of the tables
    except (irtool.Error, ArithmeticError, LookupError):
        return None
    return (np.asarray(result).dtype.name, tuple(result.shape)) if isinstance(result, irtool.Tensor) else None


EXACT, SMOOTH, REDUCE, CHOICE, MOVE = (tuple((text, rule(texts, text)) for text in texts)
                                       for texts in (ELEMENTWISE, ROUNDED, FOLDS, PICKS, MOVES))
"""The same as tables of expressions with rules."""
