"""What programs are made of: expressions with their rules, and statements that write."""
from __future__ import annotations

from typing import TypeAlias

from fuzz.expressions import (
    Facts,
    Rule,
    along,
    as_other,
    average,
    batched,
    both,
    cast,
    compared,
    conditional,
    extreme,
    first,
    fixed,
    floats,
    half,
    joined,
    like,
    linear,
    logical,
    masked,
    matrices,
    outer,
    over,
    padded,
    pairs,
    picked,
    products,
    ranked,
    rounding,
    scanned,
    shorter,
    signed,
    smooth,
    smooth_both,
    square_matrices,
    stacked,
    stepped,
    total,
    truth,
    viewed,
    whole,
)

Table: TypeAlias = tuple[tuple[str, Rule], ...]

SMOOTH: Table = (
    ("torch.sin({a})", smooth), ("torch.tanh({a})", smooth), ("torch.sigmoid({a})", smooth), ("torch.exp({a} * 0.25)", smooth),
    ("torch.cos({a})", smooth), ("torch.log1p(torch.square({a}))", smooth), ("torch.sqrt(torch.square({a}) + 1)", smooth),
    ("{a}.atan()", smooth), ("torch.erf({a})", smooth), ("F.gelu({a})", floats), ("F.softplus({a})", floats), ("F.silu({a})", floats),
    ("torch.reciprocal(torch.square({a}) + 0.5)", smooth), ("torch.rsqrt({a} * {a} + 1)", smooth), ("{a}.neg()", signed),
    ("{a} * {r}", floats), ("{a} + {r}", floats), ("{r} - {a}", floats), ("{a} * {n}", signed), ("{a} + {n}", signed), ("{a} / 3", smooth),
    ("torch.add({a}, {r}, alpha=2)", floats), ("{a} ** 2", floats), ("torch.pow({a}, 3)", floats), ("{a}.clone()", like),
    ("-{a}", signed), ("torch.mul({a}, 0.5)", floats), ("{a} * {n} + {r}", floats), ("torch.expm1({a} * 0.5)", smooth),
)
EXACT: Table = (
    ("torch.abs({a})", signed), ("torch.relu({a})", signed), ("{a}.sign()", rounding), ("torch.floor({a})", rounding),
    ("torch.clamp({a}, -1, 2)", rounding), ("torch.round({a})", rounding), ("{a}.clamp(min=0)", signed), ("F.leaky_relu({a}, 0.5)", floats),
    ("torch.zeros_like({a})", like), ("torch.ones_like({a})", like), ("torch.full_like({a}, 2)", like), ("{a}.detach()", like),
    ("{a}.contiguous()", like), ("torch.nan_to_num({a})", floats), ("F.hardtanh({a})", floats), ("{a} > {n}", compared),
    ("{a} == {n}", compared), ("{a}.flip([0])", ranked(1, lambda s: s)), ("torch.roll({a}, 1, 0)", ranked(1, lambda s: s)),
    ("torch.tril({a})", ranked(2, lambda s: s)), ("torch.trunc({a})", rounding), ("{a}.new_zeros({a}.size())", like),
    ("torch.empty_like({a}).fill_({n})", like),
)
MORE_SMOOTH: Table = (
    ("F.pad({a}, [1, 1])", padded), ("{a}.cumsum(0)", scanned), ("torch.index_select({a}, 0, torch.tensor([0, 0]))", picked(2)),
    ("{a}[torch.tensor([0, -1, 0])]", picked(3)), ("F.elu({a})", floats), ("F.dropout({a}, 0.5, False)", floats), ("{a}.norm()", average),
    ("{a}.prod()", lambda a, b: average(a, b) if a.count < 30 else None), ("{a}.var(0, unbiased=False)", over(0, rounds=True)),
    ("torch.einsum('i...->...', [{a}])", over(0, rounds=True)), ("{a}.repeat(2)", ranked(1, lambda s: (2 * s[0],), 1)),
    ("torch.cat([{a}, {a} * 2], -1)", ranked(1, lambda s: (*s[:-1], 2 * s[-1]))), ("{a}.square().mean().sqrt() + {a}", floats),
    ("torch.where({a} > 100, {a} * 2, {a} - 1)", floats),
    ("torch.stack([{a}, {a} * {r}], -1)", lambda a, b: pairs(a, b) if a.is_float else None),
    ("({a} if {n} > 1 else {a} * 2)", signed), ("torch.logaddexp({a}, {a} * 0.5)", floats), ("F.normalize({a} + 3, dim=0)", along(0)),
    ("{a}.unfold(0, 2, 1).sum(-1)", lambda a, b: shorter(a, b) if a.is_float else None),
    ("{a}.clone().t()", ranked(2, lambda s: s[::-1], 2)),
)
MORE_BOTH: Table = (
    ("torch.bmm({a}, {b})", batched), ("F.linear({a}, {b})", linear), ("torch.outer({a}, {b})", outer),
    ("torch.atan2({a}, {b} * {b} + 1)", smooth_both), ("torch.einsum('ij,jk->ik', {a}, {b})", square_matrices),
    ("torch.pow({a} * {a} + 1, {b} * 0.5 + 0.111)", smooth_both), ("({a} if {a}.dim() > {b}.dim() else {a} * 0.5)", floats),
    ("F.mse_loss({a}, {b})", lambda a, b: average(a, b) if (a.dtype, a.shape) == (b.dtype, b.shape) else None),
    ("torch.dot({a}, {b})", lambda a, b: matrices(a, b) if len(a.shape) == len(b.shape) == 1 else None),
    ("torch.addmm({a}, {a}, {b})", lambda a, b: square_matrices(a, b) if b.shape == a.shape[1:] * 2 else None),
    ("torch.cat([{a}, {b}])[:1]", lambda a, b: first(a, b) if joined(0)(a, b) else None),
)
MORE_EXACT: Table = (
    ("{a}[{a} > 0].sum()", lambda a, b: truth(a, b) and total(a, b)), ("torch.isnan({a})", lambda a, b: Facts("bool", a.shape)),
    ("torch.isfinite({a})", lambda a, b: Facts("bool", a.shape)), ("{a}.topk(1)[0]", lambda a, b: over(-1, keep=True, whole=True)(a, b)
                                                                   if a.dtype != "bool" else None),
    ("torch.bincount({a}.flatten().to(torch.int64).clamp(0, 3), minlength=4)", lambda a, b: whole(a, b) and fixed("int64", (4,))(a, b)),
    ("{a}.to(torch.int64) // 2", cast("int64")), ("{a} % 3", whole), ("{a} // 2", whole), ("{a} + True", signed), ("{a} * True", signed),
    ("torch.masked_select({a}, {a} > 0).size(0) + {a}", signed), ("~{a}", lambda a, b: like(a, b) if a.dtype == "bool" else None),
    ("torch.gather({a}, 0, torch.zeros_like({a}, dtype=torch.int64))", ranked(1, lambda s: s if s[0] else None)),
    ("({a} > 0).to({a}.dtype)", lambda a, b: like(a, b) if compared(a, a) else None), ("{a}.to(torch.float16).float()", half),
    ("torch.nonzero({a}).size(0) * torch.ones([], dtype=torch.int64)", lambda a, b: truth(a, b) and fixed("int64", ())(a, b)),
    ("{a}.argsort(0, stable=True)", lambda a, b: whole(a, b) and Facts("int64", a.shape)), ("{a}.cummax(0)[0]", along(0, rounds=False)),
    ("torch.bucketize({a}, torch.tensor([-1.0, 1.0]))", lambda a, b: rounding(a, b) and Facts("int64", a.shape)),
)
SMOOTH_BOTH: Table = (
    ("{a} + {b}", both), ("{a} - {b}", both), ("{a} * {b}", products), ("{a} / ({b} * {b} + 1)", smooth_both),
    ("torch.add({a}, {b}, alpha=2)", both), ("torch.addcmul({a}, {b}, {b}, value=0.5)", smooth_both), ("torch.matmul({a}, {b})", matrices),
    ("{a}.mm({b})", square_matrices), ("torch.sub({a}, {b}, alpha=3)", both), ("torch.rsub({a}, {b})", both),
    ("torch.cat([{a}, {b}])", joined(0)), ("torch.cat([{a}, {b}], -1)", joined(-1)), ("torch.stack([{a}, {b}])", stacked),
    ("torch.lerp({a}, {b}, 0.25)", lambda a, b: smooth_both(a, b) if a.dtype == b.dtype and a.is_float else None),
    ("{a} @ {b}", matrices), ("{a}.expand_as({b})", as_other), ("{a} * {b} + {a}", products),
)
EXACT_BOTH: Table = (
    ("torch.maximum({a}, {b})", conditional), ("torch.minimum({a}, {b})", conditional), ("{a} > {b}", compared), ("{a} <= {b}", compared),
    ("{a} == {b}", compared), ("torch.where({a} > {b}, {a}, {b})", lambda a, b: conditional(a, b) if a.is_exact else None),
    ("torch.where({b} > 0, {a}, {b})", conditional), ("torch.logical_and({a}, {b})", compared), ("{a} & {b}", logical),
    ("{a} | {b}", logical),
    ("{a}.masked_fill({b} > 0, 1)", masked), ("{a}.type_as({b})", lambda a, b: cast(b.dtype)(a, b)), ("{a} != {b}", compared),
    ("torch.logical_xor({a}, {b})", compared),
)
VIEWS: Table = (
    ("{a}.t()", ranked(2, lambda s: s[::-1], 2)), ("{a}.transpose(0, -1)", ranked(2, lambda s: (s[-1], *s[1:-1], s[0]))),
    ("{a}.reshape(-1)", viewed(lambda s: (size(s),))), ("{a}.unsqueeze(0)", viewed(lambda s: (1, *s))),
    ("{a}.flatten()", viewed(lambda s: (size(s),))),
    ("{a}.unsqueeze(-1)", viewed(lambda s: (*s, 1))), ("{a}.squeeze()", viewed(lambda s: tuple(n for n in s if n != 1))),
    ("{a}[0]", ranked(1, lambda s: s[1:] if s[0] else None)), ("{a}[-1]", ranked(1, lambda s: s[1:] if s[0] else None)),
    ("{a}[1:]", ranked(1, lambda s: (max(0, s[0] - 1), *s[1:]))), ("{a}[::2]", ranked(1, lambda s: (stepped(s[0], 0, 2), *s[1:]))),
    ("{a}[:, 0]", ranked(2, lambda s: (s[0], *s[2:]) if s[1] else None)),
    ("{a}[..., 1:]", ranked(1, lambda s: (*s[:-1], max(0, s[-1] - 1)))),
    ("{a}.select(-1, 0)", ranked(1, lambda s: s[:-1] if s[-1] else None)), ("{a}[None]", viewed(lambda s: (1, *s))),
    ("{a}.narrow(0, 1, 1)", ranked(1, lambda s: (1, *s[1:]) if s[0] > 1 else None)),
    ("{a}[:, None]", ranked(1, lambda s: (s[0], 1, *s[1:]))),
    ("{a}.expand(2, -1)", ranked(1, lambda s: (2, s[-1]) if len(s) == 1 or s[0] == 1 else None, 2)),
    ("{a}.mT", ranked(2, lambda s: (*s[:-2], s[-1], s[-2]))),
    ("{a}.permute(1, 0)", ranked(2, lambda s: s[::-1], 2)), ("{a}.diagonal()", ranked(2, lambda s: (min(s),), 2)),
    ("{a}.movedim(0, -1)", ranked(1, lambda s: (*s[1:], s[0]))), ("{a}[:-1]", ranked(1, lambda s: (max(0, s[0] - 1), *s[1:]))),
    ("{a}.swapaxes(0, 1)", ranked(2, lambda s: (s[1], s[0], *s[2:]))),
    ("{a}.unbind(0)[0]", ranked(1, lambda s: s[1:] if 0 < s[0] < 500 else None)),
    ("{a}.chunk(2)[0]", ranked(1, lambda s: ((s[0] + 1) // 2, *s[1:]) if s[0] else None)), ("{a}[0:0]", ranked(1, lambda s: (0, *s[1:]))),
    ("{a}.squeeze(0)", ranked(1, lambda s: s[1:] if s[0] == 1 else s)), ("{a}.expand([2] + {a}.size())", viewed(lambda s: (2, *s))),
    ("{a}.view_as({a})", viewed(lambda s: s)),
    ("{a}.unflatten(0, [1, -1])", ranked(1, lambda s: (1, *s) if s[0] else None)),
)
REDUCE: Table = (
    ("{a}.sum()", total), ("{a}.mean()", average), ("{a}.sum(0)", over(0)), ("{a}.sum(-1, keepdim=True)", over(-1, keep=True)),
    ("{a}.mean(-1)", over(-1, rounds=True)), ("torch.softmax({a}, -1)", along(-1)), ("torch.log_softmax({a}, 0)", along(0)),
    ("torch.logsumexp({a}, 0)", lambda a, b: over(0, rounds=True)(a, b) if a.shape and a.shape[0] else None),
    ("F.layer_norm({a} + 0.1, {a}.size()[-1:])", along(-1)), ("({a} * {a}).mean()", average),
    ("{a}.sum(0, keepdim=True)", over(0, keep=True)),
)
EXACT_REDUCE: Table = (
    ("{a}.max()", extreme), ("{a}.min()", extreme), ("{a}.amax(0)", over(0, whole=True)), ("{a}.any()", truth), ("{a}.all()", truth),
    ("{a}.max(0)[0]", over(0, whole=True)), ("{a}.sort(-1)[0]", along(-1, rounds=False)), ("{a}.amin([-1])", over(-1, whole=True)),
    ("{a}.count_nonzero()", lambda a, b: truth(a, b) and fixed("int64", ())(a, b)),
)
MAKE: Table = (
    ("torch.ones([])", fixed("float32", ())), ("torch.ones([], dtype=torch.float64)", fixed("float64", ())),
    ("torch.tensor({r}, dtype=torch.float64)", fixed("float64", ())), ("torch.zeros([2, 3])", fixed("float32", (2, 3))),
    ("torch.full([2, 3], {r})", fixed("float32", (2, 3))), ("torch.arange(3)", fixed("int64", (3,))),
    ("torch.tensor([{n}, 2])", fixed("int64", (2,))),
    ("torch.eye(3)", fixed("float32", (3, 3))), ("torch.zeros([3], dtype=torch.float64)", fixed("float64", (3,))),
    ("torch.full([], {n})", fixed("int64", ())), ("torch.scalar_tensor({r})", fixed("float32", ())),
    ("torch.tensor({n})", fixed("int64", ())),
    ("torch.zeros(())", fixed("float32", ())), ("torch.tensor([1.5, {r}], dtype=torch.float64)", fixed("float64", (2,))),
    ("torch.full([1], {r}, dtype=torch.float64).sum()", fixed("float64", ())), ("torch.tensor([True, False])", fixed("bool", (2,))),
    ("torch.tensor({r}).double() * 0.1", fixed("float64", ())), ("torch.zeros([0, 2])", fixed("float32", (0, 2))),
)
CONVERT: Table = (
    ("{a}.to(torch.float64)", cast("float64")), ("{a}.float()", cast("float32")), ("{a}.long()", cast("int64")),
    ("{a}.to(torch.bool)", cast("bool")),
    ("{a}.double()", cast("float64")), ("{a}.int()", cast("int32")), ("{a}.to(torch.float32, copy=True)", cast("float32")),
    ("{a}.half().float()", lambda a, b: cast("float32")(a, b) if a.bits is not None and a.bits <= 10 else None),
)

SMOOTH_WRITES = ("{a}.add_({b})", "{a}.mul_({b})", "{a}.sub_({b}, alpha=2)", "{a}.copy_({b})", "{a}.zero_()", "{a}.fill_({r})",
                 "{a}.neg_()",
                 "{a}.tanh_()", "{a}.sigmoid_()", "{a} += {b}", "{a} -= 0.1 * {b}", "{a} *= {r}", "{a} *= {b}",
                 "{a}.addcmul_({b}, {b}, value=0.5)",
                 "{a}.sin_()", "{a}.add_({b}, alpha=0.5)", "{a}.div_({b} * {b} + 2)")
"""In place on a floating tensor; {b} must broadcast to it."""
EXACT_WRITES = ("{a}.relu_()", "{a}.clamp_(-1, 1)", "{a}.masked_fill_({a} > 0, {n})", "{a}.abs_()")
PART_WRITES = ("{a}[0] = {b}", "{a}[-1] *= {r}", "{a}[1:] = {n}", "{a}[0].add_({b})", "{a}[..., 0] = {r}", "{a}[0] += {b}",
               "{a}[:1].mul_({r})",
               "{a}[-1].copy_({b})", "{a}[::2] -= {b}", "{a}.select(0, 0).fill_({r})", "{a}.unsqueeze(0)[0].add_({b})",
               "{a}.view(-1)[0] = {r}", "{a}[torch.tensor([0])] = {r}", "{a}[0] = {a}[-1] * 2", "{a}[0:1].sub_({b}, alpha=2)",
               "{a}.index_fill_(0, torch.tensor([0]), {r})", "{a}.chunk(2)[0].neg_()", "{a}.unbind(0)[-1].mul_({b})",
               "{a}.split(1)[0].copy_({b})",
               "{a}[..., None].mul_({r})", "{a}.detach().mul_({r})", "{a}.transpose(0, -1)[0] = {r}", "{a}[-1:, ...] -= {r}",
               "{a}.narrow(0, 0, 1).fill_({n})", "{a}.index_add_(0, torch.tensor([0]), {a}[-1:] * 2)", "{a}.expand_as({a}).mul_({r})")
"""Into a part of a tensor of at least one dimension and one element; {b} must broadcast to `{a}[0]`."""
WHOLE_WRITES = ("{a}.add_({n})", "{a}.mul_({n})", "{a}.zero_()", "{a} += {n}")
"""In place on whole numbers."""
RESHAPES: Table = (
    ("{a}.t_()", ranked(2, lambda s: s[::-1], 2)), ("{a}.transpose_(0, -1)", ranked(2, lambda s: (s[-1], *s[1:-1], s[0]))),
    ("{a}.unsqueeze_(0)", viewed(lambda s: (1, *s))), ("{a}.squeeze_()", viewed(lambda s: tuple(n for n in s if n != 1))),
    ("{a}.swapaxes_(0, 1)", ranked(2, lambda s: (s[1], s[0], *s[2:]))), ("{a}.unsqueeze_(-1)", viewed(lambda s: (*s, 1))),
    ("{a}.squeeze_(0)", ranked(1, lambda s: s[1:] if s[0] == 1 else s)),
)
"""Shapes that change in place."""


def size(shape: tuple[int, ...]) -> int:
    """How many elements."""
    count = 1
    for each in shape:
        count *= each
    return count
